/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model of a node's workers: agent/workers/workers.h without processes.
 *
 *   starting ─► at gate ─► meeting ─► stepping ◄─► boundary (held)
 *                             ▲          │ run_to, torn       │
 *                             └─ torn ◄──┴────────────────────┴─► leaving ─► ended
 *
 * A worker stands at a boundary when a step of all (set->training->c) is complete. What it knows is
 * what client/event.c reads from its page. All workers of a node do
 * the same, but for faults. They need the agent's loop only to be heard. */
#include "agent/workers/workers.h"

#include <signal.h>

#include "tests/sim/sim.h"

#define POLL          (100 * MS) /* between the agent's looks at the pages */
#define MOVED         (5 * MS)
#define UNAWARE       (15 * SECOND)
#define COME_OUT_MOST (300 * MS) /* of a world that is torn */

void set_later(struct workers *set, uint64_t delay, void (*run)(void *arg))
{
    clock_cancel(set->due);
    set->due = clock_in(delay, NULL, run, set);
}

void set_enter(struct workers *set, enum set_state state)
{
    clock_cancel(set->due);
    set->due = NULL;
    set->state = state;
    set->entered = clock_now();
}

bool set_heard(const struct workers *set)
{
    return !set->dropped && host_alive(set->host);
}

/* ---- what the agent is told ------------------------------------------------------------------ */

static void say_ready(void *arg)
{
    struct workers *set = arg;

    if (!set->dropped && set->state != SET_ENDED && !set->ready) {
        set->ready = true;
        set->handlers->ready(set->arg);
    }
}

static void say_parked(void *arg)
{
    struct workers *set = arg;

    if (!set->dropped && set->gated && !set->parked && set->state == SET_AT_GATE) {
        set->parked = true;
        set->handlers->parked(set->arg);
    }
}

static void say_begun(void *arg)
{
    struct workers *set = arg;

    if (!set->dropped && !set->gated && !set->begun_said && set->state != SET_ENDED) {
        set->begun_said = true;
        set->handlers->begun(set->arg);
    }
}

static void say_stepping(void *arg)
{
    struct workers *set = arg;

    /* Once there is a page of the next world, nobody looks at that of this one. */
    if (!set->dropped && set->stepping && !set->stepping_said && !set->moving &&
        set->state != SET_ENDED) {
        set->stepping_said = true;
        set->handlers->stepping(set->arg);
    }
}

static void tell(struct workers *set, uint64_t delay, void (*say)(void *arg))
{
    if (set_heard(set))
        clock_in(delay, set->host, say, set);
}

/* ---- from world to world --------------------------------------------------------------------- */

static void take_place(struct workers *set)
{
    set->generation = set->goes_to.generation;
    set->attempt = set->goes_to.attempt;
    set->index = set->goes_to.index;
    set->nodes = set->goes_to.nodes;
    set->first_rank = set->goes_to.first_rank;
    memcpy(set->kind, set->goes_to.kind, sizeof(set->kind));
}

static void arrive(struct workers *set)
{
    set_enter(set, SET_MEETING);
    set->word = 0;
    set->run_to = -1;
    set->held = set->torn = set->asks = set->through = set->last = set->stepping =
        set->stepping_said = set->begun_said = false;
    for (int i = 0; i < set->count; i++)
        set->list[i].told = false;
    invariants_entered(set);
    if (set->training->aware)
        tell(set, chance_between(0, POLL), say_begun);
    set->meeting = meeting_arrive(set, set->generation, set->attempt, set->index, set->nodes);
}

static void go_on_in_next(struct workers *set)
{
    if (set->meeting != NULL)
        meeting_leave(set->meeting, set);
    set->meeting = NULL;
    take_place(set);
    set->moving = false;
    set->ready = false;
    arrive(set);
    tell(set, chance_between(0, MOVED), say_ready);
}

/* It is out of its world: what now? */
static void next_or_wait(struct workers *set)
{
    if (set->moving) {
        go_on_in_next(set);
    } else if (set->dismissed) {
        for (int i = 0; i < set->count; i++)
            set->list[i].told = true;
        set->torn = false;
        set_leave(set, set->save);
    } else {
        if (set->meeting != NULL)
            meeting_leave(set->meeting, set);
        set->meeting = NULL;
        set_enter(set, SET_TORN);
    }
}

static void come_out(void *arg)
{
    struct workers *set = arg;

    set->due = NULL;
    if (set->state == SET_MEETING || set->state == SET_STEPPING || set->state == SET_BOUNDARY)
        next_or_wait(set);
}

static void come_out_soon(struct workers *set)
{
    if ((set->state == SET_MEETING || set->state == SET_STEPPING || set->state == SET_BOUNDARY) &&
        !set->stuck && set->live && set->due == NULL)
        set_later(set, chance_between(MS, COME_OUT_MOST), come_out);
}

/* ---- a boundary ------------------------------------------------------------------------------ */

static void note_step(struct workers *set)
{
    uint32_t took = (uint32_t)((clock_now() - set->step_began) / MS);

    set->slowest = took > set->slowest ? took : set->slowest;
    if (set->own_generation != set->generation)
        set->own = set->own_steps = 0;
    set->own_generation = set->generation;
    set->own += set->training->step / 2 * (uint64_t)node_drag(set->host->node) / 100;
    set->own_steps++;
}

static void begin_step(struct workers *set)
{
    set->state = SET_STEPPING;
    set->step_began = clock_now();
    meeting_begun_step(set->meeting);
}

static void stop_here(struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        set->list[i].told = true;
    if (set->moving)
        go_on_in_next(set);
    else if (set->dismissed)
        set_leave(set, set->save);
    else
        set_leave(set, set->index == 0);
}

/* Its training is over, and it is not to stop before that. */
static void end_well(struct workers *set)
{
    set->through = true;
    meeting_leave(set->meeting, set);
    set->meeting = NULL;
    set_enter(set, SET_LEAVING);
    set_later(set, chance_between(MS, set->training->leave), set_leave_now);
}

static void pass_boundary(struct workers *set);

/* The one after the last step has been passed, too: no further one follows. */
static void go_on(struct workers *set)
{
    if (set->last) {
        end_well(set);
        return;
    }
    set->word++;
    if (!set->stepping) {
        set->stepping = true;
        if (set->training->aware)
            tell(set, chance_between(0, POLL), say_stepping);
    }
    set->last = set->have >= set->training->total;
    if (set->last)
        pass_boundary(set);
    else
        begin_step(set);
}

static void pass_boundary(struct workers *set)
{
    if (!set->training->aware)
        go_on(set);
    else if (set->torn && set->live)
        come_out_soon(set);
    else if (set->held && set->run_to < 0)
        set->state = SET_BOUNDARY;
    else if (set->run_to >= 0 && set->word >= set->run_to)
        stop_here(set);
    else
        go_on(set);
}

void workers_boundary(struct workers *set)
{
    if (set->state != SET_STEPPING)
        return;
    note_step(set);
    if (set->training->every > 0 && set->index == 0 && set->have % set->training->every == 0 &&
        set->have > set->training->checkpoint && set->generation >= set->training->newest)
        set->training->checkpoint = set->have;
    pass_boundary(set);
}

void workers_meet(struct workers *set, int64_t base)
{
    set->have = base;
    set->last = base >= set->training->total;
    if (set->last)
        pass_boundary(set);
    else
        begin_step(set);
}

bool workers_runs(const struct workers *set)
{
    if (set->stuck || !set->host->node->up || set->host->node->frozen)
        return false;
    for (int i = 0; i < set->count; i++)
        if (set->list[i].ended || set->list[i].frozen)
            return false;
    return true;
}

static void fail_of_it(void *arg)
{
    struct workers *set = arg;

    if (set->state != SET_STEPPING && set->state != SET_MEETING)
        return;
    if (set->live) {
        set->asks = true;
        return;
    }
    set->due = NULL;
    set_end_all(set, 1, 0);
}

void workers_peer_lost(struct workers *set)
{
    if (set->state == SET_STEPPING && workers_runs(set))
        clock_in(chance_between(MS, 500 * MS), NULL, fail_of_it, set);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void pass_gate(struct workers *set)
{
    if (set->state != SET_AT_GATE || !set->open)
        return;
    arrive(set);
}

static void at_gate(void *arg)
{
    struct workers *set = arg;

    set->due = NULL;
    set_enter(set, SET_AT_GATE);
    if (set->gated && set->training->gate)
        tell(set, chance_between(0, POLL), say_parked);
    if (!set->training->gate) /* it does not wait there */
        set->open = true;
    pass_gate(set);
}

static void executed(void *arg)
{
    struct workers *set = arg;

    set->due = NULL;
    if (set_heard(set))
        clock_in(0, set->host, say_ready, set);
    if (!set->training->aware) {
        set->stepping = true;
        tell(set, UNAWARE, say_stepping);
    }
    set_later(set, set->training->load, at_gate);
}

struct workers *workers_start(uv_loop_t *loop, const struct world *world,
                              const struct workers_options *options,
                              const struct workers_handlers *handlers, void *arg, struct error *err)
{
    struct workers *set = calloc(1, sizeof(*set));
    int index = options->place.node_index;

    (void)err;
    MUST(set != NULL);
    set->host = host_of_loop(loop);
    set->training = set->host->job->training;
    set->handlers = handlers;
    set->arg = arg;
    set->count = set->left = world->nodes[index].slots;
    set->list = calloc((size_t)set->count, sizeof(*set->list));
    MUST(set->list != NULL);
    set->generation = world->generation;
    set->attempt = options->attempt;
    set->index = index;
    set->nodes = world->node_count;
    set->first_rank = world_first_rank(world, index);
    snprintf(set->kind, sizeof(set->kind), "%s", world->kind);
    set->run_to = set->have = -1;
    set->gated = options->gated;
    set->open = !options->gated;
    set->live = set->training->live;
    set->next_on_node = set->host->node->sets;
    set->host->node->sets = set;
    invariants_started(set);
    set_later(set, chance_between(set->training->exec / 2, set->training->exec), executed);
    return set;
}

void workers_open(struct workers *set, bool all)
{
    if (all || set->index == 0)
        set->open = true;
    set->gated = false;
    pass_gate(set);
}

void workers_place(struct workers *set, const struct world *world, int index, int attempt)
{
    set->goes_to.generation = world->generation;
    set->goes_to.attempt = attempt;
    set->goes_to.index = index;
    set->goes_to.nodes = world->node_count;
    set->goes_to.first_rank = world_first_rank(world, index);
    snprintf(set->goes_to.kind, sizeof(set->goes_to.kind), "%s", world->kind);
    if (set->state <= SET_AT_GATE)
        take_place(set);
}

int workers_move(struct workers *set, const struct world *world, int index, int attempt,
                 const char *files, struct error *err)
{
    (void)files;
    (void)err;
    workers_place(set, world, index, attempt);
    set->moving = true;
    set->ready = false;
    if (set->state == SET_TORN)
        go_on_in_next(set);
    else if (set->torn)
        come_out_soon(set);
    return 0;
}

void workers_dismiss(struct workers *set, bool save)
{
    set->dismissed = true;
    set->save = save;
    if (set->state == SET_TORN)
        next_or_wait(set);
    set->torn = false;
}

void workers_tear(struct workers *set, const char *reason)
{
    (void)reason;
    set->torn = true;
    set->moving = false;
    come_out_soon(set);
}

/* ---- held ------------------------------------------------------------------------------------ */

void workers_hold(struct workers *set, const char *kind, const char *reason, int next_nodes,
                  int64_t deadline_ms, struct workers_held *held)
{
    (void)kind;
    (void)reason;
    (void)next_nodes;
    (void)deadline_ms;
    *held = (struct workers_held){0};
    for (int i = 0; i < set->count; i++) {
        const struct worker *w = &set->list[i];

        if (w->ended) {
            held->finished += w->code == 0 && w->signal == 0;
            continue;
        }
        held->running++;
        held->through += set->through;
        held->attached += set->training->aware && set->state >= SET_MEETING;
        held->training += set->training->aware && (set->word > 0 || set->state == SET_BOUNDARY ||
                                                   set->state == SET_LEAVING);
    }
    held->step = set->training->aware && !set->through ? (uint64_t)set->word : 0;
    set->held = true;
}

void workers_run_to(struct workers *set, uint64_t step)
{
    if (set->training->aware && set->word > (int64_t)step && !set->through &&
        (set->state == SET_STEPPING || set->state == SET_BOUNDARY))
        violation("%s is told to run to step %llu and has begun step %lld", host_name(set->host),
                  (unsigned long long)step, (long long)set->word);
    set->run_to = step > INT64_MAX ? INT64_MAX : (int64_t)step;
    if (set->state == SET_BOUNDARY)
        pass_boundary(set);
    if (!set->training->aware)
        workers_stop(set, SIGTERM, 1e6);
}
