/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the simulator share (README.md). Times are microseconds of the virtual clock.
 *
 * Memory of processes that are killed is not freed: histories run in child processes that end
 * soon. */
#ifndef ELASTIC_TESTS_SIM_H
#define ELASTIC_TESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "agent/options.h"
#include "agent/supervise.h"
#include "lib/conf.h"
#include "lib/policy.h"
#include "tests/sim/clock.h"

struct agent_handover;
struct host;
struct job;
struct link;
struct link_server;
struct meeting;
struct node;
struct agent;
struct training;
struct workers;

#define MUST(x) ((x) ? (void)0 : sim_bug(__FILE__, __LINE__, #x))

/* ---- trace.c: what happened ------------------------------------------------------------------ */

extern bool trace_on;
#define trace(...) (trace_on ? trace_line(__VA_ARGS__) : (void)0)
void trace_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An invariant does not hold. The first one of a history stands. */
void violation(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *violation_text(void); /* "": none */
void trace_begin(void);

/* ---- network.c: connections between processes ------------------------------------------------ */

struct network_options {
    uint64_t delay_least, delay_most; /* of a message */
    uint32_t slow_percent;            /* of messages that take up to slow_most */
    uint64_t slow_most;
};

void network_begin(const struct network_options *options);
bool network_reaches(const struct node *from, const struct node *to);
/* Nodes that cannot be reached any more can be, or the other way round. */
void network_changed(void);
/* The process has ended: its side of each connection is closed. With its node: nobody is told. */
void network_host_gone(struct host *host, bool with_node);
/* Has a server or an open connection of that process not been closed? */
bool network_busy(const struct host *host);
/* Called for each message, before it is on its way. */
extern void (*network_watch)(const struct host *from, const struct host *to, const char *type,
                             json_object *msg);
/* Bytes that the process has sent, counted if network_count is set. */
extern bool network_count;
uint64_t network_bytes(const struct host *host);
/* A user asks whoever leads, with selastic. Takes msg. */
void network_ask(struct host *leader, json_object *msg);

/* ---- host.c: nodes and the agents on them ---------------------------------------------------- */

enum host_state { HOST_RUNNING, HOST_STOPPED, HOST_ENDED };

struct node {
    char name[16];
    int number;
    bool up, frozen;      /* frozen: all processes on it are stopped */
    int island;           /* nodes of different ones do not reach each other */
    bool drained, down;   /* in Slurm: by the admin, because it does not answer */
    bool asleep;          /* powered down by Slurm */
    int pool;             /* of the setup; -1: none */
    uint64_t up_at;       /* it powers up until then; NEVER: it does not come */
    uint64_t since;       /* idle, or asleep, since then */
    struct job *job;      /* whose it is in Slurm */
    uint64_t taken_until; /* by a rigid job; 0: not */
    uint64_t taken_at;    /* the cloud takes it then; 0: it has not said when */
    bool noticed;         /* it is about to */
    int drag;             /* its workers need so many percent of the time for a step; 0: 100 */
    bool squatted;        /* another user listens on the next MASTER_PORT */
    struct host *hosts;   /* that run there, or have */
    struct workers *sets; /* of workers */
    struct link_server *servers;
};

struct host {
    uv_loop_t loop; /* its identity for libuv's fakes; never run */
    int number;
    struct node *node;
    struct host *next_on_node, *next;
    struct job *job;
    uint32_t restarts, restarts_of_base;
    int nodeid;
    bool base;
    enum host_state state;
    bool done; /* nothing of it is to follow */
    uint64_t done_at;
    int code;
    int waiting; /* events in its name */
    struct event **missed;
    int missed_count;
    struct agent *agent;
    struct agent_options *agent_options;
    struct leader_places leaders;           /* of an extension */
    struct agent_handover *handover;        /* kept by the process that watches it; NULL: none */
    const struct reclaim_handlers *reclaim; /* NULL: it does not ask */
    void *reclaim_arg;
    struct link *links;
    int term; /* that it leads; -1: it has not led */
    bool reclaim_asked;
    void *queue;  /* Slurm calls that wait */
    bool asking;  /* one of them is under way */
    bool failing; /* … and Slurm does not answer it */
    uint64_t bytes;
};

void host_begin(int nodes);
int node_count(void);
struct node *node_at(int number);
struct node *node_named(const char *name);
struct host *host_start(struct node *node, struct job *job, int nodeid,
                        struct agent_handover *handover);
void host_signal(struct host *host); /* SIGTERM */
void host_notice(struct host *host); /* DRAIN_NOTICES_SIGNAL */
void host_kill(struct host *host);   /* SIGKILL: a base's agent is started again */
void host_stop(struct host *host);
void host_continue(struct host *host);
void host_end(struct host *host, bool with_node); /* for good */
struct host *host_list(void);
bool host_alive(const struct host *host);
const char *host_name(const struct host *host);
void node_crash(struct node *node);
void node_return(struct node *node);
void node_freeze(struct node *node, bool frozen);
void node_cut(struct node *node, int island);
/* left: seconds until the cloud takes the node; 0: it names no moment, and does not take it. */
void node_reclaim(struct node *node, int left);
/* Its cloud advises to replace it. */
void node_advise(struct node *node);
/* Nobody will say so. */
void node_mute(struct node *node);

/* ---- kernel.c: files, logs, terms ------------------------------------------------------------ */

void kernel_begin(bool files_everywhere);
/* Called for each line of history.jsonl. */
extern void (*kernel_history)(struct job *job, const char *line);
/* Called for each line of a log; NULL: nobody reads it. */
extern void (*kernel_said)(const char *line);

/* ---- slurm.c: jobs --------------------------------------------------------------------------- */

enum slurm_state { SLURM_PENDING, SLURM_RUNNING, SLURM_ENDING, SLURM_ENDED };

struct job {
    uint32_t id, restarts;
    bool base;
    struct job *of;       /* whose extension it is; NULL: a base */
    uint32_t of_restarts; /* … in which incarnation */
    struct training *training;
    struct job *next;
    enum slurm_state state;
    const char *state_name;
    int wanted;   /* nodes */
    int priority; /* extensions of jobs with less are preempted for it */
    struct node **nodes;
    bool *over;     /* srun does not wait for this node's task (any more) */
    uint64_t rival; /* a rigid job has its nodes for so long when it has been preempted */
    int count;
    char *excluded, *comment, *leader, *partition;
    uint64_t limit, least_limit; /* … that is accepted; 0: none */
    uint64_t submitted, begins, started, preempted, ends, killed_at, ended_at;
    bool booting;    /* its nodes power up */
    bool srun;       /* lives */
    bool requeues;   /* when its tasks have ended */
    const char *why; /* it is ENDING */
    bool put_back;   /* ENDING, and goes back into the queue: it could not be launched */
    int code;
    struct agent_handover *handovers;
    uint64_t leave_due; /* what has been asked back is to be free */
    bool excused;       /* … or not: something else has happened to it */
};

/* What an extension may be slow at. */
enum slurm_slow {
    SLOW_NOTHING,
    SLOW_PROLOG,  /* its batch script has not started */
    SLOW_SRUN,    /* … has not asked for its step */
    SLOW_AGENT,   /* the step exists, and its agent cannot hear signals yet */
    SLOW_NETWORK, /* its agent runs, and nobody answers it */
};

#define SLURM_RESUME_TIMEOUT 300 /* seconds for a node to power up */

struct slurm_options {
    int grace;      /* seconds */
    int down_after; /* seconds until a node without slurmd is down */
    bool submit_fails;
    enum slurm_slow slow;
    uint64_t slow_time;
    uint64_t boot_time; /* of the nodes of each extension; 0: they are up */
    int asleep;         /* the last nodes, so many, are powered down */
    int placed;         /* select/elastic_cons_tres keeps extensions off them */
};

void slurm_begin(const struct slurm_options *options);
/* On nodes from the first one on; first_node < 0: where Slurm can start it. */
struct job *slurm_base(struct training *training, int nodes, int first_node);
struct job *slurm_jobs(void);
struct job *slurm_job(uint32_t id);
/* What is asked of sbatch. The strings are taken over; exclude may be NULL. */
struct slurm_request {
    struct job *base;
    int nodes;
    char *partition, *exclude, *leader, *comment;
    uint64_t begins, limit;
};
struct job *slurm_submit(const struct slurm_request *request);
void slurm_preempt(struct job *job, uint64_t for_how_long);
void slurm_cancel(struct job *job);
void slurm_requeue(struct job *job);
void slurm_limit(struct job *job, uint64_t limit);            /* its new time limit */
int slurm_booting(const struct training *training, int pool); /* nodes that power up for it */
/* A rigid job has all idle nodes from then on, for so long. */
void slurm_reserve(uint64_t from, uint64_t time);
void slurm_forget(struct job *job); /* slurmctld has no record of it any more */
void slurm_complete(struct job *job, int code);
int slurm_idle(const char *partition); /* nodes */
int slurm_woken(void);                 /* nodes that extensions have powered up, ever */
bool slurm_saves_power(const char *partition);
bool slurm_places(void);
void slurm_down(bool down);
bool slurm_answers(const struct node *from);
void slurm_host_ended(struct host *host);
void slurm_node_changed(struct node *node);
void slurm_told(struct job *job, const char *nodes); /* elastic-node-fail */
/* How often processes have asked slurmctld since; only for whole lists. */
int slurm_questions(uint64_t since, bool lists);
void slurm_answer_changed(void); /* calls that wait may go on */
void slurm_try_soon(void);       /* to start jobs that are pending */
extern bool slurm_refuses;       /* sbatch */
extern bool slurm_breaks;        /* extensions fail as they start */
extern bool slurm_loses;         /* … their nodes do not answer, and Slurm does not know it yet */

/* ---- cloud.c: pools with nodes of their own -------------------------------------------------- */

#define CLOUD_SUSPEND 60 /* seconds until idle nodes are powered down */
#define CLOUD_MAX     4

/* A pool of the site, and what its cloud is like now. */
struct setup_pool {
    char name[32], keys[256]; /* of elastic.conf, as lines */
    int nodes;
    uint64_t boot;              /* its nodes are powered down, and power up in that time; 0: no */
    int asleep;                 /* the last nodes, so many, are powered down */
    int capacity;               /* nodes that the cloud has at once; -1: any */
    bool fails_fast;            /* … and others fail at once, not after ResumeTimeout */
    char refusal[96], held[48]; /* what sbatch says; why its jobs wait. "": they do not */
    double price;               /* in the site's file; < 0: it has no line there */
    double billing;             /* by Slurm, of a node; < 0: no weights */
};

struct setup;
void cloud_begin(const struct setup *setup);
int cloud_pools(void);
/* A line about a pool, before the start (pools: of the setup) or after it (NULL). */
bool cloud_do(struct setup_pool *pools, int count, char **words);
/* The text of elastic.conf. */
char *cloud_conf(const struct setup *setup);
const char *cloud_prices(void);
bool cloud_serves(const struct node *node, const char *partition);
/* NULL: it takes and starts jobs. */
const char *cloud_refusal(const char *partition);
const char *cloud_held(const char *partition);
bool cloud_is_fallback(const char *partition);
/* May an extension join a job at MAX, since nodes of that other partition go then? */
bool cloud_replaces(const char *partition, const char *other);
bool cloud_saves_power(const char *partition);
bool cloud_boots(const char *partition);
double cloud_billing(const char *partition);
void cloud_power_up(struct node *node);
/* How long after its start a job ends whose nodes do not come. */
uint64_t cloud_gives_up(const struct job *job);
void cloud_failed(struct node *node); /* it has not come up */
void cloud_freed(struct node *node, struct training *training);
void cloud_taken(struct node *node);
/* Accounts for a second. */
void cloud_account(void);

/* ---- training.c: what the workers do together ------------------------------------------------ */

/* One elastic job: what it trains, how far it is, and what is expected of it. */
struct training {
    enum worker_mode mode;
    bool live, aware, gate;
    bool works;    /* it reports its work, and a step takes less time on more nodes */
    int64_t total; /* steps */
    uint64_t step; /* time of one */
    uint64_t exec, load, init, save, leave;
    int every; /* steps between checkpoints; 0: none but on notice */
    int slots;
    bool early_start;
    const struct policy *policy;

    struct job *base;
    struct meeting *meetings;
    char *world_file;   /* generation.json */
    char *ledger;       /* pools.json */
    int64_t checkpoint; /* newest: so many steps are in it */
    int64_t committed;  /* most steps that have been made */
    int64_t repeated;
    int started;          /* sets of workers */
    int newest;           /* generation that has begun, of this incarnation */
    uint64_t newest_at;   /* … then */
    struct node **places; /* of the newest world, in rank order; NULL: none has begun */
    int placed;           /* so many */
    int64_t made;         /* steps in it */
    int size;             /* nodes of it */
    int least;            /* … of the smallest since it was asked for */
    double cost;          /* of its extensions, in pools */
    double told;          /* … as its leader has written down last */
    char worlds[256];     /* nodes of each, as 2,4,3 */
    uint64_t progress;    /* when the last was made that was new */
    uint64_t longest_save_until;
    int faults; /* that have happened to workers or nodes */

    bool hung;     /* a worker hangs, or has: until that is noticed nobody leaves its world */
    bool may_fail; /* the job cannot always end well */
    bool may_wait;
    uint64_t patience; /* in which something has to go on */
    struct {
        const struct host *leader; /* that acted last */
        int term;
        int run_to_generation;
        int64_t run_to;
    } acts;
};

#define TRAININGS_MAX 2

extern struct training trainings[TRAININGS_MAX];
extern int training_count;
struct training *training_add(const struct training *settings);
void training_begin_incarnation(struct training *training);
/* The state of nodes, connections or workers has changed. */
void training_changed(void);
/* That node's workers arrive in a world, to meet the others. */
struct meeting *meeting_arrive(struct workers *set, int generation, int attempt, int index,
                               int nodes);
void meeting_leave(struct meeting *meeting, struct workers *set);
void meeting_begun_step(struct meeting *meeting);

/* ---- workers.c: the model of agent/workers --------------------------------------------------- */

enum set_state {
    SET_STARTING,
    SET_AT_GATE,
    SET_MEETING, /* waits for the others of its world */
    SET_STEPPING,
    SET_BOUNDARY, /* held there */
    SET_TORN,     /* out of its world, waits for the next */
    SET_LEAVING,
    SET_ENDED,
};

struct worker {
    bool ended, told, frozen;
    int code, signal, stop_signal;
    uint64_t frozen_since;
};

struct workers {
    struct host *host;
    struct training *training;
    struct workers *next_on_node;
    const struct workers_handlers *handlers;
    void *arg;
    struct worker *list;
    int count, left;
    enum set_state state;
    struct meeting *meeting;
    int generation, attempt, index, nodes, first_rank;
    char kind[16];
    int64_t word;   /* boundaries passed in this world */
    int64_t run_to; /* -1: not said */
    int64_t have;   /* steps in its state; -1: none */
    bool gated, open, ready, parked, begun, stepping, begun_said, stepping_said, dropped;
    bool held, torn, asks, through, stuck, live;
    bool last; /* its next boundary is the one at which it says that it is through */
    bool moving, dismissed, save;
    struct {
        int generation, attempt, index, nodes, first_rank;
        char kind[16];
    } goes_to;
    struct event *due, *kill;
    uint64_t exec_at, entered;
    uint32_t slowest;
    uint64_t step_began;
    uint64_t own, own_steps; /* of this world: what it itself has needed, and for how many steps */
    int own_generation;
};

void workers_boundary(struct workers *set);           /* a step is complete */
void workers_meet(struct workers *set, int64_t base); /* all are there: the first step begins */
int node_drag(const struct node *node);               /* percent */
bool workers_runs(const struct workers *set);         /* could it take part in a collective now? */
void workers_peer_lost(struct workers *set);          /* an exchange fails */
void workers_host_gone(struct host *host);            /* its agent has ended */
void workers_fail_one(struct workers *set, int code, int signal);
void workers_kill_all(struct workers *set);
/* Between the files of the workers: have run(set) called then, and nothing else that was due. */
void set_later(struct workers *set, uint64_t delay, void (*run)(void *arg));
void set_enter(struct workers *set, enum set_state state);
bool set_heard(const struct workers *set);
void set_leave(struct workers *set, bool save); /* its world in order */
void set_leave_now(void *arg);
void set_end_all(struct workers *set, int code, int signal);
/* Faults. */
void workers_crash(struct workers *set, int signal, int code);
void workers_freeze(struct workers *set);
void workers_hang(struct workers *set);
struct workers *workers_on(struct node *node); /* those that train there; NULL */

/* ---- invariants.c ---------------------------------------------------------------------------- */

void invariants_message(const struct host *from, const struct host *to, const char *type,
                        json_object *msg);
void invariants_entered(struct workers *set);
void invariants_started(struct workers *set);
/* A world is about to begin with these workers, by their places. */
void invariants_units(struct training *training, struct workers **members, int nodes);
void invariants_formed(struct training *training, int generation, const char *kind, int nodes,
                       int64_t base, int64_t best);
/* restarts: of the incarnation whose world it is. */
void invariants_committed(struct training *training, uint32_t restarts, int generation,
                          int64_t step);
void invariants_asked_back(struct job *job);
void invariants_job_starts(const struct job *job); /* its nodes are as before */
void invariants_cost(struct training *training);   /* is written down */
void invariants_node_free(struct job *job);
void invariants_look(void); /* every second */
void invariants_end(void);  /* all bases have ended, and the time to clean up is over */

/* ---- faults.c: what can happen --------------------------------------------------------------- */

/* What is on this node may fail from now on. */
void fault_hurt(struct node *node);
/* One line of a scenario or a history that does something. False with the reason in text: it
 * cannot be understood. */
bool fault_do(const char *line, char *text, size_t size);
/* Whom a role ("leader", "base", "extension", "any") means now. NULL: the word is none; "":
 * there is nobody. */
const char *fault_target(const char *word);
/* Whom a line is about that begins with "second": the second job. The word is skipped. */
struct training *fault_subject(const char **line);
struct job *fault_job(
    const char *word); /* "first", "last" (extension), "job" (its base), a number */

/* ---- scenario.c, history.c ------------------------------------------------------------------- */

/* Run the scenario in that file. Returns 0 if it holds. */
int scenario_run(const char *path, uint64_t seed, char *why, size_t size);
/* Run a random history. Seeds from there on are those of pairs of faults within one change: so
 * many there are. */
#define PAIRS_FROM (UINT64_C(1) << 40)
#define POOLS_FROM (UINT64_C(1) << 41) /* … with pools */
#define UNITS_FROM (UINT64_C(1) << 42) /* … with units of several nodes */
int history_run(uint64_t seed, char *why, size_t size);

/* What many agents cost: prints one row. */
int scale_run(int agents);

/* One elastic job of the cluster. */
struct setup_job {
    int base, slots;
    char sizes[64], mode[16];
    char options[16][64]; /* of the policy, name=value */
    int option_count, priority;
    uint64_t submitted; /* 0: it has its nodes from the beginning */
    uint64_t limit;     /* of time; 0: none */
    struct training training;
};

struct setup {
    int nodes; /* but for those of pools */
    struct setup_pool pools[CLOUD_MAX];
    int pool_count;
    char site[256]; /* keys of elastic.conf, as lines */
    struct setup_job jobs[TRAININGS_MAX];
    int job_count;
    int heartbeat, newcomer_timeout, max_pending, drain_look;
    int notices;   /* slurmctld has job_submit/elastic … */
    int admission; /* … which holds MAX */
    bool files_everywhere;
    struct network_options network;
    struct slurm_options slurm;
};

void setup_defaults(struct setup *setup);
/* Make the cluster and start the base jobs. */
void setup_start(const struct setup *setup, uint64_t seed);
/* Until the bases have ended and been cleaned up, or something does not hold, or it takes too
 * long. */
void setup_finish(uint64_t limit);
extern const struct conf *setup_conf;
extern const struct setup *setup_now;

#endif
