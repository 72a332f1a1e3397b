/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job file as struct roles (roles.h): maps, roles, and all together. */
#include "lib/roles_private.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/policy.h"
#include "lib/s3_place.h"
#include "lib/s3_policy.h"
#include "lib/text.h"

#define MODELS_EVERY 10.0 /* as the table has it */

/* ---- a role ---------------------------------------------------------------------------------- */

/* base: the struct that has the keys' fields. */
static int read_map(const struct roles_reader *reader, const struct roles_part *part,
                    enum roles_place place, void *base)
{
    json_object_object_foreach (part->value, name, value) {
        struct roles_part member = {value, part, name};
        const struct role_key *key = roles_find_key(place, name);

        if (key == NULL)
            return roles_unknown_key(reader, &member, place, NULL);
        if (role_value_set(reader, &member, key, base) < 0)
            return -1;
    }
    return 0;
}

static int read_inner(const struct roles_reader *reader, const struct roles_part *part,
                      enum roles_place place, struct role *role)
{
    static const char *const should[] = {
        [ROLES_PLACE_READY] = "a map such as {http: /healthz, within: 60s}, or told",
        [ROLES_PLACE_DRAIN] = "a map such as {signal: TERM, within: 30s}",
        [ROLES_PLACE_RESTART] = "a map such as {max: 10/3600, backoff: 1s..60s}",
        [ROLES_PLACE_UPDATE] = "a map such as {max-surge: 50%, max-unavailable: 50%}",
        [ROLES_PLACE_SCALE] = "a map such as {max: 4, sessions: 8}",
    };

    if (place == ROLES_PLACE_READY && json_object_is_type(part->value, json_type_string) &&
        strcmp(json_object_get_string(part->value), "told") == 0) {
        role->ready.how = ROLE_PROBE_TOLD;
        return 0;
    }
    if (roles_check_map(reader, part, should[place]) < 0 || read_map(reader, part, place, role) < 0)
        return -1;
    if (place == ROLES_PLACE_READY && role->ready.how == ROLE_PROBE_NONE)
        return roles_fail(reader, part,
                          "nothing says how it is known; write one of http, tcp, file, exec and "
                          "told");
    return 0;
}

static int read_key(const struct roles_reader *reader, const struct roles_part *part,
                    const struct role_key *key, struct role *role)
{
    char **names;

    switch (key->kind) {
    case ROLES_KIND_READY:
        return read_inner(reader, part, ROLES_PLACE_READY, role);
    case ROLES_KIND_DRAIN:
        return read_inner(reader, part, ROLES_PLACE_DRAIN, role);
    case ROLES_KIND_RESTART:
        return read_inner(reader, part, ROLES_PLACE_RESTART, role);
    case ROLES_KIND_UPDATE:
        return read_inner(reader, part, ROLES_PLACE_UPDATE, role);
    case ROLES_KIND_SCALE:
        return read_inner(reader, part, ROLES_PLACE_SCALE, role);
    case ROLES_KIND_ROLE_NAMES:
        /* Which roles these are is not yet known. */
        names = role_value_names(reader, part);
        strings_free(names);
        return names != NULL ? 0 : -1;
    default:
        return role_value_set(reader, part, key, role);
    }
}

static bool of_role(enum roles_place place)
{
    return place != ROLES_PLACE_JOB && place != ROLES_PLACE_MODELS && place != ROLES_PLACE_FIT &&
           place != ROLES_PLACE_WITHIN;
}

/* The values of keys that say nothing. Of a template the role's kind is not known. */
static int set_builtins(const struct roles_reader *reader, const struct roles_part *part,
                        struct role *role)
{
    role->gang.tasks = 1;
    for (const struct role_key *key = role_keys; key->name != NULL; key++) {
        bool world = role->kind == ROLE_WORLD;
        const char *text = world && key->builtin_world != NULL ? key->builtin_world : key->builtin;
        struct roles_part builtin = {NULL, part, key->name};
        int rc;

        if (!of_role(key->place) || text == NULL || key->kind == ROLES_KIND_WORD ||
            (key->only_world && !world))
            continue;
        builtin.value = json_object_new_string(text);
        rc = builtin.value != NULL ? role_value_set(reader, &builtin, key, role) : -1;
        json_object_put(builtin.value);
        if (rc < 0)
            return roles_no_memory(reader, part);
    }
    return 0;
}

/* The kind is read first: the other keys depend on it. */
static int read_kind(const struct roles_reader *reader, const struct roles_part *part,
                     struct role *role)
{
    struct roles_part kind = roles_member(part, "kind");

    if (!json_object_object_get_ex(part->value, "kind", NULL))
        return 0;
    return role_value_set(reader, &kind, roles_find_key(ROLES_PLACE_ROLE, "kind"), role);
}

static int other_kind(const struct roles_reader *reader, const struct roles_part *part,
                      const struct role_key *key, const struct role *role)
{
    if (key->only_router)
        return roles_fail(reader, part,
                          "only a role of kind router has it; write kind: router, or leave it out");
    if (role->kind == ROLE_ROUTER)
        return roles_fail(reader, part, "a role of kind router does not have it; leave it out");
    if (strcmp(key->name, "replicas") == 0)
        return roles_fail(reader, part,
                          "a role of kind world has nodes instead; write nodes: N "
                          "or MIN:MAX");
    if (role->kind != ROLE_REPLICAS && !key->only_world && !key->only_shards)
        return roles_fail(reader, part, "a role of kind %s does not have it; leave it out",
                          role->kind == ROLE_WORLD ? "world" : "shards");
    if (key->only_shards)
        return roles_fail(reader, part,
                          "only a role of kind shards has it; write kind: shards, or leave it out");
    return roles_fail(reader, part,
                      "only a role of kind world has it; write kind: world, or "
                      "replicas");
}

/* partial: a template, in which nothing has to be, and which does not know the role's kind. */
static int read_role(const struct roles_reader *reader, const struct roles_part *part, bool partial,
                     struct role *role)
{
    if (roles_check_map(reader, part, "its keys, at least run") < 0 ||
        read_kind(reader, part, role) < 0 || set_builtins(reader, part, role) < 0)
        return -1;
    json_object_object_foreach (part->value, name, value) {
        struct roles_part member = {value, part, name};
        const struct role_key *key = roles_find_key(ROLES_PLACE_ROLE, name);

        if (key == NULL)
            return roles_unknown_key(reader, &member, ROLES_PLACE_ROLE, partial ? NULL : role);
        if (!partial && !roles_key_fits(key, role))
            return other_kind(reader, &member, key, role);
        if (read_key(reader, &member, key, role) < 0)
            return -1;
    }
    if (!partial && role->run == NULL && role->kind != ROLE_ROUTER)
        return roles_fail(reader, part,
                          "it has no run; write the program and its arguments, such "
                          "as run: [python3, train.py]");
    return 0;
}

static void clear_role(struct role *role)
{
    free(role->name);
    strings_free(role->run);
    strings_free(role->training);
    free(role->base);
    strings_free(role->pools);
    strings_free(role->ports);
    free(role->ready.what);
    strings_free(role->ready.run);
    free(role->ready.port);
    free(role->after);
    free(role->shards.of);
    free(role->router.by);
    free(role->router.tokens);
}

int roles_check_template(const json_object *tree, roles_where *where, void *arg, struct error *err)
{
    struct roles_reader reader = {where, arg, err};
    struct roles_part part = {(json_object *)(uintptr_t)tree, NULL, NULL};
    struct role role = {0};
    int rc;

    if (roles_check_map(&reader, &part, "the keys of a role") < 0)
        return -1;
    rc = read_role(&reader, &part, true, &role);
    clear_role(&role);
    return rc;
}

const char *roles_said_name(const struct role *role)
{
    return role->shards.of != NULL ? role->shards.of : role->name;
}

/* ---- all roles ------------------------------------------------------------------------------- */

/* The roles that this one comes after, whose names have been checked. */
static int read_after(const struct roles_reader *reader, const struct roles_part *part,
                      struct roles *roles, struct role *role)
{
    struct roles_part after = roles_member(part, "after");
    char **names;
    int rc = 0;

    if (after.value == NULL)
        return 0;
    names = role_value_names(reader, &after);
    if (names == NULL)
        return -1;
    role->after = calloc(strings_count(names), sizeof(*role->after));
    if (role->after == NULL)
        rc = roles_no_memory(reader, &after);
    for (size_t i = 0; rc == 0 && names[i] != NULL; i++) {
        int index = roles_find(roles, names[i]);
        char known[256] = "";

        role->after[role->after_count++] = index;
        if (index >= 0)
            continue;
        for (int k = 0; k < roles->count; k++) {
            const struct role *other = &roles->list[k];

            if (other->shards.number == 1 && strcmp(other->shards.of, names[i]) == 0)
                rc = roles_fail(reader, &after,
                                "none of the shards has to be there; leave '%s' out", names[i]);
            if (other->shards.number == 0)
                text_append(known, sizeof(known), "%s%s", known[0] != '\0' ? ", " : "",
                            other->name);
        }
        if (rc == 0)
            rc = roles_fail(reader, &after, "there is no role '%s'; roles: %s", names[i], known);
    }
    strings_free(names);
    return rc;
}

/* Programs of DI-engine have learners that are gangs of their aggregators, as many as these say. */
static int set_pairs(const struct roles_reader *reader, const struct roles_part *part,
                     struct roles *roles)
{
    int owner = roles_find(roles, "aggregator"), owned = roles_find(roles, "learner");
    struct role *aggregator = owner >= 0 ? &roles->list[owner] : NULL;
    struct roles_part map = roles_member(part, "aggregator"), replicas;
    int most;

    if (!roles->di_engine || owner < 0 || owned < 0 || aggregator->leads ||
        aggregator->kind == ROLE_WORLD || roles->list[owned].leads ||
        roles->list[owned].kind == ROLE_WORLD)
        return 0;
    most = roles->list[owned].max;
    replicas = roles_member(&map, "replicas");
    if (!(aggregator->min == 1 && aggregator->max == 1) &&
        !(aggregator->min == 0 && aggregator->max == most))
        return roles_fail(reader, &replicas,
                          "learners say how many aggregators there are; leave it out");
    aggregator->min = 0;
    aggregator->max = most;
    aggregator->asks = true;
    roles->pairs.any = true;
    roles->pairs.owner = owner;
    roles->pairs.owned = owned;
    return 0;
}

/* One more role of the list, number of its shard; 0: it has none. */
static int add_role(const struct roles_reader *reader, const struct roles_part *part,
                    struct roles *roles, int number)
{
    struct role *role = &roles->list[roles->count];

    if (roles->count == ROLES_MAX)
        return roles_fail(reader, part, "roles and shards are more than %d together", ROLES_MAX);
    roles->count++;
    if (number > 0 && asprintf(&role->name, "%s-%d", part->name, number) < 0)
        role->name = NULL;
    if (number == 0)
        role->name = strdup(part->name);
    return role->name != NULL ? read_role(reader, part, false, role)
                              : roles_no_memory(reader, part);
}

/* None of the replicas is guaranteed, and as many are there as the service asks for. */
static int set_shard(const struct roles_reader *reader, const struct roles_part *part,
                     struct role *role, int number)
{
    struct roles_part replicas = roles_member(part, "replicas");

    if (role->min != role->max && role->min != 0)
        return roles_fail(reader, &replicas,
                          "each shard has as many replicas, none of which is guaranteed; write N");
    role->min = 0;
    role->asks = true;
    role->shards.number = number;
    role->shards.of = strdup(part->name);
    return role->shards.of != NULL ? 0 : roles_no_memory(reader, part);
}

/* A role of the file; one of kind shards is many of the list. */
static int read_named(const struct roles_reader *reader, const struct roles_part *part,
                      struct roles *roles)
{
    int first = roles->count;
    struct role *role = &roles->list[first];

    if (add_role(reader, part, roles, 0) < 0)
        return -1;
    for (int number = 1; role->kind == ROLE_SHARDS && number <= role->shards.max; number++) {
        if (number > 1 && add_role(reader, part, roles, number) < 0)
            return -1;
        if (set_shard(reader, part, &roles->list[first + number - 1], number) < 0)
            return -1;
    }
    if (role->kind != ROLE_SHARDS)
        return 0;
    free(role->name);
    if (asprintf(&role->name, "%s-1", part->name) < 0)
        role->name = NULL;
    return role->name != NULL ? 0 : roles_no_memory(reader, part);
}

static int read_roles(const struct roles_reader *reader, const struct roles_part *part,
                      struct roles *roles)
{
    int count, i = 0;

    if (roles_check_map(reader, part, "NAME: and the keys of the role") < 0)
        return -1;
    count = json_object_object_length(part->value);
    if (count < 1 || count > ROLES_MAX)
        return roles_fail(reader, part, "%d roles; write 1 to %d", count, ROLES_MAX);
    roles->list = calloc(ROLES_MAX, sizeof(*roles->list));
    if (roles->list == NULL)
        return roles_no_memory(reader, part);
    json_object_object_foreach (part->value, name, value) {
        struct roles_part member = {value, part, name};

        if (!role_is_name(name))
            return roles_fail(reader, &member, "it is no name of a role; " ROLE_NAME_FORM);
        if (read_named(reader, &member, roles) < 0)
            return -1;
    }
    for (; i < roles->count; i++) {
        struct roles_part member = roles_member(part, roles_said_name(&roles->list[i]));

        if (read_after(reader, &member, roles, &roles->list[i]) < 0)
            return -1;
        if (roles->list[i].kind == ROLE_ROUTER &&
            roles_make_router(reader, &member, roles->service, &roles->list[i]) < 0)
            return -1;
    }
    return roles_check(reader, part, roles) == 0 ? set_pairs(reader, part, roles) : -1;
}

static int check_repository(const struct roles_reader *reader, const struct roles_part *part,
                            const struct roles *roles)
{
    struct roles_part repository = roles_member(part, "repository");
    struct roles_part copies = roles_member(part, "copies");
    struct s3_place place;
    struct error err;

    if (s3_place_is(roles->models.repository))
        return s3_place_parse(roles->models.repository, &place, &err) == 0
                   ? 0
                   : roles_fail(reader, &repository, "%s", err.text);
    if (roles->models.copies == NULL && roles->models.copies_max == 0)
        return 0;
    if (roles->models.copies == NULL)
        copies = roles_member(part, "copies-max");
    return roles_fail(reader, &copies,
                      "there are copies only of a repository s3://…; leave it out");
}

static int read_models(const struct roles_reader *reader, const struct roles_part *part,
                       struct roles *roles)
{
    roles->models.every = MODELS_EVERY;
    if (roles_check_map(reader, part, "a map such as {repository: ./models, every: 10s}") < 0 ||
        read_map(reader, part, ROLES_PLACE_MODELS, roles) < 0)
        return -1;
    if (roles->models.repository == NULL)
        return roles_fail(reader, part, "it has no repository; write repository: and a directory");
    return check_repository(reader, part, roles);
}

/* ---- a fit ----------------------------------------------------------------------------------- */

static int set_fit_builtins(const struct roles_reader *reader, const struct roles_part *part,
                            struct roles *roles)
{
    for (const struct role_key *key = role_keys; key->name != NULL; key++) {
        struct roles_part builtin = {NULL, part, key->name};
        int rc;

        if ((key->place != ROLES_PLACE_FIT && key->place != ROLES_PLACE_WITHIN) ||
            key->builtin == NULL)
            continue;
        builtin.value = json_object_new_string(key->builtin);
        rc = builtin.value != NULL ? role_value_set(reader, &builtin, key, roles) : -1;
        json_object_put(builtin.value);
        if (rc < 0)
            return roles_no_memory(reader, part);
    }
    return 0;
}

/* A program, a role, or a trainer. */
static int check_training(const struct roles_reader *reader, const struct roles_part *part,
                          const struct roles *roles)
{
    struct roles_part role = roles_member(part, "role"), call = roles_member(part, "call");

    if (roles->fit.run == NULL && roles->fit.role == NULL && roles->fit.trainer == NULL)
        return roles_fail(reader, part,
                          "it has no run; write the training and its arguments, such as run: "
                          "[python3, train.py], or role: NAME, or trainer: SERVICE@USER");
    if (roles->fit.run != NULL && roles->fit.role != NULL)
        return roles_fail(reader, &role, "the training is run already; write one of them");
    if (roles->fit.call != NULL && roles->fit.role == NULL)
        return roles_fail(reader, &call, "only a role is called; write role: NAME, too");
    json_object_object_foreach (part->value, name, value) {
        struct roles_part member = {value, part, name};

        if (roles->fit.role != NULL && roles_find_key(ROLES_PLACE_FIT, name)->only_run)
            return roles_fail(reader, &member,
                              strcmp(name, "allow") == 0
                                  ? "a role trains for its own service only; write run instead of "
                                    "role, or leave it out"
                                  : "it goes with run; the role says that, leave it out");
    }
    return 0;
}

static int read_fit(const struct roles_reader *reader, const struct roles_part *part,
                    struct roles *roles)
{
    struct s3_place where;
    struct error err;

    if (roles_check_map(reader, part, "a map such as {run: [python3, train.py], cpus: 4}") < 0 ||
        set_fit_builtins(reader, part, roles) < 0)
        return -1;
    json_object_object_foreach (part->value, name, value) {
        struct roles_part member = {value, part, name};
        const struct role_key *key = roles_find_key(ROLES_PLACE_FIT, name);
        int rc;

        if (key == NULL)
            return roles_unknown_key(reader, &member, ROLES_PLACE_FIT, NULL);
        if (key->kind == ROLES_KIND_WITHIN)
            rc = roles_check_map(reader, &member,
                                 "a map such as {start: 1h, fit: 12h, target: 1h}") < 0
                     ? -1
                     : read_map(reader, &member, ROLES_PLACE_WITHIN, roles);
        else
            rc = role_value_set(reader, &member, key, roles);
        if (rc < 0)
            return -1;
    }
    if (check_training(reader, part, roles) < 0)
        return -1;
    if (roles->fit.run == NULL && roles->fit.allow != NULL)
        return roles_fail(reader, part, "allow is for trainers; write run, too");
    if (roles->fit.states != NULL && s3_place_parse(roles->fit.states, &where, &err) != 0)
        return roles_fail(reader, part, "states: %s", err.text);
    if (roles->fit.grant != NULL && s3_grant_kind(roles->fit.grant) == S3_GRANT_NONE)
        return roles_fail(reader, part,
                          "grant: '%s' is no ARN of a role or a user, such as "
                          "arn:aws:iam::123456789012:role/fit",
                          error_value(roles->fit.grant).text);
    if (roles->fit.size.cpus == 0 && roles->fit.size.gpus == 0)
        return roles_fail(reader, part,
                          "a training without CPUs and GPUs has no place; write at least 1");
    return 0;
}

/* The role of the training as a job file would have it. NULL: out of memory. */
static json_object *fit_role(const struct roles *roles)
{
    static const char *const keys[] = {"cpus", "gpus", "memory", "pool"};
    json_object *map = json_object_new_object(), *run = json_object_new_array();

    json_object_array_add(run, json_object_new_string(ROLES_FIT_PROGRAM));
    json_object_array_add(run, json_object_new_string("train"));
    json_object_array_add(run, json_object_new_string(roles->service));
    json_object_object_add(map, "run", run);
    json_object_object_add(map, "replicas", json_object_new_string("0:1"));
    json_object_object_add(map, "grow", json_object_new_string("ask"));
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        json_object *value = role_value_json(roles_find_key(ROLES_PLACE_FIT, keys[i]), roles);

        if (value != NULL)
            json_object_object_add(map, keys[i], value);
    }
    return map;
}

/* Does the role say how many replicas an update takes at a time? */
static bool says_update(const struct roles_part *list, const struct role *role)
{
    struct roles_part own = roles_member(list, roles_said_name(role));
    struct roles_part update = roles_member(&own, "update");

    return json_object_object_get_ex(update.value, "max-surge", NULL) ||
           json_object_object_get_ex(update.value, "max-unavailable", NULL);
}

/* How the servers are replaced is their role's. Where another user trains, and the role does not
 * say it, a new one comes first, and then an old one goes. */
static void set_replacement(const struct roles_part *list, struct roles *roles)
{
    bool all = roles->fit.replace == ROLES_FIT_ALL;
    bool one = roles->fit.replace == ROLES_FIT_ROLLING && roles->fit.trainer != NULL;

    for (int i = 0; i < roles->count && (all || one); i++) {
        struct role *role = &roles->list[i];

        if (role->kind != ROLE_SHARDS || (one && says_update(list, role)))
            continue;
        role->shards.surge = (struct rollout_amount){.value = 1};
        role->shards.unavailable = all ? (struct rollout_amount){.value = 100, .percent = true}
                                       : (struct rollout_amount){.value = 0};
    }
}

/* part is the fit; the other roles have been read. */
static int add_fit(const struct roles_reader *reader, const struct roles_part *part,
                   struct roles *roles)
{
    struct roles_part role = {NULL, part->in, ROLES_FIT_ROLE};
    struct roles_part list = roles_member(part->in, "roles");
    int rc;

    if (roles->service == NULL)
        return roles_fail(reader, part, "only a service is trained; write service: NAME");
    if (roles->fit.role != NULL) {
        set_replacement(&list, roles);
        return roles_take_trainer(reader, part, roles);
    }
    if (roles_find(roles, ROLES_FIT_ROLE) >= 0)
        return roles_fail(reader, part,
                          "a role has the name " ROLES_FIT_ROLE ", too; give the role another one");
    set_replacement(&list, roles);
    if (roles->fit.run == NULL)
        return 0;
    role.value = fit_role(roles);
    rc = role.value != NULL ? add_role(reader, &role, roles, 0) : roles_no_memory(reader, part);
    json_object_put(role.value);
    if (rc < 0)
        return -1;
    roles->list[roles->count - 1].trains = true;
    return 0;
}

static int read_job(const struct roles_reader *reader, const struct roles_part *part,
                    struct roles *roles)
{
    struct roles_part fit = roles_member(part, "fit");
    struct roles_part list = roles_member(part, "roles");

    if (roles_check_map(reader, part, "KEY: VALUE, at least roles") < 0)
        return -1;
    json_object_object_foreach (part->value, name, value) {
        struct roles_part member = {value, part, name};
        const struct role_key *key = roles_find_key(ROLES_PLACE_JOB, name);

        if (key == NULL)
            return roles_unknown_key(reader, &member, ROLES_PLACE_JOB, NULL);
        if (key->kind == ROLES_KIND_MODELS) {
            if (read_models(reader, &member, roles) < 0)
                return -1;
        } else if (key->kind == ROLES_KIND_FIT) {
            if (read_fit(reader, &member, roles) < 0)
                return -1;
        } else if (key->kind != ROLES_KIND_ROLES &&
                   role_value_set(reader, &member, key, roles) < 0) {
            return -1;
        }
    }
    if (!json_object_object_get_ex(part->value, "roles", NULL))
        return roles_fail(reader, part,
                          "it has no roles; write roles: and below it NAME: with the "
                          "keys of each role");
    if (read_roles(reader, &list, roles) < 0)
        return -1;
    return roles_are_trained(roles) ? add_fit(reader, &fit, roles) : 0;
}

struct roles *roles_create(const json_object *tree, roles_where *where, void *arg,
                           struct error *err)
{
    struct roles_reader reader = {where, arg, err};
    struct roles_part part = {(json_object *)(uintptr_t)tree, NULL, NULL};
    struct roles *roles = calloc(1, sizeof(*roles));

    if (roles == NULL) {
        roles_no_memory(&reader, &part);
        return NULL;
    }
    if (read_job(&reader, &part, roles) == 0)
        return roles;
    roles_destroy(roles);
    return NULL;
}

void roles_destroy(struct roles *roles)
{
    if (roles == NULL)
        return;
    for (int i = 0; i < roles->count; i++)
        clear_role(&roles->list[i]);
    free(roles->list);
    free(roles->group);
    free(roles->shared);
    free(roles->service);
    free(roles->models.repository);
    free(roles->models.copies);
    strings_free(roles->fit.run);
    free(roles->fit.role);
    free(roles->fit.call);
    strings_free(roles->fit.stage);
    free(roles->fit.trainer);
    strings_free(roles->fit.allow);
    free(roles->fit.states);
    free(roles->fit.grant);
    strings_free(roles->fit.pools);
    free(roles);
}
