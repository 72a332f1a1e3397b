/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is below a prefix on S3 is removed, whatever others have put there: common/s3_remove with a
 * server that has more than it likes to tell at once. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/s3.h"
#include "common/s3_private.h"
#include "tests/unit/support.h"

#define PAGE 1000

/* ---- the server ------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int objects, uploads; /* so many, with the names "in/0000000", … and "in/0000000" */
static int listed, deleted, ended, at_once;
static int stays; /* the numbers below it do */
static bool marks, refuses;
static bool is_real; /* requests go to libcurl */

enum s3_result __real_s3_ask(struct s3 *s3, const struct s3_request *request,
                             struct s3_reply *reply, struct error *err);
enum s3_result __wrap_s3_ask(struct s3 *s3, const struct s3_request *request,
                             struct s3_reply *reply, struct error *err);
CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);

static const char *parameter(const struct s3_request *request, const char *name)
{
    for (const struct s3_parameter *one = request->parameters; one != NULL && one->name != NULL;
         one++)
        if (strcmp(one->name, name) == 0)
            return one->value;
    return NULL;
}

static int number_in(const char *key)
{
    return key != NULL ? atoi(key + strlen("in/")) : -1;
}

/* One page of them. */
static void tell(const struct s3_request *request, struct s3_reply *reply)
{
    const char *token = parameter(request, "continuation-token");
    int from = token != NULL ? atoi(token) : 0, to = from + PAGE < objects ? from + PAGE : objects;
    FILE *file = open_memstream(&reply->text, &reply->len);

    fprintf(file, "<ListBucketResult><IsTruncated>%s</IsTruncated>",
            to < objects ? "true" : "false");
    for (int i = from; i < to; i++)
        fprintf(file, "<Contents><Key>in/%07d</Key><Size>1</Size></Contents>", i);
    if (to < objects)
        fprintf(file, "<NextContinuationToken>%d</NextContinuationToken>", to);
    fprintf(file, "</ListBucketResult>");
    fclose(file);
    listed += to - from;
    at_once = listed - deleted > at_once ? listed - deleted : at_once;
}

/* Those that are left behind the marker. */
static void tell_uploads(const struct s3_request *request, struct s3_reply *reply)
{
    int from = number_in(parameter(request, "key-marker")) + 1, count = 0, last = 0;
    FILE *file = open_memstream(&reply->text, &reply->len);

    fprintf(file, "<ListMultipartUploadsResult>");
    for (int i = from; i < uploads && count < PAGE; i++) {
        if (i >= stays && i < stays + ended)
            continue;
        fprintf(file, "<Upload><Key>in/%07d</Key><UploadId>u</UploadId></Upload>", i);
        last = i;
        count++;
    }
    if (marks)
        fprintf(file,
                "<NextKeyMarker>in/%07d</NextKeyMarker><NextUploadIdMarker>u"
                "</NextUploadIdMarker>",
                last);
    fprintf(file, "<IsTruncated>%s</IsTruncated></ListMultipartUploadsResult>",
            last + 1 < uploads ? "true" : "false");
    fclose(file);
}

static enum s3_result remove_one(const struct s3_request *request, struct error *err)
{
    if (refuses || number_in(request->key) < stays) {
        error_set(err, "it is refused");
        return S3_FAILED;
    }
    if (parameter(request, "uploadId") != NULL)
        ended++;
    else
        deleted++;
    return S3_OK;
}

enum s3_result __wrap_s3_ask(struct s3 *s3, const struct s3_request *request,
                             struct s3_reply *reply, struct error *err)
{
    enum s3_result result = S3_OK;

    if (is_real)
        return __real_s3_ask(s3, request, reply, err);
    *reply = (struct s3_reply){0};
    pthread_mutex_lock(&lock);
    if (strcmp(request->method, "DELETE") == 0)
        result = remove_one(request, err);
    else if (parameter(request, "uploads") != NULL)
        tell_uploads(request, reply);
    else
        tell(request, reply);
    pthread_mutex_unlock(&lock);
    return result;
}

static bool as_it_is;

CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list args;
    void *value;

    va_start(args, option);
    value = va_arg(args, void *); /* a long, or an offset, is as large */
    va_end(args);
    as_it_is = as_it_is || option == CURLOPT_PATH_AS_IS;
    return __real_curl_easy_setopt(easy, option, value);
}

static struct s3 *s3;
static struct s3_account account;

static int begin(void **state)
{
    static const struct s3_limits limits = {.connect = 1, .stall = 1, .tries = 1};

    (void)state;
    objects = uploads = listed = deleted = ended = at_once = stays = 0;
    marks = true;
    refuses = is_real = false;
    account = (struct s3_account){.key = (char *)(uintptr_t) "k",
                                  .secret = (char *)(uintptr_t) "s",
                                  .region = (char *)(uintptr_t) "r",
                                  .endpoint = (char *)(uintptr_t) "http://127.0.0.1:1"};
    s3 = s3_open(&account, "bbb", &limits, NULL);
    return s3 != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    s3_close(s3);
    return 0;
}

static int stuck_keys;

static int count_stuck(struct s3 *lane, const char *key, void *arg, struct error *err)
{
    (void)lane;
    (void)key;
    (void)arg;
    (void)err;
    pthread_mutex_lock(&lock);
    stuck_keys++;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* More than anybody would keep in memory, and than a list may have. */
static void test_many_objects(void **state)
{
    struct error err = {""};

    (void)state;
    objects = RANDOM_ROUNDS(1001500);
    stays = 1200;
    stuck_keys = 0;
    if (s3_delete_below(s3, "in/", count_stuck, NULL, &err) != S3_OK)
        fail_msg("%s", err.text);
    assert_int_equal(listed, objects);
    assert_int_equal(deleted, objects - stays);
    assert_int_equal(stuck_keys, stays);
    assert_true(at_once - stays <= 2 * PAGE); /* the page, and the keys of the one before */
}

static void test_refusal(void **state)
{
    struct error err = {""};

    (void)state;
    objects = 1500;
    refuses = true;
    assert_int_equal(s3_delete_below(s3, "in/", NULL, NULL, &err), S3_FAILED);
    assert_string_equal(err.text, "it is refused");
    assert_int_equal(deleted, 0);
}

/* A page of uploads that stay does not hide those behind it. */
static void test_uploads(void **state)
{
    struct error err = {""};

    (void)state;
    uploads = 2500;
    stays = 1100;
    stuck_keys = 0;
    if (s3_give_up_below(s3, "in/", count_stuck, NULL, &err) != S3_OK)
        fail_msg("%s", err.text);
    assert_int_equal(ended, uploads - stays);
    assert_int_equal(stuck_keys, stays);
    assert_int_equal(s3_give_up_below(s3, "in/", NULL, NULL, &err), S3_FAILED);
}

/* A server that does not say where the next page begins. */
static void test_uploads_without_markers(void **state)
{
    struct error err = {""};

    (void)state;
    uploads = 2500;
    marks = false;
    assert_int_equal(s3_give_up_below(s3, "in/", NULL, NULL, &err), S3_OK);
    assert_int_equal(ended, uploads);
    ended = 0;
    stays = 1100;
    stuck_keys = 0;
    assert_int_equal(s3_give_up_below(s3, "in/", count_stuck, NULL, &err), S3_OK);
    assert_int_equal(stuck_keys, PAGE);
}

static bool is_marked(const char *key)
{
    struct error err = {""};

    as_it_is = false;
    assert_int_equal(s3_delete(s3, key, &err), S3_FAILED); /* nobody listens there */
    return as_it_is;
}

/* libcurl 8 does not sign a path that is to stay as it is. */
static void test_paths(void **state)
{
    (void)state;
    is_real = true;
    assert_false(is_marked("in/x") || is_marked("in/x//y") || is_marked("in/x/") ||
                 is_marked("/in") || is_marked("in/\x01"));
    assert_true(is_marked("in/../y") && is_marked("in/./y"));
}

/* It says that much comes, and then ten bytes a second, for five seconds. */
static void *dribble(void *arg)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n";
    const struct timespec pause = {.tv_nsec = 100000000L};
    int fd = accept(*(int *)arg, NULL, NULL);
    char request[4096];

    if (fd < 0)
        return NULL;
    if (recv(fd, request, sizeof(request), 0) > 0)
        send(fd, head, strlen(head), MSG_NOSIGNAL);
    for (int i = 0; i < 50 && send(fd, " ", 1, MSG_NOSIGNAL) == 1; i++)
        nanosleep(&pause, NULL);
    close(fd);
    return NULL;
}

static void test_slow_answer(void **state)
{
    static const struct s3_limits quick = {.connect = 1, .stall = 9, .tries = 1, .answer = 1};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct s3_account slow = account;
    struct error err = {""};
    struct s3 *server;
    pthread_t thread;
    char endpoint[64];

    (void)state;
    is_real = true;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", ntohs(address.sin_port));
    slow.endpoint = endpoint;
    server = s3_open(&slow, "bbb", &quick, NULL);
    assert_int_equal(pthread_create(&thread, NULL, dribble, &listener), 0);
    assert_int_equal(s3_delete_below(server, "in/", NULL, NULL, &err), S3_FAILED);
    s3_close(server);
    pthread_join(thread, NULL);
    close(listener);
    if (strstr(err.text, "has not answered in full within 1 s") == NULL)
        fail_msg("%s", err.text);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_many_objects), WITH_SERVER(test_refusal),
        WITH_SERVER(test_uploads),      WITH_SERVER(test_uploads_without_markers),
        WITH_SERVER(test_paths),        WITH_SERVER(test_slow_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
