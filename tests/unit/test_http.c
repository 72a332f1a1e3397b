/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP interface over real sockets: the server of http/ in this process, with a stand-in for
 * the leader; and elasticrun-http itself, as the agent starts it (agent/member/api.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/member/api.h"
#include "agent/port.h"
#include "agent/run_dir.h"
#include "common/courier.h"
#include "http/desk.h"
#include "http/door.h"
#include "http/server.h"
#include "lib/json_get.h"
#include "lib/reports.h"
#include "tests/unit/link_fixture.h"
#include "tests/unit/support.h"

#define ANSWER_MAX 65536
#define HOLD_MS    15000
#define WATCH_MS   15000
#define CLIENT_MS  15000
#define SHORT_MS   300

/* ---- a leader -------------------------------------------------------------------------------- */

/* A role "a" with so many replicas, which all run at once. */
struct leader {
    struct link_server *server;
    int target, epoch;
    const char *service; /* that the job runs; NULL: none */
    int looks, changes;
    int told;  /* times that it has said all of its roles */
    bool dies; /* after the next change, before the answer */
    struct reports *reports;
};

struct test {
    uv_loop_t loop;
    uv_timer_t tick; /* what is waited for may not be of the loop */
    struct leader leader;
    struct conf conf;
    struct courier *courier;
    struct desk *desk;
    struct fits *fits;
    struct server *server;
    struct door *door;
    int port, listening;
    char dir[64];
    char program[64]; /* that stands for elastic-fit */
};

static json_object *roles_of(const struct leader *leader)
{
    json_object *all = json_object_new_object(), *roles = json_object_new_array();
    json_object *role = json_object_new_object(), *replicas = json_object_new_array();

    json_object_object_add(role, "name", json_object_new_string("a"));
    json_object_object_add(role, "target", json_object_new_int(leader->target));
    json_object_array_add(roles, role);
    for (int i = 0; i < leader->target; i++) {
        json_object *one = json_object_new_object();
        char name[16];

        snprintf(name, sizeof(name), "a-%d", i);
        json_object_object_add(one, "name", json_object_new_string(name));
        json_object_object_add(one, "role", json_object_new_string("a"));
        json_object_object_add(one, "state", json_object_new_string("ready"));
        json_object_array_add(replicas, one);
    }
    json_object_object_add(all, "t", json_object_new_string("roles"));
    json_object_object_add(all, "epoch", json_object_new_int(leader->epoch));
    json_object_object_add(all, "roles", roles);
    json_object_object_add(all, "replicas", replicas);
    return all;
}

/* A report is in the file at once. */
static json_object *report_answer(struct leader *leader, json_object *msg)
{
    json_object *answer = json_object_new_object();
    int number;

    if (strcmp(json_get_string(msg, "t"), "reports") == 0) {
        int64_t after = 0;

        json_get_int(msg, "after", 0, 100, &after);
        json_object_object_add(answer, "t", json_object_new_string("reports"));
        reports_show(leader->reports, (int)after, answer);
        return answer;
    }
    reports_add(leader->reports, 1, json_get_string(msg, "role"), json_get_string(msg, "replica"),
                json_get_string(msg, "id"), json_get_string(msg, "report"), &number);
    free(reports_text(leader->reports));
    reports_written(leader->reports, true);
    json_object_object_add(answer, "t", json_object_new_string("done"));
    json_object_object_add(answer, "number", json_object_new_int(number));
    return answer;
}

static void on_question(struct link *link, json_object *msg, void *arg)
{
    struct leader *leader = arg;
    json_object *answer;
    int64_t count;

    if (strcmp(json_get_string(msg, "t"), "roles") == 0) {
        bool known = json_get_int(msg, "known", 0, INT32_MAX, &count) && count == leader->epoch;

        leader->looks++;
        leader->told += !known;
        answer = roles_of(leader);
        if (known)
            json_object_object_del(answer, "roles");
        link_send(link, answer);
        return;
    }
    if (strcmp(json_get_string(msg, "t"), "metrics") == 0) {
        answer = json_object_new_object();
        json_object_object_add(answer, "t", json_object_new_string("metrics"));
        json_object_object_add(answer, "job", json_object_new_int(12));
        json_object_object_add(answer, "size", json_object_new_int(2));
        link_send(link, answer);
        return;
    }
    if (strcmp(json_get_string(msg, "t"), "shards") == 0) {
        answer = json_object_new_object();
        json_object_object_add(
            answer, "t", json_object_new_string(leader->service != NULL ? "shards" : "error"));
        json_object_object_add(answer, "service", json_from_string(leader->service));
        link_send(link, answer);
        return;
    }
    if (strcmp(json_get_string(msg, "t"), "reports") == 0) {
        leader->looks++;
        link_send(link, report_answer(leader, msg));
        return;
    }
    leader->changes++;
    if (json_get_int(msg, "count", 0, 100, &count))
        leader->target = (int)count;
    leader->epoch++;
    if (strcmp(json_get_string(msg, "t"), "report") == 0) {
        answer = report_answer(leader, msg);
    } else {
        answer = json_object_new_object();
        json_object_object_add(answer, "t", json_object_new_string("done"));
    }
    if (leader->dies) {
        leader->dies = false;
        json_object_put(answer);
        link_close(link, "dead");
        return;
    }
    link_send(link, answer);
}

static void on_open(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void on_gone(struct link *link, const char *why, void *arg)
{
    (void)link;
    (void)why;
    (void)arg;
}

static void leader_begin(struct test *test)
{
    static const struct link_handlers handlers = {
        .open = on_open, .message = on_question, .closed = on_gone};
    struct link_server_options options = {.job_id = JOB,
                                          .munge_socket = munge_socket,
                                          .slurm_user = OTHER_UID,
                                          .port_first = port_first,
                                          .port_last = port_last};
    struct error err = {""};

    test->leader.server = link_server_create(&test->loop, &options, &handlers, &test->leader, &err);
    if (test->leader.server == NULL)
        fail_msg("%s", err.text);
}

static void leader_end(struct test *test)
{
    if (test->leader.server != NULL)
        link_server_destroy(test->leader.server);
    test->leader.server = NULL;
}

/* ---- a client -------------------------------------------------------------------------------- */

struct client {
    int fd;
    size_t length;
    char text[ANSWER_MAX];
    int status;
    const char *body;
};

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void client_connect(struct client *client, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *client = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    fcntl(client->fd, F_SETFL, O_NONBLOCK);
}

static void client_send(struct client *client, const char *text)
{
    assert_int_equal(send(client->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void client_ask(struct client *client, const char *first, const char *body)
{
    char text[2048];

    client->length = 0;
    snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %zu\r\n\r\n%s",
             first, strlen(body), body);
    client_send(client, text);
}

/* An answer is there, or the end of the connection (status 0). */
static bool has_answer(void *arg)
{
    struct client *client = arg;
    ssize_t got = recv(client->fd, client->text + client->length,
                       sizeof(client->text) - 1 - client->length, 0);
    char *length, *body;

    if (got > 0)
        client->length += (size_t)got;
    client->text[client->length] = '\0';
    body = strstr(client->text, "\r\n\r\n");
    length = strstr(client->text, "Content-Length: ");
    client->status = 0;
    if (body != NULL && length != NULL && strlen(body + 4) >= strtoul(length + 16, NULL, 10)) {
        client->status = atoi(client->text + 9);
        client->body = body + 4;
        return true;
    }
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

static int answer_of(struct test *test, struct client *client)
{
    assert_true(run_until(&test->loop, has_answer, client));
    return client->status;
}

static int get(struct test *test, const char *first, const char *body, const char *expected)
{
    struct client *client = malloc(sizeof(*client));
    int status;

    client_connect(client, test->port);
    client_ask(client, first, body);
    status = answer_of(test, client);
    if (strstr(client->text, expected) == NULL)
        fail_msg("%s: %s\nwithout: %s", first, client->text, expected);
    close(client->fd);
    free(client);
    return status;
}

/* ---- elastic-fit ----------------------------------------------------------------------------- */

#define FIT_PROGRAM "/tmp/elastic-test-http-fit.%d"

/* Prints its arguments and its input, without quotes, as a fit, and fails for fit 3. Fit 9 never
 * ends. */
static const char *fit_program(char *path, size_t size)
{
    static const char text[] =
        "#!/bin/sh\n"
        "for last; do :; done\n"
        "case $last in\n"
        "3) echo '{\"error\":\"there is no fit 3\"}'; exit 3;;\n"
        "9) exec sleep 600;;\n"
        "esac\n"
        "case $* in *--data=-*) input=$(tr -d '\"');; esac\n"
        "printf '{\"fit\":7,\"status\":\"SUCCESS\",\"run\":{},\"words\":\"%s\","
        "\"input\":\"%s\"}\\n' \"$*\" \"$input\"\n";
    FILE *file;

    snprintf(path, size, FIT_PROGRAM, getpid());
    file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    return path;
}

/* ---- the scene ------------------------------------------------------------------------------- */

static bool is_full(void *arg)
{
    return server_is_full(arg);
}

static void add(void *arg, int fd, const struct sockaddr *address, socklen_t size)
{
    server_add(arg, fd, address, size);
}

static void on_room(void *arg)
{
    struct test *test = arg;
    const struct door_room room = {.full = is_full, .add = add, .arg = test->server};

    if (test->door != NULL)
        door_serve(test->door, &room);
}

static void serve_with(struct test *test, int hold_ms, int watch_ms, int patience_ms)
{
    struct courier_options courier = {.job = JOB, .leader_uid = geteuid(), .conf = &test->conf};
    struct server_options server = {.patience_ms = patience_ms, .room = on_room, .arg = test};
    struct error err = {""};
    int fd;

    test->conf.munge_socket = (char *)(uintptr_t)munge_socket;
    test->conf.port_first = port_first;
    test->conf.port_last = port_last;
    test->courier = courier_create(&test->loop, &courier);
    test->desk = desk_create(&test->loop, test->courier, hold_ms, watch_ms);
    test->fits = fits_create(&test->loop, test->courier,
                             fit_program(test->program, sizeof(test->program)), hold_ms);
    server.desk = test->desk;
    server.fits = test->fits;
    test->server = server_create(&test->loop, &server, &err);
    assert_non_null(test->server);
    fd = test->listening = port_listen(&test->port, &err);
    assert_true(fd >= 0);
    test->door = door_open(&test->loop, fd, &err);
    assert_non_null(test->door);
    on_room(test);
    courier_find(test->courier, (char *[]){(char *)"127.0.0.1", NULL}, 0);
}

static int setup(void **state)
{
    struct test *test = calloc(1, sizeof(*test));

    uv_loop_init(&test->loop);
    uv_timer_init(&test->loop, &test->tick);
    uv_timer_start(&test->tick, on_tick, 2, 2);
    test->leader = (struct leader){.target = 2, .epoch = 5, .reports = reports_create()};
    leader_begin(test);
    *state = test;
    return 0;
}

static void stop_server(struct test *test)
{
    struct door *door = test->door;

    if (test->server == NULL)
        return;
    test->door = NULL;
    door_close(door);
    desk_destroy(test->desk);
    fits_destroy(test->fits);
    server_destroy(test->server);
    courier_destroy(test->courier);
    test->server = NULL;
}

static int teardown(void **state)
{
    struct test *test = *state;

    leader_end(test);
    stop_server(test);
    unlink(test->program);
    uv_close((uv_handle_t *)&test->tick, NULL);
    assert_true(run_empty(&test->loop));
    reports_destroy(test->leader.reports);
    free(test);
    return 0;
}

static void serve_well(struct test *test)
{
    serve_with(test, HOLD_MS, WATCH_MS, CLIENT_MS);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_answers(void **state)
{
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client));

    serve_well(test);
    assert_int_equal(get(test, "GET /healthz", "", "Content-Length: 0"), 200);
    assert_int_equal(get(test, "GET /v1/roles", "{}", "\"epoch\":5,\"roles\":[{\"name\":\"a\""),
                     200);
    assert_int_equal(get(test, "GET /v1/roles/a", "", "ETag: \"5\""), 200);
    assert_int_equal(get(test, "GET /v1/roles/b", "", "\"success\":false,\"code\":404"), 404);
    assert_int_equal(get(test, "PUT /v1/roles/a", "", "Allow: GET, PATCH"), 405);
    assert_int_equal(get(test, "PATCH /v1/roles/a", "{\"replicas\":4}",
                         "a: 4 replicas (was 2): 2 asked for, 2 started"),
                     200);
    assert_int_equal(get(test, "GET /metrics", "", "elastic_http_requests_total{code=\"404\"} 1"),
                     200);
    assert_int_equal(test->leader.changes, 1);
    /* One connection, several requests. */
    client_connect(client, test->port);
    for (int i = 0; i < 3; i++) {
        client_ask(client, "GET /v1/roles/a/replicas/a-3", "");
        assert_int_equal(answer_of(test, client), 200);
    }
    close(client->fd);
    free(client);
}

static void test_watch(void **state)
{
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client));

    serve_well(test);
    client_connect(client, test->port);
    client_ask(client, "GET /v1/watch?after=5", "");
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);
    assert_int_equal(test->leader.told, 1); /* what the watch knows is not said */
    assert_false(has_answer(client));
    test->leader.epoch = 6;
    assert_int_equal(answer_of(test, client), 200);
    assert_non_null(strstr(client->body, "\"epoch\":6"));
    close(client->fd);
    free(client);
}

/* Many that look at once are one question, or two. */
static void test_looks_are_shared(void **state)
{
    struct test *test = *state;
    struct client *clients = calloc(100, sizeof(*clients));
    int before;

    serve_well(test);
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);
    before = test->leader.looks;
    for (int i = 0; i < 100; i++) {
        client_connect(&clients[i], test->port);
        client_ask(&clients[i], "GET /v1/roles", "");
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(answer_of(test, &clients[i]), 200);
        close(clients[i].fd);
    }
    assert_in_range(test->leader.looks - before, 1, 30);
    free(clients);
}

/* No leader, and then one: clients have waited. */
static void test_held(void **state)
{
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client)), *other = malloc(sizeof(*other));

    leader_end(test);
    serve_well(test);
    client_connect(client, test->port);
    client_ask(client, "GET /v1/roles", "");
    client_connect(other, test->port);
    client_ask(other, "PATCH /v1/roles/a", "{\"replicas\":3}");
    assert_int_equal(get(test, "GET /healthz", "", "200 OK"), 200);
    assert_false(has_answer(client));
    leader_begin(test);
    assert_int_equal(answer_of(test, client), 200);
    assert_int_equal(answer_of(test, other), 200);
    assert_int_equal(test->leader.target, 3);
    close(client->fd);
    close(other->fd);
    free(client);
    free(other);
}

/* A leader that dies after the change, and before its answer. */
static void test_a_change_is_made_once(void **state)
{
    struct test *test = *state;

    serve_well(test);
    test->leader.dies = true;
    assert_int_equal(get(test, "POST /v1/roles/a/replicas", "{\"count\":3}",
                         "a: 5 replicas (was 2): 3 asked for, 3 started"),
                     200);
    assert_int_equal(test->leader.target, 5);
    assert_int_equal(test->leader.changes, 1);
}

/* … and so with a report: it is asked for again, and the leader knows it. */
static void test_a_report_is_kept_once(void **state)
{
    struct test *test = *state;

    serve_well(test);
    test->leader.dies = true;
    assert_int_equal(
        get(test, "POST /v1/roles/a/replicas/a-0/report", "{\"path\":\"/d\"}", "\"number\":1"),
        200);
    assert_int_equal(test->leader.changes, 2);
    assert_int_equal(reports_last(test->leader.reports), 1);
    /* The same again is another report: it has another id. */
    assert_int_equal(
        get(test, "POST /v1/roles/a/replicas/a-0/report", "{\"path\":\"/d\"}", "\"number\":2"),
        200);
    assert_int_equal(get(test, "GET /v1/reports?after=1", "", "\"message\":\"1 report\""), 200);
}

/* Who waits for a report hears of it. */
static void test_reports_are_waited_for(void **state)
{
    struct test *test = *state;
    struct client *watcher = malloc(sizeof(*watcher));

    serve_well(test);
    client_connect(watcher, test->port);
    client_ask(watcher, "GET /v1/reports?after=0", "");
    assert_int_equal(
        get(test, "POST /v1/roles/a/replicas/a-1/report", "{\"path\":\"/d\"}", "report 1"), 200);
    assert_int_equal(answer_of(test, watcher), 200);
    assert_non_null(strstr(watcher->body, "\"replica\":\"a-1\""));
    close(watcher->fd);
    free(watcher);
}

static void test_nobody_leads(void **state)
{
    struct test *test = *state;

    leader_end(test);
    serve_with(test, SHORT_MS, SHORT_MS, CLIENT_MS);
    assert_int_equal(get(test, "GET /v1/roles", "", "no leader of the job answers"), 503);
    assert_int_equal(get(test, "GET /v1/watch?after=5", "", "no leader of the job answers"), 503);
}

static void test_nothing_changes(void **state)
{
    struct test *test = *state;

    serve_with(test, HOLD_MS, 4 * SHORT_MS, CLIENT_MS);
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);
    assert_int_equal(get(test, "GET /v1/watch?after=5", "", "nothing has changed"), 200);
}

/* Requests that wait are answered before the end. */
static void test_the_end(void **state)
{
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client));

    leader_end(test);
    serve_well(test);
    client_connect(client, test->port);
    client_ask(client, "GET /v1/roles", "");
    assert_int_equal(get(test, "GET /healthz", "", "200 OK"), 200);
    stop_server(test);
    assert_int_equal(answer_of(test, client), 503);
    close(client->fd);
    free(client);
}

/* ---- bad clients ----------------------------------------------------------------------------- */

static void assert_undisturbed(struct test *test)
{
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);
}

static void test_too_much(void **state)
{
    static const char large[] = "POST /v1/roles/a/replicas HTTP/1.1\r\nHost: localhost\r\n"
                                "Content-Length: 1048577\r\n\r\n";
    static const char chunked[] = "POST /v1/roles/a/replicas HTTP/1.1\r\nHost: localhost\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n";
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client));
    char *flood = malloc(100001), chunk[1100];

    serve_well(test);
    client_connect(client, test->port);
    client_send(client, large);
    assert_int_equal(answer_of(test, client), 413);
    close(client->fd);

    /* Nobody says beforehand how much it is. */
    client_connect(client, test->port);
    client_send(client, chunked);
    memset(chunk, ' ', sizeof(chunk));
    memcpy(chunk, "400\r\n", 5);
    memcpy(chunk + 5 + 1024, "\r\n", 3);
    for (size_t sent = 0; sent < (1 << 20) + 4096; sent += 1024) {
        for (size_t at = 0; at < strlen(chunk);) {
            ssize_t count = send(client->fd, chunk + at, strlen(chunk) - at, MSG_NOSIGNAL);

            if (count < 0)
                uv_run(&test->loop, UV_RUN_ONCE);
            else
                at += (size_t)count;
        }
    }
    client_send(client, "0\r\n\r\n");
    assert_int_equal(answer_of(test, client), 413);
    close(client->fd);

    client_connect(client, test->port);
    memset(flood, 'x', 100000);
    memcpy(flood, "GET / HTTP/1.1\r\nX: ", 19);
    flood[100000] = '\0';
    (void)!send(client->fd, flood, 100000, MSG_NOSIGNAL);
    assert_int_equal(answer_of(test, client), 431);
    close(client->fd);
    assert_undisturbed(test);
    free(flood);
    free(client);
}

static void test_no_http(void **state)
{
    static const char *const texts[] = {"\r\n\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n",
                                        "GET /v1/roles HTTP/1.1\r\nHost: x\r\n\r\n"};
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client));

    serve_with(test, HOLD_MS, WATCH_MS, SHORT_MS);
    for (size_t i = 0; i < COUNT(texts); i++) {
        client_connect(client, test->port);
        client_send(client, texts[i]);
        assert_true(answer_of(test, client) != 200);
        close(client->fd);
    }
    assert_undisturbed(test);
    free(client);
}

/* Who sends a byte now and then is cut off all the same. */
static void test_slow_clients(void **state)
{
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client)), *idle = malloc(sizeof(*idle));

    serve_with(test, HOLD_MS, WATCH_MS, SHORT_MS);
    client_connect(idle, test->port);
    client_connect(client, test->port);
    client_send(client, "GET /v1/roles HTTP/1.1\r\nX: ");
    for (uint64_t next = 0; !has_answer(client);) {
        if (uv_now(&test->loop) >= next) {
            (void)!send(client->fd, "y", 1, MSG_NOSIGNAL);
            next = uv_now(&test->loop) + SHORT_MS / 10;
        }
        uv_run(&test->loop, UV_RUN_ONCE);
    }
    assert_int_equal(client->status, 0);
    assert_int_equal(answer_of(test, idle), 0);
    close(client->fd);
    close(idle->fd);
    assert_undisturbed(test);
    free(client);
    free(idle);
}

/* One more than there may be waits until another one goes. */
static void test_many_connections(void **state)
{
    struct test *test = *state;
    struct client *clients = calloc(SERVER_CONNECTIONS + 1, sizeof(*clients));
    struct client *last = &clients[SERVER_CONNECTIONS];

    serve_well(test);
    for (int i = 0; i <= SERVER_CONNECTIONS; i++) {
        client_connect(&clients[i], test->port);
        client_ask(&clients[i], "GET /healthz", "");
        if (i < SERVER_CONNECTIONS)
            assert_int_equal(answer_of(test, &clients[i]), 200);
    }
    for (int i = 0; i < 50; i++)
        uv_run(&test->loop, UV_RUN_ONCE);
    assert_false(has_answer(last));
    close(clients[0].fd);
    assert_int_equal(answer_of(test, last), 200);
    for (int i = 1; i <= SERVER_CONNECTIONS; i++)
        close(clients[i].fd);
    free(clients);
}

static bool nobody_waits(void *arg)
{
    return desk_waiting(((struct test *)arg)->desk) == 0;
}

static bool one_waits(void *arg)
{
    return desk_waiting(((struct test *)arg)->desk) == 1;
}

static bool all_wait(void *arg)
{
    return desk_waiting(((struct test *)arg)->desk) == DESK_MAX;
}

/* A client that goes while its request waits is let go at once. What has not been asked for is not
 * asked for any more. */
static void test_clients_that_go(void **state)
{
    static const char *const requests[] = {"GET /v1/watch?after=5", "GET /v1/roles",
                                           "PATCH /v1/roles/a"};
    struct test *test = *state;
    struct client *client = malloc(sizeof(*client));

    serve_with(test, 2 * PATIENCE_MS, 2 * PATIENCE_MS, CLIENT_MS);
    for (size_t i = 0; i < 2 * COUNT(requests); i++) {
        struct linger reset = {.l_onoff = 1};
        size_t which = i / 2;

        if (which == 1)
            leader_end(test);
        client_connect(client, test->port);
        client_ask(client, requests[which], which == 2 ? "{\"replicas\":3}" : "");
        assert_true(run_until(&test->loop, one_waits, test));
        if (i % 2 == 1) /* by a reset of the connection */
            setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(client->fd);
        assert_true(run_until(&test->loop, nobody_waits, test));
    }
    leader_begin(test);
    assert_int_equal(get(test, "GET /metrics", "", "elastic_http_connections 1"), 200);
    assert_int_equal(test->leader.changes, 0);
    free(client);
}

/* One more than may wait is refused, and has its turn once another one has gone. */
static void test_many_wait(void **state)
{
    struct test *test = *state;
    struct client *clients = calloc(DESK_MAX, sizeof(*clients));

    serve_well(test);
    for (int i = 0; i < DESK_MAX; i++) {
        client_connect(&clients[i], test->port);
        client_ask(&clients[i], "GET /v1/watch?after=5", "");
    }
    assert_int_equal(get(test, "GET /healthz", "", "200 OK"), 200);
    assert_true(run_until(&test->loop, all_wait, test));
    assert_int_equal(get(test, "GET /v1/roles", "", "Retry-After: 1\r\n"), 503);
    assert_int_equal(get(test, "GET /v1alpha1/replicas?namespace=1", "", "too many requests"), 503);
    assert_int_equal(get(test, "GET /nothing", "", "404"), 404);
    assert_int_equal(get(test, "GET /healthz", "", "200 OK"), 200);
    for (int i = 0; i < DESK_MAX; i++)
        close(clients[i].fd);
    assert_true(run_until(&test->loop, nobody_waits, test));
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);
    free(clients);
}

struct other {
    pid_t pid; /* 0: it has ended */
    int status;
};

static bool has_ended(void *arg)
{
    struct other *other = arg;

    if (other->pid != 0 && waitpid(other->pid, &other->status, WNOHANG) == other->pid)
        other->pid = 0;
    return other->pid == 0;
}

/* Another user's connection ends before a byte of it is read. */
static void test_another_user(void **state)
{
    struct test *test = *state;
    struct other other;

    if (geteuid() != 0)
        skip();
    serve_well(test);
    other.pid = fork();
    if (other.pid == 0) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)test->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        char byte;
        int fd;

        if (setuid(OTHER_UID) != 0 || (fd = socket(AF_INET, SOCK_STREAM, 0)) < 0 ||
            connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
            _exit(1);
        (void)!send(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 43, MSG_NOSIGNAL);
        _exit(recv(fd, &byte, 1, 0) > 0 ? 2 : 0);
    }
    assert_true(run_until(&test->loop, has_ended, &other));
    assert_int_equal(other.status, 0);
    assert_int_equal(get(test, "GET /metrics", "", "elastic_http_requests_total{code=\"200\"} 0"),
                     200);
}

/* Clients that have not been accepted. */
static int queued(const struct test *test)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);

    assert_int_equal(getsockopt(test->listening, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return (int)info.tcpi_unacked;
}

static bool nobody_queues(void *arg)
{
    return queued(arg) == 0;
}

/* Another user who connects as fast as the server closes takes a turn of the loop no longer than
 * one who does not. */
static void test_many_of_another_user(void **state)
{
    enum { MANY = 64 };
    struct test *test = *state;
    struct other other;
    int ready[2];
    char byte;

    if (geteuid() != 0)
        skip();
    serve_well(test);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    other.pid = fork();
    if (other.pid == 0) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)test->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        if (setuid(OTHER_UID) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
            _exit(1);
        for (int i = 0; i < MANY; i++)
            if (connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address,
                        sizeof(address)) != 0)
                _exit(1);
        (void)!write(ready[1], "", 1);
        pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_int_equal(queued(test), MANY);
    uv_run(&test->loop, UV_RUN_NOWAIT);
    assert_in_range(queued(test), MANY / 2, MANY - 1);
    assert_true(run_until(&test->loop, nobody_queues, test));
    kill(other.pid, SIGKILL);
    assert_true(run_until(&test->loop, has_ended, &other));
    assert_int_equal(get(test, "GET /healthz", "", "Content-Length: 0"), 200);
}

/* ---- elasticrun-http ------------------------------------------------------------------------- */

static void write_conf(struct test *test)
{
    char path[128];
    FILE *file;

    snprintf(test->dir, sizeof(test->dir), "/tmp/elastic-test-http-XXXXXX");
    assert_non_null(mkdtemp(test->dir));
    snprintf(path, sizeof(path), "%s/elastic.conf", test->dir);
    file = fopen(path, "we");
    fprintf(file, "munge_socket = %s\nport_range = %d-%d\n", munge_socket, port_first, port_last);
    fclose(file);
    setenv("ELASTIC_CONF", path, 1);
}

/* The only child of this process that is not munged. */
static pid_t child(void)
{
    char path[64], name[64];
    FILE *list;
    int pid, found = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    list = fopen(path, "re");
    while (fscanf(list, "%d", &pid) == 1) {
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        file = fopen(path, "re");
        if (file != NULL && fgets(name, sizeof(name), file) != NULL && strstr(name, "http") != NULL)
            found = pid;
        if (file != NULL)
            fclose(file);
    }
    fclose(list);
    return found;
}

static bool is_started(void *arg)
{
    (void)arg;
    return child() != 0;
}

static bool is_replaced(void *arg)
{
    pid_t pid = child();

    return pid != 0 && pid != *(pid_t *)arg;
}

static void on_api_gone(void *arg)
{
    *(bool *)arg = true;
}

static bool is_true(void *arg)
{
    return *(bool *)arg;
}

static void test_the_program(void **state)
{
    struct test *test = *state;
    const char *top = getenv("top_builddir");
    struct client *client = malloc(sizeof(*client));
    struct error err = {""};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    char program[256], path[128];
    bool gone = false;
    pid_t hangs;
    struct api *api;

    snprintf(program, sizeof(program), "%s/http/elasticrun-http", top != NULL ? top : ".");
    write_conf(test);
    api = api_create(
        &test->loop,
        &(struct api_options){
            .program = program, .node = "n1", .run_dir = test->dir, .job = JOB, .ping_ms = 500},
        &err);
    if (api == NULL)
        fail_msg("%s", err.text);
    assert_int_equal(sscanf(api_url(api), "http://127.0.0.1:%d", &test->port), 1);
    api_leader(api, "127.0.0.1", link_server_port(test->leader.server));
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);

    /* The socket in the run directory. */
    assert_int_equal(stat(api_socket(api), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", api_socket(api));
    *client = (struct client){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)};
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    client_ask(client, "GET /v1/roles/a", "");
    assert_int_equal(answer_of(test, client), 200);
    close(client->fd);

    /* Another leader, while a request waits for one. */
    leader_end(test);
    client_connect(client, test->port);
    client_ask(client, "GET /v1/roles", "");
    leader_begin(test);
    api_leader(api, "127.0.0.1", link_server_port(test->leader.server));
    assert_int_equal(answer_of(test, client), 200);
    close(client->fd);

    /* Another process at the same port. A client that comes meanwhile waits. */
    assert_true(run_until(&test->loop, is_started, NULL));
    kill(child(), SIGKILL);
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);

    /* … and another one for a process that hangs, with a client in its queue. */
    assert_true(run_until(&test->loop, is_started, NULL));
    hangs = child();
    kill(hangs, SIGSTOP);
    client_connect(client, test->port);
    assert_true(run_until(&test->loop, is_replaced, &hangs));
    close(client->fd);
    assert_int_equal(get(test, "GET /v1/roles", "", "\"epoch\":5"), 200);

    api_destroy(api, on_api_gone, &gone);
    assert_true(run_until(&test->loop, is_true, &gone));
    assert_int_equal(child(), 0);
    snprintf(path, sizeof(path), "%s/elastic.conf", test->dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/api", test->dir);
    unlink(path);
    rmdir(test->dir);
    unsetenv("ELASTIC_CONF");
    free(client);
}

/* A port that the kernel has chosen is its again once nobody listens. */
static bool is_kernels(int port)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    int low = 0, high = 65535;

    if (file != NULL && fscanf(file, "%d %d", &low, &high) != 2)
        low = 0;
    if (file != NULL)
        fclose(file);
    return low <= port && port <= high;
}

static bool can_listen(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    bool can = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
               bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    close(fd);
    return can;
}

static void test_no_program(void **state)
{
    struct test *test = *state;
    struct error err = {""};
    bool gone = false;
    struct api *api;
    struct client client;

    write_conf(test);
    api = api_create(&test->loop,
                     &(struct api_options){.program = "/nonexistent/elasticrun-http",
                                           .node = "n1",
                                           .run_dir = test->dir,
                                           .job = JOB},
                     &err);
    assert_non_null(api);
    assert_int_equal(sscanf(api_url(api), "http://127.0.0.1:%d", &test->port), 1);
    client.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(
        connect(client.fd,
                (struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET,
                                                         .sin_port = htons((uint16_t)test->port),
                                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                sizeof(struct sockaddr_in)),
        -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(client.fd);
    assert_true(is_kernels(test->port) || !can_listen(test->port));
    api_destroy(api, on_api_gone, &gone);
    assert_true(run_until(&test->loop, is_true, &gone));
    unlink(getenv("ELASTIC_CONF"));
    rmdir(test->dir);
    unsetenv("ELASTIC_CONF");
}

static void test_trainings(void **state)
{
    struct test *test = *state;

    serve_well(test);
    assert_int_equal(get(test, "GET /v1/fits/7", "", "the job runs no service"), 404);
    test->leader.service = "../adapters";
    assert_int_equal(get(test, "GET /v1/fits/7", "", "what the leader names is no service"), 502);
    test->leader.service = "adapters";
    assert_int_equal(get(test, "GET /v1/fits/7", "", "\"words\":\"show --json -- adapters 7\""),
                     200);
    assert_int_equal(get(test, "POST /v1/fits", "{\"data\":\"/d\"}",
                         "\"words\":\"start --json --data=- -- adapters\",\"input\":\"{data:/d}\""),
                     200);
    assert_int_equal(get(test, "GET /v1/fine_tuning/jobs/ftjob-7", "", "\"status\":\"succeeded\""),
                     200);
    assert_int_equal(get(test, "GET /v1/fits/3", "", "there is no fit 3"), 404);
    assert_int_equal(get(test, "GET /v1/fits/0", "", "there is no '/v1/fits/0'"), 404);
    unlink(test->program);
    assert_int_equal(get(test, "GET /v1/fits/7", "", "elastic-fit cannot be run"), 500);
}

struct crowd {
    struct client clients[FITS_MAX + 1];
    int answered; /* one that has an answer */
};

static bool has_one_answer(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i <= FITS_MAX; i++)
        if (has_answer(&crowd->clients[i])) {
            crowd->answered = i;
            return true;
        }
    return false;
}

/* One more than may be at once is refused; a client goes; then all ends. */
static void test_trainings_that_hang(void **state)
{
    struct test *test = *state;
    struct crowd *crowd = calloc(1, sizeof(*crowd));

    serve_well(test);
    test->leader.service = "adapters";
    for (int i = 0; i <= FITS_MAX; i++) {
        client_connect(&crowd->clients[i], test->port);
        client_ask(&crowd->clients[i], "GET /v1/fits/9", "");
    }
    assert_true(run_until(&test->loop, has_one_answer, crowd));
    assert_int_equal(crowd->clients[crowd->answered].status, 503);
    close(crowd->clients[crowd->answered == 0].fd);
    assert_int_equal(get(test, "GET /healthz", "", "Content-Length: 0"), 200);
    stop_server(test);
    for (int i = 0; i <= FITS_MAX; i++)
        if (i != (crowd->answered == 0))
            close(crowd->clients[i].fd);
    free(crowd);
}

#define http_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        http_test(test_answers),
        http_test(test_watch),
        http_test(test_looks_are_shared),
        http_test(test_held),
        http_test(test_a_change_is_made_once),
        http_test(test_a_report_is_kept_once),
        http_test(test_reports_are_waited_for),
        http_test(test_nobody_leads),
        http_test(test_nothing_changes),
        http_test(test_the_end),
        http_test(test_too_much),
        http_test(test_no_http),
        http_test(test_slow_clients),
        http_test(test_many_connections),
        http_test(test_clients_that_go),
        http_test(test_many_wait),
        http_test(test_trainings),
        http_test(test_trainings_that_hang),
        http_test(test_another_user),
        http_test(test_many_of_another_user),
        http_test(test_the_program),
        http_test(test_no_program),
    };

    signal(SIGPIPE, SIG_IGN);
    return scene_run(argc, argv, tests);
}
