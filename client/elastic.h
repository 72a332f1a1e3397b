/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libelastic: what a worker of an elastic job asks and is told. Link with -lelastic.
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
 * A program that was not started by elasticrun runs the same code: elastic_init() says so, no event ever comes.
 *
 * Threads: elastic_init() and elastic_finalize() may not run at the same time as any other call. All else may be called
 * from any thread, but boundaries (elastic_event_test, elastic_event_wait) are to come from one of them, for each call
 * counts a step; nothing from a handler of PMIx events, or of a signal. A forked child is not a worker: in it, all
 * functions but elastic_guard_child() answer as if not elastic.
 *
 * Nodes and elastic_checkpoint_done() go through PMIx (doc/pmix.md): libpmix.so.2 is loaded by the first of these calls,
 * none else needs it. A program may use PMIx, or MPI over it, at the same time. */
#ifndef ELASTIC_ELASTIC_H
#define ELASTIC_ELASTIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increased whenever something here changes its meaning; what is only added leaves it as it is. */
#define ELASTIC_INTERFACE 1

#define ELASTIC_NOT_ELASTIC    1    /* no elasticrun, or a forked child */
#define ELASTIC_PENDING        2    /* not known yet */
#define ELASTIC_GO_ON          3    /* a boundary was passed, and training goes on */
#define ELASTIC_ELSEWHERE      4    /* other workers do it */
#define ELASTIC_ERROR_PAGE     (-1) /* the event file is missing, foreign or of another version */
#define ELASTIC_ERROR_AGENT    (-2) /* the agent of this worker is gone: leave */
#define ELASTIC_ERROR_WAIT     (-3) /* the agent has asked to wait and was not heard of again: leave */
#define ELASTIC_ERROR_PMIX     (-4) /* PMIx is not there, does not answer or has failed */
#define ELASTIC_ERROR_REFUSED  (-5) /* the job cannot have, give or find what is asked for */
#define ELASTIC_ERROR_ARGUMENT (-6) /* a value that makes no sense */
/* The agent's store is not there, does not answer or does not do it. */
#define ELASTIC_ERROR_STORE (-7)
#define ELASTIC_ERROR_GONE  (-8) /* the world is over: there is a next one, or will be */
/* It does not fit into this node's memory, or cannot be written. */
#define ELASTIC_ERROR_SNAPSHOT (-9)

#define ELASTIC_ID_BYTES   64  /* of a request's id, with its NUL */
#define ELASTIC_UNIT_BYTES 24  /* of a unit of progress, with its NUL */
#define ELASTIC_NAME_BYTES 128 /* of a part of a snapshot, with its NUL */
#define ELASTIC_PARTS_MAX  64  /* of a snapshot */

enum elastic_kind {
    ELASTIC_NONE = 0,
    ELASTIC_GROW = 1,
    ELASTIC_SHRINK = 2,
    ELASTIC_FAULT = 3, /* a node or worker was lost: the next world replaces it */
    ELASTIC_STOP = 4   /* the job is to end */
};

struct elastic_event {
    int32_t kind;       /* enum elastic_kind */
    int32_t generation; /* the one that ends */
    int32_t next_nodes; /* nodes of the next generation; 0: unknown */
    int32_t reserved;
    int64_t step;        /* boundaries that all workers have passed in this generation */
    int64_t deadline_ms; /* CLOCK_REALTIME in milliseconds by which to have left; 0: none */
    char reason[192];    /* one line for the user, NUL-terminated, may be empty */
};

/* The ELASTIC_INTERFACE that the library was built with. */
int elastic_interface(void);

/* Attach this process as the worker that $ELASTIC_EVENT_FILE belongs to, and wait until its world begins: elasticrun may
 * start the workers of the next world while the present one still trains. So call it after what takes long and is the
 * same every time (libraries, reading a data set's index), and before a checkpoint is read, a GPU used or anything
 * written. A second call changes nothing. Returns 0, ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_AGENT, or ELASTIC_ERROR_PAGE with
 * the reason in elastic_error(): then no event will come, and elasticrun stops this worker with SIGTERM when it has to. */
int elastic_init(void);

/* The first half of elastic_init(): attach, do not wait. From here on Slurm's own SIGTERM, which reaches every process of
 * a step, does not end this process. For a library to call early on the program's behalf. */
int elastic_attach(void);

/* As elastic_init(), for a library to call before it reads a checkpoint on the program's behalf. The program may have
 * used a GPU before: on nodes with GPUs its next workers are not started early. */
int elastic_loading(void);

/* One boundary: call it after each optimizer step, equally often on all ranks. Costs no system call and no
 * communication (tens of nanoseconds), unless a change is under way: then it waits until the leader has named the step
 * after which all ranks stop, which takes a network round trip.
 *
 * Returns 1 if this is that step: event (may be NULL) is filled; save a checkpoint and exit with status 0. The answer
 * stays the same from then on. Returns 0 if training goes on, also when not elastic. Returns ELASTIC_ERROR_AGENT or
 * ELASTIC_ERROR_WAIT if this worker has been left alone: it should end, for nobody will answer it. */
int elastic_event_test(struct elastic_event *event);

/* As elastic_event_test(), for a worker that has nothing to do until something changes: sleeps until a change is under way
 * or timeout_ms are over (0: looks once, -1: no limit), and passes at most one boundary. Sleeping counts as being at work.
 * Before its world begins it waits as elastic_init() does, whatever timeout_ms says.
 *
 * Returns 0 if the time is over, with no boundary passed; ELASTIC_GO_ON if one was passed and other workers are steps
 * ahead: go on, and call again; otherwise what elastic_event_test() returns. When not elastic it returns 0, after
 * timeout_ms, or at once if that is -1, for nothing would ever end it. */
int elastic_event_wait(struct elastic_event *event, int timeout_ms);

/* Say that work has begun which is worth saving: from now on a change waits for a boundary of this worker instead of
 * killing it at once. The first boundary says so, too. Returns 0 or ELASTIC_NOT_ELASTIC. */
int elastic_training(void);

/* For a process that a worker has forked off, such as one that loads data: let Slurm's own SIGTERM pass, which reaches
 * every process of the step, and give anybody else's to the handler that is installed now. To be called after the
 * framework has installed its own; in workers, elastic_init() does what is needed. */
void elastic_guard_child(void);

/* After elastic_event_test() has returned 1 and everything is saved: let elasticrun end this process now, by SIGTERM and a
 * moment later SIGKILL, instead of waiting until it has ended by itself. That counts as a normal end. Otherwise it has no
 * effect: a program may save at any time. Goes through PMIx. Returns 0, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_PMIX. */
int elastic_checkpoint_done(void);

/* Say how far the program is: done of total, in this unit ("steps", "samples", "%"; at most 23 bytes of printable UTF-8, NULL:
 * none); total 0: unknown. `selastic show` shows what the worker of the lowest rank that reports any has said last. No system
 * call; may be called as often as you like, and is looked at about once a second. Returns 0, ELASTIC_NOT_ELASTIC, or
 * ELASTIC_ERROR_ARGUMENT for negative numbers and bad units. */
int elastic_report_progress(int64_t done, int64_t total, const char *unit);

/* ---- nodes -----------------------------------------------------------------------------------------------------------
 * A request is accepted or refused at once. An accepted one ends later, exactly once: elastic_request_result() tells how,
 * in the process that asked or, if the world has changed meanwhile, in the one that has its rank then. id (may be NULL):
 * room for ELASTIC_ID_BYTES, gets the request's id.
 *
 * All return 0 if accepted, ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_REFUSED (elastic_error() says what would be allowed),
 * ELASTIC_ERROR_PMIX or ELASTIC_ERROR_ARGUMENT. A worker that has asked is at work (elastic_training): the change that follows waits for its
 * next boundary. They answer within a minute whatever happens to the PMIx server. */

/* So many nodes more, which is done when a world with them has begun. It fails, and what was asked of Slurm is cancelled, if
 * that takes longer than within_s seconds (0: no limit). A job grows to its maximum by itself unless its size is held, by
 * elastic_release_nodes() or `selastic resize`. */
int elastic_request_nodes(int nodes, int within_s, char *id);

/* So many nodes less, or without these ("n5,n6"): whole extension jobs, never nodes of the base job. Done when Slurm has them back. */
int elastic_release_nodes(int nodes, char *id);
int elastic_release_named(const char *names, char *id);

/* Forget a request that has not ended: then it ends as ELASTIC_FAILED. */
int elastic_cancel_request(const char *id);

enum elastic_outcome { ELASTIC_DONE = 1, ELASTIC_FAILED = 2 };

struct elastic_result {
    int32_t outcome;           /* enum elastic_outcome */
    int32_t nodes;             /* that the job had then; 0: unknown */
    char id[ELASTIC_ID_BYTES]; /* of the request */
    char reason[256];          /* why it failed; may be empty */
};

/* How a request has ended: the one of this id; NULL: any, each once, the oldest first. Sleeps until it has, or timeout_ms are
 * over (0: looks, -1: no limit), or a change of the world is under way, for which this worker has to come to its next boundary.
 * A new world hears what its predecessors have asked for if it calls this, or another function about nodes, within two minutes.
 * Returns 0 with result filled (may be NULL), ELASTIC_PENDING, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_PMIX. */
int elastic_request_result(const char *id, struct elastic_result *result, int timeout_ms);

/* Detach, and leave PMIx if it was entered. Calling elastic_init() again is allowed. */
void elastic_finalize(void);

/* ---- live mode: a worker that goes on in the next world (doc/live.md) ---------------------------- */

/* A world as this worker sees it. */
struct elastic_world {
    int32_t generation;
    int32_t attempt; /* the number of its start: no two worlds have the same */
    int32_t rank;
    int32_t size; /* 0: there is none for this worker: leave */
    int32_t local_rank;
    int32_t local_size;
    int32_t nodes;
    int32_t save; /* 1, with size 0: save a checkpoint before, nobody else will */
};

/* Say that this worker can go on in the next world, and fill in the one that it is in. To be called before elastic_init() lets it into
 * a world, by all workers of the script. When elastic_event_test() has returned 1, call elastic_next_world() instead of exiting, unless the event is
 * ELASTIC_STOP. Returns 0 or ELASTIC_NOT_ELASTIC. */
int elastic_live(void);

/* This process shows what it is doing when it gets that signal (a handler prints its stacks, as Python's faulthandler does): elasticrun sends it when the training has made no
 * step for too long, before it starts the workers anew. 0, ELASTIC_NOT_ELASTIC or an error. */
int elastic_stacks(int number);

/* Say what this worker trains, as a number of the caller's that is equal in workers of which one can take over the state of the other (a hash of the
 * names and shapes of its parameters), 1 to INT64_MAX. To be called after elastic_live() and before elastic_init(), and again
 * before the first boundary of a world if it has changed: a newcomer whose number is another than that of the
 * workers that train is then sent away before they have stopped for it. Returns 0, ELASTIC_NOT_ELASTIC or ELASTIC_ERROR_ARGUMENT. */
int elastic_model_signature(int64_t signature);

/* The world that this worker is in. Ranks and sizes of the environment are those of the first one. Returns 0 or
 * ELASTIC_NOT_ELASTIC. */
int elastic_world(struct elastic_world *world);

/* Wait for the next world and enter it: elastic_generation() and elastic_event_test() are about that one from then on. No other thread may be in
 * this library meanwhile. Returns 1: world is filled in, its size is 0 if this worker is to leave; 0: not within timeout_ms (-1: for
 * ever), or not elastic, at once; or an error. */
int elastic_next_world(struct elastic_world *world, int timeout_ms);

/* The last boundary of this worker: it is about to end with success, after this step. As elastic_event_test(), which would wait for further
 * ones: a change is made before or not at all. Returns 0: end; 1: no, a change comes first: go on as after elastic_event_test(). */
int elastic_finish(struct elastic_event *event);

/* Has a worker or a node of this world been lost, so that the others are to go on in another one? elastic_event_test() says so, too, by an event
 * of kind ELASTIC_FAULT; this is for what fails between two boundaries because of it: an exchange with other workers, the forming of a
 * group. Waits for word of it up to timeout_ms, for connections tell sooner than agents do. -1: as long as it takes these to notice; and it says that an exchange
 * has failed: a worker that has ended with status 0 without elastic_finish() was too early, and counts as lost. Returns 1: it is
 * torn, call elastic_next_world(); 0: not that is known, or not elastic, at once; or ELASTIC_ERROR_AGENT. */
int elastic_torn(int timeout_ms);

/* Be freed from waiting for other workers when the world is torn: from elastic_world_forms() on the TCP connections that this process opens are
 * taken as the world's, until elastic_world_formed(). A thread shuts them down when the world is torn. elastic_world_left() ends that: to be called when
 * nothing waits on them any more; elastic_next_world() does it, too. For connections that a library makes and waits on. Not to be called by
 * several threads at once. Return 0, ELASTIC_NOT_ELASTIC, or ELASTIC_ERROR_PAGE with the reason in elastic_error(). */
int elastic_world_forms(void);
int elastic_world_formed(void);
int elastic_world_left(void);

/* ---- where the workers of a world meet: bytes under keys -------------------------------------------------------------
 * To exchange addresses, say, from which on they talk to each other directly. The agents keep the values (architecture.md, "The store's
 * socket"); no worker hosts them, none takes them along when it ends. Each world has keys of its own, those of one that is over are dropped, and whoever
 * waits for one is told so. torch.distributed meets here too. In restart mode as well as live.
 *
 * A key has 1 to 1024 printable ASCII characters, no quotation mark and no backslash; a value at most 1 MiB. Both answer in milliseconds, within
 * 15 s whatever happens to the agent (a get: beyond its timeout_ms), and before this worker's world begins they wait as elastic_init() does. Both may return
 * ELASTIC_NOT_ELASTIC, ELASTIC_ERROR_AGENT, ELASTIC_ERROR_ARGUMENT, ELASTIC_ERROR_STORE or ELASTIC_ERROR_GONE: then elastic_next_world(). */

/* Set a value, whether there is one or not. Returns 0 or an error. */
int elastic_put(const char *key, const void *value, size_t size);

/* The value, as soon as there is one. *size: bytes of room at value, then bytes of the value; where they are more than fit
 * ELASTIC_ERROR_ARGUMENT, and only what fits is stored. Returns 0; ELASTIC_PENDING if there was none within timeout_ms (0: looks, -1: no limit); or an error. */
int elastic_get(const char *key, void *value, size_t *size, int timeout_ms);

/* ---- a copy of the state in the memory of nodes, for when all that have it are lost at once ---------------------------
 * One worker of the first node and one of the last keep it, so that the loss of one node loses none. When the job ends in any other way than well, the
 * epilog makes the newest one durable; the next run of the job finds it as a checkpoint: each part is a file of its name in the directory
 * $ELASTIC_CHECKPOINT_DIR/latest, to be looked for after elastic_init(). There a number is a checkpoint: 00000012; so a program that saves
 * checkpoints of its own there, too, makes them as slurm_elastic.save() does (doc/faults.md), and one that saves them elsewhere compares their ages. */

struct elastic_part {
    const char *
        name; /* of the file: 1 to 127 printable ASCII characters, no blank, '/', '"' or '\\', not beginning with '.' */
    const void *data; /* may be NULL if there is none of it */
    size_t size;      /* bytes */
};

/* Leave the data where it is, as in memory that the caller does not use again before elastic_snapshot_wait() returns 0. */
#define ELASTIC_IN_PLACE 1

/* Keep a copy of these parts (1 to ELASTIC_PARTS_MAX), which are the whole state, the same on all ranks. To be called by all ranks between two steps, as often
 * as you like to lose no more than what was done since; no worker waits for another, nothing is written to a disk. flags: 0, and data may change as
 * soon as this returns, for it is copied before; or ELASTIC_IN_PLACE. Names are copied in either case. A thread does the rest; it gets no signals.
 *
 * Two snapshots are in the node's memory at a time, the one that is complete and the one that is written, and with flags of 0 a third copy in that of this process:
 * all of it counts as memory of the job. What is larger than nine tenths of the memory that the node and the job have left is not taken; the one
 * before stays.
 *
 * Returns 0: it is being written; ELASTIC_ELSEWHERE: other workers keep it; ELASTIC_PENDING: the one before is still being written, and this one is
 * not kept; ELASTIC_NOT_ELASTIC; ELASTIC_ERROR_ARGUMENT; ELASTIC_ERROR_SNAPSHOT, also if libsodium is not there; or ELASTIC_ERROR_AGENT. */
int elastic_snapshot(const struct elastic_part *parts, int count, int flags);

/* Wait until the last one of this process is complete, up to timeout_ms (0: looks, -1: no limit). Returns 0: it is, or there was none;
 * ELASTIC_PENDING: not yet; ELASTIC_ERROR_SNAPSHOT: it could not be written, the one before is what there is; or ELASTIC_NOT_ELASTIC. elastic_finalize()
 * waits, too; a program that ends without leaves the one before. */
int elastic_snapshot_wait(int timeout_ms);

/* The text of this thread's last error, "" if there was none. Valid until its next call into the library. */
const char *elastic_error(void);

/* What elasticrun has set for this worker; -1 when not elastic or not set. Generations count from 1, ranks from 0; a size is
 * in workers, nodes in nodes. */
int elastic_generation(void);
int64_t elastic_step(void); /* boundaries passed in this world; -1 when not elastic */
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
