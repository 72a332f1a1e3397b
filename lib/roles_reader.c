/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of keys of a job file (role_keys.h), and what is said where one is wrong
 * (roles_private.h). */
#include "lib/roles_private.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "lib/policy.h"
#include "lib/sizes.h"
#include "lib/text.h"

#define ROLE_KEY(where, ...) {.place = (where), __VA_ARGS__},
#define FIELD(type, field)   .offset = offsetof(type, field)

const struct role_key role_keys[] = {
#include "lib/role_keys.h"
    {0}};

/* What messages call the map that keys are in. */
static const char *const places[] = {
    [ROLES_PLACE_JOB] = "the job",     [ROLES_PLACE_ROLE] = "a role",
    [ROLES_PLACE_READY] = "ready",     [ROLES_PLACE_DRAIN] = "drain",
    [ROLES_PLACE_RESTART] = "restart", [ROLES_PLACE_UPDATE] = "update",
    [ROLES_PLACE_SCALE] = "scale",     [ROLES_PLACE_MODELS] = "models",
    [ROLES_PLACE_FIT] = "fit",         [ROLES_PLACE_WITHIN] = "within",
};

/* ---- messages -------------------------------------------------------------------------------- */

static void append_path(const struct roles_part *part, char *buf, size_t size)
{
    if (part->in != NULL)
        append_path(part->in, buf, size);
    if (part->name != NULL)
        text_append(buf, size, "%s%s", buf[0] != '\0' ? "." : "", error_value(part->name).text);
}

int roles_fail(const struct roles_reader *reader, const struct roles_part *part, const char *fmt,
               ...)
{
    char text[640], path[256] = "";
    int line, column;
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    append_path(part, path, sizeof(path));
    error_set(reader->err, "%s%s%s", path, path[0] != '\0' ? ": " : "", text);
    for (; reader->where != NULL && part != NULL; part = part->in) {
        if (part->value == NULL || !reader->where(part->value, &line, &column, reader->arg))
            continue;
        if (reader->err != NULL)
            error_set(reader->err, "%d:%d: %s", line, column, reader->err->text);
        break;
    }
    return -1;
}

int roles_no_memory(const struct roles_reader *reader, const struct roles_part *part)
{
    return roles_fail(reader, part, "out of memory");
}

struct roles_part roles_member(const struct roles_part *map, const char *name)
{
    struct roles_part member = {NULL, map, name};

    json_object_object_get_ex(map->value, name, &member.value);
    return member;
}

/* ---- keys ------------------------------------------------------------------------------------ */

bool roles_key_is_for(const struct role_key *key, enum role_kind kind)
{
    if (kind == ROLE_WORLD)
        return key->world || key->only_world;
    if (kind == ROLE_ROUTER)
        return key->router || key->only_router;
    if (kind == ROLE_SHARDS)
        return !key->only_world && !key->only_router && !key->no_shards;
    return !key->only_world && !key->only_router && !key->only_shards;
}

bool roles_key_fits(const struct role_key *key, const struct role *role)
{
    return key->place != ROLES_PLACE_ROLE || role == NULL || roles_key_is_for(key, role->kind);
}

const struct role_key *roles_find_key(enum roles_place place, const char *name)
{
    for (const struct role_key *key = role_keys; key->name != NULL; key++) {
        if (key->place == place && strcmp(key->name, name) == 0)
            return key;
    }
    return NULL;
}

int roles_unknown_key(const struct roles_reader *reader, const struct roles_part *part,
                      enum roles_place place, const struct role *role)
{
    char nearest[128] = "", elsewhere[64] = "", all[384] = "";

    for (const struct role_key *key = role_keys; key->name != NULL; key++) {
        bool same = strcmp(key->name, part->name) == 0;

        if (key->place != place) {
            if (same)
                text_append(elsewhere, sizeof(elsewhere), "%s%s",
                            elsewhere[0] != '\0' ? " and " : "", places[key->place]);
            continue;
        }
        if (!roles_key_fits(key, role))
            continue;
        text_append(all, sizeof(all), "%s%s", all[0] != '\0' ? ", " : "", key->name);
        if (text_distance(key->name, part->name) <= (strlen(part->name) > 4 ? 2 : 1))
            text_append(nearest, sizeof(nearest), "%s'%s'", nearest[0] != '\0' ? " or " : "",
                        key->name);
    }
    if (nearest[0] != '\0')
        return roles_fail(reader, part, "there is no such key of %s; did you mean %s?",
                          places[place], nearest);
    if (elsewhere[0] != '\0')
        return roles_fail(reader, part, "it is a key of %s, not of %s; keys of %s: %s", elsewhere,
                          places[place], places[place], all);
    return roles_fail(reader, part, "there is no such key of %s; its keys: %s", places[place], all);
}

int roles_check_map(const struct roles_reader *reader, const struct roles_part *part,
                    const char *should)
{
    if (!json_object_is_type(part->value, json_type_object))
        return roles_fail(reader, part, "it is not a map; write %s", should);
    return 0;
}
