/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs from slurmctld's structures (jobs.h). */
#include "config.h"

#include "src/common/slurm_xlator.h"

#include "src/common/read_config.h"
#include "src/slurmctld/slurmctld.h"

#include "plugins/select/jobs.h"

#include <string.h>

#include "lib/admission.h"

#pragma weak slurm_conf

static struct admission_env env_of(const job_record_t *job)
{
    return (struct admission_env){job->spank_job_env, job->spank_job_env_size};
}

enum placement_kind jobs_kind(const job_record_t *job)
{
    const struct admission_env env = env_of(job);

    switch (env.count > 0 ? admission_role(&env) : ADMISSION_RIGID) {
    case ADMISSION_BASE:
        return PLACEMENT_BASE;
    case ADMISSION_EXTENSION:
        return PLACEMENT_EXTENSION;
    case ADMISSION_RIGID:
        break;
    }
    return admission_is_marked(job->comment) ? PLACEMENT_EXTENSION : PLACEMENT_RIGID;
}

int jobs_max(const job_record_t *job)
{
    const struct admission_env env = env_of(job);
    struct sizes sizes = {0};
    struct error err;

    return admission_sizes(&env, &sizes, &err) == 0 ? sizes.max : 0;
}

job_record_t *jobs_base(const job_record_t *job)
{
    const struct admission_env env = env_of(job);
    uint32_t id = env.count > 0 ? admission_base_of(&env) : 0;
    job_record_t *base;

    if (id == 0)
        id = admission_marked_base(job->comment);
    base = id > 0 ? find_job_record(id) : NULL;
    if (!base || base->user_id != job->user_id || !base->node_bitmap ||
        (!IS_JOB_RUNNING(base) && !IS_JOB_SUSPENDED(base)))
        return NULL;
    return base;
}

int64_t jobs_priority(const job_record_t *job)
{
    if (slurm_conf.preempt_type && strstr(slurm_conf.preempt_type, "qos"))
        return job->qos_ptr ? (int64_t)((slurmdb_qos_rec_t *)job->qos_ptr)->priority : 0;
    return job->part_ptr ? (int64_t)job->part_ptr->priority_tier : 0;
}

void jobs_nodes(const struct placement_map *map, const job_record_t *job, bool *nodes)
{
    for (int i = 0; i < map->node_count; i++)
        nodes[i] = job->node_bitmap && i < bit_size(job->node_bitmap) &&
                   bit_test(job->node_bitmap, i);
}

#define LEAVES_MAX 64 /* leaf switches of a base that are looked at */

/* One node of the base on each of its leaf switches. */
static int on_each_leaf(const struct placement_map *map, const job_record_t *base, int *nodes)
{
    int count = 0;

    for (int i = 0; i < map->node_count && count < LEAVES_MAX; i++) {
        bool known = !bit_test(base->node_bitmap, i);

        for (int k = 0; k < count && !known; k++)
            known = map->leaf[nodes[k]] == map->leaf[i];
        if (!known)
            nodes[count++] = i;
    }
    return count;
}

int jobs_distance(const struct placement_map *map, const job_record_t *job)
{
    const job_record_t *base = jobs_base(job);
    int nodes[LEAVES_MAX], count, most = 0;

    if (!base || bit_size(base->node_bitmap) < map->node_count ||
        bit_size(job->node_bitmap) < map->node_count)
        return 0;
    count = on_each_leaf(map, base, nodes);
    for (int i = 0; i < map->node_count && count > 0; i++) {
        int least = INT32_MAX;

        for (int k = 0; k < count && bit_test(job->node_bitmap, i); k++) {
            int distance = placement_distance(map, i, nodes[k]);

            least = distance < least ? distance : least;
        }
        most = least != INT32_MAX && least > most ? least : most;
    }
    return most;
}
