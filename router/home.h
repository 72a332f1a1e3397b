/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of a router on its machine: haproxy's files and sockets, and a lock. Nobody else
 * can look into it. It outlives a router that is killed, and so does haproxy: the next one goes
 * on. */
#ifndef ELASTIC_ROUTER_HOME_H
#define ELASTIC_ROUTER_HOME_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

#define HOME_PATH 108 /* of a socket */

struct home {
    char dir[HOME_PATH];
    char config[HOME_PATH], map[HOME_PATH], tokens[HOME_PATH]; /* haproxy's files */
    char socket[HOME_PATH], master[HOME_PATH];                 /* its sockets */
    char status[HOME_PATH];
    char process[HOME_PATH]; /* who haproxy's master is */
    int lock;                /* -1: not held */
};

/* The paths. dir NULL: the usual one of this user and service. -1 with err: haproxy could not use
 * such a path. */
int home_find(struct home *home, const char *dir, const char *service, struct error *err);
/* Makes the directory and takes the lock. -1 with err: another router has it. */
int home_open(struct home *home, const char *service, struct error *err);
/* Does a router run there? */
bool home_is_held(const struct home *home);
/* haproxy has ended: nothing but the lock is left. */
void home_clear(const struct home *home);
void home_close(struct home *home);

#endif
