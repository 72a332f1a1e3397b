/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: how an elastic job gets from one generation to the next.
 *
 * Pure: facts go in, actions come out, and the time is part of a fact. The leader posts a fact
 * for each thing that happens (a member joins, a worker exits, time passes). change_feed() finds
 * the row {phase, fact} in the table of lib/change.c, and calls the function of that row. The
 * function changes the state and appends actions. The leader carries the actions out when the
 * function has returned, so that nothing is entered twice.
 *
 * In restart mode:
 *   RESERVING ──► STARTING ──► RUNNING ──► HOLDING ──► DRAINING ──► RESERVING …
 *                                 └──► a worker fails: KILLING ──────┘
 * In live mode:
 *   RUNNING ──► HOLDING ──► SWITCHING ──► RUNNING
 *      └──► a worker fails: ABORTED ──► SWITCHING ──► RUNNING
 *
 * doc/internals/change.md has the whole table in words. All times are seconds on one clock. */
#ifndef ELASTIC_CHANGE_H
#define ELASTIC_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/plan.h"
#include "lib/policy.h"
#include "lib/recovery.h"
#include "lib/world.h"

enum change_phase {
    CHANGE_ASSEMBLING,  /* there has been no world yet: the nodes of the base join */
    CHANGE_TAKING_OVER, /* this leader follows another one: its voters join */
    CHANGE_WAITING,     /* there is no world, and too few nodes for one */
    CHANGE_REPLACING,   /* there is no world: lost nodes are replaced first */
    CHANGE_PROMOTING,   /* a flushed snapshot is looked for, which becomes a checkpoint */
    CHANGE_RESERVING,   /* waits for a port on the node of rank 0 */
    CHANGE_STARTING,    /* workers are being started for the new world */
    CHANGE_SWITCHING,   /* live mode: workers go on from the world before to the new world */
    CHANGE_RUNNING,     /* workers train */
    CHANGE_HOLDING,     /* each member says to which step its workers are committed */
    CHANGE_DRAINING,    /* workers run to the agreed step, save and leave */
    CHANGE_KILLING,     /* workers that are left are being killed */
    CHANGE_SETTLING,    /* a worker ended by SIGTERM: who has sent it will be known in a moment */
    CHANGE_ABORTED,     /* live mode: workers have left the world, and wait with their state */
    CHANGE_SAVING,      /* the job ends from ABORTED: one worker saves, the others leave */
    CHANGE_RESTING,     /* the world is over; other roles of the job go on */
    CHANGE_FINISHING,   /* all is over; the leader may not say so before its lease is confirmed */
    CHANGE_ENDING,      /* the job is over: members are being told */
    CHANGE_PHASE_COUNT
};

/* What the workers of a member do, as far as worlds are concerned. */
enum change_member_state {
    CHANGE_OUTSIDE,   /* no workers of ours, or workers that do not matter */
    CHANGE_WARMING,   /* live mode: workers have been started, and import their framework */
    CHANGE_WARM,      /* … and wait at their gates to enter a world */
    CHANGE_IN_WORLD,  /* its workers are in the present world */
    CHANGE_DRAINED,   /* it has a place in the present world, and no worker left */
    CHANGE_LOST,      /* it has a place in the present world, and was lost with its workers */
    CHANGE_AWAITED,   /* its workers leave after a last step that the other workers need */
    CHANGE_DEPARTING, /* its workers are on their way out of a world that goes on */
};

/* Why a member is to leave. */
enum change_notice {
    CHANGE_STAYS,
    CHANGE_UNNEEDED, /* we give the node back, and nobody has asked for it */
    CHANGE_CALLED,   /* Slurm takes the node, or the agent is told to end */
};

/* What a member's agent knows of its workers when all are held. */
struct change_held {
    int attached; /* workers that know our library */
    int training; /* … and have made a step */
    int running;  /* workers that are there */
    int through;  /* workers that have passed their last boundary, and are about to end */
    uint64_t step;
};

/* A node that takes part, or may. Everybody may read it; only lib/change writes it. */
struct change_member {
    int id;
    char *node;
    char *address; /* by which the other members reach it */
    uint32_t job;
    bool base;
    int nodeid, slots;

    bool there;     /* its link is up */
    bool released;  /* it has been told to go */
    bool reclaimed; /* the cloud takes its node in a moment */
    bool busy;      /* it may run replicas of other roles: it is not told to go before they end */
    bool apart;     /* other roles run there, and the world does not */
    double taken;   /* … then; 0: not known */
    enum change_notice notice;
    double grace;   /* seconds that Slurm gives it to leave; 0: not known */
    double shunned; /* live mode: its workers were not let in, and are not tried again before */

    enum change_member_state state;
    int place;        /* in the present world; -1: none */
    int next_place;   /* in the world that is being prepared; -1: none */
    bool parked;      /* its workers of that world wait at their gates (restart mode) */
    bool answered;    /* in the present phase */
    int generation;   /* of the world that its workers know */
    int warming;      /* live mode: the attempt for which its newcomers were started; 0: none */
    double depart_by; /* DEPARTING: it counts as gone then */

    /* Its workers. */
    int started;       /* the attempt for which they were started; 0: there are none */
    bool live;         /* they can go from world to world */
    int64_t signature; /* of what they train; 0: not known */
    bool stateful;     /* they have trained: other workers can get their state */
    bool failed;       /* a worker has failed */
    uint32_t slowest;  /* milliseconds of their longest step, last heard */
    int64_t moved;     /* bytes of their state that they have exchanged, last heard */

    /* In the present world. */
    bool begun;    /* its workers are there, whatever they do */
    bool stepping; /* its workers have made a first step */
    bool asks;     /* live mode: a worker waits to hear why an exchange has failed */
    int told;      /* workers that have left because they were told to */
    int completed; /* workers that have ended with 0 by themselves */
    int early;     /* … of these, before their last boundary (live mode) */
    struct change_held held;

    /* A leader that follows another one: what the member has said when it joined. */
    struct {
        struct world *world; /* the one that its live workers know; NULL: none */
        int last;            /* generation of the last world that it was part of; 0: none */
        int completed;       /* of the world whose workers have ended with 0; 0: none */
        bool ends_well;      /* its workers were through when it joined, or end with 0 since */
    } former;
};

/* The next world, from the choice of its nodes until it begins. */
struct change_next {
    struct world *world; /* NULL: there is none */
    int attempt;         /* its number in messages */
    bool reserved;       /* the port of rank 0 is known */
    bool live;           /* the workers of members that stay will go on in it */
    double since;
};

/* ---- facts ----------------------------------------------------------------------------------- */

enum change_fact_kind {
    /* About members. */
    CHANGE_FACT_JOINED,    /* a member has joined: join */
    CHANGE_FACT_GONE,      /* its link is gone; text: why, if nobody had expected that */
    CHANGE_FACT_LEAVING,   /* it has to leave: notice, grace, text */
    CHANGE_FACT_RELEASED,  /* it has been told to go */
    CHANGE_FACT_RECLAIMED, /* the cloud takes its node: grace */
    CHANGE_FACT_BUSY,      /* it may run replicas (code 1), or runs none and gets none (0) */
    CHANGE_FACT_ADMITTED,  /* it is not apart from the world any more */
    /* What members say. */
    CHANGE_FACT_RESERVED,   /* attempt, port */
    CHANGE_FACT_PARKED,     /* attempt, live, signature */
    CHANGE_FACT_UNPREPARED, /* attempt, text */
    CHANGE_FACT_READY,      /* generation */
    CHANGE_FACT_LISTENING,  /* generation: rank 0 listens, or is not waited for any longer */
    CHANGE_FACT_BEGUN,      /* generation */
    CHANGE_FACT_STEPPING,   /* generation, live, signature, gate, aware, unheard */
    CHANGE_FACT_AT_WORK,    /* it makes no steps that we see, and works all the same */
    CHANGE_FACT_HELD,       /* generation, held */
    CHANGE_FACT_EXITED,  /* started, rank, code, signal, told, early, stolen, text: the failure */
    CHANGE_FACT_DRAINED, /* started, held, completed: all of them have ended with 0 */
    CHANGE_FACT_BEAT,    /* generation, slowest, asks, moved */
    /* About the job. */
    CHANGE_FACT_PLAN,     /* what should be: plan, time_is_over */
    CHANGE_FACT_STOP,     /* the job is to end: text; or only its world: code CHANGE_STOPS_WORLD */
    CHANGE_FACT_FAIL,     /* the world cannot go on: text */
    CHANGE_FACT_REASON,   /* why the next change will be made: text */
    CHANGE_FACT_WRITTEN,  /* the files of a world that begins have been written */
    CHANGE_FACT_PROMOTED, /* the search for flushed snapshots is over */
    CHANGE_FACT_OVER,     /* a job with other roles is over, and so is its world: code */
    CHANGE_FACT_AGAIN,    /* … and is not: its world, which rests, is to begin */
    CHANGE_FACT_DEPOSED,  /* another node leads, or nobody can: code */
    CHANGE_FACT_WATCH,    /* some time has passed: look at members that are leaving */
    CHANGE_FACT_TIME,     /* the deadline of change_deadline() has come */
    CHANGE_FACT_COUNT
};

#define CHANGE_STOPS_WORLD 1

struct change_join {
    int id; /* the caller's, larger than any before, at least 1 */
    const char *node, *address;
    uint32_t job;
    bool base, apart;
    int nodeid, slots;
    /* Under the leader before this one. */
    int last_world, completed_world;
    int started; /* attempt of its workers; 0: it has none */
    bool live, stateful;
    bool through; /* they have passed their last boundary */
    int64_t signature;
    uint32_t slowest;
    struct world *was_in; /* ownership goes to change_feed(); NULL: none */
};

struct change_fact {
    enum change_fact_kind kind;
    double now;
    int member; /* its id; 0: none */
    const char *text;
    int attempt, generation, started;
    int port;
    int rank, code, signal;
    bool told, early, completed;
    bool stolen; /* another user has its port */
    bool live, gate, aware, asks;
    int unheard; /* seconds in which no worker has attached; 0: one has, or need not */
    int64_t signature;
    uint32_t slowest;
    int64_t moved;
    enum change_notice notice;
    double grace;
    struct change_held held;
    const struct change_join *join;
    const struct plan_output *plan;
    bool time_is_over; /* an extension in the world is about to be ended by its time limit */
};

/* ---- actions --------------------------------------------------------------------------------- */

enum change_action_kind {
    /* Messages to a member. */
    CHANGE_WELCOME,     /* flag: its workers may be of use in the next world */
    CHANGE_RELEASE,     /* text */
    CHANGE_RESERVE,     /* attempt */
    CHANGE_PREPARE,     /* attempt; start workers early */
    CHANGE_DISCARD,     /* attempt */
    CHANGE_START,       /* attempt; flag: workers wait at their gates for rank 0 */
    CHANGE_ENTER,       /* attempt; live mode: warm workers take their places */
    CHANGE_OPEN,        /* rank 0 listens: the other workers may connect */
    CHANGE_HOLD,        /* seconds */
    CHANGE_RUN_TO,      /* step */
    CHANGE_RUN_TO_NEXT, /* step; live mode: and then to the next world */
    CHANGE_NEXT,        /* live mode: to the next world */
    CHANGE_LEAVE,       /* live mode: leave; flag: and save */
    CHANGE_ABORT,       /* live mode: the world is aborted */
    CHANGE_SIGNAL,      /* signal, seconds of grace; flag: it is a notice */
    /* What the leader does. */
    CHANGE_RELAY,        /* attempt: the members' PMIx servers of the next world may talk */
    CHANGE_RELAY_END,    /* of the next world, which is given up */
    CHANGE_RELAY_TAKEN,  /* live mode: of the world that was found by a takeover */
    CHANGE_STORE_END,    /* nobody comes to the meeting place of the present world any more */
    CHANGE_BEGIN_WORLD,  /* the next world has become the present one: files, history */
    CHANGE_STEPPED,      /* first step of a world; flag: workers know our library */
    CHANGE_PROMOTE,      /* look for flushed snapshots, then post PROMOTED */
    CHANGE_SETBACK,      /* the next growth waits for a while */
    CHANGE_CAUSE,        /* print the failure */
    CHANGE_REQUEUE,      /* the base job is to be requeued if the policy says so */
    CHANGE_END_REQUESTS, /* programs' requests will not be carried out */
    CHANGE_DECIDE,       /* seconds: plan again then */
    CHANGE_LOSE,         /* text; the member counts as lost: close its link, post GONE */
    CHANGE_WORLD_OVER,   /* code: the world is over. Other roles go on, until the fact OVER */
    CHANGE_FINISH,       /* code: the job is over */
    CHANGE_ABANDON,      /* code: this leader is over, the job perhaps not */
    CHANGE_SAY,          /* text, for the log */
    CHANGE_SAY_ERROR,
    CHANGE_SAY_DEBUG,
};

struct change_action {
    enum change_action_kind kind;
    int member;     /* its id; 0: none */
    int number;     /* attempt, generation, signal or exit status */
    int generation; /* of the world that the member's workers know; -1: none */
    int started;    /* ENTER: the attempt for which its workers were started */
    bool flag;
    double seconds;
    uint64_t step;
    char *text; /* owned by the list; NULL: none */
};

struct change_actions {
    struct change_action *list;
    int count, room;
};

/* Free the texts and forget all actions. */
void change_actions_clear(struct change_actions *actions);

/* ---- the machine ----------------------------------------------------------------------------- */

enum change_mode {
    CHANGE_AUTO,    /* live where the workers can */
    CHANGE_RESTART, /* never live */
    CHANGE_LIVE,    /* live, or the job ends */
};

/* Questions whose answers lib/change takes as given. They have no effect on the machine. */
struct change_questions {
    /* What should be, now. only_warm: members whose workers are not ready to enter do not count.
     * 0, and the caller clears *out; -1: out of memory. */
    int (*plan)(void *arg, bool only_warm, struct plan_output *out);
    /* May this leader begin what cannot be taken back? */
    bool (*may_act)(void *arg);
    void *arg;
};

struct change_options {
    uint32_t job;
    const struct policy *policy;
    struct recovery *recovery; /* counts failures */
    enum change_mode mode;
    int base_nodes;  /* nodes of the base's step */
    bool no_world;   /* none is ever formed: the job runs other roles (lib/reconcile.h) */
    int world_nodes; /* > 0: other roles run beside the world, which begins with so many nodes of
                            the base. Members may join apart from it. 0: all of the base */
    bool rests;      /* the world waits for CHANGE_FACT_AGAIN before it begins */
    bool whole;      /* what it writes counts only if all of its workers end with 0 */
    int nodeid;      /* of the leader's own node */
    const char *address; /* … by which members reach it */
    bool early_start;    /* of the next workers, where the script waits at a gate */
    double newcomer_timeout;
    int last_generation; /* of an elasticrun before this one in the same run of the job */
    struct change_questions ask;
    /* A leader that follows another one. */
    int term;          /* 0: it does not */
    int faults;        /* so far */
    uint64_t step_end; /* a step that workers never reach: they run to their end */
};

struct change;

/* options stay the caller's, and must outlive the machine. NULL: out of memory. */
struct change *change_create(const struct change_options *options, double now);
void change_destroy(struct change *change); /* accepts NULL */

/* Something has happened. Appends to *out what has to be done, in that order. -1: out of memory;
 * the actions so far are in *out. */
int change_feed(struct change *change, const struct change_fact *fact, struct change_actions *out);

/* When CHANGE_FACT_TIME is to be posted; 0: never. */
double change_deadline(const struct change *change);

/* ---- what others read ------------------------------------------------------------------------ */

enum change_phase change_phase(const struct change *change);
/* "waiting", "running", "switching" or "ending". */
const char *change_phase_text(const struct change *change);
/* "ASSEMBLING", "JOINED", …: the names in the table. */
const char *change_phase_name(enum change_phase phase);
const char *change_fact_name(enum change_fact_kind fact);
bool change_is_ending(const struct change *change); /* FINISHING or ENDING */
/* Has there been a world, or has the base of a job without a world joined? */
bool change_has_begun(const struct change *change);

int change_generation(const struct change *change);            /* 0: none yet */
const struct world *change_world(const struct change *change); /* NULL: none */
const struct change_next *change_next(const struct change *change);
/* The present world or the next one, by the number of its start. NULL: neither. */
const struct world *change_world_of(const struct change *change, int attempt);
const struct change_member *change_member(const struct change *change, int id); /* NULL: none */

bool change_is_left(const struct change_member *m); /* its notice is not CHANGE_STAYS */
/* Are its workers still on their way out of a world? AWAITED or DEPARTING. */
bool change_is_on_its_way(const struct change_member *m);
bool change_stopping(const struct change *change);
/* Is a world that has rested to begin? Its nodes are not lost, but not chosen so far. */
bool change_begins_again(const struct change *change);
int change_faults(const struct change *change); /* so far */
/* Since when there is no world because nodes are missing; < 0: there is one, or none has been. */
double change_stands_since(const struct change *change);
int change_nodes_before_loss(const struct change *change, double *replace_until);
/* When the present world began; < 0: there has been none. ready: its workers were executed. */
double change_since(const struct change *change);
double change_ready_at(const struct change *change);
const char *change_kind(const struct change *change);           /* of the change under way */
const char *change_reason(const struct change *change);         /* in one line */
const char *change_newcomer_error(const struct change *change); /* "": none was refused */
/* Why there will be another change; "": nothing is known. */
const char *change_next_reason(const struct change *change);
/* The last extension job that Slurm has taken since the last change; 0: none. */
uint32_t change_leaving_job(const struct change *change);
/* The reason of a change for an extension, as long as nobody knows why it leaves. */
#define CHANGE_LEAVING_TEXT "extension job %u has to leave"
/* Has a first step been made on all nodes? Where a process says that it is at work, the next one
 * may not have begun. */
bool change_all_stepping(const struct change *change);
/* Has any worker of the present world made a step that others would have to make again? */
bool change_any_stateful(const struct change *change);
/* Do the workers of the member keep what they have learnt through a change? any: what
 * change_any_stateful() says. Of a world that has just begun none has made a step, and all will
 * have what other workers can get. */
bool change_has_state(const struct change *change, const struct change_member *m, bool any);
/* Can the member be part of the next world? */
bool change_is_usable(const struct change_member *m, double now);
/* The next world in words; "" if there is none. */
const char *change_next_text(const struct change *change, char *text, size_t size);
/* A member that is gone and has no place any more is forgotten. False: it still has a place. */
bool change_forget(struct change *change, int id);

#endif
