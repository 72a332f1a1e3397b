/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment of one worker (world.h, and doc/internals/protocol.md, "Environment of a
 * worker").
 *
 * srun made the user's environment for one step of the base job. Much of it describes that step,
 * and would be wrong in another generation or on another node. So names of Slurm are dropped unless
 * they are known to describe the job as a whole. Names that describe a node are taken from the
 * member's own job. Everything that describes the world is written here. */
#include "lib/world.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/world_names.h"

/* A step's own, or a launcher's: never handed on, but for the tables below. */
static const char *const dropped_prefixes[] = {
    "SLURM_", "SLURMD_", "_SLURM_SPANK_", "SPANK_",           "PMI_",
    "PMI2_",  "PMIX_",   "HYDRA_",        "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE",
};

/* True for the whole of the base job, in every generation. */
static const char *const kept_names[] = {
    "SLURM_CLUSTER_NAME",    "SLURM_CONF",           "SLURM_CPUS_PER_GPU",    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS_PER_NODE",   "SLURM_JOB_ACCOUNT",    "SLURM_JOB_CONSTRAINTS", "SLURM_JOB_END_TIME",
    "SLURM_JOB_GID",         "SLURM_JOB_NAME",       "SLURM_JOB_PARTITION",   "SLURM_JOB_QOS",
    "SLURM_JOB_RESERVATION", "SLURM_JOB_START_TIME", "SLURM_JOB_UID",         "SLURM_JOB_USER",
    "SLURM_MEM_PER_CPU",     "SLURM_MEM_PER_GPU",    "SLURM_MEM_PER_NODE",    "SLURM_RESTART_COUNT",
    "SLURM_WORKING_CLUSTER",
};
static const char *const kept_prefixes[] = {"SLURM_ARRAY_", "SLURM_SUBMIT_"};

/* Variables that describe the node: only the member's own job knows them. */
static const char *const own_names[] = {
    "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES",
    "SLURMD_NODENAME",      "SLURM_CPUS_ON_NODE", "SLURM_GPUS_ON_NODE",
    "SLURM_JOB_GPUS",       "SLURM_STEP_GPUS",    "TMPDIR",
    "ZE_AFFINITY_MASK",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t name_length(const char *assignment)
{
    return strcspn(assignment, "=");
}

static bool is_one_of(const char *assignment, const char *const *names, size_t count)
{
    size_t len = name_length(assignment);

    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == len && strncmp(assignment, names[i], len) == 0)
            return true;
    return false;
}

static bool is_world_name(const char *assignment)
{
    for (const char *const *name = world_names; *name != NULL; name++)
        if (is_one_of(assignment, name, 1))
            return true;
    return strncmp(assignment, WORLD_NAMES_PORT, strlen(WORLD_NAMES_PORT)) == 0;
}

static bool begins_with_one_of(const char *assignment, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(assignment, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool user_keeps(const char *assignment)
{
    if (strchr(assignment, '=') == NULL || assignment[0] == '=' || is_world_name(assignment) ||
        is_one_of(assignment, own_names, COUNT(own_names)))
        return false;
    if (is_one_of(assignment, kept_names, COUNT(kept_names)) ||
        begins_with_one_of(assignment, kept_prefixes, COUNT(kept_prefixes)))
        return true;
    return !begins_with_one_of(assignment, dropped_prefixes, COUNT(dropped_prefixes));
}

/* ---- a growing list of assignments ----------------------------------------------------------- */

struct list {
    char **strings;
    size_t count, room;
    bool failed; /* out of memory: whatever follows is nothing, the caller asks once */
};

static void list_take(struct list *list, char *string)
{
    if (list->count + 1 >= list->room) {
        size_t room = list->room == 0 ? 128 : list->room * 2;
        char **strings = realloc(list->strings, room * sizeof(*strings));

        if (strings == NULL) {
            list->failed = true;
            free(string);
            return;
        }
        list->strings = strings;
        list->room = room;
    }
    list->failed |= string == NULL;
    if (string != NULL)
        list->strings[list->count++] = string;
    list->strings[list->count] = NULL;
}

static void set(struct list *list, const char *name, const char *value)
{
    char *assignment;

    if (value == NULL)
        return;
    if (asprintf(&assignment, "%s=%s", name, value) < 0)
        assignment = NULL;
    list_take(list, assignment);
}

static void set_int(struct list *list, const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    set(list, name, text);
}

static bool has(char *const *assignments, const char *name)
{
    return strings_value(assignments, name) != NULL;
}

/* ---- our names ------------------------------------------------------------------------------- */

/* The CPUs that a role gives a node are shared by its workers. Without a role it is as torchrun
 * does: else each of several workers would start one thread for each core. */
static void set_threads(struct list *list, const struct world_place *place, int slots)
{
    int threads = place->cpus > slots ? place->cpus / slots : 1;

    if ((place->cpus > 0 || slots > 1) && !has(list->strings, "OMP_NUM_THREADS") &&
        !has(place->added, "OMP_NUM_THREADS"))
        set_int(list, "OMP_NUM_THREADS", threads);
}

static void set_torchrun(struct list *list, const struct world *world,
                         const struct world_place *place, int rank)
{
    int slots = world->nodes[place->node_index].slots;

    set_int(list, "RANK", rank);
    set_int(list, "LOCAL_RANK", place->local_rank);
    set_int(list, "WORLD_SIZE", world_size(world));
    set_int(list, "LOCAL_WORLD_SIZE", slots);
    set_int(list, "GROUP_RANK", place->node_index);
    set_int(list, "GROUP_WORLD_SIZE", world->node_count);
    set_int(list, "ROLE_RANK", rank);
    set_int(list, "ROLE_WORLD_SIZE", world_size(world));
    set(list, "ROLE_NAME", "default");
    set(list, "MASTER_ADDR", world->master_addr);
    set_int(list, "MASTER_PORT", world->master_port);
    set_int(list, "TORCHELASTIC_RESTART_COUNT", world->restarts);
    set_int(list, "TORCHELASTIC_MAX_RESTARTS", place->max_restarts);
    set(list, "TORCHELASTIC_RUN_ID", place->incarnation);
    set(list, "TORCHELASTIC_ERROR_FILE", place->error_file);
    set(list, "TORCHELASTIC_USE_AGENT_STORE", "False");
    set_threads(list, place, slots);
}

static void set_horovod(struct list *list, const struct world *world,
                        const struct world_place *place, int rank)
{
    int cross_rank = 0, cross_size = 0;

    /* Count the workers of the same local rank, over the nodes that have that many workers. */
    for (int i = 0; i < world->node_count; i++) {
        if (world->nodes[i].slots <= place->local_rank)
            continue;
        cross_rank += i < place->node_index;
        cross_size++;
    }
    set_int(list, "HOROVOD_RANK", rank);
    set_int(list, "HOROVOD_SIZE", world_size(world));
    set_int(list, "HOROVOD_LOCAL_RANK", place->local_rank);
    set_int(list, "HOROVOD_LOCAL_SIZE", world->nodes[place->node_index].slots);
    set_int(list, "HOROVOD_CROSS_RANK", cross_rank);
    set_int(list, "HOROVOD_CROSS_SIZE", cross_size);
    set(list, "HOROVOD_HOSTNAME", world->nodes[place->node_index].name);
}

static void set_slurm(struct list *list, const struct world *world, const struct world_place *place,
                      int rank)
{
    char *nodes = world_fold_names(world, false), *tasks = world_fold_slots(world);
    static const char *const node_names[] = {"SLURM_NODELIST", "SLURM_JOB_NODELIST",
                                             "SLURM_STEP_NODELIST"};
    static const char *const node_counts[] = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES",
                                              "SLURM_STEP_NUM_NODES"};
    static const char *const task_counts[] = {"SLURM_NTASKS", "SLURM_NPROCS",
                                              "SLURM_STEP_NUM_TASKS"};

    list->failed |= nodes == NULL || tasks == NULL;
    set(list, "SLURM_JOB_ID", place->job_id);
    set(list, "SLURM_JOBID", place->job_id);
    set_int(list, "SLURM_PROCID", rank);
    set_int(list, "SLURM_LOCALID", place->local_rank);
    set_int(list, "SLURM_NODEID", place->node_index);
    /* Open MPI takes a process without this variable for one that was not launched; the process
     * then launches itself. */
    set(list, "SLURM_STEP_ID", place->step_id != NULL ? place->step_id : "0");
    for (size_t i = 0; i < COUNT(node_names); i++) {
        set(list, node_names[i], nodes);
        set_int(list, node_counts[i], world->node_count);
        set_int(list, task_counts[i], world_size(world));
    }
    set(list, "SLURM_TASKS_PER_NODE", tasks);
    set(list, "SLURM_STEP_TASKS_PER_NODE", tasks);
    if (!has(list->strings, "SLURMD_NODENAME"))
        set(list, "SLURMD_NODENAME", world->nodes[place->node_index].name);
    free(nodes);
    free(tasks);
}

static void set_elastic(struct list *list, const struct world *world,
                        const struct world_place *place, char *const *user)
{
    set(list, "ELASTIC_JOB_ID", place->job_id);
    set(list, "ELASTIC_INCARNATION", place->incarnation);
    set_int(list, "ELASTIC_GENERATION", world->generation);
    set_int(list, "ELASTIC_ATTEMPT", place->attempt);
    set_int(list, "ELASTIC_NODES", world->node_count);
    set_int(list, "ELASTIC_MIN_NODES", place->min_nodes);
    set_int(list, "ELASTIC_MAX_NODES", place->max_nodes);
    set(list, "ELASTIC_KIND", world->kind);
    set(list, "ELASTIC_REASON", world->reason);
    set(list, "ELASTIC_EVENT_FILE", place->event_file);
    set(list, "ELASTIC_STATE_DIR", place->state_dir);
    set(list, "ELASTIC_CHECKPOINT_DIR", place->checkpoint_dir);
    set(list, WORLD_CHECKPOINT_URL, strings_filled_value(user, WORLD_CHECKPOINT_URL));
    set(list, "ELASTIC_RUN_DIR", place->run_dir);
    set(list, "ELASTIC_SCALE_CONFIG", place->scale_config != NULL ? place->scale_config : "{}");
    set(list, "ELASTIC_SCALE_CONFIGS", place->scale_configs);
    set(list, "ELASTIC_LIB", place->lib);
    set(list, "ELASTIC_RELEASE", place->release);
    set(list, "ELASTIC_STORE", place->store);
}

/* Of nodes that come and go together (--elastic-replica). */
static void set_unit(struct list *list, const struct world *world, const struct world_place *place,
                     int rank)
{
    int unit = place->node_index / world->replica;
    int first = world_first_rank(world, unit * world->replica);

    set_int(list, "ELASTIC_REPLICA_NODES", world->replica);
    set_int(list, "ELASTIC_UNIT", unit);
    set_int(list, "ELASTIC_UNITS", world->node_count / world->replica);
    set_int(list, "ELASTIC_UNIT_RANK", rank - first);
    set_int(list, "ELASTIC_UNIT_SIZE",
            world_first_rank(world, (unit + 1) * world->replica) - first);
}

/* What a container needs of the node, as --bind of apptainer takes it: paths that have a comma or a
 * colon cannot be said there. */
static void set_bind(struct list *list, const struct world_place *place)
{
    const char *const paths[] = {place->run_dir, place->state_dir, place->checkpoint_dir,
                                 place->lib, place->python};
    const char *above = place->state_dir;
    size_t above_len = above != NULL ? strlen(above) : 0, size = 1;
    char *text;

    for (size_t i = 0; i < COUNT(paths); i++)
        size += paths[i] != NULL ? strlen(paths[i]) + 1 : 0;
    text = calloc(1, size);
    list->failed |= text == NULL;
    for (size_t i = 0; text != NULL && i < COUNT(paths); i++) {
        const char *path = paths[i];

        if (path == NULL || path[0] != '/' || strpbrk(path, ",:") != NULL ||
            (above_len > 0 && path != above && strncmp(path, above, above_len) == 0 &&
             path[above_len] == '/'))
            continue;
        if (text[0] != '\0')
            strcat(text, ",");
        strcat(text, path);
    }
    if (text != NULL && text[0] != '\0')
        set(list, "ELASTIC_BIND", text);
    free(text);
}

static void add_more(struct list *list, char *const *added)
{
    for (; added != NULL && *added != NULL; added++) {
        char *name = strndup(*added, name_length(*added));

        list->failed |= name == NULL;
        if (name != NULL && !has(list->strings, name))
            list_take(list, strdup(*added));
        free(name);
    }
}

/* Names of MLflow's own: its clients go on with that run. */
static bool is_mlflow_name(const char *assignment)
{
    static const char *const names[] = {"MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID",
                                        "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"};

    return is_one_of(assignment, names, COUNT(names));
}

static void set_mlflow(struct list *list, const struct world_place *place)
{
    set(list, "MLFLOW_TRACKING_URI", place->mlflow_uri);
    set(list, "MLFLOW_RUN_ID", place->mlflow_run);
}

char **world_environment(const struct world *world, const struct world_place *place,
                         char *const *user, char *const *own)
{
    struct list list = {0};
    int rank = world_first_rank(world, place->node_index) + place->local_rank;

    for (char *const *each = user; each != NULL && *each != NULL; each++)
        if (user_keeps(*each) && (place->mlflow_run == NULL || !is_mlflow_name(*each)))
            list_take(&list, strdup(*each));
    for (char *const *each = own; each != NULL && *each != NULL; each++)
        if (strchr(*each, '=') != NULL && is_one_of(*each, own_names, COUNT(own_names)))
            list_take(&list, strdup(*each));
    set_torchrun(&list, world, place, rank);
    set_horovod(&list, world, place, rank);
    set_slurm(&list, world, place, rank);
    set_elastic(&list, world, place, user);
    set_unit(&list, world, place, rank);
    set_mlflow(&list, place);
    set_bind(&list, place);
    add_more(&list, place->added);
    add_more(&list, place->role);
    if (list.failed) {
        strings_free(list.strings);
        return NULL;
    }
    return list.strings;
}
