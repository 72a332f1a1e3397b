/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of one generation on this node, and the leader's news of them (member_internal.h). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/member/member_internal.h"
#include "agent/member/health.h"
#include "agent/member/replicas.h"
#include "agent/member/tail.h"
#include "agent/member/train_script.h"
#include "common/release_own.h"
#include "common/memory.h"
#include "common/log.h"
#include "common/tcp_sockets.h"

#define FILES_BYTES 48  /* of the beginning of the names of workers' files */
#define LOOK_MS     5   /* for rank 0 to listen */
#define LISTEN_MS   300 /* rank 0 may listen much later, or never */
/* For rank 0 to come to its gate; other ranks may need what rank 0 does before. */
#define GATE_MS 20000
/* Added to the longest time in which the leader notices a loss: for the word of it to come. */
#define PATIENCE_MS  1000
#define MEMORY_SPARE (UINT64_C(256) << 20) /* left free on a node, beside a second set of workers */

struct rank_tail {
    int rank;
    struct tail last;
    bool failed; /* ended because of a line that it has written, which stays the last one */
    struct pattern_stream streams[2];
};

/* ---- output ---------------------------------------------------------------------------------- */

static struct rank_tail *tail_find(struct group *group, int rank)
{
    for (int i = 0; i < group->tail_count; i++)
        if (group->tails[i].rank == rank)
            return &group->tails[i];
    return NULL;
}

static void remember(struct group *group, int rank, const char *data, size_t len)
{
    struct rank_tail *tail = tail_find(group, rank);

    if (tail != NULL && !tail->failed)
        tail_feed(&tail->last, data, len);
}

/* One line is enough, whatever the worker does after it. */
static void look_for_pattern(struct group *group, int rank, int fd, const char *data, size_t len)
{
    struct rank_tail *tail;
    const char *line;

    if (group->member->job.fail_pattern == NULL)
        return;
    tail = tail_find(group, rank);
    if (tail == NULL || tail->failed)
        return;
    line = pattern_feed(group->member->job.fail_pattern, &tail->streams[fd - 1], data, len);
    if (line == NULL)
        return;
    tail->failed = true;
    tail_set(&tail->last, line);
    log_info("rank %d: ended because of this line (--fail-pattern): %s", rank,
             tail_line(&tail->last));
    workers_signal(group->workers, rank, SIGKILL, true);
}

static void on_output(int rank, int fd, const char *data, size_t len, void *arg)
{
    struct group *group = arg;

    look_for_pattern(group, rank, fd, data, len);
    if (fd == 2)
        remember(group, rank, data, len);
    member_output(group->member, NULL, rank, fd, data, len);
}

bool group_log(struct group *group, int rank, int fd, const char *text, size_t len)
{
    if (group->member->output.paused)
        return false;
    on_output(rank, fd, text, len, group);
    return true;
}

/* ---- workers --------------------------------------------------------------------------------- */

static json_object *attempt_message(const struct group *group, const char *type)
{
    json_object *msg = member_generation_message(type, group->world->generation);

    json_object_object_add(msg, "attempt", json_object_new_int(group->attempt));
    return msg;
}

/* While the gate is closed, the leader hears only whether this group waits there. */
static void on_ready(void *arg)
{
    struct group *group = arg;

    group->ready = true;
    if (!group->gated)
        member_send(group->member, attempt_message(group, "ready"));
}

/* A worker that has just ended is told of as an end. It does not make the others unable to go
 * on. */
static void say_live(const struct group *group, json_object *msg)
{
    json_object_object_add(msg, "live", json_object_new_boolean(workers_said_live(group->workers)));
    json_object_object_add(msg, "shape",
                           json_object_new_int64((int64_t)workers_signature(group->workers)));
}

static void on_parked(void *arg)
{
    struct group *group = arg;
    json_object *msg = attempt_message(group, "parked");

    say_live(group, msg);
    member_send(group->member, msg);
}

/* On a node with GPUs no worker may use the GPU early: only a worker that says that it has not is
 * let in. */
static bool passed_gate(const struct group *group)
{
    bool gpus = getenv("SLURM_STEP_GPUS") != NULL || getenv("SLURM_JOB_GPUS") != NULL;

    return workers_gate(group->workers) >= (gpus ? EVENT_PASSED_INIT : EVENT_PASSED_LOAD);
}

static void on_begun(void *arg)
{
    struct group *group = arg;

    member_send(group->member, member_generation_message("begun", group->world->generation));
}

static void on_stepping(void *arg)
{
    struct group *group = arg;
    json_object *msg = member_generation_message("stepping", group->world->generation);

    group->stateful = true;
    json_object_object_add(msg, "aware", json_object_new_boolean(workers_step(group->workers) > 0));
    json_object_object_add(msg, "gate", json_object_new_boolean(passed_gate(group)));
    if (workers_unheard(group->workers) > 0)
        json_object_object_add(msg, "unheard",
                               json_object_new_int(workers_unheard(group->workers)));
    say_live(group, msg);
    member_send(group->member, msg);
}

void group_add_progress(struct group *group, json_object *msg)
{
    struct event_progress progress;
    json_object *said;

    if (!workers_progress(group->workers, &progress) || progress.number == group->progress)
        return;
    group->progress = progress.number;
    said = json_object_new_object();
    json_object_object_add(said, "done", json_object_new_int64(progress.done));
    json_object_object_add(said, "total", json_object_new_int64(progress.total));
    json_object_object_add(said, "unit", json_object_new_string(progress.unit));
    json_object_object_add(msg, "progress", said);
}

/* Two numbers for each worker of the present world: most programs report none. */
void group_add_own_times(struct group *group, json_object *msg)
{
    json_object *own = json_object_new_array();
    bool any = false;

    for (int i = 0; i < group->tail_count; i++) {
        struct event_own said = workers_own(group->workers, i);

        any = any || said.steps > 0;
        json_object_array_add(own, json_object_new_int64((int64_t)said.steps));
        json_object_array_add(own, json_object_new_int64((int64_t)said.microseconds));
    }
    if (!any) {
        json_object_put(own);
        return;
    }
    json_object_object_add(msg, "own", own);
    /* Not earlier: nobody is to wait for it while a world begins. */
    if (!group->health_known)
        health_read("", &group->health);
    group->health_known = true;
}

static const char *why_ended(struct group *group, const struct worker_exit *ended)
{
    const struct rank_tail *tail = tail_find(group, ended->rank);

    return tail != NULL ? tail_why(&tail->last, NULL, ended->signal) : NULL;
}

static void send_exit(struct group *group, const struct worker_exit *ended)
{
    struct member *m = group->member;
    json_object *msg = member_generation_message("exit", group->world->generation);
    json_object *error = json_object_get(ended->error);
    const char *why = why_ended(group, ended);

    /* The state of live workers is also on other nodes. */
    group->torn = group->torn || (!workers_live(group->workers) &&
                                  (ended->signal == SIGKILL ||
                                   (!ended->told && (ended->code != 0 || ended->signal != 0))));
    if (error == NULL && (ended->code != 0 || ended->signal != 0) && why != NULL) {
        error = json_object_new_object();
        json_object_object_add(error, "message", json_object_new_string(why));
    }
    /* The slot, because the rank may be another one in the leader's world, which may change while
     * this message is on its way. */
    json_object_object_add(msg, "slot", json_object_new_int(ended->local_rank));
    json_object_object_add(msg, "started", json_object_new_int(group->started));
    json_object_object_add(msg, "code", json_object_new_int(ended->code));
    json_object_object_add(msg, "signal", json_object_new_int(ended->signal));
    json_object_object_add(msg, "told", json_object_new_boolean(ended->told));
    json_object_object_add(msg, "early", json_object_new_boolean(ended->early));
    json_object_object_add(msg, "stolen", json_object_new_boolean(group->stolen));
    json_object_object_add(msg, "error", error);
    member_send(m, msg);
    member_output_ended(m, ended->rank);
}

/* Before the gate the end of a worker costs nothing: the same will be tried again when the world
 * begins, and then it counts. */
static void on_exited(const struct worker_exit *ended, void *arg)
{
    struct group *group = arg;
    json_object *msg;

    if (!group->gated) {
        group->completed += ended->code == 0 && ended->signal == 0 && !ended->told;
        send_exit(group, ended);
        return;
    }
    if (group->member->ending)
        return; /* all are being killed, and waited for */
    msg = attempt_message(group, "unprepared");
    json_object_object_add(msg, "reason", json_object_new_string("a worker ended before its gate"));
    member_send(group->member, msg);
    group->member->next = NULL;
    group_destroy(group);
}

static void on_drained(void *arg)
{
    struct group *group = arg;
    struct member *m = group->member;

    if (m->group == group) {
        /* The worker ended before it was seen to listen: the others still wait for that. */
        if (uv_is_active((uv_handle_t *)&group->look))
            member_send(m, attempt_message(group, "listening"));
        m->group = NULL;
        if (group->completed == group->tail_count)
            m->completed = group->world->generation;
        if (!train_script_after(m, group) && (!group->torn || !flush_snapshot(m, group->started)))
            member_send_drained(m, group->started);
    } else {
        m->next = NULL;
    }
    group_destroy(group);
    member_drained(m);
}

static const struct workers_handlers worker_handlers = {
    .ready = on_ready,
    .parked = on_parked,
    .begun = on_begun,
    .stepping = on_stepping,
    .exited = on_exited,
    .drained = on_drained,
    .output = on_output,
};

/* ---- life ------------------------------------------------------------------------------------ */

static void on_look_closed(uv_handle_t *look)
{
    free(look->data);
}

void group_destroy(struct group *group)
{
    if (group == NULL)
        return;
    workers_destroy(group->workers);
    member_pmix_gone(group->member, group->started);
    if (group->reserved_fd >= 0)
        close(group->reserved_fd);
    free(group->tails);
    world_destroy(group->world);
    uv_close((uv_handle_t *)&group->look, on_look_closed);
}

void group_kill(struct group *group)
{
    workers_stop(group->workers, SIGKILL, 0);
}

/* scale_config for this world, as its workers get it. */
static const char *scale_text(const struct group *group)
{
    char key[16];
    json_object *value;

    snprintf(key, sizeof(key), "%d", world_size(group->world));
    if (group->member->job.scale != NULL &&
        json_object_object_get_ex(group->member->job.scale, key, &value))
        return json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
    return "{}";
}

/* A group that was given up may still be dying: the next group needs other file names. */
static void name_files(char *files, const struct world *world, int attempt)
{
    snprintf(files, FILES_BYTES, "worker-%d.%d", world->generation, attempt);
}

void group_describe(struct member *m, struct workers_options *options)
{
    *options = (struct workers_options){
        .program = m->options->program,
        .argv = m->job.argv,
        .cwd = m->job.cwd,
        .umask = m->job.umask,
        .user_env = m->job.env,
        .own_env = environ,
        .patience_ms = (int)(MEMBER_PATIENCE * m->heartbeat * 1000) + PATIENCE_MS,
        .place =
            {
                .job_id = m->job.id,
                .incarnation = m->incarnation,
                .step_id = strings_value(m->job.env, "SLURM_STEP_ID"),
                .min_nodes = m->job.min_nodes,
                .max_nodes = m->job.max_nodes,
                .max_restarts = m->job.max_restarts,
                .run_dir = m->run_dir,
                .state_dir = m->job.state_dir,
                .checkpoint_dir = m->job.checkpoint_dir,
                .mlflow_uri = m->job.mlflow_uri,
                .mlflow_run = m->job.mlflow_run,
                .lib = m->options->lib(),
                .release = release_own()->name,
                .python = m->options->python,
            },
    };
}

static int start_workers(struct group *group, int index, struct error *err)
{
    struct member *m = group->member;
    char files[FILES_BYTES];
    int slots = group->world->nodes[index].slots;
    char **cpus = m->options->bind ? workers_cpus(slots, environ) : NULL;
    char ***added;
    struct workers_options options;
    int rc = 0;

    name_files(files, group->world, group->attempt);
    group_describe(m, &options);
    if (m->replicas != NULL)
        rc = replicas_describe_world(m->replicas, m->options->base, &options, err);
    if (rc != 0) {
        strings_free(cpus);
        return -1;
    }
    added = member_pmix_environment(m, group->attempt);
    options.cpus = cpus;
    options.added = (char *const *const *)added;
    options.gated = group->gated;
    options.files = files;
    options.attempt = options.place.attempt = group->attempt;
    options.place.node_index = index;
    options.place.scale_config = scale_text(group);
    if (m->job.scale != NULL)
        options.place.scale_configs = json_object_to_json_string_ext(m->job.scale,
                                                                     JSON_C_TO_STRING_PLAIN);
    if (m->store != NULL)
        options.place.store = store_server_path(m->store);
    group->workers = workers_start(m->loop, group->world, &options, &worker_handlers, group, err);
    if (group->workers != NULL && m->output.paused)
        workers_pause_output(group->workers, true);
    strings_free(cpus);
    member_pmix_free(added);
    return group->workers != NULL ? 0 : -1;
}

struct group *group_start(struct member *m, struct world *world, int index, int attempt, bool gated,
                          struct error *err)
{
    struct group *group = calloc(1, sizeof(*group));
    int slots = world->nodes[index].slots, first = world_first_rank(world, index);

    if (group == NULL) {
        world_destroy(world);
        error_set(err, "out of memory");
        return NULL;
    }
    uv_timer_init(m->loop, &group->look);
    group->look.data = group;
    group->member = m;
    group->world = world;
    group->attempt = group->started = attempt;
    group->gated = gated;
    group->reserved_fd = m->reserved.fd;
    m->reserved.fd = -1;
    group->tails = calloc((size_t)slots, sizeof(*group->tails));
    group->tail_count = group->tails != NULL ? slots : 0;
    for (int i = 0; i < group->tail_count; i++)
        group->tails[i].rank = first + i;
    if (start_workers(group, index, err) != 0) {
        group_destroy(group);
        return NULL;
    }
    return group;
}

/* The others must not be let through their gates, to a program of another user. The world begins
 * anew, with another port, as after the end of any worker; but that does not count as a failure. */
static void refuse_stranger(struct group *group)
{
    struct rank_tail *tail = tail_find(group, 0);
    char text[TAIL_BYTES];

    if (tail == NULL)
        return;
    tail->failed = group->stolen = true;
    snprintf(text, sizeof(text), "a program of another user listens on port %d, MASTER_PORT",
             group->world->master_port);
    tail_set(&tail->last, text);
    log_info("rank 0: ended: %s", text);
    workers_signal(group->workers, 0, SIGKILL, true);
}

static void on_look(uv_timer_t *look)
{
    struct group *group = look->data;
    uint64_t now = uv_now(look->loop), began;
    enum tcp_listener listener;

    if (!group->first_passed && workers_gate_of(group->workers, 0) >= EVENT_PASSED_LOAD) {
        group->first_passed = true;
        group->look_until = now + LISTEN_MS;
    }
    began = uv_hrtime();
    listener = tcp_listener(group->world->master_port);
    if (listener == TCP_NOBODY && now < group->look_until) {
        uv_timer_start(look, on_look, tcp_pause(uv_hrtime() - began, LOOK_MS), 0);
        return;
    }
    if (listener == TCP_STRANGER) {
        refuse_stranger(group);
        return;
    }
    workers_open(group->workers, true);
    member_send(group->member, attempt_message(group, "listening"));
}

void group_begin(struct group *group, bool first)
{
    bool was_gated = group->gated;

    group->gated = false;
    if (was_gated && group->ready)
        member_send(group->member, attempt_message(group, "ready"));
    if (!first)
        return;
    workers_open(group->workers, false);
    group->look_until = uv_now(group->member->loop) + (was_gated ? GATE_MS : LISTEN_MS);
    uv_timer_start(&group->look, on_look, LOOK_MS, 0);
}

static void take_world(struct group *group, struct world *world, int index, int attempt)
{
    int first = world_first_rank(world, index);

    world_destroy(group->world);
    group->world = world;
    group->health_known = false;
    group->attempt = attempt;
    for (int i = 0; i < group->tail_count; i++)
        group->tails[i].rank = first + i;
}

void group_enter(struct group *group, struct world *world, int index, int attempt)
{
    bool was_gated = group->gated;

    take_world(group, world, index, attempt);
    workers_place(group->workers, world, index, attempt);
    group->gated = false;
    workers_open(group->workers, true);
    if (was_gated && group->ready)
        member_send(group->member, attempt_message(group, "ready"));
}

int group_move(struct group *group, struct world *world, int index, int attempt, struct error *err)
{
    char files[FILES_BYTES];

    name_files(files, world, attempt);
    if (workers_move(group->workers, world, index, attempt, files, err) != 0)
        return -1;
    take_world(group, world, index, attempt);
    return 0;
}

void group_open(struct group *group)
{
    workers_open(group->workers, true);
}

bool group_fits_twice(const struct group *group, char *text, size_t size)
{
    uint64_t need = workers_memory(group->workers) + MEMORY_SPARE, left = memory_available("");

    if (need <= left)
        return true;
    snprintf(text, size, "no memory for a second set of workers: %llu MiB needed, %llu MiB left",
             (unsigned long long)need >> 20, (unsigned long long)left >> 20);
    return false;
}
