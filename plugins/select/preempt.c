/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of select/cons_tres, and the order of victims (preempt.h).
 *
 * select/cons_tres takes candidates out in the order of its list until the job fits, and preempts
 * those whose nodes it then uses. So it gets a list of the jobs that shall leave. The number of
 * these is found by counting idle nodes, which is right where jobs have whole nodes. Where jobs
 * share nodes, both lists are tried, and the list that costs fewer nodes counts. */
#include "plugins/select/compat.h"

#include "plugins/select/preempt.h"

#include <stdlib.h>

#include "plugins/select/jobs.h"
#include "plugins/select/stock.h"

#pragma weak idle_node_bitmap
#pragma weak node_record_table_ptr
#pragma weak slurm_conf

#define NAME "select/elastic_cons_tres"

int request_ask(const struct request *request, bitstr_t *nodes, list_t *candidates)
{
    details_t *details = request->job->details;

    details->pn_min_memory = request->memory;
    details->min_cpus = request->cpus;
    return stock.job_test(request->job, nodes, request->min_nodes, request->max_nodes,
                          request->req_nodes, request->mode, candidates, request->victims,
                          request->cores WITH_TIMES(request->times));
}

int request_ask_now(const struct request *request, bitstr_t *nodes, list_t *candidates)
{
    uint64_t flags = request->job->bit_flags;
    int rc;

    request->job->bit_flags |= TEST_NOW_ONLY;
    rc = request_ask(request, nodes, candidates);
    request->job->bit_flags = flags;
    return rc;
}

/* ---- candidates ------------------------------------------------------------------------------ */

struct candidates {
    int count;
    bool exact; /* counting nodes is right */
    job_record_t **jobs;
    struct placement_candidate *list;
    int *order;
};

static void candidates_clear(struct candidates *all)
{
    free(all->jobs);
    free(all->list);
    free(all->order);
}

/* The job's nodes among the requested nodes, and the nodes of these that no other job uses. */
static int nodes_it_gives(const job_record_t *job, bitstr_t *nodes, bool *exact)
{
    int given = 0, last = bit_fls(job->node_bitmap);

    for (int i = bit_ffs(job->node_bitmap); i >= 0 && i <= last; i++) {
        if (!bit_test(job->node_bitmap, i) || !bit_test(nodes, i))
            continue;
        if (node_record_table_ptr[i]->run_job_cnt > 1)
            *exact = false;
        else
            given++;
    }
    return given;
}

/* A job that is already leaving costs nothing more. */
static struct placement_candidate describe(job_record_t *job, const struct placement_map *map,
                                           bitstr_t *nodes, bool *exact)
{
    struct placement_candidate candidate = {.job = job->job_id,
                                            .kind = jobs_running_kind(job),
                                            .priority = jobs_priority(job),
                                            .start = (int64_t)job->start_time,
                                            .nodes = (int)job->node_cnt,
                                            .usable = nodes_it_gives(job, nodes, exact)};

    if (job->preempt_time != 0) {
        candidate.kind = PLACEMENT_EXTENSION;
        candidate.priority = INT64_MIN;
        candidate.nodes = 0;
    } else if (candidate.kind == PLACEMENT_EXTENSION && map != NULL) {
        candidate.distance = jobs_distance(map, job);
    }
    return candidate;
}

/* A base takes its extensions with it. */
static int add_extensions(struct candidates *all)
{
    int *extended = calloc((size_t)all->count + 1, sizeof(*extended));
    int rc = extended != NULL ? jobs_extended(all->jobs, all->count, extended) : -1;

    for (int i = 0; i < all->count && rc == 0; i++)
        if (all->list[i].kind == PLACEMENT_BASE) {
            all->list[i].nodes += extended[i];
            all->list[i].extended = extended[i];
        }
    free(extended);
    return rc;
}

static bool can_be_removed(job_record_t *job)
{
    uint16_t mode = slurm_job_preempt_mode(job);

    return (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && job->node_bitmap != NULL &&
           job->details != NULL && (mode == PREEMPT_MODE_REQUEUE || mode == PREEMPT_MODE_CANCEL);
}

static int read_candidates(const struct request *request, const struct placement_map *map,
                           bitstr_t *nodes, struct candidates *all)
{
    size_t most = (size_t)list_count(request->candidates) + 1;
    list_itr_t *each;
    job_record_t *job;

    /* A job that takes parts of nodes may find room that the count of nodes does not show. */
    *all = (struct candidates){.exact = request->job->details->whole_node & WHOLE_NODE_REQUIRED,
                               .jobs = calloc(most, sizeof(*all->jobs)),
                               .list = calloc(most, sizeof(*all->list)),
                               .order = calloc(most, sizeof(*all->order))};
    if (all->jobs == NULL || all->list == NULL || all->order == NULL)
        return -1;
    each = list_iterator_create(request->candidates);
    while ((job = list_next(each)) != NULL) {
        if (!can_be_removed(job))
            continue;
        /* The components of such a job leave together, on nodes that are not counted here. */
        if (job->het_job_id)
            all->exact = false;
        all->jobs[all->count] = job;
        all->list[all->count++] = describe(job, map, nodes, &all->exact);
    }
    list_iterator_destroy(each);
    return add_extensions(all);
}

static int find_extension(void *item, void *unused)
{
    (void)unused;
    return jobs_is_extension(item) ? 1 : 0;
}

/* Requested nodes that are not idle, and whose jobs are no candidates, can have room as well: then
 * the count is not exact. */
static int count_idle(const struct candidates *all, bitstr_t *nodes, bool *exact)
{
    bitstr_t *rest = bit_copy(nodes), *idle = bit_copy(nodes);
    int count;

    bit_and(idle, idle_node_bitmap);
    count = bit_set_count(idle);
    bit_and_not(rest, idle_node_bitmap);
    for (int i = 0; i < all->count; i++)
        bit_and_not(rest, all->jobs[i]->node_bitmap);
    if (bit_ffs(rest) >= 0)
        *exact = false;
    bit_free(idle);
    bit_free(rest);
    return count;
}

/* ---- the test -------------------------------------------------------------------------------- */

/* What would happen if the job started now. */
struct outcome {
    int64_t cost;     /* nodes that leave; INT64_MAX: it cannot start now */
    bool passes_over; /* placement_passes_over() */
};

static void add_leaving(const struct candidates *all, const job_record_t *job,
                        struct outcome *outcome, bool *leaves)
{
    int at = 0;

    while (at < all->count && all->jobs[at] != job)
        at++;
    if (at < all->count)
        leaves[at] = true;
    outcome->cost += at < all->count ? placement_cost(&all->list[at]) : (int64_t)job->node_cnt;
}

/* The outcome if the job is to have these nodes, after a test with the result rc. The victims
 * leave. If the caller does not ask for victims: all candidates there. */
static struct outcome outcome_of(const struct request *request, const struct candidates *all,
                                 int rc, bitstr_t *nodes)
{
    struct outcome outcome = {INT64_MAX, false};
    const job_record_t *job;
    list_itr_t *each;
    bool *leaves;

    if (rc != SLURM_SUCCESS ||
        (request->mode == SELECT_MODE_WILL_RUN &&
         request->job->start_time > time(NULL)) || /* after the test, as Slurm's */
        (leaves = calloc((size_t)all->count + 1, sizeof(*leaves))) == NULL)
        return outcome;
    outcome.cost = 0;
    if (request->victims == NULL) {
        for (int i = 0; i < all->count; i++)
            if (bit_overlap_any(nodes, all->jobs[i]->node_bitmap))
                add_leaving(all, all->jobs[i], &outcome, leaves);
    } else if (*request->victims != NULL) {
        each = list_iterator_create(*request->victims);
        while ((job = list_next(each)) != NULL)
            add_leaving(all, job, &outcome, leaves);
        list_iterator_destroy(each);
    }
    outcome.passes_over = placement_passes_over(all->list, all->count, leaves);
    free(leaves);
    return outcome;
}

/* Do rigid jobs leave so that a base of their priority is spared? Then more nodes may leave than
 * without this plugin. */
static bool rigid_for_base(const struct candidates *all, int picked)
{
    bool rigid = false, base = false;

    for (int i = 0; i < all->count; i++) {
        const struct placement_candidate *at = &all->list[all->order[i]];

        rigid |= i < picked && at->kind != PLACEMENT_EXTENSION && !placement_is_spared(at);
        base |= i >= picked && placement_is_spared(at);
    }
    return rigid && base;
}

static list_t *list_of(const struct candidates *all, int count)
{
    list_t *list = list_create(NULL);

    for (int i = 0; i < count; i++) {
        /* select/cons_tres has stopped there in an earlier test, and would stop there again. */
        all->jobs[all->order[i]]->details->usable_nodes = 0;
        list_append(list, all->jobs[all->order[i]]);
    }
    return list;
}

static void log_victims(const struct request *request, const struct candidates *all, int count,
                        int need)
{
    if (get_log_level() < LOG_LEVEL_DEBUG)
        return;
    debug(NAME ": JobId=%u lacks %d node%s; to leave for it, of %d jobs:", request->job->job_id,
          need, need == 1 ? "" : "s", all->count);
    for (int i = 0; i < count; i++) {
        const struct placement_candidate *at = &all->list[all->order[i]];

        debug(NAME ": JobId=%u lets JobId=%u go: %s of %u node%s, %d of use, %d level%s from its "
                   "base%s",
              request->job->job_id, at->job,
              at->kind == PLACEMENT_EXTENSION ? "extension"
              : at->kind == PLACEMENT_BASE    ? "base"
                                              : "rigid job",
              all->jobs[all->order[i]]->node_cnt,
              all->jobs[all->order[i]]->node_cnt == 1 ? "" : "s", at->usable, at->distance,
              at->distance == 1 ? "" : "s", at->nodes == 0 ? ", is leaving already" : "");
    }
}

void request_forget_victims(const struct request *request)
{
    if (request->victims != NULL && *request->victims != NULL) {
        list_destroy(*request->victims);
        *request->victims = NULL;
    }
}

/* Ask with the jobs that shall leave. nodes stays unchanged if the answer is no. */
static int ask_with(const struct request *request, const struct candidates *all, int count,
                    bitstr_t *nodes)
{
    bitstr_t *wanted = bit_copy(nodes);
    list_t *list = list_of(all, count);
    int rc = request_ask_now(request, nodes, list);

    list_destroy(list);
    if (rc != SLURM_SUCCESS) {
        request_forget_victims(request);
        bit_copybits(nodes, wanted);
    }
    bit_free(wanted);
    return rc;
}

/* Where the count of nodes is not exact, jobs can leave that are not needed. Then ours counts only
 * if no rigid job leaves for a base of a lower priority. */
static bool is_ours_better(const struct candidates *all, const struct outcome *ours,
                           const struct outcome *theirs)
{
    if (ours->cost == INT64_MAX || theirs->cost == INT64_MAX)
        return ours->cost < INT64_MAX;
    if (!all->exact && ours->passes_over && !theirs->passes_over)
        return false;
    return ours->cost <= theirs->cost;
}

/* Ask with both lists, and use the one that costs less. The job gets the result of the last
 * question. */
static int ask_both(const struct request *request, const struct candidates *all, int count,
                    bitstr_t *nodes)
{
    bitstr_t *wanted = bit_copy(nodes);
    int rc = ask_with(request, all, count, nodes);
    const struct outcome ours = outcome_of(request, all, rc, nodes);

    if (rc != SLURM_SUCCESS || (ours.cost > 0 && (!all->exact || rigid_for_base(all, count)))) {
        struct outcome theirs;

        request_forget_victims(request);
        bit_copybits(nodes, wanted);
        rc = request_ask(request, nodes, request->candidates);
        theirs = outcome_of(request, all, rc, nodes);
        if (is_ours_better(all, &ours, &theirs)) {
            request_forget_victims(request);
            bit_copybits(nodes, wanted);
            rc = ask_with(request, all, count, nodes);
        } else if (rc == SLURM_SUCCESS) {
            debug(NAME ": JobId=%u: as Slurm has chosen", request->job->job_id);
        }
    }
    bit_free(wanted);
    return rc;
}

static bool is_site_ordered(void)
{
    return xstrcasestr(slurm_conf.sched_params, "preempt_strict_order") ||
           xstrcasestr(slurm_conf.sched_params, "preempt_youngest_first");
}

int request_ask_preempting(const struct request *request, const struct placement_map *map,
                           bitstr_t *nodes)
{
    const details_t *details = request->job->details;
    struct candidates all;
    int rc, need, picked = 0;

    /* No job has to leave, or no extension can: then Slurm's order holds. */
    if (request->candidates == NULL || !jobs_have_extensions() ||
        details->req_node_bitmap != NULL ||
        bit_overlap(nodes, idle_node_bitmap) >= (int)request->min_nodes || is_site_ordered() ||
        list_find_first(request->candidates, find_extension, NULL) == NULL)
        return request_ask(request, nodes, request->candidates);
    if (read_candidates(request, map, nodes, &all) == 0) {
        need = (int)request->min_nodes - count_idle(&all, nodes, &all.exact);
        picked = placement_victims(all.list, all.count, need, all.order);
        if (picked > 0)
            log_victims(request, &all, picked, need);
    }
    rc = picked > 0 ? ask_both(request, &all, picked, nodes)
                    : request_ask(request, nodes, request->candidates);
    candidates_clear(&all);
    return rc;
}
