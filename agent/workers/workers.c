/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of one generation on this member (workers.h), from when they have been started (worker_start.c).
 *
 * Each worker is a shim (exec_worker.c) and, below it, the user's command with all that it
 * starts. A worker is over when its shim has ended, which follows the end of everything below
 * it, and its pipes are at their end of file.
 *
 *   uv_spawn ─ status pipe ends: the command runs ─ … ─ shim ends ─ pipes end ─ exited
 *
 * An escaped process (its descriptors handed to a stranger, or it hangs in the kernel) may keep
 * the pipes open: they are given up LINGER_MS after the shim's end. */
#include "agent/workers/workers_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/workers/process_tree.h"
#include "agent/workers/worker_error.h"

#define LINGER_MS     1000
#define KILL_AGAIN_MS 500
#define ABORT_MS      1000
#define TERMINATE_MS  10000
#define COMPLETE_MS   300 /* for who has saved to end by itself */

static void report_if_over(struct worker *w);

/* ---- memory and files ------------------------------------------------------------------------ */

void workers_free(struct workers *set)
{
    for (int i = 0; set->list != NULL && i < set->count; i++) {
        event_destroy(set->list[i].event);
        worker_drop_older(&set->list[i], false);
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
        for (const struct older *each = set->list[i].older; each != NULL; each = each->older)
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
    set->stepping |= some && all; /* what live ones train is known by the first step of each */
    if (begun && !set->begun) {
        set->begun = true;
        set->handlers.begun(set->arg);
    }
    if (!attached &&
        (set->declared || joined || uv_now(set->loop) - set->ready_at >= set->unaware_ms))
        set->stepping = true;
    if (!set->stepping)
        return;
    uv_timer_stop(&set->poll);
    set->handlers.stepping(set->arg);
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

/* What a worker that has ended left in its pipes is bounded, and read even while output is
 * paused. */
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

static void report(struct worker *w)
{
    struct workers *set = w->workers;
    struct worker_exit end = {.rank = w->rank, .code = w->code, .signal = w->signal};

    /* Who is told that its world is torn is to live on. */
    end.told = w->stop_signal != 0 || (!set->torn && event_read(w->event).told);
    end.early = end.code == 0 && end.signal == 0 && !end.told && worker_is_early(w);
    end.local_rank = w->local_rank;
    if (w->failure.stage != 0 || w->spawn_error != 0)
        end.error = start_failure(w);
    else if (w->killed != NULL)
        end.error = worker_error_new(w->killed);
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
    if (!set->dropped)
        set->handlers.drained(set->arg); /* the last use of set: it may be destroyed inside */
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
    /* Our own way of killing, when it came before the shim was ready for it. */
    w->signal = signal == EXEC_WORKER_KILL ? SIGKILL : signal;
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

static void send_signal(struct worker *w, int signal)
{
    if (w->ended || w->spawn_error != 0)
        return;
    if (w->stop_signal != signal)
        uv_process_kill(&w->process, signal);
    w->stop_signal = signal;
}

void workers_run_to(struct workers *set, uint64_t step)
{
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        if (w->ended)
            continue;
        event_run_to(w->older != NULL ? w->older->event : w->event, step);
        /* The others are at work, and this one has never looked at its page: it will not see the
         * step either. */
        if (w->older == NULL && event_read(w->event).state == EVENT_STATE_NONE)
            send_signal(w, SIGTERM);
    }
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void kill_worker(struct worker *w)
{
    if (w->ended || w->spawn_error != 0)
        return;
    uv_process_kill(&w->process, EXEC_WORKER_KILL);
    if (w->stop_signal == SIGKILL)
        uv_process_kill(&w->process, SIGCONT); /* the second time: the shim may be stopped */
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

/* Signal all, or with notice each in its own way. Returns how many have not been signalled, since they are told otherwise. */
static int stop(struct workers *set, int signal, double grace, bool notice)
{
    bool at_once = signal == SIGKILL || !(grace > 0);
    int others = 0;

    for (int i = 0; i < set->count && !at_once; i++) {
        struct worker *w = &set->list[i];

        if (notice && w->by_event)
            others += !w->ended;
        else
            send_signal(w, notice && w->notice_signal > 0 ? w->notice_signal : signal);
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
    w->notice_signal = signal;
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
    send_signal(w, SIGTERM);
    uv_timer_start(&w->linger, on_complete_over, COMPLETE_MS, 0);
}

static void on_abort_over(uv_timer_t *timer)
{
    struct worker *w = timer->data;

    if (!w->ended)
        uv_process_kill(&w->process, EXEC_WORKER_KILL);
}

void workers_abort(struct workers *set, int rank)
{
    struct worker *w = worker_of(set, rank);

    if (w != NULL && !w->ended && w->spawn_error == 0)
        uv_timer_start(&w->linger, on_abort_over, ABORT_MS, 0);
}

/* The command of a shim: its first child, which leads a session of its own (what else the shim may get are orphans). 0: there is none. */
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
                   asprintf(
                       &w->killed,
                       "it had been stopped (SIGSTOP) for %.0f s, while all others waited for it",
                       (double)(now - w->stopped_at) / 1000) >= 0) {
            uv_process_kill(&w->process, EXEC_WORKER_KILL);
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
    /* The shim's death would leave the command alone. */
    if (uv_process_kill(&w->process, signal == SIGKILL ? EXEC_WORKER_KILL : signal) != 0)
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
    return false; /* it is another node's */
}

int workers_running(const struct workers *set)
{
    int running = 0;

    for (int i = 0; i < set->count; i++)
        running += !set->list[i].ended;
    return running;
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
