/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Job control: how a process wants to be told that it has to leave, and its word that it has saved.
 *
 * A process that declares itself PREEMPTIBLE, or CHECKPOINT_EVENT, gets events instead of SIGTERM (events.c). One key of PMIx stands for two things up to
 * 6.1: CHECKPOINT_SIGNAL and CHECKPOINT_TIMEOUT. Beside CHECKPOINT_EVENT it is taken for the time, which the leader's deadline
 * stands for here; alone, for the signal. */
#include <signal.h>

#include "common/log.h"
#include "pmix/host.h"

struct declaration {
    bool by_event, checkpoint;
    int signal; /* 0: none */
    pmix_status_t status;
};

static bool is_true(const pmix_info_t *info)
{
    return info->value.type == PMIX_UNDEF ||
           (info->value.type == PMIX_BOOL && info->value.data.flag);
}

static void take(struct declaration *declared, const pmix_info_t *info)
{
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_PREEMPTIBLE) ||
        PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT_EVENT)) {
        if (info->value.type != PMIX_BOOL && info->value.type != PMIX_UNDEF)
            declared->status = PMIX_ERR_BAD_PARAM;
        declared->by_event = declared->by_event || is_true(info);
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT_SIGNAL)) {
        if (info->value.type != PMIX_INT || info->value.data.integer < 1 ||
            info->value.data.integer == SIGKILL || info->value.data.integer == SIGSTOP)
            declared->status = PMIX_ERR_BAD_PARAM;
        else
            declared->signal = info->value.data.integer;
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT)) {
        declared->checkpoint = true;
    } else if (!PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_ID) &&
               !PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT_METHOD) &&
               !PMIX_CHECK_KEY(info, PMIX_USERID) && !PMIX_CHECK_KEY(info, PMIX_GRPID)) {
        declared->status = PMIX_ERR_NOT_SUPPORTED;
    }
}

void control(struct call *call)
{
    struct space *space = host_space_by_name(call->source.nspace);
    struct declaration declared = {.status = PMIX_SUCCESS};
    json_object *msg;

    for (size_t i = 0; i < call->info_count; i++)
        take(&declared, &call->info[i]);
    if (declared.by_event)
        declared.signal = 0;
    else if (declared.signal > 64)
        declared.status = PMIX_ERR_BAD_PARAM;
    if (space == NULL && declared.status == PMIX_SUCCESS)
        declared.status = PMIX_ERR_NOT_SUPPORTED; /* a tool has nothing to save */
    if (declared.status == PMIX_SUCCESS && declared.checkpoint)
        events_checkpoint(space);
    if (declared.status == PMIX_SUCCESS && (declared.by_event || declared.signal > 0)) {
        msg = host_message("declare", space->attempt);
        json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
        json_object_object_add(msg, "event", json_object_new_boolean(declared.by_event));
        json_object_object_add(msg, "signal", json_object_new_int(declared.signal));
        host_send(msg);
    }
    call_answer(call, declared.status);
}

/* An event of a process. The one that is for us: it has saved. */
void control_event(struct call *call)
{
    struct space *space = host_space_by_name(call->source.nspace);
    json_object *msg;

    if (space != NULL && call->status == PMIX_JCTRL_CHECKPOINT_COMPLETE) {
        msg = host_message("complete", space->attempt);
        json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
        host_send(msg);
    }
    events_relay(call);
    call_free(call);
}
