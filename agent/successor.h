/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An agent of the base that can lead when the leader is lost (doc/internals/takeover.md).
 *
 * The agent listens for other agents that have lost the leader, too, counts their votes, and claims
 * the next term. */
#ifndef ELASTIC_SUCCESSOR_H
#define ELASTIC_SUCCESSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>
#include <uv.h>

#include "common/link.h"
#include "lib/conf.h"
#include "lib/error.h"

/* This many nodes of the base are successors: those with the lowest numbers, without the first
 * node. */
#define SUCCESSORS_MAX 8

struct successor;

struct successor_options {
    uint32_t job, restarts;
    const char *step;
    const char *node;
    const char *state_dir;
    int base_nodes;
    uid_t slurm_user;
    const struct conf *conf;
};

/* An agent that has voted. `said` holds its messages so far as a JSON array, beginning with its
 * join. */
struct vote {
    struct link *link;
    json_object *said;
    uint64_t since; /* on the loop's clock, ms */
};

/* This agent leads that term from now on. server and votes belong to the handler, which calls
 * link_server_lead(); the handler only borrows the messages of the votes. */
typedef void (*successor_lead)(struct link_server *server, int term, const struct vote *votes,
                               int count, void *arg);

/* Listen. NULL with err: the agent cannot listen. The targets of the pointers in options must
 * outlive the successor. */
struct successor *successor_create(uv_loop_t *loop, const struct successor_options *options,
                                   successor_lead lead, void *arg, struct error *err);
int successor_port(const struct successor *successor);
/* A leader leads that term. Agents that ask are sent to it. */
void successor_follow(struct successor *successor, const char *address, int port, int term);
/* This agent knows of no leader. */
void successor_seek(struct successor *successor);
/* Free, asynchronously. NULL is accepted. */
void successor_destroy(struct successor *successor);

#endif
