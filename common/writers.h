/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may write into a file or directory, by its mode. */
#ifndef ELASTIC_COMMON_WRITERS_H
#define ELASTIC_COMMON_WRITERS_H

#include <stdbool.h>
#include <sys/stat.h>

/* The last group that was looked up, for one thread. Begins as {0}. */
struct writers {
    bool known, own;
    gid_t gid;
};

/* May anybody but its owner and root write there? The group may if it is the own one of this
 * process's user, with nobody else in it, as many systems make it for each user. fd: open, also by
 * O_PATH; st: what it is. May ask the service that knows users. */
bool writers_are_others(struct writers *writers, int fd, const struct stat *st);

#endif
