/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replicas of this node (replicas.h). */
#include "agent/member/replicas.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/member/late.h"
#include "agent/member/replica.h"
#include "agent/member/replica_order.h"
#include "agent/member/shared_dir.h"
#include "agent/node_room.h"
#include "agent/paths.h"
#include "common/log.h"
#include "common/roles_file.h"
#include "common/tcp_sockets.h"
#include "lib/json_get.h"
#include "lib/role_task.h"
#include "lib/text.h"

#define NOT_STARTED 126 /* as of a command that cannot be executed */
#define NO_PORT     1   /* another start may find one */
#define UNKNOWN     (-1)
#define LOOK_MS     1000
#define LOOK_NS     100000000 /* that one look may take, about */

/* A replica on this node. */
struct entry {
    struct entry *next;
    struct replica *replica;
};

struct replicas {
    uv_loop_t *loop;
    struct roles *roles;
    struct node_room *room;
    char **env; /* without the GPUs: each task has its own */
    char *shared, *address;
    const char *shield; /* path of libelastic-shield.so; NULL: not there */
    struct replicas_hooks hooks;
    void *arg;
    struct entry *list;
    uv_timer_t *look; /* at their ports; NULL: there is no replica */
    int looked;       /* replicas at which the last look has got; 0: at all */
    struct late *late;
    json_object *result; /* of the leading replica, which was here; NULL: it has not ended here */
    bool room_due;       /* the leader waits for it */
    struct {
        int64_t gpus; /* that it has of this node */
        char *ids;    /* … these; NULL: it has none yet */
        char **env;   /* what its workers have besides */
        char **run;   /* of one that a fit trains: what its workers are; NULL: as the job says */
    } world;
    bool paused, stopped;
};

/* ---- what the leader hears ------------------------------------------------------------------- */

/* A list of all replicas. NULL: one of them has to end first. */
static json_object *describe_all(const struct replicas *all)
{
    json_object *list = json_object_new_array();

    for (const struct entry *entry = all->list; entry != NULL; entry = entry->next) {
        json_object *said = replica_describe(entry->replica);

        if (said == NULL) {
            json_object_put(list);
            return NULL;
        }
        json_object_array_add(list, said);
    }
    return list;
}

static void send_room(struct replicas *all)
{
    json_object *msg, *list;
    struct slots_size size;

    if (!all->room_due || (list = describe_all(all)) == NULL)
        return;
    all->room_due = false;
    node_room_size(all->room, &size);
    msg = json_object_new_object();
    json_object_object_add(msg, "t", json_object_new_string("room"));
    json_object_object_add(msg, "cpus", json_object_new_int(size.cpus));
    json_object_object_add(msg, "gpus", json_object_new_int(size.gpus));
    json_object_object_add(msg, "memory", json_object_new_int64(size.memory));
    json_object_object_add(msg, "replicas", list);
    if (all->result != NULL)
        json_object_object_add(msg, "result", json_object_get(all->result));
    all->hooks.send(msg, all->arg);
}

static bool read_which(json_object *msg, struct replica_which *which)
{
    return json_get_int(msg, "replica", 1, INT64_MAX, &which->id) &&
           json_get_int(msg, "start", 1, INT64_MAX, &which->start);
}

static void send_late(json_object *msg, void *arg)
{
    struct replicas *all = arg;

    if (all->stopped)
        all->hooks.send(msg, all->arg);
    else
        late_send(all->late, msg);
}

/* ---- looking at ports ------------------------------------------------------------------------ */

/* What does not fit into one look is for the next one. */
static void on_look(uv_timer_t *timer)
{
    struct replicas *all = timer->data;
    uint64_t began = uv_hrtime(), took = 0;
    int place = 0;

    for (const struct entry *entry = all->list; entry != NULL; entry = entry->next) {
        if (place++ < all->looked)
            continue;
        if (took > LOOK_NS)
            break;
        replica_look(entry->replica);
        all->looked = place;
        took = uv_hrtime() - began;
    }
    if (took <= LOOK_NS)
        all->looked = 0;
    uv_timer_start(timer, on_look, tcp_pause(took, LOOK_MS), 0);
}

static void start_looking(struct replicas *all)
{
    if (all->look != NULL || (all->look = malloc(sizeof(*all->look))) == NULL)
        return; /* without memory nobody looks again once a task is ready */
    uv_timer_init(all->loop, all->look);
    all->look->data = all;
    uv_timer_start(all->look, on_look, LOOK_MS, 0);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void stop_looking(struct replicas *all)
{
    if (all->look != NULL)
        uv_close((uv_handle_t *)all->look, free_handle);
    all->look = NULL;
}

/* ---- of a replica ---------------------------------------------------------------------------- */

static void on_send(json_object *msg, void *arg)
{
    struct replicas *all = arg;

    all->hooks.send(msg, all->arg);
}

static void on_output(const char *name, int stream, int fd, const char *data, size_t len, void *arg)
{
    struct replicas *all = arg;

    all->hooks.output(name, stream, fd, data, len, all->arg);
}

static void on_output_ended(int stream, void *arg)
{
    struct replicas *all = arg;

    all->hooks.output_ended(stream, all->arg);
}

static void on_drained(struct replica *replica, void *arg)
{
    struct replicas *all = arg;
    struct entry **link = &all->list, *entry;

    while ((*link)->replica != replica)
        link = &(*link)->next;
    entry = *link;
    *link = entry->next;
    free(entry);
    if (all->result == NULL)
        all->result = replica_result(replica);
    replica_destroy(replica);
    send_room(all);
    if (all->list == NULL) {
        stop_looking(all);
        all->hooks.none(all->arg);
    }
}

static const struct replica_hooks replica_hooks = {
    .send = on_send,
    .send_late = send_late,
    .output = on_output,
    .output_ended = on_output_ended,
    .drained = on_drained,
};

static struct replica *find(const struct replicas *all, const struct replica_which *which)
{
    for (const struct entry *entry = all->list; entry != NULL; entry = entry->next)
        if (replica_is(entry->replica, which->id, which->start))
            return entry->replica;
    return NULL;
}

/* ---- task_start ------------------------------------------------------------------------------ */

/* Other nodes of the gang wait for it. */
static void say_port(struct replicas *all, const struct replica_order *order)
{
    json_object *msg;

    if (order->master_fd < 0 || order->world->node_count < 2)
        return;
    msg = replica_message("task_port", order->which.id, order->which.start);
    json_object_object_add(msg, "port", json_object_new_int(order->world->master_port));
    all->hooks.send(msg, all->arg);
}

static int create(struct replicas *all, struct replica_order *order, struct error *err)
{
    struct workers_options common = {0};
    struct replica_options options = {
        .loop = all->loop,
        .role = order->role,
        .gang = order->gang,
        .owner = order->owner,
        .owner_port = (int)order->owner_port,
        .models = order->models,
        .version = order->version,
        .run = order->run,
        .program = order->program,
        .id = order->which.id,
        .start = order->which.start,
        .name = order->name,
        .world = order->world,
        .node_index = (int)order->index,
        .master_fd = order->master_fd,
        .room = all->room,
        .shared = all->shared,
        .address = all->address,
        .shield = all->shield,
        .common = &common,
        .no_port = &order->no_port,
    };
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL)
        return error_set(err, "out of memory");
    if (order->role->api && all->hooks.api(&options.api, &options.api_socket, err, all->arg) != 0) {
        free(entry);
        return -1;
    }
    all->hooks.describe(&common, all->arg);
    common.own_env = all->env;
    options.namespace = all->roles->di_engine ? common.place.job_id : NULL;
    order->master_fd = -1; /* the replica's, or closed */
    entry->replica = replica_create(&options, &replica_hooks, all, err);
    if (entry->replica == NULL) {
        free(entry);
        return -1;
    }
    entry->next = all->list;
    all->list = entry;
    start_looking(all);
    if (all->paused)
        replica_pause_output(entry->replica, true);
    return 0;
}

/* Another start may find a port. */
static void say_unstarted_task(struct replicas *all, const struct replica_order *order, int task,
                               int status, const char *why)
{
    json_object *msg = replica_exit_message(order->which.id, order->which.start, task, status,
                                            order->no_port, why);

    if (order->no_port)
        send_late(msg, all);
    else
        all->hooks.send(msg, all->arg);
}

/* Each task of this node has ended before it began. */
static void say_unstarted(struct replicas *all, const struct replica_order *order, const char *why)
{
    int first, count;

    log_error("%s cannot be started: %s", order->name != NULL ? order->name : "a replica", why);
    if (order->world == NULL || order->index < 0) {
        say_unstarted_task(all, order, UNKNOWN, UNKNOWN, why);
        return;
    }
    first = world_first_rank(order->world, (int)order->index);
    count = order->world->nodes[order->index].slots;
    for (int i = 0; i < count; i++)
        say_unstarted_task(all, order, first + i, order->no_port ? NO_PORT : NOT_STARTED, why);
}

static void handle_start(struct replicas *all, const struct replica_which *which, json_object *msg)
{
    struct replica_order order = {.which = *which, .index = -1, .master_fd = -1};
    struct error err = {""};
    int rc;

    if (all->stopped || find(all, which) != NULL)
        return;
    rc = replica_order_read(&order, all->roles, msg, &err);
    if (rc == 0) {
        say_port(all, &order);
        rc = shared_dir_make(all->shared, &err);
    }
    if (rc == 0)
        rc = create(all, &order, &err);
    if (rc != 0)
        say_unstarted(all, &order, err.text);
    if (order.master_fd >= 0)
        close(order.master_fd);
    world_destroy(order.world);
    strings_free(order.run);
}

/* ---- task_drain, task_kill ------------------------------------------------------------------- */

static void end_tasks(struct replicas *all, const struct replica_which *which, int signal,
                      double seconds)
{
    struct replica *replica = find(all, which);

    if (replica != NULL)
        replica_drain(replica, signal, seconds);
    else
        all->hooks.send(replica_exit_message(which->id, which->start, UNKNOWN, UNKNOWN, false,
                                             "none of its tasks is here"),
                        all->arg);
}

static void handle_drain(struct replicas *all, const struct replica_which *which, json_object *msg)
{
    int64_t signal;

    if (!json_get_int(msg, "signal", 1, SIGRTMAX, &signal))
        signal = SIGTERM;
    end_tasks(all, which, (int)signal, json_get_double(msg, "within", 0));
}

static void handle_kill(struct replicas *all, const struct replica_which *which, json_object *msg)
{
    (void)msg;
    end_tasks(all, which, SIGKILL, 0);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void handle_world(struct replicas *all, json_object *msg)
{
    int64_t gpus;

    if (json_get_bool(msg, "over", false)) {
        node_room_give(all->room, all->world.ids);
        free(all->world.ids);
        strings_free(all->world.env);
        all->world.ids = NULL;
        all->world.env = NULL;
    } else if (all->world.ids == NULL && json_get_int(msg, "gpus", 0, INT32_MAX, &gpus)) {
        all->world.gpus = gpus;
    }
}

/* A job file cannot know where a program of ours is on this node. */
static int set_training(struct replicas *all, const struct role *role)
{
    char *const program[] = {(char *)(uintptr_t)paths_of(PATHS_FIT), NULL};

    if (role->training == NULL || all->world.run != NULL)
        return 0;
    if (strings_append(&all->world.run, program) != 0)
        return -1;
    return strings_append(&all->world.run, role->training + 1);
}

/* It keeps its GPUs from its first start on, until it is over. */
static int take_gpus(struct replicas *all, struct error *err)
{
    if (all->world.ids == NULL)
        all->world.ids = node_room_take(all->room, (int)all->world.gpus, err);
    return all->world.ids != NULL ? 0 : -1;
}

int replicas_describe_world(struct replicas *all, bool base, struct workers_options *options,
                            struct error *err)
{
    int role = roles_world(all->roles);
    struct role_task_place place = {.shared = all->shared};

    if (role < 0)
        return 0;
    if (base && take_gpus(all, err) != 0)
        return -1;
    if (all->world.env == NULL) {
        const struct role *of = &all->roles->list[role];

        if (shared_dir_make(all->shared, err) != 0 ||
            (of->api && all->hooks.api(&place.api, &place.api_socket, err, all->arg) != 0))
            return -1;
        place.cuda = base && node_room_cuda(all->room) ? all->world.ids : NULL;
        place.rocr = base && node_room_rocr(all->room) ? all->world.ids : NULL;
        all->world.env = role_world_environment(of, &place);
    }
    if (all->world.env == NULL)
        return error_set(err, "out of memory");
    if (set_training(all, &all->roles->list[role]) != 0)
        return error_set(err, "out of memory");
    if (all->world.run != NULL)
        options->argv = all->world.run;
    options->place.role = all->world.env;
    options->place.cpus = all->roles->list[role].gang.size.cpus;
    if (base)
        options->own_env = all->env;
    return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

bool replicas_on_message(struct replicas *all, const char *type, json_object *msg)
{
    static const struct {
        const char *type;
        void (*handle)(struct replicas *all, const struct replica_which *which, json_object *msg);
    } table[] = {
        {"task_start", handle_start},
        {"task_drain", handle_drain},
        {"task_kill", handle_kill},
    };
    struct replica_which which;

    if (strcmp(type, "world_room") == 0) {
        handle_world(all, msg);
        return true;
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(type, table[i].type) != 0)
            continue;
        if (read_which(msg, &which))
            table[i].handle(all, &which, msg);
        return true;
    }
    return false;
}

/* ---- all of them ----------------------------------------------------------------------------- */

void replicas_set_shield(struct replicas *all, const char *library)
{
    all->shield = library;
}

void replicas_welcomed(struct replicas *all, const char *address)
{
    free(all->address);
    all->address = address != NULL ? strdup(address) : NULL;
    for (struct entry *entry = all->list; entry != NULL; entry = entry->next) {
        json_object *said = replica_describe(entry->replica);

        if (said == NULL) {
            replica_disown(entry->replica);
            replica_drain(entry->replica, SIGKILL, 0);
        }
        json_object_put(said);
    }
    all->room_due = true;
    send_room(all);
}

bool replicas_any(const struct replicas *all)
{
    return all->list != NULL;
}

void replicas_stop(struct replicas *all, int signal, double seconds)
{
    all->stopped = true;
    late_flush(all->late);
    for (struct entry *entry = all->list; entry != NULL; entry = entry->next)
        replica_drain(entry->replica, signal, seconds);
}

void replicas_pause_output(struct replicas *all, bool pause)
{
    all->paused = pause;
    for (struct entry *entry = all->list; entry != NULL; entry = entry->next)
        replica_pause_output(entry->replica, pause);
}

void replicas_pass_signal(struct replicas *all, int signal)
{
    for (struct entry *entry = all->list; entry != NULL; entry = entry->next)
        replica_pass_signal(entry->replica, signal);
}

void replicas_end_stopped(struct replicas *all, double seconds)
{
    for (struct entry *entry = all->list; entry != NULL; entry = entry->next)
        replica_end_stopped(entry->replica, seconds);
}

void replicas_forgive_stopped(struct replicas *all)
{
    for (struct entry *entry = all->list; entry != NULL; entry = entry->next)
        replica_forgive_stopped(entry->replica);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int find_shared(struct replicas *all)
{
    struct workers_options common = {0};

    if (all->roles->shared == NULL)
        return 0;
    all->hooks.describe(&common, all->arg);
    all->shared = shared_dir_path(all->roles->shared, common.cwd);
    return all->shared != NULL ? 0 : -1;
}

struct replicas *replicas_create(uv_loop_t *loop, const char *roles, char *const *env,
                                 const struct replicas_hooks *hooks, void *arg, struct error *err)
{
    struct replicas *all = calloc(1, sizeof(*all));
    struct node_machine machine;

    if (all == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    all->loop = loop;
    all->hooks = *hooks;
    all->arg = arg;
    node_machine_read(&machine);
    all->roles = roles_text_read(roles, err);
    if (all->roles == NULL) {
        replicas_destroy(all);
        return NULL;
    }
    all->room = node_room_create(env, &machine);
    all->env = node_env_without_gpus(env);
    all->late = late_create(loop, hooks->send, arg);
    if (all->room == NULL || all->late == NULL || all->env == NULL || find_shared(all) != 0) {
        error_set(err, "out of memory");
        replicas_destroy(all);
        return NULL;
    }
    return all;
}

void replicas_destroy(struct replicas *all)
{
    struct entry *entry;

    if (all == NULL)
        return;
    while ((entry = all->list) != NULL) {
        all->list = entry->next;
        replica_destroy(entry->replica);
        free(entry);
    }
    stop_looking(all);
    late_destroy(all->late);
    node_room_destroy(all->room);
    roles_destroy(all->roles);
    strings_free(all->env);
    strings_free(all->world.env);
    strings_free(all->world.run);
    free(all->world.ids);
    json_object_put(all->result);
    free(all->shared);
    free(all->address);
    free(all);
}
