/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encrypted connections between agents, leader and selastic: JSON over libuv streams.
 *
 * All functions belong to the loop's thread. Callbacks come from the loop, never from inside a
 * function of this file. A link may be closed in any of its callbacks. It is freed after `closed`,
 * which is called once for each link that the user knows: links that `open` was called with, and
 * links that link_connect returned.
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
    /* A message has come. msg belongs to the link, which puts it after the call. */
    void (*message)(struct link *link, json_object *msg, void *arg);
    /* The connection has ended. why is text for the log, never NULL: the text given to link_close,
     * or the peer's address and what the peer did. */
    void (*closed)(struct link *link, const char *why, void *arg);
    /* Of a server: this user was refused as control, being neither the own user nor root nor
     * SlurmUser. link_server_admit() lets it in the next time, for all or as a guest. May be
     * NULL. */
    void (*stranger)(uid_t uid, void *arg);
};

#define LINK_ROLE_AGENT   "agent"
#define LINK_ROLE_CONTROL "control"
/* An agent that has lost its leader, to an agent that may lead next. */
#define LINK_ROLE_VOTER "voter"

struct link_server_options {
    uint32_t job_id;
    uint32_t restarts;
    const char *munge_socket; /* NULL: default */
    uid_t slurm_user;         /* accepted for control besides the own uid and root */
    int port_first, port_last;
    const char *state_dir; /* of the job; NULL: there is none */
    bool successor;        /* only voters are let in, until link_server_lead() */
};

/* Listen on the first free candidate port of the incarnation (all interfaces). handlers.open is
 * called with each authenticated link. A successor takes the last free port, because agents that
 * look for the leader begin with the first. When no candidate is free: on any port. Who leads
 * writes its port into a file of the state directory, a candidate in a worker thread. NULL with err
 * when no candidate is free and that fails, or there is no such directory. */
struct link_server *link_server_create(uv_loop_t *loop, const struct link_server_options *options,
                                       const struct link_handlers *handlers, void *arg,
                                       struct error *err);
int link_server_port(const struct link_server *server);
/* Accept this user for control as well, for so many milliseconds. Of many, the latest few. What a
 * guest may say is up to the handlers (link_is_guest). */
void link_server_admit(struct link_server *server, uid_t uid, bool guest, uint64_t ms);
/* This successor leads from now on: all roles are let in. The new handlers are called, also for the
 * links that exist already. */
void link_server_lead(struct link_server *server, const struct link_handlers *handlers, void *arg);
/* Stop listening and close every link of the server. Asynchronous: run the loop until it has
 * nothing to do. */
void link_server_destroy(struct link_server *server);

struct link_client_options {
    const char *role; /* LINK_ROLE_… */
    uint32_t job_id;
    uint32_t restarts;
    uid_t leader_uid; /* uid that the leader must have */
    const char *munge_socket;
    const char *address; /* host name or numeric address */
    int port;            /* 0: try the candidate ports of the incarnation */
    int port_first, port_last;
    /* Of the job: its file of the leader's port is looked at when the first candidate does not
     * prove to be the leader at once. NULL: not known. */
    const char *state_dir;
    int timeout_ms; /* for everything until open. Refused connections are tried again until then */
    bool once;      /* each port and address is tried once only */
};

/* Connect and authenticate; handlers.open or handlers.closed follows. NULL with err when nothing
 * could even be started. */
struct link *link_connect(uv_loop_t *loop, const struct link_client_options *options,
                          const struct link_handlers *handlers, void *arg, struct error *err);

/* Make a link with a process that this process has started, or that has started this process. fd is
 * one end of a socket pair of type SOCK_STREAM; it is taken over. Nobody else can reach the socket
 * pair, so there is no handshake: the link is open at once (handlers.open is not called). `first`
 * is true at one end and false at the other. NULL: fd is closed, err says why. */
struct link *link_adopt(uv_loop_t *loop, int fd, bool first, const struct link_handlers *handlers,
                        void *arg, struct error *err);

/* Send msg (the reference is taken over, also on failure). -1: the link is not open, or msg is
 * larger than FRAME_KEYED_MAX. A link whose peer leaves 64 MiB unread ends. */
int link_send(struct link *link, json_object *msg);

/* Close after the queue is written (at most a second). No more messages are delivered. `closed` is
 * called later. A link that is closing already keeps its reason. */
void link_close(struct link *link, const char *why);

void link_set_arg(struct link *link, void *arg);
const char *link_role(const struct link *link);
uid_t link_peer_uid(const struct link *link);
/* Of a server: was this peer let in as a guest only? */
bool link_is_guest(const struct link *link);
/* Numeric address of the peer. */
const char *link_peer_address(const struct link *link);
/* Has the peer itself ended the connection in an orderly way? False if the connection is only known
 * to be broken: then the peer may not know that. */
bool link_peer_closed(const struct link *link);
/* Bytes queued and not yet written. */
size_t link_queued(const struct link *link);

/* The k-th candidate port (k = 0..15) of an incarnation; all are different if the range is large
 * enough. Pure. The formula never changes: both sides compute it, and may have different
 * versions. */
#define LINK_CANDIDATES 16
int link_candidate_port(uint32_t job_id, uint32_t restarts, int k, int first, int last);

#endif
