/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at Slurm (slurm_look.h) blocks for as long as slurmctld does, so it runs in libuv's
 * threads. One is under way at a time. */
#include "agent/leader/slurm_look.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/leader/leader_internal.h"
#include "common/log.h"
#include "common/slurm_queue.h"

#define LIMIT_AGAIN 600.0 /* seconds between looks at the partition of the pool */

struct slurm_look {
    struct job_info *base; /* Slurm's view of the base job; NULL until the first answer */
    uint32_t pool_limit;   /* minutes that the pool's partition allows */
    double limit_seen;     /* when; 0: not yet */
    bool looking;
    double last; /* when the last look ended; 0: look at once */
};

struct look {
    struct leader *leader;
    uid_t uid;
    struct slurm_view view;
    slurm_look_done *done;
    bool ask_limit;  /* of the pool's partition … */
    bool limit_seen; /* … and Slurm has answered: */
    uint32_t pool_limit;
};

/* ---- in a thread ----------------------------------------------------------------------------- */

static void relax(const struct slurm_view *view)
{
    struct error err = {""};
    int idle = view->relax.nodes;

    if (view->relax.partition != NULL)
        idle = slurm_client_idle_nodes(view->relax.partition, true, &err);
    if (idle >= view->relax.nodes)
        slurm_client_set_time_min(view->relax.job, view->relax.minutes, &err);
    if (err.text[0] != '\0')
        log_debug("extension job %u: %s", view->relax.job, err.text);
}

static void look_at_nodes(struct slurm_view *view)
{
    struct error err = {""};
    size_t count = 0;

    while (view->nodes[count] != NULL)
        count++;
    view->unwell = calloc(count + 1, sizeof(*view->unwell));
    if (view->unwell == NULL || slurm_client_unwell(view->nodes, view->unwell, &err) == 0)
        return;
    log_debug("Slurm: %s", err.text);
    free(view->unwell);
    view->unwell = NULL;
}

static void look_at_pool(struct look *look)
{
    struct error err = {""};

    look->limit_seen = slurm_client_partition_limit(look->view.pool, &look->pool_limit, &err) == 0;
    if (!look->limit_seen)
        log_debug("Slurm: %s", err.text);
}

static void look_work(void *arg)
{
    struct look *look = arg;
    struct slurm_view *view = &look->view;
    struct error err = {""};

    view->ok = slurm_client_jobs(look->uid, &view->list, &view->count, &err) == 0;
    if (!view->ok)
        log_debug("Slurm: %s", err.text);
    else if (view->relax.job != 0)
        relax(view);
    if (view->ok && look->ask_limit)
        look_at_pool(look);
    if (view->ok && view->nodes != NULL)
        look_at_nodes(view);
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void free_look(struct look *look)
{
    job_info_free_list(look->view.list, look->view.count);
    strings_free(look->view.nodes);
    free(look->view.unwell);
    free(look);
}

static void look_done(void *arg)
{
    struct look *look = arg;
    struct leader *leader = look->leader;
    struct slurm_look *own = leader->slurm_look;

    own->looking = false;
    own->last = leader_now(leader);
    if (look->limit_seen) {
        own->pool_limit = look->pool_limit;
        own->limit_seen = own->last;
    }
    look->done(leader, &look->view);
    free_look(look);
    leader_look_at_end(leader, 0);
}

void slurm_look_begin(struct leader *leader, const struct slurm_view *view, slurm_look_done *done)
{
    struct look *look = calloc(1, sizeof(*look));
    const struct slurm_look *own = leader->slurm_look;

    if (look == NULL) {
        strings_free(view->nodes);
        return;
    }
    *look = (struct look){.leader = leader, .uid = getuid(), .view = *view, .done = done};
    look->ask_limit = view->pool != NULL &&
                      (own->limit_seen == 0 || leader_now(leader) - own->limit_seen >= LIMIT_AGAIN);
    if (slurm_ask(leader->loop, look_work, look_done, look) == 0)
        leader->slurm_look->looking = true;
    else
        free_look(look);
}

bool slurm_look_busy(const struct leader *leader)
{
    return leader->slurm_look->looking;
}

void slurm_look_soon(struct leader *leader)
{
    leader->slurm_look->last = 0;
}

double slurm_look_age(const struct leader *leader)
{
    return leader_now(leader) - leader->slurm_look->last;
}

/* ---- what Slurm has said --------------------------------------------------------------------- */

uint32_t slurm_look_pool_limit(const struct leader *leader)
{
    return leader->slurm_look->pool_limit;
}

struct job_info *slurm_look_find(struct slurm_view *view, uint32_t job)
{
    for (int i = 0; i < view->count; i++)
        if (view->list[i].id == job)
            return &view->list[i];
    return NULL;
}

const struct job_info *slurm_look_base(const struct leader *leader)
{
    return leader->slurm_look->base;
}

void slurm_look_take_base(struct leader *leader, struct slurm_view *view)
{
    struct job_info *base = slurm_look_find(view, leader->options->job);
    struct job_info *copy = base != NULL ? calloc(1, sizeof(*copy)) : NULL;

    if (copy == NULL)
        return;
    /* Take over the entry: the list frees an empty one. */
    *copy = *base;
    memset(base, 0, sizeof(*base));
    job_info_free(leader->slurm_look->base);
    leader->slurm_look->base = copy;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct slurm_look *slurm_look_create(void)
{
    struct slurm_look *look = calloc(1, sizeof(*look));

    if (look != NULL)
        look->pool_limit = UINT32_MAX;
    return look;
}

void slurm_look_destroy(struct slurm_look *look)
{
    if (look == NULL)
        return;
    job_info_free(look->base);
    free(look);
}
