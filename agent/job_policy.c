/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy of a job, from its command line, environment, file and elastic.conf (job_policy.h). */
#include "agent/job_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf_file.h"
#include "lib/roles.h"
#include "lib/roles_site.h"

/* The pools of a job, each once: those of its policy, and those that its roles name. */
struct pool_names {
    const char *list[POLICY_POOLS_MAX];
    int count;
};

/* A pool that a role names. invent: without elastic.conf its name is a partition's. */
static int use_pool(struct conf *conf, const struct role *role, const char *name, bool invent,
                    struct pool_names *names, struct error *err)
{
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return 0;
    if (names->count == POLICY_POOLS_MAX)
        return error_set(err, "role %s: pool %.64s: a job has at most %d pools", role->name, name,
                         POLICY_POOLS_MAX);
    names->list[names->count++] = name;
    return invent && conf_add_pool(conf, name, err) == NULL ? -1 : 0;
}

static int use_role_pools(struct conf *conf, const struct policy *policy, const struct roles *roles,
                          bool invent, struct error *err)
{
    struct pool_names names = {.count = policy->pool_count};
    const char *name;

    if (!invent && roles_check_pools(roles, conf, err) != 0)
        return -1;
    for (int i = 0; i < policy->pool_count; i++)
        names.list[i] = policy->pools[i];
    for (int i = 0; i < roles->count; i++)
        for (int k = 0; (name = role_pool(&roles->list[i], k)) != NULL; k++)
            if (use_pool(conf, &roles->list[i], name, invent, &names, err) != 0)
                return -1;
    return 0;
}

/* Without elastic.conf a pool's name is a partition's; with none named, the base's own. */
static int invent_pools(struct conf *conf, struct policy *policy, struct error *err)
{
    const char *own = getenv("SLURM_JOB_PARTITION");

    if (conf->pool_count > 0)
        return 0;
    if (policy->pool_count == 0 && (own == NULL || policy_set(policy, "pool", own, err) != 0))
        return 0;
    for (int i = 0; i < policy->pool_count; i++)
        if (conf_add_pool(conf, policy->pools[i], err) == NULL)
            return -1;
    return 0;
}

/* scale_config comes through sbatch as ELASTIC_POLICY. */
static int merge_scale_config(struct policy *policy, struct error *err)
{
    const char *value = getenv("ELASTIC_POLICY");
    struct policy lower;
    char *text;
    int len, rc;

    if (value == NULL || value[0] == '\0')
        return 0;
    len = asprintf(&text, "{\"scale_config\":%s}", value);
    if (len < 0)
        return error_set(err, "out of memory");
    policy_init(&lower);
    rc = policy_parse_json(&lower, text, (size_t)len, err);
    if (rc == 0)
        policy_merge(policy, &lower);
    else
        error_prefix(err, "ELASTIC_POLICY");
    policy_clear(&lower);
    free(text);
    return rc;
}

int job_policy_build(struct policy *policy, const struct options *options,
                     const struct roles *roles, struct conf *conf, struct error *err)
{
    struct policy lower;
    const char *config = options->config != NULL ? options->config : getenv("ELASTIC_CONFIG");
    bool invent = conf->pool_count == 0;
    int rc = -1;

    policy_init(&lower);
    /* An agent that is started again has the same deadline. */
    policy->now = lower.now = options->policy.now;
    policy_merge(policy, &options->policy);
    if (policy_from_environment(policy, true, err) != 0 || merge_scale_config(policy, err) != 0)
        goto done;
    if (config != NULL && config[0] != '\0') {
        if (policy_file_load(config, &lower, err) != 0)
            goto done;
        policy_merge(policy, &lower);
    }
    policy_merge(policy, &conf->defaults);
    policy_defaults(policy);
    if (policy->sizes.min == 0) {
        error_set(err, "no size given: submit with sbatch --elastic=MIN:MAX, or say elasticrun "
                       "--elastic=MIN:MAX");
        goto done;
    }
    if (policy_keep_together(policy, err) != 0 || invent_pools(conf, policy, err) != 0 ||
        (roles != NULL && use_role_pools(conf, policy, roles, invent, err) != 0) ||
        conf_check_policy(conf, policy, err) != 0)
        goto done;
    rc = 0;
done:
    policy_clear(&lower);
    return rc;
}

int job_policy_check_size(const struct policy *policy, int nodes, struct error *err)
{
    const struct sizes *sizes = &policy->sizes;
    char text[256];

    sizes_format(sizes, text, sizeof(text));
    if (nodes < sizes->min)
        return error_set(err,
                         "--elastic=%s needs %d nodes to start, this step has %d; use srun -N%d in "
                         "a job of %d nodes",
                         text, sizes->min, nodes, sizes->min, sizes->min);
    if (!sizes_allowed(sizes, nodes))
        return error_set(err,
                         "--elastic=%s does not allow the %d nodes of this step; use srun -N%d",
                         text, nodes, sizes_floor(sizes, nodes));
    return 0;
}
