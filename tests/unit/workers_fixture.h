/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the tests of agent/workers/workers.c: a loop with the workers of one generation, what their
 * handlers have said, and programs for them to run.
 *
 * The test program is its own elasticrun (--exec-worker) and its own user's command (--act NAME
 * …). */
#ifndef ELASTIC_TESTS_WORKERS_FIXTURE_H
#define ELASTIC_TESTS_WORKERS_FIXTURE_H

#include "tests/unit/support.h"

#include <stdbool.h>
#include <sys/types.h>

#include <uv.h>

#include "agent/workers/workers.h"

#define RUN_WORKERS_MAX 4
#define RUN_TEXT_MAX    65536

struct ending {
    int count; /* times that it was reported */
    int code, signal;
    bool told, early;
    char message[512]; /* of the error, "" without one */
    char extra[512];   /* as JSON text */
    uint64_t at;       /* ms, of the loop */
};

struct text {
    size_t bytes; /* all that came */
    char head[RUN_TEXT_MAX + 1];
};

struct run {
    uv_loop_t loop;
    uv_timer_t wake;
    char dir[64];
    struct world *world;
    struct workers *workers;
    struct workers_options options;
    int ready, parked, stepping, drained, exits;
    int begun;
    size_t largest_chunk;
    struct ending endings[RUN_WORKERS_MAX];
    struct text texts[RUN_WORKERS_MAX][3];
    bool destroy_when_drained;
    uint64_t deadline;
};

/* This program, for a command of a worker. */
const char *run_program(void);

struct run *run_create(int slots);
/* Start argv (NULL-terminated, in options.argv) or "--act" NAME ARGUMENT of this program. */
void run_start(struct run *run);
void run_start_act(struct run *run, const char *name, const char *argument);
/* Destroy the workers, run the loop until it has nothing left, free, and check that the run
 * directory is empty. */
void run_destroy(struct run *run);

/* One turn of the loop; false when the time limit since run_await_begin is over. */
void run_await_begin(struct run *run);
bool run_turn(struct run *run);

#define AWAIT(run, condition)                                                                      \
    do {                                                                                           \
        run_await_begin(run);                                                                      \
        while (!(condition))                                                                       \
            assert_true(run_turn(run));                                                            \
    } while (0)

/* The number after NAME= in what a worker has written to stdout, 0 if it is not there yet. */
int run_number(const struct run *run, int rank, const char *name);

/* No process of this id is left, zombies not counted. */
bool process_gone(pid_t pid);
/* It has been stopped by a signal. */
bool process_stopped(pid_t pid);

/* For main: runs the shim or an act and exits, or returns. */
void run_dispatch(int argc, char **argv);

#endif
