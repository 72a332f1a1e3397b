/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ledger of the job (costs.h). */
#include "agent/leader/costs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/report.h"
#include "agent/leader/slurm_look.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/ledger.h"

/* Reports of its work from which the speed of a world is known. */
#define MEASURED_REPORTS 5
/* Seconds between two copies of the ledger in the state directory, if nothing else is new. */
#define SAVE_EVERY 60.0

struct costs {
    struct ledger ledger;
    bool loaded;  /* from the state directory, if it was there */
    bool kept;    /* … where it is */
    double saved; /* when; < 0: it has changed since */
    struct sample {
        int generation, reports; /* since then */
        double done, at, heard;
    } sample; /* of the work, when it was measured last */
};

struct ledger *costs_ledger(const struct leader *leader)
{
    return &leader->costs->ledger;
}

/* ---- what is measured ------------------------------------------------------------------------ */

/* How much has been done since the last measurement, by how many nodes. A program reports whole
 * steps: what a world does from one report to the next is chance. */
void costs_measure(struct leader *leader, double *done, double *total)
{
    struct costs *own = leader->costs;
    const struct world *world = change_world(leader->change);
    int generation = change_generation(leader->change);
    double at;

    *done = *total = 0;
    if (!report_work(leader, done, total, &at))
        return;
    if (own->sample.generation == generation && *done >= own->sample.done) {
        own->sample.reports += at > own->sample.heard;
        own->sample.heard = at;
        if (own->sample.reports < MEASURED_REPORTS || world == NULL)
            return;
        speed_add(&own->ledger.speed, world->node_count, *done - own->sample.done,
                  at - own->sample.at);
    }
    own->sample = (struct sample){.generation = generation, .done = *done, .at = at, .heard = at};
}

static bool is_other(double a, double b)
{
    return a < b || a > b;
}

void costs_learn_pools(struct leader *leader)
{
    for (int i = 0; i < job_pools_count(leader); i++) {
        struct job_pool *own = job_pools_at(leader, i);
        struct ledger_pool *pool = ledger_pool(&leader->costs->ledger, own->pool->name);

        if (pool == NULL)
            continue;
        if (own->boot >= 0 || is_other(pool->refused.after, own->refused.after) ||
            is_other(pool->failed.after, own->failed.after))
            leader->costs->saved = -1;
        if (own->boot >= 0)
            pool->boot = pools_boot(pool->boot, own->boot);
        own->boot = -1;
        own->boot_known = pool->boot;
        pool->refused = own->refused;
        pool->failed = own->failed;
        snprintf(pool->why, sizeof(pool->why), "%s", own->why);
    }
}

/* The leader before has left pools in peace. */
static void go_on(struct leader *leader)
{
    struct ledger *ledger = &leader->costs->ledger;

    for (int i = 0; i < ledger->pool_count; i++) {
        const struct ledger_pool *pool = &ledger->pools[i];
        struct job_pool *own = job_pools_named(leader, pool->name);

        if (own == NULL)
            continue;
        retry_go_on(&own->refused, &pool->refused, leader_now(leader));
        retry_go_on(&own->failed, &pool->failed, leader_now(leader));
        snprintf(own->why, sizeof(own->why), "%s", pool->why);
    }
}

/* ---- what is spent --------------------------------------------------------------------------- */

void costs_account(struct leader *leader, const struct pools_input *in)
{
    struct spending *spending = &leader->costs->ledger.spending;
    bool changed = false;

    if (spending->count == 0)
        spending->at = in->now;
    for (int i = -1; i < in->pool_count; i++) {
        const struct pools_pool *pool = i < 0 ? NULL : &in->pools[i];
        const char *name = pool != NULL ? pool->name : LEDGER_BASE;
        double price = pool != NULL ? pool->price : in->base_price;
        int nodes = pool != NULL ? pool->ready + pool->booting : leader->options->base_nodes;
        const struct spending_pool *known = spending_find(spending, name);

        if (known != NULL && known->nodes == nodes && !is_other(known->price, price))
            continue;
        spending_set(spending, in->now, name, nodes, price, pool != NULL ? pool->suspend : 0);
        changed = true;
    }
    spending_run(spending, in->now);
    if (changed)
        leader->costs->saved = -1;
}

/* A job without prices, whose pools give nodes, and without work that is reported has nothing to
 * keep. */
static bool keeps_ledger(const struct leader *leader)
{
    const struct ledger *ledger = &leader->costs->ledger;
    bool costs = false;

    for (int i = 0; i < ledger->spending.count; i++)
        costs = costs || ledger->spending.pools[i].price > 0 || ledger->spending.pools[i].cost > 0;
    return costs || leader->costs->kept || ledger->memory.exhausted ||
           slurm_look_deadline(leader) > 0 || job_pools_any_paused(leader);
}

void costs_save(struct leader *leader)
{
    const struct ledger_run run = {leader->options->job, leader->options->restarts};
    struct costs *own = leader->costs;
    double now = leader_now(leader);

    if ((own->saved >= 0 && now - own->saved < SAVE_EVERY) || !keeps_ledger(leader))
        return;
    own->saved = now;
    own->kept = true;
    report_write(leader, LEDGER_FILE, ledger_text(&own->ledger, &run, now, unix_now()));
}

void costs_load(struct leader *leader)
{
    const struct leader_options *o = leader->options;
    const struct ledger_run run = {o->job, o->restarts};
    struct error err = {""};
    char path[PATH_MAX], aside[PATH_MAX + 8], *text;
    size_t len;

    if (leader->costs->loaded)
        return;
    leader->costs->loaded = true;
    snprintf(path, sizeof(path), "%s/%s", o->state_dir, LEDGER_FILE);
    text = file_read(path, LEDGER_FILE_MAX, &len, &err);
    if (text == NULL)
        return; /* a job has none at first */
    if (ledger_parse(&leader->costs->ledger, text, len, &run, leader_now(leader), unix_now(),
                     o->term > 0, &err) != 0) {
        log_error("job %u: %s: %s; the costs of the job so far are not known", o->job, path,
                  err.text);
        snprintf(aside, sizeof(aside), "%s.unread", path); /* another release may read it */
        rename(path, aside);
    }
    leader->costs->kept = true;
    free(text);
    go_on(leader);
}

void costs_end(struct leader *leader)
{
    struct spending *spending = &leader->costs->ledger.spending;

    costs_load(leader); /* a leader may begin with the end */
    spending_run(spending, leader_now(leader));
    spending_give_back(spending);
    leader->costs->saved = -1;
    costs_save(leader);
}

/* ---- for selastic ---------------------------------------------------------------------------- */

struct costs_total costs_total(struct leader *leader)
{
    struct spending *spending = &leader->costs->ledger.spending;
    struct costs_total total = {.cost = -1, .on_demand_hours = -1};
    double cost;

    spending_run(spending, leader_now(leader));
    cost = spending_cost(spending);
    if (cost > 0 || spending_per_hour(spending) > 0)
        total.cost = cost;
    for (int i = 0; i < job_pools_count(leader); i++) {
        const struct pool *pool = job_pools_at(leader, i)->pool;

        if (pool->fallback)
            total.on_demand_hours = fmax(total.on_demand_hours, 0) +
                                    spending_hours(spending, pool->name);
    }
    return total;
}

json_object *costs_json(struct leader *leader, double end)
{
    const struct policy *policy = leader->options->policy;
    double per_hour = spending_per_hour(&leader->costs->ledger.spending);
    double cost = costs_total(leader).cost, left = end - leader_now(leader);
    json_object *obj;

    if (cost < 0)
        return NULL;
    obj = json_object_new_object();
    json_object_object_add(obj, "so_far", json_object_new_double(cost));
    json_object_object_add(obj, "per_hour", json_object_new_double(per_hour));
    json_object_object_add(obj, "expected",
                           end >= 0 ? json_object_new_double(cost + per_hour * fmax(left, 0) / 3600)
                                    : NULL);
    json_object_object_add(obj, "budget",
                           policy->budget > 0 ? json_object_new_double(policy->budget) : NULL);
    return obj;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct costs *costs_create(void)
{
    struct costs *costs = calloc(1, sizeof(*costs));

    if (costs != NULL)
        costs->saved = -1;
    return costs;
}

void costs_destroy(struct costs *costs)
{
    free(costs);
}
