/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An agent of the base that can lead when the leader is lost: it listens for others that have lost it, too, counts their votes, and claims
 * the next term (doc/takeover.md). */
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

/* So many of the base's nodes, those with the lowest numbers besides the first, are successors. */
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

/* One that has voted: what it has said so far, a JSON array of messages, the first of which is its join. */
struct vote {
    struct link *link;
    json_object *said;
    uint64_t since; /* on the loop's clock, ms */
};

/* This agent leads that term from now on: server and votes are the handler's, which calls link_server_lead(); it borrows what votes have said. */
typedef void (*successor_lead)(struct link_server *server, int term, const struct vote *votes,
                               int count, void *arg);

/* Listen. NULL with err: it cannot. What options point to must outlive it. */
struct successor *successor_create(uv_loop_t *loop, const struct successor_options *options,
                                   successor_lead lead, void *arg, struct error *err);
int successor_port(const struct successor *successor);
/* There is a leader, which leads that term. Whoever asks is sent there. */
void successor_follow(struct successor *successor, const char *address, int port, int term);
/* There is none that this agent knows of. */
void successor_seek(struct successor *successor);
/* Asynchronous. NULL is accepted. */
void successor_destroy(struct successor *successor);

#endif
