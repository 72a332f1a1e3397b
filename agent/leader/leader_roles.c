/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roles of the job: facts for lib/reconcile, and its actions (leader_roles.h). */
#include "agent/leader/leader_roles.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/extensions.h"
#include "agent/leader/gangs.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/role_holds.h"
#include "agent/leader/role_nodes.h"
#include "agent/leader/role_requests.h"
#include "agent/leader/role_sizes.h"
#include "agent/leader/roles_view.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/reconcile.h"

#define ENDPOINTS_FILE "endpoints.json"
#define WRITE_PAUSE    0.1 /* seconds between two writes of it: thousands may get ready at once */

struct leader_roles {
    struct roles_view view; /* its roles are NULL: the job has none */
    struct role_requests *requests;
    uv_timer_t timer;
    int nodes;      /* that have been there so far */
    int finished;   /* replicas whose end is in the file of sizes */
    int epoch;      /* of the endpoints: a number that only grows */
    bool stale;     /* their file is of an epoch before */
    double written; /* … when it was written last */
    bool base_done; /* the nodes of the base that come at all are there */
    double joined;  /* when the base had joined; 0: not yet */
    double alone;   /* since when no node is there; 0: some are */
    bool room_said; /* users have been told of which replicas there is no room for */
    struct role_holds *holds;
    struct role_inbox *inbox;
};

static void on_timer(uv_timer_t *timer);
static void watch_leavers(struct leader *leader);
static void watch_held(struct leader *leader);
static void carry_out(struct leader *leader, const struct reconcile_actions *actions);

bool leader_roles_any(const struct leader *leader)
{
    return leader->roles->view.roles != NULL;
}

const struct roles_view *leader_roles_view(const struct leader *leader)
{
    return &leader->roles->view;
}

/* Is one of the roles a world? */
static bool has_world(const struct leader *leader)
{
    return leader->options->world_nodes > 0;
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* The earliest of what is asked for holds. */
static void run_in(struct leader *leader, double seconds)
{
    uint64_t ms = seconds > 0 ? (uint64_t)(seconds * 1000) + 1 : 0;
    uv_timer_t *timer = &leader->roles->timer;

    if (uv_is_closing((uv_handle_t *)timer) || leader_has_ended(leader))
        return;
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
        uv_timer_start(timer, on_timer, ms, 0);
}

void leader_roles_feed(struct leader *leader, struct reconcile_fact fact)
{
    struct reconcile_actions actions = {0};

    fact.now = leader_now(leader);
    if (reconcile_feed(leader->roles->view.reconcile, &fact, &actions) != 0)
        log_error("job %u: out of memory", leader->options->job);
    carry_out(leader, &actions);
    free(actions.list);
    run_in(leader, 0);
}

/* Such a job would seem to hang. */
static void say_no_room(struct leader *leader)
{
    const struct roles_view *view = &leader->roles->view;

    if (!leader->roles->base_done || leader->roles->room_said)
        return;
    leader->roles->room_said = true;
    for (int i = 0; i < view->roles->count; i++) {
        int wanted = reconcile_in_state(view->reconcile, i, REPLICA_WANTED);

        if (wanted > 0 && !role_requests_possible(leader, i))
            log_info("job %u: %s: the nodes of the job have no room for %d of %d replicas",
                     leader->options->job, view->roles->list[i].name, wanted,
                     reconcile_target(view->reconcile, i));
    }
}

static void watch_base(struct leader *leader)
{
    struct leader_roles *own = leader->roles;
    double now = leader_now(leader), due;

    if (own->base_done || !role_nodes_began(leader))
        return;
    if (own->joined == 0)
        own->joined = now;
    due = role_nodes_due(leader, own->joined);
    if (now < due) {
        run_in(leader, due - now);
        return;
    }
    own->base_done = true;
    leader_roles_feed(leader, (struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
}

static void write_endpoints(struct leader *leader)
{
    json_object *all = roles_view_endpoints(leader, &leader->roles->view);

    leader->roles->stale = false;
    leader->roles->written = leader_now(leader);
    json_object_object_add(all, "epoch", json_object_new_int(leader->roles->epoch));
    report_write(leader, ENDPOINTS_FILE,
                 strdup(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY |
                                                                JSON_C_TO_STRING_SPACED |
                                                                JSON_C_TO_STRING_NOSLASHESCAPE)));
    json_object_put(all);
}

static void watch_endpoints(struct leader *leader)
{
    struct leader_roles *own = leader->roles;
    double now = leader_now(leader), due = own->written + WRITE_PAUSE;

    if (own->stale && now >= due)
        write_endpoints(leader);
    else if (own->stale)
        run_in(leader, due - now);
}

/* All nodes are lost: others may come in their place for a while. */
static void watch_nodes(struct leader *leader)
{
    struct leader_roles *own = leader->roles;
    double now = leader_now(leader), wait = leader->options->policy->fault_wait, due;

    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->room > 0 && roster_at(leader, i)->link != NULL) {
            own->alone = 0;
            return;
        }
    if (!role_nodes_began(leader) ||
        (has_world(leader) && !reconcile_world_is_over(own->view.reconcile)))
        return; /* lib/change waits for nodes */
    if (own->alone == 0)
        own->alone = now;
    due = own->alone + wait;
    if (now >= due) {
        log_error("job %u: no node is left; gave up after %.0f s", leader->options->job, wait);
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_OVER, .code = 1});
        return;
    }
    run_in(leader, due - now);
}

/* What has become of requests to Slurm. */
static void take_news(struct leader *leader)
{
    struct reconcile_fact fact;

    while (role_requests_next(leader, leader->roles->requests, &fact))
        leader_roles_feed(leader, fact);
}

/* Also what has finished makes a role smaller: the next leader is not to start it again. */
static void watch_sizes(struct leader *leader)
{
    const struct roles_view *view = &leader->roles->view;
    int sum = 0;

    for (int i = 0; i < view->roles->count; i++)
        sum += reconcile_finished(view->reconcile, i);
    if (sum == leader->roles->finished)
        return;
    leader->roles->finished = sum;
    role_sizes_write(leader, view);
}

static void watch_requests(struct leader *leader)
{
    double due = 0;

    if (!reconcile_stopping(leader->roles->view.reconcile))
        due = role_requests_submit(leader, leader->roles->requests);
    if (due > 0)
        run_in(leader, due - leader_now(leader));
}

static void on_timer(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    struct leader_roles *own = leader->roles;
    struct reconcile_actions actions = {0};
    double due;

    if (!lease_may_act(leader)) /* leader_roles_look() follows */
        return;
    role_inbox_empty(leader, own->inbox);
    leader->above->roles_looked(leader);
    take_news(leader);
    watch_leavers(leader);
    watch_base(leader);
    if (reconcile_run(own->view.reconcile, leader_now(leader), &actions) != 0)
        log_error("job %u: out of memory", leader->options->job);
    due = reconcile_deadline(own->view.reconcile);
    if (due > 0)
        run_in(leader, due - leader_now(leader));
    carry_out(leader, &actions);
    free(actions.list);
    leader->above->roles_looked(leader);
    watch_held(leader);
    gangs_prune(own->view.gangs, own->view.reconcile);
    say_no_room(leader);
    watch_requests(leader);
    watch_sizes(leader);
    watch_endpoints(leader);
    watch_nodes(leader);
}

/* ---- actions --------------------------------------------------------------------------------- */

void leader_roles_never_started(struct leader *leader, const struct replica *replica, int node)
{
    int id = replica->id, start = replica->start;
    int tasks = replica->gang->tasks;

    for (int i = 0; i < tasks; i++) {
        const struct replica *now = reconcile_find(leader->roles->view.reconcile, id);

        if (now != NULL && now->start == start && now->tasks[i].node == node)
            leader_roles_feed(leader, (struct reconcile_fact){.kind = RECONCILE_EXITED,
                                                              .replica = id,
                                                              .start = start,
                                                              .task = i,
                                                              .status = -1,
                                                              .text = "it had not been started"});
    }
}

static void end_on(struct leader *leader, const struct reconcile_action *a)
{
    const struct replica *replica = reconcile_find(leader->roles->view.reconcile, a->replica);
    double seconds = a->kind == RECONCILE_DRAIN ? a->seconds : 0;

    if (replica != NULL && replica->start == a->start &&
        !gangs_end(leader, leader->roles->view.gangs, replica, a->node, seconds))
        leader_roles_never_started(leader, replica, a->node);
}

/* Requests may still come to a replica of a shard. False: it is to be told at once. */
static bool is_held(struct leader *leader, const struct reconcile_action *a)
{
    struct leader_roles *own = leader->roles;

    if (a->kind != RECONCILE_DRAIN || own->view.roles->list[a->role].kind != ROLE_SHARDS ||
        !role_holds_add(own->holds, a, leader_now(leader)))
        return false;
    run_in(leader, a->seconds / 2);
    return true;
}

static void watch_held(struct leader *leader)
{
    struct leader_roles *own = leader->roles;
    struct reconcile_action action;
    double due;

    while (role_holds_next(own->holds, own->view.reconcile, leader_now(leader), &action, &due))
        end_on(leader, &action);
    if (due > 0)
        run_in(leader, due - leader_now(leader));
}

void leader_roles_hold(struct leader *leader, bool holds)
{
    role_holds_set(leader->roles->holds, holds);
    watch_held(leader);
}

void leader_roles_release(struct leader *leader, int replica, int start)
{
    role_holds_release(leader->roles->holds, replica, start);
    watch_held(leader);
}

static void start(struct leader *leader, const struct reconcile_action *a)
{
    const struct replica *replica = reconcile_find(leader->roles->view.reconcile, a->replica);

    if (replica == NULL || replica->start != a->start || replica->state != REPLICA_STARTING)
        return;
    if (gangs_start(leader, leader->roles->view.gangs, replica,
                    replica->gang->owned
                        ? reconcile_find(leader->roles->view.reconcile, replica->pair)
                        : NULL) != 0)
        log_error("job %u: %s cannot be started: out of memory", leader->options->job,
                  replica_name(&leader->roles->view.roles->list[replica->role], replica).text);
}

/* Actions on tasks of a replica follow each other: its gang is started once, each of its nodes is
 * told once that tasks are to end. */
static bool is_done(const struct reconcile_action *a, const struct reconcile_action *before)
{
    return a->kind <= RECONCILE_KILL && a->kind == before->kind && a->replica == before->replica &&
           a->start == before->start && (a->kind == RECONCILE_START || a->node == before->node);
}

static void carry_out(struct leader *leader, const struct reconcile_actions *actions)
{
    for (int i = 0; i < actions->count; i++) {
        const struct reconcile_action *a = &actions->list[i];

        if (i > 0 && is_done(a, a - 1))
            continue;
        switch (a->kind) {
        case RECONCILE_START:
            start(leader, a);
            break;
        case RECONCILE_DRAIN:
        case RECONCILE_KILL:
            if (!is_held(leader, a))
                end_on(leader, a);
            break;
        case RECONCILE_ENDPOINTS:
            leader->roles->epoch++;
            leader->roles->stale = true;
            break;
        case RECONCILE_SAY:
            log_info("job %u: %s", leader->options->job, a->text);
            break;
        case RECONCILE_FINISH:
            write_endpoints(leader);
            post_fact(leader,
                      (struct change_fact){.kind = CHANGE_FACT_OVER, .code = a->status & 0xff});
            break;
        case RECONCILE_ASK:
        case RECONCILE_WITHDRAW:
        case RECONCILE_GIVE_BACK:
            role_requests_do(leader, leader->roles->requests, a,
                             reconcile_gang(leader->roles->view.reconcile, a->role, a->form));
            break;
        }
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

void leader_roles_look(struct leader *leader)
{
    if (leader_roles_any(leader))
        run_in(leader, 0);
}

/* Nobody preempts it: it is of the pool that is for guaranteed replicas. */
static bool is_safe(const struct leader *leader, const struct extension *ext)
{
    const char *base = ext != NULL && ext->role >= 0
                           ? leader->roles->view.roles->list[ext->role].base
                           : NULL;

    return base != NULL && ext->pool != NULL && strcmp(base, ext->pool->name) == 0;
}

/* Who has to go is drained first, and is told to go when no replica is left there. */
static void watch_leavers(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        const struct change_member *part = m->part;
        double taken = part->taken > 0 ? part->taken - leader_now(leader) : 0;
        char why[64];

        if (m->room == 0 || part->base || (!change_is_left(part) && !part->reclaimed))
            continue;
        if (!m->goes) {
            m->goes = true;
            snprintf(why, sizeof(why), part->reclaimed ? "its cloud takes %s" : "%s goes back",
                     part->node);
            if (part->notice == CHANGE_CALLED && !part->reclaimed)
                snprintf(why, sizeof(why), "Slurm takes extension job %u back", part->job);
            leader_roles_feed(leader,
                              (struct reconcile_fact){.kind = RECONCILE_NODE_GOES,
                                                      .node = m->room,
                                                      .grace = taken > 0 ? taken : part->grace,
                                                      .text = why});
        }
        if (part->busy && reconcile_tasks_on(leader->roles->view.reconcile, m->room) == 0)
            post_fact(leader,
                      (struct change_fact){.kind = CHANGE_FACT_BUSY, .member = m->id, .code = 0});
    }
}

void leader_roles_take(struct leader *leader, struct leader_member *m, role_take *take,
                       json_object *msg)
{
    struct role_inbox *inbox = leader->roles->inbox;
    bool waits = leader_roles_any(leader) && !leader_has_ended(leader) &&
                 (role_inbox_any(inbox) || !lease_may_act(leader));

    if (!waits)
        take(leader, m, msg);
    else if (!role_inbox_add(inbox, m->id, take, msg))
        log_error("job %u: out of memory", leader->options->job);
}

bool leader_roles_room(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct reconcile_node node = {.job = m->part->job, .role = -1};
    const struct extension *ext = m->part->base ? NULL : extensions_find(leader, m->part->job);
    int64_t cpus, gpus, memory;

    if (!leader_roles_any(leader) || m->room > 0 || !json_get_int(msg, "cpus", 0, 65536, &cpus) ||
        !json_get_int(msg, "gpus", 0, 1024, &gpus) ||
        !json_get_int(msg, "memory", 0, INT64_MAX / 2, &memory))
        return false;
    if (ext != NULL && (ext->state == PLAN_LEAVING || ext->role < 0))
        return false;  /* it is about to go, or for the world */
    take_news(leader); /* of its job */
    node.id = m->room = ++leader->roles->nodes;
    node.size = (struct slots_size){.cpus = (int)cpus, .gpus = (int)gpus, .memory = memory};
    node.safe = m->part->base || is_safe(leader, ext);
    node.world = has_world(leader) && !m->part->apart;
    if (ext != NULL)
        node.role = ext->role;
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_BUSY, .member = m->id, .code = 1});
    leader_roles_feed(leader, (struct reconcile_fact){.kind = RECONCILE_NODE, .joins = &node});
    return true;
}

void leader_roles_member_gone(struct leader *leader, const struct leader_member *m)
{
    char why[WORLD_NAME_MAX + 16];

    if (!leader_roles_any(leader) || m->room == 0 || leader_has_ended(leader))
        return;
    snprintf(why, sizeof(why), "node %s lost", m->part->node);
    leader_roles_feed(
        leader, (struct reconcile_fact){.kind = RECONCILE_NODE_GONE, .node = m->room, .text = why});
}

void leader_roles_stop(struct leader *leader, const char *reason)
{
    if (!leader_roles_any(leader) || leader_has_ended(leader)) {
        post_stop(leader, reason);
        return;
    }
    leader_roles_feed(leader, (struct reconcile_fact){
                                  .kind = RECONCILE_STOP, .status = 128 + SIGTERM, .text = reason});
    if (has_world(leader) && !reconcile_world_is_over(leader->roles->view.reconcile))
        post_stop(leader, reason);
}

void leader_roles_add(const struct leader *leader, json_object *welcome)
{
    if (leader_roles_any(leader))
        json_object_object_add(welcome, "roles",
                               json_object_new_string(leader->options->roles_text));
}

/* ---- what others see ------------------------------------------------------------------------- */

bool leader_roles_run(const struct leader *leader)
{
    return leader_roles_any(leader) && leader->roles->base_done;
}

void leader_roles_summary(struct leader *leader, char *text, size_t size)
{
    roles_view_summary(leader, &leader->roles->view, text, size);
}

void leader_roles_describe(struct leader *leader, json_object *into)
{
    json_object *compat;

    roles_view_describe(leader, &leader->roles->view, into);
    json_object_object_add(into, "epoch", json_object_new_int(leader->roles->epoch));
    if (!leader->roles->view.roles->di_engine)
        return;
    compat = json_object_new_object();
    json_object_object_add(compat, "settled", json_object_new_boolean(leader->roles->base_done));
    json_object_object_add(into, "di_engine", compat);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

int leader_roles_epoch(const struct leader *leader)
{
    return leader->roles->epoch;
}

void leader_roles_resize(struct leader *leader, struct reconcile_fact fact)
{
    leader->roles->epoch++;
    leader->roles->stale = true;
    leader_roles_feed(leader, fact);
    role_sizes_write(leader, &leader->roles->view);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct leader_roles *leader_roles_create(const struct leader_options *options)
{
    struct leader_roles *own = calloc(1, sizeof(*own));
    struct reconcile_options reconcile = {
        .roles = options->roles,
        .grow_delay = options->policy->grow_delay,
        .max_pending = options->conf->max_pending,
        .first_start = (options->term & 0x3ff) << 20, /* no number is given twice */
    };

    if (own == NULL || options->roles == NULL)
        return own;
    own->inbox = role_inbox_create();
    own->view.roles = options->roles;
    own->epoch = reconcile.first_start;
    own->view.reconcile = reconcile_create(&reconcile);
    own->view.gangs = gangs_create(options->roles);
    own->requests = role_requests_create(options->roles);
    own->holds = role_holds_create();
    if (own->inbox == NULL || own->holds == NULL || own->view.reconcile == NULL ||
        own->view.gangs == NULL || own->requests == NULL) {
        leader_roles_destroy(own);
        return NULL;
    }
    role_sizes_read(&own->view, options->state_dir);
    return own;
}

void leader_roles_open(struct leader *leader)
{
    leader_timer_init(leader, &leader->roles->timer);
}

void leader_roles_close(struct leader *leader)
{
    leader_timer_close(&leader->roles->timer);
}

void leader_roles_destroy(struct leader_roles *own)
{
    if (own == NULL)
        return;
    reconcile_destroy(own->view.reconcile);
    gangs_destroy(own->view.gangs);
    role_requests_destroy(own->requests);
    role_holds_destroy(own->holds);
    role_inbox_destroy(own->inbox);
    free(own);
}
