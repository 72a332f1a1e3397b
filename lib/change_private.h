/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the change machine share (lib/change.h).
 *
 * change.c          the table of phases and facts, members
 * change_read.c     what others read
 * change_next.c     the next world: chosen, reserved, made ready, given up
 * change_form.c     it becomes the present world, and workers start
 * change_hold.c     workers are held, run to a step and leave
 * change_live.c     live mode: workers go from world to world, newcomers enter
 * change_abort.c    live mode: a part of the world is lost
 * change_decide.c   what the plan says is carried out
 * change_gone.c     a member is gone
 * change_takeover.c this leader follows another one */
#ifndef ELASTIC_CHANGE_PRIVATE_H
#define ELASTIC_CHANGE_PRIVATE_H

#include "lib/change.h"

#define TAKEOVER_LOOK 0.05 /* seconds between two looks at who has joined */
#define TAKEOVER_MAX  2.0  /* seconds for all members that are left to join a new leader */

struct change {
    const struct change_options *options;
    struct change_actions *out; /* of the fact that is being worked on */
    bool no_memory;
    double now;

    enum change_phase phase;
    bool assembled; /* a job with other roles: its base has joined */
    bool again;     /* … its world has rested, and begins */
    bool over;      /* … and all that it runs is over */
    double phase_since;
    double deadline; /* 0: none */
    /* Members before these have answered in this phase, or have no worker left: with many members
     * each message would look at all of them. */
    struct {
        int answered, drained;
    } first;

    struct change_member **members; /* by id */
    int member_count;

    struct world *world; /* NULL: there is none */
    int attempt;         /* of the present world's start */
    int generation;
    double since, ready_at;
    struct change_next next;
    int attempts; /* preparations so far */

    /* The present world. */
    bool fault;      /* it ends because of a failure or a lost node */
    bool settled;    /* a SIGTERM of unknown origin has been waited for */
    bool saved_only; /* its workers have left from ABORTED: the result is a checkpoint */
    int faults;      /* of the job, so far */
    int stolen;      /* ports, since a world has made steps */
    struct {
        bool known;
        int code;   /* exit status */
        bool fatal; /* nothing is started again */
        bool stolen;
        char text[512];
    } failure; /* the first failure of a worker in this world */

    /* The change under way. */
    double pause_from; /* when the world before had been held; < 0: not yet */
    char kind[16];
    char reason[512];
    char next_reason[256]; /* what has happened since the last change was decided */
    uint32_t leaving_job;
    int next_size; /* nodes of the world that is planned */
    char why_size[200];
    struct {
        double grace;     /* workers are to have left */
        double entered;   /* SWITCHING: workers are to have entered */
        double settled;   /* no change before: Slurm may call more nodes with the first */
        double assembled; /* TAKING_OVER: voters are to have joined */
        double ends;      /* a takeover's member was last seen to end well */
    } due;

    /* After a fault in restart mode: lost nodes are waited for. */
    struct {
        bool wanted;
        int nodes;    /* of the world that ended, until the next one begins */
        double until; /* the next world begins with fewer nodes then */
    } replace;

    /* What is known of the script. */
    struct {
        bool waits;      /* at a gate: its workers may be started early */
        bool unprepared; /* … which did not work for the change that is due */
        bool cold_said;  /* the user has been told why */
        /* … or that no worker has used our library in time. */
        bool unheard_said;
    } script;
    char newcomer_error[256];

    /* The search for flushed snapshots, for the world that comes. */
    struct {
        bool begun, done;
    } promotion;

    /* The end of the job. */
    struct {
        bool wanted;
        bool told;  /* … as any other leader would hear, too */
        bool world; /* … it is only the world that ends */
        int code;
        char reason[64];
    } stop;
    int finish_code;
};

/* ---- change.c -------------------------------------------------------------------------------- */

/* For each member m, with its index i. */
#define FOR_MEMBERS(c, m)                                                                          \
    for (int m##_i = 0; m##_i < (c)->member_count; m##_i++)                                        \
        for (struct change_member *m = (c)->members[m##_i]; m != NULL; m = NULL)

void set_phase(struct change *c, enum change_phase phase, double seconds);
void set_deadline(struct change *c, double seconds);
double fault_wait(const struct change *c); /* seconds to wait for nodes before all is given up */
/* The job is about to end since a phase has lasted too long: say why, or that if it is unknown. */
void gave_up(struct change *c, const char *unknown);
struct change_action *act(struct change *c, enum change_action_kind kind,
                          const struct change_member *m);
void act_text(struct change *c, enum change_action_kind kind, const struct change_member *m,
              const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void decide(struct change *c, double seconds);
void set_next_reason(struct change *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void release(struct change *c, struct change_member *m, const char *why);
bool may_act(struct change *c);
struct change_member *find_member(const struct change *c, int id);

bool is_in_phase(const struct change *c, unsigned phases); /* of PHASE() */
#define PHASE(name) (1u << CHANGE_##name)
#define PHASES_WITHOUT_WORLD                                                                       \
    (PHASE(ASSEMBLING) | PHASE(TAKING_OVER) | PHASE(WAITING) | PHASE(REPLACING))
#define PHASES_STARTING  (PHASE(STARTING) | PHASE(SWITCHING))
#define PHASES_TRAINING  (PHASE(RUNNING) | PHASE(HOLDING) | PHASES_STARTING)
#define PHASES_RESERVING (PHASE(RESERVING) | PHASE(PROMOTING))
#define PHASES_EMPTYING  (PHASE(DRAINING) | PHASE(KILLING) | PHASE(SETTLING) | PHASE(SAVING))
#define PHASES_OVER      (PHASE(FINISHING) | PHASE(ENDING))

/* It has a place in the present world, and its link is up. */
bool takes_part(const struct change_member *m);
bool has_workers_left(const struct change_member *m); /* takes part, and is not drained */
/* In this phase; drained: those without workers count as well. */
bool all_have_answered(struct change *c, bool drained);
bool is_newcomer(const struct change_member *m); /* WARMING or WARM */

/* ---- change_next.c --------------------------------------------------------------------------- */

int next_begin(struct change *c); /* -1: too few nodes; -2: out of memory */
void next_discard(struct change *c);
void next_again(struct change *c); /* a member has left or will: plan anew what it was part of */
void next_widen(struct change *c, int size);
bool next_is_early(const struct change *c); /* are workers started before the old ones leave? */
bool next_is_usable(const struct change *c);
bool next_is_ready(const struct change *c);
/* Does nothing on that member's node have to be waited for? */
bool next_has_ready(const struct change *c, const struct change_member *m);
bool next_is_done(const struct change *c, double *wait); /* ready, or has it taken too long? */
bool next_warm_suffice(struct change *c, int size);
bool drops(const struct change_member *m, const int *order, int size);
void next_on_reserved(struct change *c, struct change_member *m, const struct change_fact *fact);
void next_on_parked(struct change *c, struct change_member *m, const struct change_fact *fact);
void next_on_unprepared(struct change *c, struct change_member *m, const struct change_fact *fact);

/* ---- change_form.c --------------------------------------------------------------------------- */

void form(struct change *c);               /* the next world begins, or members are waited for */
void describe(struct change *c, int size); /* kind and reason of the change, as far as is known */
void update_reason(struct change *c);
void enter_world(struct change *c, enum change_phase phase, double seconds);
void release_idle(struct change *c);
void finish(struct change *c, int code);
void form_on_ready(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_listening(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_begun(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_stepping(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_busy(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_at_work(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_written(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_over(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_again(struct change *c, struct change_member *m, const struct change_fact *fact);
void form_on_promoted(struct change *c, struct change_member *m, const struct change_fact *fact);

/* ---- change_hold.c --------------------------------------------------------------------------- */

void begin_change(struct change *c);
void agree_if_answered(struct change *c);
void check_drained(struct change *c);
bool count_failure(struct change *c); /* false: it was the last one that is allowed */
/* The present world cannot go on. */
void abort_or_kill(struct change *c);
/* … because of a fault, and perhaps no worker is left in it already. */
void break_off(struct change *c);
void kill_workers(struct change *c, const struct change_member *m);
void kill_rest(struct change *c);
void requeue(struct change *c); /* if the job is to end because of a fault, and may go on later */
void fail(struct change *c, const char *why);
double grace_of(const struct change *c);
void hold_on_held(struct change *c, struct change_member *m, const struct change_fact *fact);
void hold_on_exited(struct change *c, struct change_member *m, const struct change_fact *fact);
void hold_on_drained(struct change *c, struct change_member *m, const struct change_fact *fact);

/* ---- change_live.c --------------------------------------------------------------------------- */

bool live_world(const struct change *c);    /* all workers of the world could go to another one */
bool live_possible(const struct change *c); /* … and there is to be one */
void live_note(struct change_member *m, const struct change_fact *fact);
void live_require(struct change *c, const struct change_member *m);
void live_prepare(struct change *c);
void forget_newcomer(struct change_member *m);
void give_up_newcomers(struct change *c);
/* parked, unprepared: true if it was about a newcomer's workers. */
bool live_on_newcomer(struct change *c, struct change_member *m, const struct change_fact *fact);
bool live_switch(struct change *c, uint64_t step);
void live_enter(struct change *c, enum change_action_kind kind, uint64_t step, double seconds);
bool live_on_departing(struct change *c, struct change_member *m, const struct change_fact *fact);
void begin_departure(struct change *c, struct change_member *m);
void live_note_moved(struct change *c, struct change_member *m, int64_t moved);
void live_watch(struct change *c);

/* ---- change_abort.c -------------------------------------------------------------------------- */

bool abort_world(struct change *c);  /* false: the workers cannot live on */
bool abort_ending(struct change *c); /* the same while the job ends */
/* Workers that run to a last step with others: no worker comes to that step any more. */
void abort_awaited(struct change *c);
void abort_if_early(struct change *c);
void abort_note_early(struct change *c, const struct change_member *m);
void abort_form(struct change *c);
bool abort_end(struct change *c, int code); /* false: no worker waits */
void abort_leaver_gone(struct change *c, struct change_member *m);
double switch_limit(const struct change *c);
void abort_on_beat(struct change *c, struct change_member *m, const struct change_fact *fact);

/* change_decide.c */
/* Has the base come together for the first time? Before that no world is formed, even if MIN nodes
 * are there. */
bool has_assembled(const struct change *c);
bool base_is_there(const struct change *c); /* have all of its nodes joined? */
bool has_roles(const struct change *c);     /* besides the world, or instead of it */

/* ---- rows of the table that are in the files above ------------------------------------------- */

typedef void change_handler(struct change *c, struct change_member *m,
                            const struct change_fact *fact);
change_handler decide_running, decide_without_world, decide_aborted;
change_handler time_without_world, time_aborted, time_reserving, time_starting, time_switching,
    time_holding, time_draining, time_killing, time_settling;
change_handler gone_reserving, gone_running, gone_aborted, gone_holding, gone_leaving,
    gone_starting, gone_elsewhere;
change_handler stop, stop_running, stop_aborted, stop_without_world, stop_finishing, stop_resting;
change_handler takeover_on_time;
void takeover_joined(struct change *c, struct change_member *m, const struct change_join *join);
/* exited, drained: of workers of the world that was lost with the leader before this one. */
void takeover_note_end(struct change *c, struct change_member *m, const struct change_fact *fact);
/* Some of its workers have ended well, and the others may be about to: the next world waits. The
 * others are killed when they have had their time. */
bool takeover_ends(struct change *c);

/* The member that the phase waits for is to count as lost, for that reason. */
void lose_silent(struct change *c, const char *why);

#endif
