/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The metrics of elastic jobs (metrics.h). */
#include "lib/metrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/goodput.h"
#include "lib/json_get.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of an answer. */
#define LIST_MAX    64     /* entries of a list that get labels */
#define ENTRIES_MAX 100000 /* of a list that is counted: of a longer one only the first */
#define VALUE_BYTES 128    /* of the value of a label; longer ones are cut */
#define BUCKETS_MAX 32
#define BOUND_MAX   1e9 /* of a bucket */

static json_object *member(json_object *object, const char *key)
{
    json_object *value = NULL;

    if (json_object_is_type(object, json_type_object))
        json_object_object_get_ex(object, key, &value);
    return value;
}

static double number(json_object *object, const char *key)
{
    return json_object_is_type(object, json_type_object) ? json_get_double(object, key, NAN) : NAN;
}

static const char *text(json_object *object, const char *key, char value[VALUE_BYTES])
{
    const char *said = json_object_is_type(object, json_type_object) ? json_get_string(object, key)
                                                                     : NULL;

    snprintf(value, VALUE_BYTES, "%s", said != NULL ? said : "");
    metrics_clean(value);
    return value;
}

static json_object *list(json_object *object, const char *key, size_t *count)
{
    json_object *array = member(object, key);

    *count = json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
    return array;
}

static size_t least(size_t count)
{
    return count < LIST_MAX ? count : LIST_MAX;
}

/* Has an entry before this one the same text? It would be the same sample again. */
static bool again(json_object *array, size_t which, const char *key)
{
    char own[VALUE_BYTES], other[VALUE_BYTES];

    text(json_object_array_get_idx(array, which), key, own);
    for (size_t i = 0; i < which; i++)
        if (strcmp(text(json_object_array_get_idx(array, i), key, other), own) == 0)
            return true;
    return false;
}

/* A number that is there. */
static void sample(struct metrics_writer *writer, const struct metrics_family *family,
                   const struct metrics_label *labels, double value)
{
    if (!isnan(value))
        metrics_sample(writer, family, labels, value);
}

/* One with one label. */
static void labelled(struct metrics_writer *writer, const struct metrics_family *family,
                     const char *name, const char *label, double value)
{
    struct metrics_label labels[] = {{name, label}, {NULL, NULL}};

    sample(writer, family, labels, value);
}

/* ---- numbers at the top of an answer --------------------------------------------------------- */

static const struct {
    struct metrics_family family;
    const char *object, *key; /* object NULL: at the top */
} numbers[] = {
    {{"elastic_job_nodes", METRICS_GAUGE, NULL, "Nodes that the job works on"}, NULL, "size"},
    {{"elastic_job_target_nodes", METRICS_GAUGE, NULL, "Nodes that the job would like to have"},
     NULL,
     "target"},
    {{"elastic_job_min_nodes", METRICS_GAUGE, NULL, "The fewest nodes that it can work on"},
     NULL,
     "min"},
    {{"elastic_job_max_nodes", METRICS_GAUGE, NULL, "The most nodes that it may have"},
     NULL,
     "max"},
    {{"elastic_job_workers", METRICS_GAUGE, NULL, "Workers of the present world"},
     NULL,
     "world_size"},
    {{"elastic_job_generation", METRICS_GAUGE, NULL, "Number of the present world"},
     NULL,
     "generation"},
    {{"elastic_job_leader_term", METRICS_GAUGE, NULL, "How often another node has taken over"},
     NULL,
     "term"},
    {{"elastic_job_failures_total", METRICS_COUNTER, NULL, "Failures of workers that count"},
     NULL,
     "restarts"},
    {{"elastic_job_steps_total", METRICS_COUNTER, NULL,
      "Steps in all worlds of this run of the job"},
     NULL,
     "steps"},
    {{"elastic_job_progress", METRICS_GAUGE, NULL, "Work that the program says is done"},
     "progress",
     "done"},
    {{"elastic_job_progress_goal", METRICS_GAUGE, NULL, "All the work of the program"},
     "progress",
     "total"},
    {{"elastic_job_lost_work_total", METRICS_COUNTER, NULL,
      "Work that had been done, and has to be made again after a failure"},
     "measures",
     "lost"},
    {{"elastic_job_cost_total", METRICS_COUNTER, NULL, "What the nodes have cost"},
     "cost",
     "so_far"},
    {{"elastic_job_cost_rate", METRICS_GAUGE, NULL, "What the nodes of now cost in 3600 seconds"},
     "cost",
     "per_hour"},
    {{"elastic_service_operations_total", METRICS_COUNTER, NULL,
      "New, updated and removed models and applications of a service"},
     "service",
     "operations"},
    {{"elastic_service_updates_total", METRICS_COUNTER, NULL, "Rolling updates of shards"},
     "service",
     "updates"},
    {{"elastic_service_disruptive_updates_total", METRICS_COUNTER, NULL,
      "Rolling updates of shards that had served before"},
     "service",
     "disruptive"},
    {{"elastic_service_route_changes_total", METRICS_COUNTER, NULL,
      "Changes of the routes of a shard"},
     "service",
     "routes"},
};

/* ---- families with labels -------------------------------------------------------------------- */

static void put_info(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {
        "elastic_job_info", METRICS_INFO, NULL,
        "Texts of a job: its name, the leading node, the release of slurm-elastic"};
    char name[VALUE_BYTES], leader[VALUE_BYTES], release[VALUE_BYTES];
    struct metrics_label labels[] = {{"name", text(answer, "name", name)},
                                     {"leader", text(answer, "leader", leader)},
                                     {"release", text(answer, "release", release)},
                                     {NULL, NULL}};

    sample(writer, &family, labels, 1);
}

static void put_phase(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {"elastic_job_phase", METRICS_GAUGE, NULL,
                                                 "1 for the phase that the job is in"};
    static const char *const phases[] = {"waiting", "running", "switching", "ending"};
    char phase[VALUE_BYTES];

    text(answer, "phase", phase);
    for (size_t i = 0; i < COUNT(phases); i++)
        labelled(writer, &family, "phase", phases[i], strcmp(phase, phases[i]) == 0);
}

static void put_worlds(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {
        "elastic_job_worlds_total", METRICS_COUNTER, NULL,
        "Worlds that have been formed, by what has made them necessary"};
    static const char *const kinds[] = {"start", "grow", "shrink", "fault", "stop"};
    json_object *worlds = member(member(answer, "measures"), "worlds");

    for (size_t i = 0; i < COUNT(kinds); i++)
        labelled(writer, &family, "kind", kinds[i], number(worlds, kinds[i]));
}

static void put_time(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {"elastic_job_time_seconds_total", METRICS_COUNTER,
                                                 "seconds",
                                                 "What the time of the job was used for"};
    json_object *time = member(member(answer, "measures"), "time");

    for (int i = 0; i < GOODPUT_USES; i++)
        labelled(writer, &family, "use", goodput_names[i], number(time, goodput_names[i]));
}

/* The numbers of an array of this length; false: it is another one. */
static bool doubles(json_object *object, const char *key, size_t count, double *values)
{
    size_t length;
    json_object *array = list(object, key, &length);

    for (size_t i = 0; length == count && i < count; i++) {
        json_object *value = json_object_array_get_idx(array, i);

        if (!json_object_is_type(value, json_type_int) &&
            !json_object_is_type(value, json_type_double))
            return false;
        values[i] = json_object_get_double(value);
    }
    return length == count;
}

static bool grows(const double *values, size_t count, bool strictly)
{
    for (size_t i = 1; i < count; i++)
        if (strictly ? !(values[i] > values[i - 1]) : !(values[i] >= values[i - 1]))
            return false;
    return true;
}

/* As they are written: two that differ by less would be one sample twice. */
static bool are_bounds(const double *bounds, size_t count)
{
    char text[METRICS_BOUND], before[METRICS_BOUND] = "";

    for (size_t i = 0; i < count; i++) {
        if (!isfinite(bounds[i]) || fabs(bounds[i]) > BOUND_MAX ||
            strcmp(metrics_bound(bounds[i], text), before) == 0)
            return false;
        snprintf(before, sizeof(before), "%s", text);
    }
    return true;
}

/* A leader of another release may have other bounds. */
static void put_pauses(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {
        "elastic_job_pause_seconds", METRICS_HISTOGRAM, "seconds",
        "From the hold of a world to the first step of the next one"};
    json_object *pauses = member(member(answer, "measures"), "pauses");
    double bounds[BUCKETS_MAX], counts[BUCKETS_MAX], all = number(pauses, "count"),
                                                     sum = number(pauses, "sum");
    size_t buckets;

    list(pauses, "bounds", &buckets);
    if (buckets == 0 || buckets > BUCKETS_MAX || isnan(sum) ||
        !doubles(pauses, "bounds", buckets, bounds) ||
        !doubles(pauses, "counts", buckets, counts) || !grows(bounds, buckets, true) ||
        !are_bounds(bounds, buckets) || !grows(counts, buckets, false) ||
        !(all >= counts[buckets - 1]))
        return;
    metrics_histogram(writer, &family, bounds, counts, (int)buckets, all, sum);
}

static void put_pools(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {"elastic_job_pool_nodes", METRICS_GAUGE, NULL,
                                                 "Extension nodes of a pool, in each state"};
    static const char *const states[] = {"pending", "booting", "ready"};
    size_t count;
    json_object *pools = list(answer, "pools", &count);

    for (size_t i = 0; i < least(count); i++) {
        json_object *pool = json_object_array_get_idx(pools, i);
        char name[VALUE_BYTES];

        for (size_t k = 0; k < COUNT(states) && !again(pools, i, "pool"); k++) {
            struct metrics_label labels[] = {
                {"pool", text(pool, "pool", name)}, {"state", states[k]}, {NULL, NULL}};

            sample(writer, &family, labels, number(pool, states[k]));
        }
    }
}

static void put_prices(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {"elastic_job_pool_price", METRICS_GAUGE, NULL,
                                                 "What a node of a pool costs in 3600 seconds"};
    size_t count;
    json_object *pools = list(answer, "pools", &count);

    for (size_t i = 0; i < least(count); i++) {
        json_object *pool = json_object_array_get_idx(pools, i);
        char name[VALUE_BYTES];

        if (!again(pools, i, "pool"))
            labelled(writer, &family, "pool", text(pool, "pool", name), number(pool, "price"));
    }
}

static void put_extensions(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {"elastic_job_extensions", METRICS_GAUGE, NULL,
                                                 "Extension jobs in each state"};
    static const char *const states[] = {"pending", "booting", "starting", "joined", "leaving"};
    int counts[COUNT(states)] = {0};
    size_t count;
    json_object *extensions = list(answer, "extensions", &count);
    char state[VALUE_BYTES];

    for (size_t i = 0; i < count && i < ENTRIES_MAX; i++) {
        text(json_object_array_get_idx(extensions, i), "state", state);
        for (size_t k = 0; k < COUNT(states); k++)
            counts[k] += strcmp(state, states[k]) == 0;
    }
    for (size_t k = 0; k < COUNT(states); k++)
        labelled(writer, &family, "state", states[k], counts[k]);
}

static void put_slurm(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {
        "elastic_job_slurm_requests_total", METRICS_COUNTER, NULL,
        "What the leader has asked of slurmctld: calls of libslurm, and runs of sbatch"};
    static const char *const ways[] = {"library", "sbatch"};
    json_object *slurm = member(member(answer, "measures"), "slurm");

    for (size_t i = 0; i < COUNT(ways); i++)
        labelled(writer, &family, "by", ways[i], number(slurm, ways[i]));
}

static bool one_of(const double *values, size_t count, double value)
{
    for (size_t i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

static void put_stragglers(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {
        "elastic_job_straggler_ratio", METRICS_GAUGE, "ratio",
        "A worker that is slower than the others: its own time for a step by theirs"};
    size_t count;
    json_object *stragglers = list(answer, "stragglers", &count);
    double ranks[LIST_MAX];

    for (size_t i = 0; i < least(count); i++) {
        json_object *one = json_object_array_get_idx(stragglers, i);
        char node[VALUE_BYTES], cause[VALUE_BYTES], rank[32];
        double value = number(one, "rank");
        struct metrics_label labels[] = {{"node", text(one, "node", node)},
                                         {"rank", rank},
                                         {"cause", text(one, "cause", cause)},
                                         {NULL, NULL}};

        ranks[i] = NAN;
        if (isnan(value) || value != floor(value) || value < 0 || value > UINT32_MAX ||
            one_of(ranks, i, value))
            continue;
        ranks[i] = value;
        snprintf(rank, sizeof(rank), "%.0f", value);
        sample(writer, &family, labels, number(one, "factor"));
    }
}

/* ---- roles ----------------------------------------------------------------------------------- */

static const struct {
    struct metrics_family family;
    const char *key;
} role_numbers[] = {
    {{"elastic_role_target", METRICS_GAUGE, NULL,
      "Replicas that a role should have. Of a world: nodes"},
     "target"},
    {{"elastic_role_ready", METRICS_GAUGE, NULL, "Replicas that are ready"}, "ready"},
    {{"elastic_role_min", METRICS_GAUGE, NULL, "Replicas that are guaranteed"}, "min"},
    {{"elastic_role_max", METRICS_GAUGE, NULL, "The most replicas that may be asked for"}, "max"},
};

static void put_role_number(struct metrics_writer *writer, json_object *answer, size_t which)
{
    size_t count;
    json_object *roles = list(member(answer, "roles"), "roles", &count);

    for (size_t i = 0; i < least(count); i++) {
        json_object *role = json_object_array_get_idx(roles, i);
        char name[VALUE_BYTES];

        if (!again(roles, i, "name"))
            labelled(writer, &role_numbers[which].family, "role", text(role, "name", name),
                     number(role, role_numbers[which].key));
    }
}

static const char *const replica_states[] = {"wanted", "placed",   "starting",
                                             "ready",  "draining", "failed"};

/* Replicas in each state, of those roles that get labels. */
struct tally {
    char roles[LIST_MAX][VALUE_BYTES];
    size_t role_count;
    int counts[LIST_MAX][COUNT(replica_states)];
};

static void count_replica(struct tally *tally, json_object *replica)
{
    char role[VALUE_BYTES], state[VALUE_BYTES];
    size_t of = 0;

    text(replica, "role", role);
    text(replica, "state", state);
    while (of < tally->role_count && strcmp(tally->roles[of], role) != 0)
        of++;
    for (size_t k = 0; of < tally->role_count && k < COUNT(replica_states); k++)
        tally->counts[of][k] += strcmp(state, replica_states[k]) == 0;
}

/* A leader may be hostile, and the time for all of them is short: each list is read once. */
static void put_replicas(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {"elastic_role_replicas", METRICS_GAUGE, NULL,
                                                 "Replicas in each state"};
    struct tally tally = {.role_count = 0};
    size_t count, replica_count;
    json_object *roles = list(member(answer, "roles"), "roles", &count);
    json_object *replicas = list(member(answer, "roles"), "replicas", &replica_count);

    for (size_t i = 0; i < least(count); i++)
        text(json_object_array_get_idx(roles, i), "name", tally.roles[tally.role_count++]);
    for (size_t i = 0; i < replica_count && i < ENTRIES_MAX; i++)
        count_replica(&tally, json_object_array_get_idx(replicas, i));
    for (size_t i = 0; i < tally.role_count; i++)
        for (size_t k = 0; k < COUNT(replica_states) && !again(roles, i, "name"); k++) {
            struct metrics_label labels[] = {
                {"role", tally.roles[i]}, {"state", replica_states[k]}, {NULL, NULL}};

            sample(writer, &family, labels, tally.counts[i][k]);
        }
}

static void put_epoch(struct metrics_writer *writer, json_object *answer)
{
    static const struct metrics_family family = {"elastic_roles_epoch", METRICS_GAUGE, NULL,
                                                 "It is larger after each change of the roles"};

    sample(writer, &family, NULL, number(member(answer, "roles"), "epoch"));
}

/* ---- all ------------------------------------------------------------------------------------- */

static void (*const families[])(struct metrics_writer *writer, json_object *answer) = {
    put_info,   put_phase,      put_worlds, put_time,       put_pauses,   put_pools,
    put_prices, put_extensions, put_slurm,  put_stragglers, put_replicas, put_epoch,
};

static void begin_job(struct metrics_writer *writer, const struct metrics_job *job, char id[32])
{
    snprintf(id, 32, "%u", job->id);
    writer->common[0] = (struct metrics_label){"jobid", id};
    writer->common[1] = (struct metrics_label){"user", job->user};
    writer->common_count = job->user != NULL ? 2 : 1;
}

/* Of a stream in memory. most SIZE_MAX: of any. */
static bool is_full(const struct metrics_writer *writer, size_t most)
{
    return most != SIZE_MAX && ftello(writer->out) > (off_t)most;
}

/* Until there are more bytes than most. */
static void put_jobs(struct metrics_writer *writer, const struct metrics_job *jobs, int count,
                     size_t most)
{
    char id[32];

    for (size_t k = 0; k < COUNT(numbers); k++)
        for (int i = 0; i < count && !is_full(writer, most); i++) {
            json_object *from = numbers[k].object != NULL
                                    ? member(jobs[i].answer, numbers[k].object)
                                    : jobs[i].answer;

            begin_job(writer, &jobs[i], id);
            sample(writer, &numbers[k].family, NULL, number(from, numbers[k].key));
        }
    for (size_t k = 0; k < COUNT(role_numbers); k++)
        for (int i = 0; i < count && !is_full(writer, most); i++) {
            begin_job(writer, &jobs[i], id);
            put_role_number(writer, jobs[i].answer, k);
        }
    for (size_t k = 0; k < COUNT(families); k++)
        for (int i = 0; i < count && !is_full(writer, most); i++) {
            begin_job(writer, &jobs[i], id);
            families[k](writer, jobs[i].answer);
        }
    writer->common_count = 0;
}

void metrics_jobs(struct metrics_writer *writer, const struct metrics_job *jobs, int count)
{
    put_jobs(writer, jobs, count, SIZE_MAX);
}

/* The text of these jobs, of which more than most is of no use. NULL: out of memory. */
static char *text_of(const struct metrics_job *jobs, int count, size_t most, size_t *size)
{
    char *text = NULL;
    struct metrics_writer writer = {.out = open_memstream(&text, size),
                                    .format = METRICS_PROMETHEUS};

    if (writer.out == NULL)
        return NULL;
    put_jobs(&writer, jobs, count, most);
    if (fclose(writer.out) == 0)
        return text;
    free(text);
    return NULL;
}

/* With the lines that all jobs share. More than most is as good as any. */
static size_t text_size(const struct metrics_job *job, size_t most)
{
    size_t size = 0;
    char *text = text_of(job, 1, most, &size);

    free(text);
    return text != NULL ? size : SIZE_MAX;
}

/* Those who say no more than their share come first, in their order. Returns how many these are. */
static int keep_short(struct metrics_job *jobs, int count, size_t share)
{
    struct metrics_job *left = calloc((size_t)count + 1, sizeof(*left));
    int kept = 0, gone = 0;

    for (int i = 0; left != NULL && i < count; i++) {
        if (text_size(&jobs[i], share) <= share)
            jobs[kept++] = jobs[i];
        else
            left[gone++] = jobs[i];
    }
    if (gone > 0)
        memcpy(jobs + kept, left, (size_t)gone * sizeof(*left));
    free(left);
    return kept;
}

char *metrics_jobs_text(struct metrics_job *jobs, int count, size_t most, int *shown)
{
    size_t size = 0;
    char *text = text_of(jobs, count, most, &size);

    *shown = count;
    if (text == NULL || size <= most)
        return text;
    free(text);
    *shown = keep_short(jobs, count, most / (size_t)count);
    return text_of(jobs, *shown, SIZE_MAX, &size);
}

void metrics_site(struct metrics_writer *writer, const struct metrics_site *site)
{
    static const struct metrics_family
        jobs = {"elastic_site_jobs", METRICS_GAUGE, NULL,
                "Elastic jobs that Slurm knows, without their extension jobs"},
        nodes = {"elastic_site_nodes", METRICS_GAUGE, NULL, "Nodes that elastic jobs have"},
        extensions = {"elastic_site_extensions", METRICS_GAUGE, NULL,
                      "Extension jobs of elastic jobs"},
        asked = {"elastic_exporter_jobs", METRICS_GAUGE, NULL,
                 "Running jobs by what their leaders have said to the exporter"},
        took = {"elastic_exporter_collect_seconds", METRICS_GAUGE, "seconds",
                "How long it took to ask Slurm and the leaders"};

    labelled(writer, &jobs, "state", "running", site->running);
    labelled(writer, &jobs, "state", "pending", site->pending);
    labelled(writer, &nodes, "kind", "base", site->base_nodes);
    labelled(writer, &nodes, "kind", "extension", site->extension_nodes);
    labelled(writer, &extensions, "state", "running", site->extensions);
    labelled(writer, &extensions, "state", "pending", site->extensions_pending);
    labelled(writer, &asked, "answer", "shown", site->shown);
    labelled(writer, &asked, "answer", "silent", site->silent);
    labelled(writer, &asked, "answer", "not_asked", site->left_out);
    sample(writer, &took, NULL, site->seconds);
}
