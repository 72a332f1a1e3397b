/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cloud with spot zones that come and go, and one job on it (cloud.h). */
#include "tests/unit/cloud.h"

#include <math.h>

#include "lib/spending.h"
#include "tests/unit/support.h"

#define TICK      20.0
#define HOUR      3600.0
#define HOURS_MAX 400.0 /* a job without a deadline ends then at the latest */

struct node {
    int pool;
    double since, ready; /* granted, booted */
    bool joined;
};

struct cloud {
    const struct cloud_job *job;
    uint64_t random;
    double now;
    struct sizes sizes;
    struct speed speed;
    struct pools_pool pools[CLOUD_ZONES_MAX + 1];
    struct retry retries[CLOUD_ZONES_MAX + 1];
    char names[CLOUD_ZONES_MAX + 1][16];
    int pool_count;
    struct node *nodes;
    int node_count, node_room;
    struct spending spending;
    struct pools_memory memory;
    double work, done; /* node seconds */
    double wake, changed;
    double debt; /* seconds in which nobody works yet */
    bool happened, world;
};

static double chance(struct cloud *c)
{
    return random_next(&c->random) / 4294967296.0;
}

static int capacity(const struct cloud_job *job, int zone, double now)
{
    const struct cloud_trace *trace = job->zones[zone];

    return trace->nodes[(job->first + (int)(now / trace->gap)) % trace->count];
}

static int held(const struct cloud *c, int pool, bool joined)
{
    int count = 0;

    for (int i = 0; i < c->node_count; i++)
        count += c->nodes[i].pool == pool && (!joined || c->nodes[i].joined);
    return count;
}

static void drop(struct cloud *c, int i)
{
    c->world |= c->nodes[i].joined;
    c->nodes[i] = c->nodes[--c->node_count];
    c->happened = true;
}

static void lose(struct cloud *c)
{
    for (int zone = 0; zone < c->job->zone_count; zone++) {
        int excess = held(c, zone, false) - capacity(c->job, zone, c->now);

        while (excess > 0) {
            int i = (int)random_below(&c->random, (uint32_t)c->node_count);

            if (c->nodes[i].pool != zone)
                continue;
            drop(c, i);
            excess--;
        }
    }
}

static void join(struct cloud *c)
{
    for (int i = 0; i < c->node_count; i++) {
        struct node *node = &c->nodes[i];

        if (node->joined || node->ready > c->now)
            continue;
        node->joined = true;
        c->world = c->happened = true;
        retry_reset(&c->retries[node->pool]);
        c->pools[node->pool].boot = pools_boot(c->pools[node->pool].boot,
                                               node->ready - node->since);
    }
}

/* Ask for so many nodes. What cannot be had waits, or is a failure of the pool. */
static int ask(struct cloud *c, int pool, int count)
{
    bool spot = pool < c->job->zone_count, waits = spot && c->job->waits;
    int granted = count;

    if (spot)
        granted = capacity(c->job, pool, c->now) - held(c, pool, false);
    else if (c->now < c->job->no_demand_until * HOUR || chance(c) < c->job->refusal)
        granted = 0;
    granted = granted < count ? granted : count;
    for (int i = 0; i < granted; i++) {
        double boot = c->job->boot * (1 + c->job->boot_spread * (2 * chance(c) - 1));

        if (c->node_count == c->node_room) {
            c->node_room = 2 * c->node_room + 64;
            c->nodes = realloc(c->nodes, (size_t)c->node_room * sizeof(*c->nodes));
            if (c->nodes == NULL)
                return -1;
        }
        c->nodes[c->node_count++] = (struct node){
            .pool = pool, .since = c->now, .ready = c->now + boot};
    }
    c->happened |= granted > 0;
    if (waits) {
        if (c->pools[pool].pending == 0)
            c->pools[pool].pending_since = c->now;
        c->pools[pool].pending += count - granted;
    } else if (granted < count) {
        retry_failed(&c->retries[pool], c->now);
        c->happened = true;
    }
    return 0;
}

/* Requests that wait get what the zone has now. */
static int grant(struct cloud *c)
{
    for (int i = 0; i < c->pool_count; i++) {
        double since = c->pools[i].pending_since;
        int waiting = c->pools[i].pending;

        c->pools[i].pending = 0;
        if (waiting > 0 && ask(c, i, waiting) < 0)
            return -1;
        if (c->pools[i].pending == waiting)
            c->pools[i].pending_since = since;
    }
    return 0;
}

static void give_back(struct cloud *c, int pool, int count)
{
    while (count-- > 0) {
        int newest = -1;

        for (int i = 0; i < c->node_count; i++)
            if (c->nodes[i].pool == pool && c->nodes[i].joined &&
                (newest < 0 || c->nodes[i].ready > c->nodes[newest].ready))
                newest = i;
        drop(c, newest);
    }
}

static void pay(struct cloud *c)
{
    for (int i = 0; i < c->pool_count; i++)
        spending_set(&c->spending, c->now, c->names[i], held(c, i, false), c->pools[i].price,
                     c->pools[i].suspend);
    spending_set(&c->spending, c->now, "base", c->job->base, 1, 0);
}

static struct pools_input describe(struct cloud *c)
{
    for (int i = 0; i < c->pool_count; i++) {
        c->pools[i].ready = held(c, i, true);
        c->pools[i].booting = held(c, i, false) - c->pools[i].ready;
        c->pools[i].pause_until = c->retries[i].after;
    }
    return (struct pools_input){
        .now = c->now,
        .sizes = &c->sizes,
        .target = c->sizes.max,
        .base_nodes = c->job->base,
        .base_safe = true,
        .base_price = 1,
        .deadline = c->job->deadline * HOUR,
        .mode = c->job->mode,
        .after = c->job->after,
        .done = c->done,
        .total = c->work,
        .speed = &c->speed,
        .pause = c->job->pause,
        .changed = c->changed,
        .budget = c->job->budget,
        .spent = spending_cost(&c->spending),
        .pools = c->pools,
        .pool_count = c->pool_count,
    };
}

/* Decide until nothing follows from it: what fails is asked elsewhere at once. */
static int decide(struct cloud *c, struct cloud_result *result)
{
    for (int again = 0; again < 2 * c->pool_count + 2 && c->happened; again++) {
        struct pools_input in = describe(c);
        struct pools_output out;

        c->happened = false;
        pools_decide(&in, &c->memory, &out);
        result->decisions++;
        if (c->job->check != NULL)
            c->job->check(&in, &c->memory, &out, c->job->cookie);
        c->memory = out.memory;
        c->wake = out.wake > 0 ? c->now + out.wake : INFINITY;
        for (int i = 0; i < c->pool_count; i++) {
            give_back(c, i, out.targets[i].give_back);
            c->pools[i].pending -= out.targets[i].cancel;
            if (out.targets[i].gives_up)
                retry_failed(&c->retries[i], c->now);
            if (out.targets[i].ask > 0 && ask(c, i, out.targets[i].ask) < 0)
                return -1;
        }
        pay(c);
    }
    return 0;
}

static int size(const struct cloud *c)
{
    int nodes = c->job->base;

    for (int i = 0; i < c->node_count; i++)
        nodes += c->nodes[i].joined;
    return sizes_floor(&c->sizes, nodes);
}

/* One tick of work. Returns whether it is all done, then with now at the end. */
static bool work(struct cloud *c)
{
    double rate = speed_at(&c->speed, size(c)), seconds, needs;

    seconds = TICK - fmin(c->debt, TICK);
    needs = rate > 0 ? (c->work - c->done) / rate : INFINITY;
    if (needs <= seconds) {
        c->now += TICK - seconds + needs;
        return true;
    }
    c->done += rate * seconds;
    c->debt -= TICK - seconds;
    c->now += TICK;
    return false;
}

static void add_pool(struct cloud *c, bool fallback)
{
    int i = c->pool_count++;

    snprintf(c->names[i], sizeof(c->names[i]), fallback ? "demand" : "spot%d", i);
    c->pools[i] = (struct pools_pool){.name = c->names[i],
                                      .price = fallback ? 1 : c->job->spot_price,
                                      .fallback = fallback,
                                      .wake = true,
                                      .max_nodes = fallback ? 0 : c->job->zone_nodes,
                                      .max_resume = fallback ? c->job->max_resume : 0,
                                      .boot = c->job->boot,
                                      .suspend = c->job->suspend};
    c->retries[i] = pools_backoff();
}

int cloud_run(const struct cloud_job *job, struct cloud_result *result)
{
    struct cloud c = {.job = job,
                      .random = job->seed,
                      .work = job->nodes * job->hours * HOUR,
                      .changed = -1,
                      .happened = true};
    struct error err;
    int rc = 0;

    *result = (struct cloud_result){0};
    if (sizes_parse(job->sizes, &c.sizes, &err) < 0)
        return -1;
    for (int n = 1; n <= c.sizes.max; n *= 2)
        speed_add(&c.speed, n, n * (1 - job->overhead * (n - 1) / (job->nodes - 1.0)), 1);
    for (int i = 0; i <= job->zone_count; i++)
        add_pool(&c, i == job->zone_count);
    while (rc == 0 && c.now < HOURS_MAX * HOUR) {
        lose(&c);
        join(&c);
        rc = grant(&c);
        c.happened |= c.now >= c.wake;
        pay(&c);
        rc = rc < 0 ? rc : decide(&c, result);
        if (c.world) {
            c.world = false;
            c.debt = job->pause; /* what was being changed changes anew */
            c.changed = c.now;
            result->changes++;
        }
        result->done = work(&c);
        if (result->done)
            break;
    }
    spending_run(&c.spending, c.now);
    c.node_count = 0;
    pay(&c);
    result->hours = c.now / HOUR;
    result->cost = spending_cost(&c.spending);
    for (int i = 0; i < job->zone_count; i++)
        result->spot_hours += spending_hours(&c.spending, c.names[i]);
    result->demand_hours = spending_hours(&c.spending, c.names[job->zone_count]) +
                           spending_hours(&c.spending, "base");
    free(c.nodes);
    return rc;
}

/* ---- rigid jobs ------------------------------------------------------------------------------ */

enum place { IDLE, SPOT, DEMAND };

struct rigid {
    const struct cloud_job *job;
    enum place place;
    int zones[CLOUD_ZONES_MAX]; /* nodes held */
    double boots;               /* seconds until the nodes work */
};

/* Are there enough spot nodes? Takes them, from as few zones as possible. */
static bool take_spot(struct rigid *r, double now)
{
    int missing = r->job->nodes, taken[CLOUD_ZONES_MAX] = {0};

    for (int left = r->job->zone_count; left > 0 && missing > 0; left--) {
        int best = -1;

        for (int i = 0; i < r->job->zone_count; i++)
            if (taken[i] == 0 &&
                (best < 0 || capacity(r->job, i, now) > capacity(r->job, best, now)))
                best = i;
        taken[best] = capacity(r->job, best, now);
        if (taken[best] > missing)
            taken[best] = missing;
        missing -= taken[best];
        if (taken[best] == 0)
            break;
    }
    if (missing > 0)
        return false;
    memcpy(r->zones, taken, sizeof(taken));
    return true;
}

static bool preempted(const struct rigid *r, double now)
{
    for (int i = 0; i < r->job->zone_count; i++)
        if (r->zones[i] > capacity(r->job, i, now))
            return true;
    return false;
}

/* All hours: of work done and of the clock. */
static void rigid_decide(struct rigid *r, enum cloud_rigid policy, double done, double now)
{
    const struct cloud_job *job = r->job;
    double delay = job->boot / HOUR, pace = job->hours / job->deadline;
    enum place before = r->place;
    bool urgent = job->hours - done + 2 * delay >= job->deadline - now;

    if (r->place == SPOT && !preempted(r, now * HOUR))
        return;
    if (r->place == SPOT)
        r->place = before = IDLE;
    if (urgent)
        r->place = DEMAND;
    else if (take_spot(r, now * HOUR))
        r->place = SPOT;
    else if (r->place == DEMAND && policy == CLOUD_UNIFORM && done < (now + 2 * delay) * pace)
        return;
    else if (policy == CLOUD_UNIFORM && r->place == IDLE && done < now * pace)
        r->place = DEMAND;
    else
        r->place = IDLE;
    if (r->place != before)
        r->boots = job->boot;
}

void cloud_run_rigid(const struct cloud_job *job, enum cloud_rigid policy,
                     struct cloud_result *result)
{
    struct rigid r = {.job = job};
    double now = 0, done = 0;

    *result = (struct cloud_result){0};
    while (!result->done && now < HOURS_MAX * HOUR) {
        enum place before = r.place;
        double seconds, needs = job->hours * HOUR - done, used = TICK;

        rigid_decide(&r, policy, done / HOUR, now / HOUR);
        result->changes += r.place != before;
        seconds = r.place == IDLE ? 0 : TICK - fmin(r.boots, TICK);
        if (needs <= seconds) {
            result->done = true;
            used = TICK - seconds + needs;
            seconds = needs;
        }
        r.boots = fmax(r.boots - TICK, 0);
        done += seconds;
        now += used;
        if (r.place == SPOT)
            result->spot_hours += used / HOUR * job->nodes;
        if (r.place == DEMAND)
            result->demand_hours += used / HOUR * job->nodes;
    }
    result->hours = now / HOUR;
    result->cost = result->spot_hours * job->spot_price + result->demand_hours;
}

double cloud_bound(const struct cloud_job *job, int max)
{
    double spot = 0, work = job->nodes * job->hours;

    for (double now = 0; now < job->deadline * HOUR; now += TICK) {
        int nodes = 0;

        for (int i = 0; i < job->zone_count; i++)
            nodes += capacity(job, i, now);
        spot += (nodes < max ? nodes : max) * TICK / HOUR;
    }
    spot = spot < work ? spot : work;
    return spot * job->spot_price + work - spot;
}
