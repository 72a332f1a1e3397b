/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's members: the agents that have joined, and what is known of each. */
#ifndef ELASTIC_AGENT_LEADER_ROSTER_H
#define ELASTIC_AGENT_LEADER_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "common/link.h"

struct leader;
struct roster;
struct world;

struct leader_member {
    int id;
    struct link *link; /* NULL: lost */
    char *node;
    uint32_t job, restarts;
    bool base;
    int nodeid, slots;
    char *switches; /* above its node; NULL: not known */
    double joined, last_heard;
    bool leaving;
    bool unneeded;     /* … since we give its node back, and nobody has asked for it */
    bool unwell;       /* Slurm takes its node out of service: drained, down */
    bool reclaimed;    /* … or the cloud does */
    bool released;     /* has been told to go */
    int position;      /* in the current generation, -1: not in it */
    int next_position; /* in the one that is being prepared, -1: not in it */
    bool parked;       /* all its workers of that one wait at their gates */
    bool live;         /* its workers can go from world to world */
    int64_t signature; /* of what they train, 0: not known */
    /* Live mode: the attempt for which it has been asked to start workers that are not in a world
     * yet; 0: none. */
    int warming;
    bool warm; /* … and these wait at their gates */
    /* Since when its workers are on their way out of a world that goes on without them; 0: they are
     * not. */
    double departing;
    bool awaited; /* … and are still to reach the step that all run to before */
    /* The attempt for which its workers have been started: what tells them from others; 0: there
     * are none. */
    int started;
    bool stateful;    /* these have trained: they have a state that others can get */
    bool failed;      /* one of these has failed */
    uint32_t slowest; /* milliseconds of their longest step, last heard */
    bool answered;    /* in the current phase */
    bool drained;     /* no worker of the current generation left here */
    bool torn;        /* lost before that: the world around it cannot go on */
    /* Its workers of this generation that have left: for an event, because they were through. */
    int told, completed;
    int early; /* … of the latter, those that had not passed their last boundary (live mode) */
    /* One of its workers has failed of an exchange with others, and waits to hear why. */
    bool asks;
    bool begun; /* its workers are there, whatever they do */
    bool stepping;
    struct workers_held_sum {
        int attached, training, running;
        int finished; /* counted by exits, not by what is held */
        int through;  /* has passed its last boundary, and is about to */
        uint64_t step;
    } held;
    uint64_t step;        /* last heard */
    double shunned_until; /* its workers could not be let in: not to be tried again before */
    int64_t pid;          /* of its agent */
    int generation;       /* of the world that its workers know */
    double seen;          /* the newest time of ours that it has sent back */
    bool heard;           /* … was not long ago when that was last looked at */
    struct world *was_in; /* under the leader before this one; NULL: in none, or it is known */
    int last_world;       /* the last one there that this node was part of, 0: none */
    int completed_world;  /* … whose workers here were through, 0: none */
    int unwritten;        /* pieces of its output that the leader's output holds */
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
/* The link has ended, whoever it was with. */
void roster_link_closed(struct leader *leader, struct link *link, const char *why);
/* Tell the member's agent to end. */
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
