/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What srun does not hear by itself: that a node of the base is lost (doc/admin/faults.md, "What
 * srun and Slurm make of it").
 *
 * srun would wait for the node's tasks when the training is over. If the node is back before Slurm
 * calls it down, srun would find the step missing there, and end it everywhere. So
 * elastic-node-fail tells srun of the node, as Slurm would later. Where that does not work the
 * leader ends the job in Slurm itself when all is over (end.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/srun_lost.h"
#include "agent/leader/srun_notify.h"
#include "agent/paths.h"
#include "common/log.h"
#include "lib/json_get.h"

#define LOST_AFTER 10.0 /* seconds: an agent that was killed is started again before */
/* Seconds beyond its silence: who crashes can be back soon, and srun must not hear that first. */
#define SILENT_AFTER 2.0
#define RETRY        10.0 /* seconds until it is tried again */
#define TRIES_MAX    6

struct srun_node {
    char *name;
    double absent;  /* since when; 0: it is there */
    bool silent;    /* nothing has closed its link: it has crashed, or is cut off */
    bool unwatched; /* its slurmstepd is gone */
    bool due, told;
};

struct srun {
    struct srun_node *nodes; /* of the base's step */
    int count;
    bool spoiled; /* its status is no more what the training's is */
    bool sending;
    int failures;
    double retry_at;
    uv_process_t process;
    char job[16], *list;
};

struct srun *srun_create(const struct leader_options *options)
{
    const char *list = getenv("SLURM_STEP_NODELIST");
    struct srun *srun = calloc(1, sizeof(*srun));
    char **names;

    if (srun == NULL)
        return NULL;
    srun->nodes = calloc((size_t)options->base_nodes, sizeof(*srun->nodes));
    if (srun->nodes == NULL) {
        free(srun);
        return NULL;
    }
    srun->count = options->base_nodes;
    names = list != NULL ? slurm_client_expand(list) : NULL;
    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        if (i < srun->count)
            srun->nodes[i].name = names[i];
        else
            free(names[i]);
    }
    free(names);
    return srun;
}

void srun_destroy(struct srun *srun)
{
    if (srun == NULL)
        return;
    for (int i = 0; i < srun->count; i++)
        free(srun->nodes[i].name);
    free(srun->nodes);
    free(srun->list);
    free(srun);
}

static struct srun_node *node_of(struct leader *leader, const struct leader_member *m)
{
    return m->part->base && m->part->nodeid < leader->srun->count
               ? &leader->srun->nodes[m->part->nodeid]
               : NULL;
}

/* ---- telling it ------------------------------------------------------------------------------ */

/* Does it read what that node writes? */
static bool reads(const struct leader *leader, const struct leader_member *m)
{
    const struct srun *srun = leader->srun;

    return !srun_is_lost(leader) &&
           (!m->part->base || m->part->nodeid >= srun->count ||
            (!srun->nodes[m->part->nodeid].told && !srun->nodes[m->part->nodeid].unwatched));
}

void srun_forward(struct leader *leader, struct leader_member *m)
{
    if (m->part->base && !reads(leader, m))
        leader_send(m, leader_message("forward", -1));
}

static void forward_all(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        srun_forward(leader, roster_at(leader, i));
}

static void on_closed(uv_handle_t *handle)
{
    struct leader *leader = handle->data;

    leader->srun->sending = false;
    free(leader->srun->list);
    leader->srun->list = NULL;
}

static void on_ended(uv_process_t *process, int64_t status, int number)
{
    struct leader *leader = process->data;
    struct srun *srun = leader->srun;
    bool told = status == 0 && number == 0;

    for (int i = 0; i < srun->count; i++)
        srun->nodes[i].told = srun->nodes[i].told || (told && srun->nodes[i].due);
    if (told) {
        log_debug("job %u: srun expects nothing from %s any more", leader->options->job,
                  srun->list);
        forward_all(leader);
    } else {
        srun->failures++;
        srun->retry_at = leader_now(leader) + RETRY;
        /* Perhaps it has ended, and the batch script lives. */
        if (!srun_is_looked_for(leader) && !leader_has_ended(leader))
            srun_lost_look(leader, false);
    }
    uv_close((uv_handle_t *)process, on_closed);
}

/* The names of those that are due and not told, separated by commas. NULL: there are none. */
static char *list_due(const struct srun *srun)
{
    size_t size = 0;
    char *list;

    for (int i = 0; i < srun->count; i++)
        if (srun->nodes[i].due && !srun->nodes[i].told && srun->nodes[i].name != NULL)
            size += strlen(srun->nodes[i].name) + 1;
    if (size == 0 || (list = calloc(1, size)) == NULL)
        return NULL;
    for (int i = 0; i < srun->count; i++) {
        if (!srun->nodes[i].due || srun->nodes[i].told || srun->nodes[i].name == NULL)
            continue;
        if (list[0] != '\0')
            strcat(list, ",");
        strcat(list, srun->nodes[i].name);
    }
    return list;
}

static void tell(struct leader *leader)
{
    struct srun *srun = leader->srun;
    char *args[] = {(char *)paths_of(PATHS_NODE_FAIL),
                    getenv("SLURM_SRUN_COMM_HOST"),
                    getenv("SLURM_SRUN_COMM_PORT"),
                    srun->job,
                    getenv("SLURM_STEP_ID"),
                    NULL,
                    NULL};
    uv_stdio_container_t files[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = srun->failures == 0 ? UV_INHERIT_FD : UV_IGNORE, .data.fd = STDERR_FILENO},
    };
    uv_process_options_t options = {
        .file = args[0], .args = args, .exit_cb = on_ended, .stdio = files, .stdio_count = 3};
    int rc;

    if (srun->sending || args[1] == NULL || args[2] == NULL || args[4] == NULL ||
        srun->failures >= TRIES_MAX || leader_now(leader) < srun->retry_at ||
        (srun->list = args[5] = list_due(srun)) == NULL)
        return;
    snprintf(srun->job, sizeof(srun->job), "%u", leader->options->job);
    srun->sending = true;
    srun->process.data = leader;
    rc = uv_spawn(leader->loop, &srun->process, &options);
    if (rc == 0)
        return;
    log_debug("%s: %s", args[0], uv_strerror(rc));
    srun->failures = TRIES_MAX; /* it is only there where Slurm's source was when this was built */
    uv_close((uv_handle_t *)&srun->process, on_closed);
}

/* ---- what it does not hear ------------------------------------------------------------------- */

static void look_for_members(struct leader *leader, double now)
{
    struct srun *srun = leader->srun;

    for (int i = 0; i < srun->count; i++)
        if (srun->nodes[i].absent == 0)
            srun->nodes[i].absent = now;
    for (int i = 0; i < roster_count(leader); i++) {
        struct srun_node *node = node_of(leader, roster_at(leader, i));

        if (node == NULL || roster_at(leader, i)->link == NULL)
            continue;
        node->absent = 0;
        node->silent = false;
        if (node->name == NULL)
            node->name = strdup(roster_at(leader, i)->part->node);
    }
}

static bool watches(const struct leader *leader)
{
    return getenv("SLURM_STEP_ID") != NULL && !lease_deposed(leader) &&
           (change_has_begun(leader->change) || lease_term(leader) > 0) &&
           change_phase(leader->change) != CHANGE_TAKING_OVER;
}

static bool is_due(const struct srun_node *node, double now, double patience)
{
    if (node->silent && patience > SILENT_AFTER)
        patience = SILENT_AFTER;
    return node->unwatched || (node->absent > 0 && now - node->absent >= patience);
}

static void look(struct leader *leader, double patience)
{
    double now = leader_now(leader);

    look_for_members(leader, now);
    for (int i = 0; i < leader->srun->count; i++) {
        struct srun_node *node = &leader->srun->nodes[i];

        /* Where there is no srun to be told, this is for later: a node that was only cut off may be
         * back by then. */
        node->due = (node->due && !srun_is_lost(leader)) || is_due(node, now, patience);
    }
    if (!srun_is_lost(leader))
        tell(leader);
}

void srun_watch(struct leader *leader)
{
    if (!leader_has_ended(leader) && watches(leader) && lease_may_act(leader))
        look(leader, LOST_AFTER);
}

void srun_silent(struct leader *leader, const struct leader_member *m)
{
    struct srun_node *node = node_of(leader, m);

    if (node == NULL)
        return;
    node->silent = true;
    node->absent = leader_now(leader);
}

void srun_unwatched(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct srun_node *node = node_of(leader, m);

    if (node == NULL)
        return;
    node->unwatched = true;
    leader->srun->spoiled = leader->srun->spoiled || json_get_bool(msg, "spoiled", false);
    if (m->part->nodeid == leader->options->nodeid && !srun_is_lost(leader))
        srun_lost_look(leader, true);
    forward_all(leader);
}

/* ---- the end --------------------------------------------------------------------------------- */

void srun_end(struct leader *leader)
{
    if (watches(leader) && !requeue_wanted(leader)) {
        leader->srun->retry_at = 0;
        look(leader, 0);
    }
}

void srun_looked(struct leader *leader, bool there)
{
    if (!there && !leader_has_ended(leader))
        forward_all(leader);
    /* A last look, when all was over, may have found an srun that was thought to be lost. */
    if (leader_has_ended(leader) && !srun_is_lost(leader) && watches(leader) &&
        !requeue_wanted(leader))
        tell(leader);
}

bool srun_busy(const struct leader *leader)
{
    return leader->srun->sending;
}

bool srun_misleads(const struct leader *leader)
{
    const struct srun *srun = leader->srun;
    bool fails = srun->spoiled, waits = false;

    for (int i = 0; i < srun->count; i++) {
        fails = fails || (srun->nodes[i].told && slurm_client_srun_fails_with_node());
        waits = waits || (srun->nodes[i].unwatched && !srun->nodes[i].told);
    }
    return waits || (fails && leader->exit.code == 0);
}
