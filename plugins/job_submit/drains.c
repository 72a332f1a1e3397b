/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells elastic jobs that one of their nodes is drained, or no longer (drains.h). */
#include "plugins/slurmctld.h"

#include "plugins/job_submit/drains.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "lib/admission.h"
#include "lib/drain_notices.h"

/* The loader binds data, unlike functions, when it loads the plugin. Weak symbols cannot fail. */
#pragma weak job_list
#pragma weak last_node_update
#pragma weak node_record_count
#pragma weak node_record_table_ptr
#pragma weak slurm_conf
#pragma weak slurmctld_config

struct drains {
    struct drain_notices notices;
    bitstr_t *drained; /* of each node, when that was last seen; NULL: not yet */
    time_t configured; /* then */
    time_t updated;    /* last_node_update then */
    bool settled;      /* … and no node can have changed in the rest of that second */
    double now;
};

/* Slurm frees what this file reads when it ends, and not under its locks. */
static bool is_ending(void)
{
    return slurmctld_config.shutdown_time != 0;
}

/* What a leader takes for a node that is to be left (slurm_client_unwell()), but for a node that is
 * down: its members are silent. */
static bool is_drained(const node_record_t *node)
{
    return node && (node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL)) != 0;
}

static bool is_elastic(const job_record_t *record)
{
    const struct admission_env env = {record->spank_job_env, record->spank_job_env_size};

    return IS_JOB_RUNNING(record) &&
           admission_role_of_job(&env, record->comment) != ADMISSION_RIGID;
}

struct concerned {
    struct drains *drains;
    bitstr_t *changed;
};

static int add_if_concerned(void *item, void *arg)
{
    const job_record_t *record = item;
    const struct concerned *concerned = arg;

    if (IS_JOB_RUNNING(record) && record->node_bitmap &&
        bit_size(record->node_bitmap) == bit_size(concerned->changed) &&
        bit_overlap_any(record->node_bitmap, concerned->changed) && is_elastic(record))
        drain_notices_add(&concerned->drains->notices, record->job_id, concerned->drains->now);
    return 0;
}

/* Numbers of nodes mean something else when slurmctld has been configured again. Then, and at the
 * start, each drained node is news: to look once more is what its jobs do then. */
static bool is_comparable(const struct drains *drains)
{
    return drains->drained && drains->configured == slurm_conf.last_update &&
           bit_size(drains->drained) == node_record_count;
}

/* Called with nodes and jobs locked. */
static void compare(struct drains *drains)
{
    bitstr_t *drained, *changed;
    bool news = false, comparable = is_comparable(drains);

    drains->updated = last_node_update;
    drains->settled = time(NULL) > last_node_update;
    if (node_record_count <= 0)
        return;
    drained = bit_alloc(node_record_count);
    changed = bit_alloc(node_record_count);
    for (int i = 0; i < node_record_count; i++) {
        bool is = is_drained(node_record_table_ptr[i]);

        if (is)
            bit_set(drained, i);
        if (is != (comparable && bit_test(drains->drained, i))) {
            bit_set(changed, i);
            news = true;
        }
    }
    FREE_NULL_BITMAP(drains->drained);
    drains->drained = drained;
    drains->configured = slurm_conf.last_update;
    if (news && job_list)
        list_for_each(job_list, add_if_concerned,
                      &(struct concerned){.drains = drains, .changed = changed});
    FREE_NULL_BITMAP(changed);
}

static void find_concerned(struct drains *drains)
{
    const slurmctld_lock_t read = {.conf = READ_LOCK, .job = READ_LOCK, .node = READ_LOCK};

    lock_slurmctld(read);
    if (!is_ending())
        compare(drains);
    unlock_slurmctld(read);
}

/* The job may have ended meanwhile. */
static void tell(uint32_t job_id)
{
    const slurmctld_lock_t write = {
        .conf = READ_LOCK, .job = WRITE_LOCK, .node = READ_LOCK, .fed = READ_LOCK};
    job_record_t *record;

    lock_slurmctld(write);
    record = is_ending() ? NULL : find_job_record(job_id);
    if (record && is_elastic(record))
        job_signal(record, DRAIN_NOTICES_SIGNAL, KILL_STEPS_ONLY | KILL_NO_SIBS, 0, false);
    unlock_slurmctld(write);
    verbose("job_submit/elastic: job %u is told that one of its nodes is drained, or no longer",
            job_id);
}

void drains_look(struct drains *drains, double now)
{
    uint32_t job;

    drains->now = now;
    if (last_node_update != drains->updated || !drains->settled)
        find_concerned(drains);
    while (!is_ending() && (job = drain_notices_next(&drains->notices, now)))
        tell(job);
}

struct drains *drains_create(void)
{
    return calloc(1, sizeof(struct drains));
}

void drains_destroy(struct drains *drains)
{
    if (!drains)
        return;
    FREE_NULL_BITMAP(drains->drained);
    drain_notices_clear(&drains->notices);
    free(drains);
}
