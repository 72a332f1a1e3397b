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
    /* The worker had been given an event, or the agent has stopped it. Then its end is no failure
     * when code is 0 or the signal is the agent's. */
    bool told;
    bool early;         /* live mode: the worker ended with 0 before its last boundary */
    json_object *error; /* {"message", "extra"} from torchrun's error file, else NULL; borrowed */
};

struct workers_handlers {
    void (*ready)(void *arg);  /* every worker has been executed */
    void (*parked)(void *arg); /* started with a closed gate: all workers wait there */
    /* All workers are there: each has attached to its page or initialised PMIx. Or stepping()
     * comes. */
    void (*begun)(void *arg);
    /* A worker has passed its first boundary. Or no worker has attached for a while (unaware_ms)
     * after ready: their script does not use libelastic. */
    void (*stepping)(void *arg);
    void (*exited)(const struct worker_exit *exit, void *arg);
    void (*drained)(void *arg); /* no worker is left, and all output has been handed on */
    /* Output of a worker as it comes (fd 1 or 2). */
    void (*output)(int rank, int fd, const char *data, size_t len, void *arg);
};

struct workers_options {
    const char *program;       /* path of this elasticrun: what the shim is called */
    char *const *argv;         /* the user's command */
    char *const *const *argvs; /* the command of each worker; NULL: argv for all of them */
    const char *cwd;
    mode_t umask;
    char *const *user_env;
    char *const *own_env;
    bool gated;        /* close the gate: workers_open lets the workers begin */
    const char *files; /* beginning of the names of the workers' files; NULL: "worker" */
    int unaware_ms;    /* 0: 15 s */
    int attempt;       /* the leader's number of this world */
    int patience_ms;   /* milliseconds in which agents notice that a worker or node is lost */
    char *const *cpus; /* CPUs of each worker, as workers_cpus() returns them; NULL: no binding */
    char *const *const *added; /* place.added of each worker, NULL: none */
    /* added, local_rank, event_file and error_file are filled in for each worker. */
    struct world_place place;
};

/* Start the workers of node place.node_index of world. Everything that the workers need later is
 * copied. Handlers are called from the loop, never from inside a function of this file.
 *
 * A command that cannot be executed is reported through exited, with code 126 or 127 and
 * error.message saying why ("python4: No such file or directory"). */
struct workers *workers_start(uv_loop_t *loop, const struct world *world,
                              const struct workers_options *options,
                              const struct workers_handlers *handlers, void *arg,
                              struct error *err);

/* Has stepping() been called only because no worker had attached after so many seconds? 0: no. A
 * script that imports for longer may use libelastic all the same. */
int workers_unheard(const struct workers *workers);

/* Live mode: can all workers go on in another world? */
bool workers_live(const struct workers *workers);
/* Have all workers that have not ended said that they can? */
bool workers_said_live(const struct workers *workers);
/* Does a worker wait to hear that its world is torn? */
bool workers_ask(const struct workers *workers);
/* The signature of the model that the workers train (elastic_model_signature()). 0: they have not
 * said it, or they differ. */
uint64_t workers_signature(const struct workers *workers);
/* Give the workers their ranks in a world. It can be called again only while they wait at their
 * gates. */
void workers_place(struct workers *workers, const struct world *world, int node_index, int attempt);
/* Workers that are held go on as the workers of that node of another world, once they have reached
 * the step that workers_run_to() names after this call. files: as in workers_options. ready() is
 * called when all workers have entered the world, and stepping() as in a new world. */
int workers_move(struct workers *workers, const struct world *world, int node_index, int attempt,
                 const char *files, struct error *err);
/* Workers that are held leave. With save they leave after the first of them has saved a
 * checkpoint. */
void workers_dismiss(struct workers *workers, bool save);
/* The world that the workers are in, or about to enter, will not go on. They leave it, and wait for
 * workers_move() or workers_dismiss(). */
void workers_tear(struct workers *workers, const char *reason);
/* Make the workers show their stacks. Returns how many can. */
int workers_show_stacks(const struct workers *workers);
/* Milliseconds of the longest step that a worker has made. */
uint32_t workers_slowest(const struct workers *workers);
/* Bytes of their state that the workers have exchanged with others in their present worlds. */
int64_t workers_moved(const struct workers *workers);

/* What that worker itself has needed for its steps in its world; zero: it has reported nothing. */
struct event_own workers_own(const struct workers *workers, int local_rank);

/* Open the gates of all workers, or of the first worker only. Their output is handed on from then
 * on. */
void workers_open(struct workers *workers, bool all);
/* The call by which the workers have passed their gates: the least that holds for all of them. */
enum event_gate_place workers_gate(const struct workers *workers);
enum event_gate_place workers_gate_of(const struct workers *workers, int local_rank);
/* Resident memory in bytes of all workers and the processes that they have started. Shared pages
 * count each time. */
uint64_t workers_memory(const struct workers *workers);

/* The CPUs of each of `slots` workers on this node, as lists; free with strings_free. own_env names
 * the GPUs. NULL: there is nothing to bind. */
char **workers_cpus(int slots, char *const *own_env);

struct workers_held {
    int attached, training, running, finished;
    int through;   /* running workers that have passed their last boundary */
    uint64_t step; /* highest step in flight of the running workers */
};

/* Publish the event, set HOLD on every running worker, and report the steps that they are in. The
 * first event stands: a second call only counts again. */
void workers_hold(struct workers *workers, const char *kind, const char *reason, int next_nodes,
                  int64_t deadline_ms, struct workers_held *held);
/* Let all workers run to this step. A worker that has never attached will not see the step, and
 * gets SIGTERM. */
void workers_run_to(struct workers *workers, uint64_t step);

/* That worker has initialised PMIx. */
void workers_joined(struct workers *workers, int rank);

/* How that worker wants to be told to leave: by an event that somebody else sends (by_event), or by
 * this signal; 0: as all others. Returns 0, or the seconds that the worker has left, if the others
 * have been told already: then the caller has to tell this worker now. */
double workers_declare(struct workers *workers, int rank, bool by_event, int signal);
/* As workers_stop(), but each worker in the way that it has declared. Returns the number of workers
 * that get an event instead of a signal: the caller has to send it. */
int workers_notice(struct workers *workers, int signal, double grace);
/* That worker has saved everything that it wants to save: it may end now. */
void workers_complete(struct workers *workers, int rank);

/* Signal every worker that still runs: the user's command itself, and not twice with the same
 * signal. After grace seconds (0: at once) SIGKILL follows, for the command and all that it has
 * started. A later call can make that time shorter, never longer. */
void workers_stop(struct workers *workers, int signal, double grace);

/* Can a worker be sent that signal without side effects? Not the signals that the agent and its
 * shims use among themselves, nor SIGSTOP, which would stop the shim. */
bool workers_may_signal(int signal);
struct worker_process {
    int rank;
    pid_t pid; /* of the user's command; 0: it does not run yet, or not any more */
    bool ended;
};

/* Describe the worker of that local rank. False: there is none. */
bool workers_process(const struct workers *workers, int local_rank, struct worker_process *process);

/* Signal the worker of that rank, all workers if rank is negative. The end of a worker is then a
 * failure like any other. With force, SIGKILL follows 10 s after SIGTERM if the worker is still
 * there; SIGKILL also ends the processes that it has started. Returns the number of signalled
 * workers. */
int workers_signal(struct workers *workers, int rank, int signal, bool force);

/* Hand a signal of Slurm's to all workers, but not to a worker that gets Slurm's signals itself. */
void workers_pass_signal(struct workers *workers, int signal);

/* Kill workers whose command has been stopped (SIGSTOP) at each call for that many seconds: to all
 * others they are as dead. To be called regularly. Call workers_forgive_stopped() instead after a
 * time without calls: then everything may have been stopped. */
void workers_end_stopped(struct workers *workers, double seconds);
void workers_forgive_stopped(struct workers *workers);

/* That worker has given up with this status, and may not end by itself: kill it after a second. It
 * then counts as ended with the low byte of the status, as by exit(); with 0, as killed. */
void workers_abort(struct workers *workers, int rank, int status);

uint64_t workers_step(const struct workers *workers);
/* The last progress report of the first worker that has made one. False: none has. */
bool workers_progress(const struct workers *workers, struct event_progress *progress);
/* Has that worker been given the event, at the step after which all stop? */
bool workers_told(const struct workers *workers, int rank);
/* Has each worker ended with 0, or passed its last boundary? Then they are ending by themselves. */
bool workers_through(const struct workers *workers);

/* Stop or resume reading workers' output (back-pressure). */
void workers_pause_output(struct workers *workers, bool pause);

/* Free. Before drained() it kills the workers first, and frees itself when the loop has reaped
 * them. Removes the files of the workers. No handler is called any more. */
void workers_destroy(struct workers *workers);

/* `elasticrun --exec-worker …` (exec_worker.h): set parent-death signal, session and binding,
 * start the command and stay its parent. Returns the command's exit status, or ends by its
 * signal. */
int workers_exec_shim(int argc, char **argv);

#endif
