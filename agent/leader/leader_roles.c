/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roles of the job: facts for lib/reconcile, and its actions (leader_roles.h). */
#include "agent/leader/leader_roles.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/gangs.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/role_sizes.h"
#include "agent/leader/roles_view.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/reconcile.h"
#include "lib/role_task.h"

#define ENDPOINTS_FILE "endpoints.json"
#define WRITE_PAUSE    0.1  /* seconds between two writes of it: thousands may get ready at once */
#define ROOM_LIMIT     60.0 /* seconds for a node that has joined to say what it has for replicas */

struct leader_roles {
    struct roles_view view; /* its roles are NULL: the job has none */
    uv_timer_t timer;
    int nodes;      /* that have been there so far */
    int epoch;      /* of the endpoints: a number that only grows */
    bool stale;     /* their file is of an epoch before */
    double written; /* … when it was written last */
    bool base_done; /* the nodes of the base that come at all are there */
    double joined;  /* when the base had joined; 0: not yet */
    double alone;   /* since when no node is there; 0: some are */
    bool room_said; /* users have been told of which replicas there is no room for */
};

static void on_timer(uv_timer_t *timer);
static void carry_out(struct leader *leader, const struct reconcile_actions *actions);

bool leader_roles_any(const struct leader *leader)
{
    return leader->roles->view.roles != NULL;
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

static void feed(struct leader *leader, struct reconcile_fact fact)
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

        if (wanted > 0)
            log_info("job %u: %s: the nodes of the job have no room for %d of %d replicas",
                     leader->options->job, view->roles->list[i].name, wanted,
                     reconcile_target(view->reconcile, i));
    }
}

/* Have the nodes of the base joined, as far as they come at all? */
static bool base_has_joined(const struct leader *leader)
{
    return change_has_begun(leader->change) ||
           (lease_term(leader) > 0 && change_phase(leader->change) == CHANGE_WAITING);
}

/* … and said what they have for replicas? */
static bool base_has_room(const struct leader *leader)
{
    int joined = 0, rooms = 0;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        joined += m->part->base && m->link != NULL;
        rooms += m->part->base && m->link != NULL && m->room > 0;
    }
    return joined > 0 && rooms == joined;
}

static void watch_base(struct leader *leader)
{
    struct leader_roles *own = leader->roles;
    double now = leader_now(leader), due;

    if (own->base_done || !base_has_joined(leader))
        return;
    if (own->joined == 0)
        own->joined = now;
    due = own->joined + ROOM_LIMIT;
    if (!base_has_room(leader) && now < due) {
        run_in(leader, due - now);
        return;
    }
    own->base_done = true;
    feed(leader, (struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
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
    if (!base_has_joined(leader))
        return; /* lib/change waits for the base */
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

static void on_timer(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    struct leader_roles *own = leader->roles;
    struct reconcile_actions actions = {0};
    double due;

    if (!lease_may_act(leader)) /* leader_roles_look() follows */
        return;
    watch_base(leader);
    if (reconcile_run(own->view.reconcile, leader_now(leader), &actions) != 0)
        log_error("job %u: out of memory", leader->options->job);
    due = reconcile_deadline(own->view.reconcile);
    if (due > 0)
        run_in(leader, due - leader_now(leader));
    carry_out(leader, &actions);
    free(actions.list);
    gangs_prune(own->view.gangs, own->view.reconcile);
    say_no_room(leader);
    watch_endpoints(leader);
    watch_nodes(leader);
}

/* ---- actions --------------------------------------------------------------------------------- */

/* What was not started has ended at once. */
static void never_started(struct leader *leader, const struct replica *replica, int node)
{
    int id = replica->id, start = replica->start;
    int tasks = leader->roles->view.roles->list[replica->role].gang.tasks;

    for (int i = 0; i < tasks; i++) {
        const struct replica *now = reconcile_find(leader->roles->view.reconcile, id);

        if (now != NULL && now->start == start && now->tasks[i].node == node)
            feed(leader, (struct reconcile_fact){.kind = RECONCILE_EXITED,
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
        never_started(leader, replica, a->node);
}

static void start(struct leader *leader, const struct reconcile_action *a)
{
    const struct replica *replica = reconcile_find(leader->roles->view.reconcile, a->replica);

    if (replica == NULL || replica->start != a->start || replica->state != REPLICA_STARTING)
        return;
    if (gangs_start(leader, leader->roles->view.gangs, replica) != 0)
        log_error("job %u: %s-%d cannot be started: out of memory", leader->options->job,
                  leader->roles->view.roles->list[replica->role].name, replica->index);
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
        case RECONCILE_ASK: /* no request may be pending: none is made */
        case RECONCILE_WITHDRAW:
        case RECONCILE_GIVE_BACK:
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

void leader_roles_room(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct reconcile_node node = {.job = m->part->job, .role = -1};
    int64_t cpus, gpus, memory;

    if (!leader_roles_any(leader) || m->room > 0 || !json_get_int(msg, "cpus", 0, 65536, &cpus) ||
        !json_get_int(msg, "gpus", 0, 1024, &gpus) ||
        !json_get_int(msg, "memory", 0, INT64_MAX / 2, &memory))
        return;
    node.id = m->room = ++leader->roles->nodes;
    node.size = (struct slots_size){.cpus = (int)cpus, .gpus = (int)gpus, .memory = memory};
    node.safe = m->part->base;
    feed(leader, (struct reconcile_fact){.kind = RECONCILE_NODE, .joins = &node});
    leader_roles_look(leader);
}

void leader_roles_member_gone(struct leader *leader, const struct leader_member *m)
{
    char why[WORLD_NAME_MAX + 16];

    if (!leader_roles_any(leader) || m->room == 0 || leader_has_ended(leader))
        return;
    snprintf(why, sizeof(why), "node %s lost", m->part->node);
    feed(leader,
         (struct reconcile_fact){.kind = RECONCILE_NODE_GONE, .node = m->room, .text = why});
}

void leader_roles_stop(struct leader *leader, const char *reason)
{
    if (leader_roles_any(leader) && !leader_has_ended(leader))
        feed(leader, (struct reconcile_fact){
                         .kind = RECONCILE_STOP, .status = 128 + SIGTERM, .text = reason});
    else
        post_stop(leader, reason);
}

void leader_roles_add(const struct leader *leader, json_object *welcome)
{
    if (leader_roles_any(leader))
        json_object_object_add(welcome, "roles",
                               json_object_new_string(leader->options->roles_text));
}

/* ---- what members say of tasks --------------------------------------------------------------- */

/* The replica that the message is about, if that start of it has tasks on the member's node. */
static const struct replica *subject(struct leader *leader, const struct leader_member *m,
                                     json_object *msg)
{
    const struct replica *replica;
    int64_t id, number;

    if (m->room == 0 || !json_get_int(msg, "replica", 1, INT32_MAX, &id) ||
        !json_get_int(msg, "start", 1, INT32_MAX, &number))
        return NULL;
    replica = reconcile_find(leader->roles->view.reconcile, (int)id);
    if (replica == NULL || replica->start != number)
        return NULL;
    for (int i = 0; i < leader->roles->view.roles->list[replica->role].gang.tasks; i++)
        if (replica->tasks[i].node == m->room)
            return replica;
    return NULL;
}

/* … and its task, which has to be on that node. NULL: there is none. */
static const struct replica *task_of(struct leader *leader, const struct leader_member *m,
                                     json_object *msg, int *task)
{
    const struct replica *replica = subject(leader, m, msg);
    int64_t number;

    if (replica == NULL ||
        !json_get_int(msg, "task", 0, leader->roles->view.roles->list[replica->role].gang.tasks - 1,
                      &number) ||
        replica->tasks[number].node != m->room)
        return NULL;
    *task = (int)number;
    return replica;
}

void leader_roles_port(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const struct replica *replica = subject(leader, m, msg);

    if (replica != NULL && replica->tasks[0].node == m->room)
        gangs_port(leader, leader->roles->view.gangs, replica, msg);
}

void leader_roles_running(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const struct replica *replica = subject(leader, m, msg);
    struct reconcile_fact fact = {.kind = RECONCILE_RUNNING};
    int tasks;

    if (replica == NULL)
        return;
    gangs_running(leader->roles->view.gangs, replica, m->room, msg);
    fact.replica = replica->id;
    fact.start = replica->start;
    tasks = leader->roles->view.roles->list[replica->role].gang.tasks;
    for (fact.task = 0; fact.task < tasks; fact.task++) {
        replica = reconcile_find(leader->roles->view.reconcile, fact.replica);
        if (replica != NULL && replica->start == fact.start &&
            replica->tasks[fact.task].node == m->room)
            feed(leader, fact);
    }
}

static void feed_task(struct leader *leader, const struct leader_member *m, json_object *msg,
                      enum reconcile_fact_kind kind)
{
    struct reconcile_fact fact = {.kind = kind, .text = json_get_string(msg, "text")};
    const struct replica *replica = task_of(leader, m, msg, &fact.task);

    if (replica == NULL)
        return;
    fact.replica = replica->id;
    fact.start = replica->start;
    feed(leader, fact);
}

void leader_roles_ready(struct leader *leader, struct leader_member *m, json_object *msg)
{
    feed_task(leader, m, msg, RECONCILE_TASK_READY);
}

void leader_roles_unready(struct leader *leader, struct leader_member *m, json_object *msg)
{
    feed_task(leader, m, msg, RECONCILE_UNREADY);
}

static void say_end(struct leader *leader, const struct leader_member *m,
                    const struct replica *replica, int task, const char *text)
{
    const struct role *role = &leader->roles->view.roles->list[replica->role];
    char which[32] = "";

    if (replica->state == REPLICA_DRAINING || replica->state == REPLICA_FAILED)
        return; /* it was to end */
    if (role->gang.tasks > 1)
        snprintf(which, sizeof(which), ", task %d,", task);
    log_info("job %u: %s-%d%s on %s: %s", leader->options->job, role->name, replica->index, which,
             m->part->node, text);
}

void leader_roles_exit(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct reconcile_fact fact = {.kind = RECONCILE_EXITED, .text = json_get_string(msg, "text")};
    const struct replica *replica = task_of(leader, m, msg, &fact.task);
    int64_t status;

    if (replica == NULL) {
        /* The node has none of its tasks. */
        replica = subject(leader, m, msg);
        if (replica != NULL && json_get_int(msg, "task", -1, -1, &status))
            never_started(leader, replica, m->room);
        return;
    }
    if (!json_get_int(msg, "status", 0, 255, &status))
        return;
    output_end_rank(leader->output, role_task_stream(replica->start, fact.task));
    fact.replica = replica->id;
    fact.start = replica->start;
    fact.status = (int)status;
    if (status != 0)
        say_end(leader, m, replica, fact.task, fact.text != NULL ? fact.text : "has ended");
    feed(leader, fact);
}

/* ---- what others see ------------------------------------------------------------------------- */

bool leader_roles_run(const struct leader *leader)
{
    return leader_roles_any(leader) && leader->roles->base_done;
}

void leader_roles_summary(struct leader *leader, char *text, size_t size)
{
    const struct roles_view *view = &leader->roles->view;
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < view->roles->count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s %d/%d", i > 0 ? ", " : "",
                                   view->roles->list[i].name,
                                   reconcile_in_state(view->reconcile, i, REPLICA_READY),
                                   reconcile_target(view->reconcile, i));
}

void leader_roles_describe(struct leader *leader, json_object *into)
{
    roles_view_describe(leader, &leader->roles->view, into);
    json_object_object_add(into, "epoch", json_object_new_int(leader->roles->epoch));
}

/* ---- sizes ----------------------------------------------------------------------------------- */

int leader_roles_scale(struct leader *leader, const char *role, bool relative, int number,
                       int *size, int *before, struct error *err)
{
    const struct roles *roles = leader->roles->view.roles;
    int index = roles_find(roles, role != NULL ? role : "");
    int64_t wanted;

    if (index < 0)
        return error_set(err, "there is no role '%.40s'", role != NULL ? role : "");
    if (roles->list[index].leads || roles->list[index].kind == ROLE_WORLD)
        return error_set(err, "the size of %s cannot be set: %s", role,
                         roles->list[index].leads ? "it leads the job" : "it is the world");
    *before = reconcile_target(leader->roles->view.reconcile, index);
    wanted = relative ? (int64_t)*before + number : number;
    if (wanted < roles->list[index].min || wanted > roles->list[index].max)
        return error_set(err, "%lld replicas of %s: allowed are %d to %d", (long long)wanted, role,
                         roles->list[index].min, roles->list[index].max);
    *size = (int)wanted;
    feed(leader,
         (struct reconcile_fact){.kind = RECONCILE_SCALE, .role = index, .count = (int)wanted});
    role_sizes_write(leader, &leader->roles->view);
    return 0;
}

int leader_roles_fail(struct leader *leader, const char *name, struct error *err)
{
    const struct replica *replica = name != NULL
                                        ? reconcile_named(leader->roles->view.reconcile, name)
                                        : NULL;

    if (replica == NULL)
        return error_set(err, "there is no replica '%.80s'", name != NULL ? name : "");
    if (replica->state != REPLICA_STARTING && replica->state != REPLICA_READY)
        return error_set(err, "%s does not run: it is %s", name,
                         replica_state_text(replica->state));
    feed(leader, (struct reconcile_fact){
                     .kind = RECONCILE_FAIL, .replica = replica->id, .text = "a user has asked"});
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct leader_roles *leader_roles_create(const struct leader_options *options)
{
    struct leader_roles *own = calloc(1, sizeof(*own));
    struct reconcile_options reconcile = {
        .roles = options->roles,
        .grow_delay = options->policy->grow_delay,
        .first_start = (options->term & 0x3ff) << 20, /* no number is given twice */
    };

    if (own == NULL || options->roles == NULL)
        return own;
    own->view.roles = options->roles;
    own->view.reconcile = reconcile_create(&reconcile);
    own->view.gangs = gangs_create(options->roles);
    if (own->view.reconcile == NULL || own->view.gangs == NULL) {
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
    free(own);
}
