/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: the table of phases and facts, and the members (change.h). */
#include "lib/change_private.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASSEMBLE_LIMIT 120.0 /* seconds for the nodes of the base to join */
#define LOOK_AGAIN     1.0   /* seconds until a leader that may not act looks again */
#define WAIT_MARGIN    0.1   /* seconds: the plan says first that it has waited long enough */
#define LEAVE_SETTLE   0.05  /* seconds for nodes that Slurm calls with the first: one change */

/* ---- the table ------------------------------------------------------------------------------- */

static change_handler joined, leaving, released, reclaimed, time_finishing, failed_because, reason,
    deposed, watch, promotion_unneeded, admitted;

/* What happens in which phase. The first row that fits is taken; `phases` are those in which the
 * row holds, `next` those in which it may end, besides the one that it began in. A fact without a
 * row has no effect in that phase. */
struct row {
    unsigned phases;
    enum change_fact_kind fact;
    unsigned next;
    change_handler *handler;
};

#define ANY (~0u)
/* The end of the world: often that of the job. */
#define PHASES_END (PHASE(RESTING) | PHASES_OVER)
/* Where a world that cannot go on may end up: its workers live on, or are killed, or all is
 * over. */
#define AFTER_ABORT                                                                                \
    (PHASE(ABORTED) | PHASE(SWITCHING) | PHASE(SAVING) | PHASE(KILLING) | AFTER_DRAIN)
/* … and one whose workers have all left. */
#define AFTER_DRAIN                                                                                \
    (PHASE(SETTLING) | PHASE(WAITING) | PHASE(REPLACING) | PHASES_RESERVING | PHASE(STARTING) |    \
     PHASES_END)
#define AFTER_FORM                                                                                 \
    (PHASE(WAITING) | PHASE(REPLACING) | PHASES_RESERVING | PHASE(STARTING) | PHASES_END)
/* Phases before the first world of a leader that follows another one. */
#define AFTER_TAKEOVER (PHASE(WAITING) | PHASE(REPLACING) | PHASES_RESERVING | PHASE(ABORTED))
/* What a change that begins may lead to at once. */
#define AFTER_BEGIN (PHASE(HOLDING) | AFTER_ABORT)

static const struct row table[] = {
    /* Over is over. */
    {PHASES_OVER, CHANGE_FACT_GONE, 0, gone_elsewhere},
    {PHASES_OVER, CHANGE_FACT_DEPOSED, PHASE(ENDING), deposed},
    {PHASE(FINISHING), CHANGE_FACT_STOP, PHASE(ENDING) | PHASE(RESTING), stop_finishing},
    {PHASE(FINISHING), CHANGE_FACT_TIME, PHASE(ENDING) | PHASE(RESTING), time_finishing},

    /* The world is over, and other roles are not. */
    {PHASE(RESTING), CHANGE_FACT_STOP, 0, stop_resting},
    {PHASE(RESTING), CHANGE_FACT_OVER, PHASES_OVER, form_on_over},
    {PHASE(RESTING), CHANGE_FACT_AGAIN, PHASE(WAITING), form_on_again},
    /* … or waits for a fit from the start. */
    {PHASE(ASSEMBLING), CHANGE_FACT_JOINED, PHASE(RESTING), joined},

    /* A world begins. */
    {PHASES_WITHOUT_WORLD & ~PHASE(TAKING_OVER), CHANGE_FACT_PLAN, AFTER_FORM,
     decide_without_world},
    {PHASES_WITHOUT_WORLD & ~PHASE(TAKING_OVER), CHANGE_FACT_TIME, PHASES_END, time_without_world},
    {PHASE(TAKING_OVER), CHANGE_FACT_TIME, PHASE(WAITING) | PHASE(ABORTED) | PHASES_END,
     takeover_on_time},
    {PHASES_RESERVING, CHANGE_FACT_GONE, AFTER_FORM, gone_reserving},
    {PHASES_RESERVING, CHANGE_FACT_PROMOTED, AFTER_FORM, form_on_promoted},
    {PHASE(RESERVING), CHANGE_FACT_TIME, AFTER_FORM, time_reserving},
    {PHASE(RESERVING), CHANGE_FACT_RESERVED, AFTER_FORM, next_on_reserved},
    {PHASES_STARTING, CHANGE_FACT_READY, PHASE(RUNNING) | AFTER_BEGIN, form_on_ready},
    {PHASES_STARTING, CHANGE_FACT_GONE, AFTER_ABORT, gone_starting},
    {PHASES_STARTING, CHANGE_FACT_WRITTEN, 0, form_on_written},
    {PHASE(STARTING), CHANGE_FACT_TIME, 0, time_starting},
    {PHASE(SWITCHING), CHANGE_FACT_TIME, PHASE(STARTING) | AFTER_ABORT, time_switching},

    /* It runs, and is changed. */
    {PHASE(RUNNING), CHANGE_FACT_PLAN, AFTER_BEGIN, decide_running},
    {PHASE(RUNNING), CHANGE_FACT_STOP, AFTER_BEGIN, stop_running},
    {PHASE(RUNNING), CHANGE_FACT_GONE, AFTER_DRAIN, gone_running},
    {PHASE(HOLDING), CHANGE_FACT_HELD, PHASE(DRAINING) | PHASE(SWITCHING) | AFTER_DRAIN,
     hold_on_held},
    {PHASE(HOLDING), CHANGE_FACT_GONE, PHASE(DRAINING) | AFTER_ABORT, gone_holding},
    {PHASE(HOLDING), CHANGE_FACT_TIME, PHASE(DRAINING) | PHASE(SWITCHING) | AFTER_DRAIN,
     time_holding},
    {PHASES_EMPTYING, CHANGE_FACT_GONE, AFTER_ABORT, gone_leaving},
    {PHASE(DRAINING) | PHASE(SAVING), CHANGE_FACT_TIME, PHASE(KILLING), time_draining},
    {PHASE(KILLING), CHANGE_FACT_TIME, AFTER_DRAIN, time_killing},
    {PHASE(SETTLING), CHANGE_FACT_TIME, AFTER_DRAIN, time_settling},

    /* It cannot go on. */
    {PHASES_TRAINING | PHASE(DRAINING) | PHASE(ABORTED), CHANGE_FACT_EXITED, AFTER_ABORT,
     hold_on_exited},
    {PHASES_TRAINING, CHANGE_FACT_BEAT, AFTER_ABORT, abort_on_beat},
    {PHASES_TRAINING, CHANGE_FACT_STEPPING, AFTER_ABORT, form_on_stepping},
    {PHASES_TRAINING, CHANGE_FACT_FAIL, AFTER_ABORT, failed_because},

    /* No worker is left. */
    {PHASE(HOLDING), CHANGE_FACT_DRAINED, PHASE(DRAINING) | PHASE(SWITCHING) | AFTER_DRAIN,
     hold_on_drained},
    {PHASES_TRAINING | PHASES_EMPTYING, CHANGE_FACT_DRAINED, AFTER_DRAIN, hold_on_drained},
    /* … in a world that was lost with the leader before this one. */
    {AFTER_TAKEOVER, CHANGE_FACT_DRAINED, PHASES_END, hold_on_drained},

    /* It is aborted. */
    {PHASE(ABORTED), CHANGE_FACT_PLAN, PHASE(SWITCHING), decide_aborted},
    {PHASE(ABORTED), CHANGE_FACT_GONE, AFTER_ABORT, gone_aborted},
    {PHASE(ABORTED), CHANGE_FACT_STOP, PHASE(SAVING) | PHASES_END, stop_aborted},
    {PHASE(ABORTED), CHANGE_FACT_TIME, PHASE(SAVING) | PHASES_END, time_aborted},

    /* The job is to end while there is no world. */
    {PHASES_WITHOUT_WORLD | PHASES_RESERVING, CHANGE_FACT_STOP, PHASES_END, stop_without_world},
    {PHASES_WITHOUT_WORLD, CHANGE_FACT_OVER, PHASES_END, form_on_over},

    /* Whatever the phase; none of these ends one, but for DEPOSED. */
    {ANY, CHANGE_FACT_JOINED, 0, joined},
    {ANY, CHANGE_FACT_GONE, 0, gone_elsewhere},
    {ANY, CHANGE_FACT_LEAVING, 0, leaving},
    {ANY, CHANGE_FACT_RELEASED, 0, released},
    {ANY, CHANGE_FACT_RECLAIMED, 0, reclaimed},
    {ANY, CHANGE_FACT_BUSY, 0, form_on_busy},
    {ANY, CHANGE_FACT_ADMITTED, 0, admitted},
    {ANY, CHANGE_FACT_RESERVED, 0, next_on_reserved},
    {ANY, CHANGE_FACT_PARKED, 0, next_on_parked},
    {ANY, CHANGE_FACT_UNPREPARED, 0, next_on_unprepared},
    {ANY, CHANGE_FACT_LISTENING, 0, form_on_listening},
    {ANY, CHANGE_FACT_BEGUN, 0, form_on_begun},
    {ANY, CHANGE_FACT_STEPPING, 0, form_on_stepping},
    {ANY, CHANGE_FACT_AT_WORK, 0, form_on_at_work},
    {ANY, CHANGE_FACT_EXITED, 0, hold_on_exited},
    {ANY, CHANGE_FACT_DRAINED, 0, hold_on_drained},
    {ANY, CHANGE_FACT_BEAT, 0, abort_on_beat},
    {ANY, CHANGE_FACT_STOP, 0, stop},
    {ANY, CHANGE_FACT_FAIL, 0, failed_because},
    {ANY, CHANGE_FACT_REASON, 0, reason},
    {ANY, CHANGE_FACT_PROMOTED, 0, promotion_unneeded},
    {ANY, CHANGE_FACT_DEPOSED, PHASE(ENDING), deposed},
    {ANY, CHANGE_FACT_WATCH, 0, watch},
};

static const struct row *find_row(enum change_phase phase, enum change_fact_kind fact)
{
    /* When all is over nothing but the rows for that holds. */
    const unsigned now = 1u << phase;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].fact != fact || (table[i].phases & now) == 0)
            continue;
        return (now & PHASES_OVER) != 0 && table[i].phases == ANY ? NULL : &table[i];
    }
    return NULL;
}

int change_feed(struct change *c, const struct change_fact *fact, struct change_actions *out)
{
    const struct row *row = find_row(c->phase, fact->kind);
    struct change_member *m = fact->member != 0 ? find_member(c, fact->member) : NULL;
    enum change_phase before = c->phase;

    c->out = out;
    c->now = fact->now;
    c->no_memory = false;
    if (row != NULL && fact->kind == CHANGE_FACT_TIME && !is_in_phase(c, PHASES_OVER) &&
        !may_act(c)) {
        set_deadline(c, c->phase == CHANGE_TAKING_OVER ? TAKEOVER_LOOK : LOOK_AGAIN);
    } else if (row != NULL && (m != NULL || fact->member == 0)) {
        row->handler(c, m, fact);
        if (c->phase != before && (row->next & (1u << c->phase)) == 0)
            act_text(c, CHANGE_SAY_ERROR, NULL, "%s: %s is not to be followed by %s",
                     change_fact_name(fact->kind), change_phase_name(before),
                     change_phase_name(c->phase));
    }
    c->out = NULL;
    return c->no_memory ? -1 : 0;
}

/* ---- what handlers use ----------------------------------------------------------------------- */

bool is_in_phase(const struct change *c, unsigned phases)
{
    return ((1u << c->phase) & phases) != 0;
}

void set_deadline(struct change *c, double seconds)
{
    c->deadline = seconds > 0 ? c->now + seconds : 0;
}

double fault_wait(const struct change *c)
{
    return c->options->policy->fault_wait + WAIT_MARGIN;
}

void gave_up(struct change *c, const char *unknown)
{
    act_text(c, CHANGE_SAY_ERROR, NULL, "%s; gave up after %.0f s",
             c->why_size[0] != '\0' ? c->why_size : unknown, c->now - c->phase_since);
    requeue(c);
}

void set_phase(struct change *c, enum change_phase phase, double seconds)
{
    c->phase = phase;
    c->phase_since = c->now;
    c->first.answered = c->first.drained = 0;
    FOR_MEMBERS (c, m)
        m->answered = false;
    set_deadline(c, seconds);
}

struct change_action *act(struct change *c, enum change_action_kind kind,
                          const struct change_member *m)
{
    static struct change_action nowhere;
    struct change_actions *out = c->out;

    if (out->count == out->room) {
        int room = out->room > 0 ? 2 * out->room : 16;
        struct change_action *grown = realloc(out->list, (size_t)room * sizeof(*grown));

        if (grown == NULL) {
            c->no_memory = true;
            return &nowhere;
        }
        out->list = grown;
        out->room = room;
    }
    out->list[out->count] = (struct change_action){.kind = kind,
                                                   .member = m != NULL ? m->id : 0,
                                                   .generation = m != NULL ? m->generation : -1};
    return &out->list[out->count++];
}

void act_text(struct change *c, enum change_action_kind kind, const struct change_member *m,
              const char *fmt, ...)
{
    struct change_action *action = act(c, kind, m);
    char *text;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0) {
        c->no_memory = true;
        text = NULL;
    }
    va_end(ap);
    if (c->no_memory)
        free(text);
    else
        action->text = text;
}

void change_actions_clear(struct change_actions *actions)
{
    for (int i = 0; i < actions->count; i++)
        free(actions->list[i].text);
    free(actions->list);
    *actions = (struct change_actions){0};
}

void decide(struct change *c, double seconds)
{
    act(c, CHANGE_DECIDE, NULL)->seconds = seconds;
}

void set_next_reason(struct change *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(c->next_reason, sizeof(c->next_reason), fmt, ap);
    va_end(ap);
}

void release(struct change *c, struct change_member *m, const char *why)
{
    m->released = true;
    act_text(c, CHANGE_RELEASE, m, "%s", why);
}

bool may_act(struct change *c)
{
    return c->options->ask.may_act(c->options->ask.arg);
}

/* ---- members --------------------------------------------------------------------------------- */

bool takes_part(const struct change_member *m)
{
    return m->place >= 0 && m->there;
}

bool has_workers_left(const struct change_member *m)
{
    return takes_part(m) && m->state == CHANGE_IN_WORLD;
}

bool all_have_answered(struct change *c, bool drained)
{
    for (; c->first.answered < c->member_count; c->first.answered++) {
        const struct change_member *m = c->members[c->first.answered];

        if ((drained ? takes_part(m) : has_workers_left(m)) && !m->answered)
            return false;
    }
    return true;
}

bool change_is_on_its_way(const struct change_member *m)
{
    return m->state == CHANGE_AWAITED || m->state == CHANGE_DEPARTING;
}

bool is_newcomer(const struct change_member *m)
{
    return m->state == CHANGE_WARMING || m->state == CHANGE_WARM;
}

bool change_is_left(const struct change_member *m)
{
    return m->notice != CHANGE_STAYS;
}

/* Ids only grow, so the list is in their order. Returns the index, or where it would be. */
static int index_of(const struct change *c, int id)
{
    int low = 0, high = c->member_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (c->members[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct change_member *find_member(const struct change *c, int id)
{
    int i = index_of(c, id);

    return i < c->member_count && c->members[i]->id == id ? c->members[i] : NULL;
}

static void member_free(struct change_member *m)
{
    if (m == NULL)
        return;
    world_destroy(m->former.world);
    free(m->node);
    free(m->address);
    free(m);
}

bool change_forget(struct change *c, int id)
{
    int i = index_of(c, id);

    if (i >= c->member_count || c->members[i]->id != id)
        return true;
    if (c->members[i]->there || (c->members[i]->place >= 0 && c->world != NULL))
        return false;
    member_free(c->members[i]);
    c->first.answered = c->first.drained = 0;
    memmove(&c->members[i], &c->members[i + 1],
            (size_t)(--c->member_count - i) * sizeof(c->members[0]));
    return true;
}

static struct change_member *add_member(struct change *c, const struct change_join *join)
{
    struct change_member **grown = realloc(c->members,
                                           ((size_t)c->member_count + 1) * sizeof(*grown));
    struct change_member *m;

    if (grown == NULL)
        return NULL;
    c->members = grown;
    m = calloc(1, sizeof(*m));
    if (m == NULL || (m->node = strdup(join->node)) == NULL ||
        (m->address = strdup(join->address)) == NULL) {
        member_free(m);
        return NULL;
    }
    m->id = join->id;
    m->job = join->job;
    m->base = join->base;
    m->apart = join->apart;
    m->nodeid = join->nodeid;
    m->slots = join->slots;
    m->there = true;
    m->place = m->next_place = -1;
    c->members[c->member_count++] = m;
    return m;
}

/* ---- rows that hold in any phase ------------------------------------------------------------- */

static void joined(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    m = add_member(c, fact->join);
    if (m == NULL) {
        world_destroy(fact->join->was_in);
        c->no_memory = true;
        return;
    }
    takeover_joined(c, m, fact->join);
    act(c, CHANGE_WELCOME, m)->flag = m->former.world != NULL;
    if (has_roles(c) && !c->assembled && is_in_phase(c, PHASE(ASSEMBLING)) && base_is_there(c)) {
        c->assembled = true;
        /* The nodes of the world are chosen now. Without a world there is nothing to wait for. */
        set_deadline(c, c->options->no_world ? 0 : ASSEMBLE_LIMIT);
        if (c->options->rests)
            set_phase(c, CHANGE_RESTING, 0);
    }
    decide(c, 0);
}

static void admitted(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)fact;
    m->apart = false;
    decide(c, 0);
}

/* Workers that leave already have only the time that their node has. */
static void hurry(struct change *c, const struct change_member *m)
{
    double grace = grace_of(c);

    if (m->place < 0)
        return;
    if (is_in_phase(c, PHASE(DRAINING) | PHASE(SAVING)) && c->now + grace < c->deadline)
        set_deadline(c, grace);
    if (is_in_phase(c, PHASE(HOLDING)) && c->now + grace < c->due.grace)
        c->due.grace = c->now + grace;
}

static void leaving(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (m->notice == CHANGE_UNNEEDED && fact->notice == CHANGE_CALLED) {
        m->notice = CHANGE_CALLED; /* it had time until now */
        decide(c, 0);
    }
    if (m->notice != CHANGE_STAYS)
        return;
    m->notice = fact->notice;
    m->grace = fact->grace;
    if (m->base)
        return; /* the job ends: CHANGE_FACT_STOP follows */
    if (m->apart) {
        release_idle(c);
        return;
    }
    if (m->notice == CHANGE_CALLED)
        c->due.settled = c->now + LEAVE_SETTLE;
    hurry(c, m);
    if ((m->place < 0 && !change_is_on_its_way(m)) || c->world == NULL ||
        (m->notice == CHANGE_CALLED && m->state == CHANGE_DRAINED)) {
        if (!m->released && !m->busy)
            release(c, m, m->notice == CHANGE_CALLED ? "not in use" : fact->text);
    } else if (m->notice == CHANGE_CALLED && !change_is_on_its_way(m)) {
        c->leaving_job = m->job;
        set_next_reason(c, CHANGE_LEAVING_TEXT, m->job);
    }
    next_again(c);
    decide(c, 0);
}

static void released(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    release(c, m, fact->text);
}

static void reclaimed(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    m->reclaimed = true;
    m->taken = fact->grace > 0 ? c->now + fact->grace : 0;
    hurry(c, m);
    if (m->place >= 0)
        set_next_reason(c, "%s is about to be taken away", m->node);
    decide(c, 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void time_finishing(struct change *c, struct change_member *m,
                           const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    finish(c, c->finish_code);
}

static void deposed(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    set_phase(c, CHANGE_ENDING, 0);
    act(c, CHANGE_ABANDON, NULL)->number = fact->code;
}

/* ---- small ones ------------------------------------------------------------------------------ */

static void failed_because(struct change *c, struct change_member *m,
                           const struct change_fact *fact)
{
    (void)m;
    fail(c, fact->text);
}

static void reason(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    set_next_reason(c, "%s", fact->text);
}

static void watch(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    live_watch(c);
}

/* A search for flushed snapshots has ended, and its result is not needed any more. */
static void promotion_unneeded(struct change *c, struct change_member *m,
                               const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    c->promotion.begun = false;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct change *change_create(const struct change_options *options, double now)
{
    struct change *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    c->options = options;
    c->now = now;
    c->since = c->pause_from = -1;
    c->stop.code = 128 + SIGTERM;
    c->faults = options->faults;
    set_phase(c, CHANGE_ASSEMBLING, ASSEMBLE_LIMIT);
    if (options->term == 0)
        return c;
    c->attempts = (options->term & 0x3ff) << 20; /* no number is given twice */
    c->due.assembled = now + TAKEOVER_MAX;
    c->pause_from = now;
    set_next_reason(c, "the leading node was lost");
    set_phase(c, CHANGE_TAKING_OVER, TAKEOVER_LOOK);
    return c;
}

void change_destroy(struct change *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < c->member_count; i++)
        member_free(c->members[i]);
    free(c->members);
    world_destroy(c->world);
    world_destroy(c->next.world);
    free(c);
}

double change_deadline(const struct change *c)
{
    return c->deadline;
}
