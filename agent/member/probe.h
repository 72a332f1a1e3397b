/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is a task of a replica ready? It is looked at again and again, also after it was ready. */
#ifndef ELASTIC_AGENT_MEMBER_PROBE_H
#define ELASTIC_AGENT_MEMBER_PROBE_H

#include <uv.h>

#include "agent/workers/workers.h"
#include "lib/roles.h"

struct probe;

struct probe_options {
    enum role_probe how;
    double every; /* seconds from one look to the next */
    /* HTTP: a path on the server. FILE, TOLD: an absolute path that exists. */
    const char *what;
    /* HTTP, TCP: where it listens. It is asked at 127.0.0.1 and at this address of the node (NULL:
     * not known) in turn, until one of them answers; from then on there. */
    int port;
    const char *address;
    /* EXEC: a command, which runs as the one worker of that world and ends with 0. */
    const struct workers_options *command;
    const struct world *world;
};

/* They may destroy the probe. */
struct probe_handlers {
    void (*ready)(void *arg);
    /* After it was ready it has failed PROBE_FAILURES times in a row, the last time because of why.
     * Nobody looks any more. */
    void (*unready)(const char *why, void *arg);
};

#define PROBE_FAILURES 3
#define PROBE_LIMIT_MS 10000 /* for a look; a command has `every` if that is longer */

/* Handlers are called from the loop only. What options point to must outlive the probe. NULL: out
 * of memory. */
struct probe *probe_create(uv_loop_t *loop, const struct probe_options *options,
                           const struct probe_handlers *handlers, void *arg);

/* HTTP, TCP: the address where it has been answered, or is about to ask. */
const char *probe_address(const struct probe *probe);

/* Call no handler any more. What is under way is ended, and freed by the loop. NULL is accepted. */
void probe_destroy(struct probe *probe);

#endif
