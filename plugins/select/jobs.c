/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs from slurmctld's structures (jobs.h). */
#include "config.h"

#include "src/common/slurm_xlator.h"

#include "src/common/read_config.h"
#include "src/slurmctld/slurmctld.h"

#include "plugins/select/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/admission.h"

#pragma weak job_list
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

/* ---- those that run -------------------------------------------------------------------------- */

/* Slurm's plugin calls have no cookie. They are made under slurmctld's locks. */
static uint32_t *running; /* their ids, ascending */
static int running_count;

static int find_running(uint32_t id)
{
    int low = 0, high = running_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (running[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void jobs_add(const job_record_t *job)
{
    int at = find_running(job->job_id);
    uint32_t *grown;

    if (jobs_kind(job) == PLACEMENT_RIGID || (at < running_count && running[at] == job->job_id))
        return;
    /* Without memory it is not seen by others that start; nothing else depends on it. */
    if (!(grown = realloc(running, ((size_t)running_count + 1) * sizeof(*running))))
        return;
    running = grown;
    memmove(running + at + 1, running + at, (size_t)(running_count - at) * sizeof(*running));
    running[at] = job->job_id;
    running_count++;
}

void jobs_remove(const job_record_t *job)
{
    int at = find_running(job->job_id);

    if (at == running_count || running[at] != job->job_id)
        return;
    running_count--;
    memmove(running + at, running + at + 1, (size_t)(running_count - at) * sizeof(*running));
}

void jobs_forget(void)
{
    free(running);
    running = NULL;
    running_count = 0;
}

static int add_if_running(void *item, void *unused)
{
    const job_record_t *job = item;

    (void)unused;
    if (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job))
        jobs_add(job);
    return 0;
}

void jobs_read(void)
{
    jobs_forget();
    if (job_list)
        list_for_each(job_list, add_if_running, NULL);
}

/* One that runs and is not about to leave. */
static job_record_t *running_job(int index)
{
    job_record_t *job = find_job_record(running[index]);

    return job && job->node_bitmap && job->preempt_time == 0 &&
                   (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job))
               ? job
               : NULL;
}

static int add_nodes(const struct placement_map *map, const job_record_t *job, bool *nodes)
{
    int last = bit_fls(job->node_bitmap), count = 0;

    for (int i = bit_ffs(job->node_bitmap); i >= 0 && i <= last && i < map->node_count; i++) {
        if (!bit_test(job->node_bitmap, i))
            continue;
        nodes[i] = true;
        count++;
    }
    return count;
}

int jobs_world(const struct placement_map *map, const job_record_t *base, bool *nodes)
{
    int max = jobs_max(base), count = add_nodes(map, base, nodes);

    for (int i = find_running(base->job_id + 1); i < running_count; i++) {
        const job_record_t *job = running_job(i);

        if (job && jobs_kind(job) == PLACEMENT_EXTENSION && jobs_base(job) == base)
            count += add_nodes(map, job, nodes);
    }
    return max > count ? max - count : 0;
}

static void keep_promise(const struct placement_map *map, const job_record_t *base,
                         const bool *free_nodes, bool *promised)
{
    bool *nodes = calloc((size_t)map->node_count + 1, sizeof(*nodes));

    if (nodes)
        placement_promise(map, free_nodes, nodes, jobs_world(map, base, nodes), promised);
    free(nodes);
}

void jobs_keep_promises(const struct placement_map *map, const job_record_t *base, bool *free_nodes)
{
    bool *promised = calloc((size_t)map->node_count + 1, sizeof(*promised));

    for (int i = 0; promised && i < running_count; i++) {
        const job_record_t *job = running_job(i);

        if (job && job != base && jobs_kind(job) == PLACEMENT_BASE)
            keep_promise(map, job, free_nodes, promised);
    }
    for (int i = 0; promised && i < map->node_count; i++)
        free_nodes[i] = free_nodes[i] && !promised[i];
    free(promised);
}

/* ---- distance -------------------------------------------------------------------------------- */

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
