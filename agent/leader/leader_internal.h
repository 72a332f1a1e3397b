/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the change of worlds share (decide.c, prepare.c, change.c, live.c, abort.c,
 * takeover.c, promote.c), and where the parts of the leader are, each of which has a header of its
 * own. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H
#define ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H

#include <json-c/json.h>
#include <uv.h>

#include "agent/leader/leader.h"
#include "agent/leader/pmix_relay.h"
#include "agent/output.h"
#include "common/link.h"
#include "common/slurm_client.h"
#include "lib/world.h"

struct leader_member;

enum phase {
    PHASE_WAITING, /* no generation: fewer than MIN, or the base is still assembling */
    PHASE_RUNNING,
    PHASE_HOLDING,   /* hold sent, waiting for every member's answer */
    PHASE_DRAINING,  /* workers run to the agreed step, save and leave */
    PHASE_RESERVING, /* waiting for rank 0's port */
    PHASE_STARTING,  /* start sent, waiting for ready */
    PHASE_ENDING,    /* the job is over: members are being told */
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

struct leader {
    uv_loop_t *loop;
    const struct leader_options *options;
    struct link_server *server;
    struct output *output;
    uv_timer_t evaluate; /* decide (again) */
    uv_timer_t deadline; /* of the current phase */
    uv_timer_t poll;
    int open_handles;
    const char *end_waits_for; /* in words; NULL: nothing has been waited for yet */
    int exit_code;
    void (*done)(int code, void *arg);
    void *arg;

    /* Its parts. */
    struct roster *roster;
    struct leader_lease *lease;
    struct srun *srun;
    struct srun_lost *srun_lost;
    struct requeue *requeue;
    struct submit *submit;
    struct extensions *extensions;
    struct slurm_look *slurm_look;
    struct allocation *allocation;
    struct report *report;
    struct exclude *exclude;
    struct hang_watch *hang_watch;
    struct pmix_publish *pmix_publish;
    struct world_store *world_store;

    /* The change of worlds. */
    double leave_at; /* no change before: more nodes may be preempted with the first */
    bool promoting;  /* promote.c is at work */
    bool promoted;   /* … and has been, for the world that comes */

    enum phase phase;
    double phase_since;
    int generation;
    int last_generation; /* of an elasticrun before this one in the same run of the job */
    struct world *world;
    struct pmix_relay relay;
    double generation_since; /* < 0: none yet */
    struct preparation next;
    int attempts;    /* preparations so far */
    bool gated;      /* the script waits at a gate, so that its workers may be started early */
    bool unprepared; /* … which did not work for the change that is due */
    bool cold_said;  /* the user has been told why */
    /* Why a node's workers were not let into a live world; "": none was refused. */
    char newcomer_error[256];
    bool only_warm;  /* planning: nodes whose workers are not ready to enter count as not there */
    double ready_at; /* all its workers had been executed */
    double last_setback;
    int last_increments;
    int restarts;         /* faults so far */
    int before_loss;      /* nodes of a world that a fault has ended, until the next begins */
    double replace_until; /* … which it may without as many from then on */
    bool replaces;        /* that is what is waited for */
    bool killed;          /* SIGKILL has been ordered in this phase */
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
    int failure_code;
    char failure[512];  /* the first failure of this generation, in one line */
    double grace_until; /* of the change under way */
    char why_size[200], why_not_more[240];
    int next_size; /* nodes of the world that is planned */

    double assembling; /* until then voters of this term join; 0: that is over */
    bool finish_due;   /* … once that may be done: */
    int finish_code;
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
/* Decide now, but do not carry it out. Fills order (malloced) and size of the world that should
 * exist. */
int decide_plan(struct leader *leader, int **order, int *size);
/* Is that member in the present world, and not in the one of that order? */
bool decide_drops(const struct leader_member *m, const int *order, int size);

/* prepare.c */
/* Choose the next world and reserve its port. -1: there are too few nodes; -2: no memory. */
int prepare_begin(struct leader *leader);
void prepare_discard(struct leader *leader);
/* A member has left or will: plan anew what it was part of. */
void prepare_again(struct leader *leader);
/* Should workers be started before the old ones leave? */
bool prepare_early(const struct leader *leader);
/* In a live world: take in nodes that have come soon after the others, too, so that there is one
 * change instead of two. */
void prepare_widen(struct leader *leader, int size);
/* Can there be a live world at once, of those that have workers? */
bool prepare_warm_suffice(struct leader *leader);
/* Is there a next world, all of whose members can still take part? */
bool prepare_usable(const struct leader *leader);
/* Do all its workers that are started for it wait at their gates? */
bool prepare_ready(const struct leader *leader);
/* … or has it taken too long? *wait: seconds until it will have. */
bool prepare_done(const struct leader *leader, double *wait);
/* Tell the agent of node `index` to start that world's workers, early ("prepare") or because it
 * begins ("start"). */
json_object *prepare_message(const char *type, const struct world *world, int index, int attempt);
/* The next world in words; "" if there is none. */
const char *prepare_text(const struct leader *leader, char *text, size_t size);
/* Is a message about the next world, in which the member has a place? By its "attempt". */
bool prepare_is_of(const struct leader *leader, const struct leader_member *m, json_object *msg);
/* "reserved", "parked", "unprepared", also of newcomers to a live world. */
void prepare_reserved(struct leader *leader, struct leader_member *m, json_object *msg);
void prepare_parked(struct leader *leader, struct leader_member *m, json_object *msg);
void prepare_unprepared(struct leader *leader, struct leader_member *m, json_object *msg);

/* abort.c: live mode, a part of the world is lost */
/* The present world ends, and those of its workers that are left go on in another one. False: they
 * cannot. */
bool abort_world(struct leader *leader);
/* The same where the job ends, and the others cannot come to the step after which one of them would
 * save. */
bool abort_ending(struct leader *leader);
/* Live mode: a worker has ended with 0, or asks whether its world is torn. If both are so the first
 * was too early: a failure. */
void abort_if_early(struct leader *leader);
/* What a member's beat says of that. */
void abort_hear(struct leader *leader, struct leader_member *m, json_object *beat);
/* It was that one of this member, which is what has torn this world. */
void abort_note_early(struct leader *leader, const struct leader_member *m);
/* It is torn: begin the next world, as soon as there can be one. */
void abort_form(struct leader *leader);
/* The job ends while they wait, with that exit status: one of them saves. False: nobody waits. */
bool abort_end(struct leader *leader, int code);
/* STARTING has lasted as long as it may: give up who has not come out of the world before. False:
 * that is not it. */
bool abort_late(struct leader *leader);
/* The next world begins when all have reached the step that they run to: that may take them one
 * more. */
void abort_await_switch(struct leader *leader);

/* change.c: what a new world has in common, however it begins */
void change_update_reason(struct leader *leader);
/* The prepared world becomes the present one, and STARTING. False: the job ends, for that could not
 * be written down. */
bool change_enter_world(struct leader *leader);
void change_release_idle(struct leader *leader);
/* Has a first step been made on all nodes? */
bool change_all_stepping(const struct leader *leader);
/* Kill the workers of this member. */
void change_kill(struct leader *leader, struct leader_member *m);
/* Seconds that workers have to reach a step, save and leave: less on nodes that Slurm takes back
 * sooner. */
double change_grace(struct leader *leader);
/* The workers leave: give them until then. */
void change_drain(struct leader *leader, double deadline);
/* Count a failure of workers against --max-restarts. False: that was the last one, and the job is
 * to end. */
bool change_count_failure(struct leader *leader);
/* One that leaves a world has ended, or is lost: the others wait for it if they have not reached
 * their last step there. */
void change_leaver_gone(struct leader *leader, struct leader_member *m);

/* promote.c: a flushed snapshot becomes a checkpoint */
/* A world is about to start from the newest checkpoint. True: that is being looked for, in
 * PHASE_RESERVING, and change_form() follows. */
bool promote_first(struct leader *leader);

/* takeover.c: a leader that follows another one */
void takeover_begin(struct leader *leader);
/* What the join says of the workers there. True: they may be of use in the next world. */
bool takeover_joined(struct leader *leader, struct leader_member *m, json_object *join);
/* Is it still to be seen who is left? Decided again by itself. */
bool takeover_assembles(struct leader *leader);

/* live.c */
/* Can the present world go on in another one? */
bool live_possible(const struct leader *leader);
/* What a member says of its workers when they are at their gates, and with their first step. */
void live_note(struct leader_member *m, json_object *msg);
/* Ends the job if its workers must go from world to world, and those of this member cannot. */
void live_require(struct leader *leader, const struct leader_member *m);
/* The next world has been chosen: have workers started on the nodes that are new in it. */
void live_prepare(struct leader *leader);
/* Its agent has no workers any more that wait for a live world to begin. */
void live_forget_newcomer(struct leader_member *m);
/* Some have not been for too long: without them. */
void live_give_up(struct leader *leader);
/* Is a message about workers that were started on a node that is new in a live world, and that wait
 * for whichever world begins next? By its "attempt". */
bool live_is_newcomer(const struct leader_member *m, json_object *msg);
/* "parked", "unprepared" of such a member. */
void live_parked(struct leader *leader, struct leader_member *m, json_object *msg);
void live_unprepared(struct leader *leader, struct leader_member *m, json_object *msg);
/* All are held, the highest step is known: the next world begins after it. False: it cannot, that
 * way. */
bool live_switch(struct leader *leader, uint64_t step);
/* The prepared world begins with workers that go on in it, and others that have waited at their
 * gates. Each of the former is told so by a message of that type, with the step, if not 0, that
 * they run to before. */
void live_enter(struct leader *leader, const char *type, uint64_t step);
/* Are the member's workers on their way out of a world that goes on? */
bool live_is_departing(const struct leader_member *m);
/* "exit", "drained" of such a member. */
void live_exit(struct leader *leader, struct leader_member *m, json_object *msg);
void live_drained(struct leader *leader, struct leader_member *m);
/* Members that take too long to leave have left. */
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
void change_finish(struct leader *leader, int code);
/* All agents may go. */
void change_dismiss(struct leader *leader);
/* What members say of their workers in the present world: they are executed; rank 0 listens; they
 * are there; have made a step; are held; one has ended; all have. The last two are also said of
 * workers that leave a world that goes on. */
void change_ready(struct leader *leader, struct leader_member *m, json_object *msg);
void change_listening(struct leader *leader, struct leader_member *first, json_object *msg);
void change_begun(struct leader *leader, struct leader_member *m, json_object *msg);
void change_stepping(struct leader *leader, struct leader_member *m, json_object *msg);
void change_held(struct leader *leader, struct leader_member *m, json_object *msg);
void change_exit(struct leader *leader, struct leader_member *m, json_object *msg);
void change_drained(struct leader *leader, struct leader_member *m, json_object *msg);

#endif
