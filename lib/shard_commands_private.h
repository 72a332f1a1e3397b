/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of lib/shard_commands share. */
#ifndef ELASTIC_SHARD_COMMANDS_PRIVATE_H
#define ELASTIC_SHARD_COMMANDS_PRIVATE_H

#include "lib/shard_commands.h"
#include "lib/shard_plan.h"

#define SHARD_COMMANDS_FORMAT 1

/* Of a model that nobody wants any more the record stays until it is in no list. */
struct shard_model {
    char *name, *key;
    char *version; /* that there should be */
    int64_t size;  /* … and what it needs */
    bool removed;  /* somebody has said so */
    bool asleep;   /* it is not to be loaded: nobody asks for it */
    bool gone;     /* removed or asleep, and it is in no plan any more */
    bool failed;   /* that version did not get ready: only an operation tries it again */
    int home;      /* the shard where it belongs; 0: none */
    char *planned; /* the version that it should have there */
    int64_t planned_size;
    int routed;      /* the shard where its requests go; 0: none */
    bool used;       /* while what is used by nobody is looked for */
    bool asked;      /* somebody asks for it: a fact of this run … */
    double asked_at; /* … and the latest one; 0: not known */
    char why[240];
};

struct shard_entry {
    struct shard_model *model;
    char *version;
    int64_t size;
    int64_t since; /* replicas of this version and of later ones have the model */
};

struct shard_list {
    struct shard_entry *list; /* by name */
    int count, room;
};

struct shard {
    int number;
    struct shard_list now;  /* the latest set_models */
    struct shard_list good; /* that of the latest update that has ended well */
    int64_t epoch;          /* of the latest set_models; 0: there was none */
    int64_t update;         /* of the latest update_shard; 0: there was none */
    int64_t done;           /* … that has ended well */
    int64_t route_epoch;    /* of the latest set_route */
    char *application;      /* of the latest update_shard */
    char *good_application;
    char *bad_application; /* that did not get ready; NULL: none */
    int64_t program;       /* the update that has brought the application … */
    int64_t good_program;  /* … and the good one */
    bool back;             /* its replicas go back to the version before */
    bool insists;          /* its next update does not wait for the one that goes on */
    bool closed;           /* it is about to be deleted */
    bool repeat;           /* its list and its update are to be said (again) */
    bool repeat_route;
    /* Facts, which the successor hears anew. */
    int ready;
    int64_t oldest;
    /* While commands are looked for. */
    struct shard_model **want; /* by name; a part of shard_commands.buckets */
    int want_count;
    bool route_changes, gains;
};

struct shard_commands {
    struct shard_commands_options options;
    struct shard_model **models; /* by name */
    struct shard_model **keys;   /* the same by key */
    int count, room;
    struct shard **shards; /* by number */
    int shard_count, shard_room;
    char *application;
    int64_t epoch;  /* the latest */
    int64_t routed; /* that the router has confirmed */
    bool pending;   /* operations wait to be planned, since: */
    double since;
    bool at_once, repack;
    bool moved;     /* by hand: the next run says so, and plans nothing */
    double planned; /* when it was planned last */
    double wait;    /* a shard waits for others until then; 0: none does */
    int refused;    /* models for which there is no room */
    struct shard_model **buckets;
    struct shard_commands_counts counts;
};

/* shard_commands_parts.c */
struct shard_model *shard_model_named(const struct shard_commands *s, const char *name);
struct shard_model *shard_model_keyed(const struct shard_commands *s, const char *key);
struct shard_model *shard_model_add(struct shard_commands *s, const char *name, const char *key);
void shard_model_destroy(struct shard_model *model); /* accepts NULL */
struct shard *shard_numbered(const struct shard_commands *s, int number);
struct shard *shard_add(struct shard_commands *s, int number);
void shard_drop(struct shard_commands *s, int i);
struct shard_entry *shard_list_find(const struct shard_list *list, const struct shard_model *model);
/* At the end; the order is the caller's. */
int shard_list_add(struct shard_list *list, struct shard_model *model, const char *version,
                   int64_t size, int64_t since);
int shard_list_copy(struct shard_list *list, const struct shard_list *from);
void shard_list_clear(struct shard_list *list);
int64_t shard_list_size(const struct shard_list *list);
/* *text is another one: -1: out of memory. */
int shard_text_set(char **text, const char *value);

/* shard_commands.c */
/* Something waits to be planned. */
void shard_commands_wait(struct shard_commands *s, double now);
/* Forget models and shards that nothing refers to. */
void shard_commands_sweep(struct shard_commands *s, double now);

/* shard_commands_place.c */
int shard_commands_place(struct shard_commands *s, double now);

/* shard_commands_demand.c */
/* It is to be in no shard: it has been removed, or nobody asks for it. */
bool shard_model_is_off(const struct shard_model *model);
/* Who is asked for wakes; a shard that nobody asks for goes. To be followed by a plan. */
void shard_commands_wake(struct shard_commands *s, double now);
/* After a plan: models leave so that others have room. True: another plan is needed. -1: out of
 * memory. */
int shard_commands_make_room(struct shard_commands *s, double now);
/* When a shard will have been idle for long enough; 0: never. */
double shard_commands_idle_at(const struct shard_commands *s);

#endif
