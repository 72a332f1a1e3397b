/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic.conf says to the options of a job (conf.h). */
#include "lib/conf.h"

#include <string.h>

#include "lib/text.h"

int conf_check_policy(const struct conf *conf, const struct policy *policy, struct error *err)
{
    char text[256];

    if (conf->max_nodes > 0 && policy->sizes.max > conf->max_nodes) {
        sizes_format(&policy->sizes, text, sizeof(text));
        return error_set(
            err,
            "--elastic=%s: MAX %d is larger than the %d nodes that this site allows an elastic job "
            "(max_nodes in elastic.conf)",
            error_value(text).text, policy->sizes.max, conf->max_nodes);
    }
    if (conf->max_grace > 0 && policy->grace > conf->max_grace)
        return error_set(
            err,
            "--elastic-grace=%d: this site allows at most %d seconds (max_grace in elastic.conf)",
            policy->grace, conf->max_grace);
    for (int i = 0; i < policy->pool_count && conf->pool_count > 0; i++) {
        if (conf_pool(conf, policy->pools[i]) == NULL)
            return error_set(err, "--elastic-pool=%s: unknown pool; pools of this site: %s",
                             policy->pools[i], conf_pool_names(conf, text, sizeof(text)));
    }
    return 0;
}

/* ---- warnings -------------------------------------------------------------------------------- */

static void warn(struct error *warnings, const char *text)
{
    size_t size = sizeof(warnings->text);

    text_append(warnings->text, size, "%s%s", warnings->text[0] != '\0' ? "; " : "warning: ", text);
}

/* Has one of the pools that the job may ask this property? Where it names none, those of the site
 * count. */
static bool some_pool(const struct conf *conf, const struct policy *policy,
                      bool (*has)(const struct pool *))
{
    const struct policy *named = policy->pool_count > 0 ? policy : &conf->defaults;

    for (int i = 0; i < named->pool_count; i++) {
        const struct pool *pool = conf_pool(conf, named->pools[i]);

        if (pool != NULL && has(pool))
            return true;
    }
    return false;
}

static bool wakes(const struct pool *pool)
{
    return pool->wake;
}

static bool is_fallback(const struct pool *pool)
{
    return pool->fallback;
}

/* Is the name one of those with commas? */
static bool is_among(const char *name, const char *names)
{
    size_t len = strlen(name);

    for (const char *at = names; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == len && strncmp(at, name, len) == 0)
            return true;
    }
    return false;
}

/* A pool from which a job in these partitions, with these features, gets its nodes, and whose nodes
 * may be taken away. */
static const struct pool *reclaimed_pool(const struct conf *conf, const char *partitions,
                                         const char *features)
{
    for (int i = 0; i < conf->pool_count; i++) {
        const struct pool *pool = &conf->pools[i];

        if (pool->reclaim && is_among(pool->partition, partitions) &&
            (pool->constraint == NULL ||
             (features != NULL && strcmp(pool->constraint, features) == 0)))
            return pool;
    }
    return NULL;
}

void conf_warn_policy(const struct conf *conf, const struct policy *policy, const char *partitions,
                      const char *features, struct error *warnings)
{
    const struct pool *pool = partitions != NULL ? reclaimed_pool(conf, partitions, features)
                                                 : NULL;
    char text[256] = "";

    warnings->text[0] = '\0';
    if (policy->wake == POLICY_WAKE_YES && !some_pool(conf, policy, wakes))
        warn(warnings, "--elastic-wake=yes has no effect: no pool of the job has wake = yes");
    if ((policy->fallback == POLICY_FALLBACK_DEADLINE || policy->fallback >= 0) &&
        !some_pool(conf, policy, is_fallback))
        warn(warnings, "--elastic-fallback has no effect: no pool of the job has fallback = yes");
    if (pool != NULL) {
        text_append(text, sizeof(text),
                    "the nodes of the base job may be taken away, and the job ends or waits "
                    "with them: partition %s is that of pool %s; submit the base to another "
                    "partition",
                    error_value(pool->partition).text, pool->name);
        warn(warnings, text);
    }
}
