/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the reconciler share (lib/reconcile.h).
 *
 * reconcile.c          facts, the order of a run, the end of the job
 * reconcile_replica.c  one replica from state to state
 * reconcile_node.c     nodes and the slots on them
 * reconcile_place.c    replicas get slots
 * reconcile_size.c     a role gets larger or smaller
 * reconcile_form.c     replicas of a role with needs of their own
 * reconcile_pair.c     replicas that own gangs
 * reconcile_ask.c      what is asked of Slurm, and what goes back
 * reconcile_read.c     what others read */
#ifndef ELASTIC_RECONCILE_PRIVATE_H
#define ELASTIC_RECONCILE_PRIVATE_H

#include "lib/reconcile.h"
#include "lib/recovery.h"
#include "lib/retry.h"
#include "lib/setbacks.h"

/* A replica with what only lib/reconcile needs to know. */
struct entry {
    struct replica replica; /* the first: entry_of() */
    struct retry retry;     /* pauses before it is started again */
    bool counts;            /* its failure counts against the role's budget */
    const char *spent;      /* why it is not started again; NULL: it may be */
    bool makes_way;         /* while lib/reconcile_place looks for room */
    int status;             /* of the first of its tasks that has not ended with 0 */
    int owner;              /* of a gang that is owned: the index of its owner when it started */
};

struct node {
    int id;
    uint32_t job; /* of the base as well */
    struct slots_size free;
    int gpus; /* that it has, free or not */
    bool safe, goes;
    bool world;   /* it is the world's */
    bool counted; /* … and of what it had free, this much is taken from it: */
    struct slots_size of_world;
    int role;
    int tasks; /* with slots on it */
};

enum request_state {
    REQUEST_ASKED,     /* Slurm has not said its number */
    REQUEST_PENDING,   /* in the queue */
    REQUEST_WITHDRAWN, /* … and to be cancelled */
    REQUEST_GRANTED,   /* its nodes are there, or join */
    REQUEST_RETURNED,  /* they go back */
};

struct request {
    uint32_t job;
    int role, form, replicas;
    enum request_state state;
    double since; /* when it entered the state */
    int nodes;    /* that are there */
    int expected; /* nodes that it has got */
    bool used;    /* a replica has had slots there */
    double idle;  /* since then no replica has; < 0: one has */
};

/* Replicas of a role that need the same. Form 0 is that of the job file. */
struct form {
    struct slots_gang gang;
    int count; /* replicas that should have it; of form 0: all others */
    struct setbacks setbacks;
    double asked;   /* when the latest request was made; < 0: never */
    int fewer;      /* the next request is for no more; 0: for all that are missing */
    int too_many;   /* so many at once have been refused, and fewer have not; 0: none have */
    double refused; /* … when */
    char refusal[160];
    /* What size_count() has counted. */
    int size;     /* replicas that count for the size of the role */
    int unplaced; /* … of these: WANTED, and to be placed now */
};

struct role_state {
    int target;
    struct form forms[RECONCILE_FORMS];
    int form_count;                      /* those after it have never been used */
    int finished;                        /* replicas whose tasks have all ended with 0 */
    bool *taken;                         /* indices of its replicas */
    int taken_count, taken_room, lowest; /* none below lowest is free */
    struct recovery *recovery;
    bool closed;  /* of a shard: its service has not said what it should have */
    bool running; /* of a world: it trains */
    bool over;    /* … and it trains no more; of a fit also: not so far */
    bool well;    /* … because it has ended with 0 */
    bool ended;   /* … by itself, with that status */
    int status;
    /* What size_count() has counted. */
    int size;    /* replicas that count for the size of the role */
    int ready;   /* … of these: READY */
    int assured; /* … of these, of form 0: on nodes that nobody preempts, or not to be started for
                    now */
};

/* Where a replica may get slots. */
enum where_from {
    ANY,
    SAFE,   /* nodes that nobody preempts */
    UNSAFE, /* the others */
};

struct reconcile {
    const struct roles *roles;
    int world; /* the role of the world; -1: there is none */
    struct reconcile_options options;
    struct role_state *role;
    struct entry **entries; /* by id */
    int entry_count, entry_room, last_id, starts;
    struct node *nodes; /* by id */
    int node_count, node_room;
    struct request *requests;
    int request_count, request_room;
    struct {
        struct slots_node *list; /* one for each node */
        int room, role;          /* for that role; -1: not filled in */
        int form;                /* … that where is of */
        enum where_from from;
        bool kept;  /* what is free on nodes that nobody preempts is for guaranteed replicas */
        int *where; /* the answer: one for each task of the largest gang */
        int where_room;
    } spots;                /* a question to lib/slots */
    struct entry **waiting; /* room for as many as there are entries */
    int waiting_room;
    unsigned changes; /* of replicas so far: a number that only grows */
    bool endpoints;   /* those that are ready have changed */
    bool base_done;
    bool placed; /* the first replicas and the world have had their turn, here or under the leader
                    before */
    bool stopping, finished;
    int status; /* of the job, once it is stopping */

    double now;
    struct reconcile_actions *out;
    bool no_memory;
};

#define FOR_ENTRIES(r, e)                                                                          \
    for (int e##_i = 0; e##_i < (r)->entry_count; e##_i++)                                         \
        for (struct entry *e = (r)->entries[e##_i]; e != NULL; e = NULL)

static inline const struct role *role_of(const struct reconcile *r, const struct entry *e)
{
    return &r->roles->list[e->replica.role];
}

static inline struct replica_name entry_name(const struct reconcile *r, const struct entry *e)
{
    return replica_name(role_of(r, e), &e->replica);
}

/* Slurm has neither granted nor refused it. */
static inline bool request_is_open(const struct request *request)
{
    return request->state <= REQUEST_WITHDRAWN;
}

/* The earlier of two moments; 0: never. */
static inline double reconcile_earlier(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

/* ---- reconcile.c ----------------------------------------------------------------------------- */

struct reconcile_action *reconcile_act(struct reconcile *r, enum reconcile_action_kind kind);
void reconcile_say(struct reconcile *r, int role, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The job is to end with that status. */
void reconcile_stop(struct reconcile *r, int status, const char *why);
/* Room for one more element in an array. False: out of memory. */
bool reconcile_grow(struct reconcile *r, void **list, int count, int *room, size_t size);

/* ---- reconcile_replica.c --------------------------------------------------------------------- */

/* A new replica of that role and form, WANTED, with its lowest index that is free. NULL: out of
 * memory. */
struct entry *entry_add(struct reconcile *r, int role, int form);
struct entry *entry_find(const struct reconcile *r, int id);
/* One that runs on that node since before a takeover. NULL: out of memory, or it cannot be. */
struct entry *entry_adopt(struct reconcile *r, const struct reconcile_fact *fact);
/* Is it to get slots now? */
bool entry_waits(const struct reconcile *r, const struct entry *e);
/* Does it count for the size of its role? */
bool entry_stays(const struct entry *e);
/* Does it have all its slots on nodes that nobody preempts? */
bool entry_is_safe(const struct reconcile *r, const struct entry *e);
void entry_set(struct reconcile *r, struct entry *e, enum replica_state state, double seconds,
               const char *reason);
void entry_forget(struct reconcile *r, struct entry *e);
void entry_start(struct reconcile *r, struct entry *e);
/* It is to end in so many seconds. What has no slots, or has not been started, is gone at once. */
void entry_drain(struct reconcile *r, struct entry *e, double seconds, const char *why);
/* Its probe says so, or its time is over. Nobody else has said it: the log says it. */
void entry_is_not_ready(struct reconcile *r, struct entry *e, const char *why);
/* counts: against the budget of its role. */
void entry_fail(struct reconcile *r, struct entry *e, bool counts, const char *why);
/* Facts about a task. status -1: it was lost with its node. */
void entry_task_runs(struct reconcile *r, struct entry *e, int task);
void entry_task_ready(struct reconcile *r, struct entry *e, int task);
void entry_task_ended(struct reconcile *r, struct entry *e, int task, int status, const char *why);
/* Its deadline has come. */
void entry_late(struct reconcile *r, struct entry *e);

/* ---- reconcile_node.c ------------------------------------------------------------------------ */

/* Its nodes are free for others. */
void world_leave(struct node *node);
struct node *node_find(const struct reconcile *r, int id);
bool node_add(struct reconcile *r, const struct reconcile_node *joins);
/* No replica starts there any more, and those that are there end within `seconds` (0: in the time
 * of their role). */
void node_goes(struct reconcile *r, struct node *node, double seconds, const char *why);
void node_gone(struct reconcile *r, struct node *node, const char *why);
/* The task has a slot on its node. */
void node_take(struct reconcile *r, const struct entry *e, int task);
/* The task's slot is free again. */
void node_give(struct reconcile *r, const struct entry *e, int task);

/* ---- reconcile_place.c ----------------------------------------------------------------------- */

void place_all(struct reconcile *r);

/* ---- reconcile_size.c ------------------------------------------------------------------------ */

/* Count the replicas of each role and form: size, ready, unplaced, assured. */
void size_count(struct reconcile *r);
/* The guaranteed ones: they are of form 0. */
int size_guaranteed(const struct reconcile *r, int role);
/* Replicas of that form that should be there. */
int size_wanted(const struct reconcile *r, int role, int form);
/* … and have no slots, as counted last: some of them are no objects yet. */
int size_missing(const struct reconcile *r, int role, int form);
/* A replica leaves for good: its role is smaller by it. */
void size_less(struct reconcile *r, const struct entry *e);
void size_all(struct reconcile *r);

/* ---- reconcile_form.c ------------------------------------------------------------------------ */

/* Form 0. False: out of memory. */
bool form_begin(struct reconcile *r, int role);
/* The form of these needs, a new one if it has to be; NULL: those of the job file. -1: there are
 * too many, or out of memory. */
int form_find(struct reconcile *r, int role, const struct slots_gang *gang);

/* ---- reconcile_pair.c ------------------------------------------------------------------------ */

static inline bool pair_is_owner(const struct reconcile *r, int role)
{
    return r->roles->pairs.any && role == r->roles->pairs.owner;
}

/* The other one of the pair; NULL: there is none. */
struct entry *pair_of(const struct reconcile *r, const struct entry *e);
/* It goes for good, and is an owner: so does its gang. */
void pair_leave(struct reconcile *r, const struct entry *owner, const char *why);
/* Each gang that is owned has an owner that it can run with, and each owner a gang. */
void pair_settle(struct reconcile *r);
/* May its owner, if it is such a gang, do with it? */
bool pair_may_be_placed(const struct reconcile *r, const struct entry *e);
bool pair_may_start(const struct reconcile *r, const struct entry *e);

/* ---- reconcile_ask.c ------------------------------------------------------------------------- */

struct request *request_find(const struct reconcile *r, uint32_t job);
/* The request of that role and form that Slurm has not taken a number for. */
struct request *request_asked(const struct reconcile *r, int role, int form);
void request_drop(struct reconcile *r, struct request *request);
void request_refused(struct reconcile *r, struct request *request, const char *why);
/* The next request is for half as many replicas. False: this one was for a single one. */
bool request_halve(struct reconcile *r, const struct request *request);
/* A request for so many replicas, or NULL: out of memory. */
struct request *request_add(struct reconcile *r, int role, int form, int replicas);
void ask_all(struct reconcile *r);
/* The next moment at which something of requests is due; 0: none. */
double ask_deadline(const struct reconcile *r);
/* Since a node was taken, or did not come: no request for a while. */
void ask_setback(struct reconcile *r, const struct request *request);
double ask_not_before(const struct reconcile *r, const struct form *form);

#endif
