/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of one generation on this member (workers.h).
 *
 * Each worker is a shim (exec_worker.c) and, below it, the user's command with all that it
 * starts. A worker is over when its shim has ended, which follows the end of everything below
 * it, and its pipes are at their end of file.
 *
 *   uv_spawn ─ status pipe ends: the command runs ─ … ─ shim ends ─ pipes end ─ exited
 *
 * An escaped process (its descriptors handed to a stranger, or it hangs in the kernel) may keep
 * the pipes open: they are given up LINGER_MS after the shim's end. */
#include "agent/workers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/binding.h"
#include "agent/event.h"
#include "agent/exec_worker.h"
#include "agent/process_tree.h"
#include "agent/worker_error.h"

#define CHUNK_BYTES   65536
#define POLL_MS       100
#define UNAWARE_MS    15000 /* for a script that knows us to import what it needs and attach */
#define LINGER_MS     1000
#define KILL_AGAIN_MS 500
#define ABORT_MS      1000
#define COMPLETE_MS   300 /* for who has saved to end by itself */

struct pipe {
    struct worker *worker;
    uv_pipe_t handle;
    int fd;    /* 1, 2: output; 0: status */
    bool open; /* not yet at its end, nor given up */
};

struct worker {
    struct workers *workers;
    int rank, local_rank;
    struct event *event;
    char *error_file;
    uv_process_t process;
    uv_timer_t linger;
    struct pipe out, err, status;
    struct exec_worker_failure failure; /* of exec; stage 0: none */
    size_t failure_bytes;
    int spawn_error;   /* libuv's, 0: the shim was started */
    int stop_signal;   /* the last one that we sent, 0: none */
    bool by_event;     /* is told otherwise than by a signal */
    int notice_signal; /* wants this one; 0: the usual one */
    bool ended;        /* the shim is reaped */
    bool reported;
    int code, signal;
};

struct workers {
    uv_loop_t *loop;
    struct workers_handlers handlers;
    void *arg;
    char *command; /* argv[0] and cwd, for messages */
    char *cwd;
    struct worker *list;
    int count;
    int handles; /* of libuv, not closed yet */
    int unreported;
    uv_timer_t poll, kill;
    uint64_t ready_at, unaware_ms;
    bool ready, stepping, paused;
    bool declared; /* one of them has said how it wants to be told to leave: it is at work */
    bool gated;    /* waiting for workers_open */
    bool parked;
    bool dropped; /* workers_destroy was called: tell nobody, free when all handles are closed */
    char chunk[CHUNK_BYTES]; /* one read at a time, handed on at once */
};

static void report_if_over(struct worker *w);

/* ---- memory and files ------------------------------------------------------------------------ */

static void free_workers(struct workers *set)
{
    for (int i = 0; set->list != NULL && i < set->count; i++) {
        event_destroy(set->list[i].event);
        free(set->list[i].error_file);
    }
    free(set->list);
    free(set->command);
    free(set->cwd);
    free(set);
}

static void remove_files(struct workers *set)
{
    for (int i = 0; i < set->count; i++) {
        if (set->list[i].event != NULL)
            event_unlink(set->list[i].event);
        if (set->list[i].error_file != NULL)
            unlink(set->list[i].error_file);
    }
}

static void handle_closed(struct workers *set)
{
    if (--set->handles == 0 && set->dropped)
        free_workers(set);
}

static void on_worker_handle_closed(uv_handle_t *handle)
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
    bool attached = false;

    if (set->gated) {
        poll_gate(set);
        return;
    }

    for (int i = 0; i < set->count && !set->stepping; i++) {
        struct event_status status = event_read(set->list[i].event);

        attached |= status.state != EVENT_STATE_NONE;
        set->stepping |= status.step > 0;
    }
    if (!attached && (set->declared || uv_now(set->loop) - set->ready_at >= set->unaware_ms))
        set->stepping = true;
    if (!set->stepping)
        return;
    uv_timer_stop(&set->poll);
    set->handlers.stepping(set->arg);
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
        uv_timer_start(&set->poll, on_poll, POLL_MS, POLL_MS);
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

/* Make a pipe and keep its reading end; *theirs is the other one, for the shim. Pipes and not
 * libuv's socket pairs, since a script may open /dev/stdout. */
static int open_pipe(struct worker *w, struct pipe *pipe, int fd, int *theirs)
{
    uv_file ends[2];
    int rc = uv_pipe(ends, UV_NONBLOCK_PIPE, 0);

    if (rc != 0)
        return rc;
    pipe->worker = w;
    pipe->fd = fd;
    uv_pipe_init(w->workers->loop, &pipe->handle, 0);
    pipe->handle.data = pipe;
    pipe->open = true;
    w->workers->handles++;
    rc = uv_pipe_open(&pipe->handle, ends[0]);
    if (rc != 0) {
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    *theirs = ends[1];
    return 0;
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

    end.told = w->stop_signal != 0 || event_read(w->event).told;
    if (w->failure.stage != 0 || w->spawn_error != 0)
        end.error = start_failure(w);
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
    uv_close((uv_handle_t *)&w->linger, on_worker_handle_closed);
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

static void on_process_exit(uv_process_t *process, int64_t code, int signal)
{
    struct worker *w = process->data;

    w->code = signal != 0 ? 0 : (int)code;
    /* Our own way of killing, when it came before the shim was ready for it. */
    w->signal = signal == EXEC_WORKER_KILL ? SIGKILL : signal;
    uv_close((uv_handle_t *)process, on_worker_handle_closed);
    worker_ended(w);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* The argument list "elasticrun --exec-worker … -- command", and the strings in it that are made
 * for it. */
struct shim_command {
    char agent[32], umask[32], *cwd, *cpus;
    const char **argv;
};

static void free_shim_command(struct shim_command *shim)
{
    free(shim->cwd);
    free(shim->cpus);
    free(shim->argv);
}

static int build_shim_command(struct shim_command *shim, const struct workers_options *options,
                              const char *cpus)
{
    size_t count = 0, at = 0;

    *shim = (struct shim_command){0};
    while (options->argv[count] != NULL)
        count++;
    shim->argv = calloc(count + 9, sizeof(*shim->argv));
    if (shim->argv == NULL ||
        (options->cwd != NULL && asprintf(&shim->cwd, "--cwd=%s", options->cwd) < 0) ||
        (cpus != NULL && asprintf(&shim->cpus, "--cpus=%s", cpus) < 0))
        return UV_ENOMEM;
    snprintf(shim->agent, sizeof(shim->agent), "--agent=%d", (int)getpid());
    snprintf(shim->umask, sizeof(shim->umask), "--umask=%o", (unsigned)options->umask & 0777);
    shim->argv[at++] = options->program;
    shim->argv[at++] = EXEC_WORKER_OPTION;
    shim->argv[at++] = shim->agent;
    shim->argv[at++] = "--status=3";
    shim->argv[at++] = shim->umask;
    if (shim->cwd != NULL)
        shim->argv[at++] = shim->cwd;
    if (shim->cpus != NULL)
        shim->argv[at++] = shim->cpus;
    shim->argv[at++] = "--";
    memcpy(shim->argv + at, options->argv, count * sizeof(*shim->argv));
    return 0;
}

static int spawn(struct worker *w, const struct workers_options *options, char **env,
                 const char *cpus, const int *theirs)
{
    struct shim_command shim;
    uv_stdio_container_t stdio[4] = {{.flags = UV_IGNORE}};
    uv_process_options_t spawn = {
        .exit_cb = on_process_exit,
        .file = options->program,
        .env = env,
        .flags = UV_PROCESS_DETACHED, /* a terminal's ^C is for the agent to judge */
        .stdio_count = 4,
        .stdio = stdio,
    };
    int rc = build_shim_command(&shim, options, cpus);

    for (int i = 1; i < 4; i++) {
        stdio[i].flags = UV_INHERIT_FD;
        stdio[i].data.fd = theirs[i];
    }
    spawn.args = (char **)shim.argv;
    if (rc == 0)
        rc = uv_spawn(w->workers->loop, &w->process, &spawn);
    free_shim_command(&shim);
    return rc;
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

static void watch(struct worker *w)
{
    update_reading(w);
    uv_read_start((uv_stream_t *)&w->status.handle, on_alloc, on_status);
}

/* From here on the worker has handles in the loop, and whatever fails is told as its end, from
 * the loop. */
static void start_worker(struct worker *w, const struct workers_options *options, char **env,
                         const char *cpus)
{
    int theirs[4] = {-1, -1, -1, -1};
    int rc = env != NULL ? 0 : UV_ENOMEM;

    uv_timer_init(w->workers->loop, &w->linger);
    w->linger.data = w->process.data = w;
    w->workers->handles++;
    if (rc == 0)
        rc = open_pipe(w, &w->out, 1, &theirs[1]);
    if (rc == 0)
        rc = open_pipe(w, &w->err, 2, &theirs[2]);
    if (rc == 0)
        rc = open_pipe(w, &w->status, 0, &theirs[3]);
    if (rc == 0) {
        w->workers->handles++;
        rc = spawn(w, options, env, cpus, theirs);
        if (rc != 0)
            uv_close((uv_handle_t *)&w->process, on_worker_handle_closed);
    }
    for (int i = 1; i < 4; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    w->spawn_error = rc;
    if (rc == 0)
        watch(w);
    else
        uv_timer_start(&w->linger, on_failed_start, 0, 0);
}

static const char *variable(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; env != NULL && *env != NULL; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=' && (*env)[len + 1] != '\0')
            return *env + len + 1;
    return NULL;
}

/* Slurm's numbers are those of the node; where it renumbers for a cgroup, CUDA's are not. */
char **workers_cpus(int slots, char *const *own_env)
{
    static const char *const names[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES"};
    const char *gpus = NULL;

    if (slots < 2)
        return NULL;
    for (size_t i = 0; gpus == NULL && i < sizeof(names) / sizeof(names[0]); i++)
        gpus = variable(own_env, names[i]);
    return binding_split(binding_of_machine(), slots, gpus);
}

static int make_files(struct worker *w, const struct workers_options *options, int generation,
                      struct error *err)
{
    const char *run_dir = options->place.run_dir;
    const char *name = options->files != NULL ? options->files : "worker";
    char *path = NULL;

    if (asprintf(&w->error_file, "%s/%s-%d.error.json", run_dir, name, w->local_rank) < 0) {
        w->error_file = NULL;
        return error_set(err, "out of memory");
    }
    if (unlink(w->error_file) != 0 && errno != ENOENT)
        return error_set(err, "%s: cannot be removed: %s", w->error_file, strerror(errno));
    if (asprintf(&path, "%s/%s-%d.event", run_dir, name, w->local_rank) < 0)
        return error_set(err, "out of memory");
    w->event = event_create(path, generation, err);
    free(path);
    if (w->event == NULL)
        return -1;
    if (options->gated)
        event_close_gate(w->event);
    return 0;
}

static struct workers *create_set(const struct world *world, const struct workers_options *options,
                                  struct error *err)
{
    struct workers *set = calloc(1, sizeof(*set));
    int node = options->place.node_index;

    if (set == NULL ||
        (set->list = calloc((size_t)world->nodes[node].slots, sizeof(*set->list))) == NULL ||
        (set->command = strdup(options->argv[0])) == NULL ||
        (set->cwd = strdup(options->cwd != NULL ? options->cwd : ".")) == NULL) {
        error_set(err, "out of memory");
        if (set != NULL)
            free_workers(set);
        return NULL;
    }
    set->count = set->unreported = world->nodes[node].slots;
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        w->workers = set;
        w->local_rank = i;
        w->rank = world_first_rank(world, node) + i;
        if (make_files(w, options, world->generation, err) != 0) {
            remove_files(set);
            free_workers(set);
            return NULL;
        }
    }
    return set;
}

struct workers *workers_start(uv_loop_t *loop, const struct world *world,
                              const struct workers_options *options,
                              const struct workers_handlers *handlers, void *arg, struct error *err)
{
    struct workers *set = create_set(world, options, err);
    struct world_place place = options->place;

    if (set == NULL)
        return NULL;
    set->loop = loop;
    set->gated = options->gated;
    set->handlers = *handlers;
    set->arg = arg;
    set->unaware_ms = options->unaware_ms > 0 ? (uint64_t)options->unaware_ms : UNAWARE_MS;
    uv_timer_init(loop, &set->poll);
    uv_timer_init(loop, &set->kill);
    set->poll.data = set->kill.data = set;
    set->handles = 2;
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];
        char **env;

        place.local_rank = i;
        place.added = options->added != NULL ? options->added[i] : NULL;
        place.event_file = event_path(w->event);
        place.error_file = w->error_file;
        env = world_environment(world, &place, options->user_env, options->own_env);
        start_worker(w, options, env, options->cpus != NULL ? options->cpus[i] : NULL);
        strings_free(env);
    }
    return set;
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
        event_run_to(w->event, step);
        /* The others are at work, and this one has never looked at its page: it will not see the
         * step either. */
        if (event_read(w->event).state == EVENT_STATE_NONE)
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

void workers_declare(struct workers *set, int rank, bool by_event, int signal)
{
    struct worker *w = worker_of(set, rank);

    if (w == NULL)
        return;
    set->declared = true;
    w->by_event = by_event;
    w->notice_signal = signal;
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

/* ---- the rest -------------------------------------------------------------------------------- */

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
    remove_files(set);
    if (set->unreported > 0) {
        workers_pause_output(set, false);
        workers_stop(set, SIGKILL, 0);
    } else if (set->handles == 0) {
        free_workers(set);
    }
}
