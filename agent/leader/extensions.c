/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job's extensions: which there are, and when they go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/roster.h"
#include "agent/leader/scancel.h"
#include "common/log.h"

struct extensions {
    struct extension *list;
    int count;
    char refusal[256]; /* what sbatch has said last; "": nothing, or it went well */
    char failure[256]; /* of the latest extension, before it could join; "": it could */
};

int extensions_count(const struct leader *leader)
{
    return leader->extensions->count;
}

struct extension *extensions_at(const struct leader *leader, int i)
{
    return &leader->extensions->list[i];
}

/* ---- the list -------------------------------------------------------------------------------- */

struct extension *extensions_find(struct leader *leader, uint32_t job)
{
    for (int i = 0; i < leader->extensions->count; i++)
        if (leader->extensions->list[i].job == job)
            return &leader->extensions->list[i];
    return NULL;
}

struct extension *extensions_add(struct leader *leader, uint32_t job, int nodes,
                                 enum plan_extension_state state)
{
    struct extensions *own = leader->extensions;
    struct extension *grown = realloc(own->list, ((size_t)own->count + 1) * sizeof(*grown));

    if (grown == NULL)
        return NULL;
    own->list = grown;
    grown += own->count++;
    memset(grown, 0, sizeof(*grown));
    grown->job = job;
    grown->role = -1;
    grown->nodes = nodes;
    grown->state = state;
    grown->asked = grown->since = grown->stirred = leader_now(leader);
    grown->seen = LOOK_NEVER;
    return grown;
}

void extensions_drop(struct leader *leader, struct extension *ext)
{
    struct extension *end = leader->extensions->list + --leader->extensions->count;

    strings_free(ext->asleep);
    memmove(ext, ext + 1, (size_t)(end - ext) * sizeof(*ext));
}

static void joined(struct leader *leader, const struct extension *ext)
{
    if (ext->started > 0)
        job_pools_joined(leader, ext->pool, leader_now(leader) - ext->started);
    extensions_set_refusal(leader, ""); /* whatever sbatch has said of it */
    leader->extensions->failure[0] = '\0';
}

void extensions_set_state(struct leader *leader, struct extension *ext,
                          enum plan_extension_state state)
{
    if (ext->state == state)
        return;
    ext->state = state;
    ext->since = ext->stirred = leader_now(leader);
    if (ext->started == 0 && (state == PLAN_BOOTING || state == PLAN_STARTING)) {
        ext->started = ext->since;
        job_pools_has_nodes(leader, ext->pool);
    }
    if (state == PLAN_JOINED)
        joined(leader, ext);
}

void extensions_set_refusal(struct leader *leader, const char *why)
{
    snprintf(leader->extensions->refusal, sizeof(leader->extensions->refusal), "%s", why);
}

const char *extensions_refusal(const struct leader *leader)
{
    return leader->extensions->refusal;
}

void extensions_failed(struct leader *leader, const struct pool *pool, const char *why)
{
    snprintf(leader->extensions->failure, sizeof(leader->extensions->failure), "%s", why);
    job_pools_failed(leader, pool, why);
}

void extensions_never_joined(struct leader *leader, const struct extension *ext)
{
    char why[96];

    snprintf(why, sizeof(why), "the agents of extension job %u have not joined in time", ext->job);
    extensions_failed(leader, ext->pool, why);
}

const char *extensions_failure(const struct leader *leader)
{
    return leader->extensions->failure[0] != '\0' ? leader->extensions->failure : NULL;
}

double extensions_replace_at(const struct leader *leader, const struct extension *ext)
{
    return plan_replace_at(ext->since, ext->leaves, job_pools_lead(leader, ext->pool));
}

/* Is it about to leave because of its time limit? */
static bool is_near_limit(struct leader *leader, uint32_t job)
{
    struct extension *ext = extensions_find(leader, job);

    return ext != NULL && ext->state == PLAN_JOINED && ext->leaves > 0 &&
           leader_now(leader) >= extensions_replace_at(leader, ext);
}

bool extensions_excused(const struct leader *leader, const struct extension *ext)
{
    return ext->preempted > 0 ||
           (ext->leaves > 0 && leader_now(leader) >= ext->leaves - PLAN_REPLACE);
}

bool extensions_to_go(struct leader *leader, uint32_t job)
{
    struct extension *ext = extensions_find(leader, job);

    return is_near_limit(leader, job) || (ext != NULL && ext->unwanted);
}

bool extensions_time_is_over(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        const struct extension *ext = extensions_find(leader, roster_at(leader, i)->part->job);

        if (roster_at(leader, i)->part->place >= 0 && ext != NULL && ext->leaves > 0 &&
            leader_now(leader) >= ext->leaves)
            return true;
    }
    return false;
}

int extensions_members(const struct leader *leader, uint32_t job)
{
    int count = 0;

    for (int i = 0; i < roster_count(leader); i++)
        count += roster_at(leader, i)->part->job == job && roster_at(leader, i)->link != NULL;
    return count;
}

void extensions_count_nodes(struct leader *leader, struct extension *ext, int nodes)
{
    ext->nodes = nodes;
    if (ext->state == PLAN_STARTING && nodes > 0 && extensions_members(leader, ext->job) == nodes)
        extensions_set_state(leader, ext, PLAN_JOINED);
}

void extensions_joined(struct leader *leader, struct leader_member *member, int role)
{
    struct extension *ext = extensions_find(leader, member->part->job);
    const struct extension *submitted;

    if (ext == NULL) {
        /* The answer of sbatch has not reached the leader: the extension's first agent was faster,
         * or slurmctld went away in between. */
        ext = extensions_add(leader, member->part->job, 1, PLAN_STARTING);
        if (ext == NULL)
            return;
        submitted = extensions_find(leader, 0);
        ext->pool = submitted != NULL ? submitted->pool : NULL;
        ext->nodes = role >= 0 ? 0 : 1;
    }
    ext->role = role;
    ext->stirred = leader_now(leader);
    if (ext->state < PLAN_STARTING)
        extensions_set_state(leader, ext, PLAN_STARTING);
    if (ext->nodes > 0 && extensions_members(leader, member->part->job) > ext->nodes)
        ext->nodes = extensions_members(leader, member->part->job);
    extensions_count_nodes(leader, ext, ext->nodes);
}

void extensions_member_gone(struct leader *leader, struct leader_member *member)
{
    struct extension *ext = extensions_find(leader, member->part->job);

    if (ext == NULL || member->part->base)
        return;
    ext->stirred = leader_now(leader);
    /* When an extension leaves, Slurm takes the whole job. When one of its nodes is lost the others
     * stay (the job is submitted with --no-kill). If the leader does not want that node, the others
     * are to go, too, as soon as they can: Slurm has none of them back before. */
    if (change_is_left(member->part) || ext->nodes <= 1) {
        /* Slurm lets no other in its place as long as it takes this one for running. */
        if (!change_is_left(member->part) && !member->part->released && ext->state != PLAN_LEAVING)
            scancel_jobs(leader, &ext->job, 1, false);
        extensions_set_state(leader, ext, PLAN_LEAVING);
    } else if (member->part->released && ext->state == PLAN_STARTING) {
        extensions_cancel(leader, ext->job, false, "one of its nodes cannot be used");
    } else if (ext->state != PLAN_LEAVING) {
        ext->unwanted = ext->unwanted || member->part->released;
        extensions_count_nodes(leader, ext, ext->nodes - 1);
    }
}

/* ---- giving back ----------------------------------------------------------------------------- */

void extensions_cancel(struct leader *leader, uint32_t job, bool failed, const char *reason)
{
    struct extension *ext = extensions_find(leader, job);

    if (ext == NULL || ext->state == PLAN_LEAVING)
        return;
    log_debug("extension job %u: %s", job, reason);
    if (is_near_limit(leader, job) && change_next_reason(leader->change)[0] == '\0')
        post_reason(leader, "extension job %u is near its time limit", job);
    if (failed)
        planning_taken_back(leader, ext->asked);
    if (ext->state != PLAN_JOINED)
        scancel_jobs(leader, &job, 1, false);
    if (ext->state == PLAN_PENDING)
        planning_note_increments(leader, 0);
    extensions_set_state(leader, ext, PLAN_LEAVING);
    /* Members in the world leave when the world has been changed, those that still make its last
     * step when they have made it, the others now. */
    extensions_make_leave(leader, job, CHANGE_UNNEEDED, reason);
}

void extensions_make_leave(struct leader *leader, uint32_t job, enum change_notice notice,
                           const char *reason)
{
    const struct extension *ext = extensions_find(leader, job);
    double grace = ext != NULL && ext->pool != NULL ? ext->pool->grace : 0;

    /* From the last, since members that are lost meanwhile are taken out of the list. */
    for (int i = roster_count(leader) - 1; i >= 0; i--) {
        const struct leader_member *m = roster_at(leader, i);

        if (m == NULL || m->part->job != job || m->part->base)
            continue;
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_LEAVING,
                                               .member = m->id,
                                               .notice = notice,
                                               .grace = grace,
                                               .text = reason});
    }
    planning_later(leader, 0);
}

void extensions_cancel_all(struct leader *leader)
{
    uint32_t *jobs = calloc((size_t)leader->extensions->count + 1, sizeof(*jobs));
    int count = 0;

    /* Extensions that have joined end by themselves, with a good state in the accounting; the
     * epilog looks after stragglers. */
    for (int i = 0; jobs != NULL && i < leader->extensions->count; i++)
        if (leader->extensions->list[i].job != 0 &&
            extensions_members(leader, leader->extensions->list[i].job) == 0)
            jobs[count++] = leader->extensions->list[i].job;
    scancel_jobs(leader, jobs, jobs != NULL ? count : 0, true);
    free(jobs);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct extensions *extensions_create(void)
{
    return calloc(1, sizeof(struct extensions));
}

void extensions_destroy(struct extensions *extensions)
{
    if (extensions == NULL)
        return;
    for (int i = 0; i < extensions->count; i++)
        strings_free(extensions->list[i].asleep);
    free(extensions->list);
    free(extensions);
}
