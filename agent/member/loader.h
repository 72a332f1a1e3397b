/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the server of a shard load its models, by requests of its own API (lib/model_load.h).
 *
 * It reads the shard's file again and again, in a thread, and asks the server one request after the
 * other, in the loop. */
#ifndef ELASTIC_AGENT_MEMBER_LOADER_H
#define ELASTIC_AGENT_MEMBER_LOADER_H

#include <uv.h>

#include "lib/model_load.h"

struct loader;

/* Strings are copied. */
struct loader_options {
    enum model_load_api api;
    const char *name; /* of the replica, for the log */
    const char *file; /* the shard's list of models */
    /* Of OIP: the directory from which the server loads, with a link for each model */
    const char *links;
    const char *address; /* … of the server, with its port */
    int port;
    double every;    /* seconds between two looks at the file */
    double patience; /* that one request may take */
};

/* changed() is called from the loop. There the loader may be destroyed. NULL: out of memory. */
struct loader *loader_create(uv_loop_t *loop, const struct loader_options *options,
                             void (*changed)(const struct model_load_state *state,
                                             json_object *sizes, void *arg),
                             void *arg);
/* NULL is accepted. What is under way is given up. */
void loader_destroy(struct loader *loader);

#endif
