/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What running jobs have of the nodes (resources.h). */
#include "plugins/select/compat.h"

#include "plugins/select/resources.h"

#include "lib/placement.h"

#pragma weak slurm_conf

static bool counts_memory(void)
{
    return (slurm_conf.select_type_param & COUNTS_MEMORY) != 0;
}

/* What a job has of a GRES on one of its nodes. */
static int64_t gres_on(const gres_job_state_t *gres, uint32_t number)
{
    if (gres->gres_cnt_node_alloc == NULL || number >= gres->node_cnt ||
        gres->gres_cnt_node_alloc[number] > INT32_MAX) /* it is not consumed */
        return 0;
    return (int64_t)gres->gres_cnt_node_alloc[number];
}

/* Of the same name, and of the same type where both are known: who asks for no type gets any. */
static bool is_alike(const gres_state_t *state, const struct resources_gres *gres)
{
    const gres_job_state_t *job = state->gres_data;

    return state->plugin_id == gres->name &&
           (!gres->typed || job->type_name == NULL || job->type_id == gres->type);
}

/* ---- a whole job ----------------------------------------------------------------------------- */

static struct resources_gres *gres_named(struct resources *resources, uint32_t name)
{
    for (int i = 0; i < resources->gres_count; i++)
        if (resources->gres[i].name == name)
            return &resources->gres[i];
    return NULL;
}

/* Stops the walk with -1 where there are too many names. */
static int add_gres(void *item, void *arg)
{
    const gres_state_t *state = item;
    const gres_job_state_t *gres = state->gres_data;
    struct resources *resources = arg;
    struct resources_gres *known = gres_named(resources, state->plugin_id);
    int64_t count = 0;

    for (uint32_t i = 0; i < gres->node_cnt; i++)
        count += gres_on(gres, i);
    if (count == 0)
        return 0;
    if (known == NULL && resources->gres_count == RESOURCES_GRES_MAX)
        return -1;
    if (known == NULL) {
        known = &resources->gres[resources->gres_count++];
        *known = (struct resources_gres){state->plugin_id, gres->type_id, true, 0};
    }
    known->typed &= gres->type_name != NULL && gres->type_id == known->type;
    known->count += count;
    return 0;
}

bool resources_of(const job_record_t *job, struct resources *resources)
{
    const job_resources_t *own = job->job_resrcs;

    *resources = (struct resources){0};
    if (own == NULL || own->core_bitmap == NULL)
        return false;
    resources->nodes = (int)own->nhosts;
    resources->cores = bit_set_count(own->core_bitmap);
    for (uint32_t i = 0; i < own->nhosts && own->memory_allocated != NULL && counts_memory(); i++)
        resources->memory += (int64_t)own->memory_allocated[i];
    return job->gres_list_alloc == NULL ||
           list_for_each(job->gres_list_alloc, add_gres, resources) >= 0;
}

/* ---- one node -------------------------------------------------------------------------------- */

struct tally {
    const struct resources_gres *gres;
    uint32_t number;
    int64_t count;
};

static int add_alike(void *item, void *arg)
{
    const gres_state_t *state = item;
    struct tally *tally = arg;

    if (is_alike(state, tally->gres))
        tally->count += gres_on(state->gres_data, tally->number);
    return 0;
}

static bool gres_match(const job_record_t *job, uint32_t number, const struct resources *other)
{
    for (int i = 0; i < other->gres_count; i++) {
        struct tally tally = {&other->gres[i], number, 0};

        if (job->gres_list_alloc != NULL)
            list_for_each(job->gres_list_alloc, add_alike, &tally);
        if (!placement_node_counts(tally.count, other->gres[i].count, other->nodes))
            return false;
    }
    return true;
}

bool resources_match(const job_record_t *job, uint32_t number, const struct resources *other)
{
    job_resources_t *own = job->job_resrcs;
    int64_t memory;

    if (own == NULL || own->core_bitmap == NULL || number >= own->nhosts)
        return false;
    memory = own->memory_allocated != NULL ? (int64_t)own->memory_allocated[number] : 0;
    return placement_node_counts(count_job_resources_node(own, number), other->cores,
                                 other->nodes) &&
           (other->memory == 0 || placement_node_counts(memory, other->memory, other->nodes)) &&
           gres_match(job, number, other);
}
