/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm says of the job's extensions and of the base job.
 *
 * A look at Slurm blocks for as long as slurmctld does, so it runs in libuv's threads. One look is
 * under way at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/leader/act.h"
#include "agent/leader/allocation.h"
#include "agent/leader/decide.h"
#include "agent/leader/end.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/submit.h"
#include "common/log.h"
#include "common/slurm_queue.h"
#include "lib/slurm_words.h"

#define POLL_BUSY    1.0 /* seconds between looks at Slurm while something is changing */
#define POLL_IDLE    5.0
#define LINGER_LIMIT 10.0 /* a released extension that still runs is cancelled */
/* Seconds before its time limit an extension leaves in order: Slurm's KillWait would be short. */
#define LEAVE_EARLY  30
#define SIGNAL_LIMIT 2     /* seconds for Slurm's signal to reach its agents, and us from there */
#define RELAX_AFTER  30.0  /* seconds in the queue after which a shorter time is accepted */
#define RELAX_STEP   10.0  /* … and then a still shorter one */
#define RELAX_FROM   2880  /* minutes, when there is no limit */
#define LIMIT_AGAIN  600.0 /* seconds between looks at the partition of the pool */

struct slurm_look {
    struct job_info *base; /* Slurm's view of the base job; NULL until the first answer */
    uint32_t pool_limit;   /* minutes that the pool's partition allows */
    double limit_seen;     /* when; 0: not yet */
    bool polling;          /* a look is under way */
    double last_poll;      /* 0: look at once */
};

/* ---- accepting less time --------------------------------------------------------------------- */

/* An extension that stays in the queue although nodes are free may be too long for the gap before
 * another job that is to have the nodes. Slurm may then start it for half the time, then for a
 * quarter, down to the pool's time_min. Not at once for time_min: backfill gives no more than has
 * been accepted. */
static uint32_t less_time(const struct leader *leader, const struct extension *ext)
{
    double now = leader_now(leader);
    double since = ext->begin > ext->since ? ext->begin : ext->since;
    uint32_t least, from = ext->time_min > 0 ? ext->time_min : ext->time_limit;

    if (ext->state != PLAN_PENDING || ext->pool == NULL || from == 0 || now - since < RELAX_AFTER ||
        (ext->relaxed > 0 && now - ext->relaxed < RELAX_STEP))
        return 0;
    least = ext->pool->time_min > 0 ? (uint32_t)ext->pool->time_min : 1;
    if (from > RELAX_FROM)
        from = RELAX_FROM;
    return from <= least ? 0 : from / 2 < least ? least : from / 2;
}

/* ---- Slurm's view ---------------------------------------------------------------------------- */

struct look {
    struct slurm_work work;
    struct leader *leader;
    uid_t uid;
    struct job_info *list;
    int count;
    bool ok;
    struct {
        uint32_t job; /* 0: none */
        uint32_t minutes;
        int nodes;
        const char *partition; /* NULL: they can be on nodes that others use as well */
    } relax;
    bool submitting_before; /* was something being submitted when the look began? */
    int submissions_before;
    double began;
    const char *pool_partition; /* NULL: its limit is known well enough */
    uint32_t pool_limit;
    char **nodes; /* of all members; NULL: not asked for */
    bool *unwell; /* of each; NULL: not known */
};

static void relax(struct look *look)
{
    struct error err = {""};
    int idle = look->relax.nodes;

    if (look->relax.partition != NULL)
        idle = slurm_client_idle_nodes(look->relax.partition, true, &err);
    if (idle >= look->relax.nodes)
        slurm_client_set_time_min(look->relax.job, look->relax.minutes, &err);
    if (err.text[0] != '\0')
        log_debug("extension job %u: %s", look->relax.job, err.text);
}

static void look_at_nodes(struct look *look)
{
    struct error err = {""};
    size_t count = 0;

    while (look->nodes[count] != NULL)
        count++;
    look->unwell = calloc(count + 1, sizeof(*look->unwell));
    if (look->unwell == NULL || slurm_client_unwell(look->nodes, look->unwell, &err) == 0)
        return;
    log_debug("Slurm: %s", err.text);
    free(look->unwell);
    look->unwell = NULL;
}

static void look_work(void *arg)
{
    struct look *look = arg;
    struct error err = {""};

    look->ok = slurm_client_jobs(look->uid, &look->list, &look->count, &err) == 0;
    if (!look->ok)
        log_debug("Slurm: %s", err.text);
    else if (look->relax.job != 0)
        relax(look);
    if (look->ok && look->pool_partition != NULL &&
        slurm_client_partition_limit(look->pool_partition, &look->pool_limit, &err) != 0)
        log_debug("Slurm: %s", err.text);
    if (look->ok && look->nodes != NULL)
        look_at_nodes(look);
}

static bool alive(const struct job_info *info)
{
    return info != NULL && info->state != JOB_KIND_UNKNOWN && info->state != JOB_KIND_ENDED &&
           info->state != JOB_KIND_ENDING;
}

static struct job_info *look_find(struct look *look, uint32_t job)
{
    for (int i = 0; i < look->count; i++)
        if (look->list[i].id == job)
            return &look->list[i];
    return NULL;
}

/* A pending extension excludes the nodes that its siblings had when it was submitted. Once a
 * sibling has left, that would keep the job from its nodes: ask anew. */
static void refresh_excludes(struct leader *leader, double left_since)
{
    if (leader->slurm_look->base == NULL || leader->slurm_look->base->exclusive)
        return;
    for (int i = 0; i < extensions_count(leader); i++)
        if (extensions_at(leader, i)->state == PLAN_PENDING &&
            extensions_at(leader, i)->since < left_since)
            extensions_cancel(leader, extensions_at(leader, i)->job, false,
                              "its excluded nodes have become free");
}

/* Why Slurm has told the extension to go, in words for the history. */
static void explain_leaving(struct leader *leader, const struct extension *ext,
                            const struct job_info *info)
{
    const char *why;

    if (ext->job != change_leaving_job(leader->change) || info == NULL)
        return;
    why = slurm_words_end(info->base_state, info->preempt_time != 0,
                          info->end > 0 && info->end <= time(NULL) + 1);
    if (why != NULL)
        act_reason(leader, "extension job %u %s", ext->job, why);
}

/* Its time limit, when the base goes on for longer. Of a preempted extension Slurm tells the end of
 * its grace time instead. */
static void note_times(struct leader *leader, struct extension *ext, const struct job_info *info)
{
    ext->time_limit = info->time_limit;
    ext->time_min = info->time_min;
    ext->leaves = 0;
    if (info->state == JOB_KIND_RUNNING && info->preempt_time == 0 &&
        info->time_limit != UINT32_MAX &&
        (leader->slurm_look->base == NULL ||
         leader->slurm_look->base->end >= info->end + 2 * LEAVE_EARLY))
        ext->leaves = leader_now(leader) + (double)(info->end - time(NULL)) - LEAVE_EARLY;
    /* As job_submit/elastic counts. */
    ext->excused = info->preempt_time != 0 ||
                   (ext->leaves > 0 && leader_now(leader) >= ext->leaves - PLAN_REPLACE);
}

/* Slurm is about to end it, whatever we need it for. */
static void cancel_preempted(struct leader *leader, uint32_t job, const char *reason)
{
    extensions_cancel(leader, job, true, reason);
    extensions_make_leave(leader, job, CHANGE_CALLED, reason);
}

/* Who must go without having been told (again). */
static void make_leave(struct leader *leader, struct extension *ext, const struct job_info *info)
{
    if (ext->state == PLAN_LEAVING)
        return;
    if (info->preempt_time != 0 && ext->state != PLAN_JOINED) {
        /* There may be nobody yet whom Slurm's signal could have reached. */
        extensions_cancel(leader, ext->job, true, "preempted before it could join");
    } else if (info->preempt_time != 0 && time(NULL) - info->preempt_time > SIGNAL_LIMIT) {
        act_reason(leader, "extension job %u preempted", ext->job);
        cancel_preempted(leader, ext->job, "preempted, and it has not said so");
    } else if (ext->state == PLAN_JOINED && ext->leaves > 0 && ext->leaves <= leader_now(leader)) {
        extensions_cancel(leader, ext->job, false, "near its time limit");
    }
}

static void growth_failed(struct leader *leader, const struct extension *ext,
                          const struct job_info *info)
{
    char text[256];
    bool why = info != NULL && info->reason[0] != '\0' && strcmp(info->reason, "None") != 0;

    snprintf(text, sizeof(text), "extension job %u ended before it could join (%s%s%s)", ext->job,
             info != NULL ? info->base_state : "unknown to Slurm", why ? ": " : "",
             why ? info->reason : "");
    log_info("job %u: %s", leader->options->job, text);
    allocation_growth_failed(leader, text);
}

/* What Slurm says of one extension. Returns false when it is over and forgotten. */
static bool update_extension(struct leader *leader, struct extension *ext, struct job_info *info)
{
    explain_leaving(leader, ext, info);
    if (alive(info)) {
        note_times(leader, ext, info);
        make_leave(leader, ext, info);
        snprintf(ext->reason, sizeof(ext->reason), "%s", info->reason);
        snprintf(ext->state_name, sizeof(ext->state_name), "%s", info->state_name);
        if (ext->state == PLAN_PENDING &&
            (info->state == JOB_KIND_RUNNING || info->state == JOB_KIND_STARTING))
            extensions_set_state(leader, ext, PLAN_STARTING);
        if (ext->state == PLAN_STARTING && info->num_nodes > 0 && info->num_nodes != ext->nodes &&
            info->state == JOB_KIND_RUNNING &&
            extensions_members(leader, ext->job) <= info->num_nodes) {
            ext->nodes = info->num_nodes;
            if (extensions_members(leader, ext->job) == ext->nodes)
                extensions_set_state(leader, ext, PLAN_JOINED);
        }
        if (ext->state == PLAN_LEAVING && extensions_members(leader, ext->job) == 0 &&
            leader_now(leader) - ext->since > LINGER_LIMIT) {
            submit_cancel(leader, &ext->job, 1, false);
            ext->since = leader_now(leader);
        }
        return true;
    }
    if (extensions_members(leader, ext->job) > 0)
        return true; /* its agents are about to notice */
    if (ext->state == PLAN_PENDING || ext->state == PLAN_STARTING) {
        growth_failed(leader, ext, info);
        decide_setback(leader);
    }
    return false;
}

/* At the first look the leader has submitted nothing yet: what there is comes from an earlier
 * incarnation, or from an earlier elasticrun of this job that was killed. A leader that follows
 * another one keeps running extensions. Those that still wait would look for the other leader. */
static void cancel_leftovers(struct leader *leader, struct look *look)
{
    uint32_t *jobs = calloc((size_t)look->count + 1, sizeof(*jobs));
    char marker[64], own[96];
    int count = 0;

    snprintf(marker, sizeof(marker), "elastic-extension-of=%u.", leader->options->job);
    snprintf(own, sizeof(own), "%s%u", marker, leader->options->restarts);
    for (int i = 0; jobs != NULL && i < look->count; i++)
        if (alive(&look->list[i]) && look->list[i].comment != NULL &&
            strncmp(look->list[i].comment, marker, strlen(marker)) == 0 &&
            (leader->options->term == 0 || look->list[i].state == JOB_KIND_PENDING ||
             strcmp(look->list[i].comment, own) != 0))
            jobs[count++] = look->list[i].id;
    if (count > 0)
        submit_cancel(leader, jobs, count, false);
    free(jobs);
}

static void adopt(struct leader *leader, struct look *look)
{
    char marker[64];

    snprintf(marker, sizeof(marker), "elastic-extension-of=%u.%u", leader->options->job,
             leader->options->restarts);
    for (int i = 0; i < look->count; i++) {
        struct job_info *info = &look->list[i];
        struct extension *ext;

        if (!alive(info) || info->comment == NULL || strcmp(info->comment, marker) != 0 ||
            extensions_find(leader, info->id) != NULL)
            continue;
        if (leader->options->term > 0 && info->state == JOB_KIND_PENDING) {
            submit_cancel(leader, &info->id, 1,
                          false); /* it would look for the leader before this one */
            continue;
        }
        ext = extensions_add(leader, info->id, info->num_nodes,
                             info->state == JOB_KIND_PENDING ? PLAN_PENDING : PLAN_STARTING);
        if (ext != NULL)
            ext->pool = extensions_pool(leader);
    }
}

static void look_done(void *arg)
{
    struct look *look = arg;
    struct leader *leader = look->leader;
    double left_since = -1;

    leader->slurm_look->polling = false;
    leader->slurm_look->last_poll = leader_now(leader);
    if (look->ok && !leader_has_ended(leader)) {
        struct job_info *base = look_find(look, leader->options->job);

        if (look->pool_partition != NULL)
            leader->slurm_look->pool_limit = look->pool_limit;

        for (int i = extensions_count(leader) - 1; i >= 0; i--) {
            struct extension *ext = extensions_at(leader, i);

            if (ext->job == 0 ||
                (look_find(look, ext->job) == NULL && ext->since > look->began - 2 * POLL_BUSY) ||
                update_extension(leader, ext, look_find(look, ext->job)))
                continue;
            if (ext->state == PLAN_LEAVING && ext->since > left_since)
                left_since = ext->since;
            extensions_drop(leader, ext);
        }
        if (left_since >= 0)
            refresh_excludes(leader, left_since);
        if (leader->slurm_look->base == NULL)
            cancel_leftovers(leader, look);
        else if (!look->submitting_before && !submit_submitting(leader) &&
                 look->submissions_before == submit_count(leader))
            adopt(leader, look);
        if (base != NULL) {
            struct job_info *copy = calloc(1, sizeof(*copy));

            if (copy != NULL) {
                /* Take over the entry: the list frees an empty one. */
                *copy = *base;
                memset(base, 0, sizeof(*base));
                job_info_free(leader->slurm_look->base);
                leader->slurm_look->base = copy;
            }
        }
        for (int i = 0; look->unwell != NULL && look->nodes[i] != NULL; i++)
            exclude_unwell(leader, look->nodes[i], look->unwell[i]);
        decide_later(leader, 0);
    }
    job_info_free_list(look->list, look->count);
    strings_free(look->nodes);
    free(look->unwell);
    free(look);
    if (leader_has_ended(leader))
        end_look(leader);
}

static bool changing(const struct leader *leader)
{
    double now = leader_now(leader);

    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        if (ext->state == PLAN_STARTING || ext->state == PLAN_LEAVING ||
            (ext->state == PLAN_PENDING && now - ext->since < 30))
            return true;
    }
    return leader->slurm_look->base == NULL;
}

static void choose_relaxed(struct leader *leader, struct look *look)
{
    for (int i = 0; i < extensions_count(leader); i++) {
        struct extension *ext = extensions_at(leader, i);

        look->relax.minutes = less_time(leader, ext);
        if (look->relax.minutes == 0)
            continue;
        ext->relaxed = look->began;
        look->relax.job = ext->job;
        look->relax.nodes = ext->nodes;
        if (leader->slurm_look->base != NULL && leader->slurm_look->base->exclusive)
            look->relax.partition = ext->pool->partition;
        return;
    }
}

static char **member_nodes(const struct leader *leader)
{
    char **nodes = calloc((size_t)roster_count(leader) + 1, sizeof(*nodes));

    for (int i = 0; nodes != NULL && i < roster_count(leader); i++)
        if ((nodes[i] = strdup(roster_at(leader, i)->node)) == NULL)
            break;
    return nodes;
}

static void look_at_pool(struct leader *leader, struct look *look)
{
    const struct pool *pool = extensions_pool(leader);
    struct slurm_look *own = leader->slurm_look;

    look->pool_limit = own->pool_limit;
    if (pool == NULL || (own->limit_seen > 0 && look->began - own->limit_seen < LIMIT_AGAIN))
        return;
    own->limit_seen = look->began;
    look->pool_partition = pool->partition;
}

void slurm_look_poll(struct leader *leader)
{
    struct look *look;

    if (leader->slurm_look->polling || leader_has_ended(leader) ||
        leader_now(leader) - leader->slurm_look->last_poll <
            (changing(leader) ? POLL_BUSY : POLL_IDLE) - 0.1)
        return;
    look = calloc(1, sizeof(*look));
    if (look == NULL)
        return;
    look->work = (struct slurm_work){.work = look_work, .done = look_done, .arg = look};
    look->leader = leader;
    look->uid = getuid();
    look->submitting_before = submit_submitting(leader);
    look->submissions_before = submit_count(leader);
    look->began = leader_now(leader);
    choose_relaxed(leader, look);
    look_at_pool(leader, look);
    look->nodes = member_nodes(leader);
    leader->slurm_look->polling = true;
    slurm_queue(leader->loop, &look->work);
}

void slurm_look_soon(struct leader *leader)
{
    leader->slurm_look->last_poll = 0;
}

uint32_t slurm_look_pool_limit(const struct leader *leader)
{
    return leader->slurm_look->pool_limit;
}

bool slurm_look_busy(const struct leader *leader)
{
    return leader->slurm_look->polling;
}

const struct job_info *slurm_look_base(const struct leader *leader)
{
    return leader->slurm_look->base;
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
