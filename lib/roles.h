/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roles of an elastic job: what its job file says.
 *
 * A role is a program of the job with its size and its needs. A replica is a copy of it: a gang of
 * tasks that run all together. doc/user/roles.md has the keys; lib/role_keys.h is their table.
 *
 * Pure: the file has been read, and is a JSON tree. */
#ifndef ELASTIC_ROLES_H
#define ELASTIC_ROLES_H

#include <stdbool.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/rollout.h"
#include "lib/slots.h"

#define ROLES_MAX          100
#define ROLES_REPLICAS_MAX 10000            /* of a role */
#define ROLES_TASKS_MAX    1024             /* of a gang */
#define ROLES_PORTS_MAX    16               /* of a task */
#define ROLES_ROUTER       "elastic-router" /* the command of a router: the agent knows its path */
#define ROLES_SHARDS_MAX   64               /* roles that are made from one of kind shards */
#define ROLES_TEXT_MAX     65536            /* bytes of the text that travels with the job */

/* Variables in which a job's roles travel from sbatch to elasticrun: their text, and max_nodes. The
 * second one is short, for those who only have to know that the job has roles, or how large it may
 * be. */
#define ROLES_VARIABLE       "ELASTIC_ROLES"
#define ROLES_NODES_VARIABLE "ELASTIC_ROLES_NODES"

/* What happens to the other replicas when the leading role has ended. */
enum roles_clean {
    ROLES_CLEAN_RUNNING, /* they are drained */
    ROLES_CLEAN_NONE,    /* they run on until they end, or the job's time is over */
    ROLES_CLEAN_ALL,     /* they are drained, and the job's state directory is removed */
};

enum role_kind {
    ROLE_REPLICAS,
    ROLE_WORLD,  /* the training that --elastic alone would run */
    ROLE_ROUTER, /* one elastic-router: the address of the service, as long as the job is there */
    ROLE_SHARDS, /* replicas that serve the models of one shard (doc/internals/serve.md) */
};

/* How it is known that a task is ready. */
enum role_probe {
    ROLE_PROBE_NONE, /* it is, once its program has been executed */
    ROLE_PROBE_HTTP, /* GET path on a port of it is answered with 2xx */
    ROLE_PROBE_TCP,  /* its port can be connected to */
    ROLE_PROBE_FILE, /* the file exists, relative to the task's directory */
    ROLE_PROBE_EXEC, /* a command ends with 0 */
    ROLE_PROBE_TOLD, /* the task says so: slurm_elastic.roles.ready() */
};

/* Times are in seconds. Lists of texts end with NULL, and are NULL where nothing was said. */
struct role {
    char *name;
    enum role_kind kind;
    char **run;   /* the command; "{port}", "{port:NAME}", "{replica}", "{task}" are replaced */
    bool leads;   /* the job ends as it ends */
    int min, max; /* replicas; of a world: nodes */
    struct slots_gang gang; /* of a world: size is what a node of it takes; 0: all that is left */
    char *base;             /* pool for the guaranteed replicas; NULL: the base only */
    char **pools;           /* for the other replicas; NULL: the job's */
    char **ports;           /* names of ports of each task */
    bool api;               /* its nodes offer the HTTP interface */
    struct {
        enum role_probe how;
        char *what;    /* path of HTTP or FILE */
        char **run;    /* of EXEC */
        char *port;    /* of HTTP and TCP: a name of ports; NULL: the first one */
        double within; /* from its start, else it has failed */
        double every;
    } ready;
    struct {
        int signal;
        double within; /* then SIGKILL */
    } drain;
    struct {
        int max;                       /* starts after a failure, of all replicas together … */
        double window;                 /* … within so long; 0: in all */
        double first_pause, max_pause; /* pauses before a start after a failure */
    } restart;
    int *after; /* indices of roles that have to be ready before */
    int after_count;
    bool asks;   /* it grows beyond min only when somebody asks; else as nodes are idle */
    bool shield; /* Slurm's SIGTERM does not reach its tasks: libelastic-shield.so */
    /* The job's fit is this role: made of its `run`, or named by it. It is there only while a fit
     * trains. Its tasks run elastic-fit, which runs the training (lib/role_task.h). */
    bool trains;
    char **training; /* … of one that is named: the command that runs `run` as it; else NULL */
    /* Of kind shards: the job file has one role, and the list one for each shard that there may
     * be: "shard-1", "shard-2", … They have no replicas until the service wants some: then max. */
    struct {
        int number;       /* of its shard, from 1; of another kind: 0 */
        char *of;         /* name of the role in the job file */
        int max;          /* shards that there may be */
        int64_t capacity; /* MiB that each has for models */
        int load; /* how models get into the program: 0: it reads a file; else lib/model_load.h */
        struct rollout_amount surge, unavailable;
        int fail_fast;
        double window; /* seconds that an operation waits for others */
        /* Scale by use: at most so many replicas, of which each should have so many requests.
         * sessions 0: there are always `replicas`. Those that were not needed for calm seconds
         * go. */
        int most, sessions;
        double calm;
        double idle; /* a shard that nobody has asked for so many seconds goes; 0: none does */
    } shards;
    struct {
        int listen;   /* its port; 0: a free one */
        char *by;     /* where requests name their model (lib/route_by.h) */
        char *tokens; /* a file; "none": everybody may ask; NULL: that of the service */
    } router;         /* of kind router */
};

/* How replicas come to a new state that a fit has made. */
enum roles_fit_replace {
    ROLES_FIT_ROLLING, /* they are replaced as `update` of their role says */
    ROLES_FIT_ALL,     /* one with the new state first, then all others at once */
    ROLES_FIT_LOAD,    /* none is replaced: the program loads it */
};

/* The role that trains where the job file names none: it does not have it. */
#define ROLES_FIT_ROLE    "fit"
#define ROLES_FIT_PROGRAM "elastic-fit"

struct roles {
    enum roles_clean clean;
    char *group;    /* NULL: none */
    char *shared;   /* a directory; NULL: none */
    int max_nodes;  /* of the job; 0: as its roles say */
    bool di_engine; /* compat: names, environment and HTTP of DI-orchestrator v1alpha1 */
    char *service;  /* name of the service that the job runs; NULL: none */
    struct {
        char *repository;   /* a directory, or a place on S3; NULL: none */
        double every;       /* seconds between two looks at it */
        char *copies;       /* of what is on S3; NULL: in the directory of the service */
        int64_t copies_max; /* MiB; 0: as much as there is */
    } models;               /* of the service */
    double handover; /* seconds before the time limit that a successor is submitted; 0: none */
    struct {
        char **run;    /* the training; NULL: a role is it, or the service has none of its own */
        char *role;    /* the role that is the training; NULL: none is */
        char *call;    /* a path: this role is a server, which is asked there; NULL: it is not */
        char *trainer; /* "SERVICE@USER", which trains instead; NULL: none is named */
        char **stage;  /* gets the data before; NULL: nothing does */
        char **allow;  /* users, and "@GROUP", who may have models of theirs trained; NULL: none */
        char *states;  /* s3://BUCKET/PREFIX; NULL: in the repository alone */
        char *grant;   /* an ARN: how trainers of others get at S3; NULL: they do not */
        double grant_time; /* seconds that each of its credentials hold */
        struct {
            double start, fit, target; /* seconds */
        } within;
        int replace; /* enum roles_fit_replace */
        int keep;    /* complete states of a model; 0: all */
        struct slots_size size;
        char **pools;
    } fit; /* of the service */
    struct {
        bool any;         /* replicas of one role own gangs of another one: lib/reconcile_pair.c */
        int owner, owned; /* the roles: aggregator and learner */
    } pairs;
    struct role *list;
    int count;
};

/* Has the job file a fit: of its own, or by a trainer? */
bool roles_are_trained(const struct roles *roles);
/* The index of the role that trains; -1: there is none. */
int roles_trainer(const struct roles *roles);

/* Where in the file a part of the tree was: line and column, both from 1. False: not known. */
typedef bool roles_where(const json_object *part, int *line, int *column, void *arg);

/* What the tree says, with defaults for what it does not say. where may be NULL. NULL: it is wrong,
 * and err has one line with the position ("12:5: roles.collector.cpus: …") and the allowed
 * values. */
struct roles *roles_create(const json_object *tree, roles_where *where, void *arg,
                           struct error *err);
void roles_destroy(struct roles *roles); /* accepts NULL */

/* Is it a name of a role, a template or a service: [a-z][a-z0-9-]{0,30}? */
#define ROLE_NAME_MAX  31
#define ROLE_NAME_FORM "write 1 to 31 small letters, digits and '-', a letter first"
bool role_is_name(const char *text);

/* The index of the role of that name; -1: there is none. */
int roles_find(const struct roles *roles, const char *name);
/* The index of the role that leads; of a service, whose job ends when it is ended: of any one. */
int roles_leader(const struct roles *roles);
/* … of the world; -1: there is none. */
int roles_world(const struct roles *roles);
/* … of the first shard; -1: there is none. Those of the others follow somewhere behind it. */
int roles_shards(const struct roles *roles);
/* … of the role of kind router; -1: there is none. */
int roles_router(const struct roles *roles);
/* … of that shard; -1: there is none. */
int roles_shard(const struct roles *roles, int number);

/* The pools that a role names: that of `base` (0) and those of `pool`, one after the other, for i
 * from 0. NULL: there are no more. */
const char *role_pool(const struct role *role, int i);

/* What the placeholders of a command stand for. */
struct role_task {
    const char *replica; /* "collector-3" */
    int task;            /* from 0 */
    const int *ports;    /* as many as the role has */
    const char *models;  /* of a shard: the file with its models */
};

/* An argument of run, or of ready.run, with its placeholders replaced: a new text. NULL: out of
 * memory. */
char *role_argument(const struct role *role, const char *text, const struct role_task *task);

/* Can a replica ever be on nodes of that size, those of the pool, of which there are as many as it
 * takes? -1 with err: "collector needs 12 CPUs on a node, those of cpu-spot have 8". */
int role_check_node(const struct role *role, const struct slots_size *node, const char *pool,
                    struct error *err);

/* ---- templates of the site ------------------------------------------------------------------- */

/* The tree of the template of that name, which has been checked by roles_check_template(): a new
 * object. NULL with err: there is none. */
typedef json_object *roles_template(const char *name, void *arg, struct error *err);

/* Is there a template of that name? */
typedef bool roles_has_template(const char *name, void *arg);

/* What a template says: keys of a role. -1 with err as of roles_create(). */
int roles_check_template(const json_object *tree, roles_where *where, void *arg, struct error *err);

/* Give each role of the tree that names a template the keys that only the template has, and take
 * the name away. With compat: di-engine a job with learners gets a role "aggregator" of that
 * template, if it has none. -1 with err: the tree may have some of them. */
int roles_use_templates(json_object *tree, roles_where *where, void *arg, roles_template *load,
                        roles_has_template *has, void *load_arg, struct error *err);

/* The same as JSON with all values, which roles_create() reads as the same: a new object. It is
 * what travels with the job. NULL: out of memory. */
json_object *roles_json(const struct roles *roles);

#endif
