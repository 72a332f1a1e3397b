/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PMIx server of this agent's node (pmix.h).
 *
 * A server process that ends, hangs or never comes up costs the job its PMIx, not its workers. A
 * world that the server has not taken within a few seconds is started without PMIx. The next world
 * gets a new process. */
#include "agent/member/pmix.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/link.h"
#include "common/log.h"
#include "common/release_own.h"
#include "lib/json_get.h"
#include "lib/pieces.h"

/* For the server to take a world; the first time it may still be starting. A program that needs it
 * would fail without: on a node that is busy, late is better. */
#define WORLD_MS 15000
/* After this many, something is wrong that another process will not mend. */
#define STARTS_MAX      5
#define EXIT_CANNOT_RUN 127 /* exit status of a program that misses a library */
#define FIRST_FD        3
#define NUMBER_SIZE     16

struct pmix {
    uv_loop_t *loop;
    struct pmix_options options;
    struct pmix_handlers handlers;
    void *arg;
    char *directory;
    struct server *server; /* NULL: there is no process */
    int starts;
    int asked;        /* attempt for which handlers.space has not been called, 0: none */
    char reason[200]; /* why there is none */
    uv_timer_t deadline;
    bool destroyed;
    int pieces; /* servers that have not ended, and the timer */
    void (*gone)(void *arg);
    void *gone_arg;
};

/* One server process. It outlives its place in struct pmix until it is reaped and its link is
 * closed. */
struct server {
    struct pmix *pmix;
    uv_process_t process;
    struct link *link;
    bool started, ended, linked;
};

/* ---- life of a process ----------------------------------------------------------------------- */

static void piece_gone(struct pmix *pmix)
{
    if (--pmix->pieces > 0 || !pmix->destroyed)
        return;
    pmix->gone(pmix->gone_arg);
    free(pmix->directory);
    free(pmix);
}

static void free_if_over(struct server *server)
{
    struct pmix *pmix = server->pmix;

    if (!server->ended || server->linked)
        return;
    free(server);
    piece_gone(pmix);
}

static void answer(struct pmix *pmix, json_object *env, const char *reason)
{
    int attempt = pmix->asked;

    if (attempt == 0)
        return;
    pmix->asked = 0;
    uv_timer_stop(&pmix->deadline);
    if (!pmix->destroyed)
        pmix->handlers.space(attempt, env, reason, pmix->arg);
}

static void drop_server(struct pmix *pmix, const char *reason)
{
    struct server *server = pmix->server;

    if (server == NULL)
        return;
    pmix->server = NULL;
    if (server->link != NULL)
        link_close(server->link, reason);
    if (!server->ended)
        uv_process_kill(&server->process, SIGKILL);
    answer(pmix, NULL, reason);
}

static void on_process_closed(uv_handle_t *handle)
{
    struct server *server = handle->data;

    server->ended = true;
    free_if_over(server);
}

static void on_process_exit(uv_process_t *process, int64_t code, int signal)
{
    struct server *server = process->data;
    char reason[120];

    if (server->pmix->server == server) {
        if (signal != 0)
            snprintf(reason, sizeof(reason), "elasticrun-pmix was ended by signal %d", signal);
        else
            snprintf(reason, sizeof(reason), "elasticrun-pmix ended with status %d", (int)code);
        snprintf(server->pmix->reason, sizeof(server->pmix->reason), "%s", reason);
        if (!server->started && code == EXIT_CANNOT_RUN)
            server->pmix->starts = STARTS_MAX;
        if (server->started)
            log_info("%s: %s; programs that use PMIx have lost it", server->pmix->options.node,
                     reason);
        drop_server(server->pmix, reason);
    }
    uv_close((uv_handle_t *)process, on_process_closed);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct server *server = arg;

    (void)link;
    (void)why;
    server->link = NULL;
    server->linked = false;
    /* on_process_exit reports it. */
    if (server->pmix->server == server)
        uv_process_kill(&server->process, SIGKILL);
    free_if_over(server);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void handle_abort(struct pmix *pmix, int attempt, json_object *msg)
{
    const char *message = json_get_string(msg, "message");
    int64_t rank, status;

    if (json_get_int(msg, "rank", 0, INT32_MAX, &rank) &&
        json_get_int(msg, "status", INT32_MIN, INT32_MAX, &status))
        pmix->handlers.abort(attempt, (int)rank, (int)status, message != NULL ? message : "",
                             pmix->arg);
}

static void handle_declare(struct pmix *pmix, int attempt, json_object *msg)
{
    int64_t rank, signal = 0;

    json_get_int(msg, "signal", 0, 64, &signal);
    if (json_get_int(msg, "rank", 0, INT32_MAX, &rank))
        pmix->handlers.declare(attempt, (int)rank, json_get_bool(msg, "event", false), (int)signal,
                               pmix->arg);
}

static void handle_complete(struct pmix *pmix, int attempt, json_object *msg)
{
    int64_t rank;

    if (json_get_int(msg, "rank", 0, INT32_MAX, &rank))
        pmix->handlers.complete(attempt, (int)rank, pmix->arg);
}

/* An upgrade may have put another elasticrun-pmix there since this agent was started. Its workers
 * then do without PMIx. */
static void check_release(struct pmix *pmix, json_object *msg)
{
    struct release theirs;
    struct error why;

    release_read(msg, &theirs);
    if (release_agree(release_own(), "elasticrun", &theirs, "elasticrun-pmix", &why) == 0)
        return;
    pmix->starts = STARTS_MAX;
    snprintf(pmix->reason, sizeof(pmix->reason), "%s", why.text);
    drop_server(pmix, pmix->reason);
}

static void send_to_server(struct pmix *pmix, json_object *msg)
{
    if (pmix->server != NULL && pmix->server->link != NULL)
        link_send(pmix->server->link, msg);
    else
        json_object_put(msg);
}

static json_object *message(const char *type, int attempt)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, "attempt", json_object_new_int(attempt));
    return msg;
}

/* Write the lines of a worker. Returns why they were not written, NULL: they were. "lines": [{fd,
 * data}…] */
static const char *log_lines(struct pmix *pmix, int attempt, json_object *msg)
{
    json_object *lines = NULL;
    int64_t rank, fd;

    if (!json_object_object_get_ex(msg, "lines", &lines) ||
        !json_object_is_type(lines, json_type_array) ||
        !json_get_int(msg, "rank", 0, INT32_MAX, &rank))
        return "bad";
    for (size_t i = 0; i < json_object_array_length(lines); i++) {
        json_object *line = json_object_array_get_idx(lines, i);
        bool written;
        char *data;
        size_t len;

        if (!json_get_int(line, "fd", 1, 2, &fd) || piece_data(line, &data, &len) != 0)
            return "bad";
        written = pmix->handlers.log(attempt, (int)rank, (int)fd, data, len, pmix->arg);
        free(data);
        if (!written)
            return "busy";
    }
    return NULL;
}

void pmix_answer(struct pmix *pmix, int attempt, int64_t id, json_object *reply)
{
    if (reply == NULL)
        reply = json_object_new_object();
    json_object_object_add(reply, "t", json_object_new_string("answer"));
    json_object_object_add(reply, "attempt", json_object_new_int(attempt));
    json_object_object_add(reply, "id", json_object_new_int64(id));
    if (pmix != NULL)
        send_to_server(pmix, reply);
    else
        json_object_put(reply);
}

static void answer_log(struct pmix *pmix, int attempt, int64_t id, json_object *msg)
{
    const char *error = log_lines(pmix, attempt, msg);
    json_object *reply = json_object_new_object();

    if (error != NULL)
        json_object_object_add(reply, "error", json_object_new_string(error));
    pmix_answer(pmix, attempt, id, reply);
}

/* A question of the server: some are for the agent itself, the others for the leader. */
static void handle_ask(struct pmix *pmix, int attempt, json_object *msg)
{
    const char *what = json_get_string(msg, "what");
    int64_t id = 0;

    json_get_int(msg, "id", 0, INT64_MAX, &id);
    if (what != NULL && strcmp(what, "log") == 0)
        answer_log(pmix, attempt, id, msg);
    else if (what != NULL && (strcmp(what, "control") == 0 || strcmp(what, "processes") == 0))
        pmix->handlers.control(attempt, msg, pmix->arg);
    else
        pmix->handlers.send(json_object_get(msg), pmix->arg);
}

static void handle_joined(struct pmix *pmix, int attempt, json_object *msg)
{
    int64_t rank;

    if (json_get_int(msg, "rank", 0, INT32_MAX, &rank))
        pmix->handlers.joined(attempt, (int)rank, pmix->arg);
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct server *server = arg;
    struct pmix *pmix = server->pmix;
    const char *type = json_get_string(msg, "t"), *reason = json_get_string(msg, "reason");
    int64_t attempt;
    json_object *env = NULL;

    (void)link;
    if (pmix->server != server || type == NULL ||
        !json_get_int(msg, "attempt", 0, INT32_MAX, &attempt))
        return;
    if (strcmp(type, "space") == 0 && json_object_object_get_ex(msg, "env", &env)) {
        if (attempt == pmix->asked)
            answer(pmix, env, NULL);
    } else if (strcmp(type, "no_space") == 0) {
        if (attempt == pmix->asked)
            answer(pmix, NULL, reason != NULL ? reason : "unknown");
    } else if (strcmp(type, "started") == 0) {
        server->started = true;
        check_release(pmix, msg);
    } else if (strcmp(type, "failed") == 0) {
        pmix->starts = STARTS_MAX; /* another message would say the same again */
        snprintf(pmix->reason, sizeof(pmix->reason), "%s", reason != NULL ? reason : "unknown");
        drop_server(pmix, pmix->reason);
    } else if (strcmp(type, "abort") == 0) {
        handle_abort(pmix, (int)attempt, msg);
    } else if (strcmp(type, "joined") == 0) {
        handle_joined(pmix, (int)attempt, msg);
    } else if (strcmp(type, "declare") == 0) {
        handle_declare(pmix, (int)attempt, msg);
    } else if (strcmp(type, "complete") == 0) {
        handle_complete(pmix, (int)attempt, msg);
    } else if (strcmp(type, "ask") == 0) {
        handle_ask(pmix, (int)attempt, msg);
    } else if (strcmp(type, "gather") == 0 || strcmp(type, "ungather") == 0 ||
               strcmp(type, "relay") == 0) {
        pmix->handlers.send(json_object_get(msg), pmix->arg);
    }
}

static const struct link_handlers link_handlers = {.message = on_message, .closed = on_closed};

bool pmix_on_message(struct pmix *pmix, const char *type, json_object *msg)
{
    if (strcmp(type, "gathered") != 0 && strcmp(type, "relay") != 0 &&
        strcmp(type, "answer") != 0 && strcmp(type, "event") != 0)
        return false;
    send_to_server(pmix, json_object_get(msg));
    return true;
}

/* ---- start ----------------------------------------------------------------------------------- */

static int spawn(struct server *server, int theirs)
{
    const struct pmix_options *options = &server->pmix->options;
    char nodeid[NUMBER_SIZE];
    const char *args[] = {"elasticrun-pmix", options->node, server->pmix->directory,
                          options->job,      nodeid,        NULL};
    uv_stdio_container_t stdio[FIRST_FD + 1] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDOUT_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = theirs},
    };
    uv_process_options_t spawn = {
        .exit_cb = on_process_exit,
        .file = options->program,
        .args = (char **)args,
        .stdio_count = FIRST_FD + 1,
        .stdio = stdio,
    };

    snprintf(nodeid, sizeof(nodeid), "%d", options->nodeid);
    return uv_spawn(server->pmix->loop, &server->process, &spawn);
}

static void start(struct pmix *pmix)
{
    struct server *server;
    struct error err = {""};
    int ends[2], rc;

    if (pmix->starts >= STARTS_MAX)
        return;
    pmix->starts++;
    server = calloc(1, sizeof(*server));
    if (server == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(server);
        snprintf(pmix->reason, sizeof(pmix->reason), "no socket for elasticrun-pmix");
        return;
    }
    server->pmix = pmix;
    server->process.data = server;
    pmix->pieces++;
    rc = spawn(server, ends[1]);
    close(ends[1]);
    if (rc != 0) {
        snprintf(pmix->reason, sizeof(pmix->reason), "%s: %s", pmix->options.program,
                 uv_strerror(rc));
        close(ends[0]);
        uv_close((uv_handle_t *)&server->process, on_process_closed);
        return;
    }
    server->link = link_adopt(pmix->loop, ends[0], true, &link_handlers, server, &err);
    server->linked = server->link != NULL;
    if (server->link == NULL) {
        snprintf(pmix->reason, sizeof(pmix->reason), "%s", err.text);
        uv_process_kill(&server->process, SIGKILL);
        return;
    }
    pmix->server = server;
}

static void on_deadline(uv_timer_t *timer)
{
    struct pmix *pmix = timer->data;

    if (pmix->server != NULL)
        drop_server(pmix, "elasticrun-pmix does not answer");
    else
        answer(pmix, NULL, pmix->reason);
}

struct pmix *pmix_create(uv_loop_t *loop, const struct pmix_options *options,
                         const struct pmix_handlers *handlers, void *arg)
{
    struct pmix *pmix = calloc(1, sizeof(*pmix));

    if (pmix == NULL)
        return NULL;
    if (asprintf(&pmix->directory, "%s/pmix", options->run_dir) < 0) {
        free(pmix);
        return NULL;
    }
    pmix->loop = loop;
    pmix->options = *options;
    pmix->handlers = *handlers;
    pmix->arg = arg;
    uv_timer_init(loop, &pmix->deadline);
    pmix->deadline.data = pmix;
    pmix->pieces = 1;
    start(pmix);
    return pmix;
}

void pmix_world(struct pmix *pmix, const struct world *world, int index, int attempt,
                const char *cwd, char *const *cpus)
{
    json_object *msg;

    pmix->asked = attempt;
    if (pmix->server == NULL)
        start(pmix);
    uv_timer_start(&pmix->deadline, on_deadline, pmix->server != NULL ? WORLD_MS : 0, 0);
    msg = world_to_json(world);
    json_object_object_add(msg, "t", json_object_new_string("world"));
    json_object_object_add(msg, "attempt", json_object_new_int(attempt));
    json_object_object_add(msg, "node_index", json_object_new_int(index));
    json_object_object_add(msg, "cwd", json_object_new_string(cwd));
    if (cpus != NULL)
        json_object_object_add(msg, "cpus", json_from_strings(cpus));
    send_to_server(pmix, msg);
}

void pmix_world_gone(struct pmix *pmix, int attempt)
{
    send_to_server(pmix, message("world_gone", attempt));
}

void pmix_alert(struct pmix *pmix, int attempt, const char *kind, const char *reason,
                double seconds)
{
    json_object *msg = message("alert", attempt);

    json_object_object_add(msg, "kind", json_object_new_string(kind));
    json_object_object_add(msg, "reason", json_object_new_string(reason));
    json_object_object_add(msg, "seconds", json_object_new_double(seconds));
    send_to_server(pmix, msg);
}

/* ---- end ------------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
    piece_gone(handle->data);
}

void pmix_destroy(struct pmix *pmix, void (*gone)(void *arg), void *arg)
{
    pmix->destroyed = true;
    pmix->gone = gone;
    pmix->gone_arg = arg;
    drop_server(pmix, "the end");
    uv_close((uv_handle_t *)&pmix->deadline, on_timer_closed);
}
