/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of one generation on this member (workers.h), after worker_start.c has started them.
 *
 * Each worker is a shim (exec_worker.c) and, below it, the user's command with all processes that
 * it starts. A worker is over when its shim has ended and its pipes are at their end of file. The
 * shim ends after all processes below it.
 *
 *   uv_spawn ─ status pipe ends: the command runs ─ … ─ shim ends ─ pipes end ─ exited
 *
 * A process that has escaped may keep the pipes open: its descriptors were handed to another
 * process, or it hangs in the kernel. So the pipes are given up LINGER_MS after the shim's end. */
#include "agent/workers/workers_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/workers/process_tree.h"
#include "agent/workers/worker_error.h"
#include "common/memory.h"

#define LINGER_MS 1000

static void report_if_over(struct worker *w);

/* ---- memory and files ------------------------------------------------------------------------ */

void workers_free(struct workers *set)
{
    for (int i = 0; set->list != NULL && i < set->count; i++) {
        event_destroy(set->list[i].event);
        worker_drop_previous(&set->list[i], false);
        free(set->list[i].error_file);
        free(set->list[i].killed);
    }
    free(set->list);
    free(set->command);
    free(set->cwd);
    free(set->run_dir);
    free(set);
}

void workers_remove_files(struct workers *set)
{
    for (int i = 0; i < set->count; i++) {
        if (set->list[i].event != NULL)
            event_unlink(set->list[i].event);
        for (const struct previous_page *each = set->list[i].previous; each != NULL;
             each = each->previous)
            event_unlink(each->event);
        if (set->list[i].error_file != NULL)
            unlink(set->list[i].error_file);
    }
}

static void handle_closed(struct workers *set)
{
    if (--set->handles == 0 && set->dropped)
        workers_free(set);
}

void worker_handle_closed(uv_handle_t *handle)
{
    handle_closed(((struct worker *)handle->data)->workers);
}

static void on_timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void on_pipe_closed(uv_handle_t *handle)
{
    handle_closed(((struct pipe *)handle->data)->worker->workers);
}

static void close_pipe(struct pipe *pipe)
{
    if (!pipe->open)
        return;
    pipe->open = false;
    uv_close((uv_handle_t *)&pipe->handle, on_pipe_closed);
}

/* Nothing is left to wait for: when the last handle is closed the set can be freed. */
static void close_timers(struct workers *set)
{
    if (!uv_is_closing((uv_handle_t *)&set->poll))
        uv_close((uv_handle_t *)&set->poll, on_timer_closed);
    if (!uv_is_closing((uv_handle_t *)&set->kill))
        uv_close((uv_handle_t *)&set->kill, on_timer_closed);
}

/* ---- gate and first boundary ----------------------------------------------------------------- */

static void poll_gate(struct workers *set)
{
    if (set->parked || workers_gate(set) < EVENT_AT_GATE)
        return;
    set->parked = true;
    set->handlers.parked(set->arg);
}

static void on_poll(uv_timer_t *timer)
{
    struct workers *set = timer->data;
    bool attached = false, begun = true, joined = true, some = false, all = true;

    if (set->moving) {
        workers_poll_move(set);
        return;
    }
    if (set->gated) {
        poll_gate(set);
        return;
    }

    for (int i = 0; i < set->count && !set->stepping; i++) {
        struct event_status status = event_read(set->list[i].event);

        attached |= status.state != EVENT_STATE_NONE;
        begun &= status.state != EVENT_STATE_NONE || set->list[i].joined || set->list[i].ended;
        joined &= set->list[i].joined;
        some |= status.step > 0 || status.waits;
        all &= !status.live || status.step > 0 || status.waits || set->list[i].ended;
    }
    /* The signature of live workers is known after the first step of each. */
    set->stepping |= some && all;
    if (begun && !set->begun) {
        set->begun = true;
        set->handlers.begun(set->arg);
    }
    if (!attached && (set->declared || joined)) {
        set->stepping = true;
    } else if (!attached && uv_now(set->loop) - set->ready_at >= set->unaware_ms) {
        set->stepping = set->unheard = true;
    }
    if (!set->stepping)
        return;
    uv_timer_stop(&set->poll);
    set->handlers.stepping(set->arg);
}

int workers_unheard(const struct workers *set)
{
    return set->unheard ? (int)((set->unaware_ms + 999) / 1000) : 0;
}

void workers_poll_every(struct workers *set, int ms)
{
    uv_timer_start(&set->poll, on_poll, (uint64_t)ms, (uint64_t)ms);
}

static void check_ready(struct workers *set)
{
    for (int i = 0; i < set->count; i++) {
        const struct worker *w = &set->list[i];

        if (w->status.open || w->failure.stage != 0 || w->spawn_error != 0)
            return;
    }
    if (set->ready || set->dropped)
        return;
    set->ready = true;
    set->ready_at = uv_now(set->loop);
    if (set->unreported > 0)
        workers_poll_every(set, POLL_MS);
    set->handlers.ready(set->arg);
}

/* ---- pipes ----------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct workers *set = ((struct pipe *)handle->data)->worker->workers;

    *buf = uv_buf_init(set->chunk, sizeof(set->chunk));
}

static void on_output(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct pipe *pipe = stream->data;
    struct worker *w = pipe->worker;
    struct workers *set = w->workers;

    if (got > 0 && !set->dropped)
        set->handlers.output(w->rank, pipe->fd, buf->base, (size_t)got, set->arg);
    if (got < 0) {
        close_pipe(pipe);
        report_if_over(w);
    }
}

static void on_status(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct pipe *pipe = stream->data;
    struct worker *w = pipe->worker;

    if (got > 0) {
        size_t room = sizeof(w->failure) - w->failure_bytes;
        size_t part = (size_t)got < room ? (size_t)got : room;

        memcpy((char *)&w->failure + w->failure_bytes, buf->base, part);
        w->failure_bytes += part;
        return;
    }
    if (got == 0)
        return;
    if (w->failure_bytes < sizeof(w->failure))
        memset(&w->failure, 0, sizeof(w->failure));
    close_pipe(pipe);
    check_ready(w->workers);
    report_if_over(w);
}

/* The rest in the pipes of an ended worker is limited, and is read even while output is paused. */
static void update_reading(struct worker *w)
{
    struct pipe *pipes[] = {&w->out, &w->err};

    for (int i = 0; i < 2; i++) {
        if (!pipes[i]->open)
            continue;
        if ((w->workers->paused || w->workers->gated) && !w->ended)
            uv_read_stop((uv_stream_t *)&pipes[i]->handle);
        else
            uv_read_start((uv_stream_t *)&pipes[i]->handle, on_alloc, on_output);
    }
}

void worker_watch(struct worker *w)
{
    update_reading(w);
    uv_read_start((uv_stream_t *)&w->status.handle, on_alloc, on_status);
}

/* ---- the end of a worker --------------------------------------------------------------------- */

static json_object *start_failure(const struct worker *w)
{
    const struct workers *set = w->workers;
    char text[1024];

    if (w->spawn_error != 0)
        snprintf(text, sizeof(text), "worker could not be started: %s",
                 uv_strerror(w->spawn_error));
    else if (w->failure.stage == EXEC_WORKER_CHDIR)
        snprintf(text, sizeof(text), "working directory %s: %s", set->cwd,
                 strerror(w->failure.error));
    else if (w->failure.stage == EXEC_WORKER_FORK)
        snprintf(text, sizeof(text), "worker could not be started: %s", strerror(w->failure.error));
    else if (w->failure.stage == EXEC_WORKER_INTERPRETER)
        snprintf(text, sizeof(text), "%s: the interpreter that its first line names does not exist",
                 set->command);
    else
        snprintf(text, sizeof(text), "%s: %s", set->command, strerror(w->failure.error));
    return worker_error_new(text);
}

/* Has the kernel killed this worker, or a process of it, for want of memory? Each kill explains one
 * worker's end. */
static bool is_out_of_memory(struct workers *set, const struct worker_exit *end)
{
    if ((end->signal != SIGKILL && end->code != 128 + SIGKILL) || end->told ||
        memory_oom_kills("") <= set->oom_kills)
        return false;
    set->oom_kills++;
    return true;
}

static void report(struct worker *w)
{
    struct workers *set = w->workers;
    struct worker_exit end = {.rank = w->rank, .code = w->code, .signal = w->signal};

    /* A worker that is told that its world is torn is to live on. */
    /* … and one that ends well after its last boundary has not ended because of a signal. */
    end.told = (w->stop_signal != 0 &&
                !(w->code == 0 && w->signal == 0 && event_read(w->event).finished)) ||
               (!set->torn && event_read(w->event).told);
    if (w->abort_code != 0 && w->signal == SIGKILL && !end.told) {
        end.code = w->abort_code;
        end.signal = 0;
    }
    end.early = end.code == 0 && end.signal == 0 && !end.told && worker_is_early(w);
    end.local_rank = w->local_rank;
    if (w->failure.stage != 0 || w->spawn_error != 0)
        end.error = start_failure(w);
    else if (w->killed != NULL)
        end.error = worker_error_new(w->killed);
    else if (is_out_of_memory(set, &end))
        end.error = worker_error_new("out of memory: the kernel has killed it; ask for more with "
                                     "--mem");
    else if (w->code != 0 || w->signal != 0)
        end.error = worker_error_read(w->error_file);
    set->handlers.exited(&end, set->arg);
    json_object_put(end.error);
}

static void report_if_over(struct worker *w)
{
    struct workers *set = w->workers;

    if (!w->ended || w->reported || w->out.open || w->err.open || w->status.open)
        return;
    w->reported = true;
    uv_timer_stop(&w->linger);
    uv_close((uv_handle_t *)&w->linger, worker_handle_closed);
    if (!set->dropped)
        report(w);
    if (--set->unreported > 0)
        return;
    close_timers(set);
    /* The last use of set: drained() may destroy it. */
    if (!set->dropped)
        set->handlers.drained(set->arg);
}

static void on_linger(uv_timer_t *timer)
{
    struct worker *w = timer->data;

    close_pipe(&w->out);
    close_pipe(&w->err);
    close_pipe(&w->status);
    check_ready(w->workers);
    report_if_over(w);
}

static void worker_ended(struct worker *w)
{
    w->ended = true;
    uv_timer_start(&w->linger, on_linger, LINGER_MS, 0);
    update_reading(w);
    report_if_over(w);
}

void worker_on_exit(uv_process_t *process, int64_t code, int signal)
{
    struct worker *w = process->data;

    w->code = signal != 0 ? 0 : (int)code;
    /* Our own ways to signal, when that came before the shim was ready for it. */
    w->signal = signal == EXEC_WORKER_KILL   ? SIGKILL
                : signal == EXEC_WORKER_TERM ? SIGTERM
                                             : signal;
    uv_close((uv_handle_t *)process, worker_handle_closed);
    worker_ended(w);
}

static void on_failed_start(uv_timer_t *timer)
{
    struct worker *w = timer->data;

    close_pipe(&w->out);
    close_pipe(&w->err);
    close_pipe(&w->status);
    w->code = 126;
    worker_ended(w);
}

void worker_fail_start(struct worker *w)
{
    uv_timer_start(&w->linger, on_failed_start, 0, 0);
}

/* ---- holding --------------------------------------------------------------------------------- */

void workers_hold(struct workers *set, const char *kind, const char *reason, int next_nodes,
                  int64_t deadline_ms, struct workers_held *held)
{
    *held = (struct workers_held){0};
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];
        struct event_status status;

        if (w->ended) {
            held->finished += w->code == 0 && w->signal == 0;
            continue;
        }
        status = event_hold(w->event, event_kind_of(kind), reason, next_nodes, deadline_ms);
        held->running++;
        held->through += status.finished;
        held->attached += status.state >= EVENT_STATE_ATTACHED;
        held->training += status.state >= EVENT_STATE_TRAINING;
        if (status.step > held->step)
            held->step = status.step;
    }
}

void workers_run_to(struct workers *set, uint64_t step)
{
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        if (w->ended)
            continue;
        event_run_to(w->previous != NULL ? w->previous->event : w->event, step);
        /* The other workers run. This worker has never looked at its page, so it will not see the
         * step either. */
        if (w->previous == NULL && event_read(w->event).state == EVENT_STATE_NONE)
            worker_send_signal(w, SIGTERM);
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

int workers_show_stacks(const struct workers *set)
{
    int count = 0;

    for (int i = 0; i < set->count; i++) {
        const struct worker *w = &set->list[i];
        struct event_status status = event_read(w->event);

        if (!w->ended && status.stacks_signal > 0 && status.stacks_signal <= SIGRTMAX)
            count += process_tree_signal(w->process.pid, status.stacks_pid, status.stacks_signal) ==
                     0;
    }
    return count;
}

void workers_open(struct workers *set, bool all)
{
    for (int i = 0; i < set->count && (all || i == 0); i++)
        event_open_gate(set->list[i].event);
    if (!set->gated)
        return;
    set->gated = false;
    set->ready_at = uv_now(set->loop);
    workers_pause_output(set, set->paused);
}

enum event_gate_place workers_gate(const struct workers *set)
{
    enum event_gate_place least = EVENT_PASSED_INIT;

    for (int i = 0; i < set->count; i++) {
        struct event_status status = event_read(set->list[i].event);

        if (status.place < least)
            least = status.place;
    }
    return least;
}

enum event_gate_place workers_gate_of(const struct workers *set, int local_rank)
{
    return event_read(set->list[local_rank].event).place;
}

uint64_t workers_memory(const struct workers *set)
{
    uint64_t bytes = 0;

    for (int i = 0; i < set->count; i++)
        if (!set->list[i].ended && set->list[i].spawn_error == 0)
            bytes += process_tree_memory(uv_process_get_pid(&set->list[i].process));
    return bytes;
}

uint64_t workers_step(const struct workers *set)
{
    uint64_t highest = 0;

    for (int i = 0; i < set->count; i++) {
        struct event_status status = event_read(set->list[i].event);

        if (status.step > highest)
            highest = status.step;
    }
    return highest;
}

bool workers_progress(const struct workers *set, struct event_progress *progress)
{
    for (int i = 0; i < set->count; i++)
        if (event_read_progress(set->list[i].event, progress))
            return true;
    return false;
}

bool workers_told(const struct workers *set, int rank)
{
    for (int i = 0; i < set->count; i++)
        if (set->list[i].rank == rank)
            return event_read(set->list[i].event).told;
    return false; /* the worker of another node */
}

void workers_pause_output(struct workers *set, bool pause)
{
    set->paused = pause;
    for (int i = 0; i < set->count; i++)
        update_reading(&set->list[i]);
}

void workers_destroy(struct workers *set)
{
    if (set == NULL || set->dropped)
        return;
    set->dropped = true;
    if (!uv_is_closing((uv_handle_t *)&set->poll))
        uv_timer_stop(&set->poll);
    workers_remove_files(set);
    if (set->unreported > 0) {
        workers_pause_output(set, false);
        workers_stop(set, SIGKILL, 0);
    } else if (set->handles == 0) {
        workers_free(set);
    }
}
