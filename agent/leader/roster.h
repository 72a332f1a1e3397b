/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's members: the agents that have joined, and what is known of each. */
#ifndef ELASTIC_AGENT_LEADER_ROSTER_H
#define ELASTIC_AGENT_LEADER_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

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
    /* Its node, its job, and its part in the change of worlds: belongs to lib/change. */
    const struct change_member *part;
    uint32_t restarts;
    char *switches; /* above its node; NULL: not known */
    double joined, last_heard;
    bool unwell;    /* Slurm takes its node out of service: drained, down */
    double noticed; /* it has been told that its node, or another of its job, may be; 0: no */
    bool advised;   /* its cloud advises to replace its node */
    bool slow;      /* its workers are: it is left out for good */
    double goes_by; /* its cloud takes the node: saved by then, at the latest; 0: not known */
    uint64_t step;  /* last heard */
    int64_t pid;    /* of its agent */
    double seen;    /* the newest time of ours that it has sent back */
    bool heard;     /* … was not long ago when that was last looked at */
    int unwritten;  /* pieces of its output that the leader's output holds */
    int room;       /* its node's number in lib/reconcile, in the order of "room"; 0: it has none */
    bool goes;      /* … which knows that the node goes */
};

/* NULL: out of memory. */
struct roster *roster_create(void);
void roster_destroy(struct roster *roster);

/* Members in the order in which they joined, also lost ones that are still part of a world.
 * Whatever posts a fact may shorten the list. */
int roster_count(const struct leader *leader);
/* How many have joined so far, as a number that only grows. */
unsigned roster_arrivals(const struct leader *leader);
/* NULL: there are not so many. */
struct leader_member *roster_at(const struct leader *leader, int i);
/* NULL: there is none. */
struct leader_member *roster_by_id(const struct leader *leader, int id);
/* … by the number of its node in lib/reconcile. */
struct leader_member *roster_by_room(const struct leader *leader, int room);
struct leader_member *roster_by_link(const struct leader *leader, const struct link *link);
/* The nodes of all members that are there: a new array of their names. NULL: out of memory. */
char **roster_nodes(const struct leader *leader);
/* Is its node there, and does its cloud advise to replace it? */
bool roster_is_advised(const struct leader_member *m);
/* So many nodes of that job. */
int roster_advised(const struct leader *leader, uint32_t job);
/* Is it the member in the leader's own process? */
bool roster_is_own(const struct leader *leader, const struct leader_member *m);

/* A new member at the end of the list, whose link it is from now on. NULL: out of memory. */
struct leader_member *roster_add(struct leader *leader, struct link *link);
/* It was not to be: nobody has joined on its link. */
void roster_drop_newest(struct leader *leader);
/* Its link is closed, or is no longer its own. */
void roster_unlink(struct leader *leader, struct leader_member *m);
/* Members without a link are forgotten, if nothing waits for them. */
void roster_prune(struct leader *leader);

#endif
