/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The base job goes back into Slurm's queue, to go on from its checkpoint (--elastic-requeue):
 * before its time limit ends it, or instead of an end because of faults. Slurm is asked when the
 * workers have left, before the agents leave: what the batch script would do after them is for the
 * end of the training. */
#include <stdlib.h>
#include <time.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/requeue.h"
#include "agent/leader/slurm_look.h"
#include "common/log.h"
#include "common/slurm_queue.h"

#define MARGIN 5.0 /* seconds before the time limit by which all is to be over, at the least */
/* slurmctld is asked again if it does not answer, for so many seconds. */
#define ASK_LIMIT 60.0
/* Seconds in which Slurm may say that the limit is another one. */
#define UNHEARD_LIMIT 3.0
#define ASK_AGAIN_MS  2000

struct requeue {
    bool wanted; /* the job is to go back into the queue instead of ending */
    bool asking; /* Slurm is being asked to */
};

struct requeue *requeue_create(void)
{
    return calloc(1, sizeof(struct requeue));
}

void requeue_destroy(struct requeue *requeue)
{
    free(requeue);
}

bool requeue_wanted(const struct leader *leader)
{
    return leader->requeue->wanted;
}

bool requeue_asking(const struct leader *leader)
{
    return leader->requeue->asking;
}

/* Seconds before its time limit at which the job is to save and leave. */
static double margin(const struct leader *leader)
{
    double quarter = slurm_look_base(leader)->time_limit * 60.0 / 4;
    double grace = leader->options->policy->grace < quarter ? leader->options->policy->grace
                                                            : quarter;

    return grace > MARGIN ? grace : MARGIN;
}

void requeue_watch(struct leader *leader)
{
    const struct job_info *base = slurm_look_base(leader);
    double left;

    if ((leader->options->policy->requeue & POLICY_REQUEUE_LIMIT) == 0 ||
        change_stopping(leader->change) || change_generation(leader->change) == 0 || base == NULL ||
        base->state != JOB_KIND_RUNNING || base->time_limit == UINT32_MAX || base->end == 0)
        return;
    left = (double)(base->end - time(NULL)) - margin(leader);
    if (left > 0) {
        planning_later(leader, left);
        return;
    }
    /* Its limit may be another one by now. A Slurm that does not answer cannot keep it from it. */
    if (left > -UNHEARD_LIMIT && slurm_look_base_is_old(leader)) {
        planning_later(leader, UNHEARD_LIMIT + left);
        return;
    }
    leader->requeue->wanted = true;
    post_stop(leader, "its time limit is near; it goes on from the queue");
}

void requeue_after_fault(struct leader *leader)
{
    const struct leader_options *o = leader->options;

    if ((o->policy->requeue & POLICY_REQUEUE_FAULT) == 0 || change_stopping(leader->change))
        return;
    if (o->restarts >= (uint32_t)o->policy->restarts.restarts) {
        log_error("job %u: has been requeued %u times: not again (--max-restarts)", o->job,
                  o->restarts);
        return;
    }
    leader->requeue->wanted = true;
}

struct asking {
    struct leader *leader;
    requeue_done *then;
    uint32_t job;
    double since;
    bool unheard, done;
    struct error err;
};

/* Not one that the user has cancelled meanwhile: it would come back to life. */
static void ask(void *arg)
{
    struct asking *asking = arg;
    struct job_info *info = NULL;

    asking->unheard = slurm_client_job(asking->job, &info, &asking->err) != 0;
    if (asking->unheard)
        return;
    if (info == NULL || info->state != JOB_KIND_RUNNING)
        error_set(&asking->err, "it is %s", info != NULL ? info->state_name : "not there any more");
    else
        asking->done = slurm_client_requeue(asking->job, &asking->err) == 0;
    job_info_free(info);
}

static void asked(void *arg)
{
    struct asking *asking = arg;
    struct leader *leader = asking->leader;

    if (asking->unheard && leader_now(leader) - asking->since < ASK_LIMIT &&
        slurm_ask_after(leader->loop, ASK_AGAIN_MS, ask, asked, asking) == 0)
        return;
    if (!asking->done)
        log_error("job %u: cannot be put back into the queue: %s", asking->job, asking->err.text);
    leader->requeue->asking = false;
    leader->requeue->wanted = asking->done;
    asking->then(leader);
    free(asking);
}

bool requeue_instead(struct leader *leader, requeue_done *then)
{
    struct asking *asking;

    if (!leader->requeue->wanted || leader->exit.code == 0 ||
        (asking = calloc(1, sizeof(*asking))) == NULL)
        return false;
    *asking = (struct asking){
        .leader = leader, .then = then, .job = leader->options->job, .since = leader_now(leader)};
    if (slurm_ask(leader->loop, ask, asked, asking) != 0) {
        free(asking);
        return false;
    }
    leader->requeue->asking = true;
    /* Now: Slurm ends this process as soon as it has heard that. */
    log_info("job %u: goes back into the queue, and goes on from its checkpoint", asking->job);
    return true;
}
