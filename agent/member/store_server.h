/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The node's end of the store on which the processes of a world meet (doc/architecture.md, "The store's socket"): a socket in the run
 * directory. What is asked there goes to the leader, which keeps the store (agent/leader/world_store.c), and its answers come back here. */
#ifndef ELASTIC_AGENT_MEMBER_STORE_SERVER_H
#define ELASTIC_AGENT_MEMBER_STORE_SERVER_H

#include <stdbool.h>

#include <json-c/json.h>
#include <uv.h>

#include "lib/error.h"

struct store_server;

/* Listen at RUN_DIR/store, for that many workers and what they have started. send hands a message to the leader, takes it over, and
 * returns -1 if it cannot. NULL with the reason in err. */
struct store_server *store_server_create(uv_loop_t *loop, const char *run_dir, int workers,
                                         int (*send)(json_object *msg, void *arg), void *arg,
                                         struct error *err);
/* The socket, for ELASTIC_STORE. */
const char *store_server_path(const struct store_server *server);
/* A message of the leader. False: not one about the store. */
bool store_server_on_message(struct store_server *server, json_object *msg);
/* The leader is gone: whoever waits is told so. */
void store_server_lost(struct store_server *server);
/* gone is called from the loop once nothing is left. */
void store_server_destroy(struct store_server *server, void (*gone)(void *arg), void *arg);

#endif
