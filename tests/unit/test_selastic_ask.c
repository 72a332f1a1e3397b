/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding the leader among a job's nodes, and one question to it. The connections are acted by
 * this file: an address says how they go, "open" or "slow" (after 0.7 s), then what happens to
 * the question: "-answer", "-silent", "-break"; or "refuse", "never". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/ask.h"
#include "common/link.h"
#include "tests/unit/support.h"

#define SLOW_MS 700

struct link {
    struct link_handlers handlers;
    void *arg;
    char address[64];
    uv_timer_t timer;
    const char *closing;
    bool open;
};

static int links_begun, links_freed, questions;

static bool is(const struct link *link, const char *part)
{
    return strstr(link->address, part) != NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;
    char why[128];
    snprintf(why, sizeof(why), "%s: %s", link->address, link->closing);
    link->handlers.closed(link, why, link->arg);
    links_freed++;
    free(link);
}

void link_close(struct link *link, const char *why)
{
    if (link->closing)
        return;
    link->closing = why;
    uv_close((uv_handle_t *)&link->timer, on_closed);
}

static void on_timer(uv_timer_t *timer)
{
    struct link *link = timer->data;
    if (is(link, "refuse") || (link->open && is(link, "break"))) {
        link_close(link, link->open ? "broken" : "refused");
    } else if (link->open) {
        json_object *answer = json_object_new_object();
        json_object_object_add(answer, "from", json_object_new_string(link->address));
        link->handlers.message(link, answer, link->arg);
        json_object_put(answer);
    } else {
        link->open = true;
        link->handlers.open(link, link->arg);
    }
}

struct link *link_connect(uv_loop_t *loop, const struct link_client_options *options,
                          const struct link_handlers *handlers, void *arg, struct error *err)
{
    struct link *link = calloc(1, sizeof(*link));
    assert_non_null(link);
    assert_string_equal(options->role, LINK_ROLE_CONTROL);
    assert_int_equal(options->job_id, 12);
    assert_int_equal(options->restarts, 3);
    assert_int_equal(options->leader_uid, 1234);
    assert_int_equal(options->port, 0);
    links_begun++;
    link->handlers = *handlers;
    link->arg = arg;
    snprintf(link->address, sizeof(link->address), "%s", options->address);
    uv_timer_init(loop, &link->timer);
    link->timer.data = link;
    if (!is(link, "never"))
        uv_timer_start(&link->timer, on_timer, is(link, "slow") ? SLOW_MS : 1, 0);
    return link;
}

int link_send(struct link *link, json_object *msg)
{
    assert_true(link->open);
    json_object_put(msg);
    questions++;
    if (!is(link, "silent"))
        uv_timer_start(&link->timer, on_timer, 1, 0);
    return 0;
}

struct reply {
    int calls;
    char from[64];
    char why[128];
};

static void on_done(json_object *answer, const char *why, void *arg)
{
    struct reply *reply = arg;
    json_object *from = NULL;
    reply->calls++;
    json_object_object_get_ex(answer, "from", &from);
    snprintf(reply->from, sizeof(reply->from), "%s", from ? json_object_get_string(from) : "");
    snprintf(reply->why, sizeof(reply->why), "%s", why ? why : "");
    assert_true((answer == NULL) == (why != NULL));
}

/* Ask, and check that everything that was begun is also gone, and that one leader at most was
 * asked. */
static struct reply ask(char *const *addresses, int timeout_ms)
{
    struct reply reply = {0};
    struct conf conf = {.port_first = 23000, .port_last = 23100};
    struct ask_options options = {
        .job_id = 12,
        .restarts = 3,
        .uid = 1234,
        .addresses = addresses,
        .conf = &conf,
        .request = json_object_new_object(),
        .timeout_ms = timeout_ms,
    };
    uv_loop_t loop;
    links_begun = links_freed = questions = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(ask_leader(&loop, &options, on_done, &reply, NULL), 0);
    json_object_put(options.request);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(reply.calls, 1);
    assert_int_equal(links_begun, links_freed);
    assert_in_range(questions, 0, 1);
    return reply;
}

#define ASK(timeout_ms, ...)                                                                       \
    ask((char *const *)(const char *const[]){__VA_ARGS__, NULL}, timeout_ms)

static void test_first_node(void **unused)
{
    struct reply reply = ASK(5000, "open-answer-1", "open-answer-2");
    assert_string_equal(reply.from, "open-answer-1");
    assert_int_equal(links_begun, 1);
}

static void test_other_node(void **unused)
{
    struct reply reply = ASK(5000, "refuse-1", "never-2", "open-answer-3");
    assert_string_equal(reply.from, "open-answer-3");
}

static void test_first_node_is_silent(void **unused)
{
    struct reply reply = ASK(5000, "never-1", "refuse-2", "open-answer-3", "never-4");
    assert_string_equal(reply.from, "open-answer-3");
}

/* It is being connected still when the others are tried: whoever opens first is the leader. */
static void test_first_node_is_slow(void **unused)
{
    struct reply reply = ASK(5000, "slow-answer-1", "never-2");
    assert_string_equal(reply.from, "slow-answer-1");
    assert_int_equal(links_begun, 2);
}

static void test_at_most_16_nodes(void **unused)
{
    const char *addresses[20];
    for (int i = 0; i < 19; i++)
        addresses[i] = i < 18 ? "refuse" : "open-answer";
    addresses[19] = NULL;
    struct reply reply = ask((char *const *)addresses, 5000);
    assert_string_equal(reply.from, "");
    assert_int_equal(links_begun, 16);
}

static void test_nobody(void **unused)
{
    struct reply reply = ASK(5000, "refuse-1", "refuse-2");
    assert_string_equal(reply.why, "refuse-1: refused");
    reply = ASK(60, "never-1", "never-2");
    assert_string_equal(reply.why, "nobody answers");
    /* The second one is asked only after a while. */
    reply = ASK(3000, "never-1", "refuse-2");
    assert_string_equal(reply.why, "refuse-2: refused");
}

static void test_no_answer(void **unused)
{
    struct reply reply = ASK(100, "open-silent-1", "never-2");
    assert_string_equal(reply.why, "the leader is there, but does not answer");
    reply = ASK(5000, "open-break-1", "open-answer-2");
    assert_string_equal(reply.why, "open-break-1: broken");
}

static void test_no_nodes(void **unused)
{
    struct error err;
    char *const none[] = {NULL};
    struct ask_options options = {.job_id = 12, .addresses = none};
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(ask_leader(&loop, &options, on_done, NULL, &err), -1);
    assert_string_equal(err.text, "job 12 has no nodes");
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_node),
        cmocka_unit_test(test_other_node),
        cmocka_unit_test(test_first_node_is_silent),
        cmocka_unit_test(test_first_node_is_slow),
        cmocka_unit_test(test_at_most_16_nodes),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_no_nodes),
    };
    return cmocka_run_group_tests_name("selastic_ask", tests, NULL, NULL);
}
