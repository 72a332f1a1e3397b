/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting the workers of one generation: files, environment, command line, pipes, processes.
 *
 * From then on workers.c watches them. */
#include "agent/workers/workers_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/workers/binding.h"
#include "common/memory.h"
#include "lib/text.h"

#define UNAWARE_MS 15000 /* for a script that uses libelastic to import its modules and attach */

/* ---- a process ------------------------------------------------------------------------------- */

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

static char *const *command_of(const struct workers_options *options, int local_rank)
{
    return options->argvs != NULL ? options->argvs[local_rank] : options->argv;
}

static int build_shim_command(struct shim_command *shim, const struct workers_options *options,
                              char *const *command, const char *cpus)
{
    size_t count = strings_count(command), at = 0;

    *shim = (struct shim_command){0};
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
    memcpy(shim->argv + at, command, count * sizeof(*shim->argv));
    return 0;
}

static int spawn(struct worker *w, const struct workers_options *options, char **env,
                 const char *cpus, const int *theirs)
{
    struct shim_command shim;
    uv_stdio_container_t stdio[4] = {{.flags = UV_IGNORE}};
    uv_process_options_t spawn = {
        .exit_cb = worker_on_exit,
        /* Not `program`: an upgrade may have put another release there, and this agent goes on. */
        .file = "/proc/self/exe",
        .env = env,
        .flags = UV_PROCESS_DETACHED, /* a terminal's ^C is for the agent to judge */
        .stdio_count = 4,
        .stdio = stdio,
    };
    int rc = build_shim_command(&shim, options, command_of(options, w->local_rank), cpus);

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

/* Make a pipe and keep its reading end; *theirs is the writing end, for the shim. A pipe and not
 * libuv's socket pair, since a script may open /dev/stdout. */
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
            uv_close((uv_handle_t *)&w->process, worker_handle_closed);
    }
    for (int i = 1; i < 4; i++)
        if (theirs[i] >= 0)
            close(theirs[i]);
    w->spawn_error = rc;
    if (rc == 0)
        worker_watch(w);
    else
        worker_fail_start(w);
}

/* ---- all of them ----------------------------------------------------------------------------- */

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
        (set->command = strdup(command_of(options, 0)[0])) == NULL ||
        (set->cwd = strdup(options->cwd != NULL ? options->cwd : ".")) == NULL ||
        (set->run_dir = strdup(options->place.run_dir)) == NULL) {
        error_set(err, "out of memory");
        if (set != NULL)
            workers_free(set);
        return NULL;
    }
    set->count = set->unreported = world->nodes[node].slots;
    set->oom_kills = memory_oom_kills("");
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        w->workers = set;
        w->local_rank = i;
        w->rank = world_first_rank(world, node) + i;
        if (make_files(w, options, world->generation, err) != 0) {
            workers_remove_files(set);
            workers_free(set);
            return NULL;
        }
    }
    set->patience_ms = options->patience_ms;
    workers_place(set, world, node, options->attempt);
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

/* ---- binding --------------------------------------------------------------------------------- */

/* Slurm's numbers of GPUs are those of the node. Where Slurm renumbers for a cgroup, CUDA's numbers
 * are not. */
char **workers_cpus(int slots, char *const *own_env)
{
    static const char *const names[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES"};
    const char *gpus = NULL;

    if (slots < 2)
        return NULL;
    for (size_t i = 0; gpus == NULL && i < sizeof(names) / sizeof(names[0]); i++)
        gpus = strings_filled_value(own_env, names[i]);
    return binding_split(binding_of_machine(), slots, gpus);
}
