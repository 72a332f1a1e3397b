/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of the job (end.h):
 *
 *   the base is requeued, if it is to be ──► agents are dismissed ──► links, srun, extensions end
 *   ──► Slurm is told, where srun does not ──► everything is closed
 *
 * Each has a limit, so that the end comes in any case. */
#include "agent/leader/end.h"

#include <stdlib.h>

#include "agent/leader/costs.h"
#include "agent/leader/extensions.h"
#include "agent/leader/fit_runner.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/leader_service.h"
#include "agent/leader/lease.h"
#include "agent/leader/members.h"
#include "agent/leader/mlflow_run.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/price_list.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"
#include "agent/leader/role_reports.h"
#include "agent/leader/roster.h"
#include "agent/leader/scancel.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/srun_lost.h"
#include "agent/leader/srun_notify.h"
#include "agent/leader/submit.h"
#include "agent/leader/world_store.h"
#include "common/log.h"
#include "common/slurm_queue.h"

#define CLOSE_LIMIT   3.0 /* seconds for members to end when the job has ended */
#define END_POLL_MS   200 /* between looks at what the end still waits for */
#define TELL_AGAIN_MS 5000
#define TELL_LIMIT    3600.0 /* seconds: the nodes are the job's until Slurm hears of it */

struct end {
    double since;
    const char *waits_for; /* in words; NULL: nothing has been waited for yet */
    bool looked_last;      /* the last look for srun, when all was over, has begun */
    bool completing;       /* Slurm is being told that the job has ended */
    bool completed;        /* … or has been */
};

/* All agents may go. */
static void dismiss(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        json_object *msg = leader_message("finish", -1);

        json_object_object_add(msg, "code",
                               json_object_new_int(m->part->base ? leader->exit.code : 0));
        json_object_object_add(msg, "well", json_object_new_boolean(leader->exit.code == 0));
        leader_send(m, msg);
    }
    end_look(leader);
}

static void requeue_answered(struct leader *leader)
{
    if (!requeue_wanted(leader))
        srun_end(leader); /* it was not told while the job was to come back */
    dismiss(leader);
}

void end_begin(struct leader *leader, int code)
{
    leader->exit.code = code;
    leader->end->since = leader_now(leader);
    leader_service_look(leader);
    srun_end(leader);
    leader_look_at_end(leader, (int)(CLOSE_LIMIT * 1000) + 1);
    report_end(leader);
    costs_end(leader);
    extensions_cancel_all(leader);
    if (!requeue_instead(leader, requeue_answered))
        dismiss(leader);
    leader->above->mlflow_asks(leader, 0);
}

void end_without(struct leader *leader, int code)
{
    scancel_disown(leader);
    mlflow_run_drop(leader);
    leader->exit.code = code;
    leader->end->since = leader_now(leader);
    leader_look_at_end(leader, 1000);
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->link != NULL)
            link_close(roster_at(leader, i)->link, "this node does not lead the job any more");
    end_look(leader);
}

static bool any_linked(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->link != NULL)
            return true;
    return false;
}

/* What the end of the job still waits for, in words. NULL: nothing is left, or it has been waited
 * for as long as it may be. */
static const char *what_is_left(const struct leader *leader)
{
    double since = leader_now(leader) - leader->end->since;

    if (requeue_asking(leader))
        return "Slurm to put the job back into the queue";
    if (any_linked(leader) && since < CLOSE_LIMIT)
        return "the agents to leave";
    if (srun_is_looked_for(leader))
        return "an answer of srun";
    if (srun_busy(leader) && since < 2 * CLOSE_LIMIT)
        return "srun to be told of lost nodes";
    if ((!scancel_cleaned(leader) || submit_submitting(leader) || scancel_busy(leader) ||
         slurm_look_busy(leader) || price_list_busy(job_pools_prices(leader))) &&
        since < 4 * CLOSE_LIMIT)
        return "Slurm to answer about extensions";
    if (role_reports_busy(leader) && since < 4 * CLOSE_LIMIT)
        return "the file of reports to be written";
    if (report_busy(leader) && since < CLOSE_LIMIT)
        return "the history to be written";
    if (leader_service_busy(leader) && since < 4 * CLOSE_LIMIT)
        return "the end of the service to be written down";
    if (fit_runner_busy(leader) && since < CLOSE_LIMIT)
        return "access for trainers to end";
    if (mlflow_run_busy(leader) && since < CLOSE_LIMIT + 1)
        return "MLflow to be told of the end";
    return NULL;
}

/* ---- Slurm is told --------------------------------------------------------------------------- */

struct ending {
    struct leader *leader;
    uint32_t job;
    int code;
    double since;
    struct error err;
    bool done, said;
};

static void end_job(void *arg)
{
    struct ending *ending = arg;

    ending->done = slurm_client_complete(ending->job, ending->code, &ending->err) == 0;
}

static void job_ended(void *arg)
{
    struct ending *ending = arg;
    struct leader *leader = ending->leader;

    if (!ending->done && leader_now(leader) - ending->since < TELL_LIMIT) {
        if (!ending->said)
            log_info("job %u: has ended, and tells Slurm as soon as it can: %s", ending->job,
                     ending->err.text);
        ending->said = true;
        if (slurm_ask_after(leader->loop, TELL_AGAIN_MS, end_job, job_ended, ending) == 0)
            return;
    }
    if (!ending->done)
        log_error("job %u: has ended, and cannot tell Slurm: %s", ending->job, ending->err.text);
    leader->end->completing = false;
    free(ending);
    leader_look_at_end(leader, 0);
}

/* All is over. True: Slurm is still to be told, and another look follows. */
static bool tells_slurm(struct leader *leader)
{
    struct ending *ending;

    if (leader->end->completing)
        return true;
    if (lease_term(leader) > 0 && !lease_deposed(leader) && !leader->end->looked_last) {
        /* An srun that was there when the node before this one was lost may have been lost since.
         * If it was not there, that node may only have been cut off, and be back. */
        leader->end->looked_last = true;
        srun_lost_look(leader, false);
        return srun_is_looked_for(leader);
    }
    if ((!srun_is_lost(leader) && !srun_misleads(leader)) || lease_deposed(leader) ||
        leader->end->completed || requeue_wanted(leader) ||
        (ending = calloc(1, sizeof(*ending))) == NULL)
        return false;
    if (!srun_is_lost(leader))
        log_info("job %u: has ended, and srun would not say so: what the batch script does after "
                 "it is left out",
                 leader->options->job);
    *ending = (struct ending){.leader = leader,
                              .job = leader->options->job,
                              .code = leader->exit.code,
                              .since = leader_now(leader)};
    if (slurm_ask(leader->loop, end_job, job_ended, ending) != 0) {
        free(ending);
        return false;
    }
    leader->end->completing = leader->end->completed = true;
    return true;
}

/* ---- everything is closed -------------------------------------------------------------------- */

static void output_gone(void *arg)
{
    leader_handle_gone(arg);
}

static void close_all(struct leader *leader)
{
    link_server_destroy(leader->server);
    leader->server = NULL;
    leader_timer_close(&leader->timers.plan);
    leader_timer_close(&leader->timers.deadline);
    members_close(leader);
    leader_roles_close(leader);
    leader_service_close(leader);
    mlflow_run_close(leader);
    leader_timer_close(&leader->timers.poll);
    pmix_publish_close(leader);
    world_store_close(leader);
    output_destroy(leader->output, 2000, output_gone, leader);
    leader->output = NULL;
}

void end_look(struct leader *leader)
{
    const char *left;

    if (leader->server == NULL || !leader_has_ended(leader))
        return;
    left = what_is_left(leader);
    if (left != NULL && left != leader->end->waits_for)
        log_debug("job %u: the end waits for %s", leader->options->job, left);
    leader->end->waits_for = left;
    if (left != NULL)
        leader_look_at_end(leader, END_POLL_MS);
    else if (!tells_slurm(leader))
        close_all(leader);
}

bool end_cleans(const struct leader *leader)
{
    const struct roles *roles = leader->options->roles;

    return roles != NULL && roles->clean == ROLES_CLEAN_ALL && leader_has_ended(leader) &&
           !leader->options->state_dir_named && !lease_deposed(leader) && !requeue_wanted(leader);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct end *end_create(void)
{
    return calloc(1, sizeof(struct end));
}

void end_destroy(struct end *end)
{
    free(end);
}
