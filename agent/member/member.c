/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent half of elasticrun (member.h).
 *
 * A member does what the leader says and decides nothing by itself, but for two things: when the leader is gone it stops its workers
 * and ends (an extension's nodes go back to Slurm), and when Slurm wants the node it says so at once. */
#include "agent/member/member_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/port.h"
#include "agent/run_dir.h"
#include "agent/supervise.h"
#include "common/log.h"
#include "common/slurm_client.h"
#include "common/slurm_queue.h"
#include "lib/json_get.h"
#include "lib/recovery.h"

#define FLUSH_MS 2000 /* for the last output before exit */
/* Times heartbeat_timeout: a leader that nobody has heard for so long may be followed by another. It knows earlier that it has not been heard,
 * and does nothing from then on (lib/succession.h). */

double member_now(const struct member *m)
{
    return (double)uv_now(m->loop) / 1000.0;
}

json_object *member_message(const char *type)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    return msg;
}

json_object *member_generation_message(const char *type, int generation)
{
    json_object *msg = member_message(type);

    json_object_object_add(msg, "gen", json_object_new_int(generation));
    return msg;
}

void member_send(struct member *m, json_object *msg)
{
    if (m->link != NULL)
        link_send(m->link, msg);
    else
        json_object_put(msg);
}

/* ---- messages from the leader ------------------------------------------------------------------------------------------ */

static bool of_current(struct member *m, json_object *msg)
{
    int64_t gen;

    return m->group != NULL && json_get_int(msg, "gen", 0, INT32_MAX, &gen) &&
           gen == m->group->world->generation;
}

static void output_ready(void *arg)
{
    struct member *m = arg;

    if (m->output_paused)
        member_pause_output(m, false);
}

static void handle_welcome(struct member *m, json_object *msg)
{
    int64_t mask, min, max, restarts;
    const char *cwd = json_get_string(msg, "cwd");
    const char *state = json_get_string(msg, "state_dir"),
               *checkpoint = json_get_string(msg, "checkpoint_dir");
    json_object *scale;

    if (m->welcomed) {
        member_join_welcomed(m,
                             msg); /* of another leader, which knows no more than the first did */
        return;
    }
    m->argv = json_get_strings(msg, "argv", 65536);
    m->user_env = json_get_strings(msg, "env", 65536);
    if (m->argv == NULL || m->argv[0] == NULL || m->user_env == NULL || cwd == NULL ||
        state == NULL || checkpoint == NULL || !json_get_int(msg, "umask", 0, 0777, &mask) ||
        !json_get_int(msg, "min_nodes", 1, SIZES_NODES_MAX, &min) ||
        !json_get_int(msg, "max_nodes", 1, SIZES_NODES_MAX, &max) ||
        !json_get_int(msg, "max_restarts", 0, INT32_MAX, &restarts)) {
        log_error(
            "the leader sent an incomplete welcome; is it of the same version as this elasticrun?");
        member_end(m, 1);
        return;
    }
    m->cwd = strdup(cwd);
    m->state_dir = strdup(state);
    m->checkpoint_dir = strdup(checkpoint);
    m->umask = (mode_t)mask;
    m->min_nodes = (int)min;
    m->max_nodes = (int)max;
    m->max_restarts = (int)restarts;
    if (json_object_object_get_ex(msg, "scale_config", &scale) &&
        json_object_is_type(scale, json_type_object))
        m->scale = json_object_get(scale);
    if (json_get_string(msg, "fail_pattern") != NULL)
        m->fail_pattern = pattern_create(json_get_string(msg, "fail_pattern"), NULL);
    if (m->options->base)
        m->output = output_create(m->loop, json_get_bool(msg, "label", false), output_ready, m);
    if (json_get_bool(msg, "pmix", false) && m->pmix == NULL)
        member_pmix_begin(m);
    m->welcomed = true;
    member_join_welcomed(m, msg);
    member_reclaim_welcomed(m);
}

/* What the next leader is to know. */
static void handle_handover(struct member *m, json_object *msg)
{
    int64_t target, faults, counted;

    if (json_get_int(msg, "target", 0, SIZES_NODES_MAX, &target))
        m->handover.target = (int)target;
    if (json_get_int(msg, "faults", 0, INT32_MAX, &faults))
        m->handover.faults = (int)faults;
    if (json_get_int(msg, "counted", 0, RECOVERY_RESTARTS_MAX, &counted))
        m->handover.counted = (int)counted;
}

static void output_gone(void *arg)
{
    member_piece_gone(arg);
}

/* Nobody reads what this node writes: the leader has a file. */
static void handle_forward(struct member *m, json_object *msg)
{
    (void)msg;
    if (m->output == NULL)
        return;
    m->open_handles++;
    output_destroy(m->output, 0, output_gone, m);
    m->output = NULL;
    if (m->output_paused)
        member_pause_output(m, false);
}

static void handle_beat(struct member *m, json_object *msg)
{
    json_get_int(msg, "now", 0, INT64_MAX, &m->leader_time);
}

static void handle_reserve(struct member *m, json_object *msg)
{
    int64_t gen, attempt;
    struct error err = {""};
    json_object *answer;

    if (!json_get_int(msg, "gen", 0, INT32_MAX, &gen) ||
        !json_get_int(msg, "attempt", 0, INT32_MAX, &attempt))
        return;
    if (m->reserved_fd >= 0)
        close(m->reserved_fd);
    m->reserved_fd = port_reserve(&m->reserved_port, &err);
    if (m->reserved_fd < 0) {
        log_error("%s", err.text);
        member_end(m, 1);
        return;
    }
    answer = member_generation_message("reserved", (int)gen);
    json_object_object_add(answer, "attempt", json_object_new_int64(attempt));
    json_object_object_add(answer, "port", json_object_new_int(m->reserved_port));
    member_send(m, answer);
}

/* The world of a prepare or start, and this node's index in it. NULL: it cannot be understood, which ends this member. */
static struct world *read_world(struct member *m, json_object *msg, int64_t *index,
                                int64_t *attempt)
{
    struct error err = {""};
    struct world *world = world_from_json(msg, &err);

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

static void say_unprepared(struct member *m, int64_t attempt, const char *reason)
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
        say_unprepared(m, attempt, why);
        return;
    }
    m->next = group_start(m, world, (int)index, (int)attempt, true, &err);
    if (m->next == NULL)
        say_unprepared(m, attempt, err.text);
}

static void handle_discard(struct member *m, json_object *msg)
{
    int64_t attempt;

    /* While it ends they have been killed already, and it waits to hear that they are gone. */
    if (m->next != NULL && !m->ending && json_get_int(msg, "attempt", 0, INT32_MAX, &attempt) &&
        attempt == m->next->attempt)
        member_drop_next(m);
}

void member_send_drained(struct member *m, int started)
{
    json_object *msg = member_generation_message("drained", m->generation);

    json_object_object_add(msg, "started", json_object_new_int(started));
    member_send(m, msg);
}

/* The world could not even be started here: what the leader must know, in the words of a worker's end. */
static void report_unstartable(struct member *m, int attempt, const struct error *err)
{
    json_object *msg = member_generation_message("exit", m->generation);
    json_object *error = json_object_new_object();

    json_object_object_add(error, "message", json_object_new_string(err->text));
    json_object_object_add(msg, "slot", json_object_new_int(0));
    json_object_object_add(msg, "started", json_object_new_int(attempt));
    json_object_object_add(msg, "code", json_object_new_int(1));
    json_object_object_add(msg, "signal", json_object_new_int(0));
    json_object_object_add(msg, "told", json_object_new_boolean(false));
    json_object_object_add(msg, "error", error);
    member_send(m, msg);
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
        report_unstartable(m, (int)attempt, &err);
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
        report_unstartable(m, (int)attempt, &err);
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
    workers_hold(m->group->workers, kind ? kind : "", reason ? reason : "", (int)nodes, deadline_ms,
                 &held);
    answer = member_generation_message("held", m->generation);
    json_object_object_add(answer, "attached", json_object_new_int(held.attached));
    json_object_object_add(answer, "training", json_object_new_int(held.training));
    json_object_object_add(answer, "running", json_object_new_int(held.running));
    json_object_object_add(answer, "finished", json_object_new_int(held.finished));
    json_object_object_add(answer, "through", json_object_new_int(held.through));
    json_object_object_add(answer, "step", json_object_new_int64((int64_t)held.step));
    member_send(m, answer);
}

/* Live mode: what the workers do when they are out of their world. */
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

/* Live mode: their world is, and what they do instead comes with `next`. */
static void handle_torn(struct member *m, json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");

    workers_tear(m->group->workers, reason != NULL ? reason : "");
}

/* Before they are started anew, because they make no steps. */
static void handle_stacks(struct member *m, json_object *msg)
{
    (void)msg;
    log_debug("%s: %d of its workers show their stacks", m->options->node,
              workers_show_stacks(m->group->workers));
}

static void handle_stop(struct member *m, json_object *msg)
{
    const char *kind = json_get_string(msg, "kind"), *reason = json_get_string(msg, "reason");
    double grace = json_get_double(msg, "grace", 0);
    int64_t number;

    if (!json_get_int(msg, "signal", 1, 64, &number))
        return;
    snprintf(m->stop_kind, sizeof(m->stop_kind), "%s", kind != NULL ? kind : "");
    snprintf(m->stop_reason, sizeof(m->stop_reason), "%s", reason != NULL ? reason : "");
    if (!json_get_bool(msg, "notice", false))
        workers_stop(m->group->workers, (int)number, grace);
    else if (workers_notice(m->group->workers, (int)number, grace) > 0)
        member_pmix_alert(m, m->stop_kind, m->stop_reason, grace);
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

    log_debug("%s: released: %s", m->options->node, reason ? reason : "");
    m->orderly = true;
    member_end(m, 0);
}

void member_handle(struct member *m, json_object *msg)
{
    const char *type = json_get_string(msg, "t");
    static const struct {
        const char *type;
        bool current; /* only for the generation that runs */
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
        {"successors", false, member_join_successors},
        {"redirect", false, member_join_redirect},
        {"heritage", false, handle_handover},
        {"beat", false, handle_beat},
        {"forward", false, handle_forward},
    };

    if (type == NULL || member_control_relay(m, type, msg) ||
        (m->pmix != NULL && pmix_on_message(m->pmix, type, msg)))
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
    m->last_heard = member_now(m);
    /* Workers wait for it, whatever those that are being started wait for. */
    if (m->store != NULL && store_server_on_message(m->store, msg))
        return;
    if (!member_pmix_waits(m, json_get_string(msg, "t"), msg))
        member_handle(m, msg);
}

/* ---- beats, and leaving ------------------------------------------------------------------------------------------------ */

/* Without its slurmstepd srun hears nothing of this node any more, neither what its workers write nor that they have ended. */
static void say_unwatched(struct member *m)
{
    bool spoiled;
    json_object *msg;

    if (m->unwatched_said || m->options->agent_handover == NULL ||
        !supervise_lost(m->options->agent_handover, &spoiled))
        return;
    log_info("%s: %s: it goes on without", m->options->node,
             spoiled ? "what watches the agent for Slurm was killed" : "its slurmstepd has ended");
    msg = member_message("unwatched");
    json_object_object_add(msg, "spoiled", json_object_new_boolean(spoiled));
    member_send(m, msg);
    m->unwatched_said = true;
}

static void on_beat(uv_timer_t *timer)
{
    struct member *m = timer->data;
    double now = member_now(m);
    bool late = m->last_beat > 0 && now - m->last_beat > 2 * m->beat_interval;
    json_object *msg;

    m->last_beat = now;
    if (m->group != NULL && late)
        workers_forgive_stopped(m->group->workers);
    else if (m->group != NULL)
        workers_end_stopped(m->group->workers, m->heartbeat);
    if (m->link == NULL || m->ending || member_seeks(m))
        return;
    if (late)
        m->last_heard =
            now; /* we have been asleep, and what the leader has sent is still to be read */
    if (!m->welcomed) {
        /* Its node was lost before it could read the join: nothing will ever come, not even an end. */
        if (m->last_heard > 0 && (now - m->last_heard) * 1000 > m->options->connect_timeout_ms)
            link_close(m->link, "the leader does not answer");
        return;
    }
    if (now - m->last_heard > m->heartbeat * MEMBER_PATIENCE) {
        link_close(m->link, "the leader is silent");
        return;
    }
    say_unwatched(m);
    msg = member_generation_message("beat", m->generation);
    json_object_object_add(msg, "seen", json_object_new_int64(m->leader_time));
    json_object_object_add(
        msg, "step",
        json_object_new_int64(m->group != NULL ? (int64_t)workers_step(m->group->workers) : 0));
    if (m->group != NULL) {
        group_add_progress(m->group, msg);
        json_object_object_add(msg, "slowest",
                               json_object_new_int64(workers_slowest(m->group->workers)));
        json_object_object_add(msg, "asks",
                               json_object_new_boolean(workers_ask(m->group->workers)));
    }
    member_send(m, msg);
}

void member_leave(struct member *m, const char *reason)
{
    json_object *msg;

    if (m->leaving || m->ending)
        return;
    m->leaving = true;
    if (!m->welcomed && !m->options->base) {
        /* Not part of anything yet: free the node now. */
        member_end(m, 0);
        return;
    }
    if ((m->last_heard == 0 && m->options->nodeid != 0) || member_seeks(m)) {
        /* No leader, and whoever may become it has been told to end as we have. */
        member_end(m, m->options->base ? 128 + SIGTERM : 0);
        return;
    }
    msg = member_message("leaving");
    json_object_object_add(msg, "reason", json_object_new_string(reason));
    member_send(m, msg);
}

/* ---- end --------------------------------------------------------------------------------------------------------------- */

void member_piece_gone(struct member *m)
{
    if (--m->open_handles > 0 || !m->ending || m->finished)
        return;
    m->finished = true;
    run_dir_leave(m->run_dir, m->orderly);
    m->done(m->exit_code, m->arg);
}

static void beat_closed(uv_handle_t *handle)
{
    member_piece_gone(handle->data);
}

/* ---- the store ----------------------------------------------------------------------------------------------------------- */

static int send_store(json_object *msg, void *arg)
{
    struct member *m = arg;

    if (m->link != NULL)
        return link_send(m->link, msg);
    json_object_put(msg);
    return -1;
}

static void store_gone(void *arg)
{
    member_piece_gone(arg);
}

/* Most jobs never use it: without it this node still does all else. */
static void open_store(struct member *m)
{
    struct error err = {""};

    m->store = store_server_create(m->loop, m->run_dir, m->options->slots, send_store, m, &err);
    if (m->store != NULL)
        m->open_handles++;
    else
        log_error("%s: no store for torch.distributed: %s", m->options->node, err.text);
}

static void close_store(struct member *m)
{
    if (m->store != NULL)
        store_server_destroy(m->store, store_gone, m);
    m->store = NULL;
}

/* ---- end, and the beginning ------------------------------------------------------------------------------------------------ */

/* First the workers, then the output, then the link: what workers wrote last is still handed on. */
void member_end(struct member *m, int code)
{
    if (!m->ending)
        m->exit_code = code;
    m->ending = true;
    if (m->next != NULL)
        group_kill(m->next);
    if (m->group != NULL)
        workers_stop(m->group->workers, SIGTERM, MEMBER_FATAL_GRACE);
    if (m->next != NULL || m->group != NULL)
        return; /* member_drained comes back here */
    if (m->finished || uv_is_closing((uv_handle_t *)&m->beat))
        return;
    uv_close((uv_handle_t *)&m->beat, beat_closed);
    member_join_end(m);
    member_pmix_end(m);
    close_store(m);
    member_reclaim_end(m);
    if (m->output != NULL) {
        m->open_handles++;
        output_destroy(m->output, FLUSH_MS, output_gone, m);
        m->output = NULL;
    }
    if (m->link != NULL)
        link_close(m->link, "done");
}

void member_drained(struct member *m)
{
    if (m->ending)
        member_end(m, m->exit_code);
}

struct member *member_create(uv_loop_t *loop, const struct member_options *options,
                             void (*done)(int code, void *arg), void *arg, struct error *err)
{
    struct member *m = calloc(1, sizeof(*m));
    bool again = options->agent_handover != NULL && options->agent_handover->starts > 1;

    if (m == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    m->loop = loop;
    m->options = options;
    m->done = done;
    m->arg = arg;
    m->reserved_fd = -1;
    m->heartbeat = options->conf->heartbeat_timeout;
    m->run_dir = run_dir_make(options->conf, options->job, options->restarts, options->node, err);
    if (m->run_dir == NULL ||
        asprintf(&m->incarnation, "%u.%u", options->base_job, options->base_restarts) < 0) {
        m->incarnation = NULL;
        member_destroy(m);
        return NULL;
    }
    if (!again && member_join(m, err) != 0) {
        run_dir_leave(m->run_dir, true);
        member_destroy(m);
        return NULL;
    }
    uv_timer_init(loop, &m->beat);
    m->beat.data = m;
    /* That of the leader's own process only says how far its workers are. */
    m->beat_interval = m->heartbeat / (options->base && options->nodeid == 0 && !again ? 2 : 4);
    uv_timer_start(&m->beat, on_beat, (uint64_t)(m->beat_interval * 1000),
                   (uint64_t)(m->beat_interval * 1000));
    m->open_handles++; /* besides the link */
    member_join_begin(m);
    if (again)
        member_join_again(m);
    open_store(m);
    member_reclaim_begin(m);
    /* It takes longer to come up than this node to join. An extension's leader says whether there is one. */
    if (options->base && options->pmix)
        member_pmix_begin(m);
    return m;
}

void member_command(const struct member *m, struct member_command *command)
{
    *command = (struct member_command){
        .argv = m->argv,
        .env = m->user_env,
        .cwd = m->cwd,
        .umask = m->umask,
        .state_dir = m->state_dir,
        .checkpoint_dir = m->checkpoint_dir,
        .address = m->own_address,
        .slurm_user = m->slurm_user,
        .handover = m->handover,
    };
}

void member_leader(const struct member *m, const char **address, int *port, int *term)
{
    *address = m->leader_address;
    *port = m->leader_port;
    *term = m->term;
}

void member_destroy(struct member *m)
{
    if (m == NULL)
        return;
    if (m->reserved_fd >= 0)
        close(m->reserved_fd);
    strings_free(m->argv);
    strings_free(m->user_env);
    json_object_put(m->scale);
    member_join_free(m);
    pattern_destroy(m->fail_pattern);
    free(m->cwd);
    free(m->state_dir);
    free(m->checkpoint_dir);
    free(m->incarnation);
    free(m->run_dir);
    free(m);
}
