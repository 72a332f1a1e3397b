/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Authenticated connections between agents, leader and selastic: libuv streams, munge handshake, keyed frames of JSON.
 *
 * All functions belong to the loop's thread. Callbacks are never called from inside the function that was just called on the same link,
 * except `closed`, which is called exactly once per link, from the loop, after which the link is freed. */
#ifndef ELASTIC_LINK_H
#define ELASTIC_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>
#include <uv.h>

#include "lib/error.h"

struct link;
struct link_server;

struct link_handlers {
    /* The handshake is done. */
    void (*open)(struct link *link, void *arg);
    /* One message; msg belongs to the link and is put after the call. */
    void (*message)(struct link *link, json_object *msg, void *arg);
    /* The connection has ended; why is text for the log, never NULL. */
    void (*closed)(struct link *link, const char *why, void *arg);
};

#define LINK_ROLE_AGENT "agent"
#define LINK_ROLE_CONTROL "control"

struct link_server_options {
    uint32_t job_id;
    uint32_t restarts;
    const char *munge_socket; /* NULL: default */
    uid_t slurm_user;         /* accepted for control besides the own uid and root */
    int port_first, port_last;
};

/* Listen on the first free candidate port of the incarnation (all interfaces). handlers.open is called with each authenticated link;
 * set its own argument with link_set_arg. NULL with err when no candidate is free. */
struct link_server *link_server_create(uv_loop_t *loop, const struct link_server_options *options,
                                       const struct link_handlers *handlers, void *arg, struct error *err);
int link_server_port(const struct link_server *server);
/* Stop listening and close every link of the server. Asynchronous: run the loop until it has nothing to do. */
void link_server_destroy(struct link_server *server);

struct link_client_options {
    const char *role;         /* LINK_ROLE_… */
    uint32_t job_id;
    uint32_t restarts;
    uid_t leader_uid;         /* who the leader must be */
    const char *munge_socket;
    const char *address;      /* host name or numeric address */
    int port;                 /* 0: try the candidate ports of the incarnation in turn */
    int port_first, port_last;
    int timeout_ms;           /* for everything until open; retries refused connections within it */
};

/* Connect and authenticate; handlers.open or handlers.closed follows. NULL with err when nothing could even be started. */
struct link *link_connect(uv_loop_t *loop, const struct link_client_options *options, const struct link_handlers *handlers, void *arg,
                          struct error *err);

/* Send msg (the reference is taken over, also on failure). -1 when the link is not open. */
int link_send(struct link *link, json_object *msg);

/* Close after what has been queued is written (at most a second). closed is called later. */
void link_close(struct link *link, const char *why);

void link_set_arg(struct link *link, void *arg);
const char *link_role(const struct link *link);
uid_t link_peer_uid(const struct link *link);
/* Numeric address of the peer. */
const char *link_peer_address(const struct link *link);
/* Bytes queued and not yet written. */
size_t link_queued(const struct link *link);

/* The k-th candidate port (k = 0..15) of an incarnation: a fixed permutation within first..last. Pure. */
#define LINK_CANDIDATES 16
int link_candidate_port(uint32_t job_id, uint32_t restarts, int k, int first, int last);

#endif
