/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/reconcile in random histories: nodes that come and go, tasks that start, hang and fail, a
 * Slurm that grants, refuses and preempts, users who change their minds. Invariants hold after each
 * event, and when nothing disturbs any more all is as it should be. */
#include "lib/reconcile.h"
#include "tests/unit/support.h"

#define HISTORIES  RANDOM_ROUNDS(20000) /* without HISTORIES in the environment */
#define ROLES      4
#define NODES      64   /* of one history at most */
#define NODE_IDS   2048 /* each gets another one at a takeover */
#define TASKS      512
#define EVENTS_MAX 256
#define JOBS       1024
#define CALM       2000.0 /* seconds in which all is as it should be after the last disturbance */

/* ---- the world around it --------------------------------------------------------------------- */

struct own_node {
    int id;
    uint32_t job;
    struct slots_size size;
    bool there, left, safe, world;
    int role;
};

struct own_task {
    int replica, start, task, node;
    bool started, ended, deaf; /* deaf: it does not end before SIGKILL */
    double kill;               /* SIGKILL comes then; 0: not asked to end */
};

enum event_kind {
    RUNS,
    READY,
    ENDS, /* a task */
    ASKED,
    GRANT,
    REFUSE,
    DENY, /* a request */
    JOIN,
    LEAVE, /* a node */
    WORLD_ENDS,
};

struct event {
    double at;
    enum event_kind kind;
    int task; /* its place in tasks */
    int node; /* its place in nodes */
    int role, form, status;
    uint32_t job;
};

struct history {
    unsigned first, seed; /* of the history, and of its next number */
    struct roles roles;
    struct role list[ROLES];
    int after[ROLES];
    struct reconcile *r;
    double now;
    bool calm; /* nothing fails any more */
    int max_pending, grow_delay, first_start;
    struct own_node nodes[NODES];
    int node_count, last_node, free_nodes; /* that Slurm can still give */
    struct own_task tasks[TASKS];
    int task_count;
    struct event events[EVENTS_MAX];
    int event_count;
    uint32_t last_job;
    bool over[JOBS];               /* requests that have been refused or withdrawn */
    struct slots_gang gangs[JOBS]; /* … what they were for */
    int open_requests, starts, last_start;
    bool stopped, finished;
    int world; /* the role that is one; -1: none */
    bool world_ends, world_over;
    int status;
};

static int roll(struct history *h, int sides)
{
    return rand_r(&h->seed) % sides;
}

static double soon(struct history *h, double most)
{
    return h->now + most * (1 + roll(h, 1000)) / 1000;
}

static void plan_event(struct history *h, struct event event)
{
    assert_true(h->event_count < EVENTS_MAX);
    h->events[h->event_count++] = event;
}

static struct own_node *node_of(struct history *h, int id)
{
    for (int i = 0; i < h->node_count; i++)
        if (h->nodes[i].id == id)
            return &h->nodes[i];
    return NULL;
}

static void apply(struct history *h, struct reconcile_actions *out);
static void show(const struct history *h, const struct reconcile_actions *out);

static void feed(struct history *h, struct reconcile_fact fact)
{
    struct reconcile_actions out = {0};

    fact.now = h->now;
    assert_int_equal(reconcile_feed(h->r, &fact, &out), 0);
    apply(h, &out);
    free(out.list);
}

/* ---- what it asks for ------------------------------------------------------------------------ */

/* A gang starts with its owner. */
static void check_owner_runs(struct history *h, const struct reconcile_action *a)
{
    const struct replica *gang = reconcile_find(h->r, a->replica), *owner;

    if (!gang->gang->owned)
        return;
    owner = reconcile_find(h->r, gang->pair);
    assert_non_null(owner);
    assert_int_equal(owner->role, h->roles.pairs.owner);
    assert_int_equal(owner->state, REPLICA_READY);
    assert_true(owner->start < a->start);
}

static void start_task(struct history *h, const struct reconcile_action *a)
{
    struct own_node *node = node_of(h, a->node);
    struct own_task *task;
    bool bad = !h->calm && roll(h, 6) == 0;
    int way = roll(h, 4);

    assert_false(h->stopped);
    assert_non_null(node);
    check_owner_runs(h, a);
    for (int i = 0; i < h->task_count; i++)
        assert_false(h->tasks[i].start == a->start && h->tasks[i].task == a->task);
    assert_true(a->start >= h->last_start);
    h->last_start = a->start;
    if (!node->there) /* the message comes too late */
        return;
    assert_true(h->task_count < TASKS);
    task = &h->tasks[h->task_count++];
    *task = (struct own_task){a->replica, a->start, a->task, a->node, .deaf = roll(h, 5) == 0};
    task->started = true;
    if (bad && way == 0)
        return; /* nothing is heard of it */
    plan_event(h, (struct event){soon(h, 0.5), RUNS, .task = h->task_count - 1});
    if (bad && way == 1)
        return; /* it is never ready */
    plan_event(h, (struct event){h->events[h->event_count - 1].at + 0.5, READY,
                                 .task = h->task_count - 1});
    if (bad)
        plan_event(h, (struct event){soon(h, 20), ENDS, .task = h->task_count - 1,
                                     .status = way == 2 ? 3 : 0});
}

static struct own_task *task_of(struct history *h, const struct reconcile_action *a)
{
    for (int i = 0; i < h->task_count; i++)
        if (h->tasks[i].start == a->start && h->tasks[i].task == a->task)
            return &h->tasks[i];
    return NULL;
}

static void end_task(struct history *h, const struct reconcile_action *a, bool by_kill)
{
    struct own_task *task = task_of(h, a);

    if (task == NULL || task->ended)
        return;
    if (by_kill || !task->deaf)
        plan_event(h, (struct event){soon(h, by_kill ? 0.2 : a->seconds), ENDS,
                                     .task = (int)(task - h->tasks), .status = by_kill ? 137 : 0});
}

static void answer_request(struct history *h, const struct reconcile_action *a)
{
    uint32_t job = ++h->last_job;

    int way = h->calm ? 0 : roll(h, 5);

    assert_true(job < JOBS);
    assert_false(h->stopped);
    assert_true(a->count >= 1);
    h->open_requests++;
    assert_true(h->open_requests <= h->max_pending);
    if (way == 1) {
        plan_event(h, (struct event){soon(h, 1), REFUSE, .role = a->role, .form = a->form});
        return;
    }
    h->gangs[job] = *reconcile_gang(h->r, a->role, a->form);
    plan_event(h, (struct event){h->now, ASKED, .role = a->role, .form = a->form, .job = job,
                                 .status = a->count, .node = a->safe});
}

static bool in_use(const struct replica_task *task)
{
    return task->node != 0 && task->state != REPLICA_TASK_ENDED;
}

/* What is free on a node of the base. */
static struct slots_size room_on(struct history *h, const struct own_node *node)
{
    struct slots_size free = node->size;
    const struct slots_size *world = reconcile_size_of_world(h->r, node->id);

    if (world != NULL)
        slots_take(&free, world);
    for (int i = 0; i < reconcile_count(h->r); i++) {
        const struct replica *replica = reconcile_at(h->r, i);

        for (int task = 0; task < replica->gang->tasks; task++)
            if (replica->tasks[task].node == node->id && in_use(&replica->tasks[task]))
                slots_take(&free, &replica->gang->size);
    }
    return free;
}

/* Nodes of the base where a task of that role would have room, and the world is not. */
static int with_room(struct history *h, int role)
{
    struct slots_size size = h->list[role].gang.size;
    int count = 0;

    if (size.cpus == 0)
        size.cpus = 1; /* a world that takes what is left */
    for (int i = 0; i < h->node_count; i++) {
        const struct own_node *node = &h->nodes[i];
        struct slots_size free = room_on(h, node);

        count += node->there && node->safe && node->role < 0 &&
                 (role != h->world || !reconcile_has_world(h->r, node->id)) &&
                 slots_fit(&free, &size) > 0;
    }
    return count;
}

/* The job may end by itself at its start only, and only if the base has no room for the world or
 * the leading replica. */
static void check_refusal(struct history *h, const char *why)
{
    bool leading = strncmp(why, "the base has no room", 20) == 0;

    if (!leading && (strncmp(why, "the base has no ", 16) != 0 || h->stopped))
        return;
    assert_int_equal(h->last_start, 0);
    if (leading || h->list[h->world].gang.size.cpus > 0) /* else: beside what is forgotten by now */
        assert_true(with_room(h, leading ? 0 : h->world) < (leading ? 1 : h->list[h->world].min));
    h->stopped = true;
    h->status = 1;
}

static void apply(struct history *h, struct reconcile_actions *out)
{
    show(h, out);
    for (int i = 0; i < out->count; i++) {
        const struct reconcile_action *a = &out->list[i];

        assert_false(h->finished);
        switch (a->kind) {
        case RECONCILE_START:
            start_task(h, a);
            break;
        case RECONCILE_DRAIN:
            assert_true(a->seconds > 0);
            end_task(h, a, false);
            break;
        case RECONCILE_KILL:
            end_task(h, a, true);
            break;
        case RECONCILE_ASK:
            answer_request(h, a);
            break;
        case RECONCILE_WITHDRAW:
            plan_event(h, (struct event){soon(h, 1), DENY, .job = a->job});
            break;
        case RECONCILE_GIVE_BACK:
            for (int k = 0; k < h->node_count; k++)
                if (h->nodes[k].job == a->job && h->nodes[k].there)
                    plan_event(h, (struct event){soon(h, 1), LEAVE, .node = k});
            plan_event(h, (struct event){h->now + 1.1, DENY, .job = a->job});
            break;
        case RECONCILE_FINISH:
            assert_true(h->stopped);
            assert_int_equal(a->status, h->status);
            h->finished = true;
            break;
        case RECONCILE_SAY:
            check_refusal(h, a->text);
            break;
        default:
            break;
        }
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static void join(struct history *h, int at)
{
    struct own_node *node = &h->nodes[at];
    struct reconcile_node joins = {.id = node->id = ++h->last_node,
                                   .job = node->job,
                                   .size = node->size,
                                   .safe = node->safe,
                                   .role = node->role,
                                   .world = node->world};

    node->there = true;
    feed(h, (struct reconcile_fact){.kind = RECONCILE_NODE, .joins = &joins});
}

static int add_node(struct history *h, uint32_t job, int role, bool safe)
{
    struct own_node *node = &h->nodes[h->node_count];

    assert_true(h->node_count < NODES);
    *node = (struct own_node){
        h->node_count + 1, job, {4 + roll(h, 5), roll(h, 3), 8}, .safe = safe, .role = role};
    return h->node_count++;
}

static void leave(struct history *h, int at)
{
    struct own_node *node = &h->nodes[at];

    if (!node->there)
        return;
    node->there = false;
    node->left = true;
    h->free_nodes += node->job != 0;
    for (int i = 0; i < h->task_count; i++)
        if (h->tasks[i].node == node->id)
            h->tasks[i].ended = true;
    feed(h, (struct reconcile_fact){
                .kind = RECONCILE_NODE_GONE, .node = node->id, .text = "its link is closed"});
}

/* Large enough for every gang's task: else it is given back again and again. */
static const struct slots_size new_node = {8, 2, 8};

/* Slurm has room: all nodes of the request join, one after the other. */
static void grant(struct history *h, const struct event *e)
{
    const struct slots_gang *gang = &h->gangs[e->job];
    int nodes = 1 + roll(h, 2), least, fit = slots_fit(&new_node, &gang->size);

    if (h->over[e->job])
        return;
    /* As many as a gang of it takes. */
    if (gang->per_node > 0 && gang->per_node < fit)
        fit = gang->per_node;
    least = (gang->tasks + fit - 1) / fit;
    if (nodes < least)
        nodes = least;
    if (h->free_nodes < least)
        nodes = 0;
    if (nodes > h->free_nodes)
        nodes = h->free_nodes;
    if (nodes == 0 || h->node_count + nodes > NODES) {
        struct event later = *e;

        later.at = h->now + 5;
        plan_event(h, later);
        return;
    }
    if (!h->calm && roll(h, 6) == 0) {
        plan_event(h, (struct event){soon(h, 30), DENY, .job = e->job});
        return;
    }
    h->open_requests--;
    h->free_nodes -= nodes;
    feed(h, (struct reconcile_fact){.kind = RECONCILE_GRANTED, .job = e->job, .count = nodes});
    for (int i = 0; i < nodes; i++) {
        int at = add_node(h, e->job, e->role, e->node != 0);

        h->nodes[at].size = new_node;
        plan_event(h, (struct event){soon(h, 3), JOIN, .node = at});
    }
}

static bool is_open(struct history *h, uint32_t job)
{
    for (int i = 0; i < h->node_count; i++)
        if (h->nodes[i].job == job)
            return false;
    return true;
}

/* The job ends as its leading replica does, if that has not been told to end. */
static void watch_for_stop(struct history *h, const struct own_task *task, const struct event *e)
{
    const struct replica *replica = reconcile_find(h->r, task->replica);

    if (e->kind != ENDS || h->stopped || replica == NULL || replica->role != 0 ||
        replica->start != task->start || (replica->again && replica->state == REPLICA_DRAINING) ||
        replica->tasks[task->task].state == REPLICA_TASK_NONE)
        return;
    h->stopped = true;
    h->status = e->status;
}

static void happen(struct history *h, const struct event *e)
{
    struct own_task *task = &h->tasks[e->task];
    struct reconcile_fact fact = {
        .replica = task->replica, .start = task->start, .task = task->task, .status = e->status};

    switch (e->kind) {
    case RUNS:
    case READY:
    case ENDS:
        if (task->ended)
            return;
        task->ended = e->kind == ENDS;
        watch_for_stop(h, task, e);
        fact.kind = e->kind == RUNS    ? RECONCILE_RUNNING
                    : e->kind == READY ? RECONCILE_TASK_READY
                                       : RECONCILE_EXITED;
        fact.text = "exit";
        feed(h, fact);
        return;
    case ASKED:
        feed(h, (struct reconcile_fact){
                    .kind = RECONCILE_REQUESTED, .role = e->role, .form = e->form, .job = e->job});
        plan_event(h, (struct event){h->now, GRANT, .role = e->role, .job = e->job,
                                     .status = e->status, .node = e->node});
        return;
    case GRANT:
        grant(h, e);
        return;
    case REFUSE:
        h->open_requests--;
        feed(h,
             (struct reconcile_fact){
                 .kind = RECONCILE_REFUSED, .role = e->role, .form = e->form, .text = "refused"});
        return;
    case DENY:
        h->open_requests -= is_open(h, e->job) && !h->over[e->job];
        h->over[e->job] = true;
        if (roll(h, 3) == 0) /* of no effect but on what still waits */
            feed(h, (struct reconcile_fact){.kind = RECONCILE_PASSED, .job = e->job});
        feed(h, (struct reconcile_fact){.kind = RECONCILE_DENIED, .job = e->job, .text = "over"});
        return;
    case JOIN:
        join(h, e->node);
        return;
    case LEAVE:
        leave(h, e->node);
        return;
    case WORLD_ENDS:
        h->world_over = true;
        feed(h, (struct reconcile_fact){.kind = RECONCILE_WORLD_OVER, .status = e->status});
    }
}

/* For who plays one history: SEED=N. */
static void show(const struct history *h, const struct reconcile_actions *out)
{
    static const char *const kinds[] = {"start",     "drain",     "kill", "ask",   "withdraw",
                                        "give back", "endpoints", "say",  "finish"};

    for (int i = 0; i < out->count && getenv("SEED") != NULL; i++) {
        const struct reconcile_action *a = &out->list[i];

        printf("%9.3f %s role %d replica %d start %d task %d node %d job %u count %d %s\n", h->now,
               kinds[a->kind], a->role, a->replica, a->start, a->task, a->node, a->job, a->count,
               a->text);
    }
}

static void run(struct history *h)
{
    struct reconcile_actions out = {0};

    assert_int_equal(reconcile_run(h->r, h->now, &out), 0);
    apply(h, &out);
    if (h->world >= 0 && !h->world_ends && reconcile_stopping(h->r) &&
        h->roles.clean != ROLES_CLEAN_NONE) {
        h->world_ends = true;
        plan_event(h, (struct event){soon(h, 5), WORLD_ENDS, .status = roll(h, 2)});
    }
    out.count = 0;
    assert_int_equal(reconcile_run(h->r, h->now, &out), 0);
    show(h, &out);
    if (out.count > 0)
        fail_msg("seed %u: a second run has %d actions, the first of kind %d", h->first, out.count,
                 (int)out.list[0].kind);
    free(out.list);
}

/* The next event, or the reconciler's own deadline, before `until`. False: none. */
static bool next_event(struct history *h, double until)
{
    double deadline = reconcile_deadline(h->r);
    int first = -1;

    for (int i = 0; i < h->event_count; i++)
        if (first < 0 || h->events[i].at < h->events[first].at)
            first = i;
    if (first >= 0 && h->events[first].at <= until &&
        (deadline <= 0 || h->events[first].at <= deadline)) {
        struct event e = h->events[first];

        h->events[first] = h->events[--h->event_count];
        if (e.at > h->now)
            h->now = e.at;
        happen(h, &e);
    } else if (deadline > 0 && deadline <= until) {
        h->now = deadline > h->now ? deadline : h->now + 1e-6;
    } else {
        return false;
    }
    run(h);
    return true;
}

/* ---- what must hold -------------------------------------------------------------------------- */

static void check(struct history *h)
{
    struct slots_size used[NODE_IDS] = {{0}};

    for (int i = 0; i < reconcile_count(h->r); i++) {
        const struct replica *replica = reconcile_at(h->r, i);
        const struct role *role = &h->list[replica->role];
        const struct slots_gang *gang = replica->gang;
        int with = 0;

        assert_true(slots_equal(gang, reconcile_gang(h->r, replica->role, replica->form)));
        for (int task = 0; task < gang->tasks; task++) {
            const struct replica_task *t = &replica->tasks[task];

            with += t->node != 0;
            if (!in_use(t))
                continue;
            slots_take(&used[t->node], &gang->size);
            assert_true(!role->leads || node_of(h, t->node)->safe);
        }
        /* All or nothing. */
        assert_int_equal(with, replica->state == REPLICA_WANTED ? 0 : gang->tasks);
        for (int k = 0; k < i; k++)
            assert_false(reconcile_at(h->r, k)->role == replica->role &&
                         reconcile_at(h->r, k)->index == replica->index);
    }
    for (int i = 0; i < h->node_count; i++) {
        const struct slots_size *size = &h->nodes[i].size;
        struct slots_size *sum = &used[h->nodes[i].id];

        if (!h->nodes[i].there)
            continue;
        if (reconcile_has_world(h->r, h->nodes[i].id)) {
            assert_true(h->nodes[i].safe && h->nodes[i].role < 0 && !h->world_over);
            slots_take(sum, reconcile_size_of_world(h->r, h->nodes[i].id));
        }
        /* slots_take() has counted down from 0 */
        if (-sum->cpus > size->cpus || -sum->gpus > size->gpus || -sum->memory > size->memory)
            fail_msg("seed %u: node %d is overbooked", h->first, h->nodes[i].id);
    }
}

static int total(const struct history *h, int role, enum replica_state state)
{
    return reconcile_in_state(h->r, role, state);
}

static bool is_safe(struct history *h, const struct replica *replica)
{
    for (int t = 0; t < replica->gang->tasks; t++)
        if (replica->tasks[t].node == 0 || !node_of(h, replica->tasks[t].node)->safe)
            return false;
    return true;
}

/* Replicas of that role that should have the needs of its job file. */
static int first_target(const struct history *h, int role)
{
    struct slots_gang gang;

    return reconcile_target_of(h->r, role, 0, &gang);
}

/* The size of a role is that of its forms, and each replica of a form that should be there is. */
static void check_forms(struct history *h)
{
    for (int role = 0; role < h->roles.count; role++) {
        int sum = 0;

        for (int form = 0; form < RECONCILE_FORMS; form++) {
            struct slots_gang gang;
            int target = reconcile_target_of(h->r, role, form, &gang), is = 0;

            for (int i = 0; i < reconcile_count(h->r); i++)
                is += reconcile_at(h->r, i)->role == role && reconcile_at(h->r, i)->form == form &&
                      !reconcile_at(h->r, i)->leaves;
            sum += target;
            if (role == h->world || h->stopped)
                continue;
            if (!h->roles.pairs.any || role != h->roles.pairs.owner)
                assert_true(form > 0 ? is == target : is <= target);
        }
        assert_int_equal(sum, reconcile_target(h->r, role));
    }
}

/* There is no gang without its owner, and no owner without its gang; a gang runs with that start of
 * its owner with which it was started. */
static void check_pairs(struct history *h)
{
    for (int i = 0; i < reconcile_count(h->r) && h->roles.pairs.any && !h->stopped; i++) {
        const struct replica *one = reconcile_at(h->r, i), *other;
        bool owner = one->role == h->roles.pairs.owner;

        if (one->leaves || (!owner && !one->gang->owned))
            continue;
        other = reconcile_find(h->r, one->pair);
        assert_non_null(other);
        assert_int_equal(other->pair, one->id);
        assert_false(other->leaves);
        assert_true(owner ? other->gang->owned : other->role == h->roles.pairs.owner);
        if (!owner && (one->state == REPLICA_STARTING || one->state == REPLICA_READY)) {
            assert_int_equal(other->state, REPLICA_READY);
            assert_true(other->start < one->start);
        }
    }
}

/* Replicas of its role with a lower index that are on nodes that nobody preempts, too. */
static int safe_before(struct history *h, const struct replica *replica)
{
    int count = 0;

    for (int i = 0; i < reconcile_count(h->r); i++) {
        const struct replica *other = reconcile_at(h->r, i);

        count += other->role == replica->role && other->form == 0 &&
                 other->index < replica->index && is_safe(h, other);
    }
    return count;
}

/* What is free on the nodes that nobody preempts, with the slots there of replicas beyond the
 * guaranteed ones of other roles. */
static void count_safe_room(struct history *h, int of, struct slots_node *room)
{
    for (int i = 0; i < h->node_count; i++) {
        const struct slots_size *world = reconcile_size_of_world(h->r, h->nodes[i].id);

        room[i] = (struct slots_node){.free = h->nodes[i].size,
                                      .closed = !h->nodes[i].there || !h->nodes[i].safe ||
                                                (h->nodes[i].role >= 0 && h->nodes[i].role != of)};
        if (world != NULL)
            slots_take(&room[i].free, world);
    }
    for (int i = 0; i < reconcile_count(h->r); i++) {
        const struct replica *replica = reconcile_at(h->r, i);
        const struct role *role = &h->list[replica->role];
        int target = first_target(h, replica->role);
        bool stays = replica->role == of ||
                     (replica->form == 0 && is_safe(h, replica) &&
                      safe_before(h, replica) < (role->min < target ? role->min : target));

        for (int t = 0; t < replica->gang->tasks && stays; t++)
            if (in_use(&replica->tasks[t]))
                slots_take(&room[node_of(h, replica->tasks[t].node) - h->nodes].free,
                           &replica->gang->size);
    }
}

/* A guaranteed replica waits only if there is no room for it, whoever makes way. */
static void check_guarantee(struct history *h, int role)
{
    struct slots_node room[NODES];
    int where[8], safe = 0, wanted = 0, least = h->list[role].min;

    for (int i = 0; i < reconcile_count(h->r); i++) {
        const struct replica *replica = reconcile_at(h->r, i);

        if (replica->role != role || replica->form > 0)
            continue;
        safe += is_safe(h, replica);
        wanted += replica->state == REPLICA_WANTED;
    }
    if (least > first_target(h, role))
        least = first_target(h, role);
    if (safe >= least || wanted == 0 || h->list[role].base != NULL)
        return;
    count_safe_room(h, role, room);
    if (slots_place(room, h->node_count, &h->list[role].gang, where))
        fail_msg("seed %u: a guaranteed replica of role %d waits, though there is room", h->first,
                 role);
}

/* The world lacks a node of the base only if none has room: others do not make way for it. */
static void check_world(struct history *h)
{
    int nodes = 0;

    for (int i = 0; i < h->node_count; i++)
        nodes += h->nodes[i].there && reconcile_has_world(h->r, h->nodes[i].id);
    assert_true(nodes <= h->list[h->world].min);
    if (!h->world_over && nodes < h->list[h->world].min && with_room(h, h->world) > 0)
        fail_msg("seed %u: the world lacks nodes, though there is room", h->first);
}

/* Nothing has disturbed for a long time. */
static void check_calm(struct history *h)
{
    if (h->stopped) {
        assert_true(h->finished || h->roles.clean == ROLES_CLEAN_NONE);
        return;
    }
    for (int role = 0; role < h->roles.count; role++) {
        int ready = total(h, role, REPLICA_READY), all = 0;

        if (role == h->world) {
            check_world(h);
            continue;
        }
        for (int state = 0; state < REPLICA_STATE_COUNT; state++)
            all += total(h, role, (enum replica_state)state);
        /* Nothing is under way … */
        assert_int_equal(total(h, role, REPLICA_STARTING) + total(h, role, REPLICA_DRAINING) +
                             total(h, role, REPLICA_FAILED),
                         0);
        /* … and none is there that should not be. */
        assert_true(all <= reconcile_target(h->r, role));
        assert_true(ready <= reconcile_target(h->r, role));
        check_guarantee(h, role);
        /* Slurm has nodes, and all nodes that it gives are large enough. */
        if (h->free_nodes > 3 && h->node_count < NODES - 4 && role != 0 &&
            total(h, role, REPLICA_WANTED) == 0 && total(h, role, REPLICA_PLACED) == 0 &&
            ready < reconcile_target(h->r, role)) {
            char size[200], more[200];

            reconcile_why(h->r, role, h->now, size, sizeof(size), more, sizeof(more));
            fail_msg("seed %u: role %d: %s; %s", h->first, role, size, more);
        }
    }
}

/* ---- histories ------------------------------------------------------------------------------- */

static const char *const names[ROLES] = {"lead", "one", "two", "three"};

static struct reconcile *create(const struct history *h)
{
    struct reconcile_options options = {.roles = &h->roles,
                                        .grow_delay = h->grow_delay,
                                        .max_pending = h->max_pending,
                                        .first_start = h->first_start};
    struct reconcile *r = reconcile_create(&options);

    assert_non_null(r);
    return r;
}

static void make_world(struct history *h, struct role *role)
{
    role->kind = ROLE_WORLD;
    role->min = 1 + roll(h, 2);
    role->max = role->min + roll(h, 3);
    role->after_count = 0;
    role->gang = (struct slots_gang){.tasks = 1};
    if (roll(h, 2))
        role->gang.size = (struct slots_size){1 + roll(h, 4), roll(h, 2), roll(h, 4)};
}

/* Replicas of one role own gangs of another one. */
static void make_pairs(struct history *h)
{
    int owner = 1 + roll(h, h->roles.count - 1), owned = 1 + roll(h, h->roles.count - 1);

    if (owner == owned || roll(h, 2))
        return;
    h->roles.pairs.any = true;
    h->roles.pairs.owner = owner;
    h->roles.pairs.owned = owned;
    h->list[owner].min = 0;
    h->list[owner].max = h->list[owned].max;
    h->list[owner].asks = true;
    h->list[owner].gang = (struct slots_gang){{1, 0, 0}, 1, 0, false};
    h->list[owned].after_count = h->list[owner].after_count = 0;
}

static void make_roles(struct history *h)
{
    h->roles = (struct roles){.clean = (enum roles_clean)roll(h, 3), .list = h->list};
    h->roles.count = 2 + roll(h, ROLES - 1);
    for (int i = 0; i < h->roles.count; i++) {
        struct role *role = &h->list[i];

        *role = (struct role){.name = (char *)names[i], .leads = i == 0, .asks = roll(h, 2)};
        role->min = i == 0 ? 1 : roll(h, 3);
        role->max = i == 0 ? 1 : role->min + roll(h, 6);
        role->gang = (struct slots_gang){
            {1 + roll(h, 3), roll(h, 2), roll(h, 4)}, i == 0 ? 1 : 1 + roll(h, 3), 0, false};
        role->ready.how = ROLE_PROBE_TOLD;
        role->ready.within = 5;
        role->drain.within = 1 + roll(h, 10);
        role->restart.max = 1000000;
        role->restart.first_pause = 1;
        role->restart.max_pause = 60;
        if (i > 0 && roll(h, 3) == 0) {
            h->after[i] = roll(h, i);
            role->after = &h->after[i];
            role->after_count = 1;
        }
    }
    h->list[0].asks = true;
    make_pairs(h);
    h->world = h->roles.count > 2 && !h->roles.pairs.any && roll(h, 3) == 0
                   ? 1 + roll(h, h->roles.count - 1)
                   : -1;
    if (h->world >= 0)
        make_world(h, &h->list[h->world]);
    if (roll(h, 3) == 0 && h->world != 1)
        h->list[1].base = (char *)"safe";
}

/* ---- another leader -------------------------------------------------------------------------- */

/* Requests that wait are cancelled, and what was on its way for them is not heard any more. */
static void forget_requests(struct history *h)
{
    int kept = 0;

    for (uint32_t job = 1; job <= h->last_job; job++)
        h->over[job] = h->over[job] || is_open(h, job);
    for (int i = 0; i < h->event_count; i++) {
        const struct event *e = &h->events[i];

        if (e->kind != ASKED && e->kind != REFUSE && e->kind != GRANT && e->kind != DENY)
            h->events[kept++] = *e;
    }
    h->event_count = kept;
    h->open_requests = 0;
}

/* Its extensions are found by Slurm's list. */
static void tell_extensions(struct history *h)
{
    for (uint32_t job = 1; job <= h->last_job; job++) {
        int nodes = 0, role = -1;

        for (int i = 0; i < h->node_count; i++)
            if (h->nodes[i].job == job && !h->nodes[i].left) {
                nodes++;
                role = h->nodes[i].role;
            }
        if (nodes == 0)
            continue;
        feed(h, (struct reconcile_fact){.kind = RECONCILE_REQUESTED, .role = role, .job = job});
        feed(h, (struct reconcile_fact){.kind = RECONCILE_GRANTED, .job = job, .count = nodes});
    }
}

/* A replica that is on one node, and that nobody has told to end. */
static bool goes_on(const struct history *h, const struct replica *replica)
{
    if (replica->state != REPLICA_STARTING && replica->state != REPLICA_READY)
        return false;
    for (int i = 0; i < replica->gang->tasks; i++)
        if (replica->tasks[i].node != replica->tasks[0].node ||
            replica->tasks[i].state == REPLICA_TASK_ENDED)
            return false;
    return true;
}

static struct own_task *own_task(struct history *h, const struct replica *replica, int task)
{
    for (int i = 0; i < h->task_count; i++)
        if (h->tasks[i].replica == replica->id && h->tasks[i].start == replica->start &&
            h->tasks[i].task == task && !h->tasks[i].ended)
            return &h->tasks[i];
    return NULL;
}

static void hand_over(struct history *h, const struct reconcile *old, const struct replica *replica,
                      int node)
{
    int tasks = replica->gang->tasks;
    struct slots_gang gang = *replica->gang; /* it may be heard of before what it should be */
    const struct replica *owner = gang.owned ? reconcile_find(old, replica->pair) : NULL;
    struct reconcile_fact fact = {.kind = RECONCILE_ADOPT,
                                  .replica = replica->id,
                                  .start = replica->start,
                                  .role = replica->role,
                                  .index = replica->index,
                                  .node = node,
                                  .gang = &gang,
                                  .owner = owner != NULL ? owner->index : -1};

    for (int i = 0; i < tasks; i++)
        if (own_task(h, replica, i) == NULL)
            return; /* what its start has come to is not heard */
    feed(h, fact);
    for (fact.task = 0; fact.task < tasks; fact.task++) {
        own_task(h, replica, fact.task)->node = -node; /* it lives on */
        fact.kind = RECONCILE_RUNNING;
        if (replica->tasks[fact.task].state >= REPLICA_TASK_RUNNING)
            feed(h, fact);
        fact.kind = RECONCILE_TASK_READY;
        if (replica->tasks[fact.task].state == REPLICA_TASK_READY)
            feed(h, fact);
    }
}

/* As the file of sizes has them. */
static void tell_sizes(struct history *h, const struct reconcile *old, int role)
{
    struct reconcile_fact fact = {.kind = RECONCILE_SCALE, .role = role};

    for (int form = 0; form < RECONCILE_FORMS; form++) {
        struct slots_gang gang = {{1, 0, 0}, 1, 0, false};
        int count = reconcile_target_of(old, role, form, &gang);

        if (count == 0 && form > 0)
            continue;
        fact.count += count;
        fact.gang = form > 0 ? &gang : NULL;
        feed(h, fact);
    }
}

static void take_over(struct history *h)
{
    struct reconcile *old = h->r;

    forget_requests(h);
    h->first_start += 100000;
    h->r = create(h);
    for (int role = 0; role < h->roles.count; role++)
        if (role != h->world && !(h->roles.pairs.any && role == h->roles.pairs.owner))
            tell_sizes(h, old, role);
    if (h->world_over)
        feed(h, (struct reconcile_fact){.kind = RECONCILE_WORLD_OVER});
    tell_extensions(h);
    for (int i = 0; i < h->node_count; i++) {
        int before = h->nodes[i].id;

        if (!h->nodes[i].there)
            continue;
        h->nodes[i].world = reconcile_has_world(old, before);
        join(h, i);
        for (int k = 0; k < reconcile_count(old); k++)
            if (reconcile_at(old, k)->tasks[0].node == before && goes_on(h, reconcile_at(old, k)))
                hand_over(h, old, reconcile_at(old, k), h->nodes[i].id);
    }
    for (int i = 0; i < h->task_count; i++) {
        h->tasks[i].ended = h->tasks[i].ended || h->tasks[i].node > 0; /* killed */
        if (h->tasks[i].node < 0)
            h->tasks[i].node = -h->tasks[i].node;
    }
    reconcile_destroy(old);
    feed(h, (struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
}

static void disturb_world(struct history *h)
{
    if (roll(h, 5) > 0) {
        feed(h, (struct reconcile_fact){.kind = RECONCILE_WORLD, .count = roll(h, 4) > 0});
    } else if (!h->world_ends) {
        h->world_ends = true;
        plan_event(h, (struct event){soon(h, 5), WORLD_ENDS, .status = roll(h, 2)});
    }
}

static void disturb(struct history *h)
{
    struct reconcile_fact fact = {0};
    struct slots_gang gang;
    int at;

    switch (roll(h, h->world < 0 ? 9 : 10)) {
    case 9:
        disturb_world(h);
        break;
    case 8:
        if (!h->stopped && !h->finished)
            take_over(h);
        break;
    case 0: /* a node is lost */
    case 1: /* … or preempted */
        at = roll(h, h->node_count);
        if (h->nodes[at].job == 0 && roll(h, 4) > 0)
            return;
        if (!h->nodes[at].there)
            return;
        if (roll(h, 2)) {
            feed(h, (struct reconcile_fact){.kind = RECONCILE_NODE_GOES,
                                            .node = h->nodes[at].id,
                                            .grace = roll(h, 3),
                                            .text = "preempted"});
            plan_event(h, (struct event){soon(h, 5), LEAVE, .node = at});
        } else {
            leave(h, at);
        }
        break;
    case 2:
    case 3:
        fact.kind = RECONCILE_SCALE;
        fact.role = 1 + roll(h, h->roles.count - 1);
        if (fact.role == h->world || (h->roles.pairs.any && fact.role == h->roles.pairs.owner))
            return;
        fact.count = h->list[fact.role].min +
                     roll(h, h->list[fact.role].max - h->list[fact.role].min + 1);
        if (roll(h, 3) == 0) {
            gang = (struct slots_gang){
                {1 + roll(h, 3), roll(h, 2), roll(h, 4)}, 1 + roll(h, 3), 0, false};
            gang.owned = h->roles.pairs.any && fact.role == h->roles.pairs.owned && roll(h, 3) > 0;
            if (!reconcile_can_have(h->r, fact.role, &gang))
                return;
            fact.gang = &gang;
        }
        feed(h, fact);
        break;
    case 4:
        if (reconcile_count(h->r) == 0)
            return;
        fact.kind = roll(h, 2) ? RECONCILE_REMOVE : RECONCILE_FAIL;
        fact.replica = reconcile_at(h->r, roll(h, reconcile_count(h->r)))->id;
        if (h->list[reconcile_find(h->r, fact.replica)->role].leads)
            return;
        fact.text = "somebody said so";
        feed(h, fact);
        break;
    case 5: /* what comes twice, or for nobody */
        fact = (struct reconcile_fact){.kind = (enum reconcile_fact_kind)roll(h, 3) +
                                               RECONCILE_RUNNING,
                                       .replica = roll(h, 40),
                                       .start = roll(h, 40),
                                       .text = ""};
        if (fact.kind == RECONCILE_RUNNING || fact.kind == RECONCILE_TASK_READY)
            return; /* about a start that is there these would be true */
        fact.start = -1;
        feed(h, fact);
        break;
    default:
        h->now = soon(h, 20);
    }
    run(h);
}

static struct history h;

/* For who wants to see what went wrong. */
static int say_history(void **state)
{
    (void)state;
    print_message("# the last history was SEED=%u\n", h.first);
    return 0;
}

static void play(unsigned seed)
{
    int base;

    h = (struct history){.first = seed, .seed = seed, .free_nodes = 12};
    make_roles(&h);
    h.max_pending = 1 + roll(&h, 3);
    h.grow_delay = roll(&h, 10);
    h.r = create(&h);
    base = 1 + roll(&h, 3);
    for (int i = 0; i < base; i++)
        join(&h, add_node(&h, 0, -1, true));
    feed(&h, (struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    run(&h);
    for (int i = 0; i < 20; i++) {
        double until = soon(&h, 10);

        while (next_event(&h, until)) {
            check(&h);
            check_forms(&h);
            check_pairs(&h);
        }
        if (h.now < until)
            h.now = until;
        disturb(&h);
        check(&h);
    }
    h.calm = true;
    for (int i = 0; i < h.task_count; i++)
        h.tasks[i].deaf = false;
    for (double until = h.now + CALM; next_event(&h, until);)
        check(&h);
    check_calm(&h);
    reconcile_destroy(h.r);
}

static void random_histories_keep_what_must_hold(void **state)
{
    const char *only = getenv("SEED"), *most = getenv("HISTORIES");
    unsigned histories = most != NULL ? (unsigned)strtoul(most, NULL, 10) : HISTORIES;

    (void)state;
    if (only != NULL) {
        play((unsigned)strtoul(only, NULL, 10));
        return;
    }
    for (unsigned seed = 1; seed <= histories; seed++)
        play(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_histories_keep_what_must_hold, say_history)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
