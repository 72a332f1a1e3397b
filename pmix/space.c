/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A world as PMIx knows it (space.h).
 *
 * Types and levels of registered values matter: Open MPI takes a value of another type for a
 * missing one. Node and process maps alone are not enough: the values that the library derives from
 * them lack the sizes of nodes and the places of processes on other nodes. If anything is told
 * about one process, all of it must be told about all processes. */
#include "pmix/space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "lib/text.h"
#include "pmix/library.h"

/* One session for all worlds: otherwise each world's UNIV_SIZE would be the sum of all. */
#define SESSION 0

/* ---- what is told about it ------------------------------------------------------------------- */

/* A list of infos under construction, and whether all has gone well so far. */
struct list {
    void *handle;
    bool failed;
};

static struct list list_start(void)
{
    return (struct list){.handle = PMIx_Info_list_start()};
}

static void add(struct list *list, const char *key, const void *value, pmix_data_type_t type)
{
    if (list->handle == NULL || PMIx_Info_list_add(list->handle, key, value, type) != PMIX_SUCCESS)
        list->failed = true;
}

static void add_number(struct list *list, const char *key, uint32_t value)
{
    add(list, key, &value, PMIX_UINT32);
}

static void add_small(struct list *list, const char *key, uint16_t value)
{
    add(list, key, &value, PMIX_UINT16);
}

static void add_rank(struct list *list, const char *key, pmix_rank_t value)
{
    add(list, key, &value, PMIX_PROC_RANK);
}

static void add_flag(struct list *list, const char *key, bool value)
{
    add(list, key, &value, PMIX_BOOL);
}

/* Add the infos of inner, which is freed, as one info of list. */
static void add_array(struct list *list, const char *key, struct list *inner)
{
    pmix_data_array_t array;

    if (inner->failed || PMIx_Info_list_convert(inner->handle, &array) != PMIX_SUCCESS) {
        list->failed = true;
    } else {
        add(list, key, &array, PMIX_DATA_ARRAY);
        PMIX_DATA_ARRAY_DESTRUCT(&array);
    }
    PMIx_Info_list_release(inner->handle);
}

/* "4,5,6": no ranges, which Open MPI does not read. */
static char *ranks_of(const struct world *world, int index)
{
    int first = world_first_rank(world, index), count = world->nodes[index].slots;
    size_t size = (size_t)count * 12 + 1;
    char *text = calloc(1, size);

    for (int i = 0; text != NULL && i < count; i++)
        snprintf(text + strlen(text), size - strlen(text), i == 0 ? "%d" : ",%d", first + i);
    return text;
}

static void add_maps(struct list *list, const struct world *world)
{
    char *nodes = NULL, *ranks = NULL, *regex = NULL, *ppn = NULL;
    size_t nodes_len, ranks_len;
    FILE *node_file = open_memstream(&nodes, &nodes_len);
    FILE *rank_file = open_memstream(&ranks, &ranks_len);

    for (int i = 0; node_file != NULL && rank_file != NULL && i < world->node_count; i++) {
        char *local = ranks_of(world, i);

        fprintf(node_file, "%s%s", i > 0 ? "," : "", world->nodes[i].name);
        fprintf(rank_file, "%s%s", i > 0 ? ";" : "", local != NULL ? local : "");
        list->failed |= local == NULL;
        free(local);
    }
    if (node_file == NULL || fclose(node_file) != 0 || rank_file == NULL ||
        fclose(rank_file) != 0 || PMIx_generate_regex(nodes, &regex) != PMIX_SUCCESS ||
        PMIx_generate_ppn(ranks, &ppn) != PMIX_SUCCESS) {
        list->failed = true;
    } else {
        add(list, PMIX_NODE_MAP, regex, PMIX_REGEX);
        add(list, PMIX_PROC_MAP, ppn, PMIX_REGEX);
    }
    free(nodes);
    free(ranks);
    free(regex);
    free(ppn);
}

static void add_node(struct list *list, const struct world *world, int index)
{
    struct list node = list_start();
    char *ranks = ranks_of(world, index);
    uint32_t slots = (uint32_t)world->nodes[index].slots;

    node.failed |= ranks == NULL;
    add(&node, PMIX_HOSTNAME, world->nodes[index].name, PMIX_STRING);
    add_number(&node, PMIX_NODEID, (uint32_t)index);
    add_number(&node, PMIX_NODE_SIZE, slots);
    add_number(&node, PMIX_LOCAL_SIZE, slots);
    add(&node, PMIX_LOCAL_PEERS, ranks != NULL ? ranks : "", PMIX_STRING);
    add_rank(&node, PMIX_LOCALLDR, (pmix_rank_t)world_first_rank(world, index));
    add_array(list, PMIX_NODE_INFO_ARRAY, &node);
    free(ranks);
}

/* The CPUs of a bound process, in the library's form. */
static void add_locality(struct list *proc, const char *cpus)
{
    pmix_cpuset_t cpuset;
    char *text = NULL, *locality = NULL, *source;

    if (asprintf(&source, "hwloc:%s", cpus) < 0)
        return;
    PMIX_CPUSET_CONSTRUCT(&cpuset);
    if (PMIx_Parse_cpuset_string(source, &cpuset) == PMIX_SUCCESS) {
        if (PMIx_server_generate_cpuset_string(&cpuset, &text) == PMIX_SUCCESS && text != NULL)
            add(proc, PMIX_CPUSET, text, PMIX_STRING);
        if (PMIx_server_generate_locality_string(&cpuset, &locality) == PMIX_SUCCESS &&
            locality != NULL)
            add(proc, PMIX_LOCALITY_STRING, locality, PMIX_STRING);
    }
    PMIx_Cpuset_destruct(&cpuset);
    free(text);
    free(locality);
    free(source);
}

static void add_proc(struct list *list, const struct space_options *options, int index, int local)
{
    struct list proc = list_start();
    pmix_rank_t rank = (pmix_rank_t)(world_first_rank(options->world, index) + local);
    json_object *cpus = index == options->index && options->cpus != NULL
                            ? json_object_array_get_idx(options->cpus, (size_t)local)
                            : NULL;

    add_rank(&proc, PMIX_RANK, rank); /* must be the first */
    add_number(&proc, PMIX_APPNUM, 0);
    add_rank(&proc, PMIX_APP_RANK, rank);
    add_rank(&proc, PMIX_GLOBAL_RANK, rank);
    add_small(&proc, PMIX_LOCAL_RANK, (uint16_t)local);
    add_small(&proc, PMIX_NODE_RANK, (uint16_t)local);
    add_number(&proc, PMIX_NODEID, (uint32_t)index);
    add_number(&proc, PMIX_REINCARNATION, 0);
    add(&proc, PMIX_HOSTNAME, options->world->nodes[index].name, PMIX_STRING);
    if (cpus != NULL)
        add_locality(&proc, json_object_get_string(cpus));
    add_array(list, PMIX_PROC_INFO_ARRAY, &proc);
}

static void add_app(struct list *list, const struct space_options *options, uint32_t size)
{
    struct list app = list_start();

    add_number(&app, PMIX_APPNUM, 0);
    add_number(&app, PMIX_APP_SIZE, size);
    add_rank(&app, PMIX_APPLDR, 0);
    add(&app, PMIX_WDIR, options->cwd, PMIX_STRING);
    add_array(list, PMIX_APP_INFO_ARRAY, &app);
}

static int describe(struct space *space, const struct space_options *options)
{
    const struct world *world = options->world;
    struct list list = list_start();
    uint32_t size = (uint32_t)world_size(world);
    pmix_data_array_t array;

    add_number(&list, PMIX_SESSION_ID, SESSION); /* must come before the values of the session */
    add_number(&list, PMIX_UNIV_SIZE, size);
    add(&list, PMIX_JOBID, options->job, PMIX_STRING);
    add_number(&list, PMIX_JOB_SIZE, size);
    add_number(&list, PMIX_MAX_PROCS, size);
    add_number(&list, PMIX_NUM_NODES, (uint32_t)world->node_count);
    add_number(&list, PMIX_JOB_NUM_APPS, 1);
    add_flag(&list, PMIX_SPAWNED, false);
    add(&list, PMIX_TMPDIR, space->directory, PMIX_STRING);
    add(&list, PMIX_NSDIR, space->session_directory, PMIX_STRING);
    add_flag(&list, PMIX_TDIR_RMCLEAN, true);
    add_maps(&list, world);
    add_app(&list, options, size);
    for (int i = 0; i < world->node_count; i++) {
        add_node(&list, world, i);
        for (int local = 0; local < world->nodes[i].slots; local++)
            add_proc(&list, options, i, local);
    }
    if (!list.failed && PMIx_Info_list_convert(list.handle, &array) == PMIX_SUCCESS) {
        space->info = array.array;
        space->info_count = array.size;
    }
    PMIx_Info_list_release(list.handle);
    return space->info != NULL ? 0 : -1;
}

/* ---- registering ----------------------------------------------------------------------------- */

static void registered(struct call *call, void *arg)
{
    struct space *space = arg;

    if (call->status != PMIX_SUCCESS && !space->failed) {
        space->failed = true;
        error_set(&space->err, "PMIx does not take the namespace: %s",
                  PMIx_Error_string(call->status));
    }
    call_free(call);
    if (--space->unregistered > 0)
        return;
    space->done(space, space->failed ? &space->err : NULL, space->arg);
}

static void on_registered(pmix_status_t status, void *cookie)
{
    call_post(cookie, status, NULL, 0);
}

/* The library calls back for each registration; for a registration that it refuses at once, we call
 * back here. */
static void register_all(struct space *space)
{
    int slots = space->world->nodes[space->index].slots;
    int first = world_first_rank(space->world, space->index);

    space->unregistered = slots + 1;
    for (int i = -1; i < slots; i++) {
        struct call *call = call_own(registered, space);
        pmix_status_t status;
        pmix_proc_t proc;

        if (call == NULL) {
            space->failed = true;
            error_set(&space->err, "out of memory");
            space->unregistered--;
            continue;
        }
        PMIX_LOAD_PROCID(&proc, space->name, (pmix_rank_t)(first + i));
        status = i < 0 ? PMIx_server_register_nspace(space->name, slots, space->info,
                                                     space->info_count, on_registered, call)
                       : PMIx_server_register_client(&proc, getuid(), getgid(), NULL, on_registered,
                                                     call);
        if (status != PMIX_SUCCESS)
            on_registered(status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status, call);
    }
}

static int make_directories(struct space *space, const char *directory, struct error *err)
{
    space->directory = strdup(directory);
    if (space->directory == NULL ||
        asprintf(&space->session_directory, "%s/session", directory) < 0) {
        space->session_directory = NULL;
        return error_set(err, "out of memory");
    }
    if ((mkdir(directory, 0700) != 0 && errno != EEXIST) ||
        (mkdir(space->session_directory, 0700) != 0 && errno != EEXIST))
        return error_set(err, "%s: %s", directory, strerror(errno));
    return 0;
}

struct space *space_create(const struct space_options *options,
                           void (*done)(struct space *space, const struct error *err, void *arg),
                           void *arg, struct error *err)
{
    struct space *space = calloc(1, sizeof(*space));

    if (space == NULL) {
        world_destroy(options->world);
        error_set(err, "out of memory");
        return NULL;
    }
    snprintf(space->name, sizeof(space->name), "%s", options->name);
    space->attempt = options->attempt;
    space->world = options->world;
    space->index = options->index;
    space->done = done;
    space->arg = arg;
    if (make_directories(space, options->directory, err) != 0) {
        space_destroy(space);
        return NULL;
    }
    if (describe(space, options) != 0) {
        error_set(err, "PMIx: out of memory");
        space_destroy(space);
        return NULL;
    }
    register_all(space);
    return space;
}

/* ---- use ------------------------------------------------------------------------------------- */

/* Open MPI names its files by the machine and by the number of the process on its node. They must
 * not be in a place that several nodes share, as they do on a testbed, where files stay after a
 * kill. They must not be in PMIX_NSDIR either: the library removes it at the end of the first
 * process, while the others still have files there. */
static void add_mpi(json_object *list, const struct space *space)
{
    static const char *const directories[] = {"OMPI_MCA_btl_vader_backing_directory",
                                              "OMPI_MCA_osc_rdma_backing_directory",
                                              "OMPI_MCA_osc_sm_backing_directory"};
    char *text;

    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        if (asprintf(&text, "%s=%s", directories[i], space->directory) < 0)
            continue;
        json_object_array_add(list, json_object_new_string(text));
        free(text);
    }
}

json_object *space_environment(const struct space *space)
{
    json_object *all = json_object_new_array();
    int first = world_first_rank(space->world, space->index);

    for (int i = 0; i < space->world->nodes[space->index].slots; i++) {
        json_object *list = json_object_new_array();
        char **env = NULL;
        pmix_proc_t proc;
        pmix_status_t status;

        PMIX_LOAD_PROCID(&proc, space->name, (pmix_rank_t)(first + i));
        status = PMIx_server_setup_fork(&proc, &env);
        add_mpi(list, space);
        for (int k = 0; env != NULL && env[k] != NULL; k++)
            json_object_array_add(list, json_object_new_string(env[k]));
        strings_free(env);
        json_object_array_add(all, list);
        if (status != PMIX_SUCCESS) {
            json_object_put(all);
            return NULL;
        }
    }
    return all;
}

int space_node_of(const struct space *space, pmix_rank_t rank)
{
    return world_node_of(space->world, rank);
}

static void on_deregistered(pmix_status_t status, void *cookie)
{
    (void)status;
    (void)cookie;
}

void space_destroy(struct space *space)
{
    if (space == NULL)
        return;
    /* The clients are not removed one by one: 4.2 closes their connections without its own loop
     * knowing. */
    if (space->info != NULL)
        PMIx_server_deregister_nspace(space->name, on_deregistered, NULL);
    if (space->info != NULL)
        PMIX_INFO_FREE(space->info, space->info_count);
    if (space->directory != NULL)
        dir_remove(space->directory, NULL);
    world_destroy(space->world);
    free(space->directory);
    free(space->session_directory);
    free(space);
}
