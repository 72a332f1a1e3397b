/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at Slurm (slurm_look.h) blocks for as long as slurmctld does, so it runs in libuv's
 * threads. One is under way at a time. */
#include "agent/leader/slurm_look.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/power_look.h"
#include "agent/leader/report.h"
#include "common/log.h"
#include "common/slurm_queue.h"
#include "lib/admission.h"
#include "lib/sleepers.h"
#include "lib/text.h"

#define BASE_OLD 10.0 /* seconds */

struct slurm_look {
    struct look look;
    struct job_info *base; /* Slurm's view of the base job; NULL until the first answer */
    double base_seen, base_check;
    struct sleepers *sleepers;
    bool looking, list, idle; /* idle: enough nodes were seen to be, at the last relax() */
    unsigned turn;            /* questions for one node */
    double drain_looked;      /* at all nodes */
    double notice_looked;     /* at all of which a member was told something */
    time_t nodes_as_of;       /* Slurm's list of nodes; 0: no list */
    unsigned nodes_members;   /* roster_arrivals() then */
};

struct look_work {
    struct leader *leader;
    uid_t uid;
    struct slurm_view view;
    slurm_look_done *done;
    time_t nodes_as_of;
    unsigned members;
    int questions;
    bool idle;
    bool limits_seen; /* of the pool's partition: */
    struct slurm_limits limits;
};

/* ---- in a thread ----------------------------------------------------------------------------- */

static void relax(struct look_work *work)
{
    const struct slurm_view *view = &work->view;
    struct error err = {""};
    int idle = view->relax.nodes;

    if (view->relax.partition != NULL) {
        idle = slurm_client_idle_nodes(view->relax.partition, true, &err);
        work->questions += 2;
    }
    work->idle = view->relax.partition != NULL && idle >= view->relax.nodes;
    if (idle >= view->relax.nodes) {
        slurm_client_set_time_min(view->relax.job, view->relax.minutes, &err);
        work->questions++;
    }
    if (err.text[0] != '\0')
        log_debug("extension job %u: %s", view->relax.job, err.text);
}

static void look_at_nodes(struct look_work *work)
{
    struct slurm_view *view = &work->view;
    struct error err = {""};
    size_t count = strings_count(view->nodes);
    bool changed = true;
    int rc;

    view->unwell = calloc(count + 1, sizeof(*view->unwell));
    if (view->unwell == NULL)
        return;
    if (view->due.nodes == LOOK_ALL_NODES) {
        rc = slurm_client_unwell_since(view->nodes, view->unwell, &work->nodes_as_of, &changed,
                                       &err);
        work->questions++;
    } else {
        rc = slurm_client_unwell(view->nodes, view->unwell, &err);
        work->questions += (int)count;
    }
    if (rc == 0 && changed)
        return;
    if (rc != 0)
        log_debug("Slurm: %s", err.text);
    /* A site may keep its nodes to itself (PrivateData): jobs are answered for all the same. */
    free(view->unwell);
    view->unwell = NULL;
}

static void look_at_pool(struct look_work *work)
{
    struct error err = {""};

    work->limits_seen = slurm_client_limits(work->view.pool->partition, &work->limits, &err) == 0;
    work->questions++;
    if (!work->limits_seen)
        log_debug("Slurm: %s", err.text);
}

/* Each by its number: what else the user has in the queue costs nothing. A job that Slurm does not
 * know is not in the list. */
static int look_at_jobs(struct look_work *work, struct error *err)
{
    struct slurm_view *view = &work->view;

    if (view->due.list) {
        work->questions++;
        return slurm_client_jobs(work->uid, &view->list, &view->count, err);
    }
    view->list = calloc((size_t)view->job_count + 1, sizeof(*view->list));
    if (view->list == NULL)
        return error_set(err, "out of memory");
    for (int i = 0; i < view->job_count; i++) {
        struct job_info *info = NULL;

        work->questions++;
        if (slurm_client_job(view->jobs[i], &info, err) != 0)
            return -1;
        if (info == NULL)
            continue;
        view->list[view->count++] = *info;
        free(info); /* what it points to is the list's now */
    }
    return 0;
}

/* What is known of the node counts more than Slurm's "NodeDown". */
static void explain_failures(struct look_work *work)
{
    for (int i = 0; i < work->view.count; i++) {
        struct job_info *info = &work->view.list[i];
        char reason[sizeof(info->reason)];

        if (info->nodes == NULL || !admission_is_marked(info->comment) ||
            strcmp(info->base_state, "NODE_FAIL") != 0)
            continue;
        work->questions += slurm_client_node_reason(info->nodes, reason, sizeof(reason));
        if (reason[0] != '\0')
            memcpy(info->reason, reason, sizeof(reason));
    }
}

static void look_work(void *arg)
{
    struct look_work *work = arg;
    struct slurm_view *view = &work->view;
    struct error err = {""};

    view->ok = look_at_jobs(work, &err) == 0;
    if (!view->ok)
        log_debug("Slurm: %s", err.text);
    if (view->ok)
        explain_failures(work);
    if (view->ok && view->relax.job != 0)
        relax(work);
    if (view->ok && view->pool != NULL)
        look_at_pool(work);
    if (view->ok && view->nodes != NULL)
        look_at_nodes(work);
    if (view->ok && view->power != NULL) {
        power_look_ask(view->power);
        work->questions += view->power->questions;
    }
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void free_look(struct look_work *work)
{
    job_info_free_list(work->view.list, work->view.count);
    strings_free(work->view.nodes);
    free(work->view.unwell);
    power_look_destroy(work->view.power);
    free(work);
}

/* The lists are kept. */
static void take_power(struct leader *leader, struct power_look *look)
{
    struct slurm_power *power = &look->power;

    sleepers_take(slurm_look_sleepers(leader, look->pool),
                  !look->known    ? SLEEPERS_UNKNOWN
                  : !power->saves ? SLEEPERS_NONE
                                  : SLEEPERS_LISTED,
                  look->known ? power->as_of : 0, power->up, power->asleep, look->err.text,
                  leader_now(leader));
    power->up = power->asleep = NULL;
}

static void look_done(void *arg)
{
    struct look_work *work = arg;
    struct leader *leader = work->leader;
    struct slurm_look *own = leader->slurm_look;
    const double now = leader_now(leader);

    own->looking = false;
    look_asked(&own->look, &work->view.due, now, work->questions, now - work->view.began,
               work->view.ok);
    if (work->view.relax.job != 0)
        own->idle = work->idle;
    if (work->limits_seen)
        job_pools_limits(leader, work->view.pool, &work->limits);
    if (work->view.ok && work->view.due.nodes == LOOK_ALL_NODES) {
        own->drain_looked = now;
        own->nodes_as_of = work->nodes_as_of;
        own->nodes_members = work->members;
    }
    if (work->view.ok && slurm_look_covers_notices(&work->view))
        own->notice_looked = now;
    if (work->view.ok && work->view.power != NULL)
        take_power(leader, work->view.power);
    work->done(leader, &work->view);
    free_look(work);
    leader_look_at_end(leader, 0);
}

void slurm_look_begin(struct leader *leader, const struct slurm_view *view, slurm_look_done *done)
{
    struct look_work *work = calloc(1, sizeof(*work));
    const struct slurm_look *own = leader->slurm_look;

    if (work == NULL) {
        strings_free(view->nodes);
        power_look_destroy(view->power);
        return;
    }
    *work = (struct look_work){.leader = leader, .uid = getuid(), .view = *view, .done = done};
    work->members = roster_arrivals(leader);
    if (own->nodes_members == work->members)
        work->nodes_as_of = own->nodes_as_of;
    if (slurm_ask(leader->loop, look_work, look_done, work) == 0)
        leader->slurm_look->looking = true;
    else
        free_look(work);
}

bool slurm_look_covers_notices(const struct slurm_view *view)
{
    return view->due.nodes == LOOK_NOTICED_NODES || view->due.nodes == LOOK_ALL_NODES;
}

bool slurm_look_busy(const struct leader *leader)
{
    return leader->slurm_look->looking;
}

void slurm_look_due(const struct leader *leader, struct look_input *in, struct look_output *out)
{
    in->now = leader_now(leader);
    in->node_count = roster_count(leader);
    in->drain_look = leader->options->conf->drain_look;
    in->drain_looked = leader->slurm_look->drain_looked;
    in->notice_looked = leader->slurm_look->notice_looked;
    in->list = in->list && leader->slurm_look->list;
    in->relax_idle = leader->slurm_look->idle;
    look_next(&leader->slurm_look->look, in, out);
}

void slurm_look_list(struct leader *leader)
{
    leader->slurm_look->list = true;
}

void slurm_look_listed(struct leader *leader)
{
    leader->slurm_look->list = false;
}

int slurm_look_turn(struct leader *leader, int count)
{
    return (int)(leader->slurm_look->turn++ % (unsigned)count);
}

/* ---- what Slurm has said --------------------------------------------------------------------- */

struct sleepers_pool *slurm_look_sleepers(const struct leader *leader, const struct pool *pool)
{
    return sleepers_of(leader->slurm_look->sleepers, (int)(pool - leader->options->conf->pools));
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

double slurm_look_deadline(const struct leader *leader)
{
    const struct job_info *base = slurm_look_base(leader);
    double own = leader->options->policy->deadline;

    return own > 0 || base == NULL ? own : (double)base->deadline;
}

double slurm_look_base_seen(const struct leader *leader)
{
    return leader->slurm_look->base_seen;
}

bool slurm_look_base_is_old(struct leader *leader)
{
    struct slurm_look *own = leader->slurm_look;

    if (leader_now(leader) - own->base_seen < BASE_OLD)
        return false;
    if (own->base_check <= own->base_seen)
        own->base_check = leader_now(leader);
    return true;
}

double slurm_look_base_check(const struct leader *leader)
{
    return leader->slurm_look->base_check;
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
    leader->slurm_look->base_seen = leader_now(leader);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct slurm_look *slurm_look_create(const struct leader_options *options)
{
    struct slurm_look *look = calloc(1, sizeof(*look));

    if (look == NULL)
        return NULL;
    look->sleepers = sleepers_create(options->conf->pool_count);
    if (look->sleepers == NULL) {
        free(look);
        return NULL;
    }
    look->look.seed = options->job * 31 + options->restarts;
    look->base_seen = look->drain_looked = look->notice_looked = LOOK_NEVER;
    /* Only a first leader whose job has never been there finds nothing of its own in the queue. */
    look->list = options->restarts > 0 || options->term > 0 || report_last_generation(options) > 0;
    return look;
}

void slurm_look_destroy(struct slurm_look *look)
{
    if (look == NULL)
        return;
    job_info_free(look->base);
    sleepers_destroy(look->sleepers);
    free(look);
}
