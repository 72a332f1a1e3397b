/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/store_server: what is handed to the leader and back, and clients that mean no good. The
 * leader is played here. */
#include "agent/member/store_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support.h"

#include "lib/json_get.h"

#define PATIENCE_MS 120000
#define SENT_MAX    8192
#define TEXT        512
#define MIB         (1 << 20)
#define NOBODY      65534

static uv_loop_t loop;
static char dir[64];
static struct store_server *server;
static json_object *sent[SENT_MAX]; /* to the leader */
static int sent_count;
static bool leader_away, gone;

static int on_send(json_object *msg, void *arg)
{
    (void)arg;
    if (leader_away || sent_count == SENT_MAX) {
        json_object_put(msg);
        return -1;
    }
    sent[sent_count++] = msg;
    return 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Run it until there is nothing to do, a moment at most. */
static void turn(int ms)
{
    struct pollfd fd = {.fd = uv_backend_fd(&loop), .events = POLLIN};

    poll(&fd, 1, ms);
    uv_run(&loop, UV_RUN_NOWAIT);
}

#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        for (int turns = 0; !(condition); turns++) {                                               \
            assert_true(turns < PATIENCE_MS / 10);                                                 \
            turn(10);                                                                              \
        }                                                                                          \
    } while (0)

static void settle(void)
{
    for (int i = 0; i < 5; i++)
        turn(0);
}

/* ---- a client -------------------------------------------------------------------------------- */

static int connect_in(const char *where)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int at = open(where, O_PATH | O_DIRECTORY | O_CLOEXEC);

    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/store", at);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(at);
    return fd;
}

static void put_bytes(int fd, const void *data, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t count = write(fd, (const char *)data + done, len - done);

        if (count > 0)
            done += (size_t)count;
        else if (errno == EPIPE || errno == ECONNRESET)
            return;
        else
            turn(10);
    }
}

static void put(int fd, const char *text)
{
    uint32_t length = htonl((uint32_t)strlen(text));

    put_bytes(fd, &length, sizeof(length));
    put_bytes(fd, text, strlen(text));
}

static void ask(int fd, int id, const char *op, const char *more)
{
    char text[TEXT];

    snprintf(text, sizeof(text), "{\"id\":%d,\"op\":\"%s\"%s}", id, op, more);
    put(fd, text);
}

static bool get_bytes(int fd, void *data, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t count = read(fd, (char *)data + done, len - done);

        if (count > 0)
            done += (size_t)count;
        else if (count == 0 || errno != EAGAIN)
            return false;
        else
            turn(10);
    }
    return true;
}

/* The next answer, "" at the end of the connection. Not for two at once. */
static const char *answer_of(int fd)
{
    static char text[TEXT];
    uint32_t length;

    text[0] = '\0';
    if (get_bytes(fd, &length, sizeof(length))) {
        assert_true(ntohl(length) < sizeof(text));
        assert_true(get_bytes(fd, text, ntohl(length)));
        text[ntohl(length)] = '\0';
    }
    return text;
}

/* ---- the leader ------------------------------------------------------------------------------ */

static const char *sent_text(int index)
{
    json_object *msg = sent[index];

    json_object_object_del(msg, "id");
    return json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN);
}

static int64_t sent_id(int index)
{
    int64_t id = -1;

    assert_true(json_get_int(sent[index], "id", 1, INT64_MAX, &id));
    return id;
}

static void answer_with(int64_t id, const char *value)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string("stored"));
    json_object_object_add(msg, "value", json_object_new_string(value));
    json_object_object_add(msg, "id", json_object_new_int64(id));
    assert_true(store_server_on_message(server, msg));
    json_object_put(msg);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static void on_gone(void *arg)
{
    (void)arg;
    gone = true;
}

static int set_up(void **state)
{
    struct error err = {""};

    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/elastic-store-test.XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(uv_loop_init(&loop), 0);
    server = store_server_create(&loop, dir, 1, on_send, NULL, &err);
    assert_non_null(server);
    return 0;
}

static int tear_down(void **state)
{
    char path[80];

    (void)state;
    gone = leader_away = false;
    if (server != NULL) {
        store_server_destroy(server, on_gone, NULL);
        UNTIL(gone);
    }
    assert_int_equal(uv_run(&loop, UV_RUN_NOWAIT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    while (sent_count > 0)
        json_object_put(sent[--sent_count]);
    snprintf(path, sizeof(path), "%s/store", dir);
    unlink(path);
    rmdir(dir);
    return 0;
}

/* ---- what it is for -------------------------------------------------------------------------- */

static void test_requests_and_answers(void **state)
{
    int a = connect_in(dir), b = connect_in(dir);
    int64_t first, second, third;

    (void)state;
    ask(a, 7, "get",
        ",\"key\":\"k\",\"timeout\":2.5,\"gen\":1,\"attempt\":2,\"value\":\"AA==\",\"x\":[]");
    UNTIL(sent_count == 1);
    ask(b, 7, "set", ",\"t\":\"leaving\",\"value\":\"AA==\",\"key\":\"k\",\"amount\":3");
    UNTIL(sent_count == 2);
    ask(a, 8, "wait", ",\"keys\":[\"k\"]");
    UNTIL(sent_count == 3);
    first = sent_id(0);
    second = sent_id(1);
    third = sent_id(2);
    assert_true(first != second && second != third && first != third);
    assert_string_equal(sent_text(0), "{\"t\":\"store\",\"gen\":1,\"attempt\":2,\"op\":\"get\","
                                      "\"key\":\"k\",\"timeout\":2.5}");
    assert_string_equal(sent_text(1), "{\"t\":\"store\",\"op\":\"set\",\"key\":\"k\","
                                      "\"value\":\"AA==\",\"amount\":3}");
    answer_with(third, "three");
    answer_with(second, "two");
    answer_with(first, "one/1");
    answer_with(first, "again");
    answer_with(12345, "nobody's");
    assert_string_equal(answer_of(a), "{\"value\":\"three\",\"id\":8}");
    assert_string_equal(answer_of(a), "{\"value\":\"one/1\",\"id\":7}");
    assert_string_equal(answer_of(b), "{\"value\":\"two\",\"id\":7}");
    close(a);
    close(b);
}

static void test_other_messages(void **state)
{
    json_object *msg = json_object_new_object();

    (void)state;
    assert_false(store_server_on_message(server, msg));
    json_object_object_add(msg, "t", json_object_new_string("start"));
    assert_false(store_server_on_message(server, msg));
    json_object_object_add(msg, "t", json_object_new_string("stored"));
    assert_true(store_server_on_message(server, msg));
    json_object_put(msg);
}

static void test_address(void **state)
{
    char deep[300], path[400];
    struct store_server *second;
    struct error err = {""};
    struct stat st;
    int fd;

    (void)state;
    assert_int_equal(stat(store_server_path(server), &st), 0);
    assert_int_equal(st.st_mode, S_IFSOCK | 0600);
    /* Longer than a socket's address can be; and what a killed agent has left is replaced. */
    snprintf(deep, sizeof(deep), "%s/%0200d", dir, 0);
    assert_int_equal(mkdir(deep, 0700), 0);
    snprintf(path, sizeof(path), "%s/store", deep);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    second = store_server_create(&loop, deep, 1, on_send, NULL, &err);
    assert_non_null(second);
    assert_string_equal(store_server_path(second), path);
    fd = connect_in(deep);
    ask(fd, 1, "num_keys", "");
    UNTIL(sent_count == 1);
    gone = false;
    store_server_destroy(second, on_gone, NULL);
    UNTIL(gone);
    assert_string_equal(answer_of(fd), "");
    close(fd);
    unlink(path);
    rmdir(deep);
    assert_null(store_server_create(&loop, deep, 1, on_send, NULL, &err));
    assert_one_line(err.text);
}

static void test_leader_away(void **state)
{
    int a = connect_in(dir), b = connect_in(dir);

    (void)state;
    ask(a, 1, "get", "");
    ask(b, 2, "wait", "");
    UNTIL(sent_count == 2);
    leader_away = true;
    store_server_lost(server);
    assert_string_equal(answer_of(a), "{\"error\":\"lost\",\"id\":1}");
    assert_string_equal(answer_of(b), "{\"error\":\"lost\",\"id\":2}");
    ask(a, 3, "set", "");
    assert_string_equal(answer_of(a), "{\"error\":\"lost\",\"id\":3}");
    close(a);
    close(b);
}

static void test_a_client_goes(void **state)
{
    int a = connect_in(dir), b = connect_in(dir);
    int64_t first, second;
    char expected[80];

    (void)state;
    ask(a, 1, "get", "");
    UNTIL(sent_count == 1);
    ask(b, 2, "get", "");
    UNTIL(sent_count == 2);
    first = sent_id(0);
    second = sent_id(1);
    close(a);
    UNTIL(sent_count == 3);
    snprintf(expected, sizeof(expected), "{\"t\":\"unstore\",\"id\":%d}", (int)first);
    assert_string_equal(json_object_to_json_string_ext(sent[2], JSON_C_TO_STRING_PLAIN), expected);
    answer_with(first, "too late");
    answer_with(second, "v");
    assert_string_equal(answer_of(b), "{\"value\":\"v\",\"id\":2}");
    close(b);
}

/* ---- clients that mean no good --------------------------------------------------------------- */

static void test_garbage(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } frames[] = {
        {"GET / HTTP/1.0\r\n\r\n", 18},
        {"\0\0\0\0", 4},
        {"\0\x30\0\1", 4},
        {"\xff\xff\xff\xff", 4},
    };
    static const char *const texts[] = {
        "[]",
        "{}",
        "{",
        "7",
        "{\"op\":\"set\"}",
        "{\"id\":1}",
        "{\"id\":-1,\"op\":\"set\"}",
        "{\"id\":\"1\",\"op\":\"set\"}",
        "{\"id\":1.5,\"op\":\"set\"}",
        "{\"id\":1,\"op\":[{}]}",
        "{\"id\":1,\"op\":\"set\"} x",
        "{\"id\":1,\"id\":2,\"op\":\"set\"}",
        "\xff\xfe\xfd",
    };
    int good = connect_in(dir), bad;

    (void)state;
    ask(good, 1, "get", "");
    UNTIL(sent_count == 1);
    for (size_t i = 0; i < COUNT(frames) + COUNT(texts); i++) {
        bad = connect_in(dir);
        if (i < COUNT(frames))
            put_bytes(bad, frames[i].bytes, frames[i].len);
        else
            put(bad, texts[i - COUNT(frames)]);
        assert_string_equal(answer_of(bad), "");
        close(bad);
    }
    assert_int_equal(sent_count, 1);
    answer_with(sent_id(0), "v");
    assert_string_equal(answer_of(good), "{\"value\":\"v\",\"id\":1}");
    close(good);
}

static void test_half_frames(void **state)
{
    static const char text[] = "\0\0\0\x15{\"id\":1,\"op\":\"check\"}";
    int slow = connect_in(dir), good = connect_in(dir);

    (void)state;
    put_bytes(slow, text, 9);
    ask(good, 5, "check", "");
    UNTIL(sent_count == 1);
    for (size_t i = 9; i < sizeof(text) - 1; i++) {
        assert_int_equal(sent_count, 1);
        put_bytes(slow, text + i, 1);
        settle();
    }
    UNTIL(sent_count == 2);
    close(slow);
    close(good);
}

static void test_client_that_does_not_read(void **state)
{
    static char value[MIB + 1];
    int good = connect_in(dir), bad = connect_in(dir), answered = 0;

    (void)state;
    memset(value, 'A', MIB);
    for (int i = 0; i < 40; i++)
        ask(bad, i, "get", "");
    UNTIL(sent_count == 40);
    ask(good, 1, "get", "");
    UNTIL(sent_count == 41);
    for (; answered < 40 && sent_count == 41; answered++)
        answer_with(sent_id(answered), value);
    assert_in_range(answered, 15, 18);
    /* Those that have not been answered are withdrawn. */
    assert_int_equal(sent_count, 41 + 40 - answered);
    answer_with(sent_id(40), "v");
    assert_string_equal(answer_of(good), "{\"value\":\"v\",\"id\":1}");
    close(good);
    close(bad);
}

static void test_asking_too_much(void **state)
{
    static char long_key[MIB / 2];
    int fd = connect_in(dir);
    char *text = NULL;

    (void)state;
    for (int i = 0; i < 1024; i++)
        ask(fd, i, "get", "");
    UNTIL(sent_count == 1024);
    ask(fd, 2000, "set", "");
    assert_non_null(strstr(answer_of(fd), "\"error\":\"full\""));
    answer_with(sent_id(0), "");
    assert_string_equal(answer_of(fd), "{\"value\":\"\",\"id\":0}");
    ask(fd, 2001, "set", "");
    UNTIL(sent_count == 1025);
    close(fd);
    UNTIL(sent_count == 1025 + 1024);
    /* What waits has a limit, too, which does not count for what does not. */
    fd = connect_in(dir);
    memset(long_key, 'k', sizeof(long_key) - 1);
    assert_true(asprintf(&text, "{\"id\":1,\"op\":\"get\",\"key\":\"%s\"}", long_key) > 0);
    put(fd, text);
    UNTIL(sent_count == 2050);
    put(fd, text);
    assert_non_null(strstr(answer_of(fd), "\"error\":\"full\""));
    memcpy(strstr(text, "get"), "set", 3);
    put(fd, text);
    UNTIL(sent_count == 2051);
    free(text);
    close(fd);
}

static void test_more_than_the_leader_takes(void **state)
{
    static char value[MIB + 1];
    int fd = connect_in(dir), other = connect_in(dir), count;
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    char *text = NULL;
    size_t len, done = 0;

    (void)state;
    memset(value, 'A', MIB);
    assert_true(asprintf(&text, "....{\"id\":1,\"op\":\"set\",\"value\":\"%s\"}", value) > 0);
    len = strlen(text);
    *(uint32_t *)(void *)text = htonl((uint32_t)(len - 4));
    /* As much as goes in, while nothing is answered. */
    while (done < 30 * len) {
        ssize_t written = write(fd, text + done % len, len - done % len);

        if (written > 0)
            done += (size_t)written;
        settle();
        if (written < 0 && poll(&room, 1, 0) == 0)
            break;
    }
    assert_int_equal(sent_count, 8);
    ask(other, 1, "num_keys", "");
    settle();
    assert_int_equal(sent_count, 8);
    /* Each answer makes room. */
    answer_with(sent_id(0), "");
    UNTIL(sent_count >= 9);
    for (count = 1; count < sent_count; count++) {
        answer_with(sent_id(count), "");
        settle();
    }
    assert_string_equal(answer_of(other), "{\"value\":\"\",\"id\":1}");
    free(text);
    close(fd);
    close(other);
}

static void test_too_many_clients(void **state)
{
    int fds[64], more;

    (void)state;
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = connect_in(dir);
        settle();
    }
    more = connect_in(dir);
    assert_string_equal(answer_of(more), "");
    close(more);
    ask(fds[63], 1, "num_keys", "");
    UNTIL(sent_count == 1);
    close(fds[5]);
    settle();
    fds[5] = connect_in(dir);
    ask(fds[5], 1, "num_keys", "");
    UNTIL(sent_count == 2);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
}

/* Even one who could open the file. */
static void test_another_user(void **state)
{
    int answer[2], status;
    char got = '?';
    pid_t child;

    (void)state;
    if (getuid() != 0)
        skip();
    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(chmod(store_server_path(server), 0666), 0);
    assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        int fd;
        char byte;

        if (setresuid(NOBODY, NOBODY, NOBODY) != 0)
            _exit(1);
        fd = connect_in(dir);
        fcntl(fd, F_SETFL, 0);
        byte = read(fd, &byte, 1) == 0 ? 'e' : 'x';
        _exit(write(answer[1], &byte, 1) != 1);
    }
    close(answer[1]);
    fcntl(answer[0], F_SETFL, O_NONBLOCK);
    assert_true(get_bytes(answer[0], &got, 1));
    assert_int_equal(got, 'e');
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(answer[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        TEST(test_requests_and_answers),
        TEST(test_other_messages),
        TEST(test_address),
        TEST(test_leader_away),
        TEST(test_a_client_goes),
        TEST(test_garbage),
        TEST(test_half_frames),
        TEST(test_client_that_does_not_read),
        TEST(test_asking_too_much),
        TEST(test_more_than_the_leader_takes),
        TEST(test_too_many_clients),
        TEST(test_another_user),
    };

    signal(SIGPIPE, SIG_IGN);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store_server", tests, NULL, NULL);
}
