/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The brain of a service that has its models in shards: which commands bring what there is to what
 * there should be. Pure.
 *
 * There are three commands, each with a full list, and each may be carried out again:
 *
 *   set_models(shard, [models])   the shard's list of models. An unknown shard is made by that
 *   update_shard(shard)           a rolling update: all its replicas get that list, and the
 *                                 application as it is now. Without models the shard is deleted
 *   set_route(shard, [keys])      requests with these keys go to the shard, no others
 *
 * Users and the repository post operations. They are collected for a while, and then planned
 * together (lib/shard_plan.h). shard_commands_run() says what can be done by now. What has become
 * of it is posted as facts. Before commands are carried out, shard_commands_json() is to be written
 * to a file: who reads it goes on, and repeats those commands of which the end is not known.
 *
 * A key goes only to a shard of which a replica is ready, and of which all replicas that are ready
 * have its model. A model leaves its shard only when the router has confirmed that its key goes
 * elsewhere, or nowhere. doc/internals/serve.md says it in words. */
#ifndef ELASTIC_SHARD_COMMANDS_H
#define ELASTIC_SHARD_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"

#define SHARD_COMMANDS_MODELS_MAX 100000
#define SHARD_NAME_MAX            128
#define SHARD_KEY_MAX             256
/* On demand: a model that has been asked for in the last seconds makes no room for another. */
#define SHARD_COMMANDS_REST 10.0

struct shard_commands_options {
    int64_t capacity;     /* bytes that a shard has for models */
    int max_shards;       /* at most SHARD_PLAN_SHARDS_MAX */
    int64_t default_size; /* of a model of which nothing is known */
    double window;        /* seconds that an operation waits for others, at most */
    bool restarts;        /* another version needs an update: programs do not load it in place */
    double idle; /* a shard nobody has asked for so many seconds goes, and models are loaded when
                    somebody asks for them; 0: there are always all */
};

/* What the repository or a user says of a model. */
struct shard_model_spec {
    const char *name, *version;
    const char *key;      /* what its requests carry; NULL: its name. No two models have the same */
    int64_t given, files; /* bytes: as its manifest says; sum of its files. 0: not known */
};

enum shard_command_kind { SHARD_SET_MODELS, SHARD_UPDATE, SHARD_SET_ROUTE };

struct shard_item {
    char *name;    /* of the model; its key in SHARD_SET_ROUTE */
    char *version; /* NULL in SHARD_SET_ROUTE */
};

struct shard_command {
    enum shard_command_kind kind;
    int shard;
    /* Once it has been carried out, this is true. All SHARD_SET_ROUTE with the same epoch come one
     * after the other, and take effect together. That of SHARD_UPDATE is the version of replicas
     * that are started from now on (lib/rollout.h). */
    int64_t epoch;
    struct shard_item *items;
    int count;
};

struct shard_command_list {
    struct shard_command *list;
    int count, room;
};

void shard_command_list_clear(struct shard_command_list *list);
/* "set_models(shard_1, [model_A_v1])": a new string, NULL: out of memory. */
char *shard_command_text(const struct shard_command *command);

struct shard_commands;

/* NULL: out of memory. */
struct shard_commands *shard_commands_create(const struct shard_commands_options *options);
void shard_commands_destroy(struct shard_commands *s); /* accepts NULL */

/* ---- operations ------------------------------------------------------------------------------ */

/* There is this version of a model. The same once more tries it again, if it had failed. -1 with
 * err: it is refused, and nothing has changed. */
int shard_commands_put(struct shard_commands *s, const struct shard_model_spec *spec, double now,
                       struct error *err);
/* -1 with err: there is no such model. */
int shard_commands_remove(struct shard_commands *s, const char *name, double now,
                          struct error *err);
/* So many bytes that version takes. Of another version than there should be, or of a model that is
 * not there any more: without effect. */
void shard_commands_measured(struct shard_commands *s, const char *name, const char *version,
                             int64_t size, double now);
/* The application is another one: its image or its command line, as a text. The same once more is
 * tried again where it had failed. -1: out of memory. */
int shard_commands_application(struct shard_commands *s, const char *text, double now);
/* A leader begins, whose application is this: what has failed is not tried again. anew: in another
 * job than before, whose replicas all start: if it is another one, with it, so that no update is
 * needed for that. */
int shard_commands_begin(struct shard_commands *s, const char *text, bool anew, double now);
/* Operations do not wait any longer, neither for others nor for an update that goes on. What has
 * failed is tried again. */
void shard_commands_flush(struct shard_commands *s);
/* Somebody asks for the model with this key now: to be said before each run as long as it is so. */
void shard_commands_asked(struct shard_commands *s, const char *key);
/* … for all that are loaded. */
void shard_commands_asked_all(struct shard_commands *s);
/* Models may move so that fewer shards are needed. */
void shard_commands_repack(struct shard_commands *s);
/* The model moves to that shard, and its route follows. -1 with err: it cannot now, and nothing has
 * changed. */
int shard_commands_move(struct shard_commands *s, const char *name, int shard, struct error *err);
/* The same of several models, NULL after the last: those that are there stay. -1 with err: one of
 * them cannot, and nothing has changed. */
int shard_commands_move_all(struct shard_commands *s, char *const *names, int shard,
                            struct error *err);

/* ---- facts ----------------------------------------------------------------------------------- */

/* So many replicas of the shard are ready and get requests; the oldest has this version. To be said
 * before each run in which it is another than before. */
void shard_commands_ready(struct shard_commands *s, int shard, int ready, int64_t oldest);
/* All replicas of the shard have this version. Also if it had failed, and is back. -1: out of
 * memory. */
int shard_commands_updated(struct shard_commands *s, int shard, int64_t epoch, double now);
/* … do not get it, and go back to the one before: why. -1: out of memory. */
int shard_commands_failed(struct shard_commands *s, int shard, int64_t epoch, const char *why,
                          double now);
/* The router has these routes, and no request that came by an older one is on its way. */
void shard_commands_routed(struct shard_commands *s, int64_t epoch);

/* ---- what is to be done ---------------------------------------------------------------------- */

/* Appends the commands that can be carried out by now. They are to be carried out in this order;
 * nobody waits for one of them to end. A second call at the same time has none. -1: out of memory;
 * then it is to be destroyed, and made anew of the latest record. */
int shard_commands_run(struct shard_commands *s, double now, struct shard_command_list *out);
/* When it is to be called even if nothing happens; 0: never. */
double shard_commands_deadline(const struct shard_commands *s);

/* ---- what others read ------------------------------------------------------------------------ */

struct shard_model_view {
    const char *name, *key;
    const char *version; /* that there should be */
    const char *has;     /* that its shard has; NULL: none */
    int shard;           /* where it belongs; 0: nowhere */
    int routed;          /* where its requests go; 0: nowhere */
    int64_t size;
    const char *why; /* it is not as it should be; "": it is, or is about to be */
    bool removed;    /* somebody has said so, and it is not gone yet */
    bool asleep;     /* nobody has asked for it */
};

/* Since it was created, or read: its predecessors' are not counted. */
struct shard_commands_counts {
    int64_t operations, lists, updates, routes;
    int64_t disruptive; /* updates of a shard that had been updated before, and keeps models */
};

int shard_commands_count(const struct shard_commands *s);                         /* of models */
struct shard_model_view shard_commands_at(const struct shard_commands *s, int i); /* by name */
/* name NULL: there is no such model. */
struct shard_model_view shard_commands_named(const struct shard_commands *s, const char *name);
/* How many shards there are, also those that are about to go. */
int shard_commands_shards(const struct shard_commands *s);
/* How many bytes the models of the shard's list need. */
int64_t shard_commands_bytes(const struct shard_commands *s, int shard);
struct shard_commands_counts shard_commands_counts(const struct shard_commands *s);
struct shard_program {
    const char *application; /* with which replicas of the shard are started now; NULL: no shard */
    int64_t since;           /* the update that has brought it; 0: not known */
    bool reached;            /* it is the one that there should be, and no update goes on for it */
    bool failed;             /* the one that there should be did not get ready there */
};

struct shard_program shard_commands_program(const struct shard_commands *s, int shard);
/* That there should be. */
const char *shard_commands_wanted(const struct shard_commands *s);
/* Of keys and names: what they are made of. */
bool shard_name_ok(const char *name);
bool shard_key_ok(const char *key);

/* ---- the record ------------------------------------------------------------------------------ */

/* All that a successor needs: a new object. NULL: out of memory. */
json_object *shard_commands_json(const struct shard_commands *s);
/* NULL with err: it is none. */
struct shard_commands *shard_commands_read(const struct shard_commands_options *options,
                                           json_object *record, struct error *err);

#endif
