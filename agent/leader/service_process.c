/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program beside the leader (service_process.h). */
#include "agent/leader/service_process.h"

#include <signal.h>
#include <stdlib.h>

#include "agent/leader/leader_internal.h"

/* It outlives its place in what has started it until it is reaped. */
struct service_process {
    uv_process_t handle;
    struct leader *leader;
    service_process_ended *ended; /* NULL: nobody wants to know */
};

static void on_closed(uv_handle_t *handle)
{
    struct service_process *process = handle->data;
    struct leader *leader = process->leader;

    free(process);
    leader_handle_gone(leader);
}

static void on_exit_of_it(uv_process_t *handle, int64_t code, int sig)
{
    struct service_process *process = handle->data;

    if (process->ended != NULL)
        process->ended(process->leader, code, sig);
    uv_close((uv_handle_t *)handle, on_closed);
}

struct service_process *service_process_start(struct leader *leader, uv_process_options_t *options,
                                              service_process_ended *ended, int *rc)
{
    struct service_process *process = calloc(1, sizeof(*process));

    *rc = UV_ENOMEM;
    if (process == NULL)
        return NULL;
    process->leader = leader;
    process->ended = ended;
    process->handle.data = process;
    leader->open_handles++;
    options->exit_cb = on_exit_of_it;
    *rc = uv_spawn(leader->loop, &process->handle, options);
    if (*rc == 0)
        return process;
    uv_close((uv_handle_t *)&process->handle, on_closed);
    return NULL;
}

void service_process_ask(struct service_process *process)
{
    if (process != NULL)
        uv_process_kill(&process->handle, SIGTERM);
}

void service_process_end(struct service_process *process)
{
    if (process == NULL)
        return;
    service_process_ask(process);
    process->ended = NULL;
}

void service_process_close(struct service_process *process)
{
    service_process_end(process);
    if (process != NULL)
        uv_close((uv_handle_t *)&process->handle, on_closed);
}
