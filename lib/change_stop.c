/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: the job is told to end, and what that means in each phase. */
#include "lib/change_private.h"

#include <signal.h>
#include <stdio.h>

static void begin_stop(struct change *c, const char *why)
{
    c->stop.wanted = true;
    snprintf(c->stop.reason, sizeof(c->stop.reason), "%s", why);
    act_text(c, CHANGE_SAY, NULL, "told to end (%s): saving", why);
}

void stop(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    bool world = fact->code == CHANGE_STOPS_WORLD;

    (void)m;
    c->stop.world = world && (!c->stop.wanted || c->stop.world);
    c->stop.told = c->stop.told || !world;
    if (!c->stop.wanted)
        begin_stop(c, fact->text);
    /* DRAINING ends in form(), STARTING in form_on_ready(): both look at stop.wanted. */
}

void stop_running(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    bool known = c->stop.wanted;

    stop(c, m, fact);
    if (!known)
        begin_change(c);
}

void stop_aborted(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    stop(c, m, fact);
    abort_end(c, 128 + SIGTERM);
}

void stop_without_world(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    stop(c, m, fact);
    finish(c, 128 + SIGTERM);
}

void stop_finishing(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    c->stop.told = true;
    finish(c, c->finish_code);
}

/* Its other roles have been told, too: the fact OVER follows. */
void stop_resting(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    if (fact->code != CHANGE_STOPS_WORLD)
        c->stop.told = true;
}
