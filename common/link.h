/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Authenticated connections between agents, leader and selastic: JSON over libuv streams.
 *
 * All functions belong to the loop's thread. Callbacks come from the loop, never from inside a
 * function of this file. A link may be closed in any of its callbacks. It is freed after closed,
 * which is called once for each link that the user knows: those that open was called with, and
 * those that link_connect returned.
 *
 * The process must ignore SIGPIPE: libuv writes to connections that the peer may have closed. */
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
    /* The connection has ended; why is text for the log, never NULL: what link_close was given, else
     * the peer's address and what it did. */
    void (*closed)(struct link *link, const char *why, void *arg);
};

#define LINK_ROLE_AGENT   "agent"
#define LINK_ROLE_CONTROL "control"
/* An agent that has lost its leader, to one that may lead next. */
#define LINK_ROLE_VOTER "voter"

struct link_server_options {
    uint32_t job_id;
    uint32_t restarts;
    const char *munge_socket; /* NULL: default */
    uid_t slurm_user;         /* accepted for control besides the own uid and root */
    int port_first, port_last;
    bool successor; /* only voters are let in, until link_server_lead() */
};

/* Listen on the first free candidate port of the incarnation (all interfaces). handlers.open is
 * called with each authenticated link. A successor takes the
 * last free one: those who look for the leader begin with the first. NULL with err when no candidate
 * is free. */
struct link_server *link_server_create(uv_loop_t *loop, const struct link_server_options *options,
                                       const struct link_handlers *handlers, void *arg,
                                       struct error *err);
int link_server_port(const struct link_server *server);
/* A successor leads from now on: everybody is let in, and these handlers are called, for the links
 * that there are as well. */
void link_server_lead(struct link_server *server, const struct link_handlers *handlers, void *arg);
/* Stop listening and close every link of the server. Asynchronous: run the loop until it has
 * nothing to do. */
void link_server_destroy(struct link_server *server);

struct link_client_options {
    const char *role; /* LINK_ROLE_… */
    uint32_t job_id;
    uint32_t restarts;
    uid_t leader_uid; /* who the leader must be */
    const char *munge_socket;
    const char *address; /* host name or numeric address */
    int port;            /* 0: try the candidate ports of the incarnation in turn */
    int port_first, port_last;
    int timeout_ms; /* for everything until open; retries refused connections within it … */
    bool once;      /* … or does not: each port and address is tried once */
};

/* Connect and authenticate; handlers.open or handlers.closed follows. NULL with err when nothing
 * could even be started. */
struct link *link_connect(uv_loop_t *loop, const struct link_client_options *options,
                          const struct link_handlers *handlers, void *arg, struct error *err);

/* A link with a process that we have started, or that has started us, over one end of a socket pair
 * of type SOCK_STREAM, which is taken over. Nobody else can reach that, so there is no handshake:
 * it is open at once (handlers.open is not called). The two ends are told apart by first. NULL:
 * fd is closed, err says why. */
struct link *link_adopt(uv_loop_t *loop, int fd, bool first, const struct link_handlers *handlers,
                        void *arg, struct error *err);

/* Send msg (the reference is taken over, also on failure). -1 when the link is not open, or when
 * msg is larger than FRAME_KEYED_MAX. A link whose peer leaves 64 MiB unread ends. */
int link_send(struct link *link, json_object *msg);

/* Close after what has been queued is written (at most a second); nothing more is delivered. closed
 * is called later. A link that is closing already keeps its reason. */
void link_close(struct link *link, const char *why);

void link_set_arg(struct link *link, void *arg);
const char *link_role(const struct link *link);
uid_t link_peer_uid(const struct link *link);
/* Numeric address of the peer. */
const char *link_peer_address(const struct link *link);
/* Has the peer's own side ended the connection, orderly? Not if it is only known to be broken: then the peer may not know it yet. */
bool link_peer_closed(const struct link *link);
/* Bytes queued and not yet written. */
size_t link_queued(const struct link *link);

/* The k-th candidate port (k = 0..15) of an incarnation, all different if the range has as many.
 * Pure. Fixed for ever: both sides compute it, and may be of different versions. */
#define LINK_CANDIDATES 16
int link_candidate_port(uint32_t job_id, uint32_t restarts, int k, int first, int last);

#endif
