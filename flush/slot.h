/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many processes may wait for users' file systems on one node.
 *
 * A slot is a lock on one byte of a file that only root can open. A process that is started with
 * it holds it until it ends, whatever it waits for. No user can take a slot or give one back. */
#ifndef ELASTIC_FLUSH_SLOT_H
#define ELASTIC_FLUSH_SLOT_H

#include <sys/types.h>

#include "flush/place.h"
#include "lib/error.h"

enum slot {
    SLOT_SWEEP, /* the sweep of the node */
    SLOT_NEXT,  /* the one that waits for it to end */
    SLOT_USERS, /* not a slot: those of users begin there */
};

/* Numbers of a user's slots. */
#define SLOT_USER_SWEEP 0
#define SLOT_USER_RUNS  1 /* the first of those for jobs that end */
#define SLOT_USER_MAX   9

#define SLOT_STRANGERS UINT32_MAX /* no uid: all that are not those of users */

/* A descriptor that holds the slot. -1 with errno EAGAIN: somebody has it; -1 with err: there is no
 * file for it. */
int slot_take(const struct place *place, const char *node, enum slot slot, struct error *err);

/* The same, after waiting for it. */
int slot_wait(const struct place *place, const char *node, enum slot slot, struct error *err);

/* The same for a slot of a user. */
int slot_take_user(const struct place *place, const struct snapshot_run *run, int number,
                   struct error *err);

#endif
