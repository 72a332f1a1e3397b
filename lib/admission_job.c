/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job is for admission, by its environment and its comment (admission.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/admission_private.h"
#include "lib/number.h"
#include "lib/roles.h"
#include "lib/text.h"

/* The value where entry is NAME=VALUE, else NULL. */
static const char *entry_value(const char *entry, const char *name)
{
    return assignment_value(strncmp(entry, "SPANK_", 6) == 0 ? entry + 6 : entry, name);
}

const char *admission_env_get(const struct admission_env *env, const char *name)
{
    for (size_t i = 0; i < env->count && i < ADMISSION_ENV_COUNT; i++) {
        const char *value = env->entries[i] ? entry_value(env->entries[i], name) : NULL;
        if (value)
            return value;
    }
    return NULL;
}

const char *admission_option_text(const struct admission_env *env, const char *option)
{
    char variable[128];

    return admission_env_get(env, policy_option_variable(option, variable, sizeof(variable)));
}

const char *admission_merged_text(const struct admission_env *env,
                                  const struct policy_option *option)
{
    return admission_env_get(env, option->environment);
}

/* The option first: where the client did not merge its policy, there is nothing else. */
const char *admission_sizes_text(const struct admission_env *env)
{
    const struct policy_option *sizes = policy_find("elastic");
    const char *text = admission_option_text(env, sizes->option);

    return text ? text : admission_merged_text(env, sizes);
}

int admission_check_env(const struct admission_env *env, struct error *err)
{
    size_t all = 0, longest = 0;

    if (env->count > ADMISSION_ENV_COUNT)
        return error_set(err, "%zu options of SPANK plugins; at most %zu are allowed", env->count,
                         ADMISSION_ENV_COUNT);
    for (size_t i = 0; i < env->count; i++) {
        size_t len = env->entries[i] != NULL ? strlen(env->entries[i]) + 1 : 0;

        all += len;
        longest = len > longest ? len : longest;
    }
    if (longest <= ADMISSION_ENV_ENTRY && all <= ADMISSION_ENV_ALL)
        return 0;
    return error_set(err,
                     "the options of SPANK plugins have %zu bytes in all and %zu in one; no prolog "
                     "could run with more than %zu and %zu",
                     all, longest, ADMISSION_ENV_ALL, ADMISSION_ENV_ENTRY);
}

enum admission_role admission_role(const struct admission_env *env)
{
    if (admission_option_text(env, ADMISSION_OPTION_EXTEND))
        return ADMISSION_EXTENSION;
    return admission_sizes_text(env) || admission_has_roles(env) ? ADMISSION_BASE : ADMISSION_RIGID;
}

bool admission_has_roles(const struct admission_env *env)
{
    return admission_option_text(env, ADMISSION_OPTION_ROLES) ||
           admission_env_get(env, ROLES_VARIABLE) || admission_env_get(env, ROLES_NODES_VARIABLE);
}

int admission_max(const struct admission_env *env, int *max, struct error *err)
{
    const char *text = admission_env_get(env, ROLES_NODES_VARIABLE);
    struct sizes sizes = {0};

    if (!admission_has_roles(env)) {
        if (admission_sizes(env, &sizes, err) < 0)
            return -1;
        *max = sizes.max;
        return 0;
    }
    if (text && number_parse(text, strlen(text), 0, SIZES_NODES_MAX, max) == 0)
        return 0;
    return error_set(err,
                     "%s is '%s'; spank_elastic.so writes a whole number from 0 to %d, max-nodes "
                     "of the job file",
                     ROLES_NODES_VARIABLE, error_value(text ? text : "").text, SIZES_NODES_MAX);
}

uint32_t admission_base_of(const struct admission_env *env)
{
    const char *text = admission_option_text(env, ADMISSION_OPTION_EXTEND);
    int id;

    if (!text || number_parse(text, strlen(text), 1, INT32_MAX, &id) < 0)
        return 0;
    return (uint32_t)id;
}

const char *admission_pool_of(const struct admission_env *env)
{
    return admission_option_text(env, policy_find("pool")->option);
}

int admission_sizes(const struct admission_env *env, struct sizes *sizes, struct error *err)
{
    struct policy policy;
    const char *text = admission_sizes_text(env);
    int rc;

    if (!text)
        return error_set(err, "not an elastic job; submit it with --elastic=MIN:MAX");
    policy_init(&policy);
    rc = policy_set(&policy, "elastic", text, err);
    if (rc == 0)
        *sizes = policy.sizes;
    policy_clear(&policy);
    return rc;
}

bool admission_is_marked(const char *comment)
{
    return comment && strncmp(comment, ADMISSION_MARKER, strlen(ADMISSION_MARKER)) == 0;
}

uint32_t admission_marked_base(const char *comment)
{
    const char *id = admission_is_marked(comment) ? comment + strlen(ADMISSION_MARKER) : "";
    int number;

    if (number_parse(id, strcspn(id, "."), 1, INT32_MAX, &number) < 0)
        return 0;
    return (uint32_t)number;
}

char *admission_note(uint32_t base, uint32_t restarts, const char *pool, char *buf, size_t size)
{
    snprintf(buf, size, ADMISSION_MARKER "%" PRIu32 ".%" PRIu32 "%s%s", base, restarts,
             pool ? " " ADMISSION_POOL_WORD : "", pool ? pool : "");
    return buf;
}

enum admission_role admission_role_of_job(const struct admission_env *env, const char *comment)
{
    enum admission_role role = admission_role(env);

    return role == ADMISSION_RIGID && admission_is_marked(comment) ? ADMISSION_EXTENSION : role;
}

const char *admission_merged_into(const char *dependency, uint32_t *id)
{
    static const char word[] = "expand:";
    const char *found = dependency ? strcasestr(dependency, word) : NULL;

    if (!found)
        return NULL;
    found += strlen(word);
    *id = (uint32_t)strtoul(found, NULL, 10);
    return found;
}
