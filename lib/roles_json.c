/* SPDX-License-Identifier: GPL-2.0-or-later */
/* struct roles as JSON that roles_create() reads as the same (roles.h). */
#include "lib/roles_private.h"

/* Add a value, which is taken over also if this fails. Without one there is nothing to add. */
static int add(json_object *map, const char *name, json_object *value, bool needed)
{
    if (value == NULL)
        return needed ? -1 : 0;
    if (json_object_object_add(map, name, value) == 0)
        return 0;
    json_object_put(value);
    return -1;
}

static json_object *after_json(const struct roles *roles, const struct role *role)
{
    json_object *names = role->after_count > 0 ? json_object_new_array() : NULL;

    for (int i = 0; names != NULL && i < role->after_count; i++) {
        json_object *name = json_object_new_string(roles->list[role->after[i]].name);

        if (name == NULL || json_object_array_add(names, name) < 0) {
            json_object_put(name);
            json_object_put(names);
            return NULL;
        }
    }
    return names;
}

/* The map of ready, drain, restart, update or scale of a role; of models, fit and within: of the
 * job. */
static json_object *inner_json(const void *base, enum roles_place place)
{
    json_object *map = json_object_new_object();

    for (const struct role_key *key = role_keys; map != NULL && key->name != NULL; key++) {
        json_object *value;

        if (key->place != place ||
            (key->only_run && ((const struct roles *)base)->fit.role != NULL))
            continue;
        value = key->kind == ROLES_KIND_WITHIN ? inner_json(base, ROLES_PLACE_WITHIN)
                                               : role_value_json(key, base);
        if (add(map, key->name, value, false) == 0)
            continue;
        json_object_put(map);
        return NULL;
    }
    return map;
}

static json_object *role_json(const struct roles *roles, const struct role *role)
{
    json_object *map = json_object_new_object();

    for (const struct role_key *key = role_keys; map != NULL && key->name != NULL; key++) {
        int rc = 0;

        if (key->place != ROLES_PLACE_ROLE || !roles_key_is_for(key, role->kind))
            continue;
        if (key->kind == ROLES_KIND_READY && role->ready.how != ROLE_PROBE_NONE)
            rc = add(map, key->name, inner_json(role, ROLES_PLACE_READY), true);
        else if (key->kind == ROLES_KIND_DRAIN)
            rc = add(map, key->name, inner_json(role, ROLES_PLACE_DRAIN), true);
        else if (key->kind == ROLES_KIND_RESTART)
            rc = add(map, key->name, inner_json(role, ROLES_PLACE_RESTART), true);
        else if (key->kind == ROLES_KIND_UPDATE)
            rc = add(map, key->name, inner_json(role, ROLES_PLACE_UPDATE), true);
        else if (key->kind == ROLES_KIND_SCALE)
            rc = role->shards.sessions > 0 || role->shards.idle > 0
                     ? add(map, key->name, inner_json(role, ROLES_PLACE_SCALE), true)
                     : 0;
        else if (key->kind == ROLES_KIND_ROLE_NAMES)
            rc = add(map, key->name, after_json(roles, role), role->after_count > 0);
        else
            rc = add(map, key->name, role_value_json(key, role), key->builtin != NULL);
        if (rc < 0) {
            json_object_put(map);
            return NULL;
        }
    }
    return map;
}

/* The role of a fit that is a program: the job file does not have it. */
static bool is_made(const struct roles *roles, int index)
{
    return roles->list[index].trains && roles->fit.role == NULL;
}

static json_object *list_json(const struct roles *roles)
{
    json_object *map = json_object_new_object();

    for (int i = 0; map != NULL && i < roles->count; i++) {
        if (roles->list[i].shards.number > 1 || is_made(roles, i) ||
            add(map, roles_said_name(&roles->list[i]), role_json(roles, &roles->list[i]), true) ==
                0)
            continue;
        json_object_put(map);
        return NULL;
    }
    return map;
}

json_object *roles_json(const struct roles *roles)
{
    json_object *map = json_object_new_object();

    for (const struct role_key *key = role_keys; map != NULL && key->name != NULL; key++) {
        bool list = key->kind == ROLES_KIND_ROLES;
        json_object *value;

        if (key->place != ROLES_PLACE_JOB ||
            (key->kind == ROLES_KIND_MODELS && roles->models.repository == NULL) ||
            (key->kind == ROLES_KIND_FIT && !roles_are_trained(roles)))
            continue;
        value = list                             ? list_json(roles)
                : key->kind == ROLES_KIND_MODELS ? inner_json(roles, ROLES_PLACE_MODELS)
                : key->kind == ROLES_KIND_FIT    ? inner_json(roles, ROLES_PLACE_FIT)
                                                 : role_value_json(key, roles);
        if (add(map, key->name, value, list || key->builtin != NULL) == 0)
            continue;
        json_object_put(map);
        return NULL;
    }
    return map;
}
