/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs and partitions from slurmctld's structures (base_job.h). */
#include "plugins/slurmctld.h"

#include "plugins/job_submit/base_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The loader binds data, unlike functions, when it loads the plugin. Weak symbols cannot fail. */
#pragma weak acct_db_conn
#pragma weak default_part_loc
#pragma weak job_list
#pragma weak node_record_table_ptr
#pragma weak slurm_conf

time_t base_job_configured(void)
{
    return slurm_conf.last_update;
}

bool base_job_is_admin(uint32_t uid)
{
    return validate_operator((uid_t)uid);
}

static int minutes_left(const job_record_t *record, time_t now)
{
    if (record->time_limit == INFINITE || record->time_limit == NO_VAL)
        return ADMISSION_UNLIMITED;
    return record->end_time <= now ? 0 : (int)((record->end_time - now) / 60);
}

/* Nodes of the job that slurmctld itself has as out of service. */
static int count_lost(const job_record_t *record)
{
    int last = record->node_bitmap ? (int)bit_fls(record->node_bitmap) : -1, count = 0;

    for (int i = last >= 0 ? (int)bit_ffs(record->node_bitmap) : 0; i <= last; i++) {
        const node_record_t *node = node_record_table_ptr[i];

        count += bit_test(record->node_bitmap, i) && node &&
                 (IS_NODE_DOWN(node) || IS_NODE_DRAIN(node) || IS_NODE_FAIL(node) ||
                  IS_NODE_NO_RESPOND(node));
    }
    return count;
}

void base_job_read(struct job_record *record, time_t now, struct admission_job *job)
{
    const struct admission_env env = {record->spank_job_env, record->spank_job_env_size};

    *job = (struct admission_job){
        .id = record->job_id,
        .restarts = record->restart_cnt,
        .uid = record->user_id,
        .known = true,
        .pending = IS_JOB_PENDING(record),
        .running = IS_JOB_RUNNING(record) || IS_JOB_SUSPENDED(record),
        .role = admission_role_of_job(&env, record->comment),
        .extends = admission_base_of(&env) ? admission_base_of(&env)
                                           : admission_marked_base(record->comment),
        .env = env,
        .name = record->name,
        .nodes = record->nodes,
        .features = record->details ? record->details->features : NULL,
        .node_count = (int)record->node_cnt,
        .lost = count_lost(record),
        .whole_nodes = record->details && (record->details->whole_node & WHOLE_NODE_REQUIRED),
        .minutes_left = minutes_left(record, now),
    };
}

void base_job_find(uint32_t job_id, time_t now, struct admission_job *job)
{
    job_record_t *record = job_id ? find_job_record(job_id) : NULL;

    *job = (struct admission_job){.id = job_id};
    if (record)
        base_job_read(record, now, job);
}

struct sibling_search {
    const struct conf *conf;
    const struct admission_job *base;
    int pool;    /* of the extension that asks */
    int unnamed; /* of one that names none */
    struct admission_siblings *siblings;
    struct admitted *admitted;
    int64_t now; /* in microseconds */
    bool names_nodes;
    bitstr_t *nodes; /* of those that run, if names_nodes; NULL: none yet */
    /* Its jobs may share nodes with each other, and a node counts once. */
    bool shares;
    /* Nodes that are counted already: of the job, and of that pool. */
    bitstr_t *counted, *counted_in_pool;
};

static int succession(const part_record_t *part)
{
    int boot = part && part->resume_timeout != NO_VAL16 ? part->resume_timeout
                                                        : slurm_conf.resume_timeout;

    return admission_succession(boot == INFINITE16 || boot == NO_VAL16 ? 0 : boot);
}

static bool ends_soon(const job_record_t *record, const struct sibling_search *search)
{
    int minutes = search->base->minutes_left;

    return admission_ends_soon(record->end_time - search->now / 1000000,
                               record->end_time - record->start_time, succession(record->part_ptr),
                               minutes == ADMISSION_UNLIMITED ? INT64_MAX : minutes * INT64_C(60));
}

/* Extensions of an earlier run count too, until they have gone. */
static bool is_marked(const job_record_t *record, const struct sibling_search *search)
{
    return record->user_id == search->base->uid &&
           admission_marked_base(record->comment) == search->base->id;
}

/* No user writes the administrators' comment: job_submit has, when it let the extension in. Where
 * somebody else has one there, the environment is searched. */
static bool is_no_base(const job_record_t *record)
{
    struct admission_env env = {record->spank_job_env, record->spank_job_env_size};

    return admission_is_marked(record->admin_comment) || admitted_number(record->admin_comment) ||
           admission_role(&env) != ADMISSION_BASE;
}

static bool is_sibling(const job_record_t *record)
{
    return (IS_JOB_PENDING(record) || IS_JOB_RUNNING(record) || IS_JOB_SUSPENDED(record)) &&
           record->preempt_time == 0 && is_no_base(record);
}

/* Add the nodes of a job to those that are counted; returns how many are new. */
static int count_new(const struct sibling_search *search, bitstr_t **counted,
                     const job_record_t *record)
{
    int nodes = (int)record->node_cnt;

    if (!search->shares || !record->node_bitmap)
        return nodes;
    if (!*counted) {
        *counted = bit_copy(record->node_bitmap);
        return nodes;
    }
    nodes -= (int)bit_overlap(*counted, record->node_bitmap);
    bit_or(*counted, record->node_bitmap);
    return nodes > 0 ? nodes : 0;
}

/* A user fills the environments of all, and slurmctld waits: they are not searched where job_submit
 * has noted the pool, else once. */
static int pool_of(const job_record_t *record, const struct sibling_search *search)
{
    struct admission_env env = {record->spank_job_env, record->spank_job_env_size};

    if (admission_is_marked(record->admin_comment))
        return admission_pool_noted(search->conf, record->admin_comment);
    return admission_pool_or(search->conf, &env, search->base, search->unnamed);
}

static void count_waiting(const job_record_t *record, struct sibling_search *search)
{
    int pool = pool_of(record, search);
    int nodes = record->details ? admission_most_nodes((int)record->details->min_nodes,
                                                       (int)record->details->max_nodes,
                                                       (int)record->details->num_tasks)
                                : 1;

    search->siblings->node_count += nodes;
    if (pool >= 0 && pool == search->pool)
        search->siblings->pool_count += nodes;
    if (!admission_is_fallback(search->conf, pool))
        search->siblings->waiting_count += nodes;
}

static void count_running(const job_record_t *record, struct sibling_search *search)
{
    int pool = pool_of(record, search);

    search->siblings->node_count += count_new(search, &search->counted, record);
    if (pool >= 0 && pool == search->pool)
        search->siblings->pool_count += count_new(search, &search->counted_in_pool, record);
    if (admission_is_replaced(search->conf, pool))
        search->siblings->replaced_count += record->node_cnt;
}

/* As a set: the names of the nodes of very many jobs are long, and each node is named once. */
static void add_nodes(const job_record_t *record, struct sibling_search *search)
{
    if (!search->names_nodes || !record->node_bitmap)
        return;
    if (!search->nodes)
        search->nodes = bit_copy(record->node_bitmap);
    else if (bit_size(search->nodes) == bit_size(record->node_bitmap))
        bit_or(search->nodes, record->node_bitmap);
}

static char *names_of(bitstr_t *nodes)
{
    char *text = nodes ? bitmap2node_name(nodes) : NULL;
    char *names = text ? strdup(text) : NULL;

    xfree(text);
    return names;
}

static int add_sibling(void *item, void *arg)
{
    const job_record_t *record = item;
    struct sibling_search *search = arg;

    if (!is_marked(record, search))
        return 0;
    admitted_seen(search->admitted, admitted_number(record->admin_comment), search->now);
    if (!is_sibling(record))
        return 0;
    if (IS_JOB_PENDING(record)) {
        count_waiting(record, search);
        return 0;
    }
    if (!ends_soon(record, search))
        count_running(record, search);
    add_nodes(record, search);
    return 0;
}

void base_job_siblings(const struct conf *conf, const struct admission_job *base, int pool,
                       struct admitted *admitted, int64_t now, struct admission_siblings *siblings)
{
    const struct admission_env unnamed = {0};
    struct sibling_search search = {.conf = conf,
                                    .base = base,
                                    .pool = pool,
                                    .unnamed = admission_pool(conf, &unnamed, base),
                                    .siblings = siblings,
                                    .admitted = admitted,
                                    .now = now,
                                    .names_nodes = admission_needs_nodes(base),
                                    .shares = admission_has_roles(&base->env)};
    const job_record_t *record = base->known ? find_job_record(base->id) : NULL;

    *siblings = (struct admission_siblings){0};
    if (record)
        count_new(&search, &search.counted, record); /* the caller counts these */
    if (base->known && job_list)
        list_for_each(job_list, add_sibling, &search);
    FREE_NULL_BITMAP(search.counted);
    FREE_NULL_BITMAP(search.counted_in_pool);
    siblings->nodes = names_of(search.nodes);
    FREE_NULL_BITMAP(search.nodes);
    siblings->node_count += admitted_nodes(admitted, base->id, base->restarts, now);
    if (pool >= 0)
        siblings->pool_count += admitted_pool_nodes(admitted, base->id, base->restarts, pool, now);
}

/* Where a QOS may override MaxNodes of a partition, MaxNodes is no limit. */
static uint32_t nodes_of(const part_record_t *part)
{
    if (slurm_conf.accounting_storage_enforce & ACCOUNTING_ENFORCE_QOS)
        return part->total_nodes;
    return MIN(part->total_nodes, part->max_nodes);
}

static void compare_partition(const part_record_t *part, int *most, const char **name)
{
    int nodes = (int)nodes_of(part);

    if (nodes <= *most)
        return;
    *most = nodes;
    *name = part->name;
}

bool base_job_partition_exists(const char *name)
{
    return find_part_record((char *)name) != NULL;
}

int base_job_partition_nodes(const char *partitions, const char **name)
{
    int most = ADMISSION_UNSET;
    char *list, *rest, *word;

    *name = NULL;
    if (!partitions) {
        if (default_part_loc)
            compare_partition(default_part_loc, &most, name);
        return most;
    }
    list = rest = xstrdup(partitions);
    while ((word = strsep(&rest, ","))) {
        part_record_t *part = find_part_record(word);
        if (part)
            compare_partition(part, &most, name);
    }
    xfree(list);
    return most;
}

/* Where Slurm does not count memory, slurm.conf need not say what a node has. */
static void compare_node(const node_record_t *node, struct slots_size *size)
{
    const config_record_t *config = node->config_ptr;
    int64_t memory = (int64_t)MAX(node->real_memory, config ? config->real_memory : 0);

    size->cpus = MAX(size->cpus, MAX(node->cpus, config ? config->cpus : 0));
    if (slurm_conf.select_type_param & COUNTS_MEMORY)
        size->memory = MAX(size->memory, memory);
}

static void compare_nodes(const part_record_t *part, struct slots_size *size)
{
    for (int i = 0; part->node_bitmap && i < bit_size(part->node_bitmap); i++) {
        const node_record_t *node = bit_test(part->node_bitmap, i) ? node_record_table_ptr[i]
                                                                   : NULL;
        if (node)
            compare_node(node, size);
    }
}

/* All nodes of a partition are looked at: each partition once, and not for ever. */
#define PARTITIONS_MAX 32

bool base_job_partition_node(const char *partitions, struct slots_size *size)
{
    const part_record_t *seen[PARTITIONS_MAX];
    int count = 0;
    bool shares = false;
    char *list, *rest, *word;

    *size = (struct slots_size){0};
    if (xstrcmp(slurm_conf.select_type, "select/linear") == 0)
        return true;
    list = rest = xstrdup(partitions);
    while ((word = strsep(&rest, ",")) && count < PARTITIONS_MAX) {
        const part_record_t *part = find_part_record(word);
        int i = 0;

        while (i < count && seen[i] != part)
            i++;
        if (!part || i < count)
            continue;
        seen[count++] = part;
        compare_nodes(part, size);
        shares |= part->max_share != 0; /* 0: OverSubscribe=EXCLUSIVE */
    }
    /* Who names so many has to be let in unseen. */
    if (count == PARTITIONS_MAX)
        *size = (struct slots_size){0};
    xfree(list);
    return !shares;
}

static int less_minutes(int most, uint32_t limit)
{
    return limit != INFINITE && limit != NO_VAL && limit < (uint32_t)most ? (int)limit : most;
}

int base_job_most_minutes(const char *partition, const char *qos)
{
    const part_record_t *part = partition ? find_part_record((char *)partition) : default_part_loc;
    slurmdb_qos_rec_t named = {.name = (char *)qos}, *found = NULL;
    assoc_mgr_lock_t locks = {.qos = READ_LOCK};
    int most = ADMISSION_UNLIMITED;

    if (part)
        most = less_minutes(most, part->max_time);
    /* Without the lock sacctmgr may just remove that QOS. */
    assoc_mgr_lock(&locks);
    if (part && part->qos_ptr)
        most = less_minutes(most, part->qos_ptr->max_wall_pj);
    if (qos && assoc_mgr_fill_in_qos(acct_db_conn, &named, 0, &found, true) == SLURM_SUCCESS &&
        found)
        most = less_minutes(most, found->max_wall_pj);
    assoc_mgr_unlock(&locks);
    return most;
}
