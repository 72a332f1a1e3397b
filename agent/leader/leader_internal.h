/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the leader's files share. leader.c: members and decisions; change.c: from one generation to the next; extensions.c: extension
 * jobs as Slurm and the leader see them; submit.c: asking for them; report.c: what users and files are told. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H
#define ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H

#include <json-c/json.h>

#include "agent/term_file.h"
#include "agent/leader/leader.h"
#include "agent/output.h"
#include "agent/successor.h"
#include "client/event_page.h"
#include "common/link.h"
#include "common/slurm_client.h"
#include "lib/gather.h"
#include "lib/hang.h"
#include "lib/plan.h"
#include "lib/recovery.h"
#include "lib/requests.h"
#include "lib/succession.h"
#include "lib/world.h"

struct leader_member;
struct extensions;
struct leader_lease;
struct requeue;
struct roster;
struct srun;
struct srun_lost;
struct submit;

enum phase {
    PHASE_WAITING, /* no generation: fewer than MIN, or the base is still assembling */
    PHASE_RUNNING,
    PHASE_HOLDING,   /* hold sent, waiting for every member's answer */
    PHASE_DRAINING,  /* workers run to the agreed step, save and leave */
    PHASE_RESERVING, /* waiting for rank 0's port */
    PHASE_STARTING,  /* start sent, waiting for ready */
    PHASE_ENDING,    /* the job is over: members are being told */
};

/* One line of the job's history. */
struct generation_record {
    int generation, size, workers;
    double
        pause_from; /* when the world before had been held, on the leader's clock; < 0: there was none */
    double time, until, pause; /* Unix time, seconds; until and pause < 0: not known (yet) */
    char kind[16];
    char *reason;
    char **nodes;
};

/* What the PMIx servers of a world's nodes say to each other. */
struct pmix_relay {
    int attempt; /* the number of its start; 0: there is no world */
    int generation;
    int node_count;
    char name[64]; /* the namespace that its processes have */
    struct gather *gather;
    char without[256]; /* a node that has no PMIx server, and why; "": there is none */
    size_t *unread;    /* per place: bytes that lookups have found, and its server has not taken */
};

/* The next world, from the choice of its nodes until it begins. */
struct preparation {
    struct world *world; /* NULL: there is none */
    int attempt;         /* its number, in messages */
    struct pmix_relay relay;
    bool reserved; /* rank 0's port is known */
    bool live;     /* the workers of those that stay will go on in it */
    double since;
};

struct lookup;
struct publish;
struct store;

/* What the program has reported of its progress, of the node with the lowest ranks that reports. Kept over a change, until the new world
 * reports. */
struct progress {
    int generation; /* 0: nothing has been reported */
    int position;   /* the node */
    int64_t done, total;
    char unit[EVENT_UNIT_BYTES];
    int64_t first_done; /* at first_at (leader_now), the first report of this generation */
    double first_at;
    double at; /* Unix time */
};

struct leader {
    uv_loop_t *loop;
    const struct leader_options *options;
    struct link_server *server;
    struct output *output;
    uv_timer_t evaluate; /* decide (again) */
    uv_timer_t deadline; /* of the current phase */
    uv_timer_t poll;
    int open_handles;

    struct roster *roster;
    double leave_at; /* no change before: more nodes may be preempted with the first */
    bool promoting;  /* promote.c is at work */
    bool promoted;   /* … and has been, for the world that comes */

    enum phase phase;
    double phase_since;
    int generation;
    int last_generation; /* of an elasticrun before this one in the same run of the job */
    struct world *world;
    struct pmix_relay relay;
    struct publish *published; /* NULL: nothing yet */
    uv_timer_t lookups;        /* the next of those that wait has waited long enough */
    struct lookup *lookup;     /* those that wait, in no order */
    struct store *store;       /* NULL: nothing yet */
    uv_timer_t store_due;      /* the next of those that wait there has waited long enough */
    double generation_since;   /* < 0: none yet */
    struct preparation next;
    int attempts;    /* preparations so far */
    bool gated;      /* the script waits at a gate, so that its workers may be started early */
    bool unprepared; /* … which did not work for the change that is due */
    bool cold_said;  /* the user has been told why */
    char newcomer_error
        [256];       /* why a node's workers were not let into a live world; "": none was refused */
    bool only_warm;  /* planning: nodes whose workers are not ready to enter count as not there */
    double ready_at; /* all its workers had been executed */
    double last_setback;
    int last_increments;
    int target;                /* what programs ask for counts before it: allocation_target() */
    struct requests *requests; /* … of programs */
    int carried_out;           /* the number of the last that has begun */
    char refused[256];         /* why the last one was */
    int restarts;              /* faults so far */
    struct recovery *recovery; /* … and what follows of them */
    int before_loss;           /* nodes of a world that a fault has ended, until the next begins */
    double replace_until;      /* … which it may without as many from then on */
    bool replaces;             /* that is what is waited for */
    struct hang hang;
    bool killed; /* SIGKILL has been ordered in this phase */
    char change_kind[16];
    char change_reason[512];
    char next_reason[256]; /* what has happened since the last change was decided */
    double pause_from;     /* when the old world had been held; < 0: no world before */
    bool failed;           /* a worker of this generation has failed */
    bool torn; /* live: the world is, and its workers wait with their state for the next one */
    bool coming_out;   /* … and has been followed by another, in which not all are yet */
    double out_due;    /* … and are to be then */
    bool fault;        /* the change under way is because of a failure or a lost node */
    bool waited;       /* … by a SIGTERM, and it has been waited for a reason */
    bool fatal;        /* … and it must not be started again */
    bool stopping;     /* the job ends … */
    bool told_to_stop; /* … as any other leader would hear, too */
    int stop_code;     /* the job's exit status then */
    char stop_reason[64];
    struct progress progress;
    int failure_code;
    char failure[512];  /* the first failure of this generation, in one line */
    double grace_until; /* of the change under way */
    char why_size[200], why_not_more[240];
    int next_size; /* nodes of the world that is planned */

    struct generation_record *history;
    int history_count;
    double started; /* Unix time */

    struct leader_lease *lease;
    struct srun *srun;
    struct srun_lost *srun_lost;
    struct requeue *requeue;
    struct submit *submit;
    struct extensions *extensions;
    double assembling; /* until then voters of this term join; 0: that is over */
    bool finish_due;   /* … once that may be done: */
    int finish_code;

    const char *end_waits_for; /* in words; NULL: nothing has been waited for yet */
    int exit_code;
    bool done_called;
    void (*done)(int code, void *arg);
    void *arg;
};

double leader_now(const struct leader *leader);
double unix_now(void);
json_object *leader_message(const char *type, int generation);
void leader_send(struct leader_member *member, json_object *msg);

/* leader.c */
/* A timer that a part of the leader owns, and its end: the leader is over when all have ended. */
void leader_timer_init(struct leader *leader, uv_timer_t *timer);
void leader_timer_close(uv_timer_t *timer);
void leader_set_phase(struct leader *leader, enum phase phase, double deadline);
void leader_restart_deadline(struct leader *leader, double seconds);
void leader_setback(struct leader *leader);
void leader_handle_closed(struct leader *leader);
const char *phase_name(enum phase phase);

/* decide.c */
void decide_later(struct leader *leader, double seconds);
/* Decide now, but do not carry it out. Fills order (malloced) and size of the world that should exist. */
int decide_plan(struct leader *leader, int **order, int *size);
/* Is that member in the present world, and not in the one of that order? */
bool decide_drops(const struct leader_member *m, const int *order, int size);

/* prepare.c */
/* Choose the next world and reserve its port. -1: there are too few nodes; -2: it cannot be built. */
int prepare_begin(struct leader *leader);
void prepare_discard(struct leader *leader);
/* A member has left or will: plan anew what it was part of. */
void prepare_again(struct leader *leader);
/* Should workers be started before the old ones leave? */
bool prepare_early(const struct leader *leader);
/* In a live world: take in nodes that have come soon after the others, too, so that there is one change instead of two. */
void prepare_widen(struct leader *leader, int size);
/* Can there be a live world at once, of those that have workers? */
bool prepare_warm_suffice(struct leader *leader);
/* Is there a next world, all of whose members can still take part? */
bool prepare_usable(const struct leader *leader);
/* Do all its workers that are started for it wait at their gates? */
bool prepare_ready(const struct leader *leader);
/* … or has it taken too long? *wait: seconds until it will have. */
bool prepare_done(const struct leader *leader, double *wait);
/* Tell the agent of node `index` to start that world's workers, early ("prepare") or because it begins ("start"). */
json_object *prepare_message(const char *type, const struct world *world, int index, int attempt);
/* The next world in words; "" if there is none. */
const char *prepare_text(const struct leader *leader, char *text, size_t size);
/* False: not a message about a preparation. */
bool prepare_on_message(struct leader *leader, struct leader_member *member, const char *type,
                        json_object *msg);

/* tear.c: live mode, a part of the world is lost */
/* The present world ends, and those of its workers that are left go on in another one. False: they cannot. */
bool abort_world(struct leader *leader);
/* The same where the job ends, and the others cannot come to the step after which one of them would save. */
bool abort_ending(struct leader *leader);
/* Live mode: a worker has ended with 0, or asks whether its world is torn. If both are so the first was too early: a failure. */
void abort_if_early(struct leader *leader);
/* What a member's beat says of that. */
void abort_hear(struct leader *leader, struct leader_member *m, json_object *beat);
/* It was that one of this member, which is what has torn this world. */
void abort_note_early(struct leader *leader, const struct leader_member *m);
/* It is torn: begin the next world, as soon as there can be one. */
void abort_form(struct leader *leader);
/* The job ends while they wait, with that exit status: one of them saves. False: nobody waits. */
bool abort_end(struct leader *leader, int code);
/* STARTING has lasted as long as it may: give up who has not come out of the world before. False: that is not it. */
bool abort_late(struct leader *leader);
/* The next world begins when all have reached the step that they run to: that may take them one more. */
void abort_await_switch(struct leader *leader);

/* change.c: what a new world has in common, however it begins */
void change_update_reason(struct leader *leader);
/* The prepared world becomes the present one, and STARTING. False: the job ends, for that could not be written down. */
bool change_enter_world(struct leader *leader);
void change_release_idle(struct leader *leader);
/* Has a first step been made on all nodes? */
bool change_all_stepping(const struct leader *leader);
/* Kill the workers of this member. */
void change_kill(struct leader *leader, struct leader_member *m);
/* Seconds that workers have to reach a step, save and leave: less on nodes that Slurm takes back sooner. */
double change_grace(struct leader *leader);
/* The workers leave: give them until then. */
void change_drain(struct leader *leader, double deadline);
/* Count a failure of workers against --max-restarts. False: that was the last one, and the job is to end. */
bool change_count_failure(struct leader *leader);
/* One that leaves a world has ended, or is lost: the others wait for it if they have not reached their last step there. */
void change_leaver_gone(struct leader *leader, struct leader_member *m);

/* avoid.c: nodes that are left out for a while */
bool exclude_member(const struct leader *leader, const struct leader_member *m);
void exclude_watch(struct leader *leader);
/* Which nodes, and for how long: "" if none. */
void exclude_describe(const struct leader *leader, char *text, size_t size);
/* What Slurm says of a node. */
void exclude_unwell(struct leader *leader, const char *node, bool unwell);
/* The cloud takes the node away in a moment. */
void exclude_reclaimed(struct leader *leader, struct leader_member *m);

/* promote.c: a flushed snapshot becomes a checkpoint */
/* A world is about to start from the newest checkpoint. True: that is being looked for, in PHASE_RESERVING, and change_form() follows. */
bool promote_first(struct leader *leader);

/* takeover.c: a leader that follows another one */
void takeover_begin(struct leader *leader);
/* What the join says of the workers there. True: they may be of use in the next world. */
bool takeover_joined(struct leader *leader, struct leader_member *m, json_object *join);
/* Is it still to be seen who is left? Decided again by itself. */
bool takeover_assembles(struct leader *leader);

/* hang.c: has the world made a step lately? */
void hang_watch(struct leader *leader);

/* live.c */
/* Can the present world go on in another one? */
bool live_possible(const struct leader *leader);
/* What a member says of its workers when they have come to their gates, and with their first step. */
void live_note(struct leader_member *m, json_object *msg);
/* Ends the job if its workers must go from world to world, and those of this member cannot. */
void live_require(struct leader *leader, const struct leader_member *m);
/* The next world has been chosen: have workers started on the nodes that are new in it. */
void live_prepare(struct leader *leader);
/* Its agent has no workers any more that wait for a live world to begin. */
void live_forget_newcomer(struct leader_member *m);
/* Some have not been for too long: without them. */
void live_give_up(struct leader *leader);
/* parked, unprepared: true if it was about such workers. */
bool live_on_message(struct leader *leader, struct leader_member *m, const char *type,
                     json_object *msg);
/* All are held, the highest step is known: the next world begins after it. False: it cannot, that way. */
bool live_switch(struct leader *leader, uint64_t step);
/* The prepared world begins with workers that go on in it, and others that have waited at their gates. Each of the former is told so by a message of that
 * type, with the step, if not 0, that they run to before. */
void live_enter(struct leader *leader, const char *type, uint64_t step);
/* Has that member left a world that goes on? For a message that says so, and after a while. */
bool live_departed(struct leader *leader, struct leader_member *m, const char *type,
                   json_object *msg);
void live_watch(struct leader *leader);

/* change.c */
void change_describe(struct leader *leader, int size);
void change_begin(struct leader *leader);
void change_form(struct leader *leader);
void change_stop_job(struct leader *leader, const char *reason);
/* The world that is cannot go on, as if a worker had failed for that reason. */
void change_fail(struct leader *leader, const char *why);
/* No step can be agreed upon in it any more. */
void change_torn(struct leader *leader);
void change_deadline(struct leader *leader);
void change_member_gone(struct leader *leader, struct leader_member *member);
void change_on_message(struct leader *leader, struct leader_member *member, const char *type,
                       json_object *msg);
void change_finish(struct leader *leader, int code);
/* All agents may go. */
void change_dismiss(struct leader *leader);

/* relay.c */
/* -1: out of memory. */
int pmix_relay_begin(struct leader *leader, struct pmix_relay *relay, const struct world *world,
                     int attempt);
void pmix_relay_end(struct leader *leader, struct pmix_relay *relay);
/* Collectives of the worlds that it is part of fail. */
void pmix_relay_member_gone(struct leader *leader, const struct leader_member *member);
/* False: not a message about them. */
bool pmix_relay_on_message(struct leader *leader, struct leader_member *member, const char *type,
                           json_object *msg);

/* allocate.c */
int allocation_target(const struct leader *leader);
/* See what has been done of what programs ask for, and what is next. */
void allocation_update(struct leader *leader);
/* The job ends: nothing more is done of it, and who waits is told while there is still a world to hear it. */
void allocation_stop(struct leader *leader);

/* store.c: where the processes of a world meet */
/* -1: out of memory. */
int store_begin_world(struct leader *leader, const struct pmix_relay *relay);
/* It is over, or torn: whoever waits there has waited in vain. */
void store_end_world(struct leader *leader, const struct pmix_relay *relay);
void store_member_gone(struct leader *leader, const struct leader_member *member);
/* False: not a message about it. */
bool store_on_message(struct leader *leader, struct leader_member *member, const char *type,
                      json_object *msg);
void store_free(struct leader *leader);

/* publish.c: what processes have published */
/* A process of the world that is has ended. */
void publish_rank_gone(struct leader *leader, int rank);
void publish_free(struct leader *leader);

/* report.c */
/* The last one that generation.json tells of in this run of the job: from an elasticrun before. 0: there was none. */
int report_last_generation(const struct leader_options *options);
int report_generation(struct leader *leader); /* a generation has been formed: files and history */
/* The first step of the generation has been made; not aware: by a script of whose steps nothing is known, so that all that is known is when its
 * workers were ready. */
void report_stepping(struct leader *leader, bool aware);
void report_end(struct leader *leader);
/* A member's beat says what its program has reported of its progress. */
void report_progress(struct leader *leader, const struct leader_member *m, json_object *beat);
/* Keep a worker's failure as one line; print it once it is known to be the cause and not a consequence. */
void report_failure(struct leader *leader, struct leader_member *member, json_object *exit);
void report_root_cause(struct leader *leader);
void report_control(struct leader *leader, struct link *link, const char *type, json_object *msg);
void report_free(struct leader *leader);

#endif
