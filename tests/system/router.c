/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells a real haproxy what lib/haproxy_text says (router.bats). In a directory of its own:
 *
 *   router config DIR PORT A         files: routes of tenant_A and tenant_B to shard_1, with A
 *   router move DIR PORT B           B is shard_2's; tenant_B goes there, with 10,000 routes more
 *   router replace DIR PORT A OTHER  OTHER is shard_1's, and A leaves it
 *
 * PORT is haproxy's, the others are those of replicas. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/haproxy_text.h"
#include "lib/text.h"

#define PATIENCE 120.0 /* seconds */
#define OTHERS   10000

static char map[96], sock[96], file[96], bind_to[32];
static struct haproxy_config config = {.bind = bind_to,
                                       .socket = sock,
                                       .map = map,
                                       .by = HAPROXY_JSON,
                                       .what = "$.model",
                                       .health = "/ready"};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "router: %s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The answer to a command, which lives until the next one. */
static const char *ask(char *command, const struct error *err)
{
    static char answer[1 << 16];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = 0;
    ssize_t got;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (command == NULL)
        fail("no command", err->text);
    memcpy(address.sun_path, sock, strlen(sock));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        write(fd, command, strlen(command)) != (ssize_t)strlen(command) ||
        shutdown(fd, SHUT_WR) != 0)
        fail(command, strerror(errno));
    while ((got = read(fd, answer + length, sizeof(answer) - 1 - length)) > 0)
        length += (size_t)got;
    answer[length] = '\0';
    close(fd);
    return answer;
}

static void tell(enum haproxy_verb verb, int shard, const struct haproxy_server *server)
{
    struct error err = {""};
    char *command = haproxy_server_command(verb, &config, shard, server, &err);
    const char *answer = ask(command, &err);

    if (strcmp(answer, "\n") != 0 && strstr(answer, "New server registered.") == NULL)
        fail(command, answer);
    free(command);
}

static void pause_shortly(double since, const char *what, const char *answer)
{
    if (now() > since + PATIENCE)
        fail(what, answer);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Its row of `show stat`: shard_1,NAME,…,UP,… */
static void wait_until_up(int shard, const struct haproxy_server *server)
{
    double since = now();
    char row[64];

    snprintf(row, sizeof(row), "\nshard_%d,%s,", shard, server->name);
    for (;;) {
        char question[] = "show stat -1 4 -1\n";
        const char *answer = ask(question, NULL), *found = strstr(answer, row);

        if (found != NULL && memmem(found + 1, strcspn(found + 1, "\n"), ",UP,", 4) != NULL)
            return;
        pause_shortly(since, "it does not get ready", answer);
    }
}

static void add(int shard, const struct haproxy_server *server)
{
    tell(HAPROXY_ADD, shard, server);
    tell(HAPROXY_ENABLE, shard, server);
    tell(HAPROXY_CHECK, shard, server);
    wait_until_up(shard, server);
}

/* It has to be without connections. */
static void take_away(int shard, const struct haproxy_server *server)
{
    struct error err = {""};
    double since = now();

    tell(HAPROXY_DRAIN, shard, server);
    tell(HAPROXY_MAINT, shard, server);
    for (;;) {
        char *command = haproxy_server_command(HAPROXY_DELETE, &config, shard, server, &err);
        const char *answer = ask(command, &err);

        free(command);
        if (strstr(answer, "Server deleted.") != NULL)
            return;
        pause_shortly(since, "it cannot be deleted", answer);
    }
}

static int64_t entries(void)
{
    char question[] = "show map\n";

    return haproxy_entries_of(ask(question, NULL), map);
}

static void switch_routes(const struct haproxy_route *routes, int count)
{
    struct error err = {""};
    double since = now();
    char *command = haproxy_prepare(&config, &err), **pieces;
    int64_t before = entries(), version = haproxy_version_of(ask(command, &err));

    pieces = haproxy_pieces(&config, version, routes, count, &err);
    if (version < 0 || before < 0 || pieces == NULL)
        fail(command, err.text);
    free(command);
    for (char **piece = pieces; *piece != NULL; piece++)
        if (strcmp(ask(*piece, &err), "\n") != 0)
            fail(*piece, "not taken");
    if (entries() != before + count)
        fail("routes", "not all are there");
    strings_free(pieces);
    command = haproxy_commit(&config, version, &err);
    if (strcmp(ask(command, &err), "\n") != 0)
        fail(command, "not taken");
    free(command);
    printf("%d routes replaced in %.1f ms\n", count, 1e3 * (now() - since));
}

static void move(const struct haproxy_server *to)
{
    static struct haproxy_route routes[OTHERS + 2] = {{"tenant_A", 1}, {"tenant_B", 2}};
    static char keys[OTHERS][24];

    for (int i = 0; i < OTHERS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "other_%d", i);
        routes[i + 2] = (struct haproxy_route){keys[i], 1};
    }
    add(2, to);
    switch_routes(routes, 2);
    switch_routes(routes, OTHERS + 2);
}

static void write_text(const char *path, char *text, const struct error *err)
{
    FILE *out;

    if (text == NULL)
        fail(path, err->text);
    out = fopen(path, "w");
    if (out == NULL || fputs(text, out) < 0 || fclose(out) != 0)
        fail(path, strerror(errno));
    free(text);
}

static void write_files(const struct haproxy_server *first)
{
    static const struct haproxy_route routes[] = {{"tenant_A", 1}, {"tenant_B", 1}};
    const struct haproxy_shard shards[] = {{1, NULL, first, 1}, {2, NULL, NULL, 0}};
    struct error err = {""};

    write_text(map, haproxy_map_text(routes, 2, &err), &err);
    write_text(file, haproxy_config_text(&config, shards, 2, &err), &err);
}

int main(int argc, char **argv)
{
    struct haproxy_server first = {"first", "127.0.0.1", 0}, other = {"other", "127.0.0.1", 0};

    if (argc < 5)
        fail("usage", "router config|move|replace DIR PORT REPLICA…");
    snprintf(map, sizeof(map), "%s/routes.map", argv[2]);
    snprintf(sock, sizeof(sock), "%s/haproxy.sock", argv[2]);
    snprintf(file, sizeof(file), "%s/haproxy.cfg", argv[2]);
    snprintf(bind_to, sizeof(bind_to), "127.0.0.1:%s", argv[3]);
    first.port = atoi(argv[4]);
    if (strcmp(argv[1], "config") == 0) {
        write_files(&first);
    } else if (strcmp(argv[1], "move") == 0) {
        move(&first);
    } else if (argc == 6) {
        other.port = atoi(argv[5]);
        add(1, &other);
        take_away(1, &first);
    }
    return 0;
}
