/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun-http: the HTTP interface of a job with roles, on one node.
 *
 * elasticrun starts it with sockets that listen, and with a socket over which it says where the
 * leader is (doc/internals/http.md). `selastic proxy` starts it, too. It is a process of its own
 * because it reads what any program of the user sends: it may hang or crash, and another takes its
 * place at the same sockets. */
#include "config.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <sodium.h>

#include "common/conf_file.h"
#include "common/link.h"
#include "common/log.h"
#include "common/courier.h"
#include "http/desk.h"
#include "http/door.h"
#include "http/fits.h"
#include "http/server.h"
#include "lib/json_get.h"
#include "lib/number.h"
#include "lib/text.h"

#define HOLD_MS     60000
#define WATCH_MS    30000
#define PATIENCE_MS 10000
#define DOORS       2
#define FD_MAX      1023

struct arguments {
    int job, restarts, uid, agent; /* -1: not given */
    int doors[DOORS], door_count;
    const char *state_dir;
    char *leaders[COURIER_ADDRESSES + 1];
    int leader_count;
};

struct http {
    uv_loop_t loop;
    struct conf *conf;
    struct courier *courier;
    struct desk *desk;
    struct fits *fits;
    struct server *server;
    struct door *doors[DOORS];
    struct link *agent; /* NULL: selastic */
    bool ending;
};

/* ---- command line ---------------------------------------------------------------------------- */

static const struct option long_options[] = {
    {"job", required_argument, NULL, 'j'},       {"restarts", required_argument, NULL, 'r'},
    {"uid", required_argument, NULL, 'u'},       {"agent", required_argument, NULL, 'a'},
    {"door", required_argument, NULL, 'd'},      {"leader", required_argument, NULL, 'l'},
    {"state-dir", required_argument, NULL, 's'}, {NULL, 0, NULL, 0},
};

static int read_number(const char *text, int max, int *number)
{
    return number_parse(text, strlen(text), 0, max, number);
}

static int read_option(struct arguments *a, int option)
{
    switch (option) {
    case 'j':
        return read_number(optarg, INT32_MAX, &a->job);
    case 'r':
        return read_number(optarg, INT32_MAX, &a->restarts);
    case 'u':
        return read_number(optarg, INT32_MAX, &a->uid);
    case 'a':
        return read_number(optarg, FD_MAX, &a->agent);
    case 'd':
        return a->door_count < DOORS ? read_number(optarg, FD_MAX, &a->doors[a->door_count++]) : -1;
    case 'l':
        if (a->leader_count == COURIER_ADDRESSES)
            return -1;
        a->leaders[a->leader_count++] = optarg;
        return 0;
    case 's':
        a->state_dir = optarg;
        return 0;
    default:
        return -1;
    }
}

static int read_arguments(struct arguments *a, int argc, char **argv)
{
    int option;

    opterr = 0;
    *a = (struct arguments){.job = -1, .restarts = -1, .uid = -1, .agent = -1};
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        if (read_option(a, option) != 0)
            return -1;
    return optind == argc && a->job > 0 && a->restarts >= 0 && a->uid >= 0 && a->door_count > 0
               ? 0
               : -1;
}

/* elastic-fit is installed beside this program. */
static const char *fit_program(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash != NULL)
        snprintf(slash, size - (size_t)(slash - path), "/elastic-fit");
    return path;
}

/* ---- its parts ------------------------------------------------------------------------------- */

static bool is_full(void *arg)
{
    return server_is_full(((struct http *)arg)->server);
}

static void add(void *arg, int fd, const struct sockaddr *address, socklen_t size)
{
    server_add(((struct http *)arg)->server, fd, address, size);
}

static void on_room(void *arg)
{
    struct http *http = arg;
    const struct door_room room = {.full = is_full, .add = add, .arg = http};

    for (int i = 0; i < DOORS && !http->ending; i++)
        if (http->doors[i] != NULL)
            door_serve(http->doors[i], &room);
}

static void end(struct http *http)
{
    if (http->ending)
        return;
    http->ending = true;
    for (int i = 0; i < DOORS; i++)
        door_close(http->doors[i]);
    if (http->desk != NULL)
        desk_destroy(http->desk);
    fits_destroy(http->fits);
    if (http->server != NULL)
        server_destroy(http->server);
    if (http->courier != NULL)
        courier_destroy(http->courier);
    if (http->agent != NULL)
        link_close(http->agent, "the end");
}

static void answer_ping(struct link *agent)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string("pong"));
    link_send(agent, msg);
}

/* {"t": "leader", "address", "port"}, {"t": "ping"} */
static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct http *http = arg;
    const char *type = json_get_string(msg, "t"), *address = json_get_string(msg, "address");
    int64_t port;

    if (type != NULL && strcmp(type, "ping") == 0)
        answer_ping(link);
    if (type != NULL && strcmp(type, "leader") == 0 && address != NULL && !http->ending &&
        json_get_int(msg, "port", 0, UINT16_MAX, &port))
        courier_find(http->courier, (char *[]){(char *)(uintptr_t)address, NULL}, (int)port);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct http *http = arg;

    (void)link;
    (void)why;
    http->agent = NULL;
    end(http);
}

static int follow_agent(struct http *http, int fd, struct error *err)
{
    static const struct link_handlers handlers = {.message = on_message, .closed = on_closed};

    /* Slurm signals every process of a step; the agent decides when this process ends. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    http->agent = link_adopt(&http->loop, fd, false, &handlers, http, err);
    return http->agent != NULL ? 0 : -1;
}

static int begin(struct http *http, const struct arguments *a, struct error *err)
{
    struct courier_options courier = {
        .job = (uint32_t)a->job,
        .restarts = (uint32_t)a->restarts,
        .leader_uid = (uid_t)a->uid,
        .state_dir = a->state_dir,
    };
    char program[PATH_MAX];
    struct server_options server = {.patience_ms = PATIENCE_MS, .room = on_room, .arg = http};

    courier.conf = http->conf = conf_file_load(NULL, err);
    if (http->conf == NULL || (a->agent >= 0 && follow_agent(http, a->agent, err) != 0))
        return -1;
    http->courier = courier_create(&http->loop, &courier);
    if (http->courier == NULL ||
        (http->desk = desk_create(&http->loop, http->courier, HOLD_MS, WATCH_MS)) == NULL)
        return error_set(err, "out of memory");
    if (a->leader_count > 0)
        courier_find(http->courier, a->leaders, 0);
    http->fits = fits_create(&http->loop, http->courier, fit_program(program, sizeof(program)),
                             HOLD_MS);
    if (http->fits == NULL)
        return error_set(err, "out of memory");
    server.desk = http->desk;
    server.fits = http->fits;
    http->server = server_create(&http->loop, &server, err);
    if (http->server == NULL)
        return -1;
    for (int i = 0; i < a->door_count; i++) {
        http->doors[i] = door_open(&http->loop, a->doors[i], err);
        if (http->doors[i] == NULL)
            return -1;
    }
    on_room(http);
    return 0;
}

int main(int argc, char **argv)
{
    struct http http = {0};
    struct arguments arguments;
    struct error err = {""};
    int rc;

    log_init("elasticrun-http");
    if (read_arguments(&arguments, argc, argv) != 0) {
        log_error("elasticrun and `selastic proxy` start this program; there is nothing to be done "
                  "with it by hand");
        return 2;
    }
    if (sodium_init() < 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&http.loop);
    rc = begin(&http, &arguments, &err);
    if (rc != 0) {
        log_error("%s", err.text);
        end(&http);
    }
    uv_run(&http.loop, UV_RUN_DEFAULT);
    uv_loop_close(&http.loop);
    conf_destroy(http.conf);
    return rc != 0;
}
