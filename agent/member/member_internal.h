/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the member's files share. member.c: its life and the leader's messages; group.c: the workers of one generation. */
#ifndef ELASTIC_AGENT_MEMBER_MEMBER_INTERNAL_H
#define ELASTIC_AGENT_MEMBER_MEMBER_INTERNAL_H

#include <json-c/json.h>

#include "agent/member/member.h"
#include "agent/output.h"
#include "agent/pattern.h"
#include "agent/member/pmix.h"
#include "agent/member/store_server.h"
#include "agent/successor.h"
#include "agent/workers/workers.h"
#include "common/link.h"
#include "lib/world.h"

struct control;
struct successor_place;
struct tail;

#define MEMBER_PATIENCE    3   /* times heartbeat_timeout without word from the leader */
#define MEMBER_FATAL_GRACE 3.0 /* seconds for workers when the leader is gone */

/* The workers of one generation on this node. */
struct group {
    struct member *member;
    struct world *world;
    struct workers *workers;
    struct tail *tails; /* what each wrote last on stderr */
    int tail_count;
    int reserved_fd; /* keeps rank 0's port for it, -1: rank 0 is elsewhere */
    int attempt;     /* the leader's number of this world's start */
    int started; /* … of the one that its workers have been started for: PMIx knows them by that */
    bool gated;  /* its world has not begun */
    bool ready;  /* all have been executed */
    bool torn;   /* one has ended as it should not, with what it had */
    bool stateful;   /* they have made a step */
    int completed;   /* those that have ended by themselves, with 0 */
    uv_timer_t look; /* for rank 0 to listen */
    uint64_t look_until;
    bool first_passed; /* rank 0 its gate */
    uint32_t progress; /* number of the last report that the leader knows */
};

struct member {
    uv_loop_t *loop;
    const struct member_options *options;
    struct link *link;
    struct output *output;      /* base members write their workers' output themselves */
    struct group *group;        /* of the world that is; NULL: none */
    struct group *next;         /* of the one that comes, waiting at its gate */
    struct pmix *pmix;          /* NULL: not wanted */
    struct store_server *store; /* NULL: there is none */
    struct reclaim *reclaim;    /* NULL: nobody tells */
    int asked; /* attempt that the PMIx server is preparing, 0: none; messages wait until it has */
    json_object *waiting;     /* … these */
    json_object *space;       /* what it needs in its workers' environment; NULL: nothing */
    int space_of;             /* attempt */
    struct control *controls; /* that wait for other nodes */
    int64_t control_number;   /* of the last of them */
    int alerted;              /* attempt whose workers have been asked to save, by an event */
    int generation;           /* the last one begun here */
    int completed; /* the last one whose workers have all ended by themselves, with 0; 0: none */
    int term;      /* of the leader that it follows, or did last */
    char *leader_address; /* of that; NULL: it has not said it */
    int leader_port;
    char *own_address; /* as that one sees it; NULL: it has not said it */
    uid_t slurm_user;
    int said_port; /* where this leader knows that votes are counted, 0: nowhere */
    struct successor_place *successors;
    int successor_count;
    struct {
        bool active;
        bool torn; /* the workers live on, and wait for the next world */
        double since;
        double vote_after; /* … when the leader cannot take this node for one that hears it */
        double looked;     /* for srun */
        bool cut_off;      /* … which was not there */
        int target;        /* whom to dial next */
        bool voted;        /* in this round one of them has kept us waiting in vain */
        char *address;     /* … where one of them has sent us; NULL: nobody has */
        int port;
        uv_timer_t timer;
    } seek;
    uv_timer_t beat;
    double last_heard;
    double last_beat;
    int64_t leader_time; /* the newest that its beats have said: it is sent back */
    double beat_interval;
    double heartbeat; /* seconds of silence after which a member is lost */
    char *run_dir;
    /* From welcome. */
    char **argv, **user_env;
    char *cwd, *state_dir, *checkpoint_dir, *incarnation;
    struct pattern *fail_pattern; /* NULL: none */
    json_object *scale;           /* world size → JSON text */
    mode_t umask;
    int min_nodes, max_nodes, max_restarts;
    struct handover handover;

    int reserved_port, reserved_fd; /* for the next group that starts */
    size_t unacked;
    bool output_paused;

    bool unwatched_said; /* … to this leader: slurmstepd does not watch this agent any more */
    bool pmix_missed;    /* has been said */
    bool reclaimed;      /* the node is about to be taken away */
    bool
        orderly; /* nobody needs what is in its run directory: the others have it, or the job is through */
    bool welcomed, leaving, ending, finished;
    int open_handles; /* uv handles and other pieces that still call back */
    int exit_code;
    char stop_kind[16], stop_reason[512]; /* of the last stop */
    char leave_reason[64];
    void (*done)(int code, void *arg);
    void *arg;
};

/* member.c */
json_object *member_message(const char *type);
json_object *member_generation_message(const char *type, int generation);
void member_send(struct member *m, json_object *msg);
double member_now(const struct member *m); /* seconds */
void member_drop_next(struct member *m);
void member_on_message(struct link *link, json_object *msg, void *arg);
/* Stop the workers, and leave when they have. */
void member_end(struct member *m, int code);
/* A group has no worker left. */
void member_drained(struct member *m);
/* … which the leader is told by the attempt that they were started for. */
void member_send_drained(struct member *m, int started);

/* member_join.c: its leader, and whoever follows that one */
void member_join_begin(struct member *m);
int member_join(struct member *m, struct error *err);
/* … of an agent that is started in place of one that was killed: the leader that this one had, or whoever follows it. */
void member_join_again(struct member *m);
void member_join_welcomed(struct member *m, json_object *msg);
void member_join_successors(struct member *m, json_object *msg);
/* The one that was asked does not lead. */
void member_join_redirect(struct member *m, json_object *msg);
bool member_seeks(const struct member *m);
void member_join_end(struct member *m);
void member_join_free(struct member *m);

/* member_pmix.c: the node's PMIx server between workers and leader */
void member_pmix_begin(struct member *m);
/* Has the message of the leader that starts workers to wait until they can have PMIx? Then it and what follows it come
 * again by themselves. */
bool member_pmix_waits(struct member *m, const char *type, json_object *msg);
/* What is to be added to the environment of each worker of that attempt: NULL-terminated arrays in a NULL-terminated array, NULL:
 * nothing. Free with member_pmix_free. */
char ***member_pmix_environment(struct member *m, int attempt);
void member_pmix_free(char ***added);
void member_pmix_gone(struct member *m, int attempt); /* its workers */
/* Tell the workers that want to be told by an event that they have so many seconds to save, because of a change of that kind. */
void member_pmix_alert(struct member *m, const char *kind, const char *reason, double seconds);
/* The leader is lost: what was to be started is not. */
void member_pmix_forget(struct member *m);
void member_pmix_end(struct member *m);

/* keep.c: a snapshot that the next world may start from */
/* True: it is flushed if it is needed, and the leader is told after that by member_send_drained(). */
bool flush_snapshot(struct member *m, int started);

/* member_reclaim.c: the node is about to be taken away */
void member_reclaim_begin(struct member *m);
/* The leader can be told now, if it has not been. */
void member_reclaim_welcomed(struct member *m);
void member_reclaim_end(struct member *m);

/* member_control.c: signals from processes to others of their world */
/* A question of this node's PMIx server, which is answered. */
void member_control(struct member *m, int attempt, json_object *msg);
/* False: not a message about that. */
bool member_control_relay(struct member *m, const char *type, json_object *msg);
/* Nobody waits for answers any more in that attempt, in any if it is negative. */
void member_control_gone(struct member *m, int attempt);

/* member.c */
void member_handle(struct member *m, json_object *msg);
void member_piece_gone(struct member *m);

/* group.c */
/* Start the workers of node `index` of world, which is taken over, with a closed gate if gated. NULL with the reason in err. */
struct group *group_start(struct member *m, struct world *world, int index, int attempt, bool gated,
                          struct error *err);
/* Its world begins. Rank 0, on the first node, is let through its gate at once; the leader is told when it listens, or does not soon
 * after it has passed.
 * Who comes before it would wait for a second: that is how long PyTorch's store sleeps after a refused connection. */
void group_begin(struct group *group, bool first);
/* … and then all others. */
void group_open(struct group *group);
/* Live mode: its workers, which wait at their gates, are those of this world now, which begins. world is taken over. */
void group_enter(struct group *group, struct world *world, int index, int attempt);
/* … or, held, go on in this world once they have reached the step that they run to. world is taken over, unless it fails. */
int group_move(struct group *group, struct world *world, int index, int attempt, struct error *err);
/* Kill what still runs, and forget it. NULL is accepted. */
void group_destroy(struct group *group);
/* What its workers have reported of their progress since the last beat. */
void group_add_progress(struct group *group, json_object *msg);
/* As if a worker had written it. False: nobody reads now. */
bool group_log(struct group *group, int rank, int fd, const char *text, size_t len);
/* Kill what still runs; member_drained follows. */
void group_kill(struct group *group);
/* Would another group of the same kind fit beside it? If not, why is in text. */
bool group_fits_twice(const struct group *group, char *text, size_t size);
void member_pause_output(struct member *m, bool pause);
/* The leader has written so much of what was sent to it. */
void member_output_written(struct member *m, size_t bytes);

#endif
