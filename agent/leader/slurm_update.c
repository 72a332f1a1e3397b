/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When Slurm is looked at, and what follows from what it says (slurm_update.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/no_wake.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "agent/leader/scancel.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/slurm_update.h"
#include "agent/leader/submit.h"
#include "common/log.h"
#include "lib/admission.h"
#include "lib/roles.h"
#include "lib/slurm_words.h"

#define LISTED_LATER 2.0  /* seconds in which a job that is submitted appears in Slurm's list */
#define LINGER_LIMIT 10.0 /* a released extension that still runs is cancelled */
/* Seconds before its time limit an extension leaves in order: Slurm's KillWait would be short. */
#define LEAVE_EARLY  30
#define SIGNAL_LIMIT 2    /* seconds for Slurm's signal to reach its agents, and us from there */
#define RELAX_AFTER  30.0 /* seconds in the queue after which a shorter time is accepted */
#define RELAX_FROM   2880 /* minutes, when there is no limit */
#define CHECK_BEFORE 20.0 /* seconds before a time limit matters it is looked at again */
#define CHECK_LAST   5.0
#define BOOT_LATE    15.0 /* seconds in which Slurm sees that a node has not powered up in time */
#define BOOT_SEEN    2.0  /* … in which we have seen that it powers up */
#define BOOT_CHECK   0.7  /* … and between two questions for it then */

/* ---- accepting less time --------------------------------------------------------------------- */

/* An extension that stays in the queue although nodes are free may be too long for the gap before
 * another job that is to have the nodes. Slurm may then start it for half the time, then for a
 * quarter, down to the pool's time_min. Not at once for time_min: backfill gives no more than has
 * been accepted. */
static uint32_t less_time(const struct extension *ext)
{
    uint32_t least, from = ext->time_min > 0 ? ext->time_min : ext->time_limit;

    if (ext->state != PLAN_PENDING || ext->pool == NULL || from == 0)
        return 0;
    least = ext->pool->time_min > 0 ? (uint32_t)ext->pool->time_min : 1;
    if (from > RELAX_FROM)
        from = RELAX_FROM;
    return from <= least ? 0 : from / 2 < least ? least : from / 2;
}

/* ---- one extension --------------------------------------------------------------------------- */

static bool alive(const struct job_info *info)
{
    return info != NULL && info->state != JOB_KIND_UNKNOWN && info->state != JOB_KIND_ENDED &&
           info->state != JOB_KIND_ENDING;
}

/* A pending extension excludes the nodes that its siblings had when it was submitted. Once a
 * sibling has left, that would keep the job from its nodes: ask anew. */
static void refresh_excludes(struct leader *leader, double left_since)
{
    if (slurm_look_base(leader) == NULL || slurm_look_base(leader)->exclusive)
        return;
    for (int i = 0; i < extensions_count(leader); i++)
        if (extensions_at(leader, i)->state == PLAN_PENDING &&
            extensions_at(leader, i)->role < 0 && /* others may come to the same nodes */
            extensions_at(leader, i)->since < left_since)
            extensions_cancel(leader, extensions_at(leader, i)->job, false,
                              "its excluded nodes have become free");
}

/* Why Slurm has told the extension to go, in words for the history. */
static void explain_leaving(struct leader *leader, const struct extension *ext,
                            const struct job_info *info)
{
    const char *why;

    if (info == NULL)
        return;
    why = slurm_words_end(info->base_state, info->preempt_time != 0,
                          info->end > 0 && info->end <= time(NULL) + 1);
    if (why != NULL && ext->job == change_leaving_job(leader->change))
        post_reason(leader, "extension job %u %s", ext->job, why);
    else if (why != NULL)
        report_left(leader, ext->job, why);
}

/* Seconds before its time limit at which it is to go: replicas are drained first. */
static double leave_early(const struct leader *leader, const struct extension *ext)
{
    return LEAVE_EARLY +
           (ext->role >= 0 ? leader->options->roles->list[ext->role].drain.within : 0);
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
        (slurm_look_base(leader) == NULL ||
         slurm_look_base(leader)->end >= info->end + 2 * LEAVE_EARLY))
        ext->leaves = leader_now(leader) + (double)(info->end - time(NULL)) -
                      leave_early(leader, ext);
    if (info->preempt_time == 0)
        ext->preempted = 0;
    else if (ext->preempted <= 0)
        ext->preempted = leader_now(leader);
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
        post_reason(leader, "extension job %u preempted", ext->job);
        cancel_preempted(leader, ext->job, "preempted, and it has not said so");
    } else if (ext->state == PLAN_JOINED && ext->leaves > 0 && ext->leaves <= leader_now(leader)) {
        extensions_cancel(leader, ext->job, false, "near its time limit");
    }
}

/* Slurm could not launch it on its nodes, and has put it back into the queue, although it is not to
 * be requeued. It is COMPLETING until these nodes answer or are DOWN, which may take minutes. */
static bool was_put_back(const struct job_info *info)
{
    return info != NULL && info->state == JOB_KIND_ENDING &&
           strcmp(info->base_state, "PENDING") == 0;
}

static bool lost_its_nodes(const struct job_info *info)
{
    return info != NULL && (strcmp(info->base_state, "NODE_FAIL") == 0 || was_put_back(info));
}

/* Would the next one end as this one? Not if somebody has taken its nodes or cancelled it. The job
 * may still be completing, as its state name says then. */
static bool cannot_start(const struct job_info *info)
{
    return info == NULL || (info->preempt_time == 0 && strcmp(info->base_state, "PREEMPTED") != 0 &&
                            strcmp(info->base_state, "CANCELLED") != 0 && !lost_its_nodes(info));
}

/* The cloud of a pool may have no room for a while. Where nodes fail, another pool is asked at
 * once. */
static bool nodes_failed(struct leader *leader, const struct extension *ext,
                         const struct job_info *info)
{
    return lost_its_nodes(info) && ext->pool != NULL &&
           (ext->pool->wake || job_pools_has_other(leader, ext->pool));
}

/* It has ended before it could join. */
static void growth_failed(struct leader *leader, const struct extension *ext,
                          const struct job_info *info)
{
    char text[256];
    bool back = was_put_back(info);
    bool why = info != NULL && !back && info->reason[0] != '\0' &&
               strcmp(info->reason, "None") != 0;

    snprintf(text, sizeof(text), "extension job %u ended before it could join (%s%s%s)", ext->job,
             info == NULL ? "unknown to Slurm"
             : back       ? "Slurm could not start it on its nodes"
                          : info->base_state,
             why ? ": " : "", why ? info->reason : "");
    log_info("job %u: %s", leader->options->job, text);
    allocation_growth_failed(leader, text);
    if (cannot_start(info) || nodes_failed(leader, ext, info))
        extensions_failed(leader, ext->pool, text);
    else
        planning_taken_back(leader, ext->asked);
}

/* How far Slurm is with its nodes. Where they do not power up, Slurm may put the job back into the
 * queue (requeue_on_resume_failure). */
static void note_start(struct leader *leader, struct extension *ext, const struct job_info *info)
{
    if (ext->state > PLAN_BOOTING)
        return;
    if (ext->state == PLAN_BOOTING && info->state == JOB_KIND_PENDING) {
        ext->started = 0;
        job_pools_failed(leader, ext->pool, "its nodes did not power up");
    }
    extensions_set_state(leader, ext,
                         info->state == JOB_KIND_PENDING   ? PLAN_PENDING
                         : info->state == JOB_KIND_BOOTING ? PLAN_BOOTING
                                                           : PLAN_STARTING);
}

/* What stops it may stop it for long. Another pool is asked, if there is one. */
static void note_wait(struct leader *leader, const struct extension *ext)
{
    struct job_pool *own = job_pools_of(leader, ext->pool);
    char why[96];

    if (ext->state != PLAN_PENDING || own == NULL || !slurm_words_blocks(ext->reason) ||
        job_pools_pause_until(own) > leader_now(leader) || !job_pools_has_other(leader, ext->pool))
        return;
    snprintf(why, sizeof(why), "extension job %u waits: %s", ext->job, ext->reason);
    job_pools_failed(leader, ext->pool, why);
}

/* What Slurm says of one extension. Returns false when it is over and forgotten. */
static bool update_extension(struct leader *leader, struct extension *ext, struct job_info *info)
{
    explain_leaving(leader, ext, info);
    if (alive(info)) {
        note_times(leader, ext, info);
        make_leave(leader, ext, info);
        snprintf(ext->reason, sizeof(ext->reason), "%s", info->reason);
        if (ext->pool == NULL)
            ext->pool = job_pools_find(leader, info->partition, info->qos);
        note_start(leader, ext, info);
        note_wait(leader, ext);
        if (ext->state == PLAN_BOOTING && no_wake_forbids(leader, ext))
            extensions_cancel(leader, ext->job, true,
                              "its nodes would have to power up, and its pool has wake=no");
        if (ext->state == PLAN_STARTING && info->num_nodes > 0 && info->num_nodes != ext->nodes &&
            info->state == JOB_KIND_RUNNING &&
            extensions_members(leader, ext->job) <= info->num_nodes) {
            extensions_count_nodes(leader, ext, info->num_nodes);
        }
        if (ext->state == PLAN_LEAVING && extensions_members(leader, ext->job) == 0 &&
            leader_now(leader) - ext->since > LINGER_LIMIT) {
            scancel_jobs(leader, &ext->job, 1, false);
            ext->since = leader_now(leader);
        }
        return true;
    }
    if (extensions_members(leader, ext->job) > 0)
        return true; /* its agents are about to notice */
    /* Else it would count against MAX, and start later, where nobody waits for it. */
    if (was_put_back(info))
        scancel_jobs(leader, &ext->job, 1, false);
    if (ext->state < PLAN_JOINED)
        growth_failed(leader, ext, info);
    return false;
}

/* At the first look the leader has submitted nothing yet: what there is comes from an earlier
 * incarnation, or from an earlier elasticrun of this job that was killed. A leader that follows
 * another one keeps running extensions. Those that still wait would look for the other leader. */
static void cancel_leftovers(struct leader *leader, struct slurm_view *view)
{
    uint32_t *jobs = calloc((size_t)view->count + 1, sizeof(*jobs));
    char own[ADMISSION_NOTE_MAX];
    int count = 0;

    admission_note(leader->options->job, leader->options->restarts, NULL, own, sizeof(own));
    for (int i = 0; jobs != NULL && i < view->count; i++)
        if (alive(&view->list[i]) &&
            admission_marked_base(view->list[i].comment) == leader->options->job &&
            (leader->options->term == 0 || view->list[i].state == JOB_KIND_PENDING ||
             strcmp(view->list[i].comment, own) != 0))
            jobs[count++] = view->list[i].id;
    if (count > 0)
        scancel_jobs(leader, jobs, count, false);
    free(jobs);
}

static void adopt(struct leader *leader, struct slurm_view *view)
{
    char marker[ADMISSION_NOTE_MAX];

    admission_note(leader->options->job, leader->options->restarts, NULL, marker, sizeof(marker));
    for (int i = 0; i < view->count; i++) {
        struct job_info *info = &view->list[i];
        struct extension *ext;

        if (!alive(info) || info->comment == NULL || strcmp(info->comment, marker) != 0 ||
            extensions_find(leader, info->id) != NULL)
            continue;
        if (leader->options->term > 0 && info->state == JOB_KIND_PENDING) {
            /* It would look for the leader before this one. */
            if (slurm_look_base(leader) != NULL)
                scancel_jobs(leader, &info->id, 1, false);
            continue;
        }
        ext = extensions_add(leader, info->id, info->num_nodes, PLAN_PENDING);
        if (ext == NULL)
            continue;
        ext->pool = job_pools_find(leader, info->partition, info->qos);
        note_start(leader, ext, info);
    }
}

static bool was_asked_for(const struct slurm_view *view, const struct extension *ext)
{
    if (ext->job == 0 || view->due.list)
        return ext->job != 0;
    for (int i = 0; i < view->job_count; i++)
        if (view->jobs[i] == ext->job)
            return true;
    return false;
}

/* What Slurm says of them; those that are over are forgotten. */
static void update_extensions(struct leader *leader, struct slurm_view *view)
{
    double left_since = -1;

    for (int i = extensions_count(leader) - 1; i >= 0; i--) {
        struct extension *ext = extensions_at(leader, i);
        struct job_info *info = slurm_look_find(view, ext->job);

        if (!was_asked_for(view, ext) ||
            (info == NULL && view->due.list && ext->since > view->began - LISTED_LATER))
            continue;
        ext->seen = leader_now(leader);
        if (update_extension(leader, ext, info))
            continue;
        if (ext->state == PLAN_LEAVING && ext->since > left_since)
            left_since = ext->since;
        extensions_drop(leader, ext);
    }
    if (left_since >= 0)
        refresh_excludes(leader, left_since);
}

/* Those that came before that moment. */
static void forget_notices(struct leader *leader, double began)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->noticed <= began)
            roster_at(leader, i)->noticed = 0;
}

static void update(struct leader *leader, struct slurm_view *view)
{
    if (!view->ok || leader_has_ended(leader))
        return;
    update_extensions(leader, view);
    if (view->due.list && slurm_look_base(leader) == NULL) {
        cancel_leftovers(leader, view);
        if (leader->options->term > 0)
            adopt(leader, view); /* before more are asked for */
    } else if (view->due.list && !view->submitting && !submit_submitting(leader) &&
               view->submissions == submit_count(leader)) {
        adopt(leader, view);
        slurm_look_listed(leader);
    }
    slurm_look_take_base(leader, view);
    if (view->unwell != NULL)
        exclude_unwell(leader, view->nodes, view->unwell);
    if (view->power != NULL)
        no_wake_answered(leader, view->power);
    if (slurm_look_covers_notices(view))
        forget_notices(leader, view->began);
    planning_later(leader, 0);
}

/* ---- when to look ---------------------------------------------------------------------------- */

static enum look_phase phase_of(const struct leader *leader, const struct extension *ext)
{
    switch (ext->state) {
    case PLAN_PENDING:
        return LOOK_IS_PENDING;
    case PLAN_BOOTING:
        return LOOK_IS_BOOTING;
    case PLAN_STARTING:
        return LOOK_IS_STARTING;
    case PLAN_LEAVING: /* as long as its agents are there, Slurm has nothing to say */
        return extensions_members(leader, ext->job) == 0 ? LOOK_IS_LEAVING : LOOK_IS_SETTLED;
    default:
        return LOOK_IS_SETTLED;
    }
}

/* When Slurm may have given up nodes that do not come: then the next pool is asked. 0: not then. */
static double boot_check(const struct extension *ext, double limit)
{
    double over = ext->stirred + limit - BOOT_SEEN;

    if (limit <= 0 || ext->seen >= over + BOOT_LATE)
        return 0;
    return ext->seen < over ? over + BOOT_CHECK : ext->seen + BOOT_CHECK;
}

/* Its time limit is known once it runs, and may be another one when it matters. */
static struct look_job describe_extension(const struct leader *leader, const struct extension *ext)
{
    struct look_job job = {.phase = phase_of(leader, ext),
                           .since = ext->begin > ext->stirred ? ext->begin : ext->stirred,
                           .seen = ext->seen,
                           .checks = {ext->look}};

    if (ext->state == PLAN_PENDING && ext->begin > ext->stirred)
        job.checks[1] = ext->stirred + 1; /* why it waits */
    if (ext->state == PLAN_BOOTING)
        job.checks[1] = boot_check(ext, job_pools_boot_limit(leader, ext->pool));
    if (ext->state == PLAN_JOINED)
        job.checks[1] = ext->stirred + 1;
    if (ext->state == PLAN_JOINED && ext->leaves > 0)
        job.checks[2] = job.seen < extensions_replace_at(leader, ext) - CHECK_BEFORE
                            ? extensions_replace_at(leader, ext) - CHECK_BEFORE
                            : ext->leaves - CHECK_LAST;
    else if (ext->state == PLAN_JOINED && ext->preempted > 0)
        job.checks[2] = ext->preempted + SIGNAL_LIMIT + 1; /* has it said so meanwhile? */
    return job;
}

static struct look_job describe_base(const struct leader *leader)
{
    return (struct look_job){.seen = slurm_look_base_seen(leader),
                             .checks = {slurm_look_base_check(leader)}};
}

/* The one that has waited longest since it was last tried. */
static struct extension *to_relax(struct leader *leader)
{
    struct extension *found = NULL;

    for (int i = 0; i < extensions_count(leader); i++) {
        struct extension *ext = extensions_at(leader, i);

        if (less_time(ext) > 0 && (found == NULL || ext->relaxed < found->relaxed))
            found = ext;
    }
    return found;
}

static void choose_relaxed(struct leader *leader, struct extension *ext, struct slurm_view *view)
{
    ext->relaxed = view->began;
    view->relax.job = ext->job;
    view->relax.minutes = less_time(ext);
    view->relax.nodes = ext->nodes;
    if (slurm_look_base(leader) != NULL && slurm_look_base(leader)->exclusive)
        view->relax.partition = ext->pool->partition;
}

static char **nodes_to_ask(struct leader *leader, enum look_nodes which)
{
    int count = roster_count(leader), found = 0;
    int turn = which == LOOK_NODE_IN_TURN && count > 0 ? slurm_look_turn(leader, count) : -1;
    char **nodes = count > 0 && which != LOOK_NO_NODE ? calloc((size_t)count + 1, sizeof(*nodes))
                                                      : NULL;

    for (int i = 0; nodes != NULL && i < count; i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (which != LOOK_ALL_NODES && i != turn &&
            (which != LOOK_NOTICED_NODES || m->noticed == 0))
            continue;
        if ((nodes[found++] = strdup(m->part->node)) == NULL)
            break;
    }
    return nodes;
}

/* Limits are for extensions that are asked for: at rest nobody needs them. What a node costs, and
 * when it comes, has to be known before. */
static const struct pool *pool_to_ask(const struct leader *leader)
{
    const struct policy *policy = leader->options->policy;
    bool pending = slurm_look_base(leader) == NULL;

    for (int i = 0; i < extensions_count(leader); i++)
        pending = pending || extensions_at(leader, i)->state == PLAN_PENDING;
    return pending || policy->budget > 0 || slurm_look_deadline(leader) > 0
               ? job_pools_without_limits(leader, pending)
               : NULL;
}

/* The base is the first, the extensions follow in their order. */
static struct look_job *describe_jobs(struct leader *leader)
{
    int count = extensions_count(leader);
    struct look_job *jobs = calloc((size_t)count + 1, sizeof(*jobs));

    if (jobs == NULL)
        return NULL;
    jobs[0] = describe_base(leader);
    for (int i = 0; i < count; i++) {
        const struct extension *ext = extensions_at(leader, i);

        if (ext->job != 0)
            jobs[i + 1] = describe_extension(leader, ext);
        else /* nobody can ask for it yet */
            jobs[i + 1] = (struct look_job){.seen = leader_now(leader)};
    }
    return jobs;
}

/* When any of them was. */
static double last_relaxed(const struct leader *leader)
{
    double last = 0;

    for (int i = 0; i < extensions_count(leader); i++)
        if (extensions_at(leader, i)->relaxed > last)
            last = extensions_at(leader, i)->relaxed;
    return last > 0 ? last : LOOK_NEVER;
}

static void add_notices(const struct leader *leader, struct look_input *in)
{
    for (int i = 0; i < roster_count(leader); i++) {
        double noticed = roster_at(leader, i)->noticed;

        if (noticed > 0 && (in->noticed_count++ == 0 || noticed < in->noticed))
            in->noticed = noticed;
    }
}

static struct look_output what_is_due(struct leader *leader, const struct extension *relaxed)
{
    struct look_job *jobs = describe_jobs(leader);
    struct look_input in = {.jobs = jobs,
                            .job_count = jobs != NULL ? extensions_count(leader) + 1 : 0,
                            .list = !submit_submitting(leader),
                            .relax_since = LOOK_NEVER,
                            .relaxed = LOOK_NEVER};
    struct look_output out;

    add_notices(leader, &in);
    no_wake_describe(leader, &in);
    if (relaxed != NULL) {
        in.relax_since = (relaxed->begin > relaxed->since ? relaxed->begin : relaxed->since) +
                         RELAX_AFTER;
        in.relaxed = last_relaxed(leader);
    }
    slurm_look_due(leader, &in, &out);
    free(jobs);
    return out;
}

void slurm_update_poll(struct leader *leader)
{
    struct slurm_view view = {.began = leader_now(leader),
                              .submitting = submit_submitting(leader),
                              .submissions = submit_count(leader)};
    struct extension *relaxed = to_relax(leader);

    if (slurm_look_busy(leader) || leader_has_ended(leader))
        return;
    view.due = what_is_due(leader, relaxed);
    if (view.due.at > view.began)
        return;
    for (int i = 0; i < view.due.job_count; i++)
        view.jobs[view.job_count++] = view.due.jobs[i] == 0
                                          ? leader->options->job
                                          : extensions_at(leader, view.due.jobs[i] - 1)->job;
    if (view.due.relax)
        choose_relaxed(leader, relaxed, &view);
    view.nodes = nodes_to_ask(leader, view.due.nodes);
    view.pool = pool_to_ask(leader);
    view.power = view.due.power ? no_wake_question(leader) : NULL;
    slurm_look_begin(leader, &view, update);
}
