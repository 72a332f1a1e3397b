/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job that has the service next (service_next.h). */
#include "agent/leader/service_next.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/leader/argv.h"
#include "agent/leader/inherit.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/lease.h"
#include "agent/leader/service_shell.h"
#include "agent/leader/service_text.h"
#include "agent/leader/slurm_look.h"
#include "agent/paths.h"
#include "common/log.h"
#include "common/slurm_client.h"
#include "common/slurm_queue.h"
#include "lib/number.h"

#define CLAIM_PAUSE    5.0  /* seconds between two looks at a service that another job runs */
#define CHANGE_PAUSE   1.0  /* … during a handover */
#define ANNOUNCE_PAUSE 5.0  /* … between two writes of next.json */
#define LOOK_PAUSE     2.0  /* … between two looks at what the other job has written */
#define ASK_PAUSE      60.0 /* … between two questions to Slurm about the successor */

static struct service_next *next_of(struct leader *leader)
{
    return &leader->of_roles.service->next_job;
}

/* The job whose successor this one has been submitted as; 0: it has not. */
static uint32_t successor_of(void)
{
    const char *text = getenv("ELASTIC_HANDOVER_OF");
    int job;

    return text != NULL && number_parse(text, strlen(text), 1, INT32_MAX, &job) == 0 ? (uint32_t)job
                                                                                     : 0;
}

static void stop(struct leader *leader, const char *why)
{
    if (next_of(leader)->stopped)
        return;
    next_of(leader)->stopped = true;
    log_info("job %u: service %s: %s; this job ends", leader->options->job,
             leader->options->roles->service, why);
    leader_roles_feed(leader,
                      (struct reconcile_fact){.kind = RECONCILE_STOP, .status = 0, .text = why});
}

/* ---- the successor is submitted -------------------------------------------------------------- */

/* Seconds until the job's time is over; -1: not known, or never. */
static double seconds_left(const struct leader *leader)
{
    const struct job_info *base = slurm_look_base(leader);

    if (base == NULL || base->time_limit == UINT32_MAX || base->end == 0)
        return -1;
    return (double)base->end > unix_now() ? (double)base->end - unix_now() : 0;
}

static char **successor_argv(const struct leader *leader)
{
    const struct job_info *base = slurm_look_base(leader);
    struct argv argv = {0};

    argv_add(&argv, "%s", paths_of(PATHS_SUCCESSOR_SCRIPT));
    argv_add(&argv, "%u", leader->options->job);
    argv_add(&argv, "--nodes=%d", leader->options->base_nodes);
    argv_add(&argv, "--ntasks-per-node=1");
    if (base->time_limit != UINT32_MAX)
        argv_add(&argv, "--time=%u", base->time_limit);
    else
        argv_add(&argv, "--time=UNLIMITED");
    if (base->name != NULL)
        argv_add(&argv, "--job-name=%s", base->name);
    if (base->partition != NULL)
        argv_add(&argv, "--partition=%s", base->partition);
    if (base->qos != NULL)
        argv_add(&argv, "--qos=%s", base->qos);
    if (base->features != NULL)
        argv_add(&argv, "--constraint=%s", base->features);
    if (base->work_dir != NULL)
        argv_add(&argv, "--chdir=%s", base->work_dir);
    inherit_add(&argv, base, true);
    return argv_end(&argv);
}

static void submitted(void *owner, struct service_task *task)
{
    struct leader *leader = owner;
    struct service_next *next = next_of(leader);
    int job = 0;

    next->program = NULL;
    if (task->text != NULL)
        task->text[strcspn(task->text, ";\n")] = '\0';
    if (task->rc != 0 || task->text == NULL ||
        number_parse(task->text, strlen(task->text), 1, INT32_MAX, &job) != 0)
        job = 0;
    if (job > 0)
        log_info("job %u: service %s: job %d has been submitted, and is to go on with it",
                 leader->options->job, leader->options->roles->service, job);
    else
        log_error("job %u: service %s: its next job cannot be submitted: %s; tries again",
                  leader->options->job, leader->options->roles->service,
                  task->err.text[0] != '\0' ? task->err.text : "sbatch has said nothing");
    service_handover_submitted(&next->handover, (uint32_t)job, leader_now(leader));
    next->asks = leader_now(leader) + ASK_PAUSE;
    leader->of_roles.service->beats = 0; /* leader.json has its number */
    service_run_in(leader, 0);
    leader_look_at_end(leader, 0);
}

static void submit(struct leader *leader)
{
    struct service_next *next = next_of(leader);
    struct service_task *task = service_new_task(leader, SERVICE_TASK_PROGRAM, submitted);

    if (task != NULL)
        task->argv = successor_argv(leader);
    if (task != NULL && task->argv != NULL)
        service_begin(leader, task, &next->program);
    else
        free(task);
    if (next->program == NULL)
        service_handover_submitted(&next->handover, 0, leader_now(leader));
}

/* ---- is it still there? ---------------------------------------------------------------------- */

struct service_question {
    struct leader *leader; /* NULL: it has gone */
    uint32_t job;
    bool answered, ended;
    bool other; /* it is about the job that runs the service … */
    struct service_gone_answer answer;
};

/* One that is requeued completes, too, and comes again. */
static bool has_ended(const struct job_info *info)
{
    return info->uid == geteuid() &&
           (info->state == JOB_KIND_ENDED ||
            (info->state == JOB_KIND_ENDING && strcmp(info->base_state, "PENDING") != 0));
}

static void ask_slurm(void *arg)
{
    struct service_question *question = arg;
    struct job_info *info = NULL;
    struct error err;

    question->answered = slurm_client_job(question->job, &info, &err) == 0;
    question->ended = info == NULL || info->state >= JOB_KIND_ENDING;
    if (info != NULL) {
        question->answer.ended = has_ended(info);
        question->answer.ago = unix_now() - (double)info->end;
    }
    job_info_free(info);
}

static void other_answered(struct leader *leader, const struct service_question *question)
{
    struct leader_service *own = leader->of_roles.service;

    if (!question->answered || !service_gone_answered(&own->next_job.gone, &question->answer))
        return;
    log_info("job %u: service %s: Slurm says that job %u has ended", leader->options->job,
             leader->options->roles->service, question->job);
    own->claims = 0;
}

static void successor_answered(struct leader *leader, const struct service_question *question)
{
    struct service_next *next = next_of(leader);

    if (!question->answered || !question->ended || next->handover.successor != question->job ||
        next->handover.state != HANDOVER_AWAITS)
        return;
    log_error("job %u: service %s: job %u was to go on with it, and has ended; submits another one",
              leader->options->job, leader->options->roles->service, question->job);
    service_handover_gone(&next->handover, question->job, leader_now(leader));
}

static void slurm_answered(void *arg)
{
    struct service_question *question = arg;
    struct leader *leader = question->leader;

    if (leader != NULL) {
        next_of(leader)->question = NULL;
        if (question->other)
            other_answered(leader, question);
        else
            successor_answered(leader, question);
        service_run_in(leader, 0);
    }
    free(question);
}

static void put_question(struct leader *leader, const struct service_question *what)
{
    struct service_next *next = next_of(leader);
    struct service_question *question = calloc(1, sizeof(*question));

    if (question == NULL)
        return;
    *question = *what;
    next->question = question;
    if (slurm_ask(leader->loop, ask_slurm, slurm_answered, question) != 0) {
        next->question = NULL;
        free(question);
    }
}

/* The job that runs the service has not written for so long: has it ended? */
static void watch_other(struct leader *leader, uint32_t job, double silent)
{
    struct service_next *next = next_of(leader);
    struct service_question question;
    double now = leader_now(leader);

    if (next->question != NULL || !service_gone_ask(&next->gone, job, silent, now))
        return;
    question = (struct service_question){
        .leader = leader,
        .job = job,
        .other = true,
        .answer = {.job = job, .asked = now, .silent = silent},
    };
    put_question(leader, &question);
}

static void watch_slurm(struct leader *leader)
{
    struct service_next *next = next_of(leader);
    struct service_question question;

    if (next->handover.state != HANDOVER_AWAITS || next->question != NULL)
        return;
    if (leader_now(leader) < next->asks) {
        service_run_in(leader, next->asks - leader_now(leader));
        return;
    }
    next->asks = leader_now(leader) + ASK_PAUSE;
    question = (struct service_question){.leader = leader, .job = next->handover.successor};
    put_question(leader, &question);
}

/* ---- what the other job has written ---------------------------------------------------------- */

static void looked(void *owner, struct service_task *task)
{
    struct leader *leader = owner;
    struct service_next *next = next_of(leader);

    next->look = NULL;
    next->seen = task->seen;
    next->seen_at = leader_now(leader);
    service_run_in(leader, 0);
    leader_look_at_end(leader, 0);
}

static void look_at(struct leader *leader, const char *file)
{
    struct service_next *next = next_of(leader);
    struct service_task *task;

    if (next->look != NULL)
        return;
    if (leader_now(leader) < next->looks) {
        service_run_in(leader, next->looks - leader_now(leader));
        return;
    }
    next->looks = leader_now(leader) + LOOK_PAUSE;
    task = service_new_task(leader, SERVICE_TASK_LOOK, looked);
    if (task != NULL)
        snprintf(task->name, sizeof(task->name), "%s", file);
    service_begin(leader, task, &next->look);
    service_run_in(leader, LOOK_PAUSE);
}

static double silent_for(struct leader *leader)
{
    const struct service_next *next = next_of(leader);

    return next->seen.silent + leader_now(leader) - next->seen_at;
}

/* ---- the old job ----------------------------------------------------------------------------- */

static void carry_out(struct leader *leader, enum service_handover_act act)
{
    struct leader_service *own = leader->of_roles.service;

    switch (act) {
    case HANDOVER_NOTHING:
        break;
    case HANDOVER_SUBMIT:
        submit(leader);
        break;
    case HANDOVER_FREEZE:
        service_freeze(own->service, true);
        own->beats = 0;
        break;
    case HANDOVER_WITHDRAW:
        service_freeze(own->service, false);
        own->beats = 0;
        break;
    case HANDOVER_STOP:
        stop(leader, service_is_left(own->service, leader_now(leader))
                         ? "another job has its requests"
                         : "another job has its routes, and some router does not say that it "
                           "follows");
        break;
    }
}

static void hand_over(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_next *next = &own->next_job;
    struct service_handover_facts facts = {
        .now = leader_now(leader),
        .left = seconds_left(leader),
        .before = leader->options->roles->handover,
        .asked = next->asked && slurm_look_base(leader) != NULL,
        .announced = next->seen.of == leader->options->job ? next->seen.job : 0,
        .silent = silent_for(leader),
        .claimed = own->phase == PHASE_HANDED,
        .serves = next->serves,
        .unused = service_is_left(own->service, leader_now(leader)),
    };
    enum service_handover_state before = next->handover.state;
    double due;

    carry_out(leader, service_handover_step(&next->handover, &facts));
    if (next->handover.state != before)
        log_debug("job %u: service %s: handover: %s", leader->options->job,
                  leader->options->roles->service, service_handover_word(next->handover.state));
    due = service_handover_deadline(&next->handover, &facts);
    if (due > 0)
        service_run_in(leader, due > facts.now ? due - facts.now : 0);
    if (facts.left < 0) /* Slurm has not said so yet */
        service_run_in(leader, next->asked ? LOOK_PAUSE : ASK_PAUSE);
    if (next->handover.state < HANDOVER_HANDED &&
        (next->asked || next->handover.state > HANDOVER_FAR ||
         (facts.left >= 0 && facts.left <= facts.before)))
        look_at(leader, SERVICE_NEXT_FILE);
    watch_slurm(leader);
}

/* ---- the new job ----------------------------------------------------------------------------- */

static void hold_table(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_next *next = &own->next_job;
    bool heard = next->seen.job == next->old;
    double silent = heard ? silent_for(leader) : leader_now(leader) - next->claimed;
    bool there = silent < HANDOVER_SILENT && !(heard && next->seen.ended) &&
                 !service_gone_is(&next->gone, next->old, silent, leader_now(leader));
    double left = next->old_end > 0 ? next->old_end - unix_now() : -1;

    service_hold(own->service,
                 service_handover_hold(there, left > 0 || next->old_end == 0 ? left : 0,
                                       leader->options->roles->handover));
    if (!service_holds(own->service))
        return;
    look_at(leader, SERVICE_BEFORE_FILE);
    watch_other(leader, next->old, silent);
}

static void announced(void *owner, struct service_task *task)
{
    struct leader *leader = owner;

    next_of(leader)->look = NULL;
    leader_look_at_end(leader, 0);
}

/* next.json says that this job waits; of 0: it does not any more. */
static void announce(struct leader *leader, uint32_t of)
{
    struct service_next *next = next_of(leader);
    struct service_task *task = service_new_task(leader, SERVICE_TASK_WRITE, announced);

    if (task != NULL) {
        snprintf(task->name, sizeof(task->name), SERVICE_NEXT_FILE);
        task->text = of > 0 ? service_text_next(leader, of) : NULL;
    }
    service_begin(leader, task, &next->look);
}

void service_next_mine(struct leader *leader, const struct service_task *task)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_next *next = &own->next_job;
    const struct service_seen *seen = &task->claimed.seen;

    service_handover_back(&next->handover, leader_now(leader));
    next->asked = next->serves = false;
    next->old = 0;
    if (task->claimed.handed) {
        next->old = task->claimed.holder;
        next->old_end = (double)seen->end;
    } else if (seen->job == leader->options->job && !seen->serves && seen->of > 0) {
        next->old = seen->of; /* the leader of this job before has held it, too */
        next->old_end = (double)seen->old_end;
    }
    if (seen->job == leader->options->job && next->handover.state == HANDOVER_FAR &&
        seen->submitted > 0) {
        next->handover.state = HANDOVER_AWAITS;
        next->handover.successor = seen->submitted;
    }
    next->claimed = leader_now(leader);
    next->seen = (struct service_seen){0};
    if (next->old == 0)
        return;
    service_hold(own->service, SERVICE_HOLD_WHOLE);
    if (next->look == NULL)
        announce(leader, 0);
    log_info("job %u: service %s: takes over from job %u once its replicas are ready",
             leader->options->job, leader->options->roles->service, next->old);
}

/* Replicas of the time when this job had the service: this leader is not the first one. */
static bool has_replicas(struct leader *leader)
{
    const struct roles_view *view = leader_roles_view(leader);

    for (int i = 0; i < reconcile_count(view->reconcile); i++)
        if (view->roles->list[reconcile_at(view->reconcile, i)->role].kind == ROLE_SHARDS)
            return true;
    return false;
}

void service_next_others(struct leader *leader, const struct service_task *task)
{
    struct service_next *next = next_of(leader);
    double now = leader_now(leader);

    next->serves = task->claimed.seen.serves;
    watch_other(leader, task->claimed.holder, task->claimed.seen.silent);
    if (leader->of_roles.service->phase == PHASE_HANDED || !leader_roles_run(leader))
        return;
    if (has_replicas(leader)) {
        if (!next->serves)
            next->claimed = now;
        if (now - next->claimed >= HANDOVER_LEAVE)
            stop(leader, "another job has its requests");
    } else if (successor_of() == task->claimed.holder) {
        if (next->look == NULL && now >= next->looks) {
            next->looks = now + ANNOUNCE_PAUSE;
            announce(leader, task->claimed.holder);
        }
    } else if (successor_of() > 0 && lease_term(leader) == 0) {
        stop(leader, "another job than the one before has it, and this one is not needed");
    }
}

double service_next_pause(const struct leader *leader)
{
    return leader->of_roles.service->phase == PHASE_HANDED || successor_of() > 0 ? CHANGE_PAUSE
                                                                                 : CLAIM_PAUSE;
}

/* ---- both ------------------------------------------------------------------------------------ */

int service_next_ask(struct leader *leader, struct error *err)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_next *next = &own->next_job;
    double left = seconds_left(leader);

    if (service_holds(own->service))
        return error_set(err, "job %u has the service from job %u, and does not serve yet",
                         leader->options->job, next->old);
    if (next->handover.successor > 0)
        return error_set(err, "job %u is to go on with the service already",
                         next->handover.successor);
    if (next->handover.state != HANDOVER_FAR)
        return error_set(err, "the next job is being submitted already");
    if (left >= 0 && left < HANDOVER_LAST)
        return error_set(err, "job %u ends in %.0f s, and a next job needs %.0f",
                         leader->options->job, left, HANDOVER_LAST);
    next->asked = true;
    next->handover.retry.after = 0;
    service_run_in(leader, 0);
    return 0;
}

bool service_next_any(const struct leader *leader)
{
    const struct service_next *next = &leader->of_roles.service->next_job;

    return leader->options->roles->handover > 0 || next->asked ||
           next->handover.state != HANDOVER_FAR || service_holds(leader->of_roles.service->service);
}

void service_next_watch(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;

    if (own->phase == PHASE_SERVES && service_holds(own->service))
        hold_table(leader);
    else if (service_next_any(leader))
        hand_over(leader);
}

void service_next_forget(struct leader_service *own)
{
    if (own->next_job.question != NULL)
        own->next_job.question->leader = NULL;
}
