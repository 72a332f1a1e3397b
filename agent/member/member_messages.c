/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's messages to a member, and what the member does with each (member_internal.h). */
#include "agent/member/member_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/member/health.h"
#include "agent/member/replicas.h"
#include "agent/member/train_script.h"
#include "agent/port.h"
#include "common/log.h"
#include "common/release_own.h"
#include "lib/json_get.h"
#include "lib/recovery.h"

static bool of_current(struct member *m, json_object *msg)
{
    int64_t gen;

    return m->group != NULL && json_get_int(msg, "gen", 0, INT32_MAX, &gen) &&
           gen == m->group->world->generation;
}

static void output_ready(void *arg)
{
    struct member *m = arg;

    if (m->output.paused)
        member_pause_output(m, false);
}

/* A leader, the first or another one, knows this member: it is told what it cannot know. */
static void welcomed(struct member *m, json_object *msg)
{
    member_join_welcomed(m, msg);
    member_reclaim_welcomed(m);
    member_notice_welcomed(m);
    if (member_seeks(m))
        return; /* it leads an earlier term */
    if (member_replicas_welcomed(m, msg) != 0)
        member_end(m, 1);
}

static void handle_welcome(struct member *m, json_object *msg)
{
    int64_t mask, min, max, restarts;
    const char *cwd = json_get_string(msg, "cwd");
    const char *state = json_get_string(msg, "state_dir"),
               *checkpoint = json_get_string(msg, "checkpoint_dir");
    struct release leader;
    json_object *scale;

    if (m->welcomed) {
        /* From another leader, which knows no more than the first did. */
        welcomed(m, msg);
        return;
    }
    m->job.argv = json_get_strings(msg, "argv", 65536);
    m->job.env = json_get_strings(msg, "env", 65536);
    /* Each role has a command of its own. */
    if (m->job.argv == NULL || (m->job.argv[0] == NULL && json_get_string(msg, "roles") == NULL) ||
        m->job.env == NULL || cwd == NULL || state == NULL || checkpoint == NULL ||
        !json_get_int(msg, "umask", 0, 0777, &mask) ||
        !json_get_int(msg, "min_nodes", 1, SIZES_NODES_MAX, &min) ||
        !json_get_int(msg, "max_nodes", 1, SIZES_NODES_MAX, &max) ||
        !json_get_int(msg, "max_restarts", 0, INT32_MAX, &restarts)) {
        release_read(msg, &leader);
        log_error("%s: the leader sent an incomplete welcome: it is of release %s, this elasticrun "
                  "of %s",
                  m->options->node, leader.name, release_own()->name);
        member_end(m, 1);
        return;
    }
    m->job.cwd = strdup(cwd);
    m->job.state_dir = strdup(state);
    m->job.checkpoint_dir = strdup(checkpoint);
    m->job.umask = (mode_t)mask;
    m->job.min_nodes = (int)min;
    m->job.max_nodes = (int)max;
    m->job.max_restarts = (int)restarts;
    if (json_object_object_get_ex(msg, "scale_config", &scale) &&
        json_object_is_type(scale, json_type_object))
        m->job.scale = json_object_get(scale);
    if (json_get_string(msg, "fail_pattern") != NULL)
        m->job.fail_pattern = pattern_create(json_get_string(msg, "fail_pattern"), NULL);
    m->scripts = train_script_create(msg);
    if (m->options->base)
        m->output.own = output_create(m->loop, json_get_bool(msg, "label", false), output_ready, m);
    if (json_get_bool(msg, "pmix", false) && m->pmix.server == NULL)
        member_pmix_begin(m);
    m->welcomed = true;
    welcomed(m, msg);
}

/* The record for the next leader. */
static void handle_handover(struct member *m, json_object *msg)
{
    int64_t target, faults, counted, steps;

    if (json_get_int(msg, "target", 0, SIZES_NODES_MAX, &target))
        m->handover.target = (int)target;
    if (json_get_int(msg, "faults", 0, INT32_MAX, &faults))
        m->handover.faults = (int)faults;
    if (json_get_int(msg, "counted", 0, RECOVERY_RESTARTS_MAX, &counted))
        m->handover.counted = (int)counted;
    if (json_get_int(msg, "steps", 0, INT64_MAX, &steps))
        m->handover.steps = steps;
}

/* Nobody reads the output of this node any more: the leader has a file. */
static void handle_forward(struct member *m, json_object *msg)
{
    (void)msg;
    if (m->output.own == NULL)
        return;
    m->open_handles++;
    output_destroy(m->output.own, 0, member_piece_gone, m);
    m->output.own = NULL;
    if (m->output.paused)
        member_pause_output(m, false);
}

static void handle_beat(struct member *m, json_object *msg)
{
    json_get_int(msg, "now", 0, INT64_MAX, &m->leader.time);
}

static void handle_reserve(struct member *m, json_object *msg)
{
    int64_t gen, attempt;
    struct error err = {""};
    json_object *answer;

    if (!json_get_int(msg, "gen", 0, INT32_MAX, &gen) ||
        !json_get_int(msg, "attempt", 0, INT32_MAX, &attempt))
        return;
    if (m->reserved.fd >= 0)
        close(m->reserved.fd);
    m->reserved.fd = port_reserve(&m->reserved.port, &err);
    if (m->reserved.fd < 0) {
        log_error("%s", err.text);
        member_end(m, 1);
        return;
    }
    answer = member_generation_message("reserved", (int)gen);
    json_object_object_add(answer, "attempt", json_object_new_int64(attempt));
    json_object_object_add(answer, "port", json_object_new_int(m->reserved.port));
    member_send(m, answer);
}

/* The world of a prepare or start, and this node's index in it. NULL: the message is unusable,
 * which ends this member. */
/* The run of MLflow that workers are to go on with, once there is one. */
static void note_run(struct member *m, json_object *msg)
{
    const char *uri = json_get_string(msg, "mlflow_uri"), *run = json_get_string(msg, "mlflow_run");

    if (uri == NULL || run == NULL || !text_made_of(run, "-_"))
        return;
    free(m->job.mlflow_uri);
    free(m->job.mlflow_run);
    m->job.mlflow_uri = strdup(uri);
    m->job.mlflow_run = strdup(run);
}

static struct world *read_world(struct member *m, json_object *msg, int64_t *index,
                                int64_t *attempt)
{
    struct error err = {""};
    struct world *world = world_from_json(msg, &err);

    note_run(m, msg);
    if (world != NULL && json_get_int(msg, "node_index", 0, world->node_count - 1, index) &&
        json_get_int(msg, "attempt", 0, INT32_MAX, attempt))
        return world;
    log_error("the leader sent an unusable world: %s",
              world == NULL ? err.text : "no place for this node");
    world_destroy(world);
    member_end(m, 1);
    return NULL;
}

void member_drop_next(struct member *m)
{
    struct group *next = m->next;

    m->next = NULL;
    group_destroy(next);
}

void member_say_unprepared(struct member *m, int64_t attempt, const char *reason)
{
    json_object *msg = member_message("unprepared");

    json_object_object_add(msg, "attempt", json_object_new_int64(attempt));
    json_object_object_add(msg, "reason", json_object_new_string(reason));
    member_send(m, msg);
}

/* Start the workers of the next world beside those of the present one. */
static void handle_prepare(struct member *m, json_object *msg)
{
    struct error err = {""};
    char why[160];
    int64_t index, attempt;
    struct world *world;

    if (!m->welcomed || m->ending || (world = read_world(m, msg, &index, &attempt)) == NULL)
        return;
    member_drop_next(m);
    if (m->group != NULL && !group_fits_twice(m->group, why, sizeof(why))) {
        world_destroy(world);
        member_say_unprepared(m, attempt, why);
        return;
    }
    m->next = group_start(m, world, (int)index, (int)attempt, true, &err);
    if (m->next == NULL)
        member_say_unprepared(m, attempt, err.text);
}

static void handle_discard(struct member *m, json_object *msg)
{
    int64_t attempt;

    /* While the agent ends it has killed those workers already, and waits to hear that they are
     * gone. */
    if (m->next != NULL && !m->ending && json_get_int(msg, "attempt", 0, INT32_MAX, &attempt) &&
        attempt == m->next->attempt)
        member_drop_next(m);
}

void member_send_drained(struct member *m, int started)
{
    json_object *msg = member_generation_message("drained", m->generation);

    json_object_object_add(msg, "started", json_object_new_int(started));
    json_object_object_add(msg, "completed",
                           json_object_new_boolean(m->completed == m->generation));
    member_send(m, msg);
}

void member_say_failure(struct member *m, int started, const struct error *err)
{
    json_object *msg = member_generation_message("exit", m->generation);
    json_object *error = json_object_new_object();

    json_object_object_add(error, "message", json_object_new_string(err->text));
    json_object_object_add(msg, "slot", json_object_new_int(0));
    json_object_object_add(msg, "started", json_object_new_int(started));
    json_object_object_add(msg, "code", json_object_new_int(1));
    json_object_object_add(msg, "signal", json_object_new_int(0));
    json_object_object_add(msg, "told", json_object_new_boolean(false));
    json_object_object_add(msg, "error", error);
    member_send(m, msg);
}

/* The leader hears that in the form of a worker's end. */
void member_unstartable(struct member *m, int attempt, const struct error *err)
{
    member_say_failure(m, attempt, err);
    member_send_drained(m, attempt);
}

static void handle_start(struct member *m, json_object *msg)
{
    struct error err = {""};
    struct world *world;
    int64_t index, attempt;

    if (!m->welcomed || m->group != NULL || m->ending ||
        (world = read_world(m, msg, &index, &attempt)) == NULL)
        return;
    m->generation = world->generation;
    if (m->next == NULL && json_get_int(msg, "started", 1, INT32_MAX, &attempt)) {
        world_destroy(world);
        error_set(&err, "the workers that waited at their gates have ended");
        member_unstartable(m, (int)attempt, &err);
        return;
    }
    if (m->next != NULL && json_get_bool(msg, "live", false)) {
        m->group = m->next;
        m->next = NULL;
        group_enter(m->group, world, (int)index, (int)attempt);
        return;
    }
    if (m->next != NULL && m->next->attempt == attempt) {
        world_destroy(world);
        m->group = m->next;
        m->next = NULL;
    } else {
        member_drop_next(m);
        m->group = group_start(m, world, (int)index, (int)attempt,
                               json_get_bool(msg, "gate", false), &err);
    }
    if (m->group == NULL)
        member_unstartable(m, (int)attempt, &err);
    else
        group_begin(m->group, index == 0);
}

static void handle_open(struct member *m, json_object *msg)
{
    (void)msg;
    group_open(m->group);
}

static void handle_ack(struct member *m, json_object *msg)
{
    int64_t bytes;

    if (json_get_int(msg, "bytes", 0, INT64_MAX, &bytes))
        member_output_written(m, (size_t)bytes);
}

static void handle_hold(struct member *m, json_object *msg)
{
    const char *kind = json_get_string(msg, "kind"), *reason = json_get_string(msg, "reason");
    int64_t nodes = 0;
    double deadline = json_get_double(msg, "deadline", 0);
    struct workers_held held = {0};
    json_object *answer;
    struct timespec ts;
    int64_t deadline_ms = 0;

    json_get_int(msg, "nodes", 0, SIZES_NODES_MAX, &nodes);
    if (deadline > 0) {
        clock_gettime(CLOCK_REALTIME, &ts);
        deadline_ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + (int64_t)(deadline * 1000);
    }
    workers_hold(m->group->workers, kind != NULL ? kind : "", reason != NULL ? reason : "",
                 (int)nodes, deadline_ms, &held);
    answer = member_generation_message("held", m->generation);
    json_object_object_add(answer, "attached", json_object_new_int(held.attached));
    json_object_object_add(answer, "training", json_object_new_int(held.training));
    json_object_object_add(answer, "running", json_object_new_int(held.running));
    json_object_object_add(answer, "finished", json_object_new_int(held.finished));
    json_object_object_add(answer, "through", json_object_new_int(held.through));
    json_object_object_add(answer, "step", json_object_new_int64((int64_t)held.step));
    member_send(m, answer);
}

/* Live mode: where the workers go when they are out of their world. */
static void go_on(struct member *m, json_object *next)
{
    struct error err = {""};
    struct world *world;
    int64_t index, attempt;

    if (json_get_bool(next, "leave", false)) {
        workers_dismiss(m->group->workers, json_get_bool(next, "save", false));
        return;
    }
    if ((world = read_world(m, next, &index, &attempt)) == NULL)
        return;
    m->generation = world->generation;
    if (group_move(m->group, world, (int)index, (int)attempt, &err) != 0) {
        world_destroy(world);
        log_error("%s: the next world cannot be entered: %s", m->options->node, err.text);
        member_end(m, 1);
    }
}

static void handle_next(struct member *m, json_object *msg)
{
    json_object *next;

    if (json_object_object_get_ex(msg, "next", &next))
        go_on(m, next);
}

static void handle_run_to(struct member *m, json_object *msg)
{
    int64_t step;

    if (!json_get_int(msg, "step", 0, INT64_MAX, &step))
        return;
    handle_next(m, msg);
    if (m->group != NULL)
        workers_run_to(m->group->workers, (uint64_t)step);
}

/* Live mode: the workers' world is torn. Where they go comes with `next`. */
static void handle_torn(struct member *m, json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");

    workers_tear(m->group->workers, reason != NULL ? reason : "");
}

/* Asked for before the workers are started again because they make no steps. */
static void handle_stacks(struct member *m, json_object *msg)
{
    (void)msg;
    log_debug("%s: %d of its workers show their stacks", m->options->node,
              workers_show_stacks(m->group->workers));
}

/* Workers of this node are slower than the others: what may be the cause? */
static void handle_health(struct member *m, json_object *msg)
{
    struct node_health now;
    char why[128];
    json_object *answer;
    const char *cause;

    (void)msg;
    if (m->group == NULL || !m->group->health_known)
        return;
    health_read("", &now);
    cause = node_health_cause(&m->group->health, &now, why, sizeof(why));
    answer = member_message("health");
    json_object_object_add(answer, "cause", json_object_new_string(cause));
    json_object_object_add(answer, "why", json_object_new_string(why));
    member_send(m, answer);
}

static void handle_stop(struct member *m, json_object *msg)
{
    const char *kind = json_get_string(msg, "kind"), *reason = json_get_string(msg, "reason");
    double grace = json_get_double(msg, "grace", 0);
    int64_t number;

    if (!json_get_int(msg, "signal", 1, 64, &number))
        return;
    snprintf(m->stop.kind, sizeof(m->stop.kind), "%s", kind != NULL ? kind : "");
    snprintf(m->stop.reason, sizeof(m->stop.reason), "%s", reason != NULL ? reason : "");
    if (!json_get_bool(msg, "notice", false))
        workers_stop(m->group->workers, (int)number, grace);
    else if (workers_notice(m->group->workers, (int)number, grace) > 0)
        member_pmix_alert(m, m->stop.kind, m->stop.reason, grace);
}

static void handle_finish(struct member *m, json_object *msg)
{
    int64_t code;

    m->orderly = json_get_bool(msg, "well", false);
    member_end(m, json_get_int(msg, "code", 0, 255, &code) ? (int)code : 1);
}

static void handle_release(struct member *m, json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");

    log_debug("%s: released: %s", m->options->node, reason != NULL ? reason : "");
    m->orderly = true;
    member_end(m, 0);
}

void member_handle(struct member *m, json_object *msg)
{
    const char *type = json_get_string(msg, "t");
    static const struct {
        const char *type;
        bool current; /* only for the running generation */
        void (*handle)(struct member *m, json_object *msg);
    } table[] = {
        {"welcome", false, handle_welcome},
        {"reserve", false, handle_reserve},
        {"prepare", false, handle_prepare},
        {"discard", false, handle_discard},
        {"start", false, handle_start},
        {"open", true, handle_open},
        {"hold", true, handle_hold},
        {"run_to", true, handle_run_to},
        {"stop", true, handle_stop},
        {"release", false, handle_release},
        {"finish", false, handle_finish},
        {"ack", false, handle_ack},
        {"torn", true, handle_torn},
        {"next", true, handle_next},
        {"stacks", true, handle_stacks},
        {"health", false, handle_health},
        {"successors", false, member_join_successors},
        {"redirect", false, member_join_redirect},
        {"heritage", false, handle_handover},
        {"beat", false, handle_beat},
        {"forward", false, handle_forward},
    };

    if (type == NULL || member_job_control_relay(m, type, msg) ||
        (m->replicas != NULL && replicas_on_message(m->replicas, type, msg)) ||
        (m->pmix.server != NULL && pmix_on_message(m->pmix.server, type, msg)))
        return;
    if (strcmp(type, "refuse") == 0) {
        log_info("%s: the leader refuses this node: %s", m->options->node,
                 json_get_string(msg, "reason"));
        member_end(m, 0);
        return;
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(type, table[i].type) == 0 && (!table[i].current || of_current(m, msg)))
            table[i].handle(m, msg);
}

void member_on_message(struct link *link, json_object *msg, void *arg)
{
    struct member *m = arg;

    (void)link;
    m->leader.last_heard = member_now(m);
    /* Workers wait for the store, so its messages never wait for PMIx. */
    if (m->store != NULL && store_server_on_message(m->store, msg))
        return;
    if (!train_script_waits(m, json_get_string(msg, "t"), msg) &&
        !member_pmix_waits(m, json_get_string(msg, "t"), msg))
        member_handle(m, msg);
}
