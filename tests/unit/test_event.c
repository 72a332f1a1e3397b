/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event page from both sides: agent/event.c holds, client/event.c runs to the step and parks. */
#include "tests/unit/support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/event.h"
#include "client/elastic.h"
#include "client/event.h"

#define WORKERS_MAX 6
#define WAIT_MS     20000 /* for anything that takes milliseconds when all is well */

static char directory[] = "/tmp/elastic-test-event-XXXXXX";
static char page_path[sizeof(directory) + 32];

static int64_t now_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_us(uint32_t us)
{
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

    nanosleep(&pause, NULL);
}

/* Spins for short times, so that moments differ by less than a sleep can. */
static void pass_time(uint64_t *seed, uint32_t limit_us)
{
    uint32_t us = random_below(seed, limit_us + 1);

    if (us > 50) {
        sleep_us(us);
        return;
    }
    for (volatile uint32_t i = 0; i < us * 100; i = i + 1)
        ;
}

static int make_directory(void **state)
{
    return mkdtemp(directory) == NULL ? -1 : 0;
}

static int remove_directory(void **state)
{
    unlink(page_path);
    return rmdir(directory);
}

static int set_path(void **state)
{
    snprintf(page_path, sizeof(page_path), "%s/page", directory);
    unsetenv("ELASTIC_EVENT_FILE");
    return 0;
}

static int clear_path(void **state)
{
    elastic_finalize();
    if (unlink(page_path) != 0 && errno != ENOENT)
        rmdir(page_path);
    return 0;
}

/* The page as its bytes, to write on it what neither side would. */
static struct event_page *raw_page(void)
{
    int fd = open(page_path, O_RDWR);
    struct event_page *page = mmap(NULL, EVENT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                   0);

    assert_true(fd >= 0 && page != MAP_FAILED);
    close(fd);
    return page;
}

static struct event *create_page(int generation)
{
    struct error err;
    struct event *event = event_create(page_path, generation, &err);

    assert_non_null(event);
    return event;
}

/* ---- many workers, one agent ------------------------------------------------------------------ */

struct round {
    pthread_barrier_t collective; /* what an all-reduce does: nobody is a step ahead */
    bool coupled;
    int workers;
    uint32_t step_us;
};

struct worker {
    struct round *round;
    struct event *page;
    struct event_client *client;
    uint64_t seed;
    atomic_bool announced; /* set before the agent tells S */
    pthread_t thread;
    int answer;
    uint64_t passed; /* boundaries that answered 0 */
    bool early;      /* the event came before S was known */
    bool skipped;    /* the step on the page was not our own count */
    struct elastic_event event;
    struct event_client_error err;
};

static void *run_worker(void *arg)
{
    struct worker *w = arg;

    for (;;) {
        pass_time(&w->seed, w->round->step_us);
        if (w->round->coupled)
            pthread_barrier_wait(&w->round->collective);
        w->answer = event_client_boundary(w->client, &w->event, &w->err);
        if (w->answer != 0)
            break;
        w->passed++;
        if (event_read(w->page).step != w->passed)
            w->skipped = true;
    }
    w->early = !atomic_load(&w->announced);
    return NULL;
}

static void start_worker(struct worker *w, struct round *round, int generation, int rank,
                         uint64_t seed)
{
    struct error err;
    char path[sizeof(page_path) + 16];

    memset(w, 0, sizeof(*w));
    snprintf(path, sizeof(path), "%s-%d", page_path, rank);
    w->round = round;
    w->seed = seed;
    w->page = event_create(path, generation, &err);
    assert_non_null(w->page);
    w->client = event_client_open(path, &w->err);
    assert_non_null(w->client);
    event_unlink(w->page);
    assert_int_equal(pthread_create(&w->thread, NULL, run_worker, w), 0);
}

/* As leader and agents do it: hold all in any order and at any time, take the maximum, tell all. */
static uint64_t hold_and_run(struct worker *workers, int count, uint64_t *seed)
{
    uint64_t step = 0;
    int first = (int)random_below(seed, (uint32_t)count);

    for (int i = 0; i < count; i++) {
        struct worker *w = &workers[(first + i) % count];
        struct event_status status;

        pass_time(seed, 200);
        status = event_hold(w->page, EVENT_SHRINK, "node03 is wanted", 3,
                            now_ms(CLOCK_REALTIME) + WAIT_MS);
        if (status.step > step)
            step = status.step;
    }
    first = (int)random_below(seed, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        struct worker *w = &workers[(first + i) % count];

        pass_time(seed, 200);
        atomic_store(&w->announced, true);
        event_run_to(w->page, step);
    }
    return step;
}

static void check_worker(struct worker *w, int generation, uint64_t step)
{
    struct elastic_event again;

    if (w->answer != 1)
        fail_msg("generation %d: answer %d: %s", generation, w->answer, w->err.text);
    assert_false(w->early);
    assert_false(w->skipped);
    assert_int_equal(w->passed, step);
    assert_int_equal(w->event.step, step);
    assert_int_equal(w->event.generation, generation);
    assert_int_equal(w->event.kind, ELASTIC_SHRINK);
    assert_int_equal(w->event.next_nodes, 3);
    assert_string_equal(w->event.reason, "node03 is wanted");
    assert_true(event_read(w->page).told);
    assert_int_equal(event_client_boundary(w->client, &again, &w->err), 1);
    assert_memory_equal(&again, &w->event, sizeof(again));
    assert_int_equal(event_read(w->page).step, step);
}

static void run_rounds(bool coupled, int rounds, uint64_t seed)
{
    /* Not further apart: alone, a worker without a collective is thousands of steps ahead soon. */
    static const uint32_t speeds_us[] = {5, 20, 50};
    struct worker workers[WORKERS_MAX];

    for (int generation = 1; generation <= rounds; generation++) {
        struct round round = {.coupled = coupled};
        uint64_t step;

        round.workers = 1 + (int)random_below(&seed, WORKERS_MAX);
        pthread_barrier_init(&round.collective, NULL, (unsigned)round.workers);
        for (int i = 0; i < round.workers; i++) {
            round.step_us = speeds_us[random_below(&seed, COUNT(speeds_us))];
            start_worker(&workers[i], &round, generation, i, seed + (unsigned)i + 1);
        }
        pass_time(&seed, 500);
        step = hold_and_run(workers, round.workers, &seed);
        for (int i = 0; i < round.workers; i++)
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        for (int i = 0; i < round.workers; i++) {
            check_worker(&workers[i], generation, step);
            event_client_close(workers[i].client);
            event_destroy(workers[i].page);
        }
        pthread_barrier_destroy(&round.collective);
    }
}

static void test_all_park_at_the_same_step(void **state)
{
    run_rounds(false, 600, 1);
}

static void test_all_park_while_a_collective_couples_them(void **state)
{
    run_rounds(true, 600, 2);
}

/* The same through the public functions: a process is one worker. Exits with the step, or 255. */
static void be_worker_process(uint64_t seed)
{
    struct elastic_event event;
    uint64_t passed = 0;
    int answer;

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    if (elastic_init() != 0 || elastic_init() != 0)
        _exit(255);
    while ((answer = elastic_event_test(&event)) == 0) {
        passed++;
        pass_time(&seed, 400);
    }
    _exit(answer == 1 && passed == (uint64_t)event.step && passed < 255 ? (int)passed : 255);
}

static void test_processes_park_at_the_same_step(void **state)
{
    uint64_t seed = 3;
    char base[sizeof(page_path)];

    memcpy(base, page_path, sizeof(base));
    for (int generation = 0; generation < 60; generation++) {
        struct worker workers[3] = {0};
        pid_t pids[COUNT(workers)];
        uint64_t step;

        for (size_t i = 0; i < COUNT(workers); i++) {
            memcpy(page_path, base, sizeof(base));
            strcat(page_path, i == 0 ? "0" : i == 1 ? "1" : "2");
            workers[i].page = create_page(generation);
            pids[i] = fork();
            if (pids[i] == 0)
                be_worker_process(seed + i + 1);
        }
        pass_time(&seed, 8000);
        step = hold_and_run(workers, COUNT(workers), &seed);
        for (size_t i = 0; i < COUNT(workers); i++) {
            int status = 0;

            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), step);
            event_unlink(workers[i].page);
            event_destroy(workers[i].page);
        }
    }
    memcpy(page_path, base, sizeof(base));
}

/* ---- one worker ------------------------------------------------------------------------------- */

struct waiting {
    struct event_client *client;
    atomic_int answer; /* WAITING until it came */
    struct event_client_error err;
};

#define WAITING 77

static void *wait_at_boundary(void *arg)
{
    struct waiting *waiting = arg;

    atomic_store(&waiting->answer, event_client_boundary(waiting->client, NULL, &waiting->err));
    return NULL;
}

static struct event_client *open_page(void)
{
    struct event_client_error err = {.text = ""};
    struct event_client *client = event_client_open(page_path, &err);

    if (client == NULL)
        fail_msg("%s", err.text);
    return client;
}

static void test_the_answer_of_another_generation_is_ignored(void **state)
{
    struct event *event = create_page(7);
    struct event_page *page = raw_page();
    struct waiting waiting = {.client = open_page(), .answer = WAITING};
    pthread_t thread;

    event_hold(event, EVENT_GROW, "", 4, 0);
    atomic_store(&page->run_to, EVENT_VALID | EVENT_WORD(6, 0));
    assert_int_equal(pthread_create(&thread, NULL, wait_at_boundary, &waiting), 0);
    sleep_us(20000);
    assert_int_equal(atomic_load(&waiting.answer), WAITING);
    atomic_store(&page->run_to, EVENT_WORD(7, 0)); /* not valid */
    sleep_us(20000);
    assert_int_equal(atomic_load(&waiting.answer), WAITING);
    assert_false(event_read(event).told);
    event_run_to(event, 0);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&waiting.answer), 1);
    assert_int_equal(event_client_generation(waiting.client), 7);
    munmap(page, EVENT_PAGE_BYTES);
    event_client_close(waiting.client);
    event_destroy(event);
}

static void test_a_hold_that_is_lifted_lets_the_worker_go_on(void **state)
{
    struct event *event = create_page(1);
    struct event_page *page = raw_page();
    struct waiting waiting = {.client = open_page(), .answer = WAITING};
    pthread_t thread;

    event_hold(event, EVENT_GROW, "", 4, 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_at_boundary, &waiting), 0);
    sleep_us(5000);
    assert_int_equal(atomic_load(&waiting.answer), WAITING);
    atomic_fetch_and(&page->word, ~EVENT_HOLD);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&waiting.answer), 0);
    assert_int_equal(event_read(event).step, 1);
    munmap(page, EVENT_PAGE_BYTES);
    event_client_close(waiting.client);
    event_destroy(event);
}

static void test_waiting_ends_if_the_agent_says_nothing_more(void **state)
{
    struct event *event = create_page(1);
    struct waiting waiting = {.client = open_page(), .answer = WAITING};
    int64_t begin = now_ms(CLOCK_MONOTONIC), took;

    event_hold(event, EVENT_GROW, "", 4, now_ms(CLOCK_REALTIME) - 1000);
    wait_at_boundary(&waiting);
    took = now_ms(CLOCK_MONOTONIC) - begin;
    assert_int_equal(atomic_load(&waiting.answer), ELASTIC_ERROR_WAIT);
    assert_one_line(waiting.err.text);
    assert_true(took >= 1900 && took < WAIT_MS);
    assert_false(event_read(event).told);
    event_client_close(waiting.client);
    event_destroy(event);
}

static void test_waiting_costs_no_processor_time(void **state)
{
    struct event *event = create_page(1);
    struct waiting waiting = {.client = open_page(), .answer = WAITING};
    int64_t used, begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);

    event_hold(event, EVENT_GROW, "", 4, now_ms(CLOCK_REALTIME) - 1000);
    wait_at_boundary(&waiting); /* 2 s */
    used = now_ms(CLOCK_PROCESS_CPUTIME_ID) - begin;
    if (used > 400)
        fail_msg("%lld ms of processor time in 2 s", (long long)used);
    event_client_close(waiting.client);
    event_destroy(event);
}

/* What a worker waits for. */
static int wait_at(bool gate, struct event *event, struct event_client *client)
{
    struct event_client_error err;

    if (gate)
        return event_client_gate(client, EVENT_PASSED_INIT, &err);
    event_hold(event, EVENT_GROW, "", 2, now_ms(CLOCK_REALTIME) + WAIT_MS);
    return event_client_boundary(client, NULL, &err);
}

/* An agent with a worker, directly below it or below a shell, that waits when its agent is killed. */
static void check_death_of_agent(bool shell_between, bool gate)
{
    int answer[2], ready[2];
    struct event_client_error err;
    char byte = 0;
    pid_t agent, helper = 0;
    int status = 0;

    assert_int_equal(pipe(answer), 0);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    agent = fork();
    if (agent == 0) {
        struct event *event = event_create(page_path, 1, NULL);

        if (event == NULL)
            _exit(1);
        if (gate)
            event_close_gate(event);
        if (!shell_between || (helper = fork()) == 0) {
            if (fork() == 0) {
                struct event_client *client = event_client_open(page_path, &err);

                byte = client == NULL ? 'f' : 'r';
                if (write(ready[1], &byte, 1) != 1)
                    _exit(1);
                byte = wait_at(gate, event, client) == ELASTIC_ERROR_AGENT ? 'a' : 'n';
                _exit(write(answer[1], &byte, 1) == 1 ? 0 : 1);
            }
        }
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'r');
    sleep_us(20000); /* so that it waits; what is asserted does not depend on it */
    kill(agent, SIGKILL);
    assert_int_equal(waitpid(agent, &status, 0), agent);
    assert_int_equal(read(answer[0], &byte, 1), 1);
    assert_int_equal(byte, 'a');
    for (size_t i = 0; i < 2; i++) {
        close(answer[i]);
        close(ready[i]);
    }
}

static void reap_orphans(void)
{
    int64_t limit = now_ms(CLOCK_MONOTONIC) + WAIT_MS;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && now_ms(CLOCK_MONOTONIC) < limit)
        if (pid == 0)
            sleep_us(1000);
}

static void test_a_waiting_worker_leaves_when_its_agent_dies(void **state)
{
    check_death_of_agent(false, false);
    reap_orphans();
}

/* Its shell lives on, and is no child of the test: it is killed by its parent's pid, which is ours. */
static void test_it_leaves_also_when_a_shell_is_between(void **state)
{
    char children[64];
    FILE *file;
    int pid;

    check_death_of_agent(true, false);
    snprintf(children, sizeof(children), "/proc/self/task/%d/children", (int)getpid());
    file = fopen(children, "r");
    if (file != NULL) {
        while (fscanf(file, "%d", &pid) == 1)
            kill(pid, SIGKILL);
        fclose(file);
    }
    reap_orphans();
}

static void test_states_are_shown_to_the_agent(void **state)
{
    struct event *event = create_page(3);
    struct event_client *client;
    struct event_client_error err;

    assert_int_equal(event_read(event).state, EVENT_STATE_NONE);
    client = open_page();
    assert_int_equal(event_read(event).state, EVENT_STATE_ATTACHED);
    event_client_training(client);
    assert_int_equal(event_read(event).state, EVENT_STATE_TRAINING);
    event_client_close(client);
    client = open_page(); /* a second time takes nothing back */
    assert_int_equal(event_read(event).state, EVENT_STATE_TRAINING);
    assert_int_equal(event_client_boundary(client, NULL, &err), 0);
    assert_int_equal(event_read(event).step, 1);
    event_client_close(client);
    event_destroy(event);
}

static void test_boundaries_are_counted(void **state)
{
    enum { CALLS = 200000 };
    struct event *event = create_page(1);
    struct event_client *client = open_page();
    struct event_client_error err;

    for (int i = 0; i < CALLS; i++)
        assert_int_equal(event_client_boundary(client, NULL, &err), 0);
    assert_int_equal(event_read(event).step, CALLS);
    event_client_close(client);
    event_destroy(event);
}

/* ---- waiting for an event ---------------------------------------------------------------------- */

static void *wait_for_event(void *arg)
{
    struct waiting *waiting = arg;

    atomic_store(&waiting->answer, event_client_wait(waiting->client, NULL, -1, &waiting->err));
    return NULL;
}

static void test_a_wait_ends_with_its_time_and_passes_no_boundary(void **state)
{
    struct event *event = create_page(2);
    struct event_client *client = open_page();
    struct event_client_error err;
    int64_t used = now_ms(CLOCK_PROCESS_CPUTIME_ID), begin = now_ms(CLOCK_MONOTONIC);

    assert_false(event_read(event).waits);
    assert_int_equal(event_client_wait(client, NULL, 0, &err), 0);
    assert_int_equal(event_client_wait(client, NULL, 700, &err),
                     0); /* longer than it sleeps at a time */
    assert_true(now_ms(CLOCK_MONOTONIC) - begin >= 700);
    assert_true(now_ms(CLOCK_PROCESS_CPUTIME_ID) - used < 300);
    assert_int_equal(event_read(event).step, 0);
    /* It is at work all the same, and is not to be killed without an event. */
    assert_true(event_read(event).waits);
    assert_int_equal(event_read(event).state, EVENT_STATE_TRAINING);
    event_client_close(client);
    event_destroy(event);
}

static void test_a_wait_passes_one_boundary_at_a_time_until_the_agreed_step(void **state)
{
    struct event *event = create_page(2);
    struct event_client *client = open_page();
    struct event_client_error err;
    struct elastic_event told = {0};

    assert_int_equal(event_client_boundary(client, NULL, &err), 0);
    event_hold(event, EVENT_SHRINK, "why", 3, 0);
    event_run_to(event, 3);
    assert_true(event_client_held(client));
    for (int step = 2; step <= 3; step++) {
        assert_int_equal(event_client_wait(client, &told, 0, &err), ELASTIC_GO_ON);
        assert_int_equal(event_read(event).step, step);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(event_client_wait(client, &told, -1, &err), 1);
        assert_int_equal(told.kind, ELASTIC_SHRINK);
        assert_int_equal(told.step, 3);
        assert_string_equal(told.reason, "why");
    }
    assert_int_equal(event_read(event).step, 3);
    event_client_close(client);
    event_destroy(event);
}

static void test_an_event_wakes_who_waits(void **state)
{
    uint64_t seed = 9;

    for (int i = 0; i < 50; i++) {
        struct event *event = create_page(2);
        struct waiting waiting = {.client = open_page(), .answer = WAITING};
        pthread_t thread;
        int64_t begin;

        assert_false(event_client_held(waiting.client));
        assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &waiting), 0);
        pass_time(&seed, 2000);
        event_hold(event, EVENT_GROW, "", 4, 0);
        event_run_to(event, 0);
        begin = now_ms(CLOCK_MONOTONIC);
        pthread_join(thread, NULL);
        assert_int_equal(atomic_load(&waiting.answer), 1);
        assert_true(now_ms(CLOCK_MONOTONIC) - begin < WAIT_MS);
        event_client_close(waiting.client);
        event_destroy(event);
    }
}

static void test_a_wait_begins_at_the_gate(void **state)
{
    struct event *event = create_page(3);
    struct waiting waiting = {.client = open_page(), .answer = WAITING};
    int64_t limit = now_ms(CLOCK_MONOTONIC) + WAIT_MS;
    pthread_t thread;

    event_close_gate(event);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &waiting), 0);
    while (event_read(event).place != EVENT_AT_GATE && now_ms(CLOCK_MONOTONIC) < limit)
        sleep_us(1000);
    assert_false(event_read(event).waits);
    event_open_gate(event);
    while (!event_read(event).waits && now_ms(CLOCK_MONOTONIC) < limit)
        sleep_us(1000);
    assert_int_equal(event_read(event).place, EVENT_PASSED_LOAD);
    event_hold(event, EVENT_STOP, "", 0, 0);
    event_run_to(event, 0);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&waiting.answer), 1);
    event_client_close(waiting.client);
    event_destroy(event);
}

/* ---- progress ------------------------------------------------------------------------------------ */

static void check_progress(struct event *event, int64_t done, int64_t total, const char *unit)
{
    struct event_progress progress;

    assert_true(event_read_progress(event, &progress));
    assert_int_equal(progress.done, done);
    assert_int_equal(progress.total, total);
    assert_string_equal(progress.unit, unit);
}

static void test_what_is_reported_is_read(void **state)
{
    static const char longest[] = "23 bytes, that is all..";
    struct event *event = create_page(1);
    struct event_page *page = raw_page();
    struct event_progress progress;
    uint32_t number;

    assert_int_equal(elastic_report_progress(1, 2, "steps"), ELASTIC_NOT_ELASTIC);
    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_int_equal(elastic_attach(), 0);
    assert_false(event_read_progress(event, &progress));
    assert_int_equal(elastic_report_progress(0, 0, NULL), 0);
    check_progress(event, 0, 0, "");
    assert_true(event_read_progress(event, &progress));
    number = progress.number;
    assert_int_equal(elastic_report_progress(INT64_MAX, 5, longest), 0);
    check_progress(event, INT64_MAX, 5, longest);
    assert_true(event_read_progress(event, &progress) && progress.number != number);
    /* What is refused changes nothing. */
    assert_int_equal(elastic_report_progress(-1, 5, "a"), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_report_progress(1, -5, "a"), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_report_progress(1, 5, "24 bytes, one too many.."),
                     ELASTIC_ERROR_ARGUMENT);
    assert_one_line(elastic_error());
    check_progress(event, INT64_MAX, 5, longest);
    /* The number of reports comes round, past the one that means none. */
    page->progress = UINT32_MAX - 1;
    assert_int_equal(elastic_report_progress(3, 4, "x"), 0);
    check_progress(event, 3, 4, "x");
    /* A worker may write anything, and may die while it does. */
    page->progress |= 1;
    assert_false(event_read_progress(event, &progress));
    page->progress = 8;
    memset((void *)page->unit, 0x1b, sizeof(page->unit));
    check_progress(event, 3, 4, "???????????????????????");
    page->done = -3;
    assert_false(event_read_progress(event, &progress));
    munmap(page, EVENT_PAGE_BYTES);
    event_destroy(event);
}

struct reports {
    struct event_client *client;
    atomic_bool stop;
};

static void *report_all_the_time(void *arg)
{
    struct reports *reports = arg;

    for (int64_t i = 1; !atomic_load(&reports->stop); i++)
        event_client_progress(reports->client, i, i, i % 2 ? "odd" : "even");
    return NULL;
}

static void test_a_report_is_read_whole_or_not_at_all(void **state)
{
    struct event *event = create_page(1);
    struct reports reports = {.client = open_page()};
    struct event_progress progress;
    int64_t limit = now_ms(CLOCK_MONOTONIC) + WAIT_MS;
    pthread_t thread;
    int whole = 0;

    assert_int_equal(pthread_create(&thread, NULL, report_all_the_time, &reports), 0);
    while (whole < 2000 && now_ms(CLOCK_MONOTONIC) < limit) {
        if (!event_read_progress(event, &progress))
            continue;
        assert_int_equal(progress.done, progress.total);
        assert_string_equal(progress.unit, progress.done % 2 ? "odd" : "even");
        whole++;
    }
    atomic_store(&reports.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(whole, 2000);
    event_client_close(reports.client);
    event_destroy(event);
}

/* ---- pages that are none ---------------------------------------------------------------------- */

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

static void test_pages_of_another_release_are_refused(void **state)
{
    struct event *event = create_page(1);
    struct event_page *page = raw_page();

    page->version = 2;
    refused("version 2");
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

/* ---- the gate ---------------------------------------------------------------------------------- */

static void *wait_at_gate(void *arg)
{
    struct waiting *waiting = arg;

    atomic_store(&waiting->answer,
                 event_client_gate(waiting->client, EVENT_PASSED_LOAD, &waiting->err));
    return NULL;
}

static void test_a_closed_gate_holds_the_worker_until_it_is_opened(void **state)
{
    struct event *event = create_page(3);
    struct waiting waiting = {.client = open_page(), .answer = WAITING};
    int64_t limit = now_ms(CLOCK_MONOTONIC) + WAIT_MS;
    pthread_t thread;

    event_close_gate(event);
    assert_int_equal(event_read(event).place, EVENT_BEFORE_GATE);
    assert_int_equal(pthread_create(&thread, NULL, wait_at_gate, &waiting), 0);
    while (event_read(event).place != EVENT_AT_GATE && now_ms(CLOCK_MONOTONIC) < limit)
        sleep_us(1000);
    sleep_us(300000); /* longer than it sleeps at a time */
    assert_int_equal(event_read(event).place, EVENT_AT_GATE);
    assert_int_equal(atomic_load(&waiting.answer), WAITING);
    event_open_gate(event);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&waiting.answer), 0);
    assert_int_equal(event_read(event).place, EVENT_PASSED_LOAD);
    /* By which call it was passed first is what counts. */
    assert_int_equal(event_client_gate(waiting.client, EVENT_PASSED_INIT, &waiting.err), 0);
    assert_int_equal(event_read(event).place, EVENT_PASSED_LOAD);
    event_client_close(waiting.client);
    event_destroy(event);
}

/* The script may have passed no gate, and must not train beside the old world all the same. */
static void test_a_closed_gate_holds_at_a_boundary_too(void **state)
{
    struct event *event = create_page(3);
    struct waiting waiting = {.client = open_page(), .answer = WAITING};
    int64_t limit = now_ms(CLOCK_MONOTONIC) + WAIT_MS;
    pthread_t thread;

    event_close_gate(event);
    assert_int_equal(pthread_create(&thread, NULL, wait_at_boundary, &waiting), 0);
    while (event_read(event).place != EVENT_AT_GATE && now_ms(CLOCK_MONOTONIC) < limit)
        sleep_us(1000);
    sleep_us(20000);
    assert_int_equal(atomic_load(&waiting.answer), WAITING);
    assert_int_equal(event_read(event).step, 0);
    event_open_gate(event);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&waiting.answer), 0);
    assert_int_equal(event_read(event).step, 1);
    event_client_close(waiting.client);
    event_destroy(event);
}

static void test_an_open_gate_costs_nothing_and_is_remembered(void **state)
{
    struct event *event = create_page(3);

    assert_int_equal(setenv("ELASTIC_EVENT_FILE", page_path, 1), 0);
    assert_int_equal(elastic_attach(), 0);
    assert_int_equal(event_read(event).place, EVENT_BEFORE_GATE);
    assert_int_equal(event_read(event).state, EVENT_STATE_ATTACHED);
    assert_int_equal(elastic_init(), 0);
    assert_int_equal(event_read(event).place, EVENT_PASSED_INIT);
    assert_int_equal(elastic_loading(), 0);
    assert_int_equal(event_read(event).place, EVENT_PASSED_INIT);
    elastic_finalize();
    unsetenv("ELASTIC_EVENT_FILE");
    assert_int_equal(elastic_loading(), ELASTIC_NOT_ELASTIC);
    event_destroy(event);
}

static void test_a_worker_at_the_gate_leaves_when_its_agent_dies(void **state)
{
    check_death_of_agent(false, true);
    reap_orphans();
}

/* ---- the public functions --------------------------------------------------------------------- */

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

static void test_a_pmix_server_that_is_not_there_is_an_error(void **state)
{
    struct event *event = create_page(1);
    pid_t pid;
    int status = 0;

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
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    event_destroy(event);
}

/* ---- live mode -------------------------------------------------------------------------------- */

static void assert_world(const struct elastic_world *world, int generation, int rank, int size)
{
    assert_int_equal(world->generation, generation);
    assert_int_equal(world->rank, rank);
    assert_int_equal(world->size, size);
}

static struct event *named_page(const char *name, int generation, int rank, int size)
{
    struct event_world world = {
        .generation = generation, .rank = rank, .size = size, .local_size = 1, .nodes = size};
    struct event *event;
    struct error err;
    char path[sizeof(directory) + 32];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    event = event_create(path, generation, &err);
    assert_non_null(event);
    event_set_world(event, &world);
    return event;
}

static void drop_page(struct event *event)
{
    event_unlink(event);
    event_destroy(event);
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
    assert_int_equal(elastic_shape(5), ELASTIC_NOT_ELASTIC);
    assert_int_equal(elastic_put("k", "v", 1), ELASTIC_NOT_ELASTIC);
    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_false(event_read(first).live);
    assert_int_equal(elastic_live(), 0);
    assert_true(event_read(first).live);
    assert_int_equal(event_read(first).shape, 0);
    assert_int_equal(elastic_shape(0), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_shape(INT64_MAX), 0);
    assert_int_equal(event_read(first).shape, INT64_MAX);
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
    assert_int_equal(event_read(second).shape, INT64_MAX);
    assert_int_equal(event_read(second).state, EVENT_STATE_TRAINING);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_int_equal(event_read(second).step, 1);
    assert_int_equal(event_read(first).step, 3);
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

/* ---- a world that is torn --------------------------------------------------------------------- */

static struct event *attached_page(int generation)
{
    struct event *event = named_page("page", generation, 0, 2);

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_int_equal(elastic_live(), 0);
    assert_int_equal(elastic_init(), 0);
    return event;
}

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

static void test_a_worker_goes_on_from_torn_page_to_torn_page(void **state)
{
    struct event *first = attached_page(3), *second = named_page("second", 4, 1, 2),
                 *third = named_page("third", 5, 0, 1);
    struct later later = {.event = second, .us = 30000, .what = LATER_NEXT, .next = third};
    struct elastic_world world;
    pthread_t thread;

    (void)state;
    assert_int_equal(elastic_shape(9), 0);
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
    assert_int_equal(event_read(third).shape, 9);
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

/* ---- the last boundary ------------------------------------------------------------------------ */

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

/* What the leader does with the answers to HOLD (agree() in agent/change.c). Whoever is through ends, and so do all; else all stop at one
 * step. Never one of them alone. */
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
    int status = 0;

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
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(event_read(event).step, 1);
    assert_int_equal(elastic_event_test(NULL), 0);
    assert_int_equal(event_read(event).step, 2);
    event_destroy(event);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_path, clear_path)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_park_at_the_same_step),
        TEST(test_all_park_while_a_collective_couples_them),
        TEST(test_processes_park_at_the_same_step),
        TEST(test_the_answer_of_another_generation_is_ignored),
        TEST(test_a_hold_that_is_lifted_lets_the_worker_go_on),
        TEST(test_waiting_ends_if_the_agent_says_nothing_more),
        TEST(test_waiting_costs_no_processor_time),
        TEST(test_a_waiting_worker_leaves_when_its_agent_dies),
        TEST(test_it_leaves_also_when_a_shell_is_between),
        TEST(test_states_are_shown_to_the_agent),
        TEST(test_boundaries_are_counted),
        TEST(test_a_wait_ends_with_its_time_and_passes_no_boundary),
        TEST(test_a_wait_passes_one_boundary_at_a_time_until_the_agreed_step),
        TEST(test_an_event_wakes_who_waits),
        TEST(test_a_wait_begins_at_the_gate),
        TEST(test_what_is_reported_is_read),
        TEST(test_a_report_is_read_whole_or_not_at_all),
        TEST(test_files_that_are_no_pages_are_refused),
        TEST(test_the_page_of_another_user_is_refused),
        TEST(test_pages_of_another_release_are_refused),
        TEST(test_noise_after_the_header_does_no_harm),
        TEST(test_a_closed_gate_holds_the_worker_until_it_is_opened),
        TEST(test_a_closed_gate_holds_at_a_boundary_too),
        TEST(test_an_open_gate_costs_nothing_and_is_remembered),
        TEST(test_a_worker_at_the_gate_leaves_when_its_agent_dies),
        TEST(test_without_elasticrun_all_answers_are_no),
        TEST(test_a_bad_page_is_an_error_with_a_reason),
        TEST(test_nodes_need_pmix_and_good_arguments),
        TEST(test_a_pmix_server_that_is_not_there_is_an_error),
        TEST(test_a_live_worker_goes_on_in_the_next_world),
        TEST(test_a_next_world_that_cannot_be_entered_is_an_error),
        TEST(test_a_torn_world_is_told_at_the_boundary),
        TEST(test_a_torn_world_ends_the_wait_for_an_answer),
        TEST(test_a_torn_world_ends_a_wait_for_events),
        TEST(test_word_of_a_loss_is_waited_for),
        TEST(test_the_agent_sees_who_asks),
        TEST(test_a_worker_goes_on_from_torn_page_to_torn_page),
        TEST(test_the_longest_step_is_known),
        TEST(test_noise_is_no_world),
        TEST(test_after_the_last_boundary_nothing_moves),
        TEST(test_a_hold_before_the_last_boundary),
        TEST(test_a_hold_and_the_end_race),
        TEST(test_getters_read_the_environment),
        TEST(test_a_forked_child_is_no_worker),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
