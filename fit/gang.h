/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A training of several tasks: a gang, which the leader starts and ends as a whole. Task 0 is the
 * trainer. The others do what it says, by files of the fit:
 *
 *     gang.json        task 0 trains: in which start of the gang, and where its data is
 *     gang.1.2         in attempt 1 task 2 has ended with 0
 *     gang.1.failed    … a task has failed: which, and why
 */
#ifndef FIT_GANG_H
#define FIT_GANG_H

#include "fit/home.h"

struct gang {
    int task, tasks; /* this one, and how many there are; tasks 1: there is no gang */
    char start[NEW_STATE_ATTEMPT_MAX + 1]; /* this start of the gang: no other has that name */
    int attempt;                           /* of the training */
    int waited;                            /* of task 0: tasks before this one have ended well */
};

/* As the leader has said in the environment. Outside of a replica: one task. */
struct gang gang_here(void);

/* ---- of task 0 ------------------------------------------------------------------------------- */

/* The others are to train, in that attempt. staged: a directory with data; "": none. */
int gang_begin(struct gang *gang, const struct home *home, int64_t id, int attempt,
               const char *staged, struct error *err);
/* Has another task failed? Then why says which. */
bool gang_has_failed(const struct gang *gang, const struct home *home, int64_t id,
                     struct error *why);
/* Have all others ended with 0? */
bool gang_is_done(struct gang *gang, const struct home *home, int64_t id);

/* ---- of the others --------------------------------------------------------------------------- */

/* It is to train now, and has not done so. staged is filled, "" if there is no such directory. */
bool gang_has_begun(struct gang *gang, const struct home *home, int64_t id, char *staged,
                    size_t size);
/* It has ended with that status, and why. */
int gang_say(const struct gang *gang, const struct home *home, int64_t id, int code,
             const struct error *why, struct error *err);

#endif
