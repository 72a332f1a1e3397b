/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What haproxy is to be told next (router_plan.h). */
#include "lib/router_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/shard_plan.h"

/* A server that is to be, or that is there. */
struct router_target {
    int shard;
    char name[ROUTE_SERVER_NAME];
    char address[ROUTE_ADDRESS];
    int port;
    bool wanted; /* it is to get requests */
    const struct haproxy_row *row;
};

struct place {
    bool in_table, backend;
    int wanted, serving, serving_wanted; /* servers */
    int coming;  /* of the wanted ones: they will serve once their first check has succeeded */
    bool routed; /* a key goes there, or is about to */
};

struct planner {
    const struct router_has *has;
    const struct route_table *table;
    struct router_plan *plan;
    struct place *places; /* by number */
    int target_count;
};

/* ---- what there is and should be ------------------------------------------------------------- */

static int compare_targets(const void *a, const void *b)
{
    const struct router_target *x = a, *y = b;

    return x->shard != y->shard ? (x->shard > y->shard) - (x->shard < y->shard)
                                : strcmp(x->name, y->name);
}

static bool is_serving(const struct router_target *target)
{
    return target->row != NULL && target->row->state == HAPROXY_IS_UP;
}

/* It does not serve yet, and no check has failed. */
static bool is_coming(const struct router_target *target)
{
    const struct haproxy_row *row = target->row;

    return row == NULL || row->state == HAPROXY_IN_MAINT ||
           (row->state == HAPROXY_IN_DRAIN && (row->untried || row->checked));
}

static void add_target(struct planner *p, const struct router_target *target)
{
    struct place *place = &p->places[target->shard];

    place->wanted += target->wanted;
    place->serving += is_serving(target);
    place->serving_wanted += target->wanted && is_serving(target);
    place->coming += target->wanted && is_coming(target);
    p->plan->targets[p->target_count++] = *target;
}

/* A replica that leaves, and that haproxy does not know, is no target. */
static void add_replica(struct planner *p, int shard, const struct route_replica *replica)
{
    struct router_target target = {.shard = shard, .port = replica->port};

    target.wanted = !replica->draining;
    route_server_name(replica, target.name);
    snprintf(target.address, sizeof(target.address), "%s", replica->address);
    target.row = haproxy_stat_find(p->has->stat, shard, target.name);
    if (target.wanted || target.row != NULL)
        add_target(p, &target);
}

static bool is_known(const struct planner *p, int known, const struct haproxy_row *row)
{
    struct router_target wanted = {.shard = row->shard};

    snprintf(wanted.name, sizeof(wanted.name), "%s", row->name);
    return known > 0 && bsearch(&wanted, p->plan->targets, (size_t)known, sizeof(wanted),
                                compare_targets) != NULL;
}

/* Servers of which the table says nothing any more. */
static void add_others(struct planner *p)
{
    int known = p->target_count;

    if (known > 0)
        qsort(p->plan->targets, (size_t)known, sizeof(*p->plan->targets), compare_targets);
    for (int i = 0; i < p->has->stat->count; i++) {
        const struct haproxy_row *row = &p->has->stat->rows[i];
        struct router_target target = {.shard = row->shard, .row = row};

        if (is_known(p, known, row))
            continue;
        snprintf(target.name, sizeof(target.name), "%s", row->name);
        if (!route_server_address(row->name, target.address, &target.port))
            target.address[0] = '\0';
        add_target(p, &target);
    }
    if (p->target_count > 0)
        qsort(p->plan->targets, (size_t)p->target_count, sizeof(*p->plan->targets),
              compare_targets);
}

static int gather(struct planner *p)
{
    size_t most = (size_t)p->has->stat->count + 1;

    for (int i = 0; i < p->table->shard_count; i++)
        most += (size_t)p->table->shards[i].count;
    p->places = calloc(SHARD_PLAN_SHARDS_MAX + 1, sizeof(*p->places));
    p->plan->targets = calloc(most, sizeof(*p->plan->targets));
    if (p->places == NULL || p->plan->targets == NULL)
        return -1;
    for (int i = 0; i < p->has->stat->shard_count; i++)
        p->places[p->has->stat->shards[i]].backend = true;
    for (int i = 0; i < p->table->shard_count; i++) {
        const struct route_shard *shard = &p->table->shards[i];

        p->places[shard->number].in_table = true;
        for (int k = 0; k < shard->count; k++)
            add_replica(p, shard->number, &shard->replicas[k]);
    }
    add_others(p);
    return 0;
}

static void wait_for(struct planner *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The first reason is the one that is told. */
static void wait_for(struct planner *p, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    if (p->plan->why.text[0] != '\0')
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    error_set(&p->plan->why, "%s", text);
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* Where a key goes by now; 0: nowhere. */
static int choose(struct planner *p, const struct haproxy_route *wanted, int present)
{
    const struct place *to = &p->places[wanted->shard];

    if (p->has->cold || wanted->shard == 0)
        return wanted->shard;
    if (present == wanted->shard || (to->backend && to->serving_wanted > 0))
        return to->backend ? wanted->shard : 0;
    if (present > 0 && p->places[present].backend && p->places[present].serving > 0) {
        wait_for(p, "key %s stays in shard_%d: no replica of shard_%d is ready", wanted->key,
                 present, wanted->shard);
        return present;
    }
    if (to->backend)
        return wanted->shard; /* where it is answered with 503 as well */
    wait_for(p, "key %s waits for shard_%d", wanted->key, wanted->shard);
    return 0;
}

/* Both lists are in the order of keys. */
static int plan_routes(struct planner *p)
{
    const struct route_table *table = p->table;
    const struct router_has *has = p->has;
    struct router_plan *plan = p->plan;

    plan->routes = calloc((size_t)table->route_count + 1, sizeof(*plan->routes));
    if (plan->routes == NULL)
        return -1;
    for (int i = 0, k = 0; i < table->route_count; i++) {
        const struct haproxy_route *wanted = &table->routes[i];
        int order = -1, shard;

        while (k < has->route_count && (order = strcmp(has->routes[k].key, wanted->key)) < 0)
            k++;
        shard = choose(p, wanted, k < has->route_count && order == 0 ? has->routes[k].shard : 0);
        if (shard > 0 || table->on_demand)
            plan->routes[plan->route_count++] = (struct haproxy_route){wanted->key, shard};
    }
    for (int i = 0; i < has->route_count; i++)
        p->places[has->routes[i].shard].routed = true;
    for (int i = 0; i < plan->route_count; i++)
        p->places[plan->routes[i].shard].routed = true;
    return 0;
}

static bool same_routes(const struct haproxy_route *a, int a_count, const struct haproxy_route *b,
                        int b_count)
{
    if (a_count != b_count)
        return false;
    for (int i = 0; i < a_count; i++)
        if (a[i].shard != b[i].shard || strcmp(a[i].key, b[i].key) != 0)
            return false;
    return true;
}

/* ---- servers --------------------------------------------------------------------------------- */

static void add_step(struct planner *p, enum router_step_kind kind, enum haproxy_verb verb,
                     const struct router_target *target)
{
    struct router_step *step;

    if (p->plan->count == ROUTER_BATCH)
        return;
    step = &p->plan->steps[p->plan->count++];
    *step = (struct router_step){.kind = kind, .verb = verb};
    if (target != NULL) {
        step->shard = target->shard;
        step->server = (struct haproxy_server){target->name, target->address, target->port};
    }
}

static void tell(struct planner *p, enum haproxy_verb verb, const struct router_target *target)
{
    add_step(p, ROUTER_SERVER, verb, target);
}

/* It is the last that answers those who come, or those that replace it do not serve yet. */
static bool is_needed(const struct planner *p, const struct router_target *target)
{
    const struct place *place = &p->places[target->shard];

    return place->routed && is_serving(target) && (place->serving_wanted == 0 || place->coming > 0);
}

static void plan_wanted(struct planner *p, const struct router_target *target)
{
    if (!p->places[target->shard].backend)
        return;
    if (target->row == NULL || target->row->state == HAPROXY_IN_MAINT) {
        if (p->plan->count + 3 > ROUTER_BATCH)
            return;
        if (target->row == NULL)
            tell(p, HAPROXY_ADD, target);
        tell(p, HAPROXY_CHECK, target);
        tell(p, HAPROXY_DRAIN, target);
        wait_for(p, "%s waits for its first check", target->name);
    } else if (target->row->state == HAPROXY_IN_DRAIN && target->row->checked) {
        tell(p, HAPROXY_READY, target);
    } else if (target->row->state != HAPROXY_IS_UP) {
        wait_for(p, "%s does not answer its check", target->name);
    }
}

static void plan_leaving(struct planner *p, const struct router_target *target)
{
    const struct place *place = &p->places[target->shard];
    const struct haproxy_row *row = target->row;

    switch (row->state) {
    case HAPROXY_IS_UP:
        if (is_needed(p, target))
            wait_for(p, "%s goes on: no %sreplica of shard_%d is ready", target->name,
                     place->coming > 0 ? "new " : "other ", target->shard);
        else
            tell(p, HAPROXY_DRAIN, target);
        return;
    case HAPROXY_IN_DRAIN:
        if (place->routed && place->serving == 0 && row->checked) {
            tell(p, HAPROXY_READY, target); /* better than nobody */
            return;
        }
        break;
    case HAPROXY_IS_DOWN:
    case HAPROXY_IN_MAINT:
        break;
    }
    if (row->sessions > 0) {
        wait_for(p, "%s has %lld requests yet", target->name, (long long)row->sessions);
        return;
    }
    if (p->plan->count + 2 > ROUTER_BATCH)
        return;
    if (row->state != HAPROXY_IN_MAINT)
        tell(p, HAPROXY_MAINT, target);
    tell(p, HAPROXY_DELETE, target);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Does a haproxy that starts have it? A server of the file gets requests before its first check. So
 * only those that are known to answer are in it, but where there are none. */
static bool is_in_file(const struct planner *p, const struct router_target *target)
{
    const struct place *place = &p->places[target->shard];

    if (target->address[0] == '\0')
        return false;
    if (place->serving_wanted > 0)
        return target->wanted && is_serving(target);
    if (place->serving > 0 && place->routed)
        return is_serving(target);
    return target->wanted;
}

static bool has_backend(const struct planner *p, int number)
{
    const struct place *place = &p->places[number];

    return place->in_table || (place->backend && place->routed);
}

static const char *check_of(const struct planner *p, int number)
{
    const struct route_shard *shard = route_table_shard(p->table, number);

    return shard != NULL ? shard->check : NULL;
}

static int plan_file(struct planner *p)
{
    struct router_plan *plan = p->plan;
    int next = 0, servers = 0, room = 1;

    for (int number = 1; number <= SHARD_PLAN_SHARDS_MAX; number++)
        room += has_backend(p, number);
    plan->shards = calloc((size_t)room, sizeof(*plan->shards));
    plan->servers = calloc((size_t)p->target_count + 1, sizeof(*plan->servers));
    if (plan->shards == NULL || plan->servers == NULL)
        return -1;
    for (int number = 1; number <= SHARD_PLAN_SHARDS_MAX; number++) {
        struct haproxy_shard *shard = &plan->shards[plan->shard_count];

        while (next < p->target_count && plan->targets[next].shard < number)
            next++;
        if (!has_backend(p, number))
            continue;
        plan->shard_count++;
        *shard = (struct haproxy_shard){number, check_of(p, number), &plan->servers[servers], 0};
        for (; next < p->target_count && plan->targets[next].shard == number; next++) {
            const struct router_target *target = &plan->targets[next];

            if (is_in_file(p, target)) {
                plan->servers[servers++] = (struct haproxy_server){target->name, target->address,
                                                                   target->port};
                shard->count++;
            }
        }
    }
    return 0;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static bool needs_reload(const struct planner *p)
{
    for (int i = 0; i < p->table->shard_count; i++)
        if (!p->places[p->table->shards[i].number].backend)
            return true;
    return p->has->outdated || p->has->cold;
}

static void plan_steps(struct planner *p)
{
    struct router_plan *plan = p->plan;

    if (needs_reload(p)) {
        add_step(p, ROUTER_RELOAD, HAPROXY_ADD, NULL);
        wait_for(p, "haproxy is reloaded");
        return;
    }
    if (!same_routes(plan->routes, plan->route_count, p->has->routes, p->has->route_count))
        add_step(p, ROUTER_ROUTES, HAPROXY_ADD, NULL);
    for (int i = 0; i < p->target_count; i++)
        if (plan->targets[i].wanted)
            plan_wanted(p, &plan->targets[i]);
    for (int i = 0; i < p->target_count; i++)
        if (!plan->targets[i].wanted)
            plan_leaving(p, &plan->targets[i]);
}

static int make(struct planner *p)
{
    struct router_plan *plan = p->plan;

    plan->steps = calloc(ROUTER_BATCH, sizeof(*plan->steps));
    if (plan->steps == NULL || gather(p) != 0 || plan_routes(p) != 0 || plan_file(p) != 0)
        return -1;
    plan_steps(p);
    plan->routed = same_routes(p->has->routes, p->has->route_count, p->table->routes,
                               p->table->route_count);
    plan->holds = plan->routed && !p->has->older;
    if (plan->routed && p->has->older)
        wait_for(p, "requests that came by older routes are on their way");
    if (p->has->overdue)
        add_step(p, ROUTER_SHUT, HAPROXY_ADD, NULL);
    return 0;
}

int router_plan(const struct router_has *has, const struct route_table *table,
                struct router_plan *plan)
{
    struct planner planner = {.has = has, .table = table, .plan = plan};
    int status;

    *plan = (struct router_plan){0};
    status = make(&planner);
    free(planner.places);
    if (status != 0)
        router_plan_clear(plan);
    return status;
}

void router_plan_clear(struct router_plan *plan)
{
    free(plan->steps);
    free(plan->routes);
    free(plan->shards);
    free(plan->servers);
    free(plan->targets);
    *plan = (struct router_plan){0};
}

/* ---- older requests -------------------------------------------------------------------------- */

int64_t router_patience_look(struct router_patience *patience, const struct router_plan *plan,
                             int64_t epoch, int64_t limit, double now)
{
    int64_t settled = -1;

    if (plan->holds) {
        patience->waits = false;
        return epoch;
    }
    if (patience->waits && now >= patience->since + HAPROXY_OLD_MAX + ROUTER_SHUT_MAX) {
        patience->waits = false;
        settled = patience->epoch;
    }
    if (!patience->waits && plan->routed)
        *patience = (struct router_patience){true, epoch, limit, now};
    return settled;
}

int64_t router_patience_overdue(const struct router_patience *patience, double now)
{
    return patience->waits && now >= patience->since + HAPROXY_OLD_MAX ? patience->limit : -1;
}

/* ---- what the leader hears ------------------------------------------------------------------- */

json_object *router_drained(const struct route_table *table, const struct haproxy_stat *stat,
                            bool current, bool leaving)
{
    json_object *names = json_object_new_array();
    char name[ROUTE_SERVER_NAME];

    for (int i = 0; i < table->shard_count && !leaving; i++)
        for (int k = 0; k < table->shards[i].count; k++) {
            const struct route_replica *replica = &table->shards[i].replicas[k];

            if ((replica->draining || !current) &&
                haproxy_stat_find(stat, table->shards[i].number,
                                  route_server_name(replica, name)) == NULL)
                json_object_array_add(names, json_object_new_string(replica->name));
        }
    return names;
}

json_object *router_sessions(const struct route_table *table, const struct haproxy_stat *stat)
{
    json_object *sessions = json_object_new_object();
    int row = 0;

    for (int i = 0; i < table->shard_count; i++) {
        int number = table->shards[i].number;
        int64_t sum = 0;
        char name[32];

        while (row < stat->count && stat->rows[row].shard < number)
            row++;
        for (; row < stat->count && stat->rows[row].shard == number; row++)
            sum += stat->rows[row].sessions;
        snprintf(name, sizeof(name), "shard_%d", number);
        json_object_object_add(sessions, name, json_object_new_int64(sum));
    }
    return sessions;
}
