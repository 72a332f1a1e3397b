/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs from slurmctld's structures (jobs.h). */
#include "plugins/select/compat.h"

#include "plugins/select/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/admission.h"
#include "plugins/select/resources.h"

#pragma weak job_list
#pragma weak slurm_conf

static struct admission_env env_of(const job_record_t *job)
{
    return (struct admission_env){job->spank_job_env, job->spank_job_env_size};
}

enum placement_kind jobs_kind(const job_record_t *job)
{
    const struct admission_env env = env_of(job);

    switch (admission_role_of_job(&env, job->comment)) {
    case ADMISSION_BASE:
        return PLACEMENT_BASE;
    case ADMISSION_EXTENSION:
        return PLACEMENT_EXTENSION;
    case ADMISSION_RIGID:
        break;
    }
    return PLACEMENT_RIGID;
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
    if (base == NULL || base->user_id != job->user_id || base->node_bitmap == NULL ||
        (!IS_JOB_RUNNING(base) && !IS_JOB_SUSPENDED(base)))
        return NULL;
    return base;
}

bool jobs_has_roles(const job_record_t *job)
{
    const job_record_t *base = jobs_base(job);
    const struct admission_env env = env_of(job);

    return admission_has_roles(&env) ||
           (base != NULL && admission_has_roles(&(struct admission_env){base->spank_job_env,
                                                                        base->spank_job_env_size}));
}

/* Without the association manager's lock, as preempt/qos reads the same record in the same call. A
 * QOS that is removed is freed only after slurmctld has taken it from all jobs. It does so under
 * the write lock for jobs; the caller has a lock for jobs. */
int64_t jobs_priority(const job_record_t *job)
{
    if (slurm_conf.preempt_type != NULL && strstr(slurm_conf.preempt_type, "qos") != NULL)
        return job->qos_ptr != NULL ? (int64_t)((slurmdb_qos_rec_t *)job->qos_ptr)->priority : 0;
    return job->part_ptr != NULL ? (int64_t)job->part_ptr->priority_tier : 0;
}

/* ---- those that run -------------------------------------------------------------------------- */

struct entry {
    uint32_t id, base; /* base: of an extension, else 0 */
    bool is_extension; /* its base may be gone */
    bitstr_t *bitmap;  /* its nodes, as it began */
    int nodes;
    int extended;                 /* of a base: nodes that it has by its extensions alone */
    struct placement_claim claim; /* of a base */
};

/* Slurm's plugin calls have no cookie. They are made under slurmctld's locks. */
static struct entry *running; /* ids ascend */
static int running_count, running_room, extension_count;
static struct placement_claim *claims; /* room for as many */
static bool reads;                     /* all are added: their extensions are counted at the end */

static int find_running(uint32_t id)
{
    int low = 0, high = running_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (running[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *entry_of(uint32_t id)
{
    int at = find_running(id);

    return at < running_count && running[at].id == id ? &running[at] : NULL;
}

/* Extensions may share a node with one another and with their base. It counts once. */
static int extended_nodes(const struct entry *base)
{
    bitstr_t *all = bit_copy(base->bitmap);
    int count;

    for (int i = 0; i < running_count; i++)
        if (running[i].base == base->id && bit_size(running[i].bitmap) == bit_size(all))
            bit_or(all, running[i].bitmap);
    count = bit_set_count(all) - base->nodes;
    bit_free(all);
    return count;
}

static void set_extended(struct entry *base, int extended)
{
    base->claim.growth -= extended - base->extended;
    base->extended = extended;
}

static void count_extensions(struct entry *base)
{
    if (!reads)
        set_extended(base, extended_nodes(base));
}

/* After an extension has begun or ended. */
static void count_for_base(uint32_t id)
{
    struct entry *base = id != 0 ? entry_of(id) : NULL;

    if (base != NULL)
        count_extensions(base);
}

/* The same for all at once. One after the other would take the square of their number. */
static void count_all(void)
{
    bitstr_t **all = calloc((size_t)running_count + 1, sizeof(*all));

    for (int i = 0; i < running_count && all != NULL; i++) {
        const struct entry *base = running[i].base != 0 ? entry_of(running[i].base) : NULL;
        bitstr_t **nodes = base != NULL ? &all[base - running] : NULL;

        if (base == NULL || bit_size(running[i].bitmap) != bit_size(base->bitmap))
            continue;
        if (*nodes == NULL)
            *nodes = bit_copy(base->bitmap);
        bit_or(*nodes, running[i].bitmap);
    }
    for (int i = 0; i < running_count && all != NULL; i++)
        if (all[i] != NULL) {
            set_extended(&running[i], bit_set_count(all[i]) - running[i].nodes);
            bit_free(all[i]);
        }
    free(all);
}

static int make_room(void)
{
    size_t count = 2 * (size_t)running_count + 16;
    struct placement_claim *room;
    struct entry *entries;

    if (running_count < running_room)
        return 0;
    entries = realloc(running, count * sizeof(*running));
    if (entries != NULL)
        running = entries;
    room = entries != NULL ? realloc(claims, count * sizeof(*claims)) : NULL;
    if (room == NULL)
        return -1;
    claims = room;
    running_room = (int)count;
    return 0;
}

void jobs_add(const job_record_t *job)
{
    enum placement_kind kind = jobs_kind(job);
    struct entry entry = {.id = job->job_id};
    const job_record_t *base;
    int at = find_running(job->job_id);

    /* Without memory the job is not seen by other jobs that start; nothing else depends on it. */
    if (kind == PLACEMENT_RIGID || job->node_bitmap == NULL || bit_ffs(job->node_bitmap) < 0 ||
        entry_of(job->job_id) != NULL || make_room() < 0)
        return;
    entry.bitmap = bit_copy(job->node_bitmap);
    entry.nodes = bit_set_count(entry.bitmap); /* node_cnt comes later */
    entry.is_extension = kind == PLACEMENT_EXTENSION;
    if (kind == PLACEMENT_EXTENSION && (base = jobs_base(job)) != NULL)
        entry.base = base->job_id;
    if (kind == PLACEMENT_BASE)
        entry.claim = (struct placement_claim){(int)bit_ffs(job->node_bitmap),
                                               jobs_max(job) - entry.nodes};
    if (kind == PLACEMENT_BASE)
        count_extensions(&entry);
    memmove(running + at + 1, running + at, (size_t)(running_count - at) * sizeof(*running));
    running[at] = entry;
    running_count++;
    extension_count += entry.is_extension;
    count_for_base(entry.base);
}

void jobs_remove(const job_record_t *job)
{
    struct entry *entry = entry_of(job->job_id);
    uint32_t base;

    if (entry == NULL)
        return;
    base = entry->base;
    bit_free(entry->bitmap);
    running_count--;
    extension_count -= entry->is_extension;
    memmove(entry, entry + 1, (size_t)(running + running_count - entry) * sizeof(*running));
    count_for_base(base);
}

void jobs_forget(void)
{
    for (int i = 0; i < running_count; i++)
        bit_free(running[i].bitmap);
    free(running);
    free(claims);
    running = NULL;
    claims = NULL;
    running_count = running_room = extension_count = 0;
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
    reads = true;
    if (job_list != NULL)
        list_for_each(job_list, add_if_running, NULL);
    reads = false;
    count_all();
}

enum placement_kind jobs_running_kind(const job_record_t *job)
{
    const struct entry *entry = entry_of(job->job_id);

    if (entry == NULL)
        return PLACEMENT_RIGID;
    return entry->is_extension ? PLACEMENT_EXTENSION : PLACEMENT_BASE;
}

bool jobs_is_extension(const job_record_t *job)
{
    const struct entry *entry = entry_of(job->job_id);

    return entry != NULL && entry->is_extension;
}

bool jobs_have_extensions(void)
{
    return extension_count > 0;
}

/* A base with those of its extensions that may leave as well. */
struct united {
    bitstr_t *nodes; /* NULL: no extension has been looked at */
    bool known;      /* what the base has */
    struct resources resources;
};

/* Add the nodes of an extension that count as its base's. */
static void add_counting(const job_record_t *extension, struct united *base)
{
    const job_resources_t *its = extension->job_resrcs;
    uint32_t number = 0;
    int last;

    if (!base->known || its == NULL || its->node_bitmap == NULL ||
        bit_size(its->node_bitmap) != bit_size(base->nodes))
        return;
    last = (int)bit_fls(its->node_bitmap);
    for (int i = (int)bit_ffs(its->node_bitmap); i >= 0 && i <= last; i++) {
        if (!bit_test(its->node_bitmap, i))
            continue;
        if (resources_match(extension, number, &base->resources))
            bit_set(base->nodes, i);
        number++;
    }
}

/* By the bases' place among those that run. A node that jobs share counts once. */
static void unite(job_record_t *const *jobs, int count, struct united *bases)
{
    for (int i = 0; i < count; i++) {
        const struct entry *entry = entry_of(jobs[i]->job_id);
        uint32_t id = entry != NULL ? entry->base : 0;
        const struct entry *above = id != 0 ? entry_of(id) : NULL;
        const job_record_t *base = above != NULL ? find_job_record(id) : NULL;
        struct united *united = above != NULL ? &bases[above - running] : NULL;

        if (base == NULL || base->node_bitmap == NULL)
            continue;
        if (united->nodes == NULL) {
            united->nodes = bit_copy(base->node_bitmap);
            united->known = resources_of(base, &united->resources);
        }
        add_counting(jobs[i], united);
    }
}

int jobs_extended(job_record_t *const *jobs, int count, int *extended)
{
    struct united *bases = calloc((size_t)running_count + 1, sizeof(*bases));

    if (bases == NULL)
        return -1;
    unite(jobs, count, bases);
    for (int i = 0; i < count; i++) {
        const struct entry *entry = entry_of(jobs[i]->job_id);
        bitstr_t *all = entry != NULL ? bases[entry - running].nodes : NULL;

        extended[i] = all != NULL ? bit_set_count(all) - bit_set_count(jobs[i]->node_bitmap) : 0;
    }
    for (int i = 0; i < running_count; i++)
        if (bases[i].nodes != NULL)
            bit_free(bases[i].nodes);
    free(bases);
    return 0;
}

static void add_nodes(const struct placement_map *map, const job_record_t *job, bool *nodes)
{
    int last = bit_fls(job->node_bitmap);

    for (int i = bit_ffs(job->node_bitmap); i >= 0 && i <= last && i < map->node_count; i++)
        if (bit_test(job->node_bitmap, i))
            nodes[i] = true;
}

int jobs_world(const struct placement_map *map, const job_record_t *base, bool *nodes)
{
    const struct entry *entry = entry_of(base->job_id);

    add_nodes(map, base, nodes);
    for (int i = 0; i < running_count; i++) {
        const job_record_t *job = running[i].base == base->job_id ? find_job_record(running[i].id)
                                                                  : NULL;

        if (job != NULL && job->node_bitmap != NULL)
            add_nodes(map, job, nodes);
    }
    return entry != NULL && entry->claim.growth > 0 ? entry->claim.growth : 0;
}

void jobs_keep(const struct placement_map *map, const job_record_t *base, bool *free_nodes)
{
    int count = 0;

    for (int i = 0; i < running_count; i++)
        if (running[i].base == 0 && running[i].claim.growth > 0 &&
            running[i].claim.node < map->node_count &&
            (base == NULL || running[i].id != base->job_id))
            claims[count++] = running[i].claim;
    placement_keep(map, claims, count, free_nodes);
}

/* ---- distance -------------------------------------------------------------------------------- */

#define LEAVES_MAX 64 /* leaf switches of a base that are looked at */

/* One node of the base on each of the base's leaf switches. */
static int on_each_leaf(const struct placement_map *map, const job_record_t *base, int *nodes)
{
    int count = 0, first = (int)bit_ffs(base->node_bitmap), last = (int)bit_fls(base->node_bitmap);

    for (int i = first; i >= 0 && i <= last && count < LEAVES_MAX; i++) {
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
    int nodes[LEAVES_MAX], count, last = (int)bit_fls(job->node_bitmap), most = 0;

    if (base == NULL || bit_size(base->node_bitmap) != map->node_count ||
        bit_size(job->node_bitmap) != map->node_count)
        return 0;
    count = on_each_leaf(map, base, nodes);
    for (int i = (int)bit_ffs(job->node_bitmap); i >= 0 && i <= last && count > 0; i++) {
        int least = INT32_MAX;

        for (int k = 0; k < count && bit_test(job->node_bitmap, i); k++) {
            int distance = placement_distance(map, i, nodes[k]);

            least = distance < least ? distance : least;
        }
        most = least != INT32_MAX && least > most ? least : most;
    }
    return most;
}
