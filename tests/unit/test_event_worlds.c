/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event page of a live worker: from world to world, out of a torn one, and the last
 * boundary. */
#include "tests/unit/event_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- live mode ------------------------------------------------------------------------------- */

static void assert_world(const struct elastic_world *world, int generation, int rank, int size)
{
    assert_int_equal(world->generation, generation);
    assert_int_equal(world->rank, rank);
    assert_int_equal(world->size, size);
}

/* What a process that the worker starts is told by its environment. */
static void assert_taken(const struct event *event)
{
    struct event_client_error err = {.text = ""};
    pid_t pid;
    int status;

    assert_string_equal(getenv("ELASTIC_EVENT_FILE"), event_path(event));
    pid = fork();
    if (pid == 0)
        _exit(event_client_open(getenv("ELASTIC_EVENT_FILE"), &err) == NULL ? errno : 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EBUSY);
}

static void check_arguments_of_the_store(void)
{
    static char large[(1 << 20) + 1], key[1026];
    const char *const bad[] = {NULL, "", "a\"b", "a\\", "a\n", "\303\244", key};
    size_t size = sizeof(large);

    memset(key, 'k', sizeof(key) - 1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(elastic_put(bad[i], "v", 1), ELASTIC_ERROR_ARGUMENT);
        assert_int_equal(elastic_get(bad[i], large, &size, 0), ELASTIC_ERROR_ARGUMENT);
        assert_one_line(elastic_error());
    }
    unsetenv("ELASTIC_STORE");
    assert_int_equal(elastic_put("k", "v", 1), ELASTIC_ERROR_STORE);
    setenv("ELASTIC_STORE", "/nonexistent/store", 1);
    assert_int_equal(elastic_put("k", large, sizeof(large)), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_put("k", NULL, 1), ELASTIC_ERROR_ARGUMENT);
    key[1024] = '\0';
    assert_int_equal(elastic_get(key, large, &size, 0), ELASTIC_ERROR_STORE);
    assert_one_line(elastic_error());
    unsetenv("ELASTIC_STORE");
}

static void test_a_live_worker_goes_on_in_the_next_world(void **state)
{
    struct event *first = named_page("page", 3, 1, 2), *second = named_page("second", 4, 0, 3);
    struct elastic_world world;

    (void)state;
    assert_int_equal(elastic_next_world(&world, 0), 0);
    assert_int_equal(elastic_world(&world), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_model_signature(5), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_put("k", "v", 1), ELASTIC_NOT_ELASTIC);
    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_false(event_read(first).live);
    assert_int_equal(elastic_live(), 0);
    assert_true(event_read(first).live);
    assert_int_equal(event_read(first).signature, 0);
    assert_int_equal(elastic_model_signature(0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_model_signature(INT64_MAX), 0);
    assert_int_equal(event_read(first).signature, INT64_MAX);
    assert_int_equal(event_read(first).stacks_signal, 0);
    assert_int_equal(elastic_stacks(0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_stacks(SIGRTMAX + 1), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_stacks(SIGUSR2), 0);
    assert_int_equal(event_read(first).stacks_signal, SIGUSR2);
    assert_int_equal(event_read(first).stacks_pid, getpid());
    assert_int_equal(elastic_init(), 0);
    assert_int_equal(elastic_world(&world), 0);
    assert_world(&world, 3, 1, 2);
    check_arguments_of_the_store();
    for (int i = 0; i < 3; i++)
        assert_int_equal(elastic_event_test(NULL), 0);
    assert_int_equal(elastic_step(), 3);
    assert_int_equal(event_hold(first, EVENT_GROW, "more", 3, 0).step, 3);
    assert_int_equal(elastic_next_world(&world, 5), 0); /* not named yet */
    event_set_next(first, second, false);
    event_run_to(first, 3);
    assert_int_equal(elastic_event_test(NULL), 1);
    assert_int_equal(event_read(second).state, EVENT_STATE_NONE);
    assert_int_equal(elastic_next_world(&world, 0), 1);
    assert_world(&world, 4, 0, 3);
    assert_int_equal(elastic_generation(), 4);
    assert_int_equal(elastic_step(), 0);
    assert_int_equal(event_read(second).stacks_signal, SIGUSR2);
    /* It is at work there, and its steps are those of the new world. */
    assert_true(event_read(second).live);
    assert_int_equal(event_read(second).signature, INT64_MAX);
    assert_int_equal(event_read(second).state, EVENT_STATE_TRAINING);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_int_equal(event_read(second).step, 1);
    assert_int_equal(event_read(first).step, 3);
    assert_taken(second);
    /* … from which there is no other. */
    event_set_next(second, NULL, false);
    assert_int_equal(elastic_next_world(&world, 0), 1);
    assert_int_equal(world.size, 0);
    elastic_finalize();
    drop_page(first);
    drop_page(second);
}

static void test_a_next_world_that_cannot_be_entered_is_an_error(void **state)
{
    struct event *event = named_page("page", 3, 0, 1);
    const char *const names[] = {"", "../page", "missing", "/etc/passwd"};
    struct event_page *page = raw_page();
    struct elastic_world world;

    (void)state;
    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_int_equal(elastic_init(), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(page->next_file, sizeof(page->next_file), "%s", names[i]);
        atomic_store(&page->next, EVENT_NEXT_WORLD);
        assert_int_equal(elastic_next_world(&world, 0), ELASTIC_ERROR_PAGE);
        assert_non_null(strstr(elastic_error(), names[i]));
    }
    memset(page->next_file, 'x', sizeof(page->next_file)); /* without an end */
    assert_int_equal(elastic_next_world(&world, 0), ELASTIC_ERROR_PAGE);
    assert_int_equal(elastic_generation(), 3); /* it is where it was */
    munmap(page, EVENT_PAGE_BYTES);
    elastic_finalize();
    drop_page(event);
}

/* ---- a world that is torn -------------------------------------------------------------------- */

static void test_a_torn_world_is_told_at_the_boundary(void **state)
{
    struct event *event = attached_page(3);
    struct elastic_event told;

    (void)state;
    assert_int_equal(elastic_torn(0), 0);
    assert_int_equal(elastic_event_test(&told), 0);
    event_tear(event, "node n2 lost");
    assert_int_equal(elastic_torn(0), 1);
    assert_int_equal(elastic_event_test(&told), 1);
    assert_int_equal(told.kind, ELASTIC_FAULT);
    assert_int_equal(told.generation, 3);
    assert_int_equal(told.step, 1); /* the one that has just been made does not count here */
    assert_string_equal(told.reason, "node n2 lost");
    /* Again and again, and the word stands still. */
    assert_int_equal(elastic_event_test(NULL), 1);
    assert_int_equal(elastic_finish(&told), 1);
    assert_int_equal(told.kind, ELASTIC_FAULT);
    assert_int_equal(event_read(event).step, 1);
    assert_true(event_read(event).told);
    drop_page(event);
}

struct later {
    struct event *event;
    uint32_t us;
    enum { LATER_TEAR, LATER_NEXT } what;
    struct event *next;
};

static void *do_later(void *arg)
{
    const struct later *later = arg;

    sleep_us(later->us);
    if (later->what == LATER_TEAR)
        event_tear(later->event, "node n2 lost");
    else
        event_set_next(later->event, later->next, false);
    return NULL;
}

/* Held, and the answer will never come. What was said first is what a reason stays. */
static void test_a_torn_world_ends_the_wait_for_an_answer(void **state)
{
    struct event *event = attached_page(3);
    struct later later = {.event = event, .us = 30000};
    struct elastic_event told;
    pthread_t thread;

    (void)state;
    assert_int_equal(elastic_event_test(NULL), 0);
    event_hold(event, EVENT_GROW, "more nodes", 3, 0);
    assert_int_equal(pthread_create(&thread, NULL, do_later, &later), 0);
    assert_int_equal(elastic_event_test(&told), 1);
    pthread_join(thread, NULL);
    assert_int_equal(told.kind, ELASTIC_FAULT);
    assert_string_equal(told.reason, "more nodes");
    assert_int_equal(event_read(event).step, 1);
    /* … nor does an answer that comes all the same make it go on. */
    event_run_to(event, 5);
    assert_int_equal(elastic_event_test(&told), 1);
    assert_int_equal(told.kind, ELASTIC_FAULT);
    drop_page(event);
}

static void test_a_torn_world_ends_a_wait_for_events(void **state)
{
    struct event *event = attached_page(3);
    struct later later = {.event = event, .us = 30000};
    struct elastic_event told;
    int64_t begun = now_ms(CLOCK_MONOTONIC);
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, do_later, &later), 0);
    assert_int_equal(elastic_event_wait(&told, WAIT_MS), 1);
    pthread_join(thread, NULL);
    assert_true(now_ms(CLOCK_MONOTONIC) - begun < WAIT_MS);
    assert_int_equal(told.kind, ELASTIC_FAULT);
    assert_string_equal(told.reason, "node n2 lost");
    assert_int_equal(elastic_event_wait(&told, -1), 1);
    drop_page(event);
}

/* The agent: who asks is told. */
static void *tear_when_asked(void *arg)
{
    while (!event_read(arg).asks)
        usleep(1000);
    event_tear(arg, "another was too early");
    return NULL;
}

static void test_the_agent_sees_who_asks(void **state)
{
    struct event *event = attached_page(3);
    pthread_t thread;

    (void)state;
    assert_int_equal(elastic_torn(1), 0);
    assert_false(event_read(event).asks);
    assert_int_equal(pthread_create(&thread, NULL, tear_when_asked, event), 0);
    assert_int_equal(elastic_torn(-1), 1);
    pthread_join(thread, NULL);
    assert_false(event_read(event).asks);
    drop_page(event);
}

static void test_word_of_a_loss_is_waited_for(void **state)
{
    struct event *event = attached_page(3);
    struct later later = {.event = event, .us = 30000};
    struct event_world world = {.generation = 3, .size = 1, .local_size = 1, .patience_ms = 50};
    int64_t begun = now_ms(CLOCK_MONOTONIC);
    pthread_t thread;

    (void)state;
    assert_int_equal(elastic_torn(40), 0);
    assert_true(now_ms(CLOCK_MONOTONIC) - begun >= 40);
    event_set_world(event, &world); /* as long as these agents take to notice */
    begun = now_ms(CLOCK_MONOTONIC);
    assert_int_equal(elastic_torn(-1), 0);
    assert_true(now_ms(CLOCK_MONOTONIC) - begun >= 50);
    assert_true(now_ms(CLOCK_MONOTONIC) - begun < 3000); /* of an agent that does not say */
    assert_int_equal(pthread_create(&thread, NULL, do_later, &later), 0);
    assert_int_equal(elastic_torn(WAIT_MS), 1);
    pthread_join(thread, NULL);
    assert_int_equal(elastic_torn(-1), 1);
    drop_page(event);
    elastic_finalize();
    assert_int_equal(elastic_torn(-1), 0); /* ELASTIC_NOT_ELASTIC would say that it is */
}

/* Two ends in this process. */
static void connect_both(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &len), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(ends[0], (struct sockaddr *)&address, len), 0);
    ends[1] = accept(listening, NULL, NULL);
    assert_true(ends[1] >= 0);
    close(listening);
}

/* Those that leave give their parts to the others, when the next world is named already. */
static void test_connections_end_when_the_next_world_is_torn(void **state)
{
    struct event *first = attached_page(3), *second = named_page("second", 4, 1, 2);
    struct elastic_world world;
    struct pollfd end = {.events = POLLIN};
    int ends[2];

    (void)state;
    assert_int_equal(elastic_world_forms(), 0);
    connect_both(ends);
    assert_int_equal(elastic_world_formed(), 0);
    event_set_next(first, second, false);
    assert_int_equal(elastic_next_world(&world, 0), 1);
    event_tear(second, "lost");
    end.fd = ends[0];
    assert_int_equal(poll(&end, 1, WAIT_MS), 1);
    close(ends[0]);
    close(ends[1]);
    elastic_finalize();
    drop_page(first);
    drop_page(second);
}

static void test_a_worker_goes_on_from_torn_page_to_torn_page(void **state)
{
    struct event *first = attached_page(3), *second = named_page("second", 4, 1, 2),
                 *third = named_page("third", 5, 0, 1);
    struct later later = {.event = second, .us = 30000, .what = LATER_NEXT, .next = third};
    struct elastic_world world;
    pthread_t thread;

    (void)state;
    assert_int_equal(elastic_model_signature(9), 0);
    event_tear(first, "one");
    event_set_next(first, second, false);
    event_tear(second, "two"); /* before it was entered */
    assert_int_equal(elastic_next_world(&world, 0), 1);
    assert_world(&world, 4, 1, 2);
    assert_int_equal(elastic_torn(0), 1);
    assert_int_equal(elastic_event_test(NULL), 1);
    assert_int_equal(elastic_next_world(&world, 20), 0);
    assert_int_equal(pthread_create(&thread, NULL, do_later, &later), 0);
    assert_int_equal(elastic_next_world(&world, WAIT_MS), 1);
    pthread_join(thread, NULL);
    assert_world(&world, 5, 0, 1);
    assert_int_equal(elastic_torn(0), 0);
    assert_int_equal(event_read(third).signature, 9);
    assert_true(event_read(third).live);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_int_equal(event_read(third).step, 1);
    assert_int_equal(event_read(second).step, 0);
    /* The last one that is left is to save. */
    event_tear(third, "three");
    event_set_next(third, NULL, true);
    assert_int_equal(elastic_next_world(&world, -1), 1);
    assert_int_equal(world.size, 0);
    assert_int_equal(world.save, 1);
    drop_page(first);
    drop_page(second);
    drop_page(third);
}

static void test_the_longest_step_is_known(void **state)
{
    struct event *event = attached_page(3);

    (void)state;
    assert_int_equal(elastic_event_test(NULL), 0);
    sleep_us(
        40000); /* to the first boundary it is the start that takes time, from there on steps */
    assert_int_equal(event_read(event).slowest, 0);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_in_range(event_read(event).slowest, 39, WAIT_MS);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_in_range(event_read(event).slowest, 39, WAIT_MS); /* the last was shorter */
    drop_page(event);
}

static void test_what_has_moved_is_added_up(void **state)
{
    struct event *event = attached_page(3);

    (void)state;
    assert_int_equal(event_read(event).moved, 0);
    assert_int_equal(elastic_moved(4000000000), 0);
    assert_int_equal(elastic_moved(5), 0);
    assert_int_equal(elastic_moved(-1), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(event_read(event).moved, 4000000005);
    drop_page(event);
}

static void test_noise_is_no_world(void **state)
{
    struct event *event = attached_page(3);
    struct event_page *page = raw_page();
    struct elastic_world world;
    uint64_t seed = 5;

    (void)state;
    atomic_store(&page->torn, 0x80000000);
    assert_int_equal(elastic_torn(0), 1);
    for (int round = 0; round < 200; round++) {
        char *bytes = (char *)page;

        for (size_t i = offsetof(struct event_page, rank); i < EVENT_PAGE_BYTES; i++)
            bytes[i] = (char)random_next(&seed);
        atomic_store(&page->torn, random_next(&seed) | 1);
        atomic_store(&page->next, round % 2 == 0 ? EVENT_NEXT_WORLD : 4 + random_below(&seed, 99));
        assert_int_equal(elastic_torn(-1), 1);
        assert_int_equal(elastic_event_test(NULL), 1);
        if (round % 2 == 0) {
            assert_int_equal(elastic_next_world(&world, 0), ELASTIC_ERROR_PAGE);
        } else {
            assert_int_equal(elastic_next_world(&world, 0), 1); /* leave */
            assert_int_equal(world.size, 0);
            assert_int_equal(world.save, 0);
        }
        event_read(event);
        event_tear(event, "more");
    }
    munmap(page, EVENT_PAGE_BYTES);
    elastic_finalize();
    drop_page(event);
}

/* ---- the last boundary ----------------------------------------------------------------------- */

static void test_after_the_last_boundary_nothing_moves(void **state)
{
    struct event *event = attached_page(3);
    struct event_status status;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(elastic_event_test(NULL), 0);
    assert_int_equal(elastic_finish(NULL), 0);
    status = event_read(event);
    assert_true(status.finished);
    assert_int_equal(status.step, 0);
    assert_int_equal(status.state, EVENT_STATE_TRAINING);
    assert_int_equal(elastic_finish(NULL), 0);
    assert_int_equal(elastic_event_test(NULL), 0);
    status = event_hold(event, EVENT_GROW, "more", 3, 0);
    assert_true(status.finished);
    assert_int_equal(elastic_event_test(NULL), 0); /* nobody's answer is waited for */
    assert_int_equal(elastic_finish(NULL), 0);
    event_run_to(event, 1);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_true(event_read(event).finished);
    assert_int_equal(elastic_generation(), 3);
    drop_page(event);
}

static void test_a_hold_before_the_last_boundary(void **state)
{
    static const struct {
        uint64_t run_to;
        int answer;
    } cases[] = {{2, 1}, {3, 0}, {EVENT_STEP_MASK, 0}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct event *event = attached_page(3);
        struct elastic_event told;

        assert_int_equal(elastic_event_test(NULL), 0);
        assert_int_equal(elastic_event_test(NULL), 0);
        assert_int_equal(event_hold(event, EVENT_SHRINK, "", 1, 0).step, 2);
        event_run_to(event, cases[i].run_to);
        assert_int_equal(elastic_finish(&told), cases[i].answer);
        assert_int_equal(event_read(event).finished, cases[i].answer == 0);
        if (cases[i].answer == 1) {
            assert_int_equal(told.kind, ELASTIC_SHRINK);
            assert_int_equal(event_read(event).step, 2);
        }
        elastic_finalize();
        drop_page(event);
    }
}

struct finisher {
    struct event_client *client;
    uint64_t seed;
    int steps, answer;
    struct event_client_error err;
};

static void *run_finisher(void *arg)
{
    struct finisher *f = arg;

    for (int i = 0; i < f->steps && f->answer == 0; i++) {
        pass_time(&f->seed, 20);
        f->answer = event_client_boundary(f->client, NULL, &f->err);
    }
    pass_time(&f->seed, 20);
    if (f->answer == 0)
        f->answer = event_client_finish(f->client, NULL, &f->err);
    return NULL;
}

/* What the leader does with the answers to HOLD (agree() in agent/leader/change.c). Whoever is
 * through ends, and so do all; else all stop at one step. Never one of them alone. */
static void test_a_hold_and_the_end_race(void **state)
{
    enum { WORKERS = 3, ROUNDS = 150 };
    uint64_t seed = 11;
    int ended = 0, stopped = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct finisher list[WORKERS];
        struct event *events[WORKERS];
        pthread_t threads[WORKERS];
        struct event_client_error err;
        uint64_t step = 0;
        int through = 0;

        for (int i = 0; i < WORKERS; i++) {
            char name[16];

            snprintf(name, sizeof(name), "w%d", i);
            events[i] = named_page(name, 3, i, WORKERS);
            list[i] = (struct finisher){.client = event_client_open(event_path(events[i]), &err),
                                        .seed = random_next(&seed) | 1,
                                        .steps = 3};
            assert_non_null(list[i].client);
        }
        for (int i = 0; i < WORKERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run_finisher, &list[i]), 0);
        pass_time(&seed, 150);
        for (int i = 0; i < WORKERS; i++) {
            struct event_status status = event_hold(events[i], EVENT_GROW, "", 4, 0);

            through += status.finished;
            if (status.step > step)
                step = status.step;
        }
        for (int i = 0; i < WORKERS; i++)
            event_run_to(events[i], through > 0 ? EVENT_STEP_MASK : step);
        for (int i = 0; i < WORKERS; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(list[i].answer, through > 0 ? 0 : 1);
            assert_int_equal(event_read(events[i]).finished, through > 0);
            if (through == 0)
                assert_int_equal(event_read(events[i]).step, step);
            event_client_close(list[i].client);
            drop_page(events[i]);
        }
        ended += through > 0;
        stopped += through == 0;
    }
    assert_true(stopped > 0);
    assert_true(ended > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENT_TEST(test_a_live_worker_goes_on_in_the_next_world),
        EVENT_TEST(test_a_next_world_that_cannot_be_entered_is_an_error),
        EVENT_TEST(test_a_torn_world_is_told_at_the_boundary),
        EVENT_TEST(test_a_torn_world_ends_the_wait_for_an_answer),
        EVENT_TEST(test_a_torn_world_ends_a_wait_for_events),
        EVENT_TEST(test_word_of_a_loss_is_waited_for),
        EVENT_TEST(test_the_agent_sees_who_asks),
        EVENT_TEST(test_connections_end_when_the_next_world_is_torn),
        EVENT_TEST(test_a_worker_goes_on_from_torn_page_to_torn_page),
        EVENT_TEST(test_the_longest_step_is_known),
        EVENT_TEST(test_what_has_moved_is_added_up),
        cmocka_unit_test(test_noise_is_no_world),
        EVENT_TEST(test_after_the_last_boundary_nothing_moves),
        EVENT_TEST(test_a_hold_before_the_last_boundary),
        EVENT_TEST(test_a_hold_and_the_end_race),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
