/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread that writes files of the state directory, while the file system hangs. */
#include "tests/unit/support.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "agent/leader/scribe.h"
#include "common/files.h"

/* In place of the file system: each write waits until it may. */
static sem_t may_write;
static char said[512];
static int failures;

static int note(const char *how, const char *path, const char *text, struct error *err)
{
    sem_wait(&may_write);
    if (strstr(text, "bad") != NULL)
        return error_set(err, "%s: Input/output error", path);
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s %s %s;", how, path, text);
    return 0;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err)
{
    (void)len;
    assert_int_equal(mode, 0600);
    return note("replace", path, data, err);
}

int file_append(const char *path, const char *line, struct error *err)
{
    return note("append", path, line, err);
}

static void wrote(int rc, const struct error *err, void *arg)
{
    int *count = arg;

    ++*count;
    failures += rc != 0;
    if (rc != 0)
        assert_memory_equal(err->text, "/d/history: ", strlen("/d/history: "));
}

struct bench {
    uv_loop_t loop;
    struct scribe *scribe;
    int count;
};

static int set_up(void **state)
{
    static struct bench bench;

    bench = (struct bench){.count = 0};
    said[0] = '\0';
    failures = 0;
    sem_init(&may_write, 0, 0);
    uv_loop_init(&bench.loop);
    bench.scribe = scribe_create(&bench.loop, "/d", wrote, &bench.count);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    scribe_destroy(bench->scribe);
    assert_int_equal(uv_run(&bench->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    return 0;
}

static void let_write(int count)
{
    for (int i = 0; i < count; i++)
        sem_post(&may_write);
}

static void run_until(struct bench *bench, int count)
{
    while (bench->count < count)
        uv_run(&bench->loop, UV_RUN_ONCE);
}

/* Nobody waits for the file system. What is written then is in order, and only the newest. */
static void test_hangs(void **state)
{
    struct bench *bench = *state;

    assert_false(scribe_busy(bench->scribe));
    scribe_replace(bench->scribe, "a", strdup("1"));
    scribe_append(bench->scribe, "history", strdup("x"));
    scribe_replace(bench->scribe, "a", strdup("2"));
    scribe_replace(bench->scribe, "b", strdup("1"));
    scribe_append(bench->scribe, "history", strdup("y"));
    scribe_replace(bench->scribe, "a", strdup("3"));
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_string_equal(said, "");
    assert_true(scribe_busy(bench->scribe));
    let_write(5);
    run_until(bench, 5);
    assert_false(scribe_busy(bench->scribe));
    assert_string_equal(said, "replace /d/a 1;append /d/history x;replace /d/a 3;replace /d/b 1;"
                              "append /d/history y;");
    assert_int_equal(failures, 0);
}

static void test_fails(void **state)
{
    struct bench *bench = *state;

    scribe_append(bench->scribe, "history", strdup("bad"));
    scribe_append(bench->scribe, "history", strdup("good"));
    let_write(2);
    run_until(bench, 2);
    assert_int_equal(failures, 1);
    assert_string_equal(said, "append /d/history good;");
}

/* The leader ends: what is under way ends later, what waits is not begun. */
static void test_goes(void **state)
{
    struct bench *bench = *state;

    scribe_append(bench->scribe, "history", strdup("x"));
    scribe_append(bench->scribe, "history", strdup("y"));
    scribe_destroy(bench->scribe);
    bench->scribe = NULL;
    let_write(2);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(bench->count, 0);
    assert_string_equal(said, "append /d/history x;");
}

/* A file system that hangs for days does not take all memory. */
static void test_is_bounded(void **state)
{
    struct bench *bench = *state;
    int given = 0;

    for (; bench->count == 0 && given < 100000; given++)
        scribe_append(bench->scribe, "history", strdup(""));
    assert_in_range(given, 1000, 10000);
    assert_int_equal(bench->count, 1);
    scribe_destroy(bench->scribe);
    bench->scribe = NULL;
    let_write(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hangs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_is_bounded, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
