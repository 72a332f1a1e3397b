/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages that are none, and the functions of elastic.h where there is no page, or one only. */
#include "tests/unit/event_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- pages that are none --------------------------------------------------------------------- */

static void refused(const char *part)
{
    struct event_client_error err = {.text = ""};

    assert_null(event_client_open(page_path, &err));
    assert_one_line(err.text);
    if (strstr(err.text, part) == NULL || strstr(err.text, page_path) == NULL)
        fail_msg("\"%s\" does not name the file and \"%s\"", err.text, part);
}

static void write_file(size_t size, int mode)
{
    int fd = open(page_path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    assert_int_equal(fchmod(fd, (mode_t)mode), 0);
    close(fd);
}

static void test_files_that_are_no_pages_are_refused(void **state)
{
    char target[sizeof(page_path) + 8];

    refused("No such file");
    write_file(100, 0600);
    refused("regular file of 4096 bytes, has 100");
    write_file(4096 + 1, 0600);
    refused("has 4097");
    write_file(4096, 0600);
    refused("starts with 0000000000000000");
    write_file(4096, 0620);
    refused("mode 620");
    unlink(page_path);
    assert_int_equal(mkdir(page_path, 0700), 0);
    refused("directory");
    rmdir(page_path);
    assert_int_equal(mkfifo(page_path, 0600), 0);
    refused("regular file");
    unlink(page_path);

    snprintf(target, sizeof(target), "%s.target", page_path);
    write_file(4096, 0600);
    assert_int_equal(rename(page_path, target), 0);
    assert_int_equal(symlink(target, page_path), 0);
    refused("symbolic links");
    unlink(target);
}

static void test_the_page_of_another_user_is_refused(void **state)
{
    if (geteuid() != 0)
        skip();
    event_destroy(create_page(1));
    assert_int_equal(chown(page_path, 12345, 12345), 0);
    refused("belongs to user 12345");
}

/* Opens the page in another process, which then ends. Returns errno, 0: it is let in. */
static int opened_elsewhere(void)
{
    struct event_client_error err = {.text = ""};
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(event_client_open(page_path, &err) != NULL ? 0 : errno);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_a_page_has_one_process(void **state)
{
    struct event *event = create_page(1);
    struct event_client_error err = {.text = ""};
    struct event_client *client;

    (void)state;
    assert_int_equal(opened_elsewhere(), 0);
    client = event_client_open(page_path, &err); /* that one has ended */
    assert_non_null(client);
    assert_int_equal(opened_elsewhere(), EBUSY);
    /* A forked process has not opened it, and its end ends nothing. */
    assert_int_equal(opened_elsewhere(), EBUSY);
    event_client_close(client);
    assert_int_equal(opened_elsewhere(), 0);
    event_destroy(event);
}

static void test_pages_of_another_release_are_refused(void **state)
{
    struct event *event = create_page(1);
    struct event_page *page = raw_page();

    page->version = 2;
    setenv("ELASTIC_RELEASE", "9.0.0", 1);
    refused("version 2 with 4096 bytes by elasticrun 9.0.0,");
    unsetenv("ELASTIC_RELEASE");
    page->version = EVENT_PAGE_VERSION;
    page->bytes = 8192;
    refused("8192");
    page->bytes = EVENT_PAGE_BYTES;
    page->agent_pid = 0;
    refused("no agent");
    page->agent_pid = UINT32_MAX;
    refused("no agent");
    page->agent_pid = (uint32_t)getpid();
    event_client_close(open_page());
    munmap(page, EVENT_PAGE_BYTES);
    event_destroy(event);
}

/* A page full of noise must not bring the worker down, whatever it makes of it. */
static void test_noise_after_the_header_does_no_harm(void **state)
{
    struct event *event = create_page(1);
    struct event_page *page = raw_page();
    uint64_t seed = 4;

    for (int i = 0; i < 300; i++) {
        struct event_client *client = open_page();
        struct elastic_event told;
        struct event_client_error err;

        for (unsigned char *p = (unsigned char *)&page->word; p < (unsigned char *)(page + 1); p++)
            *p = (unsigned char)random_next(&seed);
        page->agent_pid = (uint32_t)getpid();
        /* An answer, so that it does not wait. */
        page->run_to = (page->word & ~EVENT_HOLD) | EVENT_VALID;
        if (event_client_boundary(client, &told, &err) == 1)
            assert_true(strlen(told.reason) < sizeof(told.reason));
        event_client_close(client);
    }
    munmap(page, EVENT_PAGE_BYTES);
    event_destroy(event);
}

/* ---- the public functions -------------------------------------------------------------------- */

static void test_without_elasticrun_all_answers_are_no(void **state)
{
    struct elastic_event event;

    assert_int_equal(elastic_init(), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_training(), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_event_test(&event), 0);
    assert_int_equal(elastic_event_wait(&event, 20), 0);
    assert_int_equal(elastic_event_wait(&event, -1), 0);
    assert_int_equal(elastic_request_nodes(1, 0, NULL), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_release_nodes(1, NULL), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_release_named("n1", NULL), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_cancel_request("1.0.1"), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_request_result(NULL, NULL, -1), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_checkpoint_done(), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_generation(), -1);
    assert_int_equal(elastic_step(), -1);
    assert_int_equal(elastic_stacks(SIGUSR1), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_moved(1), ELASTIC_NOT_ELASTIC);
    setenv("RANK", "3", 1);
    assert_int_equal(elastic_rank(), -1);
    assert_string_equal(elastic_error(), "");
    setenv("ELASTIC_EVENT_FILE", "", 1);
    assert_int_equal(elastic_init(), ELASTIC_NOT_ELASTIC);
    elastic_finalize();
}

static void test_a_bad_page_is_an_error_with_a_reason(void **state)
{
    write_file(4096, 0600);
    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_int_equal(elastic_init(), ELASTIC_ERROR_PAGE);
    assert_one_line(elastic_error());
    assert_int_equal(elastic_event_test(NULL), 0);
}

static void test_nodes_need_pmix_and_good_arguments(void **state)
{
    struct event *event = create_page(1);
    struct elastic_result result;
    char id[ELASTIC_ID_BYTES];

    unsetenv("PMIX_NAMESPACE");
    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_int_equal(elastic_init(), 0);
    assert_int_equal(elastic_request_nodes(0, 0, id), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_request_nodes(1, -1, id), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_release_nodes(-1, id), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_release_named("", id), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_cancel_request(NULL), ELASTIC_ERROR_ARGUMENT);
    assert_one_line(elastic_error());
    assert_int_equal(elastic_request_nodes(1, 0, id), ELASTIC_ERROR_PMIX);
    assert_non_null(strstr(elastic_error(), "--pmix=no"));
    assert_int_equal(elastic_request_result(NULL, &result, -1), ELASTIC_ERROR_PMIX);
    assert_int_equal(elastic_checkpoint_done(), ELASTIC_ERROR_PMIX);
    event_destroy(event);
}

static void assert_ends_well(pid_t child)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_a_pmix_server_that_is_not_there_is_an_error(void **state)
{
    struct event *event = create_page(1);
    pid_t pid;

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    /* Another process: what libpmix leaves behind is not ours. */
    pid = fork();
    if (pid == 0) {
        setenv("PMIX_NAMESPACE", "none", 1);
        setenv("PMIX_RANK", "0", 1);
        setenv("PMIX_SERVER_URI41", "none.0;tcp4://127.0.0.1:1", 1);
        for (int i = 0; i < 2; i++)
            if (elastic_init() != 0 || elastic_request_nodes(1, 0, NULL) != ELASTIC_ERROR_PMIX ||
                strstr(elastic_error(), "PMIx") == NULL)
                _exit(1);
        elastic_finalize();
        _exit(0);
    }
    assert_ends_well(pid);
    event_destroy(event);
}

static void test_getters_read_the_environment(void **state)
{
    struct event *event = create_page(5);

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    setenv("RANK", "3", 1);
    setenv("WORLD_SIZE", "8", 1);
    setenv("LOCAL_RANK", "1", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("ELASTIC_NODES", "4", 1);
    setenv("ELASTIC_MIN_NODES", "2x", 1);
    unsetenv("ELASTIC_MAX_NODES");
    assert_int_equal(elastic_init(), 0);
    assert_int_equal(elastic_interface(), ELASTIC_INTERFACE);
    assert_int_equal(elastic_generation(), 5);
    assert_int_equal(elastic_rank(), 3);
    assert_int_equal(elastic_size(), 8);
    assert_int_equal(elastic_local_rank(), 1);
    assert_int_equal(elastic_local_size(), 2);
    assert_int_equal(elastic_nodes(), 4);
    assert_int_equal(elastic_min_nodes(), -1);
    assert_int_equal(elastic_max_nodes(), -1);
    event_destroy(event);
}

static void test_a_forked_child_is_no_worker(void **state)
{
    struct event *event = create_page(1);
    pid_t pid;

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_int_equal(elastic_init(), 0);
    assert_int_equal(elastic_event_test(NULL), 0);
    pid = fork();
    if (pid == 0)
        _exit(elastic_event_test(NULL) == 0 && elastic_init() == ELASTIC_NOT_ELASTIC &&
                      elastic_training() == ELASTIC_NOT_ELASTIC && elastic_generation() == -1 &&
                      elastic_event_wait(NULL, -1) == 0 &&
                      elastic_report_progress(1, 2, NULL) == ELASTIC_NOT_ELASTIC &&
                      elastic_request_nodes(1, 0, NULL) == ELASTIC_NOT_ELASTIC
                  ? 0
                  : 1);
    assert_ends_well(pid);
    assert_int_equal(event_read(event).step, 1);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_int_equal(event_read(event).step, 2);
    event_destroy(event);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENT_TEST(test_files_that_are_no_pages_are_refused),
        EVENT_TEST(test_the_page_of_another_user_is_refused),
        EVENT_TEST(test_a_page_has_one_process),
        EVENT_TEST(test_pages_of_another_release_are_refused),
        EVENT_TEST(test_noise_after_the_header_does_no_harm),
        EVENT_TEST(test_without_elasticrun_all_answers_are_no),
        EVENT_TEST(test_a_bad_page_is_an_error_with_a_reason),
        EVENT_TEST(test_nodes_need_pmix_and_good_arguments),
        EVENT_TEST(test_a_pmix_server_that_is_not_there_is_an_error),
        EVENT_TEST(test_getters_read_the_environment),
        EVENT_TEST(test_a_forked_child_is_no_worker),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
