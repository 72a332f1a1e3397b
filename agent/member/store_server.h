/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The node's end of the store on which the processes of a world meet.
 *
 * It is a socket in the run directory (doc/internals/protocol.md, "The store's socket"). Requests
 * go to the leader, which keeps the store (agent/leader/world_store.c); the answers come back
 * here. */
#ifndef ELASTIC_AGENT_MEMBER_STORE_SERVER_H
#define ELASTIC_AGENT_MEMBER_STORE_SERVER_H

#include <stdbool.h>

#include <json-c/json.h>
#include <uv.h>

#include "lib/error.h"

struct store_server;

/* Listen at RUN_DIR/store, for that many workers and the processes that they have started. send
 * hands a message to the leader, takes it over, and returns -1 if it cannot. NULL with the reason
 * in err. */
struct store_server *store_server_create(uv_loop_t *loop, const char *run_dir, int workers,
                                         int (*send)(json_object *msg, void *arg), void *arg,
                                         struct error *err);
/* The socket, for ELASTIC_STORE. */
const char *store_server_path(const struct store_server *server);
/* Handle a message of the leader. False: it is not about the store. */
bool store_server_on_message(struct store_server *server, json_object *msg);
/* The leader is gone: all waiting clients are told. */
void store_server_lost(struct store_server *server);
/* gone is called from the loop once nothing is left. */
void store_server_destroy(struct store_server *server, void (*gone)(void *arg), void *arg);

#endif
