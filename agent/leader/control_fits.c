/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What guests say (control_fits.h). */
#include "agent/leader/control_fits.h"

#include "agent/leader/control.h"
#include "agent/leader/fit_desk.h"

static void say(struct leader *leader, struct link *link, json_object *answer, const char *why)
{
    control_say(link, answer != NULL ? answer : control_answer("error", "%s", why),
                control_leads(leader));
}

void control_fits(struct leader *leader, struct link *link, json_object *msg)
{
    if (control_may_change(leader, link))
        fit_desk_ask(leader, link, msg, say);
}
