/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of keys of a job file, written as lib/role_values.c reads them (roles_private.h). */
#include "lib/roles_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/recovery.h"
#include "lib/role_time.h"
#include "lib/text.h"

static json_object *probe_json(const struct role_key *key, const struct role *role)
{
    if (role->ready.how != key->probe)
        return NULL;
    if (role->ready.what != NULL)
        return json_object_new_string(role->ready.what);
    if (role->ready.run != NULL)
        return json_from_strings(role->ready.run);
    return json_object_new_boolean(true);
}

static json_object *signal_json(int number)
{
    const char *name = sigabbrev_np(number);

    return name != NULL ? json_object_new_string(name) : json_object_new_int(number);
}

static json_object *range_json(const struct role *role)
{
    char text[32];

    snprintf(text, sizeof(text), "%d:%d", role->min, role->max);
    return json_object_new_string(text);
}

static json_object *time_json(double seconds)
{
    char text[32];

    return json_object_new_string(role_time_format(seconds, text, sizeof(text)));
}

static json_object *pauses_json(const struct role *role)
{
    char text[80] = "", part[32];

    text_append(text, sizeof(text), "%s..",
                role_time_format(role->restart.first_pause, part, sizeof(part)));
    text_append(text, sizeof(text), "%s",
                role_time_format(role->restart.max_pause, part, sizeof(part)));
    return json_object_new_string(text);
}

static json_object *budget_json(const struct role *role)
{
    struct budget budget = {role->restart.max, (int)role->restart.window};
    char text[32];

    return json_object_new_string(budget_format(&budget, text, sizeof(text)));
}

static json_object *amount_json(const struct rollout_amount *amount)
{
    char text[16];

    snprintf(text, sizeof(text), "%d%s", amount->value, amount->percent ? "%" : "");
    return json_object_new_string(text);
}

static json_object *memory_json(int64_t mebibytes)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRId64 "M", mebibytes);
    return json_object_new_string(text);
}

json_object *role_value_json(const struct role_key *key, const void *base)
{
    const void *field = (const char *)base + key->offset;

    switch (key->kind) {
    case ROLES_KIND_VERSION:
        return json_object_new_int(key->max);
    case ROLES_KIND_NUMBER:
        return json_object_new_int(*(const int *)field);
    case ROLES_KIND_RANGE:
        return range_json(base);
    case ROLES_KIND_MEMORY:
        return memory_json(*(const int64_t *)field);
    case ROLES_KIND_TIME:
        return time_json(*(const double *)field);
    case ROLES_KIND_YES_NO:
        return json_object_new_boolean(*(const bool *)field);
    case ROLES_KIND_FLAG:
        return json_object_new_string(key->words[*(const bool *)field ? 1 : 0]);
    case ROLES_KIND_WORD:
        return json_object_new_string(key->words[*(const int *)field]);
    case ROLES_KIND_LABEL:
    case ROLES_KIND_PATH:
    case ROLES_KIND_ROUTE_BY:
    case ROLES_KIND_NAME:
    case ROLES_KIND_POOL:
        return json_from_string(*(char *const *)field);
    case ROLES_KIND_COMMAND:
    case ROLES_KIND_NAMES:
    case ROLES_KIND_POOLS:
        return *(char **const *)field != NULL ? json_from_strings(*(char **const *)field) : NULL;
    case ROLES_KIND_SIGNAL:
        return signal_json(*(const int *)field);
    case ROLES_KIND_BUDGET:
        return budget_json(base);
    case ROLES_KIND_PAUSES:
        return pauses_json(base);
    case ROLES_KIND_AMOUNT:
        return amount_json(field);
    case ROLES_KIND_SHARDS:
        return json_object_new_int(*(const int *)field);
    case ROLES_KIND_PROBE:
        return probe_json(key, base);
    case ROLES_KIND_NOT_BUILT:
    case ROLES_KIND_TEMPLATE:
    case ROLES_KIND_ROLE_NAMES:
    case ROLES_KIND_ROLES:
    case ROLES_KIND_READY:
    case ROLES_KIND_DRAIN:
    case ROLES_KIND_RESTART:
    case ROLES_KIND_UPDATE:
    case ROLES_KIND_SCALE:
    case ROLES_KIND_MODELS:
    case ROLES_KIND_FIT:
    case ROLES_KIND_WITHIN:
        break;
    }
    return NULL;
}
