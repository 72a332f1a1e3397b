/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a task of a replica gets, and gives back (replica_private.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/member/replica_private.h"
#include "agent/paths.h"
#include "common/files.h"
#include "lib/role_task.h"

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

struct world *replica_task_world(const struct world *world, int index)
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

/* A server that loads models by their names has a directory with a link for each. */
static int make_links(struct task *task, const char *files, struct error *err)
{
    const struct replica *r = task->replica;

    if (r->models == NULL || r->role.shards.load != MODEL_LOAD_OIP)
        return 0;
    if (asprintf(&task->links, "%s/%s-%d.models", r->options.common->place.run_dir, files,
                 task->number) < 0) {
        task->links = NULL;
        return error_set(err, "out of memory");
    }
    return dir_make(task->links, err);
}

/* A job file cannot know where a program of ours is on this node. */
static int set_program(char **command, const char *path)
{
    free(command[0]);
    command[0] = strdup(path);
    return command[0] != NULL ? 0 : -1;
}

int replica_task_prepare(struct task *task, const char *files, struct error *err)
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
    if (make_links(task, files, err) != 0)
        return -1;
    values.models = task->links != NULL ? task->links : r->models;
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
    task->command = role_task_command(
        o->role, o->role->training != NULL ? o->role->training : o->role->run, &values);
    task->added = role_task_environment(o->role, &values, &place);
    if (task->command == NULL || task->added == NULL || set_probe_command(task, &values) != 0 ||
        (o->role->kind == ROLE_ROUTER && set_program(task->command, paths_of(PATHS_ROUTER)) != 0) ||
        (o->role->trains && set_program(task->command, paths_of(PATHS_FIT)) != 0))
        return error_set(err, "out of memory");
    return 0;
}

void replica_task_end_probe(struct task *task)
{
    probe_destroy(task->probe);
    task->probe = NULL;
    loader_destroy(task->loader);
    task->loader = NULL;
    if (task->replica->options.role->ready.how == ROLE_PROBE_TOLD && task->looked_at != NULL)
        unlink(task->looked_at);
}

void replica_task_give_gpus(struct task *task)
{
    node_room_give(task->replica->options.room, task->gpus);
    free(task->gpus);
    task->gpus = NULL;
}

void replica_task_free(struct task *task)
{
    if (task->replica == NULL)
        return;
    replica_task_end_probe(task);
    replica_task_give_gpus(task);
    free(task->name);
    free(task->looked_at);
    if (task->links != NULL)
        dir_remove(task->links, NULL);
    free(task->links);
    strings_free(task->command);
    strings_free(task->added);
    strings_free(task->probe_command);
}
