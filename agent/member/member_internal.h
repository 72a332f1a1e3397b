/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the member's files share.
 *
 * member.c: its life; member_messages.c: the leader's messages; join.c: finding a leader; group.c:
 * the workers of one generation. */
#ifndef ELASTIC_AGENT_MEMBER_MEMBER_INTERNAL_H
#define ELASTIC_AGENT_MEMBER_MEMBER_INTERNAL_H

#include <json-c/json.h>

#include "agent/member/member.h"
#include "agent/output.h"
#include "agent/pattern.h"
#include "agent/member/pmix.h"
#include "agent/member/store_server.h"
#include "agent/leader_places.h"
#include "agent/workers/workers.h"
#include "common/link.h"
#include "lib/node_health.h"
#include "lib/world.h"

struct api;
struct job_control;
struct replicas;
struct rank_tail;
struct train_script;

/* A member that has not heard its leader for this many times heartbeat_timeout looks for another.
 * The leader knows earlier that nobody has heard it, and does nothing from then on
 * (lib/succession.h). */
#define MEMBER_PATIENCE    3
#define MEMBER_FATAL_GRACE 3.0 /* seconds for the workers to end when the leader is gone */

/* The workers of one generation on this node. */
struct group {
    struct member *member;
    struct world *world;
    struct workers *workers;
    struct rank_tail *tails; /* the last line of each worker on stderr */
    int tail_count;
    int reserved_fd; /* keeps rank 0's port free for it, -1: rank 0 is on another node */
    int attempt;     /* the leader's number of this start of the world */
    /* The attempt for which the workers have been started: PMIx knows the workers by it. Live
     * workers go from attempt to attempt. */
    int started;
    bool gated;      /* the world has not begun */
    bool ready;      /* all workers have been executed */
    bool torn;       /* a worker has failed, and its state is lost */
    bool stolen;     /* another user listens on MASTER_PORT */
    bool stateful;   /* the workers have made a step */
    int completed;   /* workers that have ended by themselves with status 0 */
    uv_timer_t look; /* polls whether rank 0 listens */
    uint64_t look_until;
    bool first_passed; /* rank 0 has passed its gate */
    bool health_known;
    struct node_health health; /* of the node, when its workers had made a step of this world */
    uint32_t progress;         /* number of the last report that the leader knows */
};

/* The leader that this member follows, or has followed last. */
struct member_leader {
    char *address; /* NULL: not known */
    int port;
    int term;
    double last_heard;
    int64_t time;  /* the newest time that the leader's beats have named: our beats send it back */
    int said_port; /* where this leader knows that this agent counts votes, 0: nowhere */
    /* This leader knows that slurmstepd does not watch this agent any more. */
    bool unwatched_said;
};

/* The job, as the welcome of the first leader describes it. */
struct member_job {
    char id[16];
    char *roles; /* the text of its roles; NULL: it has none */
    char **argv, **env;
    char *cwd, *state_dir, *checkpoint_dir;
    char *mlflow_uri, *mlflow_run; /* NULL: workers have no run of MLflow */
    struct pattern *fail_pattern;  /* NULL: none */
    json_object *scale;            /* world size → JSON text */
    mode_t umask;
    int min_nodes, max_nodes, max_restarts;
    uid_t slurm_user;
};

/* The search for a leader after the last one was lost (join.c). */
struct member_seek {
    bool active;
    bool torn; /* the workers live on, and wait for the next world */
    double since;
    double vote_after; /* from then on the old leader knows that this node does not hear it */
    double looked;     /* when this node last looked for srun */
    bool cut_off;      /* srun could not be reached */
    int target;        /* the successor to dial next */
    bool voted;        /* a successor of this round has let this node wait without a result */
    char *address;     /* where a successor has sent this node; NULL: nowhere */
    int port;
    uv_timer_t timer;
};

/* The node's PMIx server, and what waits for it (member_pmix.c). */
struct member_pmix {
    struct pmix *server;  /* NULL: none is wanted */
    int asked;            /* attempt that the server is preparing, 0: none */
    json_object *waiting; /* the leader's messages meanwhile */
    json_object *space;   /* additions to the environment of each worker; NULL: none */
    int space_of;         /* attempt of `space` */
    int alerted;          /* attempt whose workers have been asked to save, by an event */
    bool missed;          /* it has been said that workers start without PMIx */
};

struct member {
    uv_loop_t *loop;
    const struct member_options *options;
    struct link *link;
    struct {
        struct output *own; /* base members write their workers' output themselves */
        size_t unacked;     /* bytes that the leader has not written yet */
        bool paused;
    } output;
    struct group *group;       /* of the present world; NULL: none */
    struct group *next;        /* of the next world, waiting at its gate */
    struct replicas *replicas; /* NULL: the job has no roles */
    struct api *api;           /* its HTTP interface; NULL: no role here has needed it */
    struct member_pmix pmix;
    struct store_server *store;   /* NULL: there is none */
    struct train_script *scripts; /* around training; NULL: none */
    struct reclaim *reclaim;      /* NULL: nothing announces that the node will be taken away */
    struct {
        struct job_control *waiting; /* for other nodes */
        int64_t number;              /* of the newest */
    } controls;
    int generation; /* the last generation that began here */
    /* The last generation whose workers have all ended by themselves with status 0; 0: none. */
    int completed;
    struct member_leader leader;
    char *own_address; /* of this node, as the leader sees it; NULL: not known */
    struct leader_places successors;
    struct member_seek seek;
    struct {
        uv_timer_t timer;
        double last;
        double interval;
    } beat;
    double heartbeat; /* seconds of silence after which a member is lost */
    char *run_dir, *incarnation;
    struct member_job job;
    struct handover handover;
    struct {
        int port, fd;
    } reserved; /* MASTER_PORT of the next group that starts */

    struct {
        bool comes;       /* the node is about to be taken away */
        double at;        /* … then; < 0: not known */
        bool advised;     /* the cloud advises to replace it */
        char *silence[2]; /* why nobody will say so, or give advice; NULL: the leader knows */
    } taken;
    bool noticed; /* a node may be drained, and the leader has not been told */
    /* Nobody needs the files in the run directory: other nodes have them, or the job is over. */
    bool orderly;
    bool welcomed, leaving, ending, finished;
    int open_handles; /* uv handles and other parts that still call back */
    int exit_code;
    struct {
        char kind[16], reason[512];
    } stop; /* the last one */
    void (*done)(int code, void *arg);
    void *arg;
};

/* member.c */
json_object *member_message(const char *type);
json_object *member_generation_message(const char *type, int generation);
void member_send(struct member *m, json_object *msg);
/* Tell the leader of a notice now, if it has not been told. */
void member_notice_welcomed(struct member *m);
double member_now(const struct member *m); /* seconds */
/* Stop the workers, and leave when they have ended. */
void member_end(struct member *m, int code);
/* A group has no worker left. */
void member_drained(struct member *m);
/* A uv handle or another part of the member has ended; arg is the member. */
void member_piece_gone(void *arg);

/* member_messages.c: the leader's messages */
void member_on_message(struct link *link, json_object *msg, void *arg);
/* Handle a message that need not wait for PMIx. */
void member_handle(struct member *m, json_object *msg);
/* Forget the workers of the next world. */
void member_drop_next(struct member *m);
/* Tell the leader that no worker is left of the attempt for which they were started. */
void member_send_drained(struct member *m, int started);
/* Tell the leader that workers fail here, that a world could not even be started, that the next
 * world cannot be prepared. */
void member_say_failure(struct member *m, int started, const struct error *err);
void member_unstartable(struct member *m, int attempt, const struct error *err);
void member_say_unprepared(struct member *m, int64_t attempt, const char *reason);

/* member_replicas.c: the replicas of this node between workers and leader */
/* A leader's welcome: replicas may be started here, if the job has roles. -1: it cannot be read. */
int member_replicas_welcomed(struct member *m, json_object *msg);
/* None is left, and none comes. */
void member_replicas_end(struct member *m);

/* join.c: the member's leader, and the leader that follows when it is lost. */
void member_join_begin(struct member *m);
int member_join(struct member *m, struct error *err);
/* Where leaders are, as somebody else has known: for the agent of an extension the leader that has
 * asked for it, for an agent that is started in place of a killed one the killed one. NULL: nobody
 * has. */
const struct leader_places *member_join_places(const struct member_options *options);
/* Join the leader that was known, or the leader that has followed. */
void member_join_seek(struct member *m, const struct leader_places *places);
void member_join_welcomed(struct member *m, json_object *msg);
void member_join_successors(struct member *m, json_object *msg);
/* The agent that was asked does not lead. */
void member_join_redirect(struct member *m, json_object *msg);
bool member_seeks(const struct member *m);
void member_join_end(struct member *m);
void member_join_free(struct member *m);

/* member_pmix.c: the node's PMIx server between workers and leader */
void member_pmix_begin(struct member *m);
/* Does a message of the leader that starts workers have to wait until they can have PMIx? Then that
 * message and all later ones are handled again when PMIx is ready. */
bool member_pmix_waits(struct member *m, const char *type, json_object *msg);
/* Additions to the environment of each worker of that attempt: NULL-terminated arrays in a
 * NULL-terminated array, NULL: none. Free with member_pmix_free. */
char ***member_pmix_environment(struct member *m, int attempt);
void member_pmix_free(char ***added);
void member_pmix_gone(struct member *m, int attempt); /* its workers */
/* Tell the workers that have asked for events that they have that many seconds to save, because of
 * a change of that kind. */
void member_pmix_alert(struct member *m, const char *kind, const char *reason, double seconds);
/* The leader is lost: forget the workers that were to be started. */
void member_pmix_forget(struct member *m);
void member_pmix_end(struct member *m);

/* flush_snapshot.c: a snapshot that the next world may start from. */
/* True: a flush has begun, and member_send_drained() tells the leader when it has ended. False:
 * there is nothing to flush. */
bool flush_snapshot(struct member *m, int started);

/* member_reclaim.c: the node is about to be taken away, or had better be replaced */
void member_reclaim_begin(struct member *m);
/* Tell the leader now, if it has not been told. */
void member_reclaim_welcomed(struct member *m);
void member_reclaim_end(struct member *m);

/* job_control.c: signals from processes to other processes of their world. */
/* A question of this node's PMIx server, which is answered. */
void member_job_control(struct member *m, int attempt, json_object *msg);
/* Handle a message about job control. False: it is another message. */
bool member_job_control_relay(struct member *m, const char *type, json_object *msg);
/* No process waits for answers of that attempt any more; negative: of any attempt. */
void member_job_control_gone(struct member *m, int attempt);

/* group.c */
/* Start the workers of node `index` of world, with a closed gate if gated. world is taken over.
 * NULL with the reason in err. */
struct group *group_start(struct member *m, struct world *world, int index, int attempt, bool gated,
                          struct error *err);
/* The group's world begins. If first, rank 0 is on this node and is let through its gate at once.
 * The leader is told when rank 0 listens, or when it does not listen soon after its gate. A rank
 * that comes before rank 0 listens would wait for a second: PyTorch's store sleeps that long after
 * a refused connection. */
void group_begin(struct group *group, bool first);
/* Let all other workers through their gates. */
void group_open(struct group *group);
/* Live mode: the world begins, and the workers, which wait at their gates, belong to it now. world
 * is taken over. */
void group_enter(struct group *group, struct world *world, int index, int attempt);
/* Live mode: the workers, which are held, go on in this world once they have reached the step that
 * they run to. world is taken over, except on failure. */
int group_move(struct group *group, struct world *world, int index, int attempt, struct error *err);
/* Kill the workers that still run, and free the group. NULL is accepted. */
void group_destroy(struct group *group);
/* Add to msg the progress that workers have reported since the last beat. */
void group_add_progress(struct group *group, json_object *msg);
/* What each worker itself has needed for its steps, if they report that. */
void group_add_own_times(struct group *group, json_object *msg);
/* Write text as if a worker had written it. False: nobody reads now. */
bool group_log(struct group *group, int rank, int fd, const char *text, size_t len);
/* Kill the workers that still run; member_drained follows. */
void group_kill(struct group *group);
/* Would another group of the same kind fit beside this one? If not, text says why. */
bool group_fits_twice(const struct group *group, char *text, size_t size);
/* What all workers of this node have in common. The strings stay as long as the member. */
void group_describe(struct member *m, struct workers_options *options);

/* member_output.c: output of workers, to this process' own or to the leader */
/* Of the worker with that rank, or of the task of a replica whose stream has that number and that
 * name. */
void member_output(struct member *m, const char *name, int rank, int fd, const char *data,
                   size_t len);
/* There is no more of it. */
void member_output_ended(struct member *m, int rank);
void member_pause_output(struct member *m, bool pause);
/* The leader has written that many bytes of the output sent to it. */
void member_output_written(struct member *m, size_t bytes);

#endif
