/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A place for run directories on this node, as root sees it: snapshot_dir, or /dev/shm.
 *
 * What lies in it belongs to users, and may be a mount of a user's own that never answers. So
 * names come from a listing, and their owner from what the kernel knows without asking a file
 * system. */
#ifndef ELASTIC_FLUSH_PLACE_H
#define ELASTIC_FLUSH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/error.h"
#include "lib/snapshot.h"

#define PLACES_MAX      2 /* of a node */
#define PLACE_NAME_SIZE (sizeof("elastic-4294967295-4294967295.4294967295-") + SNAPSHOT_NODE_MAX)

struct place {
    const char *path;
    int fd;   /* -1: not usable */
    bool own; /* nobody but root, or this process's user, makes entries there */
    /* own, and the root of a tmpfs in which are no other directories: all that lies in that was put
     * into a run directory there. From
     * another place of the same file system a user can move into his directory what others have let
     * him write into, with all that he could not remove from it. */
    bool alone;
};

/* A run directory, or something else with such a name that belongs to the user in it. */
struct place_run {
    struct snapshot_run run;
    int place; /* an index of the caller's */
    char name[PLACE_NAME_SIZE];
};

/* Open a place, by an absolute path, where only root, or this process's user, can put something
 * else in the place of an entry: neither it nor a directory above it is writable by others, unless
 * it has the sticky bit; and links on the way are theirs. 0; -1 with err, and errno ENOENT if it
 * does not exist. */
int place_open(struct place *place, const char *path, struct error *err);

/* The first place that can be used; NULL: none. */
const struct place *place_first(const struct place places[PLACES_MAX]);

/* The name of a run directory. */
void place_name(char name[PLACE_NAME_SIZE], const struct snapshot_run *run);

/* Is there something of that name that belongs to the user in it? Where only root makes entries all
 * of that name does, whatever its user has mounted there or has made of its owner. */
bool place_has(const struct place *place, const struct snapshot_run *run);

/* Make an empty directory that belongs to the user in its name, also where another user has the
 * name, unless he has mounted something there. 0: it is there; -1 with err. */
int place_make(const struct place *place, const struct snapshot_run *run, gid_t gid,
               struct error *err);

/* Unmount what a user has mounted on that name, where only root makes entries. The kernel may keep
 * this process waiting there, for as long as the user likes. Changes the working directory to /. */
void place_uncover(const struct place *place, const char *name);

/* Remove the directory if it is empty. */
void place_remove(const struct place *place, const char *name);

/* For qsort(), of one user. */
int place_newest_first(const void *a, const void *b);

/* Call found() for each run directory of this node that belongs to the user in its name
 * (place_has()). Empty ones of any owner that are a day old are removed. */
void place_each(const struct place *place, const char *node,
                void (*found)(void *arg, const struct snapshot_run *run), void *arg);

/* How many bytes one user may keep there of what could not be saved. Nothing, where more than half
 * of the memory for snapshots is in use. */
int64_t place_share(const struct place *place);

#endif
