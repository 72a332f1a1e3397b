/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the workers share. worker_start.c: until they are started; workers.c: from then on; worker_worlds.c: from world to world. */
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

/* The page of a world that a worker is to leave for the next one. A world can be torn before all have entered it. */
struct older {
    struct event *event;
    struct older *older;
};

struct worker {
    struct workers *workers;
    int rank, local_rank;
    struct event *event;
    struct older *
        older; /* the worlds that it may still be in, the latest first; NULL: it is in that of event */
    char *error_file;
    uv_process_t process;
    uv_timer_t linger;
    struct pipe out, err, status;
    struct exec_worker_failure failure; /* of exec; stage 0: none */
    size_t failure_bytes;
    int spawn_error;   /* libuv's, 0: the shim was started */
    int stop_signal;   /* the last one that we sent, 0: none */
    bool joined;       /* has initialised PMIx */
    bool by_event;     /* is told otherwise than by a signal */
    int notice_signal; /* wants this one; 0: the usual one */
    bool ended;        /* the shim is reaped */
    bool reported;
    int code, signal;
    uint64_t
        stopped_at; /* when it was first seen to be stopped (SIGSTOP), in the loop's time; 0: it runs */
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
    uv_timer_t poll, kill;
    uint64_t ready_at, unaware_ms;
    int patience_ms;
    bool ready, begun, stepping, paused;
    bool declared; /* one of them has said how it wants to be told to leave: it is at work */
    bool noticed;  /* they have been told to leave, each in its own way */
    bool gated;    /* waiting for workers_open */
    bool parked;
    bool torn;    /* their world is, and what they are to do has not been said */
    bool moving;  /* some are still in the world before this one */
    bool dropped; /* workers_destroy was called: tell nobody, free when all handles are closed */
    char chunk[CHUNK_BYTES]; /* one read at a time, handed on at once */
};

/* workers.c */
/* Read its output and whether its command can be executed. */
void worker_watch(struct worker *w);
/* It could not be started (spawn_error): told from the loop as its end. */
void worker_fail_start(struct worker *w);
/* For libuv: its shim has ended; a handle of it is closed, of those that are counted. */
void worker_on_exit(uv_process_t *process, int64_t code, int signal);
void worker_handle_closed(uv_handle_t *handle);
void workers_remove_files(struct workers *set);
/* Look at their pages so often. */
void workers_poll_every(struct workers *set, int ms);
/* No handle of it is left in the loop. */
void workers_free(struct workers *set);

/* worker_worlds.c */
/* The worlds that it has left, with their files. */
void worker_drop_older(struct worker *w, bool unlink);
/* Is it live, and has not said in any world that it is through? */
bool worker_is_early(const struct worker *w);
/* Have all entered the world that they are to go on in? */
void workers_poll_move(struct workers *set);

#endif
