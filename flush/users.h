/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose run directories one sweep of a node takes.
 *
 * Where everybody may write, a user can make directories of as many uids as he has subordinate uids
 * (subuid(5)): 65536, as a rule. So uids count there that are users: those with an account. Where
 * only root makes entries, each is that of a job. */
#ifndef ELASTIC_FLUSH_USERS_H
#define ELASTIC_FLUSH_USERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "flush/place.h"

/* The users that have something on this node, at most max, in the order in which they have their
 * turn. It begins with another one each time, so that nobody is left out for ever. At the end may
 * be one stranger, for all uids that are nobody's: a node may not know all users. Returns their
 * number. */
int users_choose(const struct place places[PLACES_MAX], const char *node, uid_t *users, int max,
                 bool *last_is_stranger);

#endif
