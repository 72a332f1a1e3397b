/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes that have to power up (power.h). */
#include "plugins/select/compat.h"

#include "plugins/select/power.h"

#include "common/conf_file.h"
#include "lib/admission.h"
#include "lib/wake.h"

#pragma weak node_record_table_ptr

/* Slurm's plugin calls have no cookie. They are made under slurmctld's locks. */
static struct conf *site;

void power_read(void)
{
    struct error err;

    conf_destroy(site);
    site = conf_file_load(NULL, &err);
}

void power_forget(void)
{
    conf_destroy(site);
    site = NULL;
}

/* The state, and not the weight: where all nodes of a set are powered down, Slurm 22.05 sets no
 * flag in it. */
bool power_is_asleep(const node_record_t *node)
{
    return IS_NODE_POWERED_DOWN(node) || IS_NODE_POWERING_DOWN(node) || IS_NODE_POWER_DOWN(node) ||
           IS_NODE_POWERING_UP(node) || IS_NODE_POWER_UP(node);
}

static bool may_wake(const job_record_t *job)
{
    const struct admission_env env = {job->spank_job_env, job->spank_job_env_size};
    const slurmdb_qos_rec_t *qos = job->qos_ptr;

    return wake_allowed(wake_pool(site, admission_pool_of(&env),
                                  job->part_ptr != NULL ? job->part_ptr->name : NULL,
                                  qos != NULL ? qos->name : NULL),
                        POLICY_WAKE_YES);
}

void power_keep_off(const job_record_t *extension, bitstr_t *nodes)
{
    int last = (int)bit_fls(nodes), count = 0;

    if (last < 0 || may_wake(extension))
        return;
    for (int i = (int)bit_ffs(nodes); i <= last; i++)
        if (bit_test(nodes, i) && node_record_table_ptr[i] != NULL &&
            power_is_asleep(node_record_table_ptr[i])) {
            bit_clear(nodes, i);
            count++;
        }
    if (count > 0)
        debug("select/elastic_cons_tres: JobId=%u keeps off %d nodes that would have to power up",
              extension->job_id, count);
}
