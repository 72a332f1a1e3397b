/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the message task_start orders. */
#ifndef ELASTIC_AGENT_MEMBER_REPLICA_ORDER_H
#define ELASTIC_AGENT_MEMBER_REPLICA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/roles.h"
#include "lib/world.h"

/* What a message is about. */
struct replica_which {
    int64_t id, start;
};

/* Its texts are the message's. Whoever reads it begins with index and master_fd -1. */
struct replica_order {
    struct replica_which which;
    const struct role *role;
    struct slots_gang gang; /* what it needs */
    const char *owner;
    int64_t owner_port;
    const char *models; /* of a shard: the file with its models; NULL: it is of none … */
    int64_t version;    /* … and which version of the shard this is */
    char **run;         /* its command; NULL: that of the role … */
    int64_t program;    /* … and the number of that */
    const char *name;
    struct world *world;
    int64_t index;
    int master_fd; /* -1: another node has chosen MASTER_PORT */
    bool no_port;
};

/* -1 with err: what it orders cannot be done. What has been read until then is in *order. In any
 * case the caller destroys order->world, frees order->run and closes order->master_fd. The port
 * that this node chooses is added to msg. */
int replica_order_read(struct replica_order *order, const struct roles *roles, json_object *msg,
                       struct error *err);

#endif
