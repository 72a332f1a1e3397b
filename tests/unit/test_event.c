/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event page from both sides: agent/workers/event.c holds, client/event.c runs to the step
 * and parks. */
#include "tests/unit/event_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 6

/* ---- many workers, one agent ----------------------------------------------------------------- */

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
    run_rounds(false, RANDOM_ROUNDS(300), 1);
}

static void test_all_park_while_a_collective_couples_them(void **state)
{
    run_rounds(true, RANDOM_ROUNDS(300), 2);
}

/* The same through the public functions: a process is one worker. It exits with 0 if it has stopped
 * after the agreed step, which it writes to *stopped (shared memory). */
static void be_worker_process(uint64_t seed, uint64_t *stopped)
{
    struct elastic_event event;
    uint64_t passed = 0;
    int answer;

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    if (elastic_init() != 0 || elastic_init() != 0)
        _exit(2);
    while ((answer = elastic_event_test(&event)) == 0) {
        passed++;
        pass_time(&seed, 400);
    }
    *stopped = passed;
    _exit(answer == 1 && passed == (uint64_t)event.step ? 0 : 1);
}

static void test_processes_park_at_the_same_step(void **state)
{
    uint64_t seed = 3;
    uint64_t *stopped = mmap(NULL, 3 * sizeof(*stopped), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char base[sizeof(page_path)];

    assert_true(stopped != MAP_FAILED);
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
                be_worker_process(seed + i + 1, &stopped[i]);
        }
        pass_time(&seed, 8000);
        step = hold_and_run(workers, COUNT(workers), &seed);
        for (size_t i = 0; i < COUNT(workers); i++) {
            int status = 0;

            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 0);
            assert_int_equal(stopped[i], step);
            event_unlink(workers[i].page);
            event_destroy(workers[i].page);
        }
    }
    memcpy(page_path, base, sizeof(base));
    munmap(stopped, 3 * sizeof(*stopped));
}

/* ---- one worker ------------------------------------------------------------------------------ */

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

/* An agent with a worker, directly below it or below a shell, that waits when its agent is
 * killed. */
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

/* Its shell lives on, and is no child of the test: it is killed by its parent's pid, which is
 * ours. */
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

/* ---- waiting for an event -------------------------------------------------------------------- */

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

/* ---- progress -------------------------------------------------------------------------------- */

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
    assert_int_equal(elastic_report_step_time(1), ELASTIC_NOT_ELASTIC);
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
    /* What each step has taken adds up. */
    assert_int_equal(event_read_own(event).steps, 0);
    assert_int_equal(elastic_report_step_time(1500), 0);
    assert_int_equal(elastic_report_step_time(0), 0);
    assert_int_equal(elastic_report_step_time(-1), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_report_step_time(INT64_C(86400000001)), ELASTIC_ERROR_ARGUMENT);
    assert_int_equal(elastic_report_step_time(INT64_C(86400000000)), 0);
    assert_int_equal(event_read_own(event).steps, 3);
    assert_int_equal(event_read_own(event).microseconds, INT64_C(86400001500));
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

/* Returns how many lines the function has written to its stderr. */
static int lines_on_stderr(void (*function)(void))
{
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO), lines = 0;

    assert_non_null(file);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    function();
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    rewind(file);
    for (int c = getc(file); c != EOF; c = getc(file))
        lines += c == '\n';
    fclose(file);
    return lines;
}

static void act_as_a_worker(void)
{
    for (int i = 0; i < 3; i++) {
        assert_int_equal(elastic_attach(), ELASTIC_NOT_ELASTIC);
        assert_int_equal(elastic_init(), ELASTIC_NOT_ELASTIC);
        assert_int_equal(elastic_put("key", "", 0), ELASTIC_NOT_ELASTIC);
        assert_int_equal(elastic_rank(), -1);
    }
}

static void test_a_job_that_a_worker_submitted_is_no_worker(void **state)
{
    struct event *event = create_page(1);

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    setenv("ELASTIC_JOB_ID", "12", 1);
    setenv("SLURM_JOB_ID", "13", 1);
    setenv("RANK", "0", 1);
    assert_int_equal(lines_on_stderr(act_as_a_worker), 1);
    assert_int_equal(event_read(event).state, EVENT_STATE_NONE);
    /* A program may have removed Slurm's names. */
    unsetenv("SLURM_JOB_ID");
    assert_int_equal(elastic_attach(), 0);
    elastic_finalize();
    setenv("SLURM_JOB_ID", "12", 1);
    assert_int_equal(elastic_attach(), 0);
    elastic_finalize();
    unsetenv("SLURM_JOB_ID");
    unsetenv("ELASTIC_JOB_ID");
    unsetenv("RANK");
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

/* ---- the gate -------------------------------------------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENT_TEST(test_all_park_at_the_same_step),
        EVENT_TEST(test_all_park_while_a_collective_couples_them),
        EVENT_TEST(test_processes_park_at_the_same_step),
        EVENT_TEST(test_the_answer_of_another_generation_is_ignored),
        EVENT_TEST(test_a_hold_that_is_lifted_lets_the_worker_go_on),
        EVENT_TEST(test_waiting_ends_if_the_agent_says_nothing_more),
        EVENT_TEST(test_waiting_costs_no_processor_time),
        EVENT_TEST(test_a_waiting_worker_leaves_when_its_agent_dies),
        EVENT_TEST(test_it_leaves_also_when_a_shell_is_between),
        EVENT_TEST(test_states_are_shown_to_the_agent),
        EVENT_TEST(test_boundaries_are_counted),
        EVENT_TEST(test_a_wait_ends_with_its_time_and_passes_no_boundary),
        EVENT_TEST(test_a_wait_passes_one_boundary_at_a_time_until_the_agreed_step),
        EVENT_TEST(test_an_event_wakes_who_waits),
        EVENT_TEST(test_a_wait_begins_at_the_gate),
        EVENT_TEST(test_a_job_that_a_worker_submitted_is_no_worker),
        EVENT_TEST(test_what_is_reported_is_read),
        EVENT_TEST(test_a_report_is_read_whole_or_not_at_all),
        EVENT_TEST(test_a_closed_gate_holds_the_worker_until_it_is_opened),
        EVENT_TEST(test_a_closed_gate_holds_at_a_boundary_too),
        EVENT_TEST(test_an_open_gate_costs_nothing_and_is_remembered),
        EVENT_TEST(test_a_worker_at_the_gate_leaves_when_its_agent_dies),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
