/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the leader's side of a service share (service_shell.h). */
#include "agent/leader/service_shell.h"

#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "common/log.h"

void service_run_in(struct leader *leader, double seconds)
{
    uint64_t ms = seconds > 0 ? (uint64_t)(seconds * 1000) + 1 : 0;
    uv_timer_t *timer = &leader->of_roles.service->timer;

    if (uv_is_closing((uv_handle_t *)timer))
        return;
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
        uv_timer_start(timer, leader->of_roles.service->on_timer, ms, 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct service_task *service_new_task(struct leader *leader, enum service_task_kind kind,
                                      void (*done)(void *owner, struct service_task *task))
{
    const struct leader_service *own = leader->of_roles.service;
    struct service_task *task = calloc(1, sizeof(*task));

    if (task == NULL)
        return NULL;
    task->kind = kind;
    task->owner = leader;
    task->done = done;
    task->term = own->term;
    memcpy(task->dir, own->dir, sizeof(task->dir));
    memcpy(task->repository, own->repository, sizeof(task->repository));
    task->job = leader->options->job;
    return task;
}

void service_begin(struct leader *leader, struct service_task *task, struct service_task **place)
{
    *place = task != NULL && service_task_begin(leader->loop, task) == 0 ? task : NULL;
    if (*place == NULL)
        log_error("job %u: service: out of memory", leader->options->job);
}

void service_taken(struct leader *leader, const char *why)
{
    struct leader_service *own = leader->of_roles.service;

    if (own->phase != PHASE_SERVES)
        return;
    /* The offer may have been withdrawn: who claims does not announce itself any more. */
    if (leader->options->roles->handover <= 0 && !own->next_job.asked &&
        own->next_job.handover.state == HANDOVER_FAR) {
        service_lose(leader, why);
        return;
    }
    own->phase = PHASE_HANDED;
    own->beats = own->claims = 0;
    own->running = false;
    service_actions_clear(&own->actions);
    service_freeze(own->service, true);
    log_info("job %u: service %s: %s; replicas of this job go on until those of the other one are "
             "in use",
             leader->options->job, leader->options->roles->service, why);
    service_run_in(leader, 0);
}

void service_lose(struct leader *leader, const char *why)
{
    leader->of_roles.service->phase = PHASE_LOST;
    log_error("job %u: service %s: %s; this job changes nothing any more", leader->options->job,
              leader->options->roles->service, why);
}

void service_note_written(struct leader *leader, const struct service_task *task)
{
    struct leader_service *own = leader->of_roles.service;

    if (task->rc != 0 && !own->unwritable)
        log_error("job %u: service %s: %s; nothing changes until its files can be written",
                  leader->options->job, leader->options->roles->service, task->err.text);
    own->unwritable = task->rc != 0;
}
