/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libelastic: the C interface between a worker process and its elastic job. Link with -lelastic.
 *
 *     elastic_init();
 *     while (training) {
 *         one_step();
 *         if (elastic_event_test(&event) == 1) {
 *             save_checkpoint();
 *             exit(0);
 *         }
 *     }
 *
 * Words: a worker is one training process. A world is all workers that train together, with their
 * ranks. Each change of membership makes a new world; its number is the generation. A survivor is a
 * worker that takes part in the old world and in the next one. A newcomer was started for the next
 * world. An agent is the elasticrun process on a node; the leader is the agent that decides. A
 * world is torn when one of its workers or nodes is lost. A step boundary is one call of
 * elastic_event_test() or elastic_event_wait() after an optimizer step.
 *
 * Without elasticrun: the same program also runs alone. No event ever comes then. Functions with an
 * error code return ELASTIC_NOT_ELASTIC. Functions that return 1 for an event return 0. The same
 * holds in a job that has the environment of another job's worker, because that has submitted it.
 *
 * Threads: no function may run at the same time as elastic_init() or elastic_finalize(). All other
 * functions may be called from any thread. Step boundaries must come from one thread, because each
 * call counts one step. No function may be called from a handler of signals or of PMIx events.
 *
 * Children: a forked process is not a worker. Nor is a process that the worker has started in
 * another way, while the worker itself is attached. In these, all functions but
 * elastic_guard_child() behave as without elasticrun.
 *
 * PMIx: the functions about nodes and elastic_checkpoint_done() use PMIx (doc/user/mpi.md). The
 * first of these calls loads libpmix.so.2. Other functions do not need it. The program may use
 * PMIx, or MPI over PMIx, at the same time.
 *
 * Strings and structs that are passed in belong to the caller; the library keeps no pointer to them
 * after the call, but for ELASTIC_IN_PLACE. All strings end with a NUL. */
#ifndef ELASTIC_ELASTIC_H
#define ELASTIC_ELASTIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increased when something in this file changes its meaning. Additions leave it as it is. */
#define ELASTIC_INTERFACE 1

#define ELASTIC_NOT_ELASTIC    1    /* no elasticrun, or a forked process */
#define ELASTIC_PENDING        2    /* the answer is not known yet */
#define ELASTIC_GO_ON          3    /* a boundary was passed, and training goes on */
#define ELASTIC_ELSEWHERE      4    /* other workers do it */
#define ELASTIC_ERROR_PAGE     (-1) /* the event file is missing, foreign or of another version */
#define ELASTIC_ERROR_AGENT    (-2) /* the agent of this worker has died: the worker leaves */
#define ELASTIC_ERROR_WAIT     (-3) /* the agent asked to wait and is silent: the worker leaves */
#define ELASTIC_ERROR_PMIX     (-4) /* PMIx is missing, does not answer or has failed */
#define ELASTIC_ERROR_REFUSED  (-5) /* the job cannot have, give or find what was asked for */
#define ELASTIC_ERROR_ARGUMENT (-6) /* an argument has a value that is not allowed */
/* The agent's store is missing, does not answer or refuses. */
#define ELASTIC_ERROR_STORE (-7)
#define ELASTIC_ERROR_GONE  (-8) /* the world is over: there is a next world, or will be */
/* The snapshot does not fit into this node's memory or cannot be written; or no libsodium. */
#define ELASTIC_ERROR_SNAPSHOT (-9)

#define ELASTIC_ID_BYTES   64  /* size of a request's id, with its NUL */
#define ELASTIC_UNIT_BYTES 24  /* size of a unit of progress, with its NUL */
#define ELASTIC_NAME_BYTES 128 /* size of the name of a snapshot's part, with its NUL */
#define ELASTIC_PARTS_MAX  64  /* largest number of parts of a snapshot */

enum elastic_kind {
    ELASTIC_NONE = 0,   /* no event */
    ELASTIC_GROW = 1,   /* the next world has more nodes */
    ELASTIC_SHRINK = 2, /* the next world has fewer nodes */
    ELASTIC_FAULT = 3,  /* a node or worker was lost: the next world replaces it */
    ELASTIC_STOP = 4    /* the job is to end */
};

struct elastic_event {
    int32_t kind;       /* enum elastic_kind */
    int32_t generation; /* the generation that ends */
    int32_t next_nodes; /* number of nodes of the next generation; 0: not known */
    int32_t reserved;
    int64_t step;        /* boundaries that all workers have passed in this generation */
    int64_t deadline_ms; /* the worker leaves by then: CLOCK_REALTIME in ms; 0: no deadline */
    char reason[192];    /* one line for the user; may be empty */
};

/* Returns the ELASTIC_INTERFACE that the library was built with. */
int elastic_interface(void);

/* ---- start and end of a worker --------------------------------------------------------------- */

/* Attach this process to the agent that $ELASTIC_EVENT_FILE names, and wait until this worker's
 * world begins. The agent may start newcomers while the present world still trains. So call this
 * function after all work that is slow and always the same, such as loading libraries or the index
 * of a data set. Call it before the program reads a checkpoint, uses a GPU or writes anything. A
 * second call has no effect.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_AGENT or ELASTIC_ERROR_PAGE. After
 * ELASTIC_ERROR_PAGE no event will come, and the agent stops this worker with SIGTERM when it has
 * to. */
int elastic_init(void);

/* Attach this process and do not wait. Slurm sends SIGTERM to every process of a step; after this
 * call that SIGTERM does not end this process. A library calls this function early, on behalf of
 * the program.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_PAGE. */
int elastic_attach(void);

/* The same as elastic_init(), for a library that reads a checkpoint on behalf of a program. The
 * program may have used a GPU before. On nodes with GPUs the agent therefore does not start the
 * next workers of this program early. */
int elastic_loading(void);

/* Tell the agent that this worker has work that is worth saving. From then on a change waits for a
 * boundary of this worker; before, a change kills the worker at once. The first boundary has the
 * same effect.
 *
 * Returns 0 or ELASTIC_NOT_ELASTIC. */
int elastic_training(void);

/* Protect a process that a worker has forked, such as a data loader: Slurm's SIGTERM does not end
 * it. A SIGTERM from any other sender goes to the handler that is installed now. Call this function
 * in the child, after the framework has installed its handlers. A worker itself needs only
 * elastic_init(). */
void elastic_guard_child(void);

/* Detach this process, and leave PMIx if the library has entered it. Wait for a snapshot that is
 * still being written. The program may call elastic_init() again afterwards. */
void elastic_finalize(void);

/* ---- events ---------------------------------------------------------------------------------- */

/* One step boundary. Call it after each optimizer step, equally often on all ranks. Without a
 * pending change it costs no system call and no communication (tens of nanoseconds). During a
 * change it waits until the leader has named the step after which all ranks stop: one network round
 * trip.
 *
 * event: filled when the function returns 1; may be NULL.
 *
 * Returns 0: training goes on. This is also the answer without elasticrun.
 * Returns 1: this is the last step of the world. Save a checkpoint and exit with status 0, or go on
 * as after elastic_live(). Further calls return 1 again.
 * Returns ELASTIC_ERROR_AGENT or ELASTIC_ERROR_WAIT: the worker has been left alone and should
 * end. */
int elastic_event_test(struct elastic_event *event);

/* A step boundary for a worker that has nothing to do until something changes. Sleeps until a
 * change begins or timeout_ms milliseconds are over (0: look once, -1: no limit). Passes at most
 * one boundary. A worker that sleeps here counts as after elastic_training(). Before this worker's
 * world begins, the function waits as elastic_init() does, whatever timeout_ms says.
 *
 * Returns 0: the time is over and no boundary was passed.
 * Returns ELASTIC_GO_ON: one boundary was passed and other workers are some steps ahead. Go on, and
 * call the function again.
 * Other values are those of elastic_event_test().
 * Without elasticrun it returns 0 after timeout_ms, or at once if timeout_ms is -1. */
int elastic_event_wait(struct elastic_event *event, int timeout_ms);

/* The last boundary of a worker that is about to end with success after this step. Takes and
 * returns the same as elastic_event_test(). Returns 0: the worker may end. Returns 1: a change
 * comes first; go on as after elastic_event_test(). */
int elastic_finish(struct elastic_event *event);

/* Let the agent end this process now, after an event, when everything is saved. The agent sends
 * SIGTERM and, a moment later, SIGKILL. That counts as a normal end. Without an event the call has
 * no effect, so a program may save at any time. Goes through PMIx.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_PMIX. */
int elastic_checkpoint_done(void);

/* Name a signal (1 to SIGRTMAX) for which this process has a handler that prints its stacks, as
 * Python's faulthandler does. The agent sends the signal when training has made no step for too
 * long (--elastic-hang-wait). After that it starts the workers again.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_ARGUMENT or ELASTIC_ERROR_PAGE. */
int elastic_stacks(int number);

/* Say that so many more bytes of this worker's state have gone to other workers, or have come from
 * them. A worker that leaves a world which goes on has 10 s to end. It has longer as long as it
 * says this, at least every 10 s.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC, or ELASTIC_ERROR_ARGUMENT for a negative number. */
int elastic_moved(int64_t bytes);

/* Report that `done` of `total` units are complete. `selastic show` prints the last report of the
 * worker with the lowest rank that reports. The call makes no system call; the agent looks about
 * once a second.
 *
 * total: 0 means not known. unit: at most 23 bytes of printable UTF-8, such as "steps", "samples"
 * or "%"; NULL: no unit.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC, or ELASTIC_ERROR_ARGUMENT for a negative number or a long
 * unit. */
int elastic_report_progress(int64_t done, int64_t total, const char *unit);

/* Report how long this worker itself has needed for the step that ends now: up to the moment at
 * which it begins to wait for other workers. elasticrun compares the workers of a world, and finds
 * those that are slow (--elastic-straggler). The call makes no system call.
 *
 * microseconds: 0 to 86400000000, a day.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC, or ELASTIC_ERROR_ARGUMENT. */
int elastic_report_step_time(int64_t microseconds);

/* ---- nodes -----------------------------------------------------------------------------------
 * The leader accepts or refuses a request at once. An accepted request ends later, exactly once.
 * elastic_request_result() tells how, in the process that has asked. After a change of worlds it
 * tells this to the process with the same rank.
 *
 * id: NULL, or room for ELASTIC_ID_BYTES bytes that receives the id of the request.
 *
 * All return 0 for an accepted request, ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_REFUSED,
 * ELASTIC_ERROR_PMIX or ELASTIC_ERROR_ARGUMENT. After ELASTIC_ERROR_REFUSED, elastic_error() says
 * what would be allowed. They return within a minute, even if the PMIx server does not answer.
 *
 * A worker that requests or releases nodes counts as after elastic_training(): the change that
 * follows waits for its next boundary. */

/* Ask for this number of additional nodes. The request is done when a world with these nodes has
 * begun. It fails if that takes longer than within_s seconds (0: no limit); the leader then cancels
 * what it has asked of Slurm. By default a job grows to its maximum without a request. It stops
 * doing so after elastic_release_nodes() or `selastic resize`. */
int elastic_request_nodes(int nodes, int within_s, char *id);

/* Give back this number of nodes, or the nodes with these names ("n5,n6"). The job gives back whole
 * extension jobs, and never nodes of the base job. The request is done when Slurm has the nodes. */
int elastic_release_nodes(int nodes, char *id);
int elastic_release_named(const char *names, char *id);

/* Cancel a request that has not ended. It then ends as ELASTIC_FAILED. */
int elastic_cancel_request(const char *id);

enum elastic_outcome { ELASTIC_DONE = 1, ELASTIC_FAILED = 2 };

struct elastic_result {
    int32_t outcome;           /* enum elastic_outcome */
    int32_t nodes;             /* number of nodes that the job had then; 0: not known */
    char id[ELASTIC_ID_BYTES]; /* of the request */
    char reason[256];          /* why the request failed; may be empty */
};

/* Tell how the request `id` has ended. With NULL: the result of any request, each once, the oldest
 * first. Sleeps until there is a result or timeout_ms milliseconds are over (0: look once, -1: no
 * limit). Also returns when a change begins, so that this worker can come to its next boundary.
 *
 * A new world gets the results of its predecessors if this function, or another function about
 * nodes, is called within two minutes.
 *
 * result: filled when the function returns 0; may be NULL.
 *
 * Returns 0, ELASTIC_PENDING, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_PMIX. */
int elastic_request_result(const char *id, struct elastic_result *result, int timeout_ms);

/* ---- live mode: a worker that goes on in the next world (doc/internals/live.md) -------------- */

/* A world as this worker sees it. */
struct elastic_world {
    int32_t generation; /* number of the world, from 1 */
    int32_t attempt;    /* number of the start of this world; no two worlds have the same */
    int32_t rank;       /* of this worker, from 0 */
    int32_t size;       /* number of workers; 0: no world for this worker, it leaves */
    int32_t local_rank; /* of this worker on its node, from 0 */
    int32_t local_size; /* number of workers on this node */
    int32_t nodes;      /* number of nodes */
    int32_t save;       /* 1, with size 0: save a checkpoint first, no other worker will */
};

/* Tell the agent that this worker can go on in the next world without ending. All workers of the
 * script call this function before elastic_init(). When elastic_event_test() has returned 1, the
 * worker then calls elastic_next_world() instead of exiting, unless the event is ELASTIC_STOP.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_PAGE. */
int elastic_live(void);

/* Tell the agent what this worker trains. signature: a number of the program's own, from 1 to
 * INT64_MAX. It is equal in two workers if one can take over the state of the other. An example is
 * a hash of the names and shapes of all parameters.
 *
 * Call this function after elastic_live() and before elastic_init(). If the number changes, call it
 * again before the first boundary of a world. The leader sends a newcomer with another number away
 * before the training workers stop for it.
 *
 * Returns 0, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_ARGUMENT. */
int elastic_model_signature(int64_t signature);

/* Fill in the world that this worker is in. The variables of the environment describe the first
 * world of this process.
 *
 * Returns 0 or ELASTIC_NOT_ELASTIC. */
int elastic_world(struct elastic_world *world);

/* Wait for the next world and enter it. From then on the other functions are about that world. No
 * other thread may be inside this library during the call.
 *
 * timeout_ms: milliseconds; -1: no limit.
 *
 * Returns 1: world is filled. Its size is 0 if this worker leaves.
 * Returns 0: no world was named in time, or there is no elasticrun (at once). Save and exit.
 * Returns ELASTIC_ERROR_AGENT or ELASTIC_ERROR_PAGE. */
int elastic_next_world(struct elastic_world *world, int timeout_ms);

/* Say whether this world is torn, so that the others go on in another world. elastic_event_test()
 * says so as well, by an event of kind ELASTIC_FAULT. This function is for errors between two
 * boundaries that a loss may have caused, such as a failed exchange with other workers.
 *
 * A connection often fails before the agents notice a loss. So the function waits up to timeout_ms
 * milliseconds for news of a loss. -1 waits as long as the agents may need to notice it. -1 also
 * reports that an exchange has failed: a worker that exited with status 0 without elastic_finish()
 * then counts as lost.
 *
 * Returns 1: the world is torn, call elastic_next_world().
 * Returns 0: no loss is known, or there is no elasticrun (at once).
 * Returns ELASTIC_ERROR_AGENT. */
int elastic_torn(int timeout_ms);

/* Free this worker from waiting for lost workers. The library notes the TCP connections that the
 * process opens between elastic_world_forms() and elastic_world_formed(). A thread of the library
 * shuts them down when the world is torn. elastic_world_left() ends that; call it when nothing
 * waits on these connections any more. elastic_next_world() ends that, too, if the world was torn.
 * If it ended as planned, its workers may go on talking: the thread then shuts the connections down
 * when the next world is torn. This is for connections that a framework makes and waits on. Do not
 * call these functions from several threads at the same time.
 *
 * Return 0 or ELASTIC_NOT_ELASTIC; elastic_world_forms() may also return ELASTIC_ERROR_PAGE. */
int elastic_world_forms(void);
int elastic_world_formed(void);
int elastic_world_left(void);

/* ---- values that the workers of a world exchange: bytes under keys ---------------------------
 * For example the addresses of their sockets. The agents keep the values; no worker hosts them. A
 * value outlives the worker that has set it. Each world has keys of its own, and the keys of a
 * world end with it. A worker that waits for such a key gets ELASTIC_ERROR_GONE. torch.distributed
 * uses the same store (doc/internals/protocol.md, "The store's socket"). Both modes have it.
 *
 * A key has 1 to 1024 printable ASCII characters, without quotation mark and backslash. A value has
 * at most 1 MiB.
 *
 * Before this worker's world begins, both functions wait as elastic_init() does. Afterwards they
 * return within milliseconds, and within 15 s even if the agent does not answer; elastic_get() adds
 * its timeout_ms to that.
 *
 * Errors of both: ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_AGENT, ELASTIC_ERROR_ARGUMENT,
 * ELASTIC_ERROR_STORE or ELASTIC_ERROR_GONE (call elastic_next_world()). */

/* Set the value of a key to `size` bytes. Replaces an older value. Returns 0 or an error. */
int elastic_put(const char *key, const void *value, size_t size);

/* Wait for the value of a key and copy it to `value`. *size: before the call the room at `value`,
 * after the call the length of the value, both in bytes. If the room is too small, only the bytes
 * that fit are copied, and the function returns ELASTIC_ERROR_ARGUMENT.
 *
 * Returns 0; ELASTIC_PENDING if there was no value within timeout_ms milliseconds (0: look once,
 * -1: no limit); or an error. */
int elastic_get(const char *key, void *value, size_t *size, int timeout_ms);

/* ---- snapshots: a copy of the state in the memory of nodes -----------------------------------
 * For the case that all workers are lost at once. One worker on the first node and one on the last
 * node keep the copy, so the loss of one node loses no copy. If the job ends in any way but
 * success, the epilog saves the newest copy to disk. The next run of the job finds it as a
 * checkpoint: each part is a file in $ELASTIC_CHECKPOINT_DIR/latest. Look for it after
 * elastic_init().
 *
 * A program that saves its own checkpoints in the same directory must write them as
 * slurm_elastic.save() does: directories with numbers, such as 00000012 (doc/admin/faults.md). A
 * program that saves them elsewhere must compare which of the two is newer. */

struct elastic_part {
    /* Name of the file: 1 to 127 printable ASCII characters without blank, '/', '"' and '\\'. It
     * does not begin with '.'. */
    const char *name;
    const void *data; /* may be NULL if size is 0 */
    size_t size;      /* bytes */
};

/* Do not copy the data first. The data must stay as it is until elastic_snapshot_wait() returns
 * 0. */
#define ELASTIC_IN_PLACE 1

/* Keep a copy of these parts, which are the whole state. The state is the same on all ranks. All
 * ranks call this function between two steps, as often as they like. No worker waits for another,
 * and nothing is written to a disk. A thread of the library writes the copy; it gets no signals.
 *
 * count: 1 to ELASTIC_PARTS_MAX. flags: 0 or ELASTIC_IN_PLACE. With 0 the data is copied before the
 * function returns, and may change then. Names are copied in either case.
 *
 * Memory: the node holds two snapshots at a time, the complete one and the one that is being
 * written. With flags 0 this process holds a third copy. All copies count as memory of the job. A
 * snapshot may take at most nine tenths of the memory that the node and the job have left. A larger
 * snapshot is refused, and the one before stays.
 *
 * Returns 0: the snapshot is being written.
 * Returns ELASTIC_ELSEWHERE: other workers keep the state.
 * Returns ELASTIC_PENDING: the one before is still being written, and this one is not kept.
 * Returns ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_ARGUMENT, ELASTIC_ERROR_SNAPSHOT (also without
 * libsodium) or ELASTIC_ERROR_AGENT. */
int elastic_snapshot(const struct elastic_part *parts, int count, int flags);

/* Wait until the last snapshot of this process is complete, for up to timeout_ms milliseconds (0:
 * look once, -1: no limit). A program that ends without this function or elastic_finalize() leaves
 * the snapshot before.
 *
 * Returns 0: the snapshot is complete, or there was none.
 * Returns ELASTIC_PENDING: it is still being written.
 * Returns ELASTIC_ERROR_SNAPSHOT: it could not be written; the one before stays.
 * Returns ELASTIC_NOT_ELASTIC. */
int elastic_snapshot_wait(int timeout_ms);

/* ---- errors, and the present world ----------------------------------------------------------- */

/* Returns the text of this thread's last error; "" if there was none. The library owns the text. It
 * is valid until the thread's next call of this library. */
const char *elastic_error(void);

/* Generations count from 1. All return -1 without elasticrun. */
int elastic_generation(void);
int64_t elastic_step(void); /* boundaries that this worker has passed in this world */

/* These read the environment that the agent has set. In live mode it describes the first world of
 * the process: use elastic_world() there. Ranks count from 0; a size is a number of workers. All
 * return -1 without elasticrun, or if the variable is not set. */
int elastic_rank(void);
int elastic_size(void);
int elastic_local_rank(void);
int elastic_local_size(void);
int elastic_nodes(void);
int elastic_min_nodes(void);
int elastic_max_nodes(void);

#ifdef __cplusplus
}
#endif

#endif
