/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What members say of the tasks of replicas (role_tasks.h). */
#include "agent/leader/role_tasks.h"

#include <stdio.h>
#include <string.h>

#include "agent/leader/gangs.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/leader_service.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/number.h"
#include "lib/role_needs.h"
#include "lib/role_task.h"

/* ---- after a takeover ------------------------------------------------------------------------ */

/* The number at the end of ROLE-INDEX; -1: it is no such name. */
static int index_of(const char *name, const struct role *role)
{
    size_t len = strlen(role->name);
    int index;

    if (name == NULL || strncmp(name, role->name, len) != 0 || name[len] != '-' ||
        number_parse(name + len + 1, strlen(name + len + 1), 0, ROLES_REPLICAS_MAX - 1, &index) !=
            0)
        return -1;
    return index;
}

static bool array_at(json_object *msg, const char *key, int tasks, json_object **array)
{
    return json_object_object_get_ex(msg, key, array) &&
           json_object_is_type(*array, json_type_array) &&
           (int)json_object_array_length(*array) == tasks;
}

/* The role of that message; its index is in *index. -1: there is none. */
static int role_of(const struct roles *roles, json_object *said, int *index)
{
    const char *name = json_get_string(said, "role");
    int role = name != NULL ? roles_find(roles, name) : -1;

    *index = role >= 0 ? index_of(json_get_string(said, "name"), &roles->list[role]) : -1;
    return role;
}

/* The replica, if lib/reconcile takes it; else NULL. */
static const struct replica *take(struct leader *leader, const struct leader_member *m,
                                  struct reconcile_fact fact)
{
    const struct replica *replica;

    fact.kind = RECONCILE_ADOPT;
    leader_roles_feed(leader, fact);
    replica = reconcile_find(leader_roles_view(leader)->reconcile, fact.replica);
    return replica != NULL && replica->start == fact.start && replica->state == REPLICA_STARTING &&
                   replica->tasks[0].node == m->room
               ? replica
               : NULL;
}

/* The leading replica has ended there, which the leader before may not have heard. */
static void conclude(struct leader *leader, const struct leader_member *m, json_object *said,
                     struct reconcile_fact fact)
{
    const struct roles *roles = leader_roles_view(leader)->roles;
    int64_t status;

    fact.role = role_of(roles, said, &fact.index);
    if (fact.role < 0 || !roles->list[fact.role].leads ||
        !json_get_int(said, "status", 0, 255, &status) || take(leader, m, fact) == NULL)
        return;
    fact.kind = RECONCILE_EXITED;
    fact.status = (int)status;
    for (fact.task = 0; fact.task < roles->list[fact.role].gang.tasks; fact.task++)
        leader_roles_feed(leader, fact);
}

/* A replica that runs there: false if it cannot go on. */
static bool adopt(struct leader *leader, const struct leader_member *m, json_object *said,
                  struct reconcile_fact fact)
{
    const struct roles_view *view = leader_roles_view(leader);
    const struct replica *replica;
    struct slots_gang gang;
    json_object *ready, *ports;
    int tasks;

    fact.role = role_of(view->roles, said, &fact.index);
    if (fact.role < 0)
        return false;
    gang = view->roles->list[fact.role].gang;
    if (!role_needs_read(said, &gang))
        return false;
    fact.gang = &gang;
    if (gang.owned && view->roles->pairs.any)
        fact.owner = index_of(json_get_string(said, "owner"),
                              &view->roles->list[view->roles->pairs.owner]);
    tasks = gang.tasks;
    if (!array_at(said, "ready", tasks, &ready) || !array_at(said, "ports", tasks, &ports) ||
        (replica = take(leader, m, fact)) == NULL ||
        gangs_adopt(leader, view->gangs, replica, said) != 0)
        return false;
    for (fact.task = 0; fact.task < tasks; fact.task++) {
        if (!json_get_bool(said, "running", false))
            break;
        fact.kind = RECONCILE_RUNNING;
        leader_roles_feed(leader, fact);
        fact.kind = RECONCILE_TASK_READY;
        if (json_object_get_boolean(json_object_array_get_idx(ready, (size_t)fact.task)))
            leader_roles_feed(leader, fact);
    }
    return true;
}

static void kill_unknown(struct leader_member *m, const struct reconcile_fact *which)
{
    json_object *msg = leader_message("task_kill", -1);

    json_object_object_add(msg, "replica", json_object_new_int(which->replica));
    json_object_object_add(msg, "start", json_object_new_int(which->start));
    leader_send(m, msg);
}

static bool read_which(const struct leader_member *m, json_object *said,
                       struct reconcile_fact *which)
{
    int64_t id, start;

    if (!json_object_is_type(said, json_type_object) ||
        !json_get_int(said, "replica", 1, INT32_MAX, &id) ||
        !json_get_int(said, "start", 1, INT32_MAX, &start))
        return false;
    *which = (struct reconcile_fact){.node = m->room, .replica = (int)id, .start = (int)start};
    return true;
}

void role_tasks_room(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct reconcile_fact which;
    json_object *list, *result;

    if (!leader_roles_room(leader, m, msg))
        return;
    if (json_object_object_get_ex(msg, "result", &result) && read_which(m, result, &which))
        conclude(leader, m, result, which);
    if (!json_object_object_get_ex(msg, "replicas", &list) ||
        !json_object_is_type(list, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *said = json_object_array_get_idx(list, i);

        if (read_which(m, said, &which) && !adopt(leader, m, said, which))
            kill_unknown(m, &which);
    }
}

/* ---- one task -------------------------------------------------------------------------------- */

/* The replica that the message is about, if that start of it has tasks on the member's node. */
static const struct replica *subject(struct leader *leader, const struct leader_member *m,
                                     json_object *msg)
{
    const struct replica *replica;
    int64_t id, number;

    if (m->room == 0 || !json_get_int(msg, "replica", 1, INT32_MAX, &id) ||
        !json_get_int(msg, "start", 1, INT32_MAX, &number))
        return NULL;
    replica = reconcile_find(leader_roles_view(leader)->reconcile, (int)id);
    if (replica == NULL || replica->start != number)
        return NULL;
    for (int i = 0; i < replica->gang->tasks; i++)
        if (replica->tasks[i].node == m->room)
            return replica;
    return NULL;
}

/* … and its task, which has to be on that node. NULL: there is none. */
static const struct replica *task_of(struct leader *leader, const struct leader_member *m,
                                     json_object *msg, int *task)
{
    const struct replica *replica = subject(leader, m, msg);
    int64_t number;

    if (replica == NULL || !json_get_int(msg, "task", 0, replica->gang->tasks - 1, &number) ||
        replica->tasks[number].node != m->room)
        return NULL;
    *task = (int)number;
    return replica;
}

void role_tasks_port(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const struct replica *replica = subject(leader, m, msg);

    if (replica != NULL && replica->tasks[0].node == m->room)
        gangs_port(leader, leader_roles_view(leader)->gangs, replica, msg);
}

void role_tasks_running(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const struct replica *replica = subject(leader, m, msg);
    struct reconcile_fact fact = {.kind = RECONCILE_RUNNING};
    int tasks;

    if (replica == NULL)
        return;
    gangs_running(leader_roles_view(leader)->gangs, replica, m->room, msg);
    fact.replica = replica->id;
    fact.start = replica->start;
    tasks = replica->gang->tasks;
    for (fact.task = 0; fact.task < tasks; fact.task++) {
        replica = reconcile_find(leader_roles_view(leader)->reconcile, fact.replica);
        if (replica != NULL && replica->start == fact.start &&
            replica->tasks[fact.task].node == m->room)
            leader_roles_feed(leader, fact);
    }
}

static void feed_task(struct leader *leader, const struct leader_member *m, json_object *msg,
                      enum reconcile_fact_kind kind)
{
    struct reconcile_fact fact = {.kind = kind, .text = json_get_string(msg, "text")};
    const struct replica *replica = task_of(leader, m, msg, &fact.task);

    if (replica == NULL)
        return;
    fact.replica = replica->id;
    fact.start = replica->start;
    leader_roles_feed(leader, fact);
}

void role_tasks_ready(struct leader *leader, struct leader_member *m, json_object *msg)
{
    feed_task(leader, m, msg, RECONCILE_TASK_READY);
}

void role_tasks_unready(struct leader *leader, struct leader_member *m, json_object *msg)
{
    feed_task(leader, m, msg, RECONCILE_UNREADY);
}

void role_tasks_models(struct leader *leader, struct leader_member *m, json_object *msg)
{
    int task;
    const struct replica *replica = task_of(leader, m, msg, &task);

    if (replica == NULL)
        return;
    gangs_loaded(leader_roles_view(leader)->gangs, replica, msg);
    leader_service_measured(leader, json_object_object_get(msg, "sizes"));
    leader_roles_look(leader);
}

static void say_end(struct leader *leader, const struct leader_member *m,
                    const struct replica *replica, int task, const char *text)
{
    const struct role *role = &leader_roles_view(leader)->roles->list[replica->role];
    char which[32] = "";

    if (replica->state == REPLICA_DRAINING || replica->state == REPLICA_FAILED)
        return; /* it was to end */
    if (replica->gang->tasks > 1)
        snprintf(which, sizeof(which), ", task %d,", task);
    log_info("job %u: %s%s on %s: %s", leader->options->job, replica_name(role, replica).text,
             which, m->part->node, text);
}

void role_tasks_exit(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct reconcile_fact fact = {.kind = RECONCILE_EXITED, .text = json_get_string(msg, "text")};
    const struct replica *replica = task_of(leader, m, msg, &fact.task);
    int64_t status;

    if (replica == NULL) {
        /* The node has none of its tasks. */
        replica = subject(leader, m, msg);
        if (replica != NULL && json_get_int(msg, "task", -1, -1, &status))
            leader_roles_never_started(leader, replica, m->room);
        return;
    }
    if (!json_get_int(msg, "status", 0, 255, &status))
        return;
    output_end_rank(leader->output, role_task_stream(replica->start, fact.task));
    fact.replica = replica->id;
    fact.start = replica->start;
    fact.status = json_get_bool(msg, "lost", false) ? -1 : (int)status;
    if (status != 0)
        say_end(leader, m, replica, fact.task, fact.text != NULL ? fact.text : "has ended");
    leader_roles_feed(leader, fact);
}
