/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the workers of a node end: by themselves, after saving, by signals, with their agent. */
#include <signal.h>

#include "agent/workers/workers.h"
#include "tests/sim/sim.h"

struct ending {
    struct workers *set;
    struct worker_exit exit;
};

static void say_exited(void *arg)
{
    struct ending *ending = arg;
    struct workers *set = ending->set;

    if (!set->dropped)
        set->handlers->exited(&ending->exit, set->arg);
    free(ending);
    if (--set->left == 0 && !set->dropped)
        set->handlers->drained(set->arg); /* the last use: it may be destroyed inside */
}

/* ---- how one ends ---------------------------------------------------------------------------- */

static void end_worker(struct workers *set, int i, int code, int number, uint64_t delay)
{
    struct worker *w = &set->list[i];
    struct ending *ending;

    if (w->ended)
        return;
    w->ended = true;
    w->code = code;
    w->signal = number;
    if (!set_heard(set))
        return;
    ending = calloc(1, sizeof(*ending));
    MUST(ending != NULL);
    ending->set = set;
    ending->exit = (struct worker_exit){
        .rank = set->first_rank + i,
        .local_rank = i,
        .code = code,
        .signal = number,
        .told = (w->stop_signal != 0 && !(set->through && code == 0 && number == 0)) ||
                (w->told && !set->torn),
        .early = set->live && code == 0 && number == 0 && !set->through && !w->told &&
                 w->stop_signal == 0,
    };
    clock_in(delay, set->host, say_exited, ending);
}

static bool any_left(const struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        if (!set->list[i].ended)
            return true;
    return false;
}

static void unlist(struct workers *set)
{
    struct workers **place = &set->host->node->sets;

    while (*place != NULL && *place != set)
        place = &(*place)->next_on_node;
    if (*place == set)
        *place = set->next_on_node;
}

static void over(struct workers *set)
{
    if (set->state == SET_ENDED || any_left(set))
        return;
    if (set->meeting != NULL)
        meeting_leave(set->meeting, set);
    set->meeting = NULL;
    set_enter(set, SET_ENDED);
    clock_cancel(set->kill);
    set->kill = NULL;
    unlist(set);
    training_changed();
}

/* In how it exits a set is one: with this status, each of its workers. */
void set_end_all(struct workers *set, int code, int number)
{
    for (int i = 0; i < set->count; i++)
        end_worker(set, i, code, number, chance_between(MS, 30 * MS));
    over(set);
}

void set_leave_now(void *arg)
{
    struct workers *set = arg;

    set->due = NULL;
    set_end_all(set, 0, 0);
}

static void saved(void *arg)
{
    struct workers *set = arg;

    set->due = NULL;
    if (set->have > set->training->checkpoint) {
        set->training->checkpoint = set->have;
        trace("%-5s has saved step %lld", host_name(set->host), (long long)set->have);
    }
    set_later(set, set->training->leave, set_leave_now);
}

/* After its last step in a world: they end, one of them after saving. */
void set_leave(struct workers *set, bool save)
{
    if (set->meeting != NULL)
        meeting_leave(set->meeting, set);
    set->meeting = NULL;
    set_enter(set, SET_LEAVING);
    if (save)
        set->training->longest_save_until = clock_now() + set->training->save;
    set_later(set, save ? set->training->save : set->training->leave, save ? saved : set_leave_now);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void kill_now(void *arg)
{
    struct workers *set = arg;

    set->kill = NULL;
    for (int i = 0; i < set->count; i++)
        if (!set->list[i].ended)
            set->list[i].stop_signal = SIGKILL;
    set_end_all(set, 0, SIGKILL);
}

static void on_sigterm(void *arg)
{
    struct workers *set = arg;

    set->due = NULL;
    if (!set->training->aware && set->state == SET_STEPPING)
        set_leave(set, set->index == 0);
    else
        set_end_all(set, 0, SIGTERM);
}

static int stop(struct workers *set, int number, double grace)
{
    uint64_t when = grace < 1e6 ? (uint64_t)(grace * (double)SECOND) : NEVER / 4;

    if (set->state == SET_ENDED)
        return 0;
    if (number == SIGKILL || !(grace > 0)) {
        clock_cancel(set->kill);
        set->kill = clock_in(0, NULL, kill_now, set);
        return 0;
    }
    for (int i = 0; i < set->count; i++)
        if (!set->list[i].ended)
            set->list[i].stop_signal = number;
    if (set->state != SET_LEAVING && workers_runs(set) &&
        (set->training->faults == 0 || !chance_percent(5)))
        set_later(set, chance_between(MS, 200 * MS), on_sigterm);
    if (set->kill == NULL)
        set->kill = clock_in(when, NULL, kill_now, set);
    return 0;
}

void workers_stop(struct workers *set, int number, double grace)
{
    stop(set, number, grace);
}

int workers_notice(struct workers *set, int number, double grace)
{
    return stop(set, number, grace);
}

int workers_signal(struct workers *set, int rank, int number, bool force)
{
    (void)force;
    for (int i = 0; i < set->count; i++)
        if (rank < 0 || set->first_rank + i == rank)
            end_worker(set, i, 0, number, MS);
    over(set);
    return 1;
}

void workers_pass_signal(struct workers *set, int number)
{
    (void)set;
    (void)number;
}

int workers_unheard(const struct workers *set)
{
    (void)set; /* workers of the model always say what they are */
    return 0;
}

void workers_abort(struct workers *set, int rank, int status)
{
    (void)status;
    workers_signal(set, rank, SIGKILL, true);
}

void workers_end_stopped(struct workers *set, double seconds)
{
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        if (!w->frozen || w->ended)
            continue;
        if (w->frozen_since == 0)
            w->frozen_since = clock_now();
        else if ((double)(clock_now() - w->frozen_since) >= seconds * (double)SECOND)
            workers_crash(set, SIGKILL, 0);
    }
}

void workers_forgive_stopped(struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        set->list[i].frozen_since = 0;
}

void workers_destroy(struct workers *set)
{
    if (set == NULL || set->dropped)
        return;
    set->dropped = true;
    for (int i = 0; i < set->count; i++)
        end_worker(set, i, 0, SIGKILL, 0);
    over(set);
}

/* ---- faults ---------------------------------------------------------------------------------- */

void workers_fail_one(struct workers *set, int code, int number)
{
    int i = (int)chance((uint32_t)set->count);

    while (set->list[i].ended)
        i = (i + 1) % set->count;
    end_worker(set, i, code, number, chance_between(MS, 20 * MS));
    over(set);
    training_changed();
}

void workers_kill_all(struct workers *set)
{
    set_end_all(set, 0, SIGKILL);
}
