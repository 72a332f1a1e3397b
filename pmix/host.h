/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of elasticrun-pmix share.
 *
 * main.c: life, and messages of the agent; exchange.c: collectives, and data of other nodes;
 * query.c: questions about a job; allocate.c, control.c, events.c: the size of the job, and
 * leaving; publish_calls.c: published data; log_lines.c: lines for the log; space.c: worlds;
 * library.c: OpenPMIx; accept.c: who may connect. */
#ifndef ELASTIC_PMIX_HOST_H
#define ELASTIC_PMIX_HOST_H

#include <json-c/json.h>
#include <uv.h>

#include "common/link.h"
#include "pmix/library.h"
#include "pmix/space.h"

struct waiting;

struct host {
    uv_loop_t loop;
    struct link *link; /* with the agent; NULL: gone */
    char *directory, *job;
    struct space *spaces;
    struct waiting *waiting; /* calls that other nodes will answer */
    uint64_t next_id;
};

/* The library's upcalls have no cookie, and the library exists once per process. */
extern struct host host;

json_object *host_message(const char *type, int attempt);
void host_send(json_object *msg);
struct space *host_space(int attempt);
struct space *host_space_by_name(const char *name);

/* The oldest running space: another space is only being prepared. NULL: there is none. */
struct space *host_running_space(void);

/* allocate.c */
void allocate(struct call *call);
/* Why the last request of this name was refused. NULL: the request is too old, or was made on
 * another node. */
const char *allocate_refusal(const char *label);
/* control.c */
void control(struct call *call);
void control_event(struct call *call);
/* events.c: of the leader, for a process or all of a space */
bool events_on_message(const char *type, json_object *msg);
/* Send an event of a process here to the processes of other nodes that it is for. */
void events_relay(const struct call *call);
/* Deliver an event of a process of another node. */
void events_relayed(const struct space *space, json_object *msg);
/* Ask the processes of this node to save, and to go on. */
void events_checkpoint(const struct space *space);

/* exchange.c */
void exchange_fence(struct call *call); /* and connect, disconnect */
void exchange_modex(struct call *call);
/* Ask the leader about `what`, with the members of msg (taken over). done answers the call. If no
 * answer comes within that many seconds (0: no limit), or the space goes, the call is answered with
 * that, and done is not called. */
void exchange_ask(struct call *call, const struct space *space, const char *what, json_object *msg,
                  double seconds, void (*done)(struct call *call, json_object *answer));
/* False: not a message for this file. */
bool exchange_on_message(const char *type, json_object *msg);
/* The space goes: answer the calls that still wait for its other nodes. */
void exchange_drop(const struct space *space);

/* Count the bytes that a call sends to the agent. False: too much is on its way, and the call has
 * to wait. call->len is then the size, for asked_end. */
bool asked_begin(struct call *call, struct space *space, size_t bytes);
void asked_end(const struct call *call);

/* publish.c */
void publish_publish(struct call *call);
void publish_lookup(struct call *call);
void publish_unpublish(struct call *call);

/* log.c */
void log_lines(struct call *call);

/* query.c */
void query_answer(struct call *call);

#endif
