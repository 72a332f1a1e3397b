/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of this user below a path, for what changes who may open them (fit/grant.h). */
#ifndef FIT_GRANT_TREE_H
#define FIT_GRANT_TREE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/error.h"

struct grant_walk {
    uid_t uid; /* who gets access, or has it */
    int (*each)(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                struct error *err);
    /* With tree: who may write in the directories above the path, which is absolute, could have
     * moved it there, too. */
    bool above;
    /* Access is taken back. One thing that stays open is no reason for others to stay open, and
     * what is at the top closes first. Else it opens last. */
    bool withdraws;
    /* … what is out of reach, or has something in it that is: errno says why. NULL: that fails. */
    void (*lose)(const struct grant_walk *walk, const char *path, const struct stat *st);
    void *arg; /* of lose */
};

/* Call each() for an open file or directory and, with tree, for all of this user's below it. Links
 * and devices are left out, and what others have there: also all below directories of others, who
 * could make them without an end. A file that others may have moved there, and that they cannot
 * read, is no file to be opened. -1 with the first err. */
int grant_walk_tree(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                    bool tree, struct error *err);

#endif
