/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's members: the agents that have joined, and what is known of each. */
#ifndef ELASTIC_AGENT_LEADER_ROSTER_H
#define ELASTIC_AGENT_LEADER_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "common/link.h"
#include "lib/change.h"

struct leader;
struct roster;

/* What a link is told apart by: the argument of its handlers. */
struct link_owner {
    struct leader *leader;
    struct leader_member *member; /* NULL: nobody has joined on it */
};

struct leader_member {
    int id;
    struct link *link; /* NULL: lost */
    struct link_owner owner;
    char *node;
    uint32_t job, restarts;
    bool base;
    int nodeid, slots;
    char *switches; /* above its node; NULL: not known */
    double joined, last_heard;
    bool unwell; /* Slurm takes its node out of service: drained, down */
    /* Its part in the change of worlds, which belongs to lib/change. */
    const struct change_member *part;
    uint64_t step; /* last heard */
    int64_t pid;   /* of its agent */
    double seen;   /* the newest time of ours that it has sent back */
    bool heard;    /* … was not long ago when that was last looked at */
    int unwritten; /* pieces of its output that the leader's output holds */
};

/* NULL: out of memory. */
struct roster *roster_create(void);
/* The timer that finds silent members begins, and ends. */
void roster_open(struct leader *leader);
void roster_close(struct leader *leader);
void roster_destroy(struct roster *roster);

/* Members in the order in which they joined, also lost ones that are still part of a world.
 * Whatever loses a member may shorten the list. */
int roster_count(const struct leader *leader);
/* NULL: there are not so many. */
struct leader_member *roster_at(const struct leader *leader, int i);
/* NULL: there is none. */
struct leader_member *roster_by_id(const struct leader *leader, int id);
struct leader_member *roster_by_link(const struct leader *leader, const struct link *link);

/* Nodes of the base that are lost, or left out, once the base has come together. */
int roster_base_lost(const struct leader *leader);
/* The member is gone. Its link is closed, if there is one. */
void roster_lose(struct leader *leader, struct leader_member *member, const char *why);
/* The member's link has ended. */
void roster_link_closed(struct leader *leader, struct leader_member *m, const char *why);
/* Members that are gone are forgotten, if nothing waits for them. */
void roster_prune(struct leader *leader);
/* "welcome": the member is told all that its agent has to know. keep: its workers may be of use. */
void roster_welcome(struct leader *leader, struct leader_member *member, bool keep);
/* Only the message, and the whole of it: the member's agent is to end. */
void roster_send_release(struct leader_member *member, const char *reason);
void roster_release(struct leader *leader, struct leader_member *member, const char *reason);

/* "join": an agent wants to be a member. */
void roster_join(struct leader *leader, struct link *link, json_object *msg);
/* "leaving": Slurm takes the member's node. */
void roster_leaving(struct leader *leader, struct leader_member *m, json_object *msg);
/* "beat": the member is there, and how far its workers are. */
void roster_beat(struct leader *leader, struct leader_member *m, json_object *msg);
/* "out": output of a worker, acknowledged when it is written. */
void roster_out(struct leader *leader, struct leader_member *m, json_object *msg);

#endif
