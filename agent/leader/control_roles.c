/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users ask about roles (control_roles.h). */
#include "agent/leader/control_roles.h"

#include "agent/leader/control.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "lib/json_get.h"
#include "lib/roles.h"

static bool has_roles(struct leader *leader, struct link *link)
{
    if (leader_roles_any(leader))
        return true;
    control_say(link, control_answer("error", "job %u has no roles", leader->options->job), true);
    return false;
}

void control_roles(struct leader *leader, struct link *link, json_object *msg)
{
    json_object *said;

    (void)msg;
    if (!has_roles(leader, link))
        return;
    said = leader_message("roles", -1);
    json_object_object_add(said, "job", json_object_new_int64(leader->options->job));
    leader_roles_describe(leader, said);
    control_say(link, said, control_leads(leader));
}

/* May what has been asked be done now? If not, that has been said. */
static bool may_change(struct leader *leader, struct link *link)
{
    if (!has_roles(leader, link) || !control_may_change(leader, link))
        return false;
    if (!change_is_ending(leader->change))
        return true;
    control_say(link, control_answer("error", "job %u is ending", leader->options->job), true);
    return false;
}

static json_object *scale(struct leader *leader, json_object *msg)
{
    const char *role = json_get_string(msg, "role");
    const uint32_t job = leader->options->job;
    struct error err;
    int64_t number;
    int size, before;
    bool relative = !json_get_int(msg, "count", 0, ROLES_REPLICAS_MAX, &number);

    if (relative && !json_get_int(msg, "delta", -ROLES_REPLICAS_MAX, ROLES_REPLICAS_MAX, &number))
        return control_answer("error", "a new size needs a number of replicas, 0 to %d",
                              ROLES_REPLICAS_MAX);
    if (leader_roles_scale(leader, role, relative, (int)number, &size, &before, &err) != 0)
        return control_answer("error", "%s", err.text);
    return control_answer("done", "job %u: %s: %d replica%s (was %d)", job, role, size,
                          size == 1 ? "" : "s", before);
}

void control_scale(struct leader *leader, struct link *link, json_object *msg)
{
    if (may_change(leader, link))
        control_say(link, scale(leader, msg), true);
}

static json_object *fail(struct leader *leader, json_object *msg)
{
    const char *replica = json_get_string(msg, "replica");
    struct error err;

    if (leader_roles_fail(leader, replica, &err) != 0)
        return control_answer("error", "%s", err.text);
    return control_answer("done", "job %u: %s is replaced", leader->options->job, replica);
}

void control_fail(struct leader *leader, struct link *link, json_object *msg)
{
    if (may_change(leader, link))
        control_say(link, fail(leader, msg), true);
}
