/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of lib/service share. */
#ifndef ELASTIC_SERVICE_PRIVATE_H
#define ELASTIC_SERVICE_PRIVATE_H

#include "lib/service.h"

#define SERVICE_FORMAT 1

/* A replica as it was at the last run. */
struct service_known {
    struct service_replica replica; /* address: own */
    bool served;                    /* it has been in the table with this start */
    unsigned drained;               /* bits of routers that have no requests for it */
    int64_t drains;                 /* the first table that says it drains; 0: none does */
    bool failed;                    /* … that start has, which has been counted */
    bool ended;                     /* … is to end, which has been said */
};

struct service_shard {
    int number;
    struct rollout rollout;
    struct shard_item *items; /* its list */
    int count;
    int64_t epoch;   /* … of that list */
    bool list_due;   /* list and version are to be said */
    int failures;    /* of new replicas, since one has got ready */
    double pause;    /* nothing is started before then */
    char waits[160]; /* for what */
    char why[320];   /* a replica could not load its models, the last time; "": all could */
    struct service_scale scale;
    int64_t sessions[SERVICE_ROUTERS_MAX]; /* of each router, as it has said */
    int ready, total;                      /* at the last run */
};

struct service_router {
    char name[SERVICE_ROUTER_NAME];
    int64_t epoch;
    double heard;
    json_object *asked; /* keys that somebody asks for there; NULL: it has not said so */
    bool asked_all;     /* … and perhaps others that have a route */
};

/* A model of the repository that cannot be used, and why. */
struct service_refusal {
    char *name, *why;
};

struct service {
    struct service_options options;
    char *name;
    char *file; /* the application of the job file */
    struct {
        char *from, *to; /* to: that users have applied, when the job file said from; NULL: none */
    } applied;
    struct shard_commands *brain;
    struct service_shard *shards; /* by number */
    int shard_count, shard_room;
    struct service_known *known; /* by id */
    int known_count, known_room;
    struct service_router routers[SERVICE_ROUTERS_MAX];
    int router_count;
    bool record_due;   /* the record is to be written in any case */
    json_object *keys; /* routes: number of the shard by key */
    int64_t epoch;     /* … of them */
    char *table;       /* as it was said last, without its revision */
    int64_t revision;
    struct service_refusal *refusals;
    int refusal_count;
    json_object *measured;  /* as servers have said: by name; null: the repository says it */
    json_object *withdrawn; /* models that users do not want served: key by name */
    int left_out;           /* models of the repository that are too many */
    int *ends; /* starts of replicas that the leader before has told to end, or was about to */
    int end_count;
    bool first; /* the next run is the first one */
    bool fresh; /* no model has come so far: the first ones do not wait for others */
    bool frozen;
    bool stops; /* the job ends */
    enum service_hold hold;
    bool told; /* a table has been said */
};

/* A run, with what it is about to do. */
struct service_turn {
    struct service *s;
    double now;
    const struct service_replica *list;
    int count;
    struct service_actions later; /* what comes after record, lists and table */
    bool record;                  /* it is to be written */
    bool again;
};

/* service.c */
struct service_shard *service_shard(const struct service *s, int number);
/* Also if it is there. NULL: out of memory. */
struct service_shard *service_shard_add(struct service *s, int number);
bool service_router_lives(const struct service *s, const struct service_router *router, double now);

/* service_program.c */
/* The job begins with the application of its file, or with that which was applied. record: of the
 * leader before; NULL: there was none. -1: out of memory. */
int service_begin_application(struct service *s, const char *file, json_object *record, double now);
/* Into the record. */
void service_add_applied(const struct service *s, json_object *record);
/* … and into what users see. */
void service_describe_program(const struct service *s, json_object *into);
/* It was started with another application than replicas of its shard are now. */
bool service_is_other(const struct service *s, const struct service_replica *replica);
/* So many replicas of the shard are ready, with all that the latest update has brought. */
int service_updated_count(const struct service *s, const struct service_shard *shard);

/* service_models.c */
void service_clear_refusals(struct service *s);

/* service_run.c: -1 or NULL: out of memory. */
struct service_action *service_act(struct service_actions *out, enum service_action_kind kind,
                                   int shard);
/* text is taken over, also if this fails. */
int service_act_text(struct service_actions *out, enum service_action_kind kind, int shard,
                     char *text);
int service_say(struct service_actions *out, int shard, const char *what);
void service_items_clear(struct shard_item *items, int count);

/* service_facts.c */
int service_note_replicas(struct service_turn *run);
/* The brain hears of replicas, routes, and who asks for what. */
void service_tell(struct service_turn *run);
/* The version that replicas are started with now. */
int64_t service_target(const struct rollout *rollout);

/* service_rollout.c: -1: out of memory. */
int service_set_replicas(const struct service_turn *run, struct service_shard *shard);
/* Replicas follow the requests. What an update has begun goes on with as many. */
int service_scale_shards(struct service_turn *run);
int service_size(struct service_turn *run, int number, int count);
/* All its replicas have that version. The shard may be gone then. */
int service_updated(struct service_turn *run, int number, int64_t version);
int service_roll_out(struct service_turn *run, int number);

/* service_json.c */
/* New texts; NULL: out of memory. */
char *service_record_text(const struct service *s, double now);
char *service_table_text(const struct service *s, int64_t revision);
int service_read(struct service *s, json_object *record, json_object *table, double now,
                 struct error *err);

#endif
