/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where elastic-router gets its table from (router/sources), over real connections: a leader, one
 * that takes over from it, refusals, and the file of the service. */
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "lib/json_get.h"
#include "lib/pieces.h"
#include "router/sources.h"
#include "tests/unit/link_fixture.h"
#include "tests/unit/support.h"

/* A leader: it answers `routes` when it has something later. */
struct leader {
    struct link_server *server;
    uint32_t job;
    int term, revision;
    bool refuses;      /* every question */
    size_t piece;      /* bytes of a message: its table is larger; 0: a message has it */
    int changes_after; /* … and is another one after so many pieces; 0: it is not */
    int pieces;        /* … that have been asked for */
    const char *state; /* of its replica */
    struct link *waiting;
    int64_t after;
    json_object *routed; /* the last report */
    int reports;
};

struct test {
    uv_loop_t loop;
    struct conf conf;
    struct sources *sources;
    struct leader leaders[2];
    struct route_table *table; /* the one that counts */
    int changes;
    char dir[64];
    uv_timer_t tick;
};

static json_object *table_json(const struct leader *leader)
{
    char text[512];
    struct error err = {""};
    struct route_table *table;
    json_object *json;

    snprintf(
        text, sizeof(text),
        "{\"service\":\"s\",\"job\":\"%u\",\"term\":%d,\"revision\":%d,\"epoch\":%d,"
        "\"route-by\":{\"json\":\"$.model\"},\"shards\":[{\"name\":\"shard_1\",\"check\":\"/\","
        "\"replicas\":[{\"name\":\"a\",\"address\":\"10.0.0.%d\",\"port\":80,"
        "\"state\":\"%s\"}]}],\"routes\":[{\"key\":\"k\",\"shard\":\"shard_1\"}]}",
        leader->job, leader->term, leader->revision, leader->revision, leader->term, leader->state);
    table = route_table_parse(text, strlen(text), &err);
    assert_non_null(table);
    json = route_table_json(table);
    route_table_destroy(table);
    return json;
}

static void reply(struct link *link, const char *type, json_object *table)
{
    json_object *answer = json_object_new_object();

    json_object_object_add(answer, "t", json_object_new_string(type));
    if (table != NULL)
        json_object_object_add(answer, "table", table);
    else
        json_object_object_add(answer, "message", json_object_new_string("not today"));
    link_send(link, answer);
}

static void reply_piece(struct leader *leader, struct link *link, size_t number)
{
    json_object *json = table_json(leader), *answer = json_object_new_object();
    const char *text = json_object_to_json_string(json);
    size_t from = number * leader->piece, size = strlen(text);
    size_t len = size - from < leader->piece ? size - from : leader->piece;

    assert_true(from < size);
    json_object_object_add(answer, "t", json_object_new_string("routes"));
    json_object_object_add(answer, "revision", json_object_new_int(leader->revision));
    json_object_object_add(answer, "piece", json_object_new_int64((int64_t)number));
    json_object_object_add(answer, "last", json_object_new_boolean(from + len == size));
    assert_int_equal(piece_set(answer, text + from, len), 0);
    link_send(link, answer);
    json_object_put(json);
}

/* A piece of the table that is asked for; the first one of another table. False: none is. */
static bool answer_piece(struct leader *leader, struct link *link, json_object *msg)
{
    int64_t piece, revision;

    if (!json_get_int(msg, "piece", 1, 1000, &piece))
        return false;
    assert_true(json_get_int(msg, "revision", 0, 1000, &revision));
    if (++leader->pieces == leader->changes_after)
        leader->revision++;
    reply_piece(leader, link, revision == leader->revision ? (size_t)piece : 0);
    return true;
}

static void answer(struct leader *leader)
{
    if (leader->waiting != NULL && leader->piece > 0 && leader->revision > leader->after) {
        reply_piece(leader, leader->waiting, 0);
        leader->waiting = NULL;
    }
    if (leader->waiting == NULL || leader->revision <= leader->after)
        return;
    reply(leader->waiting, "routes", table_json(leader));
    leader->waiting = NULL;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct leader *leader = arg;
    const char *type = json_get_string(msg, "t");

    if (leader->refuses) {
        reply(link, "error", NULL);
    } else if (strcmp(type, "routes") == 0) {
        assert_string_equal(json_get_string(msg, "router"), "here");
        if (leader->piece > 0 && answer_piece(leader, link, msg))
            return;
        assert_true(json_get_int(msg, "after", -1, 1000, &leader->after));
        leader->waiting = link;
        answer(leader);
    } else {
        assert_string_equal(type, "routed");
        json_object_put(leader->routed);
        leader->routed = json_object_get(msg);
        leader->reports++;
        reply(link, "done", NULL);
    }
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct leader *leader = arg;

    (void)why;
    if (leader->waiting == link)
        leader->waiting = NULL;
}

static void on_open(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void begin_leader(struct test *test, int which, int term)
{
    static const struct link_handlers handlers = {
        .open = on_open, .message = on_message, .closed = on_closed};
    struct leader *leader = &test->leaders[which];
    struct link_server_options options = {.job_id = JOB + (uint32_t)which,
                                          .munge_socket = munge_socket,
                                          .slurm_user = OTHER_UID,
                                          .port_first = port_first,
                                          .port_last = port_last};
    struct error err = {""};

    *leader = (struct leader){.job = options.job_id, .term = term, .revision = 1, .state = "ready"};
    leader->server = link_server_create(&test->loop, &options, &handlers, leader, &err);
    if (leader->server == NULL)
        fail_msg("%s", err.text);
}

static void write_text(struct test *test, const char *name, const char *text)
{
    char path[128];
    struct error err = {""};

    snprintf(path, sizeof(path), "%s/%s", test->dir, name);
    assert_int_equal(file_replace(path, text, strlen(text), 0600, &err), 0);
}

static void place(struct test *test, int which)
{
    const struct leader *leader = &test->leaders[which];
    char text[256];

    snprintf(text, sizeof(text),
             "{\"service\":\"s\",\"job\":%u,\"restarts\":0,\"term\":%d,"
             "\"addresses\":[\"127.0.0.1\"],\"port\":%d}",
             leader->job, leader->term, link_server_port(leader->server));
    write_text(test, "leader.json", text);
}

static void on_table(struct route_table *table, void *arg)
{
    struct test *test = arg;

    route_table_destroy(test->table);
    test->table = route_table_share(table);
    test->changes++;
}

/* What main.c does each second or so. */
static void on_tick(uv_timer_t *timer)
{
    struct test *test = timer->data;
    const struct haproxy_stat nothing = {0};
    struct driver_view view = {.stat = &nothing, .confirmed = -1};

    sources_choose(test->sources);
    view.table = test->table;
    if (view.table != NULL)
        view.confirmed = view.table->epoch;
    sources_report(test->sources, &view);
}

static int setup(void **state)
{
    struct test *test = calloc(1, sizeof(*test));
    struct sources_options options = {.service = "s", .id = "here", .arg = test};

    assert_non_null(test);
    uv_loop_init(&test->loop);
    strcpy(test->dir, "/tmp/test_router_sources.XXXXXX");
    assert_non_null(mkdtemp(test->dir));
    test->conf.munge_socket = (char *)(uintptr_t)munge_socket;
    test->conf.port_first = port_first;
    test->conf.port_last = port_last;
    options.directory = test->dir;
    options.conf = &test->conf;
    options.table_changed = on_table;
    test->sources = sources_create(&test->loop, &options);
    uv_timer_init(&test->loop, &test->tick);
    test->tick.data = test;
    uv_timer_start(&test->tick, on_tick, 20, 20);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    struct test *test = *state;
    struct error err = {""};

    sources_destroy(test->sources);
    uv_close((uv_handle_t *)&test->tick, NULL);
    for (int i = 0; i < 2; i++) {
        if (test->leaders[i].server != NULL)
            link_server_destroy(test->leaders[i].server);
        json_object_put(test->leaders[i].routed);
    }
    assert_true(run_empty(&test->loop));
    route_table_destroy(test->table);
    dir_remove(test->dir, &err);
    free(test);
    return 0;
}

/* ---- what is waited for ---------------------------------------------------------------------- */

struct wish {
    struct test *test;
    int term, revision;
    int told; /* the leader who has been told that epoch; -1: nobody */
    const char *words, *drained;
};

static bool is_granted(void *arg)
{
    const struct wish *wish = arg;
    const struct route_table *table = wish->test->table;
    json_object *report, *drained = NULL;
    int64_t epoch;

    if (wish->words != NULL)
        return strstr(sources_words(wish->test->sources), wish->words) != NULL;
    if (table == NULL || table->term != wish->term || table->revision != wish->revision)
        return false;
    if (wish->told < 0)
        return true;
    report = wish->test->leaders[wish->told].routed;
    if (report == NULL || !json_get_int(report, "epoch", -1, 1000, &epoch))
        return false;
    json_object_object_get_ex(report, "drained", &drained);
    return wish->drained != NULL
               ? strcmp(json_object_to_json_string_ext(drained, JSON_C_TO_STRING_PLAIN),
                        wish->drained) == 0
               : epoch == wish->revision;
}

static void await(struct wish wish)
{
    if (!run_until(&wish.test->loop, is_granted, &wish))
        fail_msg("in vain: term %d, revision %d; '%s'", wish.term, wish.revision,
                 sources_words(wish.test->sources));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_leader(void **state)
{
    struct test *test = *state;
    struct leader *leader = &test->leaders[0];
    int changes;

    await((struct wish){.test = test, .words = "leader.json: No such file"});
    begin_leader(test, 0, 3);
    place(test, 0);
    await((struct wish){test, 3, 1, 0, NULL, NULL});
    await((struct wish){.test = test, .words = "answers"});
    assert_string_equal(json_get_string(leader->routed, "router"), "here");
    assert_string_equal(json_get_string(leader->routed, "service"), "s");
    /* The next revision comes as soon as there is one. */
    leader->revision = 2;
    leader->state = "draining";
    answer(leader);
    await((struct wish){test, 3, 2, 0, NULL, NULL});
    await((struct wish){test, 3, 2, 0, NULL, "[\"a\"]"});
    /* The same once more, and an older one, change nothing. */
    changes = test->changes;
    leader->after = -1;
    leader->revision = 1;
    answer(leader);
    leader->revision = 3; /* for the question that follows */
    await((struct wish){test, 3, 3, 0, NULL, NULL});
    assert_int_equal(test->changes, changes + 1);
}

/* A table that is too large for a message, and becomes another one while it is told. */
static void test_pieces(void **state)
{
    struct test *test = *state;
    struct leader *leader = &test->leaders[0];

    begin_leader(test, 0, 3);
    leader->piece = 50;
    leader->changes_after = 3;
    place(test, 0);
    await((struct wish){test, 3, 2, 0, NULL, NULL});
    assert_true(leader->pieces > 5);
    assert_int_equal(test->changes, 1);
    /* The next one has room in one piece. */
    leader->piece = 1 << 20;
    leader->revision = 3;
    answer(leader);
    await((struct wish){test, 3, 3, 0, NULL, NULL});
}

static void test_handover(void **state)
{
    struct test *test = *state;

    begin_leader(test, 0, 3);
    place(test, 0);
    await((struct wish){test, 3, 1, 0, NULL, NULL});
    /* The next one has been named, but does not say anything yet: the first one counts. */
    begin_leader(test, 1, 4);
    test->leaders[1].refuses = true;
    place(test, 1);
    await((struct wish){.test = test, .words = "not today"});
    test->leaders[0].revision = 7;
    answer(&test->leaders[0]);
    await((struct wish){test, 3, 7, 0, NULL, NULL});
    /* It does: its table counts, and the first leader hears that its replica is drained. */
    test->leaders[1].refuses = false;
    await((struct wish){test, 4, 1, 1, NULL, NULL});
    await((struct wish){test, 4, 1, 0, NULL, "[\"a\"]"});
    /* What the first one says has no effect any more. */
    test->leaders[0].revision = 9;
    answer(&test->leaders[0]);
    test->leaders[1].revision = 2;
    answer(&test->leaders[1]);
    await((struct wish){test, 4, 2, 1, NULL, NULL});
    /* The job ends, and says so: its table stays until there is another one. */
    write_text(test, "leader.json",
               "{\"job\":4712,\"restarts\":0,\"term\":4,\"addresses\":[\"127.0.0.1\"],"
               "\"ended\":true}");
    await((struct wish){.test = test, .words = "job 4712 has ended"});
    assert_int_equal(test->table->term, 4);
}

static void test_file(void **state)
{
    struct test *test = *state;
    struct leader someone = {.job = 1, .term = 2, .revision = 5, .state = "ready"};
    json_object *json = table_json(&someone);

    write_text(test, "routes.json", "{\"service\": \"s\"");
    await((struct wish){.test = test, .words = "the table of routes: "});
    write_text(test, "routes.json", json_object_to_json_string(json));
    await((struct wish){test, 2, 5, -1, NULL, NULL});
    json_object_put(json);
    write_text(test, "leader.json", "{\"job\": -1}");
    await((struct wish){.test = test, .words = "leader.json: "});
    /* A leader counts, whatever the file says. */
    begin_leader(test, 0, 1);
    place(test, 0);
    await((struct wish){test, 1, 1, 0, NULL, NULL});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_leader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_handover, setup, teardown),
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
    };

    return scene_run(argc, argv, tests);
}
