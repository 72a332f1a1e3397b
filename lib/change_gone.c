/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: a member is gone, and what that means in each phase. */
#include "lib/change_private.h"

static void gone(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    m->there = false;
    if (fact->text != NULL)
        set_next_reason(c, "%s", fact->text);
    if (m->place >= 0 && m->state != CHANGE_DRAINED)
        m->state = CHANGE_LOST;
}

/* What follows of a loss in every phase. */
static void after_gone(struct change *c, struct change_member *m)
{
    if (m->place < 0)
        m->state = CHANGE_OUTSIDE;
    next_again(c);
    decide(c, 0);
}

void gone_elsewhere(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    gone(c, m, fact);
    if (!is_in_phase(c, PHASES_OVER))
        after_gone(c, m);
}

void gone_reserving(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    gone(c, m, fact);
    if (m->next_place >= 0)
        form(c);
    after_gone(c, m);
}

void gone_aborted(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    gone(c, m, fact);
    if (m->place >= 0)
        break_off(c);
    after_gone(c, m);
}

void gone_starting(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    gone(c, m, fact);
    if (m->place < 0) {
        abort_leaver_gone(c, m);
    } else {
        break_off(c);
    }
    after_gone(c, m);
}

void gone_holding(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    gone(c, m, fact);
    if (m->place >= 0 && m->state == CHANGE_DRAINED) {
        agree_if_answered(c);
    } else if (m->place >= 0) {
        break_off(c);
    }
    after_gone(c, m);
}

/* The next plan says what follows, unless no worker is left anywhere. */
void gone_running(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    gone(c, m, fact);
    if (m->place >= 0)
        check_drained(c);
    after_gone(c, m);
}

void gone_leaving(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    gone(c, m, fact);
    if (m->place >= 0 && m->state == CHANGE_LOST && !is_in_phase(c, PHASE(SAVING)) &&
        !c->saved_only && !abort_ending(c) && c->phase != CHANGE_KILLING)
        kill_rest(c);
    if (m->place >= 0)
        check_drained(c);
    after_gone(c, m);
}
