/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Job control: how a process wants to be told to leave, that it has saved, and signals to
 * processes.
 *
 * A process that declares itself PREEMPTIBLE, or CHECKPOINT_EVENT, gets events instead of SIGTERM
 * (events.c). Up to 6.1 one key of PMIx stands for two things: CHECKPOINT_SIGNAL and
 * CHECKPOINT_TIMEOUT. Beside CHECKPOINT_EVENT the key is taken for the time, for which the leader's
 * deadline stands here. Alone the key is taken for the signal.
 *
 * The agents send the signals: the library tells nobody's process id. To pause a process is not
 * supported. A paused process could not save when its node is wanted, so the job that waits for the
 * node would wait for the whole grace time. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "pmix/host.h"

#define AGENT_SECONDS 5 /* for the answers of all nodes */

struct declaration {
    bool by_event, checkpoint;
    int signal; /* 0: none */
    /* To the targets. */
    int actions;   /* requested actions: at most one */
    int to_others; /* a signal, 0: none */
    bool ends;     /* TERMINATE or KILL, which of all processes end the job */
    pmix_status_t status;
};

static bool is_true(const pmix_info_t *info)
{
    return info->value.type == PMIX_UNDEF ||
           (info->value.type == PMIX_BOOL && info->value.data.flag);
}

static void take_action(struct declaration *declared, const pmix_info_t *info, int signal)
{
    if (info->value.type != PMIX_BOOL && info->value.type != PMIX_UNDEF) {
        declared->status = PMIX_ERR_BAD_PARAM;
    } else if (is_true(info)) {
        declared->actions++;
        declared->to_others = signal;
        declared->ends = true;
    }
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
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_TERMINATE)) {
        take_action(declared, info, SIGTERM);
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_KILL)) {
        take_action(declared, info, SIGKILL);
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_SIGNAL)) {
        declared->actions++;
        declared->to_others = info->value.type == PMIX_INT ? info->value.data.integer : 0;
        if (declared->to_others < 1 || declared->to_others > SIGRTMAX)
            declared->status = PMIX_ERR_BAD_PARAM;
        else if (declared->to_others == SIGSTOP || declared->to_others == SIGCHLD)
            declared->status = PMIX_ERR_NOT_SUPPORTED;
    } else if (!PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_ID) &&
               !PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_CHECKPOINT_METHOD) &&
               !PMIX_CHECK_KEY(info, PMIX_USERID) && !PMIX_CHECK_KEY(info, PMIX_GRPID)) {
        declared->status = PMIX_ERR_NOT_SUPPORTED;
    }
}

/* ---- signals to processes -------------------------------------------------------------------- */

/* The namespace of all targets, the caller's if there are none. NULL: none of ours, or several. */
static struct space *target_space(const struct call *call)
{
    for (size_t i = 1; i < call->proc_count; i++)
        if (!PMIX_CHECK_NSPACE(call->procs[i].nspace, call->procs[0].nspace))
            return NULL;
    return host_space_by_name(call->proc_count > 0 ? call->procs[0].nspace : call->source.nspace);
}

/* The ranks that are meant: a new array with a flag for each rank. NULL with *status: a rank does
 * not exist, or there is no memory. *count: the number of ranks. */
static bool *target_ranks(const struct call *call, const struct space *space, int *count,
                          pmix_status_t *status)
{
    int size = world_size(space->world);
    bool *wanted = calloc((size_t)size, sizeof(*wanted));

    *status = wanted != NULL ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
    for (size_t i = 0; wanted != NULL && i < call->proc_count; i++) {
        pmix_rank_t rank = call->procs[i].rank;

        if (rank < (pmix_rank_t)size)
            wanted[rank] = true;
        else if (rank == PMIX_RANK_WILDCARD)
            memset(wanted, true, (size_t)size * sizeof(*wanted));
        else
            *status = PMIX_ERR_NOT_FOUND;
    }
    if (wanted != NULL && call->proc_count == 0)
        memset(wanted, true, (size_t)size * sizeof(*wanted));
    *count = 0;
    for (int i = 0; wanted != NULL && i < size; i++)
        *count += wanted[i];
    if (*status == PMIX_SUCCESS)
        return wanted;
    free(wanted);
    return NULL;
}

/* Add the wanted ranks of a node to msg, or nothing if they are all ranks of the node. Returns
 * their number. */
static int add_ranks(json_object *msg, const struct space *space, int node, const bool *wanted)
{
    int first = world_first_rank(space->world, node), slots = space->world->nodes[node].slots;
    json_object *ranks = json_object_new_array();
    int count = 0;

    for (int rank = first; rank < first + slots; rank++)
        if (wanted[rank]) {
            json_object_array_add(ranks, json_object_new_int(rank));
            count++;
        }
    if (count > 0 && count < slots)
        json_object_object_add(msg, "ranks", ranks);
    else
        json_object_put(ranks);
    return count;
}

static json_object *signal_message(const struct space *space, const bool *wanted)
{
    json_object *msg = json_object_new_object(), *nodes = json_object_new_array();

    for (int i = 0; i < space->world->node_count; i++) {
        json_object *node = i != space->index ? json_object_new_object() : msg;

        if (add_ranks(node, space, i, wanted) == 0) {
            if (node != msg)
                json_object_put(node);
        } else if (node == msg) {
            json_object_object_add(msg, "here", json_object_new_boolean(true));
        } else {
            json_object_object_add(node, "node", json_object_new_int(i));
            json_object_array_add(nodes, node);
        }
    }
    json_object_object_add(msg, "nodes", nodes);
    return msg;
}

static void on_signalled(struct call *call, json_object *answer)
{
    const char *error = json_get_string(answer, "error");
    pmix_status_t status = PMIX_SUCCESS;

    if (error != NULL && strcmp(error, "busy") == 0)
        status = PMIX_ERR_RESOURCE_BUSY;
    else if (error != NULL && strcmp(error, "part") == 0)
        status = PMIX_ERR_PARTIAL_SUCCESS;
    else if (error != NULL)
        status = PMIX_ERR_NOT_FOUND;
    call_answer(call, status);
}

static void signal_targets(struct call *call, const struct declaration *declared)
{
    struct space *space = target_space(call);
    pmix_status_t status = PMIX_ERR_NOT_FOUND;
    bool *wanted = NULL;
    json_object *msg;
    int count = 0;

    if (space != NULL)
        wanted = target_ranks(call, space, &count, &status);
    if (wanted == NULL) {
        call_answer(call, status);
        return;
    }
    msg = signal_message(space, wanted);
    free(wanted);
    json_object_object_add(msg, "signal", json_object_new_int(declared->to_others));
    if (declared->to_others == SIGTERM && declared->ends)
        json_object_object_add(msg, "forced", json_object_new_boolean(true));
    if (declared->ends && count == world_size(space->world))
        json_object_object_add(msg, "end", json_object_new_boolean(true));
    if (host_space_by_name(call->source.nspace) != NULL)
        json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
    exchange_ask(call, space, "control", msg, AGENT_SECONDS, on_signalled);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

void control(struct call *call)
{
    struct space *space = host_space_by_name(call->source.nspace);
    struct declaration declared = {.status = PMIX_SUCCESS};
    json_object *msg;

    for (size_t i = 0; i < call->info_count; i++)
        take(&declared, &call->info[i]);
    if (declared.actions > 0) {
        if (declared.actions > 1 || declared.by_event || declared.signal > 0 || declared.checkpoint)
            declared.status = PMIX_ERR_BAD_PARAM;
        if (declared.status == PMIX_SUCCESS)
            signal_targets(call, &declared);
        else
            call_answer(call, declared.status);
        return;
    }
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

/* An event of a process. Only one event is for us: the process has saved. */
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
