/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts for lib/service, and its actions (service_act.h). */
#include "agent/leader/service_act.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/gangs.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/lease.h"
#include "agent/leader/route_waiters.h"
#include "agent/leader/service_shell.h"
#include "agent/leader/service_text.h"
#include "common/log.h"
#include "lib/json_text.h"
#include "lib/reconcile.h"
#include "lib/roles_program.h"

/* ---- what there is --------------------------------------------------------------------------- */

static enum service_replica_state state_of(const struct replica *replica)
{
    if (replica->state != REPLICA_WANTED && (replica->leaves || replica->again))
        return SERVICE_LEAVES;
    switch (replica->state) {
    case REPLICA_WANTED:
        return SERVICE_WAITS;
    case REPLICA_PLACED:
    case REPLICA_STARTING:
        return SERVICE_STARTS;
    case REPLICA_READY:
        return SERVICE_READY;
    default:
        return SERVICE_LEAVES;
    }
}

/* The port that is asked whether it is ready, else the first one. */
static int port_index(const struct role *role)
{
    for (int i = 0; role->ready.port != NULL && role->ports[i] != NULL; i++)
        if (strcmp(role->ports[i], role->ready.port) == 0)
            return i;
    return 0;
}

/* NULL: out of memory. */
static struct service_replica *list_replicas(struct leader *leader, int *count)
{
    const struct roles_view *view = leader_roles_view(leader);
    int all = reconcile_count(view->reconcile);
    struct service_replica *list = calloc((size_t)all + 1, sizeof(*list));

    *count = 0;
    for (int i = 0; list != NULL && i < all; i++) {
        const struct replica *replica = reconcile_at(view->reconcile, i);
        const struct role *role = &view->roles->list[replica->role];
        bool placed = replica->state > REPLICA_PLACED;
        const struct leader_member *m = placed ? roster_by_room(leader, replica->tasks[0].node)
                                               : NULL;

        struct gangs_tried tried = gangs_tried(view->gangs, replica);

        if (role->kind != ROLE_SHARDS)
            continue;
        list[(*count)++] = (struct service_replica){
            .shard = role->shards.number,
            .id = replica->id,
            .start = replica->start,
            .state = state_of(replica),
            .version = placed ? gangs_version_of(view->gangs, replica) : 0,
            .program = placed ? gangs_program_of(view->gangs, replica) : 0,
            .tried = tried.version,
            .failures = tried.failures,
            .why = tried.why,
            .failed = replica->failed,
            .spent = replica->spent,
            .address = m != NULL ? m->part->address : NULL,
            .port = placed ? gangs_port_of(view->gangs, replica, 0, port_index(role)) : 0,
        };
    }
    return list;
}

static void release_drained(struct leader *leader)
{
    const struct roles_view *view = leader_roles_view(leader);
    double now = leader_now(leader);

    leader_roles_hold(leader, service_has_router(leader->of_roles.service->service, now));
    for (int i = 0; i < reconcile_count(view->reconcile); i++) {
        const struct replica *replica = reconcile_at(view->reconcile, i);

        if (replica->state == REPLICA_DRAINING &&
            view->roles->list[replica->role].kind == ROLE_SHARDS &&
            service_is_drained(leader->of_roles.service->service, replica->id, replica->start, now))
            leader_roles_release(leader, replica->id, replica->start);
    }
}

/* ---- actions --------------------------------------------------------------------------------- */

static void set_shard(struct leader *leader, const struct service_action *action)
{
    const struct roles_view *view = leader_roles_view(leader);
    int role = roles_shard(view->roles, action->shard);
    char path[PATH_MAX + 64], name[64];
    json_object *run = roles_program_run(action->text);
    const struct gangs_shard shard = {path, action->version, run, action->program};

    snprintf(path, sizeof(path), "%s/%s", leader->of_roles.service->dir,
             service_text_models(action->shard, name, sizeof(name)));
    if (role >= 0 && gangs_set_shard(view->gangs, role, &shard) != 0)
        log_error("job %u: service: out of memory", leader->options->job);
    json_object_put(run);
}

static void tell_table(struct leader *leader, const char *text)
{
    struct leader_service *own = leader->of_roles.service;
    bool first = own->table == NULL;

    json_object_put(own->table);
    free(own->text);
    own->table = json_text_parse(text, strlen(text), NULL);
    own->text = strdup(text);
    own->revision = service_revision(own->service);
    if (first)
        own->beats = 0; /* another job may wait for that */
    route_waiters_tell(leader);
}

static void written(void *owner, struct service_task *task)
{
    struct leader *leader = owner;
    struct leader_service *own = leader->of_roles.service;

    own->task = NULL;
    if (task->rc != 0 && task->claim == SERVICE_OTHERS) {
        service_taken(leader, task->err.text);
        return;
    }
    service_note_written(leader, task);
    if (!own->running) { /* the service has been handed over meanwhile */
        service_run_in(leader, 0);
        leader_look_at_end(leader, 0);
        return;
    }
    if (task->rc != 0) {
        own->retries = leader_now(leader) + SERVICE_WRITE_PAUSE;
        service_run_in(leader, SERVICE_WRITE_PAUSE);
        leader_look_at_end(leader, 0);
        return;
    }
    if (own->actions.list[own->next].kind == SERVICE_LIST)
        set_shard(leader, &own->actions.list[own->next]);
    if (own->actions.list[own->next].kind == SERVICE_TABLE)
        tell_table(leader, task->text);
    own->next++;
    service_act_go_on(leader);
    leader_look_at_end(leader, 0);
}

static void write_for(struct leader *leader, const struct service_action *action)
{
    struct service_task *task = service_new_task(leader, SERVICE_TASK_WRITE, written);

    if (task != NULL) {
        task->leads = true;
        if (action->kind == SERVICE_RECORD) {
            snprintf(task->name, sizeof(task->name), SERVICE_RECORD_FILE);
            task->text = strdup(action->text);
        } else if (action->kind == SERVICE_TABLE) {
            snprintf(task->name, sizeof(task->name), SERVICE_TABLE_FILE);
            task->text = service_text_table(leader->options->roles, leader->of_roles.service->role,
                                            leader->options->job, task->term, action->text);
        } else {
            service_text_models(action->shard, task->name, sizeof(task->name));
            task->text = action->kind == SERVICE_LIST
                             ? service_text_list(leader->of_roles.service->repository, action)
                             : NULL;
        }
    }
    service_begin(leader, task, &leader->of_roles.service->task);
}

/* A job that has handed its service over tells routers of its own replicas, and writes nothing. */
static void tell_only(struct leader *leader, const struct service_action *action)
{
    const struct leader_service *own = leader->of_roles.service;
    char *text = service_text_table(leader->options->roles, own->role, leader->options->job,
                                    own->term, action->text);

    if (text != NULL)
        tell_table(leader, text);
    free(text);
}

static void size_role(struct leader *leader, int shard, int count)
{
    int role = roles_shard(leader_roles_view(leader)->roles, shard);

    if (role >= 0 && reconcile_target(leader_roles_view(leader)->reconcile, role) != count)
        leader_roles_resize(
            leader, (struct reconcile_fact){.kind = RECONCILE_SCALE, .role = role, .count = count});
    if (role >= 0)
        leader_roles_feed(leader, (struct reconcile_fact){.kind = RECONCILE_OPEN, .role = role});
}

/* Those up to the next one that has to be written. */
void service_act_go_on(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;

    while (own->running && own->task == NULL && own->next < own->actions.count &&
           lease_may_act(leader)) {
        const struct service_action *action = &own->actions.list[own->next];

        if (action->kind == SERVICE_TABLE && own->phase == PHASE_HANDED) {
            tell_only(leader, action);
            own->next++;
            continue;
        }
        switch (action->kind) {
        case SERVICE_RECORD:
        case SERVICE_LIST:
        case SERVICE_TABLE:
        case SERVICE_DROP:
            write_for(leader, action);
            if (own->task == NULL)
                own->retries = leader_now(leader) + SERVICE_WRITE_PAUSE;
            service_run_in(leader, SERVICE_WRITE_PAUSE);
            return;
        case SERVICE_SIZE:
            size_role(leader, action->shard, action->count);
            break;
        case SERVICE_END:
            leader_roles_resize(leader, (struct reconcile_fact){
                                            .kind = RECONCILE_REMOVE,
                                            .replica = action->id,
                                            .text = "its shard is updated",
                                        });
            break;
        case SERVICE_SAY:
            log_info("job %u: service %s: %s", leader->options->job,
                     leader->options->roles->service, action->text);
            break;
        }
        own->next++;
    }
    if (!own->running || own->task != NULL || own->next < own->actions.count)
        return;
    own->running = false;
    service_actions_clear(&own->actions);
    service_run_in(leader, 0);
}

void service_act_run(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_replica *list;
    int count;
    double due;

    if (reconcile_stopping(leader_roles_view(leader)->reconcile))
        service_stop(own->service);
    list = list_replicas(leader, &count);
    if (list == NULL || service_run(own->service, leader_now(leader), list, count, &own->actions,
                                    &own->again) != 0) {
        log_error("job %u: service: out of memory; another leader may go on with it",
                  leader->options->job);
        own->phase = PHASE_LOST;
    }
    free(list);
    own->next = 0;
    own->running = own->phase != PHASE_LOST && own->actions.count > 0;
    release_drained(leader);
    due = service_deadline(own->service, leader_now(leader));
    if (own->again || due > 0)
        service_run_in(leader, own->again ? 0 : due - leader_now(leader));
    service_act_go_on(leader);
}
