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

#include "agent/member/probe.h"
#include "agent/member/replica_ports.h"
#include "agent/member/tail.h"
#include "agent/supervise.h"
#include "lib/json_get.h"
#include "lib/role_needs.h"
#include "lib/role_task.h"
#include "lib/shield.h"

#define FILES_MAX 80

struct task {
    struct replica *replica;
    int number; /* in the gang */
    char *name; /* what its lines begin with */
    const int *ports;
    char *gpus; /* NULL: it has given them back */
    bool ended, ready;
    char **command, **added;
    struct tail tail;
    struct probe *probe; /* NULL: nobody looks */
    char *looked_at;     /* probe_options.what, where it is a file */
    char **probe_command;
    char probe_files[FILES_MAX];
    struct workers_options probe_worker;
};

struct replica {
    struct replica_options options;
    struct role role; /* with the needs of this replica: options.role */
    struct replica_hooks hooks;
    void *arg;
    char *name, *address, *owner;
    char **user_env;           /* what the user has, of shielded tasks; NULL: that of all workers */
    struct world *probe_world; /* one worker, for the commands of probes */
    struct workers *workers;
    struct task *tasks;
    int count;
    struct replica_ports *ports;
    bool whole;    /* all tasks of the gang are here */
    bool running;  /* its tasks have been executed */
    bool ending;   /* its tasks have been told to end */
    bool disowned; /* the leader is not told */
    int status;    /* of the first task that has not ended with 0 */
};

/* ---- what the leader hears ------------------------------------------------------------------- */

json_object *replica_message(const char *type, int64_t id, int64_t start)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, "replica", json_object_new_int64(id));
    json_object_object_add(msg, "start", json_object_new_int64(start));
    return msg;
}

json_object *replica_exit_message(int64_t id, int64_t start, int task, int status, const char *text)
{
    json_object *msg = replica_message("task_exit", id, start);
    struct error line = {""};

    error_set(&line, "%s", text);
    json_object_object_add(msg, "task", json_object_new_int(task));
    json_object_object_add(msg, "status", json_object_new_int(status));
    json_object_object_add(msg, "text", json_object_new_string(line.text));
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

/* ---- is it ready? ---------------------------------------------------------------------------- */

static void on_task_ready(void *arg)
{
    struct task *task = arg;

    task->ready = true;
    send_message(task->replica, task_message(task, "task_ready"));
}

static void on_task_unready(const char *why, void *arg)
{
    struct task *task = arg;
    json_object *msg = task_message(task, "task_unready");
    struct error line = {""};

    task->ready = false;
    error_set(&line, "%s", why);
    json_object_object_add(msg, "text", json_object_new_string(line.text));
    send_message(task->replica, msg);
}

/* Of HTTP and TCP. */
static int probe_port(const struct task *task)
{
    const struct role *role = task->replica->options.role;

    for (size_t i = 0; i < strings_count(role->ports); i++)
        if (role->ready.port == NULL || strcmp(role->ports[i], role->ready.port) == 0)
            return task->ports[i];
    return 0;
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

static void end_probe(struct task *task)
{
    probe_destroy(task->probe);
    task->probe = NULL;
    if (task->replica->options.role->ready.how == ROLE_PROBE_TOLD && task->looked_at != NULL)
        unlink(task->looked_at);
}

/* ---- news of its tasks ----------------------------------------------------------------------- */

static json_object *ports_json(const struct replica *r)
{
    json_object *all = json_object_new_array();
    size_t ports = strings_count(r->options.role->ports);

    for (int i = 0; i < r->count; i++) {
        json_object *of_task = json_object_new_array();

        for (size_t k = 0; k < ports; k++)
            json_object_array_add(of_task, json_object_new_int(r->tasks[i].ports[k]));
        json_object_array_add(all, of_task);
    }
    return all;
}

static void on_ready(void *arg)
{
    struct replica *r = arg;
    json_object *msg = replica_message("task_running", r->options.id, r->options.start);

    r->running = true;
    json_object_object_add(msg, "ports", ports_json(r));
    send_message(r, msg);
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

static void give_gpus(struct task *task)
{
    node_room_give(task->replica->options.room, task->gpus);
    free(task->gpus);
    task->gpus = NULL;
}

static void say_exit(struct task *task, const struct worker_exit *ended)
{
    struct replica *r = task->replica;
    int status = ended->signal != 0 ? 128 + ended->signal : ended->code;
    const char *why = tail_why(&task->tail, ended->error);
    char text[64] = "";

    if (r->status == 0)
        r->status = status;
    if (status != 0)
        snprintf(text, sizeof(text), ended->signal != 0 ? "ended by signal %d" : "ended with %d",
                 ended->signal != 0 ? ended->signal : status);
    send_message(r, replica_exit_message(r->options.id, r->options.start, task->number, status,
                                         status != 0 && why != NULL ? why : text));
}

static void on_exited(const struct worker_exit *ended, void *arg)
{
    struct task *task = task_of(arg, ended->rank);
    struct replica *r = task->replica;

    task->ended = true;
    end_probe(task);
    give_gpus(task);
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

/* ---- what a task gets ------------------------------------------------------------------------ */

/* Of FILE and TOLD: where the file will be. */
static int set_looked_at(struct task *task, const char *files)
{
    const struct role *role = task->replica->options.role;
    const struct workers_options *common = task->replica->options.common;
    const char *what = role->ready.what;
    int rc = 0;

    if (role->ready.how == ROLE_PROBE_TOLD)
        rc = asprintf(&task->looked_at, "%s/%s-%d.ready", common->place.run_dir, files,
                      task->number);
    else if (role->ready.how == ROLE_PROBE_FILE)
        rc = what[0] == '/' ? asprintf(&task->looked_at, "%s", what)
                            : asprintf(&task->looked_at, "%s/%s", common->cwd, what);
    if (rc < 0)
        task->looked_at = NULL;
    return rc < 0 ? -1 : 0;
}

/* The command of a probe runs as its task does, but alone. */
static int set_probe_command(struct task *task, const struct role_task *values)
{
    const struct replica *r = task->replica;
    const struct role *role = r->options.role;

    if (role->ready.how != ROLE_PROBE_EXEC)
        return 0;
    task->probe_command = role_task_command(role, role->ready.run, values);
    snprintf(task->probe_files, sizeof(task->probe_files), "probe-%lld.%lld-%d",
             (long long)r->options.id, (long long)r->options.start, task->number);
    task->probe_worker = *r->options.common;
    task->probe_worker.argv = task->probe_command;
    task->probe_worker.files = task->probe_files;
    task->probe_worker.place.node_index = 0;
    task->probe_worker.added = (char *const *const *)&task->added;
    return task->probe_command != NULL ? 0 : -1;
}

static int prepare_task(struct task *task, const char *files, struct error *err)
{
    struct replica *r = task->replica;
    const struct replica_options *o = &r->options;
    struct role_task values = {.replica = r->name, .task = task->number};
    struct role_task_place place = {
        .start = o->start, .shared = o->shared, .api = o->api, .api_socket = o->api_socket};
    int rc = o->role->gang.tasks > 1 ? asprintf(&task->name, "%s.%d", r->name, task->number)
                                     : asprintf(&task->name, "%s", r->name);

    if (rc < 0) {
        task->name = NULL;
        return error_set(err, "out of memory");
    }
    task->ports = replica_ports_of(r->ports, (int)(task - r->tasks));
    task->gpus = node_room_take(o->room, o->role->gang.size.gpus, err);
    if (task->gpus == NULL)
        return -1;
    if (set_looked_at(task, files) != 0)
        return error_set(err, "out of memory");
    values.ports = task->ports;
    place.ready_file = o->role->ready.how == ROLE_PROBE_TOLD ? task->looked_at : NULL;
    place.namespace = o->namespace;
    place.owner = r->owner;
    place.owner_port = o->owner_port;
    place.first_task = r->tasks[0].number;
    place.cuda = node_room_cuda(o->room) ? task->gpus : NULL;
    place.rocr = node_room_rocr(o->room) ? task->gpus : NULL;
    if (place.ready_file != NULL)
        unlink(place.ready_file);
    task->command = role_task_command(o->role, o->role->run, &values);
    task->added = role_task_environment(o->role, &values, &place);
    if (task->command == NULL || task->added == NULL || set_probe_command(task, &values) != 0)
        return error_set(err, "out of memory");
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void free_task(struct task *task)
{
    if (task->replica == NULL)
        return;
    end_probe(task);
    give_gpus(task);
    free(task->name);
    free(task->looked_at);
    strings_free(task->command);
    strings_free(task->added);
    strings_free(task->probe_command);
}

void replica_destroy(struct replica *r)
{
    if (r == NULL)
        return;
    workers_destroy(r->workers);
    for (int i = 0; i < r->count; i++)
        free_task(&r->tasks[i]);
    replica_ports_destroy(r->ports);
    if (r->options.master_fd >= 0)
        close(r->options.master_fd);
    world_destroy(r->probe_world);
    strings_free(r->user_env);
    free(r->tasks);
    free(r->name);
    free(r->address);
    free(r->owner);
    free(r);
}

static struct world *world_of_one(const struct world *world, int index)
{
    struct world *one = world_create(world->generation, 1);

    if (one == NULL)
        return NULL;
    one->kind = strdup("start");
    one->reason = strdup("a probe");
    one->master_addr = strdup("127.0.0.1");
    if (world_set_node(one, 0, world->nodes[index].name, 1) == 0)
        return one;
    world_destroy(one);
    return NULL;
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
    r->address = options->address != NULL ? strdup(options->address) : NULL;
    r->probe_world = world_of_one(options->world, options->node_index);
    r->tasks = calloc((size_t)count, sizeof(*r->tasks));
    if (r->name == NULL || r->probe_world == NULL || r->tasks == NULL) {
        replica_destroy(r);
        return NULL;
    }
    r->count = count;
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
    r->ports = replica_ports_create(r->count, (int)strings_count(r->role.ports), err);
    rc = r->ports != NULL ? 0 : -1;
    for (int i = 0; i < r->count && rc == 0; i++)
        rc = prepare_task(&r->tasks[i], files, err);
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
        end_probe(&r->tasks[i]);
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
