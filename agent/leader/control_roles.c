/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users ask about roles (control_roles.h). */
#include "agent/leader/control_roles.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/leader/control.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/role_orders.h"
#include "agent/leader/role_reports.h"
#include "lib/json_get.h"
#include "lib/number.h"
#include "lib/roles.h"

/* A refusal that a program understands, too. */
static json_object *coded(json_object *answer, const char *code)
{
    json_object_object_add(answer, "code", json_object_new_string(code));
    return answer;
}

static bool has_roles(struct leader *leader, struct link *link)
{
    if (leader_roles_any(leader))
        return true;
    control_say(
        link, coded(control_answer("error", "job %u has no roles", leader->options->job), "state"),
        true);
    return false;
}

void control_roles(struct leader *leader, struct link *link, json_object *msg)
{
    json_object *said;
    int64_t known;
    int epoch = leader_roles_epoch(leader);

    if (!has_roles(leader, link))
        return;
    said = leader_message("roles", -1);
    json_object_object_add(said, "job", json_object_new_int64(leader->options->job));
    if (json_get_int(msg, "known", 0, INT32_MAX, &known) && known == epoch)
        json_object_object_add(said, "epoch", json_object_new_int(epoch));
    else
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
    control_say(link,
                coded(control_answer("error", "job %u is ending", leader->options->job), "state"),
                true);
    return false;
}

/* Who asks has seen an epoch, or a size, that may be over. NULL: it is the present one. */
static json_object *outdated(struct leader *leader, json_object *msg, const char *role)
{
    const uint32_t job = leader->options->job;
    int64_t seen;
    int epoch = leader_roles_epoch(leader), target = role_orders_target(leader, role);

    if (target < 0)
        return coded(control_answer("error", "there is no role '%.40s'", role), "unknown");
    if (json_get_int(msg, "epoch", 0, INT32_MAX, &seen) && seen != epoch)
        return coded(control_answer("error", "job %u: the epoch is %d, not %lld", job, epoch,
                                    (long long)seen),
                     "epoch");
    if (json_get_int(msg, "expect", 0, ROLES_REPLICAS_MAX, &seen) && seen != target)
        return coded(control_answer("error", "job %u: %s should have %d replicas, not %lld", job,
                                    role, target, (long long)seen),
                     "changed");
    return NULL;
}

/* What the replicas that are more are to need. */
static int read_needs(json_object *msg, struct role_needs *needs, struct error *err)
{
    json_object *object;

    *needs = (struct role_needs)ROLE_NEEDS_NONE;
    if (!json_object_object_get_ex(msg, "needs", &object) ||
        !json_object_is_type(object, json_type_object))
        return 0;
    json_object_object_foreach (object, key, value)
        if (role_needs_value(needs, key, value, err) != 0)
            return -1;
    return 0;
}

static json_object *scale(struct leader *leader, json_object *msg)
{
    const char *name = json_get_string(msg, "role"), *role = name != NULL ? name : "";
    const uint32_t job = leader->options->job;
    json_object *refusal = outdated(leader, msg, role);
    struct role_needs needs;
    struct error err;
    int64_t number;
    int size, before;
    bool relative = !json_get_int(msg, "count", 0, INT32_MAX, &number);

    if (refusal != NULL)
        return refusal;
    if (relative && !json_get_int(msg, "delta", -ROLES_REPLICAS_MAX, ROLES_REPLICAS_MAX, &number))
        return control_answer("error", "a new size needs a number of replicas, 0 to %d",
                              ROLES_REPLICAS_MAX);
    if (read_needs(msg, &needs, &err) != 0 ||
        role_orders_scale(leader, role, relative, (int)number, &needs, &size, &before, &err) != 0)
        return coded(control_answer("error", "%s", err.text), "limits");
    return control_answer("done", "job %u: %s: %d replica%s (was %d)", job, role, size,
                          size == 1 ? "" : "s", before);
}

void control_scale(struct leader *leader, struct link *link, json_object *msg)
{
    if (may_change(leader, link))
        control_say(link, scale(leader, msg), true);
}

static json_object *end(struct leader *leader, json_object *msg, bool replace)
{
    const char *replica = json_get_string(msg, "replica"), *dash;
    json_object *refusal;
    char role[64] = ""; /* the name without "-3" */
    struct error err;

    dash = replica != NULL ? strrchr(replica, '-') : NULL;
    if (dash != NULL)
        snprintf(role, sizeof(role), "%.*s", (int)(dash - replica), replica);
    refusal = replace ? NULL : outdated(leader, msg, role);
    if (refusal != NULL)
        return refusal;
    if (role_orders_end(leader, replica, replace, json_get_string(msg, "reason"), &err) != 0)
        return coded(control_answer("error", "%s", err.text), "state");
    return control_answer("done", "job %u: %s %s", leader->options->job, replica,
                          replace ? "is replaced" : "goes");
}

void control_fail(struct leader *leader, struct link *link, json_object *msg)
{
    if (may_change(leader, link))
        control_say(link, end(leader, msg, true), true);
}

void control_remove(struct leader *leader, struct link *link, json_object *msg)
{
    if (may_change(leader, link))
        control_say(link, end(leader, msg, false), true);
}

/* ---- reports --------------------------------------------------------------------------------- */

static json_object *reported(int number)
{
    json_object *answer = control_answer("done", "report %d", number);

    json_object_object_add(answer, "number", json_object_new_int(number));
    return answer;
}

/* The file has been written. A leader that may have been followed meanwhile says so: the next one
 * may have read the file before. */
static void say_reported(struct leader *leader, struct link *link, int number, const char *trouble)
{
    control_say(link,
                trouble != NULL ? coded(control_answer("error", "%s", trouble), "unkept")
                                : reported(number),
                control_leads(leader));
}

/* "server-3" of "server". A world has no replicas: its tasks report in its own name. */
static bool is_name_of(const struct role *role, const char *replica)
{
    size_t length = strlen(role->name);
    const char *rest = replica + length;
    int index;

    if (strncmp(replica, role->name, length) != 0)
        return false;
    if (role->kind == ROLE_WORLD)
        return *rest == '\0';
    return *rest == '-' && number_parse(rest + 1, strlen(rest + 1), 0, INT_MAX, &index) == 0;
}

/* NULL: it is there. A leader that does not know all replicas so far takes the name for one. */
static json_object *check_sender(struct leader *leader, const char *name, const char *replica)
{
    const struct roles_view *view = leader_roles_view(leader);
    int index = roles_find(view->roles, name);
    const struct role *role = index >= 0 ? &view->roles->list[index] : NULL;

    if (role == NULL)
        return coded(control_answer("error", "there is no role '%.40s'", name), "unknown");
    if (is_name_of(role, replica) && (role->kind == ROLE_WORLD || !leader_roles_run(leader) ||
                                      reconcile_named(view->reconcile, replica) != NULL))
        return NULL;
    if (role->kind == ROLE_WORLD)
        return coded(control_answer("error", "%s is the world: it reports as %s", name, name),
                     "unknown");
    return coded(control_answer("error", "role %s has no replica '%.80s'", name, replica),
                 "unknown");
}

/* The answer; NULL: it comes once the file is written. */
static json_object *report(struct leader *leader, struct link *link, json_object *msg)
{
    const char *role = json_get_string(msg, "role"), *replica = json_get_string(msg, "replica"),
               *id = json_get_string(msg, "id"), *text = json_get_string(msg, "report");
    char plain[REPORT_MAX + 1];
    json_object *refusal;
    struct error err;
    int number;

    if (role == NULL || replica == NULL || text == NULL || id == NULL || id[0] == '\0' ||
        strlen(id) >= REPORT_ID_MAX)
        return coded(control_answer("error", "a report needs role, replica, report and id"), "bad");
    refusal = check_sender(leader, role, replica);
    if (refusal != NULL)
        return refusal;
    if (report_read(text, strlen(text), plain, &err) != 0)
        return coded(control_answer("error", "%s", err.text), "bad");
    switch (role_reports_add(leader, link, role, replica, id, plain, say_reported, &number)) {
    case REPORTS_KEPT:
        return reported(number);
    case REPORTS_WAITS:
        return NULL;
    default:
        return coded(control_answer("error", "too many reports wait for the file of the job"),
                     "busy");
    }
}

void control_report(struct leader *leader, struct link *link, json_object *msg)
{
    json_object *answer;

    if (!has_roles(leader, link) || !control_may_change(leader, link))
        return;
    answer = report(leader, link, msg);
    if (answer != NULL)
        control_say(link, answer, true);
}

void control_reports(struct leader *leader, struct link *link, json_object *msg)
{
    const uint32_t job = leader->options->job;
    int64_t after = 0;
    json_object *said;
    int last;

    if (!has_roles(leader, link))
        return;
    last = reports_last(role_reports_list(leader));
    json_get_int(msg, "after", 0, INT_MAX, &after);
    if (after > last) {
        said = coded(control_answer("error", "job %u: the last report has number %d, not %lld", job,
                                    last, (long long)after),
                     "state");
    } else {
        said = leader_message("reports", -1);
        json_object_object_add(said, "job", json_object_new_int64(job));
        reports_show(role_reports_list(leader), (int)after, said);
    }
    control_say(link, said, control_leads(leader));
}
