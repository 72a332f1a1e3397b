/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/reclaim: a program and an HTTP address that tell, do not tell, or do not answer. */
#include "agent/member/reclaim.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/support.h"

#define PATIENCE_MS 60000 /* for a notice that is to come */
#define SILENCE_MS  700   /* for one that is not */

/* A server that gives one answer to every request, or none at all. */
struct server {
    uv_tcp_t listener;
    const char *answer; /* NULL: none */
    const char *token;  /* the answer to PUT */
    const char *advice; /* the answer to a question for it; NULL: as to others */
    int puts, advices;
    char request[1024];
    size_t bytes;
};

struct scene {
    uv_loop_t loop;
    uv_timer_t timer;
    struct server server;
    struct conf *conf;
    const char *notice; /* NULL: none came */
    double left;
    int advised, silent, no_advice;
    bool closed;
};

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct scene *s = handle->data;

    (void)suggested;
    *buf = uv_buf_init(s->server.request + s->server.bytes,
                       (unsigned)(sizeof(s->server.request) - 1 - s->server.bytes));
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct scene *s = stream->data;
    uv_buf_t answer;
    const char *text = s->server.answer;

    (void)buf;
    if (got < 0) {
        uv_close((uv_handle_t *)stream, on_closed);
        return;
    }
    s->server.bytes += (size_t)got;
    s->server.request[s->server.bytes] = '\0';
    if (text == NULL || strstr(s->server.request, "\r\n\r\n") == NULL)
        return;
    if (strncmp(s->server.request, "PUT ", 4) == 0) {
        s->server.puts++;
        text = s->server.token;
    } else if (strstr(s->server.request, "/recommendations/") != NULL) {
        s->server.advices++;
        text = s->server.advice != NULL ? s->server.advice : text;
    }
    answer = uv_buf_init((char *)text, (unsigned)strlen(text));
    uv_try_write(stream, &answer, 1);
    uv_close((uv_handle_t *)stream, on_closed);
}

static void on_connection(uv_stream_t *listener, int status)
{
    uv_tcp_t *client = malloc(sizeof(*client));

    assert_int_equal(status, 0);
    assert_non_null(client);
    uv_tcp_init(listener->loop, client);
    client->data = listener->data;
    ((struct scene *)listener->data)->server.bytes = 0;
    uv_accept(listener, (uv_stream_t *)client);
    uv_read_start((uv_stream_t *)client, on_alloc, on_read);
}

static void on_timeout(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void on_notice(const char *from, double left, void *arg)
{
    struct scene *s = arg;

    assert_null(s->notice);
    s->notice = from;
    s->left = left;
    uv_stop(&s->loop);
}

static void on_advice(const char *from, void *arg)
{
    struct scene *s = arg;

    assert_string_equal(from, "aws");
    s->advised++;
}

static void on_silence(const char *why, bool of_advice, void *arg)
{
    struct scene *s = arg;

    assert_non_null(strstr(why, of_advice ? "reclaim_advice" : "reclaim"));
    s->silent += !of_advice;
    s->no_advice += of_advice;
}

static const struct reclaim_handlers handlers = {on_notice, on_advice, on_silence};

static void on_gone(void *arg)
{
    struct scene *s = arg;

    s->closed = true;
    uv_stop(&s->loop);
}

static void scene_begin(struct scene *s)
{
    struct sockaddr_in address;
    int bytes = sizeof(address);
    char url[64];

    memset(s, 0, sizeof(*s));
    uv_loop_init(&s->loop);
    uv_timer_init(&s->loop, &s->timer);
    uv_tcp_init(&s->loop, &s->server.listener);
    s->server.listener.data = s;
    uv_ip4_addr("127.0.0.1", 0, &address);
    assert_int_equal(uv_tcp_bind(&s->server.listener, (const struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&s->server.listener, 4, on_connection), 0);
    uv_tcp_getsockname(&s->server.listener, (struct sockaddr *)&address, &bytes);
    s->conf = conf_create();
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/notice?a=b", ntohs(address.sin_port));
    s->conf->reclaim.url = strdup(url);
}

/* … which speaks as the service of that cloud. */
static void scene_cloud(struct scene *s, enum conf_cloud cloud)
{
    scene_begin(s);
    s->conf->reclaim.cloud = cloud;
    s->conf->reclaim.endpoint = s->conf->reclaim.url;
    *strstr(s->conf->reclaim.endpoint, "/notice") = '\0';
    s->conf->reclaim.url = NULL;
}

/* What came of it within that time; then all is stopped, which must not take longer than an
 * answer may. */
static void scene_run(struct scene *s, uint64_t ms, const char *expected)
{
    struct reclaim *r = reclaim_create(&s->loop, s->conf, &handlers, s);

    assert_non_null(r);
    uv_timer_start(&s->timer, on_timeout, ms, 0);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    if (expected == NULL)
        assert_null(s->notice);
    else
        assert_string_equal(s->notice, expected);
    reclaim_destroy(r, on_gone);
    uv_timer_start(&s->timer, on_timeout, 5000, 0);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_true(s->closed);
    uv_close((uv_handle_t *)&s->timer, NULL);
    uv_close((uv_handle_t *)&s->server.listener, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    conf_destroy(s->conf);
}

#define OK(body)  "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" body
#define NOT_FOUND "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\nTRUE"

static void test_address(void **state)
{
    static const struct {
        const char *answer, *wanted;
        bool notice;
    } table[] = {
        {OK("TRUE"), "TRUE", true},   {OK("{\"action\": \"stop\"}"), NULL, true},
        {OK("FALSE"), "TRUE", false}, {NOT_FOUND, "TRUE", false},
        {NOT_FOUND, NULL, false},     {"garbage", "garbage", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct scene s;

        scene_begin(&s);
        s.server.answer = table[i].answer;
        s.conf->reclaim.answer = table[i].wanted != NULL ? strdup(table[i].wanted) : NULL;
        scene_run(&s, table[i].notice ? PATIENCE_MS : SILENCE_MS,
                  table[i].notice ? "reclaim_url" : NULL);
        assert_non_null(strstr(s.server.request, "GET /notice?a=b HTTP/1.1\r\n"));
    }
}

#define STRANGER 65534

/* While the site's service is away any user may listen in its place. */
static void test_a_stranger_at_the_address_is_not_believed(void **state)
{
    struct scene s;

    (void)state;
    if (getuid() != 0)
        skip();
    setfsuid(STRANGER); /* whose the socket is, for the kernel */
    scene_begin(&s);
    setfsuid(0);
    s.server.answer = OK("");
    scene_run(&s, SILENCE_MS, NULL);
    assert_string_equal(s.server.request, "");
}

static void test_root_is_believed_by_others(void **state)
{
    struct scene s;

    (void)state;
    if (getuid() != 0)
        skip();
    scene_begin(&s);
    s.server.answer = OK("");
    assert_int_equal(setresuid(STRANGER, STRANGER, 0), 0);
    scene_run(&s, PATIENCE_MS, "reclaim_url");
    assert_int_equal(setresuid(0, 0, 0), 0);
}

/* A token is fetched first, and sent along. */
static void test_token(void **state)
{
    struct scene s;

    (void)state;
    scene_cloud(&s, CONF_CLOUD_AWS);
    s.server.token = OK("secret==");
    s.server.answer = OK("{\"action\": \"terminate\", \"time\": \"soon\"}");
    scene_run(&s, PATIENCE_MS, "aws");
    assert_true(s.left == 120);
    assert_int_equal(s.server.puts, 1);
    assert_non_null(strstr(s.server.request, "GET /latest/meta-data/spot/instance-action HTTP"));
    assert_non_null(strstr(s.server.request, "\r\nX-aws-ec2-metadata-token: secret==\r\n"));
}

/* It is asked for only where the site wants it, and said once. What is no advice is none. */
static void test_advice(void **state)
{
    static char given[160], endless[100000];
    const time_t now = time(NULL);
    const struct {
        const char *answer;
        int advised, silent;
    } table[] = {
        {given, 1, 0},
        {NOT_FOUND, 0, 0},
        {"HTTP/1.1 302 Found\r\nLocation: /other\r\nConnection: close\r\n\r\n", 0, 1},
        {OK("{\"noticeTime\": true}"), 0, 1},
        {OK("\x01\xff"), 0, 1},
        {"garbage", 0, 0},
        {endless, 0, 0},
    };

    (void)state;
    strftime(given, sizeof(given), OK("{\"noticeTime\": \"%Y-%m-%dT%H:%M:%SZ\"}"), gmtime(&now));
    memset(endless, 'x', sizeof(endless) - 1);
    memcpy(endless, OK("{"), strlen(OK("{")));
    for (size_t i = 0; i < COUNT(table) + 1; i++) {
        struct scene s;

        scene_cloud(&s, CONF_CLOUD_AWS);
        s.server.token = OK("secret==");
        s.server.answer = NOT_FOUND;
        s.server.advice = table[i % COUNT(table)].answer;
        s.conf->reclaim.advice = i < COUNT(table) ? CONF_ADVICE_REPLACE : CONF_ADVICE_IGNORE;
        scene_run(&s, SILENCE_MS, NULL);
        assert_int_equal(s.server.advices, i < COUNT(table));
        assert_int_equal(s.advised, i < COUNT(table) ? table[i].advised : 0);
        assert_int_equal(s.no_advice, i < COUNT(table) ? table[i].silent : 0);
        assert_int_equal(s.silent, 0);
        assert_null(strstr(s.server.request, "/other"));
    }
}

/* A token that is never accepted is renewed once, and then after a pause. */
static void test_token_is_refused(void **state)
{
    struct scene s;

    (void)state;
    scene_cloud(&s, CONF_CLOUD_ALIBABA);
    s.server.token = OK("secret");
    s.server.answer = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n";
    scene_run(&s, SILENCE_MS, NULL);
    assert_int_equal(s.server.puts, 2);
    assert_int_equal(s.silent, 1);
}

static void test_etag(void **state)
{
    struct scene s;

    (void)state;
    scene_cloud(&s, CONF_CLOUD_GCP);
    s.server.answer = "HTTP/1.1 200 OK\r\nETag: 0a1b\r\nConnection: close\r\n\r\nFALSE";
    scene_run(&s, SILENCE_MS, NULL);
    assert_non_null(strstr(s.server.request, "&last_etag=0a1b HTTP"));

    scene_cloud(&s, CONF_CLOUD_GCP);
    s.server.answer = OK("TRUE\n");
    scene_run(&s, PATIENCE_MS, "gcp");
    assert_true(s.left == 30);
}

/* Nobody is sent elsewhere. */
static void test_redirection(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s);
    s.server.answer = "HTTP/1.1 302 Found\r\nLocation: /other\r\nConnection: close\r\n\r\nTRUE";
    scene_run(&s, SILENCE_MS, NULL);
    assert_null(strstr(s.server.request, "/other"));
}

static void test_header(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s);
    s.server.answer = OK("TRUE");
    s.conf->reclaim.header = strdup("Metadata-Flavor: Google");
    scene_run(&s, PATIENCE_MS, "reclaim_url");
    assert_non_null(strstr(s.server.request, "\r\nMetadata-Flavor: Google\r\n"));
}

static void test_an_address_that_does_not_answer(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s);
    scene_run(&s, SILENCE_MS, NULL);

    scene_begin(&s);
    free(s.conf->reclaim.url);
    s.conf->reclaim.url = strdup("http://127.0.0.1:1/");
    scene_run(&s, SILENCE_MS, NULL);
}

static void test_an_answer_that_has_no_end(void **state)
{
    static char answer[100000];
    struct scene s;

    (void)state;
    memset(answer, 'x', sizeof(answer) - 1);
    memcpy(answer, OK("TRUE"), strlen(OK("TRUE")));
    scene_begin(&s);
    s.server.answer = answer;
    scene_run(&s, SILENCE_MS, NULL);
}

/* A script of that content; the name lives until the next call. */
static char *program(const char *content)
{
    static char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/tmp/elastic-reclaim-%d", (int)getpid());
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", content);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    return strdup(path);
}

static void test_program(void **state)
{
    static const struct {
        const char *content;
        bool notice;
    } table[] = {{"exit 0", true}, {"exit 1", false}, {"kill -9 $$", false}, {"sleep 100", false}};

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct scene s;
        char *path = program(table[i].content);

        scene_begin(&s);
        free(s.conf->reclaim.url);
        s.conf->reclaim.url = NULL;
        s.conf->reclaim.program = strdup(path);
        scene_run(&s, table[i].notice ? PATIENCE_MS : SILENCE_MS,
                  table[i].notice ? "reclaim_program" : NULL);
        unlink(path);
        free(path);
    }
}

/* What a program has started ends with it. */
static void test_a_program_that_forks(void **state)
{
    char *path = program("sleep 100 & echo $! >$0.child; wait"), name[80];
    struct timespec nap = {.tv_nsec = 10000000};
    struct scene s;
    FILE *file;
    int pid = 0;

    (void)state;
    scene_begin(&s);
    free(s.conf->reclaim.url);
    s.conf->reclaim.url = NULL;
    s.conf->reclaim.program = strdup(path);
    scene_run(&s, 3000, NULL); /* it has begun by then */
    snprintf(name, sizeof(name), "%s.child", path);
    file = fopen(name, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    for (int i = 0; kill(pid, 0) == 0 && i < 12000; i++)
        nanosleep(&nap, NULL);
    assert_int_equal(kill(pid, 0), -1);
    unlink(name);
    unlink(path);
    free(path);
}

static void test_nothing_to_ask(void **state)
{
    struct conf *conf = conf_create();
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    assert_null(reclaim_create(&loop, conf, &handlers, NULL));
    assert_int_equal(uv_loop_close(&loop), 0);
    conf_destroy(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_a_stranger_at_the_address_is_not_believed),
        cmocka_unit_test(test_root_is_believed_by_others),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_token_is_refused),
        cmocka_unit_test(test_etag),
        cmocka_unit_test(test_redirection),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_an_address_that_does_not_answer),
        cmocka_unit_test(test_an_answer_that_has_no_end),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_a_program_that_forks),
        cmocka_unit_test(test_nothing_to_ask),
    };

    /* No proxy is used. */
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("reclaim", tests, NULL, NULL);
}
