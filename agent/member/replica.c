/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tasks of one start of a replica on this node (replica.h).
 *
 * They are the workers of a small world that never changes. Each has a command, ports and GPUs of
 * its own. */
#include "agent/member/replica.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/member/replica_private.h"
#include "agent/supervise.h"
#include "common/log.h"
#include "lib/recovery.h"
#include "lib/role_needs.h"
#include "lib/role_task.h"
#include "lib/shield.h"

/* ---- what the leader hears ------------------------------------------------------------------- */

json_object *replica_message(const char *type, int64_t id, int64_t start)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, "replica", json_object_new_int64(id));
    json_object_object_add(msg, "start", json_object_new_int64(start));
    return msg;
}

json_object *replica_exit_message(int64_t id, int64_t start, int task, int status, bool lost,
                                  const char *text)
{
    json_object *msg = replica_message("task_exit", id, start);
    struct error line = {""};

    error_set(&line, "%s", text);
    json_object_object_add(msg, "task", json_object_new_int(task));
    json_object_object_add(msg, "status", json_object_new_int(status));
    json_object_object_add(msg, "text", json_object_new_string(line.text));
    if (lost)
        json_object_object_add(msg, "lost", json_object_new_boolean(true));
    return msg;
}

static void send_message(struct replica *r, json_object *msg)
{
    if (r->disowned)
        json_object_put(msg);
    else
        r->hooks.send(msg, r->arg);
}

static json_object *task_message(const struct task *task, const char *type)
{
    const struct replica_options *o = &task->replica->options;
    json_object *msg = replica_message(type, o->id, o->start);

    json_object_object_add(msg, "task", json_object_new_int(task->number));
    return msg;
}

static int stream_of(const struct task *task)
{
    return role_task_stream(task->replica->options.start, task->number);
}

static struct task *task_of(struct replica *r, int rank)
{
    return &r->tasks[rank - r->tasks[0].number];
}

/* ---- whose are its ports? -------------------------------------------------------------------- */

/* What is left of it here ends. Its next start has other ports. */
static void give_up_port(struct replica *r, int port)
{
    r->stolen = port;
    r->ending = true;
    for (int i = 0; i < r->count; i++)
        replica_task_end_probe(&r->tasks[i]);
    workers_stop(r->workers, SIGKILL, 0);
}

static json_object *ports_json(const struct replica *r)
{
    json_object *all = json_object_new_array();

    for (int i = 0; i < r->count; i++)
        json_object_array_add(all, replica_ports_json(r->ports, i));
    return all;
}

/* The ports of its tasks, once all of them are executed, and when one is withheld. */
static void say_running(struct replica *r)
{
    json_object *msg = replica_message("task_running", r->options.id, r->options.start);

    json_object_object_add(msg, "ports", ports_json(r));
    send_message(r, msg);
}

/* Of HTTP and TCP: the port that its probe asks. */
static int probe_port(const struct task *task)
{
    const struct role *role = task->replica->options.role;

    for (size_t i = 0; i < strings_count(role->ports); i++)
        if (role->ready.port == NULL || strcmp(role->ports[i], role->ready.port) == 0)
            return task->ports[i];
    return 0;
}

/* Until it is ready, that port is asked at several addresses. */
static int port_to_be_probed(const struct task *task)
{
    enum role_probe how = task->replica->options.role->ready.how;

    return !task->answers && (how == ROLE_PROBE_HTTP || how == ROLE_PROBE_TCP) ? probe_port(task)
                                                                               : 0;
}

/* True: a stranger has a port of it, and the replica ends. */
static bool ports_are_stolen(struct task *task)
{
    struct replica *r = task->replica;
    bool changed;
    int port = replica_ports_look(r->ports, (int)(task - r->tasks), r->address,
                                  port_to_be_probed(task), &changed);

    if (port != 0)
        give_up_port(r, port);
    else if (changed && r->running) {
        log_info("%s: programs of other users have come or gone at ports that it does not use; "
                 "its addresses are told without them",
                 task->name);
        say_running(r);
    }
    return port != 0;
}

void replica_look(struct replica *r)
{
    for (int i = 0; i < r->count && r->running && !r->ending; i++)
        if (!r->tasks[i].ended)
            ports_are_stolen(&r->tasks[i]);
}

/* A program that finds its port in use ends. The port may be in use at any address. */
static void blame_stranger(struct task *task, int status)
{
    struct replica *r = task->replica;
    int port;

    if (status == 0 || recovery_is_final(status) || task->answers || r->ending)
        return;
    port = replica_ports_in_the_way(r->ports, (int)(task - r->tasks));
    if (port == 0 && r->master_port != 0 && port_is_strange(r->master_port, NULL))
        port = r->master_port;
    if (port != 0)
        give_up_port(r, port);
}

/* ---- is it ready? ---------------------------------------------------------------------------- */

static void say_ready(struct task *task)
{
    task->ready = true;
    send_message(task->replica, task_message(task, "task_ready"));
}

/* It has other models, or could not load them. It is ready once it has those of one list. */
static void on_models(const struct model_load_state *state, json_object *sizes, void *arg)
{
    struct task *task = arg;
    struct replica *r = task->replica;
    json_object *msg = task_message(task, "task_models");

    if (state->version > 0) {
        r->options.version = state->version;
        json_object_object_add(msg, "version", json_object_new_int64(state->version));
    }
    if (state->failures > 0) {
        json_object_object_add(msg, "tried", json_object_new_int64(state->wanted));
        json_object_object_add(msg, "failures", json_object_new_int(state->failures));
        json_object_object_add(msg, "text", json_object_new_string(state->why));
    }
    json_object_object_add(msg, "sizes", json_object_get(sizes));
    send_message(r, msg);
    if (state->version > 0 && !task->ready)
        say_ready(task);
}

/* Requests of a shard go to its first task. */
static bool has_to_load(const struct task *task)
{
    const struct replica *r = task->replica;

    return r->models != NULL && r->role.shards.load != 0 && task->number == 0;
}

static void begin_loader(struct task *task)
{
    const struct replica *r = task->replica;
    const struct loader_options options = {
        .api = (enum model_load_api)r->role.shards.load,
        .name = task->name,
        .file = r->models,
        .links = task->links,
        .address = probe_address(task->probe),
        .port = probe_port(task),
        .every = r->role.ready.every < 1 ? r->role.ready.every : 1,
        .patience = r->role.ready.within,
    };

    if (task->loader == NULL) /* without memory it does not get ready */
        task->loader = loader_create(r->options.loop, &options, on_models, task);
}

static void on_task_ready(void *arg)
{
    struct task *task = arg;

    task->answers = true;
    if (ports_are_stolen(task))
        return;
    if (has_to_load(task))
        begin_loader(task);
    else
        say_ready(task);
}

static void on_task_unready(const char *why, void *arg)
{
    struct task *task = arg;
    json_object *msg = task_message(task, "task_unready");
    struct error line = {""};

    task->answers = task->ready = false;
    error_set(&line, "%s", why);
    json_object_object_add(msg, "text", json_object_new_string(line.text));
    send_message(task->replica, msg);
}

/* Without memory nobody looks, and the leader's time for it will be over. */
static void begin_probe(struct task *task)
{
    static const struct probe_handlers handlers = {.ready = on_task_ready,
                                                   .unready = on_task_unready};
    const struct replica *r = task->replica;
    const struct role *role = r->options.role;
    const struct probe_options options = {
        .how = role->ready.how,
        .every = role->ready.every,
        .what = task->looked_at != NULL ? task->looked_at : role->ready.what,
        .port = probe_port(task),
        .address = r->address,
        .command = &task->probe_worker,
        .world = r->probe_world,
    };

    if (role->ready.how != ROLE_PROBE_NONE)
        task->probe = probe_create(r->options.loop, &options, &handlers, task);
}

/* ---- news of its tasks ----------------------------------------------------------------------- */

static void on_ready(void *arg)
{
    struct replica *r = arg;

    r->running = true;
    say_running(r);
    for (int i = 0; i < r->count && !r->ending; i++)
        if (!r->tasks[i].ended)
            begin_probe(&r->tasks[i]);
}

static void on_nothing(void *arg)
{
    (void)arg;
}

static void on_output(int rank, int fd, const char *data, size_t len, void *arg)
{
    struct task *task = task_of(arg, rank);

    if (fd == 2)
        tail_feed(&task->tail, data, len);
    task->replica->hooks.output(task->name, stream_of(task), fd, data, len, task->replica->arg);
}

static void say_stolen(struct task *task, int status)
{
    struct replica *r = task->replica;
    char text[80];
    json_object *msg;

    snprintf(text, sizeof(text), "a program of another user listens on its port %d", r->stolen);
    msg = replica_exit_message(r->options.id, r->options.start, task->number, status, true, text);
    if (r->disowned)
        json_object_put(msg);
    else
        r->hooks.send_late(msg, r->arg);
}

static void say_exit(struct task *task, const struct worker_exit *ended)
{
    struct replica *r = task->replica;
    int status = ended->signal != 0 ? 128 + ended->signal : ended->code;
    const char *why = tail_why(&task->tail, ended->error, ended->signal);
    char text[64] = "";

    if (r->status == 0)
        r->status = status;
    blame_stranger(task, status);
    if (r->stolen != 0) {
        say_stolen(task, status);
        return;
    }
    if (status != 0)
        snprintf(text, sizeof(text), ended->signal != 0 ? "ended by signal %d" : "ended with %d",
                 ended->signal != 0 ? ended->signal : status);
    send_message(r, replica_exit_message(r->options.id, r->options.start, task->number, status,
                                         false, status != 0 && why != NULL ? why : text));
}

static void on_exited(const struct worker_exit *ended, void *arg)
{
    struct task *task = task_of(arg, ended->rank);
    struct replica *r = task->replica;

    task->ended = true;
    replica_task_end_probe(task);
    replica_task_give_gpus(task);
    say_exit(task, ended);
    r->hooks.output_ended(stream_of(task), r->arg);
}

static void on_drained(void *arg)
{
    struct replica *r = arg;

    r->hooks.drained(r, r->arg);
}

static const struct workers_handlers worker_handlers = {
    .ready = on_ready,
    .parked = on_nothing,
    .begun = on_nothing,
    .stepping = on_nothing,
    .exited = on_exited,
    .drained = on_drained,
    .output = on_output,
};

/* ---- life ------------------------------------------------------------------------------------ */

void replica_destroy(struct replica *r)
{
    if (r == NULL)
        return;
    workers_destroy(r->workers);
    for (int i = 0; i < r->count; i++)
        replica_task_free(&r->tasks[i]);
    replica_ports_destroy(r->ports);
    if (r->options.master_fd >= 0)
        close(r->options.master_fd);
    world_destroy(r->probe_world);
    strings_free(r->user_env);
    free(r->tasks);
    free(r->name);
    free(r->address);
    free(r->owner);
    free(r->models);
    strings_free(r->run);
    free(r);
}

static struct replica *make(const struct replica_options *options,
                            const struct replica_hooks *hooks, void *arg)
{
    struct replica *r = calloc(1, sizeof(*r));
    int count = options->world->nodes[options->node_index].slots;

    if (r == NULL) {
        if (options->master_fd >= 0)
            close(options->master_fd);
        return NULL;
    }
    r->options = *options;
    r->role = *options->role;
    r->role.gang = options->gang;
    r->options.role = &r->role;
    r->hooks = *hooks;
    r->arg = arg;
    r->name = strdup(options->name);
    r->owner = options->owner != NULL ? strdup(options->owner) : NULL;
    r->models = options->models != NULL ? strdup(options->models) : NULL;
    r->address = options->address != NULL ? strdup(options->address) : NULL;
    r->run = strings_copy(options->run);
    r->options.run = NULL; /* the caller's */
    if (r->run != NULL)
        r->role.run = r->run;
    r->probe_world = replica_task_world(options->world, options->node_index);
    r->tasks = calloc((size_t)count, sizeof(*r->tasks));
    if (r->name == NULL || r->probe_world == NULL || r->tasks == NULL ||
        (options->run != NULL && r->run == NULL)) {
        replica_destroy(r);
        return NULL;
    }
    r->count = count;
    r->master_port = options->master_fd >= 0 ? options->world->master_port : 0;
    r->whole = options->world->node_count == 1;
    for (int i = 0; i < count; i++) {
        r->tasks[i].replica = r;
        r->tasks[i].number = world_first_rank(options->world, options->node_index) + i;
    }
    return r;
}

/* What a task has besides the environment of all workers: an own list. A user's LD_PRELOAD is in
 * that of the shield. */
static int add_shield(struct replica *r, struct workers_options *options, struct error *err)
{
    static const char *const preload[] = {"LD_PRELOAD", NULL};
    const char *library = r->options.role->shield ? r->options.shield : NULL;
    char **shield = NULL;
    int rc = 0;

    if (library != NULL)
        shield = shield_environment(options->user_env, library, supervise_stepd());
    if (library != NULL && shield == NULL)
        return error_set(err, "out of memory");
    if (shield != NULL && shield[0] != NULL) {
        r->user_env = strings_without(options->user_env, preload);
        rc = r->user_env != NULL ? 0 : -1;
        options->user_env = r->user_env;
        for (int i = 0; i < r->count && rc == 0; i++)
            rc = strings_append(&r->tasks[i].added, shield);
    }
    strings_free(shield);
    return rc == 0 ? 0 : error_set(err, "out of memory");
}

static int start(struct replica *r, const char *files, struct error *err)
{
    size_t count = (size_t)r->count;
    char *const **lists = count <= WORLD_SLOTS_MAX ? calloc(2 * count, sizeof(*lists)) : NULL;
    struct workers_options options = *r->options.common;

    if (lists == NULL)
        return error_set(err, "out of memory");
    if (add_shield(r, &options, err) != 0) {
        free(lists);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        lists[i] = r->tasks[i].command;
        lists[count + i] = r->tasks[i].added;
    }
    options.argvs = lists;
    options.added = lists + count;
    options.files = files;
    options.place.node_index = r->options.node_index;
    options.attempt = options.place.attempt = (int)(r->options.start % INT32_MAX);
    r->workers = workers_start(r->options.loop, r->options.world, &options, &worker_handlers, r,
                               err);
    free(lists);
    return r->workers != NULL ? 0 : -1;
}

struct replica *replica_create(const struct replica_options *options,
                               const struct replica_hooks *hooks, void *arg, struct error *err)
{
    struct replica *r = make(options, hooks, arg);
    char files[FILES_MAX];
    int rc;

    if (r == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    snprintf(files, sizeof(files), "replica-%lld.%lld", (long long)options->id,
             (long long)options->start);
    r->ports = r->role.router.listen > 0
                   ? replica_ports_fixed(r->role.router.listen, err)
                   : replica_ports_create(r->count, (int)strings_count(r->role.ports), err);
    *options->no_port = r->ports == NULL;
    rc = r->ports != NULL ? 0 : -1;
    for (int i = 0; i < r->count && rc == 0; i++)
        rc = replica_task_prepare(&r->tasks[i], files, err);
    if (rc == 0 && start(r, files, err) == 0) {
        r->options.world = NULL; /* the caller's, as is the address */
        r->options.common = NULL;
        return r;
    }
    replica_destroy(r);
    return NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

bool replica_is(const struct replica *r, int64_t id, int64_t start)
{
    return r->options.id == id && r->options.start == start;
}

void replica_drain(struct replica *r, int signal, double seconds)
{
    r->ending = true;
    for (int i = 0; i < r->count; i++)
        replica_task_end_probe(&r->tasks[i]);
    workers_stop(r->workers, signal, seconds);
}

void replica_disown(struct replica *r)
{
    r->disowned = true;
}

static json_object *introduce(const struct replica *r)
{
    json_object *said = json_object_new_object();

    json_object_object_add(said, "replica", json_object_new_int64(r->options.id));
    json_object_object_add(said, "start", json_object_new_int64(r->options.start));
    json_object_object_add(said, "name", json_object_new_string(r->name));
    json_object_object_add(said, "role", json_object_new_string(r->options.role->name));
    role_needs_add(said, &r->options.gang);
    if (r->owner != NULL)
        json_object_object_add(said, "owner", json_object_new_string(r->owner));
    if (r->models != NULL) {
        json_object_object_add(said, "version", json_object_new_int64(r->options.version));
        json_object_object_add(said, "program", json_object_new_int64(r->options.program));
    }
    return said;
}

json_object *replica_result(const struct replica *r)
{
    json_object *said;

    if (!r->options.role->leads || !r->whole || r->ending || r->disowned)
        return NULL;
    said = introduce(r);
    json_object_object_add(said, "status", json_object_new_int(r->status));
    return said;
}

json_object *replica_describe(const struct replica *r)
{
    json_object *said, *ready;

    for (int i = 0; i < r->count; i++)
        if (r->tasks[i].ended)
            return NULL;
    if (!r->whole || r->ending || r->disowned)
        return NULL;
    said = introduce(r);
    ready = json_object_new_array();
    for (int i = 0; i < r->count; i++)
        json_object_array_add(ready, json_object_new_boolean(r->tasks[i].ready));
    json_object_object_add(said, "running", json_object_new_boolean(r->running));
    json_object_object_add(said, "ready", ready);
    json_object_object_add(said, "ports", ports_json(r));
    return said;
}

/* ---- as all workers -------------------------------------------------------------------------- */

void replica_pause_output(struct replica *r, bool pause)
{
    workers_pause_output(r->workers, pause);
}

void replica_pass_signal(struct replica *r, int signal)
{
    workers_pass_signal(r->workers, signal);
}

void replica_end_stopped(struct replica *r, double seconds)
{
    workers_end_stopped(r->workers, seconds);
}

void replica_forgive_stopped(struct replica *r)
{
    workers_forgive_stopped(r->workers);
}
