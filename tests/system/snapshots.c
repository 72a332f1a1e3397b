/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What snapshots.py does, in C, for a training that saves no checkpoints.
 *
 * Usage: snapshots LOG EVERY
 *
 * Rank 0 appends to LOG "start INCARNATION GENERATION STEP" and a line "step STEP" for each;
 * every so many steps the state is kept in memory. */
#include <elastic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WEIGHTS 100000

struct state {
    long step;
    unsigned char weights[WEIGHTS];
};

static FILE *log_file;

/* Bytes of a file of the newest checkpoint; 0: there is none. */
static size_t load(const char *name, void *data, size_t size)
{
    char path[4096];
    FILE *file;
    size_t got;

    snprintf(path, sizeof(path), "%s/latest/%s", getenv("ELASTIC_CHECKPOINT_DIR"), name);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    got = fread(data, 1, size, file);
    fclose(file);
    return got;
}

/* 0, or -1 if what was kept is not whole. */
static int restore(struct state *state)
{
    if (load("step", &state->step, sizeof(state->step)) == 0)
        return 0;
    if (load("weights", state->weights, WEIGHTS) != WEIGHTS)
        return -1;
    for (int i = 0; i < WEIGHTS; i++)
        if (state->weights[i] != (unsigned char)state->step)
            return -1;
    return 0;
}

static int keep(const struct state *state)
{
    const struct elastic_part parts[] = {{"step", &state->step, sizeof(state->step)},
                                         {"weights", state->weights, WEIGHTS}};
    int rc = elastic_snapshot(parts, 2, 0);

    if (rc == 0)
        rc = elastic_snapshot_wait(-1);
    if (rc < 0)
        fprintf(stderr, "%s\n", elastic_error());
    return rc < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    static struct state state;
    struct timespec pause = {.tv_nsec = 50000000};
    int every = argc == 3 ? atoi(argv[2]) : 0;

    if (every < 1 || elastic_init() != 0 || restore(&state) != 0)
        return 1;
    log_file = fopen(elastic_rank() == 0 ? argv[1] : "/dev/null", "a");
    if (log_file == NULL)
        return 1;
    setlinebuf(log_file);
    fprintf(log_file, "start %s %d %ld\n", getenv("ELASTIC_INCARNATION"), elastic_generation(),
            state.step);
    for (;;) {
        nanosleep(&pause, NULL);
        state.step++;
        memset(state.weights, (int)(state.step & 255), WEIGHTS);
        fprintf(log_file, "step %ld\n", state.step);
        if (elastic_event_test(NULL) != 0)
            return 0;
        if (state.step % every == 0 && keep(&state) != 0)
            return 1;
    }
}
