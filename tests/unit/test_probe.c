/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/member/probe: tasks that get ready, do not, lie, and do not answer. */
#include "tests/unit/workers_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/member/http.h"
#include "agent/member/probe.h"

#define EVERY  0.02
#define SILENT 15 /* turns of the loop, for what must not happen */

/* ---- a server -------------------------------------------------------------------------------- */

struct server {
    uv_tcp_t listener;
    int port;
    const char *answer; /* NULL: none ever */
    int requests, open;
    bool closed;
};

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char text[4096];

    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(text, sizeof(text));
}

static void on_closed(uv_handle_t *handle)
{
    ((struct server *)handle->data)->open--;
    free(handle);
}

static void on_request(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct server *server = stream->data;
    uv_buf_t answer;

    (void)buf;
    if (got < 0) {
        uv_close((uv_handle_t *)stream, on_closed);
        return;
    }
    server->requests++;
    if (server->answer == NULL)
        return;
    answer = uv_buf_init((char *)server->answer, (unsigned)strlen(server->answer));
    uv_try_write(stream, &answer, 1);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    uv_tcp_t *tcp = calloc(1, sizeof(*tcp));

    assert_int_equal(status, 0);
    uv_tcp_init(listener->loop, tcp);
    tcp->data = server;
    server->open++;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)tcp), 0);
    uv_read_start((uv_stream_t *)tcp, on_alloc, on_request);
}

static void serve(struct run *run, struct server *server, const char *address, const char *answer)
{
    struct sockaddr_in at;
    int len = sizeof(at);

    *server = (struct server){.answer = answer, .port = server->port};
    uv_ip4_addr(address, server->port, &at);
    uv_tcp_init(&run->loop, &server->listener);
    server->listener.data = server;
    assert_int_equal(uv_tcp_bind(&server->listener, (struct sockaddr *)&at, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&server->listener, 10, on_connection), 0);
    uv_tcp_getsockname(&server->listener, (struct sockaddr *)&at, &len);
    server->port = ntohs(at.sin_port);
}

static void on_listener_closed(uv_handle_t *handle)
{
    ((struct server *)handle->data)->closed = true;
}

static void stop_serving(struct run *run, struct server *server)
{
    uv_close((uv_handle_t *)&server->listener, on_listener_closed);
    AWAIT(run, server->closed);
}

/* ---- a probe --------------------------------------------------------------------------------- */

struct looked {
    struct probe *probe;
    int ready, unready;
    char why[512];
    bool destroy; /* when it is ready */
};

static void on_ready(void *arg)
{
    struct looked *looked = arg;

    looked->ready++;
    if (looked->destroy) {
        probe_destroy(looked->probe);
        looked->probe = NULL;
    }
}

static void on_unready(const char *why, void *arg)
{
    struct looked *looked = arg;

    looked->unready++;
    snprintf(looked->why, sizeof(looked->why), "%s", why);
}

static const struct probe_handlers handlers = {.ready = on_ready, .unready = on_unready};

static void begin(struct run *run, struct looked *looked, const struct probe_options *options)
{
    *looked = (struct looked){0};
    looked->probe = probe_create(&run->loop, options, &handlers, looked);
    assert_non_null(looked->probe);
}

static void turn(struct run *run, int turns)
{
    run_await_begin(run);
    for (int i = 0; i < turns; i++)
        assert_true(run_turn(run));
}

/* A server, and a probe that looks at it. */
struct scene {
    struct run *run;
    struct server server;
    struct looked looked;
};

static void scene_begin(struct scene *s, struct probe_options *options, const char *answer)
{
    s->run = run_create(1);
    s->server.port = 0;
    serve(s->run, &s->server, options->address != NULL ? options->address : "127.0.0.1", answer);
    options->port = s->server.port;
    begin(s->run, &s->looked, options);
}

static void scene_end(struct scene *s)
{
    probe_destroy(s->looked.probe);
    AWAIT(s->run, s->server.open == 0);
    stop_serving(s->run, &s->server);
    run_destroy(s->run);
}

static void test_tcp(void **state)
{
    struct run *run = run_create(1);
    struct server server = {0};
    struct looked looked;
    struct probe_options options = {.how = ROLE_PROBE_TCP, .every = EVERY, .address = "127.0.0.1"};

    (void)state;
    serve(run, &server, "127.0.0.1", NULL); /* for its port */
    stop_serving(run, &server);
    options.port = server.port;
    begin(run, &looked, &options);
    turn(run, SILENT);
    assert_int_equal(looked.ready, 0);
    serve(run, &server, "127.0.0.1", NULL);
    AWAIT(run, looked.ready > 0);
    turn(run, SILENT);
    assert_int_equal(looked.ready, 1);
    stop_serving(run, &server);
    AWAIT(run, looked.unready > 0);
    assert_non_null(strstr(looked.why, "port "));
    assert_non_null(strstr(looked.why, "connection refused"));
    turn(run, SILENT);
    assert_int_equal(looked.unready, 1);
    probe_destroy(looked.probe);
    run_destroy(run);
}

static void test_own_address(void **state)
{
    static const enum role_probe kinds[] = {ROLE_PROBE_TCP, ROLE_PROBE_HTTP};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct scene s;
        struct probe_options options = {
            .how = kinds[i], .every = EVERY, .what = "/", .address = "127.0.0.2"};

        scene_begin(&s, &options, "HTTP/1.1 204 No Content\r\n\r\n");
        AWAIT(s.run, s.looked.ready > 0);
        scene_end(&s);
    }
}

static void test_http(void **state)
{
    static const struct {
        const char *answer;
        bool ready;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
        {"HTTP/1.0 299 Fine\r\n\r\nrest", true},
        /* A stream that never ends, and a length that nobody would read. */
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nok", true},
        {"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n", false},
        {"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno", false},
        {"HTTP/1.1 302 There\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", false},
        {"\1\2\3 garbage\n\n", false},
        {"HTTP/9.9 200\r\nx\r\n\r\n", false},
        {NULL, false}, /* it never answers */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct scene s;
        struct probe_options options = {.how = ROLE_PROBE_HTTP, .every = EVERY, .what = "/healthz"};

        scene_begin(&s, &options, cases[i].answer);
        AWAIT(s.run, cases[i].ready ? s.looked.ready > 0 : s.server.requests > 0);
        turn(s.run, SILENT);
        if (s.looked.ready != cases[i].ready)
            fail_msg("case %zu: ready %d", i, s.looked.ready);
        scene_end(&s); /* in the middle of a look, where it never answers */
    }
}

static void test_http_that_fails_later(void **state)
{
    struct scene s;
    struct probe_options options = {.how = ROLE_PROBE_HTTP, .every = EVERY, .what = "/healthz"};

    (void)state;
    scene_begin(&s, &options, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    AWAIT(s.run, s.looked.ready > 0);
    s.server.answer = "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n";
    AWAIT(s.run, s.looked.unready > 0);
    assert_string_equal(s.looked.why, "/healthz: HTTP status 500");
    scene_end(&s);
}

static void create_file(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static void test_file(void **state)
{
    static const enum role_probe kinds[] = {ROLE_PROBE_FILE, ROLE_PROBE_TOLD};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct run *run = run_create(1);
        struct looked looked;
        char path[128];
        struct probe_options options = {.how = kinds[i], .every = EVERY, .what = path};

        snprintf(path, sizeof(path), "%s/ready", run->dir);
        begin(run, &looked, &options);
        turn(run, SILENT);
        assert_int_equal(looked.ready, 0);
        create_file(path);
        AWAIT(run, looked.ready > 0);
        unlink(path);
        AWAIT(run, looked.unready > 0);
        assert_non_null(strstr(looked.why, "no such file"));
        probe_destroy(looked.probe);
        run_destroy(run);
    }
}

static void test_command(void **state)
{
    struct run *run = run_create(1);
    struct looked looked;
    char path[128], script[256];
    char *argv[] = {"sh", "-c", script, NULL};
    struct probe_options options = {.how = ROLE_PROBE_EXEC, .every = EVERY};

    (void)state;
    snprintf(path, sizeof(path), "%s/ready", run->dir);
    snprintf(script, sizeof(script), "test -e %s || { echo it is not there >&2; exit 3; }", path);
    run->options.argv = argv;
    run->options.files = "probe";
    options.command = &run->options;
    options.world = run->world;
    begin(run, &looked, &options);
    turn(run, SILENT);
    assert_int_equal(looked.ready, 0);
    create_file(path);
    AWAIT(run, looked.ready > 0);
    unlink(path);
    AWAIT(run, looked.unready > 0);
    assert_string_equal(looked.why, "its command ended with 3: it is not there");
    probe_destroy(looked.probe);
    run_destroy(run);
}

static void test_no_command(void **state)
{
    struct run *run = run_create(1);
    struct looked looked;
    char *argv[] = {"/nonexistent/probe", NULL};
    const struct probe_options options = {
        .how = ROLE_PROBE_EXEC, .every = EVERY, .command = &run->options, .world = run->world};

    (void)state;
    run->options.argv = argv;
    begin(run, &looked, &options);
    turn(run, SILENT);
    assert_int_equal(looked.ready, 0);
    probe_destroy(looked.probe);
    run_destroy(run);
}

static pid_t pid_in(const char *path)
{
    FILE *file = fopen(path, "re");
    int pid = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%d\n", &pid) != 1)
        pid = 0;
    fclose(file);
    return pid;
}

/* Its processes end with the probe. */
static void test_command_that_hangs(void **state)
{
    struct run *run = run_create(1);
    struct looked looked;
    char path[128], script[256];
    char *argv[] = {"sh", "-c", script, NULL};
    const struct probe_options options = {
        .how = ROLE_PROBE_EXEC, .every = EVERY, .command = &run->options, .world = run->world};
    pid_t pid;

    (void)state;
    snprintf(path, sizeof(path), "%s/pid", run->dir);
    snprintf(script, sizeof(script), "trap '' TERM; sleep 1000 & echo $! >%s; wait", path);
    run->options.argv = argv;
    begin(run, &looked, &options);
    AWAIT(run, pid_in(path) > 0);
    pid = pid_in(path);
    unlink(path);
    probe_destroy(looked.probe);
    AWAIT(run, process_gone(pid));
    run_destroy(run);
}

static void test_destroyed_by_its_handler(void **state)
{
    static const enum role_probe kinds[] = {ROLE_PROBE_HTTP, ROLE_PROBE_TCP};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct scene s;
        struct probe_options options = {.how = kinds[i], .every = EVERY, .what = "/"};

        scene_begin(&s, &options, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        s.looked.destroy = true;
        AWAIT(s.run, s.looked.ready > 0 && s.server.open == 0);
        assert_null(s.looked.probe);
        scene_end(&s);
    }
}

/* Another user's program has taken the port of the task, and answers well. */
static void test_stranger(void **state)
{
    struct run *run;
    struct looked looked;
    struct probe_options options = {.how = ROLE_PROBE_TCP, .every = EVERY};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd;
    pid_t pid;
    bool listened;

    (void)state;
    if (geteuid() != 0)
        skip();
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    close(fd);
    options.port = ntohs(at.sin_port);
    pid = fork();
    if (pid == 0) {
        fd = setuid(65534) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0
                 ? socket(AF_INET, SOCK_STREAM, 0)
                 : -1;
        if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 10) != 0)
            _exit(1);
        pause();
        _exit(0);
    }
    run = run_create(1);
    begin(run, &looked, &options);
    turn(run, 3 * SILENT);
    listened = waitpid(pid, NULL, WNOHANG) == 0;
    probe_destroy(looked.probe);
    run_destroy(run);
    if (listened) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    assert_true(listened);
    assert_int_equal(looked.ready, 0);
}

/* In a process that has not loaded it: one that can open no file. */
static void test_without_libcurl(void **state)
{
    const struct rlimit none = {0, 0};
    char said[512] = "";
    uv_loop_t loop;
    int ends[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        setrlimit(RLIMIT_NOFILE, &none);
        _exit(http_create(&loop, 100, NULL, NULL) == NULL ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(read(ends[0], said, sizeof(said) - 1) > 0);
    close(ends[0]);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_non_null(strstr(said, "cannot ask over HTTP: libcurl.so.4 cannot be loaded"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_libcurl), /* the first: http_create() loads it */
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_own_address),
        cmocka_unit_test(test_http),
        cmocka_unit_test(test_http_that_fails_later),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_no_command),
        cmocka_unit_test(test_command_that_hangs),
        cmocka_unit_test(test_destroyed_by_its_handler),
        cmocka_unit_test(test_stranger),
    };

    run_dispatch(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
