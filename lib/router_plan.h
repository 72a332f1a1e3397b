/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What haproxy is to be told next, so that it becomes what a table of routes says. Pure.
 *
 * The plan looks at what haproxy has, and gives one batch of steps. When they are done, or one of
 * them has failed, haproxy is looked at again. So nothing depends on what was done before, and a
 * router that is started anew goes on.
 *
 * What holds at each instant: a key whose shard had a server that answers never loses the last one.
 * A server gets requests only after a check of its own has succeeded; it is deleted only when it
 * has no requests. A new backend needs a reload, nothing else does.
 */
#ifndef ELASTIC_ROUTER_PLAN_H
#define ELASTIC_ROUTER_PLAN_H

#include <stdbool.h>

#include <json-c/json.h>

#include "lib/haproxy_answers.h"
#include "lib/haproxy_text.h"
#include "lib/route_table.h"

#define ROUTER_BATCH 240 /* steps of one plan */

struct router_has {
    const struct haproxy_stat *stat;
    const struct haproxy_route *routes; /* of its map, by key */
    int route_count;
    /* A request that came by other routes than these may be on its way. There are some that are to
     * be shut (router_patience_overdue). */
    bool older, overdue;
    /* It was started with another configuration, apart from shards. */
    bool outdated;
    /* It does not run: the plan is what it starts with. */
    bool cold;
};

enum router_step_kind {
    ROUTER_RELOAD, /* with the files of this plan */
    ROUTER_SERVER,
    ROUTER_ROUTES, /* all of the plan's, at once */
    ROUTER_SHUT,   /* requests that are overdue. The last step of its plan */
};

struct router_step {
    enum router_step_kind kind;
    enum haproxy_verb verb;
    int shard;
    struct haproxy_server server;
};

struct router_plan {
    struct router_step *steps; /* in this order */
    int count;
    /* The map as it can be by now. Keys are those of the table and of what it has. */
    struct haproxy_route *routes;
    int route_count;
    /* What a haproxy that is started now begins with. */
    struct haproxy_shard *shards;
    int shard_count;
    /* All routes of the table hold. If there is no older request, too, its epoch is true. */
    bool routed, holds;
    /* What it waits for, one line; "": for nothing. */
    struct error why;
    /* Of the plan itself. */
    struct router_target *targets;
    struct haproxy_server *servers;
};

/* The table and what haproxy has stay until the plan is cleared. -1: out of memory, and the plan is
 * empty. */
int router_plan(const struct router_has *has, const struct route_table *table,
                struct router_plan *plan);
void router_plan_clear(struct router_plan *plan);

/* haproxy's own limits are for silence only: a client can make a request last as long as he likes.
 * So those that came by older routes have HAPROXY_OLD_MAX seconds. Then they are shut. An epoch for
 * whose older requests that has been tried for ROUTER_SHUT_MAX seconds is true in any case. One
 * epoch is waited for at a time, and then the one of then: so changes that come again and again do
 * not make the time begin anew. */
#define ROUTER_SHUT_MAX 10
struct router_patience {
    bool waits;
    int64_t epoch;
    int64_t limit; /* older ones have no larger number; -1: none in this worker */
    double since;  /* seconds */
};

/* At a look: what its plan has found, for the table of this epoch. `limit` as above. Gives the
 * epoch that is true; -1: none that was not before. */
int64_t router_patience_look(struct router_patience *patience, const struct router_plan *plan,
                             int64_t epoch, int64_t limit, double now);
/* Streams with no larger number are to be shut; -1: none. */
int64_t router_patience_overdue(const struct router_patience *patience, double now);

/* What a leader is told, who made this table: names of its replicas that get nothing and have
 * nothing any more, and how many requests each of its shards has. `current`: it is the table that
 * holds, else all its replicas leave. `leaving`: workers of before a reload still have requests. */
json_object *router_drained(const struct route_table *table, const struct haproxy_stat *stat,
                            bool current, bool leaving);
json_object *router_sessions(const struct route_table *table, const struct haproxy_stat *stat);

#endif
