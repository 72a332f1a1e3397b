/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun-pmix: the PMIx server of a node, for the workers of an agent.
 *
 * elasticrun starts it with a socket as descriptor 3 and talks to it in JSON
 * (doc/internals/pmix.md). It is a process of its own and not a thread of the agent, because
 * OpenPMIx's server reads data from any process on the node. It may hang or crash. Then programs
 * that use PMIx have lost the server, but the node has not lost its agent. The server ends with its
 * agent. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/log.h"
#include "common/release_own.h"
#include "lib/json_get.h"
#include "pmix/host.h"

#define AGENT_FD 3
#define FILES    1000 /* 4.2's listener uses select(), which has room for 1024 */

struct host host;

json_object *host_message(const char *type, int attempt)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, "attempt", json_object_new_int(attempt));
    return msg;
}

void host_send(json_object *msg)
{
    if (host.link != NULL)
        link_send(host.link, msg);
    else
        json_object_put(msg);
}

struct space *host_space(int attempt)
{
    struct space *space = host.spaces;

    while (space != NULL && space->attempt != attempt)
        space = space->next;
    return space;
}

struct space *host_running_space(void)
{
    struct space *oldest = NULL;

    for (struct space *space = host.spaces; space != NULL; space = space->next)
        if (oldest == NULL || space->attempt < oldest->attempt)
            oldest = space;
    return oldest;
}

struct space *host_space_by_name(const char *name)
{
    struct space *space = host.spaces;

    while (space != NULL && strcmp(space->name, name) != 0)
        space = space->next;
    return space;
}

/* ---- what clients ask ------------------------------------------------------------------------ */

/* The agent ends the worker, if the worker does not end by itself. */
static void on_abort(struct call *call)
{
    struct space *space = host_space_by_name(call->source.nspace);

    if (space != NULL) {
        json_object *msg = host_message("abort", space->attempt);

        if (call->text != NULL)
            error_clean(call->text); /* a message is UTF-8 */

        json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
        json_object_object_add(msg, "status", json_object_new_int(call->status));
        json_object_object_add(msg, "message",
                               json_object_new_string(call->text != NULL ? call->text : ""));
        host_send(msg);
    }
    call_answer(call, PMIX_SUCCESS);
}

/* The tool's user is the job's: accept.c lets nobody else in. A refusal would damage the
 * library. */
static void on_tool(struct call *call)
{
    pmix_proc_t name;
    char nspace[32];

    snprintf(nspace, sizeof(nspace), "tool.%" PRIu64, ++host.next_id);
    PMIX_LOAD_PROCID(&name, nspace, 0);
    call_answer_tool(call, &name);
}

static void on_joined(struct call *call)
{
    const struct space *space = host_space_by_name(call->source.nspace);
    json_object *msg;

    if (space != NULL) {
        msg = host_message("joined", space->attempt);
        json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
        host_send(msg);
    }
    call_answer(call, PMIX_SUCCESS);
}

static void on_call(struct call *call)
{
    switch (call->type) {
    case CALL_ABORT:
        on_abort(call);
        break;
    case CALL_FENCE:
    case CALL_CONNECT:
    case CALL_DISCONNECT:
        exchange_fence(call);
        break;
    case CALL_MODEX:
        exchange_modex(call);
        break;
    case CALL_CONTROL:
        control(call);
        break;
    case CALL_NOTIFY:
        control_event(call);
        break;
    case CALL_ALLOCATE:
        allocate(call);
        break;
    case CALL_PUBLISH:
        publish_publish(call);
        break;
    case CALL_LOOKUP:
        publish_lookup(call);
        break;
    case CALL_UNPUBLISH:
        publish_unpublish(call);
        break;
    case CALL_LOG:
        log_lines(call);
        break;
    case CALL_QUERY:
        query_answer(call);
        break;
    case CALL_TOOL:
        on_tool(call);
        break;
    case CALL_JOINED:
        on_joined(call);
        break;
    default:
        call_answer(call, PMIX_ERR_NOT_SUPPORTED);
    }
}

/* ---- worlds ---------------------------------------------------------------------------------- */

static void refuse_world(int attempt, const char *reason)
{
    json_object *msg = host_message("no_space", attempt);

    json_object_object_add(msg, "reason", json_object_new_string(reason));
    host_send(msg);
}

static void forget(struct space *space)
{
    struct space **at = &host.spaces;

    while (*at != space)
        at = &(*at)->next;
    *at = space->next;
    exchange_drop(space);
    space_destroy(space);
}

static void on_space(struct space *space, const struct error *err, void *arg)
{
    json_object *env, *msg;

    (void)arg;
    if (space->unwanted) {
        forget(space);
        return;
    }
    env = err == NULL ? space_environment(space) : NULL;
    if (env == NULL) {
        refuse_world(space->attempt, err != NULL ? err->text : "PMIx_server_setup_fork fails");
        forget(space);
        return;
    }
    msg = host_message("space", space->attempt);
    json_object_object_add(msg, "env", env);
    host_send(msg);
}

static void on_world(json_object *msg, int attempt)
{
    struct error err = {""};
    struct world *world = world_from_json(msg, &err);
    const char *cwd = json_get_string(msg, "cwd");
    char name[PMIX_MAX_NSLEN + 1], directory[4096];
    struct space_options options = {
        .name = name, .attempt = attempt, .world = world, .directory = directory, .job = host.job};
    struct space *space;
    int64_t index;

    if (world == NULL || cwd == NULL || host_space(attempt) != NULL ||
        !json_get_int(msg, "node_index", 0, world->node_count - 1, &index)) {
        world_destroy(world);
        refuse_world(attempt, err.text[0] != '\0' ? err.text : "a world that cannot be understood");
        return;
    }
    snprintf(name, sizeof(name), "%s.%d.%d", host.job, world->generation, attempt);
    snprintf(directory, sizeof(directory), "%s/%d", host.directory, attempt);
    options.cwd = cwd;
    options.index = (int)index;
    json_object_object_get_ex(msg, "cpus", &options.cpus);
    if (!json_object_is_type(options.cpus, json_type_array))
        options.cpus = NULL;
    space = space_create(&options, on_space, NULL, &err);
    if (space == NULL) {
        refuse_world(attempt, err.text);
        return;
    }
    space->next = host.spaces;
    host.spaces = space;
}

/* ---- the agent ------------------------------------------------------------------------------- */

static void on_message(struct link *link, json_object *msg, void *arg)
{
    const char *type = json_get_string(msg, "t");
    int64_t attempt;

    (void)link;
    (void)arg;
    if (type == NULL || !json_get_int(msg, "attempt", 0, INT32_MAX, &attempt))
        return;
    if (strcmp(type, "world") == 0) {
        on_world(msg, (int)attempt);
    } else if (strcmp(type, "world_gone") == 0) {
        struct space *space = host_space((int)attempt);

        if (space != NULL && space->unregistered > 0)
            space->unwanted = true;
        else if (space != NULL)
            forget(space);
    } else if (!events_on_message(type, msg)) {
        exchange_on_message(type, msg);
    }
}

/* No agent is left to serve. The library is not finalized: it may hang, and the agent removes its
 * files. */
static void on_closed(struct link *link, const char *why, void *arg)
{
    (void)link;
    (void)why;
    (void)arg;
    host.link = NULL;
    _exit(0);
}

static const struct link_handlers handlers = {.message = on_message, .closed = on_closed};

static void say_started(const struct error *err)
{
    json_object *msg = host_message(err == NULL ? "started" : "failed", 0);

    release_write(msg, release_own());
    if (err != NULL)
        json_object_object_add(msg, "reason", json_object_new_string(err->text));
    host_send(msg);
}

/* Remove files of a killed server: a tool that finds two servers uses neither. */
static void remove_addresses(void)
{
    DIR *dir = opendir(host.directory);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, "pmix.", 5) == 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
}

static void limit_files(void)
{
    struct rlimit limit = {FILES, FILES};

    setrlimit(RLIMIT_NOFILE, &limit);
}

/* elasticrun-pmix NODE DIRECTORY JOB.RESTARTS NODEID */
int main(int argc, char **argv)
{
    struct error err = {""};
    pid_t agent = getppid();

    log_init("elasticrun-pmix");
    if (argc < 5) { /* a later release may say more */
        log_error("elasticrun starts this program; there is nothing to be done with it by hand");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent || sodium_init() < 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    /* Slurm signals every process of a step; the agent decides when this process ends. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    limit_files();
    host.directory = argv[2];
    host.job = argv[3];
    /* The library makes a private directory public, and deletes it with its contents. So its parent
     * directory is private. */
    if (mkdir(host.directory, 0755) != 0 && errno != EEXIST) {
        log_error("%s: %s", host.directory, strerror(errno));
        return 1;
    }
    remove_addresses();
    uv_loop_init(&host.loop);
    host.link = link_adopt(&host.loop, AGENT_FD, false, &handlers, NULL, &err);
    if (host.link == NULL) {
        log_error("%s", err.text);
        return 1;
    }
    if (library_start(&host.loop, argv[1], (uint32_t)atoi(argv[4]), host.directory, on_call,
                      &err) != 0) {
        say_started(&err);
        link_close(host.link, "no PMIx");
    } else {
        say_started(NULL);
    }
    uv_run(&host.loop, UV_RUN_DEFAULT);
    return 0;
}
