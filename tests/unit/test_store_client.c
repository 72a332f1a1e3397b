/* SPDX-License-Identifier: GPL-2.0-or-later */
/* client/store.c against agents that answer, refuse, talk nonsense or hang up; the agent is
 * played here. */
#include "tests/unit/support.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/store.h"

#define ANSWERS_MAX 8
#define MIB         (1 << 20)

/* What is sent back for a request, as it goes over the wire; then the connection is closed. */
struct answer {
    const void *bytes;
    size_t len;
};

static char directory[] = "/tmp/elastic-test-store-XXXXXX";
static char deep[300]; /* longer than a socket's address */
static char path[320];
static int listener = -1;
static pthread_t agent;
static struct answer answers[ANSWERS_MAX];
static int answer_count;
static char *requests[ANSWERS_MAX];
static char frames[ANSWERS_MAX][256];
static struct store_client store = {path, 3, 7};
static struct event_client_error err;

static int make_directory(void **state)
{
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(deep, sizeof(deep), "%s/%0120d", directory, 0);
    snprintf(path, sizeof(path), "%s/store", deep);
    return mkdir(deep, 0700);
}

static int remove_directory(void **state)
{
    return rmdir(deep) != 0 ? -1 : rmdir(directory);
}

/* ---- the agent ------------------------------------------------------------------------------- */

static char *read_request(int fd)
{
    uint32_t length = 0;
    char *text;

    assert_int_equal(recv(fd, &length, sizeof(length), MSG_WAITALL), sizeof(length));
    length = ntohl(length);
    text = calloc(1, (size_t)length + 1);
    assert_non_null(text);
    assert_int_equal(recv(fd, text, length, MSG_WAITALL), length);
    return text;
}

static void *run_agent(void *arg)
{
    (void)arg;
    for (int i = 0; i < answer_count; i++) {
        int fd = accept(listener, NULL, NULL);

        requests[i] = read_request(fd);
        /* In two pieces, as it may come. */
        send(fd, answers[i].bytes, answers[i].len / 2, MSG_NOSIGNAL);
        usleep(1000);
        send(fd, (const char *)answers[i].bytes + answers[i].len / 2,
             answers[i].len - answers[i].len / 2, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void will_send(const void *bytes, size_t len)
{
    answers[answer_count++] = (struct answer){bytes, len};
}

static void will_answer(const char *text)
{
    char *frame = frames[answer_count];
    uint32_t length = htonl((uint32_t)strlen(text));

    memcpy(frame, &length, sizeof(length));
    memcpy(frame + sizeof(length), text, strlen(text));
    will_send(frame, sizeof(length) + strlen(text));
}

static void begin(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    assert_int_equal(chdir(deep), 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "store");
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(pthread_create(&agent, NULL, run_agent, NULL), 0);
}

static void end(void)
{
    pthread_join(agent, NULL);
    close(listener);
    unlink(path);
}

static int forget(void **state)
{
    for (int i = 0; i < answer_count; i++) {
        free(requests[i]);
        requests[i] = NULL;
    }
    answer_count = 0;
    memset(&err, 0, sizeof(err));
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_a_value_is_put(void **state)
{
    will_answer("{\"id\":1}");
    will_answer("{ \"number\": 0, \"id\": 1 }");
    begin();
    assert_int_equal(store_client_put(&store, "a key/0", "\0\1\377", 3, &err), 0);
    assert_int_equal(store_client_put(&store, "empty", NULL, 0, &err), 0);
    end();
    assert_string_equal(requests[0], "{\"id\":1,\"gen\":3,\"attempt\":7,\"op\":\"set\","
                                     "\"key\":\"a key/0\",\"value\":\"AAH/\"}");
    assert_string_equal(requests[1], "{\"id\":1,\"gen\":3,\"attempt\":7,\"op\":\"set\","
                                     "\"key\":\"empty\",\"value\":\"\"}");
}

static void test_a_value_is_got(void **state)
{
    static const struct {
        const char *answer, *value;
        size_t size;
    } good[] = {
        {"{\"id\":1,\"value\":\"\"}", "", 0},
        {"{\"value\":\"AA==\",\"id\":1}", "\0", 1},
        {"{\"number\":-1,\"value\" : \"AAE=\"}", "\0\1", 2},
        {"{\"key\":\"value\",\"value\":\"AAH/\",\"x\":\"}\"}", "\0\1\377", 3},
        {"{\"x\":\"a \\\"value\\\": \\\\\",\"value\":\"YWJjZA==\"}", "abcd", 4},
    };
    char value[8];

    for (size_t i = 0; i < COUNT(good); i++)
        will_answer(good[i].answer);
    begin();
    for (size_t i = 0; i < COUNT(good); i++) {
        size_t size = sizeof(value);

        assert_int_equal(store_client_get(&store, "k", value, &size, 1500, &err), 0);
        assert_int_equal(size, good[i].size);
        assert_memory_equal(value, good[i].value, size);
    }
    end();
    assert_string_equal(requests[0],
                        "{\"id\":1,\"gen\":3,\"attempt\":7,\"op\":\"get\",\"key\":\"k\","
                        "\"timeout\":1.500}");
}

static void test_without_a_limit_it_waits_for_long(void **state)
{
    size_t size = 0;

    will_answer("{\"value\":\"\"}");
    begin();
    assert_int_equal(store_client_get(&store, "k", NULL, &size, -1, &err), 0);
    end();
    assert_non_null(strstr(requests[0], "\"timeout\":1000000000.000}"));
}

/* What was put comes back, of the largest size. */
static void test_the_largest_value_comes_whole(void **state)
{
    unsigned char *sent = malloc(MIB), *got = malloc(MIB);
    char *frame = calloc(2, MIB);
    uint64_t seed = 5;
    size_t size = MIB;
    uint32_t length;

    assert_true(sent != NULL && got != NULL && frame != NULL);
    for (int i = 0; i < MIB; i++)
        sent[i] = (unsigned char)random_next(&seed);
    will_answer("{}");
    begin();
    assert_int_equal(store_client_put(&store, "large", sent, MIB, &err), 0);
    end();
    snprintf(frame + sizeof(length), 2 * MIB - sizeof(length), "{%s",
             strstr(requests[0], "\"value\""));
    length = htonl((uint32_t)strlen(frame + sizeof(length)));
    memcpy(frame, &length, sizeof(length));
    forget(state);
    will_send(frame, sizeof(length) + ntohl(length));
    begin();
    assert_int_equal(store_client_get(&store, "large", got, &size, 0, &err), 0);
    end();
    assert_int_equal(size, MIB);
    assert_memory_equal(sent, got, MIB);
    free(sent);
    free(got);
    free(frame);
}

static void test_a_value_that_does_not_fit(void **state)
{
    char value[] = "....";
    size_t size = 3;

    will_answer("{\"value\":\"YWJjZGVm\"}");
    begin();
    assert_int_equal(store_client_get(&store, "k", value, &size, 0, &err), ELASTIC_ERROR_ARGUMENT);
    end();
    assert_int_equal(size, 6);
    assert_memory_equal(value, "abc.", 4);
    assert_string_equal(err.text, "\"k\" has 6 bytes: there is room for 3");
}

static void test_errors_are_told(void **state)
{
    static const struct {
        const char *answer;
        int rc;
        const char *text;
    } errors[] = {
        {"{\"error\":\"timeout\"}", ELASTIC_PENDING, "nobody has put \"k\" in time"},
        {"{\"error\":\"gone\"}", ELASTIC_ERROR_GONE, "the world of generation 3 is over"},
        {"{\"error\":\"full\",\"reason\":\"too many\"}", ELASTIC_ERROR_STORE, "too many"},
        {"{\"error\":\"lost\"}", ELASTIC_ERROR_STORE, "lost"},
        {"{\"error\":\"timeouts\"}", ELASTIC_ERROR_STORE, "timeouts"},
    };
    char value[8];

    for (size_t i = 0; i < COUNT(errors); i++)
        will_answer(errors[i].answer);
    begin();
    for (size_t i = 0; i < COUNT(errors); i++) {
        size_t size = sizeof(value);

        assert_int_equal(store_client_get(&store, "k", value, &size, 0, &err), errors[i].rc);
        assert_non_null(strstr(err.text, errors[i].text));
        assert_one_line(err.text);
    }
    end();
}

static void test_a_busy_agent_is_asked_again(void **state)
{
    char value[8];
    size_t size = sizeof(value);

    will_answer("{\"error\":\"busy\"}");
    will_answer("{\"error\":\"busy\"}");
    will_answer("{\"value\":\"YQ==\"}");
    begin();
    assert_int_equal(store_client_get(&store, "k", value, &size, 0, &err), 0);
    end();
    assert_int_equal(size, 1);
}

static void test_nonsense_is_an_error(void **state)
{
    static const char *const nonsense[] = {
        "[]",
        "{\"value\":\"!!!!\"}",
        "{\"value\":\"AAA\"}",
        "{\"value\":\"A===\"}",
        "{\"value\":\"AA=A\"}",
        "{\"value\":\"AAAA",
        "{\"value\":\"AAAA\\",
        "{\"value\":3}",
    };
    char value[8];

    for (size_t i = 0; i < COUNT(nonsense); i++)
        will_answer(nonsense[i]);
    begin();
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        size_t size = sizeof(value);

        assert_int_equal(store_client_get(&store, "k", value, &size, 0, &err), ELASTIC_ERROR_STORE);
        assert_one_line(err.text);
    }
    end();
}

static void test_an_agent_that_hangs_up(void **state)
{
    will_send("", 0);
    will_send("\0\0", 2);
    will_send("\0\0\0\0", 4);
    will_send("\377\377\377\377xxxx", 8);
    will_send("\0\0\0\10{\"id", 8);
    begin();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(store_client_put(&store, "k", "x", 1, &err), ELASTIC_ERROR_STORE);
        assert_one_line(err.text);
    }
    end();
}

static void test_without_an_agent(void **state)
{
    struct store_client nowhere = {"/nonexistent/store", 1, 1};

    assert_int_equal(store_client_put(&store, "k", "x", 1, &err), ELASTIC_ERROR_STORE);
    assert_non_null(strstr(err.text, "cannot be reached: No such file"));
    assert_int_equal(store_client_put(&nowhere, "k", "x", 1, &err), ELASTIC_ERROR_STORE);
    assert_non_null(strstr(err.text, "/nonexistent/store"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        TEST(test_a_value_is_put),
        TEST(test_a_value_is_got),
        TEST(test_without_a_limit_it_waits_for_long),
        TEST(test_the_largest_value_comes_whole),
        TEST(test_a_value_that_does_not_fit),
        TEST(test_errors_are_told),
        TEST(test_a_busy_agent_is_asked_again),
        TEST(test_nonsense_is_an_error),
        TEST(test_an_agent_that_hangs_up),
        TEST(test_without_an_agent),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
