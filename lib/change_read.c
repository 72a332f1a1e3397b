/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: what others read of it (change.h). */
#include "lib/change_private.h"

#include <stdio.h>

const char *change_phase_text(const struct change *c)
{
    if (is_in_phase(c, PHASES_WITHOUT_WORLD | PHASE(ABORTED)))
        return "waiting";
    if (is_in_phase(c, PHASE(RUNNING) | PHASE(RESTING)))
        return "running";
    return is_in_phase(c, PHASES_OVER) ? "ending" : "switching";
}

const char *change_phase_name(enum change_phase phase)
{
    static const char *const names[CHANGE_PHASE_COUNT] = {
        [CHANGE_ASSEMBLING] = "ASSEMBLING", [CHANGE_TAKING_OVER] = "TAKING_OVER",
        [CHANGE_WAITING] = "WAITING",       [CHANGE_REPLACING] = "REPLACING",
        [CHANGE_PROMOTING] = "PROMOTING",   [CHANGE_RESERVING] = "RESERVING",
        [CHANGE_STARTING] = "STARTING",     [CHANGE_SWITCHING] = "SWITCHING",
        [CHANGE_RUNNING] = "RUNNING",       [CHANGE_HOLDING] = "HOLDING",
        [CHANGE_DRAINING] = "DRAINING",     [CHANGE_KILLING] = "KILLING",
        [CHANGE_SETTLING] = "SETTLING",     [CHANGE_ABORTED] = "ABORTED",
        [CHANGE_SAVING] = "SAVING",         [CHANGE_FINISHING] = "FINISHING",
        [CHANGE_ENDING] = "ENDING",         [CHANGE_RESTING] = "RESTING"};

    return names[phase];
}

const char *change_fact_name(enum change_fact_kind fact)
{
    static const char *const names[CHANGE_FACT_COUNT] = {
        [CHANGE_FACT_JOINED] = "JOINED",       [CHANGE_FACT_GONE] = "GONE",
        [CHANGE_FACT_LEAVING] = "LEAVING",     [CHANGE_FACT_RELEASED] = "RELEASED",
        [CHANGE_FACT_RECLAIMED] = "RECLAIMED", [CHANGE_FACT_BUSY] = "BUSY",
        [CHANGE_FACT_ADMITTED] = "ADMITTED",   [CHANGE_FACT_RESERVED] = "RESERVED",
        [CHANGE_FACT_PARKED] = "PARKED",       [CHANGE_FACT_UNPREPARED] = "UNPREPARED",
        [CHANGE_FACT_READY] = "READY",         [CHANGE_FACT_LISTENING] = "LISTENING",
        [CHANGE_FACT_BEGUN] = "BEGUN",         [CHANGE_FACT_STEPPING] = "STEPPING",
        [CHANGE_FACT_HELD] = "HELD",           [CHANGE_FACT_EXITED] = "EXITED",
        [CHANGE_FACT_DRAINED] = "DRAINED",     [CHANGE_FACT_BEAT] = "BEAT",
        [CHANGE_FACT_AT_WORK] = "AT_WORK",     [CHANGE_FACT_WRITTEN] = "WRITTEN",
        [CHANGE_FACT_PLAN] = "PLAN",           [CHANGE_FACT_STOP] = "STOP",
        [CHANGE_FACT_FAIL] = "FAIL",           [CHANGE_FACT_REASON] = "REASON",
        [CHANGE_FACT_PROMOTED] = "PROMOTED",   [CHANGE_FACT_DEPOSED] = "DEPOSED",
        [CHANGE_FACT_AGAIN] = "AGAIN",         [CHANGE_FACT_OVER] = "OVER",
        [CHANGE_FACT_WATCH] = "WATCH",         [CHANGE_FACT_TIME] = "TIME"};

    return names[fact];
}

enum change_phase change_phase(const struct change *c)
{
    return c->phase;
}

bool change_has_begun(const struct change *c)
{
    return c->generation > 0 || c->assembled;
}

bool change_is_ending(const struct change *c)
{
    return is_in_phase(c, PHASES_OVER);
}

int change_generation(const struct change *c)
{
    return c->generation;
}

const struct world *change_world(const struct change *c)
{
    return c->world;
}

const struct change_next *change_next(const struct change *c)
{
    return &c->next;
}

const struct world *change_world_of(const struct change *c, int attempt)
{
    if (c->next.world != NULL && c->next.attempt == attempt)
        return c->next.world;
    return c->attempt == attempt ? c->world : NULL;
}

const struct change_member *change_member(const struct change *c, int id)
{
    return find_member(c, id);
}

bool change_stopping(const struct change *c)
{
    return c->stop.wanted;
}

int change_faults(const struct change *c)
{
    return c->faults;
}

bool change_begins_again(const struct change *c)
{
    return c->again;
}

double change_stands_since(const struct change *c)
{
    return c->generation > 0 && !c->again && is_in_phase(c, PHASE(WAITING) | PHASE(ABORTED))
               ? c->phase_since
               : -1;
}

int change_nodes_before_loss(const struct change *c, double *replace_until)
{
    *replace_until = c->replace.until;
    return c->phase == CHANGE_ABORTED || c->phase == CHANGE_SAVING ? 0 : c->replace.nodes;
}

double change_since(const struct change *c)
{
    return c->since;
}

double change_ready_at(const struct change *c)
{
    return c->ready_at;
}

const char *change_kind(const struct change *c)
{
    return c->kind;
}

const char *change_reason(const struct change *c)
{
    return c->reason;
}

const char *change_newcomer_error(const struct change *c)
{
    return c->newcomer_error;
}

const char *change_next_reason(const struct change *c)
{
    return c->next_reason;
}

uint32_t change_leaving_job(const struct change *c)
{
    return c->leaving_job;
}

bool change_all_stepping(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && !m->stepping)
            return false;
    return true;
}

bool change_any_stateful(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && m->stateful)
            return true;
    return false;
}

bool change_has_state(const struct change *c, const struct change_member *m, bool any)
{
    return c->options->mode != CHANGE_RESTART && has_workers_left(m) && !m->failed &&
           (any ? m->live && m->stateful : !m->stepping);
}

bool change_is_usable(const struct change_member *m, double now)
{
    return m->there && !m->apart && m->notice == CHANGE_STAYS && !m->released &&
           !change_is_on_its_way(m) && now >= m->shunned;
}

const char *change_next_text(const struct change *c, char *text, size_t size)
{
    int nodes = 0, ready = 0;

    FOR_MEMBERS (c, m) {
        nodes += m->next_place >= 0;
        ready += m->next_place >= 0 && next_has_ready(c, m);
    }
    text[0] = '\0';
    if (c->next.world != NULL)
        snprintf(text, size, "%d node%s: workers start, %d of %d nodes ready", nodes,
                 nodes == 1 ? "" : "s", ready, nodes);
    return text;
}
