/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table that a leader makes for routers: shards with their replicas, and which key goes to
 * which shard. Pure. Read strictly, because it comes from a file or another process. */
#ifndef ELASTIC_ROUTE_TABLE_H
#define ELASTIC_ROUTE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/haproxy_text.h"

#define ROUTE_TABLE_TEXT_MAX     (16 << 20) /* bytes */
#define ROUTE_TABLE_ROUTES_MAX   100000
#define ROUTE_TABLE_REPLICAS_MAX 10000 /* of all shards */

struct route_replica {
    char *name;
    char *address; /* IPv4 or IPv6, as numbers */
    int port;
    bool draining; /* it gets no new requests */
};

struct route_shard {
    int number;
    char *check; /* path that a replica answers with 200 when it is ready */
    struct route_replica *replicas;
    int count;
};

struct route_table {
    char *service, *job;
    int64_t term, revision, epoch;
    enum haproxy_key by;
    char *what;                 /* as in struct haproxy_config */
    struct route_shard *shards; /* by number */
    int shard_count;
    struct haproxy_route *routes; /* by key; the keys are the table's. shard 0: it goes nowhere */
    int route_count;
    bool on_demand; /* the leader wants to know which keys somebody asks for */
    int holders;
};

/* NULL with err: it is none. What a later release may add to it is ignored. */
struct route_table *route_table_read(json_object *json, struct error *err);
struct route_table *route_table_parse(const char *text, size_t length, struct error *err);
void route_table_destroy(struct route_table *table); /* accepts NULL */
/* One more who holds it, and will destroy it. Returns it. */
struct route_table *route_table_share(struct route_table *table);

/* The way back: a new object. */
json_object *route_table_json(const struct route_table *table);

const struct route_shard *route_table_shard(const struct route_table *table, int number);

/* Is it to take the place of the other one, which may be NULL? Of two terms the higher one counts,
 * of two revisions the later one. */
bool route_table_follows(const struct route_table *table, const struct route_table *held);

/* The name that haproxy has for a replica: its own, with address and port. So a replica that starts
 * anew elsewhere is another server, and so is one of another term. */
#define ROUTE_SERVER_NAME 256
char *route_server_name(const struct route_replica *replica, char name[ROUTE_SERVER_NAME]);
/* The address and port in such a name. False: it is none. */
#define ROUTE_ADDRESS 48
bool route_server_address(const char *name, char address[ROUTE_ADDRESS], int *port);

#endif
