/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which replicas of its roles a job has, and what is done so that it has those that it should have.
 *
 * Pure: the leader posts a fact for each thing that happens, by reconcile_feed(). Then
 * reconcile_run() compares what should be with what is, and appends actions: start these tasks,
 * drain those, ask Slurm for room. All times are seconds on one clock.
 *
 *   WANTED ─► PLACED ─► STARTING ─► READY ─► DRAINING ─► (gone)
 *      ▲                   │          │                    ▲
 *      └───── FAILED ◄─────┴──────────┘                    │
 *                └─────────────────────────────────────────┘
 *
 * doc/internals/roles.md has the states, their deadlines and the rules in words. */
#ifndef ELASTIC_RECONCILE_H
#define ELASTIC_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/roles.h"
#include "lib/slots.h"

enum replica_state {
    REPLICA_WANTED,   /* it has no slots */
    REPLICA_PLACED,   /* it has slots, and waits for the roles that it comes after */
    REPLICA_STARTING, /* its tasks have been started, and not all are ready */
    REPLICA_READY,
    REPLICA_DRAINING, /* it is asked to end */
    REPLICA_FAILED,   /* what is left of it is killed */
    REPLICA_STATE_COUNT
};

enum replica_task_state {
    REPLICA_TASK_NONE,
    REPLICA_TASK_ASKED, /* its node has been told to start it */
    REPLICA_TASK_RUNNING,
    REPLICA_TASK_READY,
    REPLICA_TASK_ENDED,
};

struct replica_task {
    int node; /* its id; 0: none */
    enum replica_task_state state;
    int status; /* once it has ended: as a shell has it, 128 + signal. A lost one: -1 */
};

/* Everybody may read it; only lib/reconcile writes it. */
struct replica {
    int id;                        /* never used again */
    int role, index;               /* its name is ROLE-INDEX. Of a role no two have the same */
    int form;                      /* 0: it has the needs of its role */
    const struct slots_gang *gang; /* … what it needs */
    int pair;                      /* of an owner: its gang; of a gang: its owner; 0: none */
    enum replica_state state;
    int start;    /* number of its latest start, larger than those of all before; 0: none */
    double since; /* when it entered its state */
    double until; /* the state's deadline; 0: it has none */
    bool leaves;  /* once it is drained, nothing takes its place */
    bool again;   /* once it is drained, it is started anew */
    bool killed;  /* its tasks have been sent SIGKILL */
    bool failed;  /* its latest start has, by its own fault … */
    bool spent;   /* … and it is not started again */
    double pause; /* WANTED: not before then */
    struct replica_task *tasks; /* gang->tasks */
    char reason[120];           /* why it is in its state */
};

/* What a node has for replicas when it joins. */
struct reconcile_node {
    int id; /* the caller's, larger than any before, at least 1 */
    uint32_t job;
    struct slots_size size;
    bool safe;  /* nobody preempts it: the base, or such a pool's */
    int role;   /* whose replicas it is for; -1: all */
    bool world; /* the world has it from before a takeover */
};

enum reconcile_fact_kind {
    /* Nodes. */
    RECONCILE_NODE,      /* it has joined: joins */
    RECONCILE_NODE_GOES, /* Slurm takes it, or it is given back: node, grace, text */
    RECONCILE_NODE_GONE, /* … and what ran there is lost: node, text */
    RECONCILE_BASE_DONE, /* no more nodes of the base will come for now */
    /* What nodes say of tasks: replica, start, task. */
    RECONCILE_RUNNING, /* its program has been executed */
    RECONCILE_TASK_READY,
    RECONCILE_UNREADY, /* it is ready no longer: text */
    RECONCILE_EXITED,  /* status, text: how it ended */
    RECONCILE_ADOPT,   /* after a takeover: a whole replica runs there: replica, start, role, index,
                          node, gang, owner. Its tasks are ASKED: what they are besides follows as
                          facts. Without effect if its name or number is another one's by now */
    /* What users ask. */
    RECONCILE_SCALE,      /* role, count; gang: what those need that are more */
    RECONCILE_REMOVE,     /* replica: the role is smaller by it */
    RECONCILE_FAIL,       /* replica, text: it is to be replaced */
    RECONCILE_STOP,       /* the job is to end: status, text */
    RECONCILE_WORLD,      /* the world trains (count 1), or does not (0) */
    RECONCILE_WORLD_OVER, /* … and never will any more: status */
    RECONCILE_OPEN, /* role, of a shard: its service says by now which replicas it should have.
                             Until then none starts, and none goes */
    /* What Slurm says of requests. */
    RECONCILE_REQUESTED, /* job: the last action ASK of that role and form has this number. Without
                            such an action: it is there from before a takeover */
    RECONCILE_GRANTED,   /* job: it has got nodes, so many: count; also if it has others by now */
    RECONCILE_REFUSED,   /* role, form: there is none, for that reason: text */
    RECONCILE_DENIED,    /* job: it is over: text */
    RECONCILE_PASSED,    /* job: it has waited for long, and the next request goes elsewhere */
    RECONCILE_FACT_COUNT
};

struct reconcile_fact {
    enum reconcile_fact_kind kind;
    double now;
    const struct reconcile_node *joins;
    int node, replica, start, task, role, index, form, count, status;
    int owner;                     /* of a gang that is owned: the index of its owner */
    const struct slots_gang *gang; /* NULL: as its role */
    uint32_t job;
    double grace; /* seconds that its tasks have to end; 0: not known */
    const char *text;
};

enum reconcile_action_kind {
    /* To a node, of one task: replica, start, task, node. */
    RECONCILE_START,
    RECONCILE_DRAIN, /* the role's signal; SIGKILL after so many seconds */
    RECONCILE_KILL,
    /* To Slurm. */
    RECONCILE_ASK,      /* role, form, count of replicas; safe: of a pool that is never preempted */
    RECONCILE_WITHDRAW, /* job: a request */
    RECONCILE_GIVE_BACK, /* job: an extension; text */
    /* To others. */
    RECONCILE_ENDPOINTS, /* those that are ready have changed */
    RECONCILE_SAY,       /* role, text */
    RECONCILE_FINISH,    /* the job is over: status */
};

struct reconcile_action {
    enum reconcile_action_kind kind;
    int replica, start, task, node, role, form, count, status;
    uint32_t job;
    bool safe;
    double seconds;
    char text[160];
};

struct reconcile_actions {
    struct reconcile_action *list; /* owned; free() */
    int count, room;
};

struct reconcile_options {
    const struct roles *roles; /* stays the caller's, and outlives the machine */
    double grow_delay; /* seconds without requests after Slurm took a node, or refused one */
    int max_pending;   /* requests that may wait in the queue; of all roles. 0: none is made */
    int first_start;   /* larger than the numbers of all starts and replicas before */
};

/* Replicas of a role may have so many different needs at a time, those of the role among them. */
#define RECONCILE_FORMS 8
/* An extension without replicas goes back after this time. */
#define RECONCILE_IDLE 30.0
/* A request that is pending for so long is made again, for half as many replicas. */
#define RECONCILE_STALE 10.0
/* Slurm may take a request that it has refused as too large so long ago. */
#define RECONCILE_FORGET 600.0
/* What has been sent SIGKILL and is still there after this time: its node is as lost. */
#define RECONCILE_KILL_LIMIT 10.0
/* After so long in READY the next failure is the first one. */
#define RECONCILE_STABLE 60.0

struct reconcile;

/* NULL: out of memory. */
struct reconcile *reconcile_create(const struct reconcile_options *options);
void reconcile_destroy(struct reconcile *r); /* accepts NULL */

/* Something has happened. Facts about what is not there any more are without effect. Some facts
 * have actions at once. -1: out of memory. */
int reconcile_feed(struct reconcile *r, const struct reconcile_fact *fact,
                   struct reconcile_actions *out);
/* Do what is to be done now. To be called after facts; any number of facts may come between two
 * calls. A second call at the same time does nothing. -1: out of memory. */
int reconcile_run(struct reconcile *r, double now, struct reconcile_actions *out);
/* When it is to be called even if nothing happens; 0: never. */
double reconcile_deadline(const struct reconcile *r);

/* ---- what others read ------------------------------------------------------------------------ */

int reconcile_count(const struct reconcile *r); /* of replicas */
const struct replica *reconcile_at(const struct reconcile *r, int i);
/* NULL: there is none. */
const struct replica *reconcile_find(const struct reconcile *r, int id);
const struct replica *reconcile_named(const struct reconcile *r, const char *name);
/* Tasks that have slots on that node. */
int reconcile_tasks_on(const struct reconcile *r, int node);
/* Is that node the world's? */
bool reconcile_has_world(const struct reconcile *r, int node);
/* … and how much of it? NULL: it is not. */
const struct slots_size *reconcile_size_of_world(const struct reconcile *r, int node);
int reconcile_target(const struct reconcile *r, int role);
/* … so many of them in that form; what they need is in *gang. */
int reconcile_target_of(const struct reconcile *r, int role, int form, struct slots_gang *gang);
/* What replicas of that form need. */
const struct slots_gang *reconcile_gang(const struct reconcile *r, int role, int form);
/* How many GPUs most of its nodes have (lib/majority.h). */
int reconcile_majority(const struct reconcile *r);
/* May replicas of the role have these needs, besides those that others have? */
bool reconcile_can_have(const struct reconcile *r, int role, const struct slots_gang *gang);
/* Its replicas whose tasks have all ended with 0. */
int reconcile_finished(const struct reconcile *r, int role);
/* Is the job to end? */
bool reconcile_stopping(const struct reconcile *r);
/* Its replicas in that state. */
int reconcile_in_state(const struct reconcile *r, int role, enum replica_state state);
/* So many nodes of the base the world has. */
int reconcile_world_nodes(const struct reconcile *r);
/* Of a job with a world: is it over? One that a fit trains is, until its target is 1. Has it ended
 * by itself, and with which status? Does it train? */
bool reconcile_world_is_over(const struct reconcile *r);
bool reconcile_world_has_ended(const struct reconcile *r, int *status);
bool reconcile_world_trains(const struct reconcile *r);
/* Why the role has this size, and why it has no more, in one line each. */
void reconcile_why(const struct reconcile *r, int role, double now, char *size, size_t size_max,
                   char *more, size_t more_max);
const char *replica_state_text(enum replica_state state); /* "wanted", … */

struct replica_name {
    char text[64];
};

/* "collector-3". */
struct replica_name replica_name(const struct role *role, const struct replica *replica);

#endif
