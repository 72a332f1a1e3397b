/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The gangs of replicas that have been started, and the messages about them to and from members.
 *
 * A gang is a world that never changes: its nodes in rank order, MASTER_ADDR and MASTER_PORT. A
 * gang on several nodes is started on the node of task 0 first, which picks MASTER_PORT. */
#ifndef ELASTIC_AGENT_LEADER_GANGS_H
#define ELASTIC_AGENT_LEADER_GANGS_H

#include <stdbool.h>

#include <json-c/json.h>

#include "lib/reconcile.h"

struct gangs;
struct leader;
struct leader_member;

/* NULL: out of memory. roles outlives it. */
struct gangs *gangs_create(const struct roles *roles);
void gangs_destroy(struct gangs *gangs); /* accepts NULL */

/* With what replicas of a shard are started. */
struct gangs_shard {
    const char *path; /* the file with its models */
    int64_t version;
    json_object *run; /* the command, an array of strings; NULL: that of the role … */
    int64_t program;  /* … and its number */
};

/* Of a role that is a shard: from now on. -1: out of memory. */
int gangs_set_shard(struct gangs *gangs, int role, const struct gangs_shard *shard);
/* With which version a replica was started, or to which it has come since then; 0: it has not been
 * started, or has none. */
int64_t gangs_version_of(const struct gangs *gangs, const struct replica *replica);
/* … and with which program; 0: it is not known. */
int64_t gangs_program_of(const struct gangs *gangs, const struct replica *replica);

/* "task_models": to which version a replica of a shard has come, or could not come. */
void gangs_loaded(struct gangs *gangs, const struct replica *replica, json_object *msg);

/* What a replica could not load since its start: of that version, so often, the last time why. */
struct gangs_tried {
    int64_t version;
    int failures;
    const char *why;
};

struct gangs_tried gangs_tried(const struct gangs *gangs, const struct replica *replica);

/* Start a replica, which has its nodes. owner: the replica that owns it; NULL: none does.
 * -1: out of memory. */
int gangs_start(struct leader *leader, struct gangs *gangs, const struct replica *replica,
                const struct replica *owner);
/* A replica that runs on one node since before a takeover; said: what its node says of it, with
 * "ports". -1: out of memory. */
int gangs_adopt(struct leader *leader, struct gangs *gangs, const struct replica *replica,
                json_object *said);
/* Its tasks on that node are to end: with the role's signal, and SIGKILL after so many seconds;
 * seconds 0: at once. False: they have not been started, and never will be. */
bool gangs_end(struct leader *leader, struct gangs *gangs, const struct replica *replica, int node,
               double seconds);
/* "task_port": the node of task 0 has picked MASTER_PORT. */
void gangs_port(struct leader *leader, struct gangs *gangs, const struct replica *replica,
                json_object *msg);
/* "task_running": the ports of the tasks on that node. */
void gangs_running(struct gangs *gangs, const struct replica *replica, int node, json_object *msg);
/* Forget gangs whose replica has gone, or has been started anew. */
void gangs_prune(struct gangs *gangs, const struct reconcile *reconcile);

/* A port of a task, in the order of the role's names; 0: not known. */
int gangs_port_of(const struct gangs *gangs, const struct replica *replica, int task, int port);

#endif
