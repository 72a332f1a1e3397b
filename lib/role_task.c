/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment and the command of a task of a replica (role_task.h). */
#include "lib/role_task.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/world_names.h"

#define OTHERS_MAX 31 /* variables besides those of the ports */

struct list {
    char **strings;
    size_t count;
    bool failed; /* out of memory: the caller asks once */
};

static void add(struct list *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct list *list, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (list->failed || vasprintf(&list->strings[list->count], fmt, args) < 0) {
        list->strings[list->count] = NULL;
        list->failed = true;
    } else {
        list->count++;
    }
    va_end(args);
}

static void add_named(struct list *list, const char *name, const char *value)
{
    if (value != NULL)
        add(list, "%s=%s", name, value);
}

/* What each program on the node has. */
static void add_node(struct list *list, const struct role_task_place *place)
{
    add_named(list, "ELASTIC_SHARED_DIR", place->shared);
    add_named(list, "ELASTIC_API", place->api);
    add_named(list, "ELASTIC_API_SOCKET", place->api_socket);
    add_named(list, "CUDA_VISIBLE_DEVICES", place->cuda);
    add_named(list, "ROCR_VISIBLE_DEVICES", place->rocr);
}

static char **end(struct list *list)
{
    if (!list->failed)
        return list->strings;
    strings_free(list->strings);
    return NULL;
}

/* Its name in capitals, with _ for -, which no shell can have in a name. */
static void add_port(struct list *list, const char *name, int port)
{
    char *variable = strdup(name);

    list->failed |= variable == NULL;
    for (char *c = variable; c != NULL && *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    if (variable != NULL)
        add(list, WORLD_NAMES_PORT "%s=%d", variable, port);
    free(variable);
}

/* The number in "collector-3". */
static const char *index_of(const char *replica)
{
    const char *dash = strrchr(replica, '-');

    return dash != NULL ? dash + 1 : replica;
}

/* Names that programs of DI-engine look for. Their URLs have no scheme. */
static void add_di_engine(struct list *list, const struct role *role, const struct role_task *task,
                          const struct role_task_place *place)
{
    static const struct {
        const char *role, *port, *url;
    } known[] = {{"coordinator", "COORDINATOR_PORT", "KUBERNETES_COORDINATOR_URL"},
                 {"aggregator", "AGGREGATOR_PORT", "KUBERNETES_AGGREGATOR_URL"},
                 {"collector", "COLLECTOR_PORT", NULL},
                 {"learner", "LEARNER_PORT", NULL}};

    add(list, "KUBERNETES_POD_NAMESPACE=%s", place->namespace);
    add(list, "KUBERNETES_POD_NAME=%s", task->replica);
    add_named(list, "KUBERNETES_SERVER_URL", place->api);
    add(list, "START_RANK=%d", place->first_task);
    if (place->owner != NULL)
        add(list, "KUBERNETES_AGGREGATOR_URL=%s.%s:%d", place->owner, place->namespace,
            place->owner_port);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(role->name, known[i].role) != 0 || strings_count(role->ports) == 0)
            continue;
        /* A learner listens so many ports higher as its rank says. */
        add(list, "%s=%d", known[i].port,
            place->owner != NULL ? task->ports[0] - task->task : task->ports[0]);
        if (known[i].url != NULL)
            add(list, "%s=%s.%s:%d", known[i].url, task->replica, place->namespace, task->ports[0]);
    }
}

char **role_task_environment(const struct role *role, const struct role_task *task,
                             const struct role_task_place *place)
{
    size_t ports = strings_count(role->ports);
    struct list list = {.strings = calloc(ports + OTHERS_MAX, sizeof(*list.strings))};

    if (list.strings == NULL)
        return NULL;
    add(&list, "ELASTIC_ROLE=%s", role->name);
    add(&list, "ELASTIC_REPLICA=%s", task->replica);
    add(&list, "ELASTIC_REPLICA_INDEX=%s", index_of(task->replica));
    if (role->gang.size.cpus >
        0) /* else each task would start a thread for each core of the node */
        add(&list, "OMP_NUM_THREADS=%d", role->gang.size.cpus);
    add(&list, "ELASTIC_TASK=%d", task->task);
    add(&list, "ELASTIC_TASKS=%d", role->gang.tasks);
    add(&list, "ELASTIC_START=%lld", (long long)place->start);
    if (ports > 0)
        add(&list, "ELASTIC_PORT=%d", task->ports[0]);
    for (size_t i = 0; i < ports; i++)
        add_port(&list, role->ports[i], task->ports[i]);
    add_named(&list, "ELASTIC_READY_FILE", place->ready_file);
    add_node(&list, place);
    add_named(&list, "ELASTIC_MODELS", task->models);
    if (role->shards.number > 0)
        add(&list, "ELASTIC_SHARD=shard_%d", role->shards.number);
    if (place->namespace != NULL)
        add_di_engine(&list, role, task, place);
    return end(&list);
}

char **role_world_environment(const struct role *role, const struct role_task_place *place)
{
    struct list list = {.strings = calloc(OTHERS_MAX, sizeof(*list.strings))};

    if (list.strings == NULL)
        return NULL;
    add(&list, "ELASTIC_ROLE=%s", role->name);
    add_node(&list, place);
    return end(&list);
}

char **role_task_command(const struct role *role, char *const *command,
                         const struct role_task *task)
{
    char **argv = calloc(strings_count(command) + 1, sizeof(*argv));

    for (size_t i = 0; argv != NULL && command[i] != NULL; i++) {
        argv[i] = role_argument(role, command[i], task);
        if (argv[i] == NULL) {
            strings_free(argv);
            return NULL;
        }
    }
    return argv;
}

/* ---- output ---------------------------------------------------------------------------------- */

#define STARTS (INT_MAX / ROLES_TASKS_MAX) /* numbers of starts that differ */

int role_task_stream(int start, int task)
{
    return start % STARTS * ROLES_TASKS_MAX + task;
}
