/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state that a fit makes, below the place of its model: 000008.partial, where the training
 * writes, and then 000008. */
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
};

struct new_state_path {
    char text[PATH_MAX];
};

/* Where the training writes, or (whole) where it lies in the end. */
struct new_state_path new_state_path(const char *place, int64_t number, bool whole);

/* Make its directory: *pin, which may be NULL. -1 with err, and errno EEXIST if the number is
 * taken. */
int new_state_make(const struct new_state *state, struct pin *pin, struct error *err);
/* Its directory, open; it is the one of the pin. -1 with err. */
int new_state_open(const struct new_state *state, struct error *err);
/* … or where it lies in the end, if it does already. */
int new_state_open_done(const struct new_state *state, struct error *err);
/* Is something else there? */
bool new_state_is_other(const struct new_state *state);
/* It is empty once more. */
int new_state_again(const struct new_state *state, struct error *err);

/* Write complete.json for all files of it, and flush them. */
int new_state_finish(const struct new_state *state, const char *run, struct error *err);
/* Has it a complete.json, and the files of it? */
int new_state_check(const struct new_state *state, struct error *err);

/* It lies where it will stay. Also if it does already. */
int new_state_publish(const struct new_state *state, struct error *err);
/* Removes it; what others fill meanwhile is given up after two minutes: -1 with err. */
int new_state_discard(const struct new_state *state, struct error *err);

#endif
