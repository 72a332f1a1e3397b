/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic_snapshot(): what is written is what elastic-flush takes (lib/snapshot.h), whenever the
 * program is killed. */
#include "tests/unit/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "agent/workers/event.h"
#include "client/elastic.h"
#include "lib/snapshot.h"

#define CHECKPOINT "/a \"checkpoint\\directory"
#define LARGE      ((size_t)8 << 20)
#define TRIES      200

static char directory[] = "/tmp/elastic-test-snapshot-XXXXXX";
static char page_path[sizeof(directory) + 8];
static struct event *page;

/* ---- a worker -------------------------------------------------------------------------------- */

static int make_directory(void **state)
{
    if (sodium_init() < 0 || mkdtemp(directory) == NULL)
        return -1;
    snprintf(page_path, sizeof(page_path), "%s/page", directory);
    return 0;
}

static int set_environment(void **state)
{
    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    setenv("ELASTIC_RUN_DIR", directory, 1);
    setenv("ELASTIC_CHECKPOINT_DIR", CHECKPOINT, 1);
    setenv("ELASTIC_INCARNATION", "12.1", 1);
    return 0;
}

static void path_of(char path[128], int index, const char *name)
{
    snprintf(path, 128, "%s/snapshot/%d/%s", directory, index, name);
}

static void remove_buffers(void)
{
    static const char *const names[] = {
        SNAPSHOT_MANIFEST, ".complete.json", "one", "two", "other", ""};
    char path[128];

    for (int index = 0; index < 2; index++)
        for (size_t i = 0; i < COUNT(names); i++) {
            path_of(path, index, names[i]);
            if (unlink(path) != 0)
                rmdir(path);
        }
    snprintf(path, sizeof(path), "%s/snapshot", directory);
    rmdir(path);
}

static int leave(void **state)
{
    elastic_finalize();
    if (page != NULL) {
        event_unlink(page);
        event_destroy(page);
        page = NULL;
    }
    remove_buffers();
    return 0;
}

static int remove_directory(void **state)
{
    return rmdir(directory);
}

static void begin_world(int rank, int size, int local_rank, int local_size)
{
    struct event_world world = {.generation = 3,
                                .rank = rank,
                                .size = size,
                                .local_rank = local_rank,
                                .local_size = local_size,
                                .nodes = size / local_size,
                                .attempt = 1};
    struct error err;

    page = event_create(page_path, 3, &err);
    assert_non_null(page);
    event_set_world(page, &world);
    assert_int_equal(elastic_init(), 0);
}

/* ---- a buffer -------------------------------------------------------------------------------- */

/* A new string of what is in a file; NULL: it is not there. */
static char *content(int index, const char *name, size_t *len)
{
    char path[128];
    struct stat st;
    char *text;
    int fd;

    path_of(path, index, name);
    fd = open(path, O_RDONLY | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    text = malloc((size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
    *len = (size_t)st.st_size;
    close(fd);
    return text;
}

/* Whether each file is what the manifest says. */
static bool is_whole(int index, const struct snapshot *snapshot)
{
    bool whole = true;

    for (int i = 0; i < snapshot->count; i++) {
        const struct snapshot_file *file = &snapshot->files[i];
        uint8_t digest[SNAPSHOT_DIGEST];
        size_t len = 0;
        char *text = content(index, file->name, &len);

        whole = whole && text != NULL && (int64_t)len == file->bytes;
        if (whole) {
            crypto_generichash(digest, sizeof(digest), (unsigned char *)text, len, NULL, 0);
            whole = memcmp(digest, file->digest, sizeof(digest)) == 0;
        }
        free(text);
    }
    return whole;
}

/* The buffer's manifest, of a buffer that is whole; NULL: it is not complete. */
static struct snapshot *read_buffer(int index)
{
    size_t len = 0;
    char *text = content(index, SNAPSHOT_MANIFEST, &len);
    struct error err = {""};
    struct snapshot *snapshot;

    if (text == NULL)
        return NULL;
    snapshot = snapshot_parse(text, len, &err);
    if (snapshot == NULL || !is_whole(index, snapshot))
        fail_msg("%s: %.*s", err.text, (int)len, text);
    free(text);
    return snapshot;
}

static int64_t step_in(int index)
{
    struct snapshot *snapshot = read_buffer(index);
    int64_t step = snapshot != NULL ? snapshot->key.step : -1;

    snapshot_destroy(snapshot);
    return step;
}

/* For as long as somebody writes nothing more can be said. */
static bool some_are_complete(void)
{
    char path[2][128];

    for (int i = 0; i < 2; i++)
        path_of(path[i], i, SNAPSHOT_MANIFEST);
    return access(path[0], F_OK) == 0 || access(path[1], F_OK) == 0;
}

static void keep(const char *text)
{
    struct elastic_part part = {"one", text, strlen(text)};

    assert_int_equal(elastic_snapshot(&part, 1, 0), 0);
    assert_int_equal(elastic_snapshot_wait(-1), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_what_is_written(void **state)
{
    char one[] = "first";
    struct elastic_part parts[] = {{"one", one, sizeof(one)}, {"two", NULL, 0}};
    struct snapshot *snapshot;
    struct stat st;
    char path[128], *text;
    size_t len = 0;

    begin_world(0, 2, 0, 1);
    assert_int_equal(elastic_snapshot_wait(0), 0);
    for (int i = 0; i < 7; i++)
        elastic_event_test(NULL);
    assert_int_equal(elastic_snapshot(parts, 2, 0), 0);
    one[0] = 'x'; /* it was copied */
    assert_int_equal(elastic_snapshot_wait(-1), 0);
    snapshot = read_buffer(0);
    assert_non_null(snapshot);
    assert_int_equal(snapshot->key.job, 12);
    assert_int_equal(snapshot->key.restarts, 1);
    assert_int_equal(snapshot->key.generation, 3);
    assert_int_equal(snapshot->key.step, elastic_step());
    assert_string_equal(snapshot->checkpoint, CHECKPOINT);
    assert_int_equal(snapshot->count, 2);
    assert_int_equal(snapshot->bytes, sizeof(one));
    snapshot_destroy(snapshot);
    text = content(0, "one", &len);
    assert_string_equal(text, "first");
    free(text);
    path_of(path, 0, "");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_two_buffers_in_turn(void **state)
{
    struct elastic_part part = {"other", "x", 1};
    char path[128];

    begin_world(0, 1, 0, 1);
    for (int i = 1; i <= 5; i++) {
        elastic_event_test(NULL);
        keep("state");
        assert_int_equal(step_in((i + 1) % 2), elastic_step());
        assert_int_equal(step_in(i % 2), i > 1 ? elastic_step() - 1 : -1);
    }
    /* Of what there was in a buffer nothing stays. */
    assert_int_equal(elastic_snapshot(&part, 1, ELASTIC_IN_PLACE), 0);
    assert_int_equal(elastic_snapshot_wait(-1), 0);
    path_of(path, 1, "one");
    assert_int_equal(access(path, F_OK), -1);
}

static void test_another_process_does_not_begin_with_the_newest(void **state)
{
    begin_world(0, 1, 0, 1);
    elastic_event_test(NULL);
    keep("older");
    elastic_event_test(NULL);
    keep("newer"); /* in buffer 1 */
    for (int i = 0; i < 2; i++) {
        const struct timespec times[2] = {{.tv_sec = 1000 - i}, {.tv_sec = 1000 - i}};
        char path[128];
        size_t len = 0;
        char *text;

        /* The newest is in buffer i. */
        path_of(path, 0, SNAPSHOT_MANIFEST);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        path_of(path, 1, SNAPSHOT_MANIFEST);
        assert_int_equal(
            utimensat(AT_FDCWD, path, &(struct timespec[2]){{999, 500}, {999, 500}}[0], 0), 0);
        elastic_finalize();
        assert_int_equal(elastic_init(), 0);
        keep(i == 0 ? "third" : "fourth");
        text = content(i == 0 ? 1 : 0, "one", &len);
        assert_memory_equal(text, i == 0 ? "third" : "fourth", len);
        free(text);
    }
}

static void test_who_keeps_it(void **state)
{
    static const struct {
        int rank, size, local_rank, local_size;
        bool keeps;
    } cases[] = {
        {0, 1, 0, 1, true},  {0, 6, 0, 2, true},  {1, 6, 1, 2, false}, {2, 6, 0, 2, false},
        {3, 6, 1, 2, false}, {4, 6, 0, 2, true},  {5, 6, 1, 2, false}, {2, 3, 0, 1, true},
        {1, 3, 0, 1, false}, {1, 2, 1, 2, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct elastic_part part = {"one", "x", 1};

        begin_world(cases[i].rank, cases[i].size, cases[i].local_rank, cases[i].local_size);
        assert_int_equal(elastic_snapshot(&part, 1, 0), cases[i].keeps ? 0 : ELASTIC_ELSEWHERE);
        assert_int_equal(elastic_snapshot_wait(-1), 0);
        assert_int_equal(step_in(0) >= 0, cases[i].keeps);
        leave(state);
    }
}

static void test_one_at_a_time(void **state)
{
    struct elastic_part part = {"one", calloc(1, LARGE), LARGE};
    int rc = 0;

    begin_world(0, 1, 0, 1);
    for (int i = 0; rc == 0 && i < TRIES; i++)
        rc = elastic_snapshot(&part, 1, ELASTIC_IN_PLACE);
    assert_int_equal(rc, ELASTIC_PENDING);
    while ((rc = elastic_snapshot_wait(1)) == ELASTIC_PENDING)
        ;
    assert_int_equal(rc, 0);
    /* What is written when the library is left is complete then. */
    assert_int_equal(elastic_snapshot(&part, 1, 0), 0);
    free((void *)part.data);
    elastic_finalize();
    assert_true(step_in(0) >= 0 && step_in(1) >= 0);
}

static void assert_failed(int rc)
{
    assert_int_equal(rc, ELASTIC_ERROR_SNAPSHOT);
    assert_one_line(elastic_error());
}

static void test_one_that_cannot_be_written_does_no_harm(void **state)
{
    struct elastic_part huge = {"one", "x", SIZE_MAX / 4}, part = {"one", "x", 1};
    char path[128];

    begin_world(0, 1, 0, 1);
    keep("state");
    assert_failed(elastic_snapshot(&huge, 1, 0));
    assert_int_equal(elastic_snapshot_wait(0), 0);
    assert_int_equal(elastic_snapshot(&huge, 1, ELASTIC_IN_PLACE), 0);
    assert_failed(elastic_snapshot_wait(-1));
    assert_non_null(strstr(elastic_error(), "do not fit into the memory"));
    assert_true(step_in(0) >= 0);
    keep("state"); /* … to be tried again */
    assert_int_equal(elastic_snapshot_wait(0), 0);
    /* A link to somewhere else is not followed. */
    leave(state);
    begin_world(0, 1, 0, 1);
    snprintf(path, sizeof(path), "%s/snapshot", directory);
    assert_int_equal(symlink("/tmp", path), 0);
    assert_int_equal(elastic_snapshot(&part, 1, 0), 0);
    assert_failed(elastic_snapshot_wait(-1));
    assert_int_equal(unlink(path), 0);
    setenv("ELASTIC_RUN_DIR", "/nonexistent", 1);
    assert_int_equal(elastic_snapshot(&part, 1, 0), 0);
    assert_failed(elastic_snapshot_wait(-1));
    unsetenv("ELASTIC_RUN_DIR");
    assert_failed(elastic_snapshot(&part, 1, 0));
}

static void test_arguments(void **state)
{
    static const char *const names[] = {NULL,  "",   ".hidden", "a/b",          "a b",
                                        "a\"", "\\", "a\n",     "\303\244rger", SNAPSHOT_MANIFEST};
    struct elastic_part parts[ELASTIC_PARTS_MAX + 1];
    char longest[ELASTIC_NAME_BYTES + 1];

    begin_world(0, 1, 0, 1);
    for (size_t i = 0; i < COUNT(names); i++) {
        parts[0] = (struct elastic_part){names[i], "x", 1};
        assert_int_equal(elastic_snapshot(parts, 1, 0), ELASTIC_ERROR_ARGUMENT);
        assert_one_line(elastic_error());
    }
    memset(longest, 'n', sizeof(longest));
    longest[ELASTIC_NAME_BYTES] = '\0';
    parts[0].name = longest;
    assert_int_equal(elastic_snapshot(parts, 1, 0), ELASTIC_ERROR_ARGUMENT);
    parts[0] = parts[1] = (struct elastic_part){"one", "x", 1};
    assert_int_equal(elastic_snapshot(parts, 2, 0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_snapshot(parts, 0, 0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_snapshot(parts, ELASTIC_PARTS_MAX + 1, 0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_snapshot(NULL, 1, 0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_snapshot(parts, 1, 2), ELASTIC_ERROR_ARGUMENT);
    parts[0].data = NULL;
    assert_int_equal(elastic_snapshot(parts, 1, 0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_snapshot_wait(-1), 0);
    assert_int_equal(step_in(0), -1);
}

static void test_not_elastic(void **state)
{
    struct elastic_part part = {"one", "x", 1};
    int status = -1;
    pid_t pid;

    assert_int_equal(elastic_snapshot(&part, 1, 0), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_snapshot_wait(-1), ELASTIC_NOT_ELASTIC);
    begin_world(0, 1, 0, 1);
    keep("state");
    pid = fork();
    if (pid == 0)
        _exit(elastic_snapshot(&part, 1, 0) + elastic_snapshot_wait(-1));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, W_EXITCODE(2 * ELASTIC_NOT_ELASTIC, 0));
}

static _Noreturn void write_for_ever(void)
{
    struct elastic_part parts[] = {{"one", calloc(1, LARGE / 8), LARGE / 8}, {"two", "x", 1}};

    alarm(120);
    if (parts[0].data == NULL || elastic_init() != 0)
        _exit(1);
    for (;;) {
        elastic_event_test(NULL);
        if (elastic_snapshot(parts, 2, 0) != 0 || elastic_snapshot_wait(-1) != 0)
            _exit(1);
    }
}

/* One of the buffers is whole whenever that is, and what is complete always is. */
static void test_killed_at_random_moments(void **state)
{
    uint64_t seed = 12;

    begin_world(0, 1, 0, 1);
    elastic_finalize();
    for (int i = 0; i < 30; i++) {
        struct timespec pause = {.tv_nsec = (long)random_below(&seed, 50000) * 1000};
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
            write_for_ever();
        while (!some_are_complete())
            assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
        nanosleep(&pause, NULL);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, SIGKILL);
        assert_true(step_in(0) >= 0 || step_in(1) >= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_written, set_environment, leave),
        cmocka_unit_test_setup_teardown(test_two_buffers_in_turn, set_environment, leave),
        cmocka_unit_test_setup_teardown(test_another_process_does_not_begin_with_the_newest,
                                        set_environment, leave),
        cmocka_unit_test_setup_teardown(test_who_keeps_it, set_environment, leave),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, set_environment, leave),
        cmocka_unit_test_setup_teardown(test_one_that_cannot_be_written_does_no_harm,
                                        set_environment, leave),
        cmocka_unit_test_setup_teardown(test_arguments, set_environment, leave),
        cmocka_unit_test_setup_teardown(test_not_elastic, set_environment, leave),
        cmocka_unit_test_setup_teardown(test_killed_at_random_moments, set_environment, leave),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
