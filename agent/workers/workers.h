/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of one generation on this member: started, watched, held at a step, stopped. */
#ifndef ELASTIC_AGENT_WORKERS_WORKERS_H
#define ELASTIC_AGENT_WORKERS_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>
#include <uv.h>

#include "agent/workers/event.h"
#include "lib/error.h"
#include "lib/world.h"

struct workers;

struct worker_exit {
    int rank;
    int local_rank;
    int code;   /* exit status, 0 when ended by a signal */
    int signal; /* 0: none */
    /* It had been given an event, or was stopped by us: no failure when code is 0 or the signal
     * is ours. */
    bool told;
    bool early;         /* live mode: with 0, and it has not passed its last boundary */
    json_object *error; /* {"message", "extra"} from torchrun's error file, else NULL; borrowed */
};

struct workers_handlers {
    void (*ready)(void *arg);  /* every worker has been executed */
    void (*parked)(void *arg); /* started with a closed gate: all of them wait there */
    /* All of them are there: each has attached to its page or initialised PMIx. Or stepping() comes. */
    void (*begun)(void *arg);
    /* The first boundary was passed by one of them; or none has attached for a while
     * (unaware_ms) after ready: their script knows nothing of us. */
    void (*stepping)(void *arg);
    void (*exited)(const struct worker_exit *exit, void *arg);
    void (*drained)(void *arg); /* none is left, all their output has been handed on */
    /* Output of a worker as it comes (fd 1 or 2). */
    void (*output)(int rank, int fd, const char *data, size_t len, void *arg);
};

struct workers_options {
    const char *program; /* path of this elasticrun, for the shim */
    char *const *argv;   /* the user's command */
    const char *cwd;
    mode_t umask;
    char *const *user_env;
    char *const *own_env;
    bool gated;        /* close the gate: workers_open lets them begin */
    const char *files; /* how the names of their files begin; NULL: "worker" */
    int unaware_ms;    /* 0: 15 s */
    int attempt;       /* the leader's number of this world */
    int patience_ms;   /* in which agents notice that a worker or node is lost */
    char *const *cpus; /* that each worker is bound to, as workers_cpus() says; NULL: none */
    char *const *const *added; /* for each worker what place.added says, NULL: nothing */
    struct world_place
        place; /* added, local_rank, event_file and error_file are filled in per worker */
};

/* Start the workers of node place.node_index of world. Everything that the workers need later is
 * copied. Handlers are called from the loop, never from inside. A command that cannot be
 * executed is reported through exited with code 126/127 and error.message saying why ("python4:
 * No such file or directory"). */
struct workers *workers_start(uv_loop_t *loop, const struct world *world,
                              const struct workers_options *options,
                              const struct workers_handlers *handlers, void *arg,
                              struct error *err);

/* Live mode: can all of them go on in another world? */
bool workers_live(const struct workers *workers);
/* Have those that have not ended said that they can? */
bool workers_said_live(const struct workers *workers);
/* Does one of them wait for word that its world is torn? */
bool workers_ask(const struct workers *workers);
/* What they train (elastic_model_signature()): 0 if they have not said it, or not all the same. */
uint64_t workers_shape(const struct workers *workers);
/* Which ranks of which world they are; again only while they wait at their gates. */
void workers_place(struct workers *workers, const struct world *world, int node_index, int attempt);
/* Those that are held go on as the workers of that node of another world, once they have reached the step that workers_run_to() names
 * afterwards; files as in workers_options. ready() is called when all have, and stepping() as in a new world. */
int workers_move(struct workers *workers, const struct world *world, int node_index, int attempt,
                 const char *files, struct error *err);
/* … or leave, with save after the first of them has saved a checkpoint. */
void workers_dismiss(struct workers *workers, bool save);
/* The world that they are in, or about to enter, will not go on: they come out of it, and wait for workers_move() or workers_dismiss(). */
void workers_tear(struct workers *workers, const char *reason);
/* Have them show what they are doing. Returns how many can. */
int workers_show_stacks(const struct workers *workers);
/* Milliseconds of the longest step that one of them has made. */
uint32_t workers_slowest(const struct workers *workers);

/* Open the gates of all workers, or of the first only. Their output is handed on from here on. */
void workers_open(struct workers *workers, bool all);
/* By which call the workers have passed their gates: the least that holds for all of them. */
enum event_gate_place workers_gate(const struct workers *workers);
enum event_gate_place workers_gate_of(const struct workers *workers, int local_rank);
/* Resident memory in bytes of all the workers and what they have started, shared pages counted
 * each time. */
uint64_t workers_memory(const struct workers *workers);

/* The CPUs of each of so many workers on this node, as lists; free with strings_free. own_env tells its GPUs. NULL: there is
 * nothing to bind. */
char **workers_cpus(int slots, char *const *own_env);

struct workers_held {
    int attached, training, running, finished;
    int through;   /* of those that run: they have passed their last boundary */
    uint64_t step; /* highest step in flight of the running ones */
};

/* Publish the event, set HOLD on every running worker, say what they are committed to. The first
 * event stands: a second call only counts again. */
void workers_hold(struct workers *workers, const char *kind, const char *reason, int next_nodes,
                  int64_t deadline_ms, struct workers_held *held);
/* Let all run to this step. One that has never attached will not see it and gets SIGTERM. */
void workers_run_to(struct workers *workers, uint64_t step);

/* That one has initialised PMIx. */
void workers_joined(struct workers *workers, int rank);

/* How that one wants to be told that it has to leave: by whoever tells it otherwise (by_event), or by this signal; 0: as all others. Returns the seconds
 * that it still has when the others have been told already, so that it has to be told now; else 0. */
double workers_declare(struct workers *workers, int rank, bool by_event, int signal);
/* As workers_stop(), but each in its own way. Returns how many have not been signalled, since they are told otherwise: that is the
 * caller's to do. */
int workers_notice(struct workers *workers, int signal, double grace);
/* That one has saved what it wants to save: it may end now. */
void workers_complete(struct workers *workers, int rank);

/* Signal every worker still there: the user's command itself, and not twice with the same
 * signal. SIGKILL, for it and all that it has started, after grace seconds, at once if 0. A
 * later call can bring that forward, never put it off. */
void workers_stop(struct workers *workers, int signal, double grace);

/* Can a worker be sent that signal and nothing else? Not what the agent and its shims use among themselves, nor SIGSTOP: it would stop
 * the shim. */
bool workers_may_signal(int signal);
struct worker_process {
    int rank;
    pid_t pid; /* of the user's command; 0: it does not run (yet, or any more) */
    bool ended;
};

/* The worker of that local rank. False: there is none. */
bool workers_process(const struct workers *workers, int local_rank, struct worker_process *process);

/* Signal the worker of that rank, all if it is negative; its end is a failure like any other. With force: SIGKILL after SIGTERM if it is still there
 * after 10 s, SIGKILL also for what it has started. Returns how many there were. */
int workers_signal(struct workers *workers, int rank, int signal, bool force);

/* Kill those whose command has been stopped (SIGSTOP) at each call for so many seconds: for all others it is as dead. To be called every now and
 * then, or workers_forgive_stopped() when that could not be: all may have been stopped. */
void workers_end_stopped(struct workers *workers, double seconds);
void workers_forgive_stopped(struct workers *workers);

/* That one has given up, and may not end by itself: kill it after a second, as if it had been killed by somebody else. */
void workers_abort(struct workers *workers, int rank);

uint64_t workers_step(const struct workers *workers);
/* What the first of them that reports any has last reported of its progress. False: none does. */
bool workers_progress(const struct workers *workers, struct event_progress *progress);
/* Whether that one has been given the event, at the step after which all stop. */
bool workers_told(const struct workers *workers, int rank);
int workers_running(const struct workers *workers);

/* Stop or resume reading workers' output (back-pressure). */
void workers_pause_output(struct workers *workers, bool pause);

/* Free; only after drained (else kills first and frees itself when the loop has reaped them).
 * Removes its files. No handler is called any more. */
void workers_destroy(struct workers *workers);

/* `elasticrun --exec-worker …` (exec_worker.h): set parent-death signal, session and binding,
 * start the command and stay its parent. Returns the command's exit status, or ends by its
 * signal. */
int workers_exec_shim(int argc, char **argv);

#endif
