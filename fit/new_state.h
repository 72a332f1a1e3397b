/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state that a fit makes, below the place of its model: 000008.partial, and then 000008.
 *
 * Each attempt of a training writes into a directory of its own, 000008.partial/.attempt-NAME. One
 * that was given up may go on, on a node that is cut off: it adds nothing to the others. The files
 * of one attempt become those of the state. */
#ifndef FIT_NEW_STATE_H
#define FIT_NEW_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "fit/pin.h"
#include "lib/error.h"
#include "lib/states.h"

struct new_state {
    const char *place; /* an absolute path */
    int64_t number, previous;
    const struct pin *pin; /* of its directory; NULL: it is any */
    const char *attempt;   /* that writes, or has written; NULL: none, the files lie there */
};

#define NEW_STATE_ATTEMPT_MAX 95 /* bytes of its name: letters, digits, '-' and '.' */

struct new_state_path {
    char text[PATH_MAX];
};

/* Its directory while it is made, or (whole) where it lies in the end. */
struct new_state_path new_state_path(const char *place, int64_t number, bool whole);
/* Where that attempt writes. */
struct new_state_path new_state_attempt_path(const char *place, int64_t number,
                                             const char *attempt);

/* Make its directory: *pin, which may be NULL. -1 with err, and errno EEXIST if the number is
 * taken. */
int new_state_make(const struct new_state *state, struct pin *pin, struct error *err);
/* Its directory, open; it is the one of the pin. -1 with err. */
int new_state_open(const struct new_state *state, struct error *err);
/* … or where it lies in the end, if it does already. */
int new_state_open_done(const struct new_state *state, struct error *err);
/* Is something else there? */
bool new_state_is_other(const struct new_state *state);
/* The attempt has an empty directory; also if it has begun before. */
int new_state_begin(const struct new_state *state, struct error *err);
/* What the attempt has written gets another name: who still has the first one finds nothing there.
 * Also if something has that name already. */
int new_state_seal(const struct new_state *state, const char *name, struct error *err);
/* Write complete.json for all files of the attempt, or of the state, and flush them. */
int new_state_finish(const struct new_state *state, const char *run, struct error *err);
/* The files of the attempt become those of the state, complete.json last. Other attempts go. Also
 * if that was done before, or goes on beside: with the same attempt. */
int new_state_take(const struct new_state *state, struct error *err);
/* Has it a complete.json, and the files of it? */
int new_state_check(const struct new_state *state, struct error *err);

/* It lies where it will stay. Also if it does already. */
int new_state_publish(const struct new_state *state, struct error *err);
/* Removes it; what others fill meanwhile is given up after two minutes: -1 with err. */
int new_state_discard(const struct new_state *state, struct error *err);

#endif
