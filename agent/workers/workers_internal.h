/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the workers share.
 *
 * worker_start.c starts the workers; workers.c watches them; worker_worlds.c leads them from world
 * to world; worker_signals.c sends them signals. */
#ifndef ELASTIC_AGENT_WORKERS_WORKERS_INTERNAL_H
#define ELASTIC_AGENT_WORKERS_WORKERS_INTERNAL_H

#include "agent/workers/event.h"
#include "agent/workers/exec_worker.h"
#include "agent/workers/workers.h"

#define CHUNK_BYTES 65536
#define POLL_MS     100

struct pipe {
    struct worker *worker;
    uv_pipe_t handle;
    int fd;    /* 1, 2: output; 0: status */
    bool open; /* not yet at its end, nor given up */
};

/* The page of a world that a worker is to leave for the next world. A world can be torn before all
 * workers have entered it. */
struct previous_page {
    struct event *event;
    struct previous_page *previous;
};

struct worker {
    struct workers *workers;
    int rank, local_rank;
    struct event *event;
    /* Pages of the worlds that the worker may still be in, the latest first. NULL: the worker is in
     * the world of `event`. */
    struct previous_page *previous;
    char *error_file;
    uv_process_t process;
    uv_timer_t linger;
    struct pipe out, err, status;
    struct exec_worker_failure failure; /* of exec; stage 0: none */
    size_t failure_bytes;
    int spawn_error;   /* libuv's, 0: the shim was started */
    int stop_signal;   /* the last signal that we sent, 0: none */
    bool joined;       /* has initialised PMIx */
    bool by_event;     /* is told otherwise than by a signal */
    int notice_signal; /* signal by which it wants to be told to leave; 0: the usual signal */
    bool ended;        /* the shim is reaped */
    bool reported;
    int code, signal;
    int abort_code; /* it has given up with this status; 0: it has not */
    /* When the worker was first seen to be stopped (SIGSTOP), on the loop's clock; 0: it runs. */
    uint64_t stopped_at;
    char *killed;     /* why we have killed it, which counts as its failure; NULL: we have not */
    uint32_t slowest; /* milliseconds of its longest step in all worlds before */
};

struct workers {
    uv_loop_t *loop;
    struct workers_handlers handlers;
    void *arg;
    char *command; /* argv[0] and cwd, for messages */
    char *cwd;
    char *run_dir;
    struct worker *list;
    int count;
    int handles; /* of libuv, not closed yet */
    int unreported;
    uint64_t oom_kills; /* by the kernel in our memory cgroup, before these workers or explained */
    uv_timer_t poll, kill;
    uint64_t ready_at, unaware_ms;
    int patience_ms;
    bool ready, begun, stepping, paused;
    bool unheard;  /* no worker had attached after unaware_ms */
    bool declared; /* a worker has said how it wants to be told to leave, so it is at work */
    bool noticed;  /* the workers have been told to leave, each in its own way */
    bool gated;    /* waiting for workers_open */
    bool parked;
    bool torn;   /* the workers' world is torn, and what follows has not been said */
    bool moving; /* some workers are still in the world before this one */
    /* workers_destroy was called: call no handler, free when all handles are closed. */
    bool dropped;
    char chunk[CHUNK_BYTES]; /* one piece of output, handed on at once */
};

/* workers.c */
/* Read its output and whether its command can be executed. */
void worker_watch(struct worker *w);
/* The worker could not be started (spawn_error): the loop reports that as its end. */
void worker_fail_start(struct worker *w);
/* For libuv: the shim of a worker has ended; a counted handle of a worker is closed. */
void worker_on_exit(uv_process_t *process, int64_t code, int signal);
void worker_handle_closed(uv_handle_t *handle);
void workers_remove_files(struct workers *set);
/* Look at the workers' pages every that many milliseconds. */
void workers_poll_every(struct workers *set, int ms);
/* Free a set that has no handle in the loop any more. */
void workers_free(struct workers *set);

/* worker_signals.c */
/* Send a signal to the worker's shim, which hands it on, but not the same one twice in a row. */
void worker_send_signal(struct worker *w, int signal);

/* worker_worlds.c */
/* Drop the pages of the worlds that the worker has left; with unlink also their files. */
void worker_drop_previous(struct worker *w, bool unlink);
/* Is the worker live, and has it not passed its last boundary in any world? */
bool worker_is_early(const struct worker *w);
/* Have all workers entered the world that they are to go on in? */
void workers_poll_move(struct workers *set);

#endif
