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
 * from any thread, but boundaries (elastic_event_test) are to come from one of them, for each call counts a step. A
 * forked child is not a worker: in it, all functions but elastic_guard_child() answer as if not elastic. */
#ifndef ELASTIC_ELASTIC_H
#define ELASTIC_ELASTIC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increased whenever something here changes its meaning; what is only added leaves it as it is. */
#define ELASTIC_INTERFACE 1

#define ELASTIC_NOT_ELASTIC 1    /* no elasticrun, or a forked child */
#define ELASTIC_ERROR_PAGE  (-1) /* the event file is missing, foreign or of another version */
#define ELASTIC_ERROR_AGENT (-2) /* the agent of this worker is gone: leave */
#define ELASTIC_ERROR_WAIT  (-3) /* the agent has asked to wait and was not heard of again: leave */

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

/* Say that work has begun which is worth saving: from now on a change waits for a boundary of this worker instead of
 * killing it at once. The first boundary says so, too. Returns 0 or ELASTIC_NOT_ELASTIC. */
int elastic_training(void);

/* For a process that a worker has forked off, such as one that loads data: let Slurm's own SIGTERM pass, which reaches
 * every process of the step, and give anybody else's to the handler that is installed now. To be called after the
 * framework has installed its own; in workers, elastic_init() does what is needed. */
void elastic_guard_child(void);

/* Detach. Calling elastic_init() again is allowed. */
void elastic_finalize(void);

/* The text of this thread's last error, "" if there was none. Valid until its next call into the library. */
const char *elastic_error(void);

/* What elasticrun has set for this worker; -1 when not elastic or not set. Generations count from 1, ranks from 0; a size is
 * in workers, nodes in nodes. */
int elastic_generation(void);
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
