/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Roles and replicas as JSON (roles_view.h). */
#include "agent/leader/roles_view.h"

#include <stdio.h>

#include "agent/leader/allocation.h"
#include "agent/leader/gangs.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "lib/text.h"

static const char *task_state_text(enum replica_task_state state)
{
    static const char *const texts[] = {
        [REPLICA_TASK_NONE] = "none",       [REPLICA_TASK_ASKED] = "asked",
        [REPLICA_TASK_RUNNING] = "running", [REPLICA_TASK_READY] = "ready",
        [REPLICA_TASK_ENDED] = "ended",
    };

    return texts[state];
}

static json_object *ports_json(const struct roles_view *view, const struct replica *replica,
                               int task)
{
    const struct role *role = &view->roles->list[replica->role];
    json_object *ports = json_object_new_object();

    for (int i = 0; role->ports != NULL && role->ports[i] != NULL; i++) {
        int port = gangs_port_of(view->gangs, replica, task, i);

        if (port != 0)
            json_object_object_add(ports, role->ports[i], json_object_new_int(port));
    }
    return ports;
}

static json_object *tasks_json(struct leader *leader, const struct roles_view *view,
                               const struct replica *replica)
{
    int tasks = replica->gang->tasks;
    json_object *list = json_object_new_array();

    for (int i = 0; i < tasks; i++) {
        const struct replica_task *task = &replica->tasks[i];
        const struct leader_member *m = task->node != 0 ? roster_by_room(leader, task->node) : NULL;
        json_object *one = json_object_new_object();

        if (m == NULL) {
            json_object_put(one);
            continue;
        }
        json_object_object_add(one, "task", json_object_new_int(i));
        json_object_object_add(one, "node", json_object_new_string(m->part->node));
        json_object_object_add(one, "address", json_object_new_string(m->part->address));
        json_object_object_add(one, "state", json_object_new_string(task_state_text(task->state)));
        json_object_object_add(one, "ports", ports_json(view, replica, i));
        json_object_array_add(list, one);
    }
    return list;
}

static json_object *replica_json(struct leader *leader, const struct roles_view *view,
                                 const struct replica *replica)
{
    const struct role *role = &view->roles->list[replica->role];
    const struct replica *owner = replica->gang->owned
                                      ? reconcile_find(view->reconcile, replica->pair)
                                      : NULL;
    json_object *one = json_object_new_object();

    json_object_object_add(one, "name", json_object_new_string(replica_name(role, replica).text));
    json_object_object_add(one, "role", json_object_new_string(role->name));
    json_object_object_add(one, "index", json_object_new_int(replica->index));
    json_object_object_add(one, "id", json_object_new_int(replica->id));
    json_object_object_add(one, "state",
                           json_object_new_string(replica_state_text(replica->state)));
    json_object_object_add(one, "start", json_object_new_int(replica->start));
    json_object_object_add(one, "since",
                           json_object_new_double(leader_unix(leader, replica->since)));
    json_object_object_add(one, "reason", json_object_new_string(replica->reason));
    json_object_object_add(one, "cpus", json_object_new_int(replica->gang->size.cpus));
    json_object_object_add(one, "gpus", json_object_new_int(replica->gang->size.gpus));
    json_object_object_add(one, "memory", json_object_new_int64(replica->gang->size.memory));
    if (owner != NULL)
        json_object_object_add(
            one, "owner",
            json_object_new_string(replica_name(&view->roles->list[owner->role], owner).text));
    if (role->kind == ROLE_SHARDS)
        json_object_object_add(one, "version",
                               json_object_new_int64(gangs_version_of(view->gangs, replica)));
    json_object_object_add(one, "tasks", tasks_json(leader, view, replica));
    return one;
}

json_object *roles_view_endpoints(struct leader *leader, const struct roles_view *view)
{
    const struct reconcile *reconcile = view->reconcile;
    json_object *all = json_object_new_object(), *list = json_object_new_array();

    for (int i = 0; i < reconcile_count(reconcile); i++)
        if (reconcile_at(reconcile, i)->state == REPLICA_READY)
            json_object_array_add(list, replica_json(leader, view, reconcile_at(reconcile, i)));
    json_object_object_add(all, "replicas", list);
    return all;
}

/* How many of what it counts a role has: replicas that are ready, or nodes of a world that trains;
 * and how many it should have. */
static void count(struct leader *leader, const struct roles_view *view, int index, int *ready,
                  int *target)
{
    const struct world *world = change_world(leader->change);

    *ready = reconcile_in_state(view->reconcile, index, REPLICA_READY);
    *target = reconcile_target(view->reconcile, index);
    if (view->roles->list[index].kind != ROLE_WORLD)
        return;
    *ready = world != NULL && change_phase(leader->change) == CHANGE_RUNNING ? world->node_count
                                                                             : 0;
    *target = reconcile_world_is_over(view->reconcile) ? 0 : allocation_target(leader);
}

/* Has the world any node of the base? */
static bool has_nodes(const struct roles_view *view)
{
    return reconcile_world_nodes(view->reconcile) > 0;
}

static void why(struct leader *leader, const struct roles_view *view, int index, char *size,
                size_t size_max, char *more, size_t more_max)
{
    int ready, target;

    reconcile_why(view->reconcile, index, leader_now(leader), size, size_max, more, more_max);
    if (view->roles->list[index].kind != ROLE_WORLD)
        return;
    count(leader, view, index, &ready, &target);
    if (reconcile_world_is_over(view->reconcile) && view->roles->list[index].trains)
        snprintf(size, size_max, "no fit needs it");
    else if (reconcile_world_is_over(view->reconcile))
        snprintf(size, size_max, "it has ended");
    else if (!has_nodes(view))
        snprintf(size, size_max, "the base has no room for it");
    else if (leader->why.size[0] != '\0')
        snprintf(size, size_max, "generation %d: %s", change_generation(leader->change),
                 leader->why.size);
    else
        snprintf(size, size_max, "generation %d: %d node%s", change_generation(leader->change),
                 ready, ready == 1 ? "" : "s");
    snprintf(more, more_max, "%s",
             reconcile_world_is_over(view->reconcile) ? ""
             : !has_nodes(view)                       ? "the base has no room for it"
                                                      : leader->why.not_more);
}

/* Its replicas that others own. */
static int count_owned(const struct roles_view *view, int role)
{
    int count = 0;

    for (int form = 1; form < RECONCILE_FORMS; form++) {
        struct slots_gang gang;
        int of_form = reconcile_target_of(view->reconcile, role, form, &gang);

        count += of_form > 0 && gang.owned ? of_form : 0;
    }
    return count;
}

/* For who trains by it. */
static void add_world(const struct leader *leader, const struct roles_view *view, int index,
                      json_object *into)
{
    int status;

    json_object_object_add(into, "over",
                           json_object_new_boolean(reconcile_world_is_over(view->reconcile)));
    json_object_object_add(into, "wanted",
                           json_object_new_boolean(reconcile_target(view->reconcile, index) > 0));
    /* Not before the next leader would know it. */
    if (reconcile_world_has_ended(view->reconcile, &status) && !report_busy(leader))
        json_object_object_add(into, "ended", json_object_new_int(status));
}

static json_object *role_json(struct leader *leader, const struct roles_view *view, int index)
{
    const struct role *role = &view->roles->list[index];
    json_object *one = json_object_new_object();
    char size[320], more[320];
    int ready, target;

    count(leader, view, index, &ready, &target);
    why(leader, view, index, size, sizeof(size), more, sizeof(more));
    json_object_object_add(one, "name", json_object_new_string(role->name));
    json_object_object_add(one, "kind",
                           json_object_new_string(role->kind == ROLE_WORLD    ? "world"
                                                  : role->kind == ROLE_SHARDS ? "shards"
                                                  : role->kind == ROLE_ROUTER ? "router"
                                                                              : "replicas"));
    json_object_object_add(one, "min", json_object_new_int(role->min));
    json_object_object_add(one, "max", json_object_new_int(role->max));
    json_object_object_add(one, "target", json_object_new_int(target));
    json_object_object_add(one, "tasks", json_object_new_int(role->gang.tasks));
    json_object_object_add(one, "owned", json_object_new_int(count_owned(view, index)));
    json_object_object_add(one, "ready", json_object_new_int(ready));
    json_object_object_add(one, "leads", json_object_new_boolean(role->leads));
    json_object_object_add(one, "size", json_object_new_string(size));
    json_object_object_add(one, "more", json_object_new_string(more));
    if (role->kind == ROLE_WORLD)
        add_world(leader, view, index, one);
    return one;
}

/* A shard that there may be, and is not. */
static bool is_unused(const struct roles_view *view, int role)
{
    bool unused = view->roles->list[role].kind == ROLE_SHARDS &&
                  reconcile_target(view->reconcile, role) == 0;

    for (int state = 0; unused && state < REPLICA_STATE_COUNT; state++)
        unused = reconcile_in_state(view->reconcile, role, (enum replica_state)state) == 0;
    return unused;
}

void roles_view_describe(struct leader *leader, const struct roles_view *view, json_object *into)
{
    json_object *roles = json_object_new_array(), *replicas = json_object_new_array();

    for (int i = 0; i < view->roles->count; i++)
        if (!is_unused(view, i))
            json_object_array_add(roles, role_json(leader, view, i));
    for (int i = 0; i < reconcile_count(view->reconcile); i++)
        json_object_array_add(replicas,
                              replica_json(leader, view, reconcile_at(view->reconcile, i)));
    json_object_object_add(into, "roles", roles);
    json_object_object_add(into, "replicas", replicas);
}

void roles_view_summary(struct leader *leader, const struct roles_view *view, char *text,
                        size_t size)
{
    int ready, target;

    text[0] = '\0';
    for (int i = 0; i < view->roles->count; i++) {
        if (is_unused(view, i))
            continue;
        count(leader, view, i, &ready, &target);
        text_append(text, size, "%s%s %d/%d", text[0] != '\0' ? ", " : "",
                    view->roles->list[i].name, ready, target);
    }
}
