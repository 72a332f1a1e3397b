/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A world as PMIx knows it: a namespace with the node's processes as clients. */
#ifndef ELASTIC_PMIX_SPACE_H
#define ELASTIC_PMIX_SPACE_H

#include <sys/types.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/world.h"
#include "pmix/compat.h"

struct space {
    char name[PMIX_MAX_NSLEN + 1];
    int attempt; /* the leader's number of this start of the world */
    struct world *world;
    int index;               /* of this node in the world */
    char *directory;         /* of this world, for files of its processes; removed with the world */
    char *session_directory; /* within `directory`; the library removes it, too */
    /* Bytes that its processes publish or log and that are not answered yet. */
    size_t asked;
    struct space *next;
    /* The following fields are for the time of registration. */
    int unregistered; /* of namespace and clients */
    bool failed, unwanted;
    void (*done)(struct space *space, const struct error *err, void *arg);
    void *arg;
    pmix_info_t *info;
    size_t info_count;
    struct error err;
};

struct space_options {
    const char *name;
    int attempt;
    struct world *world; /* taken over, also on failure */
    int index;
    const char *directory; /* is made, 0700 */
    const char *job, *cwd; /* "12.0"; where processes start */
    json_object *cpus;     /* of each local process, as a list ("0-3,8"); NULL: not bound */
};

/* Register a world with the library. done is called in the loop. Its err is NULL if clients may
 * come; else it says why they may not, and the space has to be destroyed. NULL with err: nothing
 * has been begun. */
struct space *space_create(const struct space_options *options,
                           void (*done)(struct space *space, const struct error *err, void *arg),
                           void *arg, struct error *err);

/* Additions to the environment of each local process: an array of arrays of "NAME=VALUE". NULL: the
 * library refuses. */
json_object *space_environment(const struct space *space);

/* The node that a rank is on, -1: there is no such rank. */
int space_node_of(const struct space *space, pmix_rank_t rank);

/* Free a space whose processes are gone and whose calls are answered. */
void space_destroy(struct space *space);

#endif
