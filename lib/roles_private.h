/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What roles*.c and role_values*.c share, and the table of keys. */
#ifndef ELASTIC_ROLES_PRIVATE_H
#define ELASTIC_ROLES_PRIVATE_H

#include "lib/roles.h"

#define ROLES_WORDS_MAX 4

/* The map that a key may be in. */
enum roles_place {
    ROLES_PLACE_JOB,
    ROLES_PLACE_ROLE,
    ROLES_PLACE_READY,
    ROLES_PLACE_DRAIN,
    ROLES_PLACE_RESTART,
    ROLES_PLACE_UPDATE,
    ROLES_PLACE_SCALE,
    ROLES_PLACE_MODELS,
    ROLES_PLACE_FIT,
    ROLES_PLACE_WITHIN,
};

/* How a value is read, and the type of its field. */
enum roles_kind {
    ROLES_KIND_VERSION,    /* min..max, no field */
    ROLES_KIND_NUMBER,     /* int, min..max */
    ROLES_KIND_RANGE,      /* int and the int behind it: MIN:MAX or N */
    ROLES_KIND_MEMORY,     /* int64_t, MiB: a number with K, M, G or T */
    ROLES_KIND_TIME,       /* double, seconds: a number with ms, s, m, h or d */
    ROLES_KIND_YES_NO,     /* bool */
    ROLES_KIND_FLAG,       /* bool: is it the second one of words? */
    ROLES_KIND_WORD,       /* an enum: the index of one of words */
    ROLES_KIND_LABEL,      /* char *: letters, digits and _ - . + */
    ROLES_KIND_PATH,       /* char * */
    ROLES_KIND_ROUTE_BY,   /* char *: lib/route_by.h */
    ROLES_KIND_NAME,       /* char *: as of a role */
    ROLES_KIND_POOL,       /* char *: a pool's name */
    ROLES_KIND_COMMAND,    /* char **: a list of texts */
    ROLES_KIND_NAMES,      /* char **: different names, at most max */
    ROLES_KIND_POOLS,      /* char **: different names of pools */
    ROLES_KIND_SIGNAL,     /* int */
    ROLES_KIND_BUDGET,     /* int and the double behind it: N or N/SECONDS */
    ROLES_KIND_PAUSES,     /* double and the double behind it: FIRST..MOST or one time */
    ROLES_KIND_AMOUNT,     /* struct rollout_amount: N or N% */
    ROLES_KIND_SHARDS,     /* int: N or 1:N, at most max */
    ROLES_KIND_NOT_BUILT,  /* refused: help says what it will be */
    ROLES_KIND_PROBE,      /* of ready: the value is as the probe needs it */
    ROLES_KIND_ROLE_NAMES, /* names of roles: read when all roles are known */
    ROLES_KIND_TEMPLATE,   /* a name: roles_use_templates() has replaced it */
    ROLES_KIND_ROLES,      /* a map of roles */
    ROLES_KIND_READY,      /* a map of such keys */
    ROLES_KIND_DRAIN,
    ROLES_KIND_RESTART,
    ROLES_KIND_UPDATE,
    ROLES_KIND_SCALE,
    ROLES_KIND_MODELS,
    ROLES_KIND_FIT,
    ROLES_KIND_WITHIN,
};

/* A row of the table. */
struct role_key {
    enum roles_place place;
    const char *name;
    enum roles_kind kind;
    /* One or more sentences for documents. */
    const char *help;
    /* The value that holds without the key, as a user would write it; NULL: none. */
    const char *builtin;
    /* The same for a role of kind world, where it is another one. */
    const char *builtin_world;
    /* Of numbers and of how many there are; of times: milliseconds, without a most. */
    int min, max;
    const char *words[ROLES_WORDS_MAX];
    enum role_probe probe;
    /* The key must be there. */
    bool required;
    /* A role of kind world may have it, too. */
    bool world;
    /* No other role may have it. */
    bool only_world;
    /* The same of kind shards; and what such a role may not have. */
    bool only_shards, no_shards;
    /* A role of kind router may have it, too; no other role may have it. */
    bool router, only_router;
    /* Of fit: it goes with `run`, and not with `role`. */
    bool only_run;
    /* The field in struct roles or struct role. */
    size_t offset;
};

/* The last row has no name. */
extern const struct role_key role_keys[];

/* May a role of that kind have the key? */
bool roles_key_is_for(const struct role_key *key, enum role_kind kind);
/* The same of this role; NULL: of any. Keys of other maps are not asked for. */
bool roles_key_fits(const struct role_key *key, const struct role *role);

/* A part of the tree that is being read: where it is, in words and in the file. */
struct roles_part {
    json_object *value; /* NULL: it is not there, or null */
    const struct roles_part *in;
    const char *name; /* of the key or role */
};

struct roles_reader {
    roles_where *where;
    void *arg;
    struct error *err;
};

/* "12:5: roles.collector.cpus: " before the text. A part without a place has that of the part that
 * it is in. Always returns -1. */
int roles_fail(const struct roles_reader *reader, const struct roles_part *part, const char *fmt,
               ...) __attribute__((format(printf, 3, 4)));
int roles_no_memory(const struct roles_reader *reader, const struct roles_part *part);

/* The member of a map; its value is NULL where there is none. */
struct roles_part roles_member(const struct roles_part *map, const char *name);

/* The row of this key of such a map; NULL: there is none. */
const struct role_key *roles_find_key(enum roles_place place, const char *name);

/* "did you mean 'cpus'? Keys of a role: …", or where the key belongs. Always returns -1. */
int roles_unknown_key(const struct roles_reader *reader, const struct roles_part *part,
                      enum roles_place place, const struct role *role);

/* Is it a map? Else -1 with err, which has what should be there. */
int roles_check_map(const struct roles_reader *reader, const struct roles_part *part,
                    const char *should);

/* ---- lib/role_values.c ----------------------------------------------------------------------- */

/* Set the field of a key in base (struct roles or struct role). What was there is freed. Returns -1
 * with base unchanged. Not for kinds from ROLES_KIND_ROLE_NAMES on. */
int role_value_set(const struct roles_reader *reader, const struct roles_part *part,
                   const struct role_key *key, void *base);
/* The value as JSON that role_value_set() reads as the same (role_values_json.c). NULL: it has
 * none, or out of memory. */
json_object *role_value_json(const struct role_key *key, const void *base);

/* Names of roles, a list or one of them. The caller frees them with strings_free(). NULL: err. */
char **role_value_names(const struct roles_reader *reader, const struct roles_part *part);

/* The name of the role in the job file. */
const char *roles_said_name(const struct role *role);

/* ---- lib/roles_router.c ---------------------------------------------------------------------- */

/* What a router of this service is started with, and how it is asked. part is the role. */
int roles_make_router(const struct roles_reader *reader, const struct roles_part *part,
                      const char *service, struct role *role);

/* ---- lib/roles_fit.c ------------------------------------------------------------------------- */

/* The role that the fit names is the training. part is the fit; all roles have been read. */
int roles_take_trainer(const struct roles_reader *reader, const struct roles_part *part,
                       struct roles *roles);

/* ---- lib/roles_check.c ----------------------------------------------------------------------- */

/* What no key alone can tell: who leads, cycles, ports, placeholders. part is the map of roles. */
int roles_check(const struct roles_reader *reader, const struct roles_part *part,
                const struct roles *roles);

#endif
