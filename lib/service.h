/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service with its models in shards: what its job has to do so that requests find their models.
 * Pure.
 *
 * It joins the brain (lib/shard_commands.h), a rolling update for each shard (lib/rollout.h), and
 * what routers say. The caller says which models and replicas there are. service_run() answers with
 * actions. They are to be carried out one after the other; not before the last one has been, is
 * service_run() called again. Who dies in between has a successor, which reads the latest record
 * and the latest table that were written, and comes to the same end (doc/internals/serve.md). */
#ifndef ELASTIC_SERVICE_H
#define ELASTIC_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/rollout.h"
#include "lib/service_scale.h"
#include "lib/shard_commands.h"

#define SERVICE_ROUTERS_MAX 16
#define SERVICE_ROUTER_NAME 64
/* A router that has not been heard for so long is not waited for. */
#define SERVICE_ROUTER_SILENT 60.0
/* During an update a replica that has failed is started anew after a pause: from … to. */
#define SERVICE_PAUSE_FIRST 1.0
#define SERVICE_PAUSE_MOST  60.0

struct service_options {
    struct shard_commands_options brain;
    struct service_scale_options scale; /* replicas of each shard: so many at least */
    bool in_place; /* they load and unload models as they are told, and say so: `load` */
    struct rollout_amount surge, unavailable;
    bool one_first; /* an update has one new replica get ready, before others end */
    int fail_fast;
    uint32_t job;            /* that runs it */
    const char *name;        /* of the service */
    const char *application; /* what a replica is started with, as a text: as the job file says */
};

struct service;

/* record and table as written by the leader before, NULL: there was none. NULL with err. */
struct service *service_create(const struct service_options *options, json_object *record,
                               json_object *table, double now, struct error *err);
void service_destroy(struct service *s); /* accepts NULL */

/* ---- facts ----------------------------------------------------------------------------------- */

/* A model of the repository. */
struct service_model {
    const char *name, *version, *key; /* key NULL: its name */
    int64_t given, files;             /* as struct shard_model_spec */
    const char *why;                  /* it cannot be used now, and stays as it is; NULL: it can */
};

/* These models there are, and no others. Of more than SHARD_COMMANDS_MODELS_MAX those that there
 * were stay, and those that come last are left out. -1: out of memory. */
int service_models(struct service *s, const struct service_model *list, int count, double now);

/* A server says how much its models take: {"A": {"version": "1", "bytes": 5}}. The largest that any
 * server has said of a version counts. What the repository says (given) comes before it. */
void service_measured(struct service *s, json_object *sizes, double now);

/* How many of them have been left out. */
int service_left_out(const struct service *s);
/* The model of that name, or if name is NULL, of that key: also one that has been withdrawn. Its
 * name, as long as nothing changes; NULL with err: there is none. */
const char *service_model(const struct service *s, const char *name, const char *key,
                          struct error *err);
/* It is not served any more, whatever the repository has. -1: out of memory. */
int service_withdraw(struct service *s, const char *model, double now);
/* The shard is to have these models, NULL after the last, and no others: those that are in another
 * one move there, those that are there and not named are withdrawn. *changes: so many do.
 * -1 with err: not all of that can be, and nothing has changed. */
int service_place(struct service *s, int shard, char *const *names, double now, int *changes,
                  struct error *err);
/* … or is again, once the repository has been looked at. */
void service_serve(struct service *s, const char *model);

/* Which versions replicas may have, are to have, or may go back to: lines MODEL/VERSION. A new
 * string; NULL: out of memory. */
char *service_used(const struct service *s);
/* Replicas are started with that application from now on, and those that run are replaced as an
 * update does it. That holds in later jobs of the service, too, as long as their job file says what
 * that of this one says, or this. The same once more is tried again where it has failed. -1: out of
 * memory. */
int service_apply(struct service *s, const char *application, double now);
/* For what users ask: shard_commands_flush(), shard_commands_repack(). */
struct shard_commands *service_brain(struct service *s);

/* A router says that it has the routes of this epoch, and that no request that came by an older one
 * is on its way. It has no more requests for these replicas, of which the table of that revision
 * says that they drain; -1: it does not say which table it has. epoch 0: it has just come; -1: the
 * table of another job holds. False: there are too many routers. */
bool service_routed(struct service *s, const char *router, int64_t epoch, int64_t revision,
                    json_object *drained, double now);

/* … and how many requests each shard has there: {"shard_1": 3}. For a router that is known. */
void service_sessions(struct service *s, const char *router, json_object *sessions);

/* … and which keys somebody asks for there: names. `all`: there are more than it says. */
void service_asked(struct service *s, const char *router, json_object *keys, bool all);

enum service_replica_state {
    SERVICE_WAITS,  /* it has no room so far, or is to be started again */
    SERVICE_STARTS, /* it has been started, or is about to be */
    SERVICE_READY,
    SERVICE_LEAVES, /* it is to end */
};

struct service_replica {
    int shard, id;
    int start; /* number of its latest start; 0: none */
    enum service_replica_state state;
    int64_t version;     /* whose list it has: that of its start, or a later one; 0: none */
    int64_t program;     /* that it was started with, as of SERVICE_LIST */
    int64_t tried;       /* in place: a version that it could not come to … */
    int failures;        /* … so often since its start */
    const char *why;     /* … the last time */
    bool failed;         /* its latest start has, by its own fault … */
    bool spent;          /* … and nothing starts it again */
    const char *address; /* where its requests go, once it is ready */
    int port;
};

/* ---- what is to be done ---------------------------------------------------------------------- */

enum service_action_kind {
    SERVICE_RECORD, /* text is to be written, before all that follows */
    SERVICE_LIST,   /* shard: from now on replicas are started with this list (items) as that
                       version, and with that application (text), whose number is `program`. Those
                       that run read the list, too */
    SERVICE_DROP,   /* shard: it has gone, with its list */
    SERVICE_TABLE,  /* text is to be written, and then told to routers */
    SERVICE_SIZE,   /* shard: there should be count replicas */
    SERVICE_END,    /* shard, id: this replica should go, and the shard be smaller by it */
    SERVICE_SAY,    /* text, for the log */
};

struct service_action {
    enum service_action_kind kind;
    int shard, id, count;
    int64_t version, epoch, program;
    struct shard_item *items; /* count of them */
    char *text;
};

struct service_actions {
    struct service_action *list;
    int count, room;
};

void service_actions_clear(struct service_actions *actions);

/* The replicas are these, by id. -1: out of memory. *again: something has happened that it has to
 * be called for again as soon as the actions have been carried out. */
int service_run(struct service *s, double now, const struct service_replica *list, int count,
                struct service_actions *out, bool *again);
/* When it is to be called even if nothing happens; 0: never. */
double service_deadline(const struct service *s, double now);

/* The job ends. From now on service_run() says no more than which of its replicas are there: by
 * SERVICE_TABLE. Nobody would do what else it might say. */
void service_stop(struct service *s);

/* ---- handover (lib/service_handover.h) ------------------------------------------------------- */

/* Of the old job. Frozen, service_run() says no more than which of its replicas are there: by
 * SERVICE_TABLE, which is not to be written. */
void service_freeze(struct service *s, bool frozen);
/* Frozen: no router that lives has requests for its replicas. */
bool service_is_left(const struct service *s, double now);

/* Of the new job, which has no replicas so far: no SERVICE_TABLE comes until they are ready. */
enum service_hold {
    SERVICE_HOLD_NONE,   /* it comes at once */
    SERVICE_HOLD_ENOUGH, /* … when each shard with routes has one that is ready, and none starts */
    SERVICE_HOLD_WHOLE,  /* … when all replicas of these shards are ready */
};

/* Once the table has come, this has no effect. */
void service_hold(struct service *s, enum service_hold hold);
bool service_holds(const struct service *s);

/* ---- what others read ------------------------------------------------------------------------ */

/* May a replica that leaves be ended, for no router sends requests there any more? */
bool service_is_drained(const struct service *s, int id, int start, double now);
/* Is there a router, as far as is known? */
bool service_has_router(const struct service *s, double now);
/* The table of routes, as it was last written: JSON, without job and term. */
int64_t service_revision(const struct service *s);
/* What this leader has been told, and has done: "operations", "lists", "updates", "disruptive",
 * "routes". A new object. */
json_object *service_counts(const struct service *s);
/* Of the shards that have models: how many have the application that there should be, and in how
 * many it did not get ready. */
struct service_program {
    int shards, have, failed;
};

struct service_program service_program(const struct service *s);
/* What `selastic shard` shows: "counts", "models", "shards", "refused", "routers". */
void service_describe(const struct service *s, double now, json_object *into);

struct service_name {
    char text[48];
};

/* "shard_1.0": no two starts of replicas have the same. */
struct service_name service_replica_name(int shard, int start);

#endif
