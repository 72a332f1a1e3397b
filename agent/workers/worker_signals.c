/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals to the workers of a node: to stop them, on request, and to kill stopped ones
 * (workers.h). */
#include "agent/workers/workers_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/workers/process_tree.h"

#define KILL_AGAIN_MS 500
#define ABORT_MS      1000
#define TERMINATE_MS  10000
#define COMPLETE_MS   300 /* for a worker that has saved to end by itself */

/* To the shim, which hands it on to the command, or kills. 0, or -1: there is no shim. */
static int tell_shim(struct worker *w, int signal)
{
    return uv_process_kill(&w->process, signal == SIGKILL   ? EXEC_WORKER_KILL
                                        : signal == SIGTERM ? EXEC_WORKER_TERM
                                                            : signal);
}

void worker_send_signal(struct worker *w, int signal)
{
    if (w->ended || w->spawn_error != 0)
        return;
    if (w->stop_signal != signal)
        tell_shim(w, signal);
    w->stop_signal = signal;
}

static void kill_worker(struct worker *w)
{
    if (w->ended || w->spawn_error != 0)
        return;
    tell_shim(w, SIGKILL);
    if (w->stop_signal == SIGKILL)
        tell_shim(w, SIGCONT); /* the second time: the shim may be stopped */
    w->stop_signal = SIGKILL;
}

static void on_kill(uv_timer_t *timer)
{
    struct workers *set = timer->data;

    for (int i = 0; i < set->count; i++)
        kill_worker(&set->list[i]);
}

static void kill_after(struct workers *set, uint64_t ms)
{
    if (set->unreported == 0 ||
        (uv_is_active((uv_handle_t *)&set->kill) && uv_timer_get_due_in(&set->kill) <= ms))
        return;
    uv_timer_start(&set->kill, on_kill, ms, KILL_AGAIN_MS);
}

/* Signal all workers, or with notice each in the way that it has declared. Returns the number of
 * workers that were not signalled because they get an event. */
static int stop(struct workers *set, int signal, double grace, bool notice)
{
    bool at_once = signal == SIGKILL || !(grace > 0);
    int others = 0;

    for (int i = 0; i < set->count && !at_once; i++) {
        struct worker *w = &set->list[i];

        if (notice && w->by_event)
            others += !w->ended;
        else
            worker_send_signal(w, notice && w->notice_signal > 0 ? w->notice_signal : signal);
    }
    if (at_once)
        on_kill(&set->kill);
    set->noticed = set->noticed || notice;
    kill_after(set, at_once ? KILL_AGAIN_MS : grace < 1e6 ? (uint64_t)(grace * 1000) : UINT32_MAX);
    return others;
}

void workers_stop(struct workers *set, int signal, double grace)
{
    stop(set, signal, grace, false);
}

int workers_notice(struct workers *set, int signal, double grace)
{
    return stop(set, signal, grace, true);
}

static struct worker *worker_of(struct workers *set, int rank)
{
    for (int i = 0; i < set->count; i++)
        if (set->list[i].rank == rank)
            return &set->list[i];
    return NULL;
}

void workers_joined(struct workers *set, int rank)
{
    struct worker *w = worker_of(set, rank);

    if (w != NULL)
        w->joined = true;
}

double workers_declare(struct workers *set, int rank, bool by_event, int signal)
{
    struct worker *w = worker_of(set, rank);

    if (w == NULL)
        return 0;
    set->declared = true;
    w->by_event = by_event;
    w->notice_signal = workers_may_signal(signal) ? signal : 0;
    if (!set->noticed || !by_event || w->ended)
        return 0;
    return (double)uv_timer_get_due_in(&set->kill) / 1000;
}

static void on_complete_over(uv_timer_t *timer)
{
    kill_worker(timer->data);
}

void workers_complete(struct workers *set, int rank)
{
    struct worker *w = worker_of(set, rank);

    if (w == NULL || w->ended || w->spawn_error != 0)
        return;
    worker_send_signal(w, SIGTERM);
    uv_timer_start(&w->linger, on_complete_over, COMPLETE_MS, 0);
}

static void on_abort_over(uv_timer_t *timer)
{
    struct worker *w = timer->data;

    if (!w->ended)
        tell_shim(w, SIGKILL);
}

void workers_abort(struct workers *set, int rank, int status)
{
    struct worker *w = worker_of(set, rank);

    if (w == NULL || w->ended || w->spawn_error != 0)
        return;
    w->abort_code = status & 0xff;
    uv_timer_start(&w->linger, on_abort_over, ABORT_MS, 0);
}

/* The command of a shim: its first child, which leads a session of its own. Other children of a
 * shim are orphans. 0: there is none. */
static pid_t command_of(pid_t shim)
{
    char path[64];
    int pid = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)shim, (int)shim);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &pid) != 1 || getsid(pid) != pid)
        pid = 0;
    fclose(file);
    return pid;
}

bool workers_process(const struct workers *set, int local_rank, struct worker_process *process)
{
    const struct worker *w = local_rank < set->count ? &set->list[local_rank] : NULL;

    if (w == NULL)
        return false;
    *process = (struct worker_process){.rank = w->rank, .ended = w->ended || w->spawn_error != 0};
    if (!process->ended)
        process->pid = command_of(uv_process_get_pid(&w->process));
    return true;
}

bool workers_may_signal(int signal)
{
    return signal >= 1 && signal != SIGSTOP && signal != SIGCHLD && signal != EXEC_WORKER_KILL &&
           signal != EXEC_WORKER_TERM &&
           (signal <= SIGSYS || (signal >= SIGRTMIN && signal <= SIGRTMAX));
}

void workers_end_stopped(struct workers *set, double seconds)
{
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];
        uint64_t now = uv_now(set->loop);
        pid_t command = w->ended || w->spawn_error != 0 || w->killed != NULL
                            ? 0
                            : command_of(uv_process_get_pid(&w->process));

        if (command == 0 || process_state(command) != 'T') {
            w->stopped_at = 0;
        } else if (w->stopped_at == 0) {
            w->stopped_at = now;
        } else if ((double)(now - w->stopped_at) >= seconds * 1000 &&
                   asprintf(&w->killed, "it had been stopped (SIGSTOP) for %.0f s",
                            (double)(now - w->stopped_at) / 1000) >= 0) {
            tell_shim(w, SIGKILL);
        }
    }
}

void workers_forgive_stopped(struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        set->list[i].stopped_at = 0;
}

static bool signal_worker(struct worker *w, int signal, bool force)
{
    if (w->ended || w->spawn_error != 0)
        return false;
    if (tell_shim(w, signal) != 0)
        return false;
    if (force && signal != SIGKILL && !uv_is_active((uv_handle_t *)&w->linger))
        uv_timer_start(&w->linger, on_abort_over, TERMINATE_MS, 0);
    return true;
}

int workers_signal(struct workers *set, int rank, int signal, bool force)
{
    int count = 0;

    for (int i = 0; i < set->count; i++)
        if (rank < 0 || set->list[i].rank == rank)
            count += signal_worker(&set->list[i], signal, force);
    return count;
}

void workers_pass_signal(struct workers *set, int signal)
{
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        if (!w->ended && w->spawn_error == 0)
            sigqueue(uv_process_get_pid(&w->process), signal,
                     (union sigval){.sival_int = EXEC_WORKER_PASSED});
    }
}
