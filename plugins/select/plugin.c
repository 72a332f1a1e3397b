/* SPDX-License-Identifier: GPL-2.0-or-later */
/* select/elastic_cons_tres: select/cons_tres, with two decisions for elastic jobs.
 *
 * The first: which nodes they get. Sets of nodes, the best first, are offered to select/cons_tres
 * one after another. So its rules about memory, GRES, cores and sharing hold. The second: which
 * extensions leave first when jobs are preempted (preempt.h). All else is done by select/cons_tres.
 *
 * Every command of Slurm loads this plugin to read slurmctld's answers about nodes. So nothing is
 * read, and nothing logged, before slurmctld sets its nodes up. */
#include "plugins/select/compat.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/select/cluster.h"
#include "plugins/select/jobs.h"
#include "plugins/select/power.h"
#include "plugins/select/preempt.h"
#include "plugins/select/stock.h"
#include "plugins/select/waiting.h"

/* In a node's sched_weight this bit and the next are above every weight that an admin gives
 * (node_scheduler.c of Slurm 22.05). */
#define LAST_RESORT_BIT 40

#pragma weak idle_node_bitmap
#pragma weak node_record_table_ptr
#pragma weak slurm_conf

#define NAME "select/elastic_cons_tres"

const char plugin_name[] = "Placement of elastic jobs on top of select/cons_tres";
const char plugin_type[] = NAME;
const uint32_t plugin_id = PLUGIN_ID;
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

extern int init(void);
extern int fini(void);
#define PROTOTYPE(type, name, parameters, arguments) extern type select_p_##name parameters;
OURS(PROTOTYPE)

int init(void)
{
    return stock_load();
}

int fini(void)
{
    cluster_forget();
    jobs_forget();
    power_forget();
    waiting_forget();
    stock_unload();
    return SLURM_SUCCESS;
}

/* At the start, and when slurmctld reads its configuration; then everything else is done again as
 * well. */
int select_p_node_init(void)
{
    int rc = stock.node_init();

    info(NAME ": places elastic jobs, and chooses which of them leave for others");
    cluster_read();
    power_read();
    return rc;
}

/* Also when somebody changes a partition or the nodes. */
int select_p_reconfigure(void)
{
    int rc = stock.reconfigure();

    cluster_update();
    jobs_read();
    return rc;
}

#define READ_JOBS_FIRST(type, name, parameters, arguments)                                         \
    type select_p_##name parameters                                                                \
    {                                                                                              \
        jobs_read();                                                                               \
        return stock.name arguments;                                                               \
    }
JOB_INIT(READ_JOBS_FIRST)

int select_p_job_begin(job_record_t *job)
{
    int rc = stock.job_begin(job);

    /* If the job has begun before, and could not be started after all, its end was not
     * announced. */
    jobs_remove(job);
    if (rc == SLURM_SUCCESS)
        jobs_add(job);
    return rc;
}

int select_p_job_expand(job_record_t *from, job_record_t *to)
{
    int rc = stock.job_expand(from, to);

    jobs_remove(from);
    jobs_remove(to);
    jobs_add(to);
    return rc;
}

int select_p_job_fini(job_record_t *job)
{
    jobs_remove(job);
    return stock.job_fini(job);
}

int select_p_job_resized(job_record_t *job, node_record_t *node)
{
    int rc = stock.job_resized(job, node);

    jobs_remove(job);
    jobs_add(job);
    return rc;
}

/* ---- where ----------------------------------------------------------------------------------- */

static void log_tier(const struct request *request, const struct placement_tier *tier,
                     bitstr_t *nodes)
{
    const char *what = tier->shape == PLACEMENT_ANY ? "any" : cluster_shape_name(tier->shape);
    char *names;

    if (get_log_level() < LOG_LEVEL_DEBUG)
        return;
    names = nodes != NULL ? bitmap2node_name(nodes) : NULL;
    if (tier->above == PLACEMENT_NONE)
        debug(NAME ": JobId=%u: %d nodes of shape %s %s: %s", request->job->job_id, tier->count,
              what,
              tier->nearest                  ? "nearest to the job's"
              : tier->level == PLACEMENT_ANY ? "anywhere"
                                             : "below the job's switches",
              names != NULL ? names : "no");
    else
        debug(NAME ": JobId=%u: %d nodes of shape %s below switch %s, level %d: %s",
              request->job->job_id, tier->count, what, cluster_switch_name(tier->above),
              tier->level, names != NULL ? names : "no");
    xfree(names);
}

static bitstr_t *bitmap_of(const struct placement_map *map, const bool *nodes)
{
    bitstr_t *bitmap = bit_alloc(map->node_count);

    for (int i = 0; i < map->node_count; i++)
        if (nodes[i])
            bit_set(bitmap, i);
    return bitmap;
}

static bool *set_of(const struct placement_map *map, bitstr_t *bitmap)
{
    bool *nodes = calloc((size_t)map->node_count, sizeof(*nodes));

    for (int i = 0; nodes != NULL && i < map->node_count; i++)
        nodes[i] = bit_test(bitmap, i);
    return nodes;
}

/* The idle nodes among them. */
static bool *free_nodes(const struct placement_map *map, bitstr_t *nodes)
{
    bitstr_t *idle = bit_copy(nodes);
    bool *set;

    bit_and(idle, idle_node_bitmap);
    set = set_of(map, idle);
    bit_free(idle);
    return set;
}

/* With a range of nodes (--nodes=2-4) Slurm looks for as many nodes as the job may have: a set must
 * not keep the job from having them. */
static int nodes_wanted(const struct request *request)
{
    return (int)(request->req_nodes > request->min_nodes ? request->req_nodes : request->min_nodes);
}

/* First where no other job is to grow, if there is such a place; else where there is room. */
static void find_tiers_of_base(const struct request *request, const struct placement_map *map,
                               const struct placement_room *room, struct placement_tiers *tiers)
{
    int min = nodes_wanted(request), max = jobs_max(request->job);
    bool *unclaimed = malloc((size_t)map->node_count * sizeof(*unclaimed));

    if (unclaimed == NULL)
        return;
    memcpy(unclaimed, room->idle, (size_t)map->node_count * sizeof(*unclaimed));
    jobs_keep(map, NULL, unclaimed);
    placement_base(map, &(struct placement_room){room->usable, room->idle, unclaimed}, min, max,
                   tiers);
    if (tiers->count == 0)
        placement_base(map, room, min, max, tiers);
    free(unclaimed);
}

static void find_tiers_of_extension(const struct request *request, const struct placement_map *map,
                                    const struct placement_room *room,
                                    struct placement_tiers *tiers)
{
    const size_t size = (size_t)map->node_count * sizeof(bool);
    const job_record_t *base = jobs_base(request->job);
    bool *nodes = base != NULL ? calloc(1, size) : NULL,
         *unclaimed = base != NULL ? malloc(size) : NULL;
    int growth;

    if (nodes != NULL && unclaimed != NULL) {
        memcpy(unclaimed, room->idle, size);
        growth = jobs_world(map, base, nodes);
        jobs_keep(map, base, unclaimed);
        placement_extension(map, &(struct placement_room){room->usable, room->idle, unclaimed},
                            nodes, nodes_wanted(request), growth, tiers);
    }
    free(nodes);
    free(unclaimed);
}

/* Where this job is to be tried. None where there is nothing to choose. */
static void find_tiers(const struct request *request, const struct placement_map *map,
                       enum placement_kind kind, bitstr_t *nodes, struct placement_tiers *tiers)
{
    bool *usable = set_of(map, nodes), *idle = free_nodes(map, nodes);
    const struct placement_room room = {usable, idle, idle};

    /* A node that has to boot first, or is outside the job's reservation, is taken only where Slurm
     * does so itself. */
    for (int i = 0; usable != NULL && idle != NULL && i < map->node_count; i++)
        if (usable[i] &&
            (node_record_table_ptr[i] == NULL || power_is_asleep(node_record_table_ptr[i]) ||
             node_record_table_ptr[i]->sched_weight >> LAST_RESORT_BIT))
            usable[i] = idle[i] = false;
    if (usable != NULL && idle != NULL && kind == PLACEMENT_BASE)
        find_tiers_of_base(request, map, &room, tiers);
    else if (usable != NULL && idle != NULL)
        find_tiers_of_extension(request, map, &room, tiers);
    free(usable);
    free(idle);
}

/* May select/cons_tres put the job onto cores of other jobs, so that they run in turn? */
static bool may_share_cores(const job_record_t *job)
{
    return (slurm_conf.preempt_mode & PREEMPT_MODE_GANG) ||
           (job->part_ptr != NULL && (job->part_ptr->max_share & ~SHARED_FORCE) > 1);
}

/* Does a job that is to start now need idle nodes? A job with whole nodes does. A job that could
 * share cores with others shall not do so where there are idle nodes. */
static bool needs_idle_nodes(const job_record_t *job)
{
    return (job->details->whole_node & WHOLE_NODE_REQUIRED) || may_share_cores(job);
}

/* Try some of the tiers. nodes is unchanged if no tier will do. */
static int try_tiers(const struct request *request, const struct placement_map *map,
                     const struct placement_tiers *tiers, int first, int end, bitstr_t *nodes)
{
    const bool idle_only = needs_idle_nodes(request->job);
    int rc = SLURM_ERROR;

    for (int i = first; i < end && rc != SLURM_SUCCESS; i++) {
        bitstr_t *narrow = bitmap_of(map, tiers->tier[i].nodes);

        if (idle_only)
            bit_and(narrow, idle_node_bitmap);
        if (bit_set_count(narrow) >= (int)request->min_nodes)
            rc = request_ask_now(request, narrow, NULL);
        log_tier(request, &tiers->tier[i], rc == SLURM_SUCCESS ? narrow : NULL);
        if (rc == SLURM_SUCCESS)
            bit_copybits(nodes, narrow);
        bit_free(narrow);
    }
    return rc;
}

static int is_on(void *candidate, void *nodes)
{
    const job_record_t *job = candidate;

    return job->node_bitmap != NULL && bit_overlap_any(job->node_bitmap, nodes) ? 1 : 0;
}

/* Could the job start on these nodes now, without preemption? A test for the future names no
 * victims, or all jobs on the nodes, and sets the start time to now also where these would have to
 * leave. */
static bool starts_freely(const struct request *request, bitstr_t *nodes)
{
    if (request->mode == SELECT_MODE_WILL_RUN)
        return request->job->start_time <= time(NULL) &&
               (request->candidates == NULL ||
                list_find_first(request->candidates, is_on, nodes) == NULL);
    return request->victims == NULL || *request->victims == NULL;
}

/* Try the best set of nodes first. If it will not do, try all nodes: so a job that cannot start is
 * tested once more than without us, not once for each set. If the job can start, try the other sets
 * in their order. */
static int place(const struct request *request, const struct placement_map *map,
                 const struct placement_tiers *tiers, bitstr_t *nodes)
{
    bitstr_t *all;
    int rc;

    if (try_tiers(request, map, tiers, 0, 1, nodes) == SLURM_SUCCESS)
        return SLURM_SUCCESS;
    all = bit_copy(nodes);
    rc = request_ask_preempting(request, map, nodes);
    if (rc == SLURM_SUCCESS && tiers->count > 1 && starts_freely(request, nodes)) {
        bit_copybits(nodes, all);
        if (try_tiers(request, map, tiers, 1, tiers->count, nodes) != SLURM_SUCCESS) {
            request_forget_victims(request);
            rc = request_ask_preempting(request, map, nodes);
        }
    }
    bit_free(all);
    return rc;
}

/* A user who names nodes, or a number of switches (with --spread-job: many), has chosen the
 * place. */
static bool is_placed_by_user(const job_record_t *job)
{
    return job->details->req_node_bitmap != NULL || job->req_switch > 0 ||
           job->details->contiguous || (job->bit_flags & SPREAD_JOB) || job->het_job_id;
}

/* What is idle now says nothing about another time. */
static bool is_about_later(const struct request *request)
{
    return TIMES_BEGIN_AT(request->times) > time(NULL);
}

int select_p_job_test(job_record_t *job, bitstr_t *nodes, uint32_t min_nodes, uint32_t max_nodes,
                      uint32_t req_nodes, uint16_t mode, list_t *candidates, list_t **victims,
                      excluded_cores_t *cores WITH_TIMES(times_t *times))
{
    struct request request = {.job = job,
                              .min_nodes = min_nodes,
                              .max_nodes = max_nodes,
                              .req_nodes = req_nodes,
                              .mode = mode,
                              .candidates = candidates,
                              .victims = victims,
                              .cores = cores WITH_TIMES(.times = times)};
    enum placement_kind kind = jobs_kind(job);
    struct placement_tiers tiers = {0};
    const struct placement_map *map;
    int rc;

    /* Not where it is only tested whether the job could ever run: it would be refused. */
    if (kind == PLACEMENT_EXTENSION && mode != SELECT_MODE_TEST_ONLY)
        power_keep_off(job, nodes);
    if ((kind == PLACEMENT_RIGID && candidates == NULL) || job->details == NULL || min_nodes == 0 ||
        (mode != SELECT_MODE_RUN_NOW && mode != SELECT_MODE_WILL_RUN) || is_about_later(&request))
        return stock.job_test(job, nodes, min_nodes, max_nodes, req_nodes, mode, candidates,
                              victims, cores WITH_TIMES(times));
    if (kind == PLACEMENT_EXTENSION)
        waiting_keep_off(job, nodes);
    request.memory = job->details->pn_min_memory;
    request.cpus = job->details->min_cpus;
    map = cluster_map();
    if (map != NULL && map->node_count != bit_size(nodes))
        map = NULL;
    if (kind != PLACEMENT_RIGID && map != NULL && !is_placed_by_user(job) && !jobs_has_roles(job))
        find_tiers(&request, map, kind, nodes, &tiers);
    rc = tiers.count > 0 ? place(&request, map, &tiers, nodes)
                         : request_ask_preempting(&request, map, nodes);
    placement_tiers_clear(&tiers);
    if (rc == SLURM_SUCCESS && mode == SELECT_MODE_RUN_NOW && victims != NULL && *victims != NULL &&
        list_count(*victims) > 0)
        waiting_note(job, nodes);
    return rc;
}
