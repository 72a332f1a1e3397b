/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting elastic-flush with the rights of a user. */
#ifndef ELASTIC_FLUSH_START_H
#define ELASTIC_FLUSH_START_H

#include <sys/types.h>

#include "lib/error.h"

struct start {
    uid_t uid;
    const gid_t *gid;  /* NULL: that of the user's entry */
    const char **argv; /* from its options on; ends with NULL */
    int slot;          /* a descriptor that the process keeps until it ends; -1: none */
};

/* Start the elastic-flush that is installed beside this program, as a session of its own. It is the
 * first program that runs with the user's rights, and no process of the user can read or trace it.
 * *output is the end of a pipe with all that it says. Returns its id; -1 with err. */
pid_t start_flush(const struct start *start, int *output, struct error *err);

#endif
