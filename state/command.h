/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic-state can be told to do. */
#ifndef STATE_COMMAND_H
#define STATE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "state/place.h"

struct options {
    bool json, force, verify;
    bool quiet;      /* push and pull print nothing */
    int keep;        /* 0: all */
    int64_t state;   /* 0: not given; of push: the number that is written */
    const char *run; /* NULL: not given */
    /* Of mirror. */
    const struct s3_limits *limits;
    int most;         /* MiB; 0: as many as there are */
    const char *used; /* a file; NULL: nothing is removed */
};

/* There is no state at all yet, complete or not. */
#define COMMAND_NOTHING 1

/* Each prints what it has done. -1, or COMMAND_NOTHING, with err. */
int command_list(struct place *place, const struct options *options, struct error *err);
int command_show(struct place *place, const struct options *options, struct error *err);
int command_use(struct place *place, const struct options *options, struct error *err);
int command_remove(struct place *place, const struct options *options, struct error *err);

/* A state that a command has dealt with, of the place `where`. */
void command_print_state(const struct options *options, const char *where, const char *name);

/* Write the files of a directory as a new state, which becomes the current one. */
int command_push(struct place *place, const char *directory, const struct options *options,
                 struct error *err);

/* Copy a state into a directory of states of this user. One that is there already is not copied
 * again; of several processes one copies, and the others wait. */
int command_pull(struct place *place, const char *directory, const struct options *options,
                 struct error *err);

/* Have a directory follow a repository of models on S3: the version that counts of each of them is
 * copied there (mirror.h). */
int command_mirror(const char *where, const char *directory, const struct options *options,
                   struct error *err);

/* Copy that state into a directory of states, of which `keep` complete ones stay (0: all). */
int pull_state(struct place *from, const struct state *state, const char *directory, int keep,
               struct error *err);

/* Set *state to the latest state, or to the one that was asked for. */
int command_choose(struct place *place, const struct states *states, const struct options *options,
                   const struct state **state, struct error *err);

#endif
