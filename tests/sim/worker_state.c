/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an agent reads of its workers (agent/workers/workers.h), and what can happen to them. */
#include <signal.h>

#include "agent/workers/workers.h"
#include "tests/sim/sim.h"

bool workers_live(const struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->list[i].ended)
            return false;
    return set->live && set->state >= SET_AT_GATE;
}

bool workers_said_live(const struct workers *set)
{
    return set->live && set->state >= SET_AT_GATE;
}

bool workers_ask(const struct workers *set)
{
    return set->asks;
}

bool workers_through(const struct workers *set)
{
    return set->through;
}

uint64_t workers_signature(const struct workers *set)
{
    return set->live ? 4711 : 0;
}

int workers_show_stacks(const struct workers *set)
{
    (void)set;
    return 0;
}

uint32_t workers_slowest(const struct workers *set)
{
    return set->slowest;
}

int node_drag(const struct node *node)
{
    return node->drag > 0 ? node->drag : 100;
}

static bool any_dragged(void)
{
    for (int i = 0; i < node_count(); i++)
        if (node_at(i)->drag > 0)
            return true;
    return false;
}

/* Most programs report none. */
struct event_own workers_own(const struct workers *set, int local_rank)
{
    (void)local_rank;
    return any_dragged() && set->own_generation == set->generation
               ? (struct event_own){.steps = set->own_steps, .microseconds = set->own / (MS / 1000)}
               : (struct event_own){0};
}

int64_t workers_moved(const struct workers *set)
{
    (void)set;
    return 0;
}

enum event_gate_place workers_gate(const struct workers *set)
{
    if (!set->training->gate || set->state < SET_AT_GATE)
        return EVENT_BEFORE_GATE;
    return set->state == SET_AT_GATE ? EVENT_AT_GATE : EVENT_PASSED_INIT;
}

enum event_gate_place workers_gate_of(const struct workers *set, int local_rank)
{
    (void)local_rank;
    return workers_gate(set);
}

uint64_t workers_memory(const struct workers *set)
{
    (void)set;
    return 0;
}

char **workers_cpus(int slots, char *const *own_env)
{
    (void)slots;
    (void)own_env;
    return NULL;
}

void workers_joined(struct workers *set, int rank)
{
    (void)set;
    (void)rank;
}

double workers_declare(struct workers *set, int rank, bool by_event, int number)
{
    (void)set;
    (void)rank;
    (void)by_event;
    (void)number;
    return 0;
}

void workers_complete(struct workers *set, int rank)
{
    (void)set;
    (void)rank;
}

bool workers_may_signal(int number)
{
    return number > 0;
}

bool workers_process(const struct workers *set, int local_rank, struct worker_process *process)
{
    (void)set;
    (void)local_rank;
    (void)process;
    return false;
}

uint64_t workers_step(const struct workers *set)
{
    return set->training->aware && set->word > 0 && !set->through ? (uint64_t)set->word : 0;
}

bool workers_progress(const struct workers *set, struct event_progress *progress)
{
    if (set->training->works && set->have >= 0) {
        *progress = (struct event_progress){.number = 1 + (uint32_t)set->have,
                                            .done = set->have,
                                            .total = set->training->total,
                                            .unit = "steps"};
        return true;
    }
    (void)set;
    (void)progress;
    return false;
}

bool workers_told(const struct workers *set, int rank)
{
    int i = rank - set->first_rank;

    return i >= 0 && i < set->count && set->list[i].told;
}

void workers_pause_output(struct workers *set, bool pause)
{
    (void)set;
    (void)pause;
}

/* ---- faults ---------------------------------------------------------------------------------- */

struct workers *workers_on(struct node *node)
{
    struct workers *found = NULL;

    for (struct workers *set = node->sets; set != NULL; set = set->next_on_node)
        if (found == NULL || set->state > found->state)
            found = set;
    return found;
}

void workers_crash(struct workers *set, int number, int code)
{
    if (set->state == SET_ENDED)
        return;
    trace("%-5s a worker ends: signal %d, status %d", host_name(set->host), number, code);
    set->training->faults++;
    workers_fail_one(set, code, number);
}

void workers_freeze(struct workers *set)
{
    trace("%-5s a worker is stopped", host_name(set->host));
    set->training->faults++;
    set->list[0].frozen = true;
    training_changed();
}

void workers_hang(struct workers *set)
{
    trace("%-5s a worker hangs", host_name(set->host));
    set->training->faults++;
    set->training->hung = true;
    set->stuck = true;
    training_changed();
}

/* The kernel ends them with their agent. */
void workers_host_gone(struct host *host)
{
    for (struct workers *set = host->node->sets, *next; set != NULL; set = next) {
        next = set->next_on_node;
        if (set->host == host)
            workers_kill_all(set);
    }
}
