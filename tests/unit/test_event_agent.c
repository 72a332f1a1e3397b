/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's side of the event page (agent/workers/event.c), against a worker's side written
 * out here. */
#include "tests/unit/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/workers/event.h"
#include "agent/reserve_file.h"

#define GENERATION 5

struct fixture {
    char dir[32], path[64];
    struct event *event;
    struct event_page *page; /* the worker's mapping */
};

static struct event_page *map_page(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *page = mmap(NULL, EVENT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    assert_true(fd >= 0 && page != MAP_FAILED);
    close(fd);
    return page;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct error err = {""};

    snprintf(f->dir, sizeof(f->dir), "/dev/shm/elastic-test-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/worker-0.event", f->dir);
    f->event = event_create(f->path, GENERATION, &err);
    assert_string_equal(err.text, "");
    assert_non_null(f->event);
    f->page = map_page(f->path);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    munmap(f->page, EVENT_PAGE_BYTES);
    event_unlink(f->event);
    event_destroy(f->event);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);
    return 0;
}

static void test_new_page(void **state)
{
    struct fixture *f = *state;
    struct event_status status = event_read(f->event);
    struct stat st;

    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_size, EVENT_PAGE_BYTES);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_string_equal(event_path(f->event), f->path);
    assert_int_equal(f->page->magic, EVENT_PAGE_MAGIC);
    assert_int_equal(f->page->version, EVENT_PAGE_VERSION);
    assert_int_equal(f->page->bytes, EVENT_PAGE_BYTES);
    assert_int_equal(f->page->agent_pid, getpid());
    assert_int_equal(atomic_load(&f->page->word), EVENT_WORD(GENERATION, 0));
    assert_int_equal(atomic_load(&f->page->run_to), 0);
    assert_int_equal(atomic_load(&f->page->kind), EVENT_NONE);
    assert_int_equal(status.state, EVENT_STATE_NONE);
    assert_int_equal(status.step, 0);
    assert_false(status.told);
}

/* A file of the same name, or a link that somebody has put there, is replaced and not written
 * through. */
static void test_name_is_taken(void **state)
{
    struct fixture *f = *state;
    char target[64], path[64];
    struct event *event;
    struct stat st;

    snprintf(target, sizeof(target), "%s/target", f->dir);
    snprintf(path, sizeof(path), "%s/worker-1.event", f->dir);
    close(open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(symlink(target, path), 0);
    event = event_create(path, 1, NULL);
    assert_non_null(event);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(stat(target, &st), 0);
    assert_int_equal(st.st_size, 0);
    event_unlink(event);
    event_destroy(event);
    unlink(target);
}

static void test_cannot_be_created(void **state)
{
    static const struct {
        const char *path, *message;
    } cases[] = {
        {"/nowhere/e", "/nowhere/e: cannot be created: No such file or directory"},
        {"/", "/: cannot be removed: Is a directory"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};

        assert_null(event_create(cases[i].path, 1, &err));
        assert_string_equal(err.text, cases[i].message);
    }
    event_destroy(NULL);
}

static void test_read(void **state)
{
    static const struct {
        uint64_t word;
        uint32_t state, told;
        struct event_status expected;
    } cases[] = {
        {EVENT_WORD(GENERATION, 0), 0, 0, {.state = EVENT_STATE_NONE, .step = 0, .told = false}},
        {EVENT_WORD(GENERATION, 0),
         1,
         0,
         {.state = EVENT_STATE_ATTACHED, .step = 0, .told = false}},
        {EVENT_WORD(GENERATION, 0),
         2,
         0,
         {.state = EVENT_STATE_TRAINING, .step = 0, .told = false}},
        {EVENT_WORD(GENERATION, 7),
         2,
         0,
         {.state = EVENT_STATE_TRAINING, .step = 7, .told = false}},
        /* A boundary has been passed, whatever else is visible yet. */
        {EVENT_WORD(GENERATION, 7),
         1,
         0,
         {.state = EVENT_STATE_TRAINING, .step = 7, .told = false}},
        {EVENT_HOLD | EVENT_WORD(GENERATION, 7),
         2,
         1,
         {.state = EVENT_STATE_TRAINING, .step = 7, .told = true}},
        {EVENT_WORD(GENERATION, EVENT_STEP_MASK - 1),
         2,
         0,
         {.state = EVENT_STATE_TRAINING, .step = EVENT_STEP_MASK - 1, .told = false}},
        /* It has made its last step, and will look at nothing more. */
        {EVENT_WORD(GENERATION, EVENT_STEP_MASK),
         1,
         0,
         {.state = EVENT_STATE_TRAINING, .step = 0, .told = false, .finished = true}},
        /* What cannot be: another generation's step, a state that there is not. */
        {EVENT_WORD(GENERATION + 1, 7),
         2,
         0,
         {.state = EVENT_STATE_NONE, .step = 0, .told = false}},
        {UINT64_MAX, 2, 0, {.state = EVENT_STATE_NONE, .step = 0, .told = false}},
        {EVENT_WORD(GENERATION, 0),
         77,
         9,
         {.state = EVENT_STATE_TRAINING, .step = 0, .told = true}},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct event_status status;

        atomic_store(&f->page->word, cases[i].word);
        atomic_store(&f->page->state, cases[i].state);
        atomic_store(&f->page->told, cases[i].told);
        status = event_read(f->event);
        assert_int_equal(status.state, cases[i].expected.state);
        assert_int_equal(status.step, cases[i].expected.step);
        assert_int_equal(status.told, cases[i].expected.told);
        assert_int_equal(status.finished, cases[i].expected.finished);
    }
}

static void test_hold(void **state)
{
    struct fixture *f = *state;
    struct event_status status;
    char reason[512];

    memset(reason, 'r', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    atomic_store(&f->page->word, EVENT_WORD(GENERATION, 41));
    status = event_hold(f->event, EVENT_SHRINK, reason, 4, 1234567);
    assert_int_equal(status.step, 41);
    assert_int_equal(status.state, EVENT_STATE_TRAINING);
    assert_int_equal(atomic_load(&f->page->word), EVENT_HOLD | EVENT_WORD(GENERATION, 41));
    assert_int_equal(atomic_load(&f->page->kind), EVENT_SHRINK);
    assert_int_equal(f->page->next_nodes, 4);
    assert_int_equal(f->page->deadline_ms, 1234567);
    assert_int_equal(strlen(f->page->reason), sizeof(f->page->reason) - 1);
    /* The second changes nothing that a worker may be reading. */
    status = event_hold(f->event, EVENT_GROW, "other", 9, 7);
    assert_int_equal(status.step, 41);
    assert_int_equal(atomic_load(&f->page->kind), EVENT_SHRINK);
    assert_int_equal(f->page->reason[0], 'r');
    assert_int_equal(f->page->next_nodes, 4);
    event_run_to(f->event, 45);
    assert_int_equal(atomic_load(&f->page->run_to), EVENT_VALID | EVENT_WORD(GENERATION, 45));
}

static void test_hold_without_reason(void **state)
{
    struct fixture *f = *state;

    event_hold(f->event, EVENT_STOP, NULL, -1, 0);
    assert_string_equal(f->page->reason, "");
    assert_int_equal(f->page->next_nodes, 0);
}

static void test_kinds(void **state)
{
    static const struct {
        const char *name;
        enum event_kind kind;
    } cases[] = {{"grow", EVENT_GROW}, {"shrink", EVENT_SHRINK}, {"fault", EVENT_FAULT},
                 {"stop", EVENT_STOP}, {"GROW", EVENT_STOP},     {"", EVENT_STOP},
                 {NULL, EVENT_STOP}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(event_kind_of(cases[i].name), cases[i].kind);
}

/* ---- the race that the word is for ----------------------------------------------------------- */

struct racer {
    struct event_page *page;
    uint64_t passed; /* highest step that this worker has begun */
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    uint64_t word = atomic_load(&racer->page->word);

    for (;;) {
        if ((word & EVENT_HOLD) != 0) {
            uint64_t run_to = atomic_load(&racer->page->run_to);

            if ((run_to & EVENT_VALID) == 0) {
                sched_yield();
                continue;
            }
            if (EVENT_STEP(word) >= EVENT_STEP(run_to))
                return NULL;
            atomic_store(&racer->page->word, ++word);
            racer->passed++;
        } else if (atomic_compare_exchange_weak(&racer->page->word, &word, word + 1)) {
            word++;
            racer->passed++;
        }
    }
}

/* Held at any moment, all workers stop after the same step, and none has gone beyond it. */
static void test_race(void **state)
{
    struct fixture *f = *state;
    struct error err;
    uint64_t seed = 7;

    for (int round = 0; round < 100; round++) {
        uint64_t start = random_below(&seed, 2000);
        struct event *events[3];
        struct racer racers[3] = {0};
        pthread_t threads[3];
        uint64_t highest = 0;

        for (int i = 0; i < 3; i++) {
            char path[64];

            snprintf(path, sizeof(path), "%s/race-%d", f->dir, i);
            events[i] = event_create(path, round, &err);
            assert_non_null(events[i]);
            racers[i].page = map_page(path);
            assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
        }
        while (event_read(events[round % 3]).step < start)
            sched_yield();
        for (int i = 0; i < 3; i++) {
            struct event_status status = event_hold(events[i], EVENT_GROW, "race", 2, 0);

            highest = status.step > highest ? status.step : highest;
        }
        for (int i = 0; i < 3; i++)
            event_run_to(events[i], highest);
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(racers[i].passed, highest);
            assert_int_equal(event_read(events[i]).step, highest);
            munmap(racers[i].page, EVENT_PAGE_BYTES);
            event_unlink(events[i]);
            event_destroy(events[i]);
        }
    }
}

/* ---- a full file system ---------------------------------------------------------------------- */

static void fill(const char *path)
{
    static const char block[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    close(fd);
}

static off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* Pages have the room that was kept for them, until it is used up; it is kept again when there
 * is some. */
static void test_full(void **state)
{
    const char dir[] = "/tmp";
    struct error err = {""};
    struct event *events[80];
    char path[64];
    int made = 0;
    off_t kept;

    (void)state;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", dir, "tmpfs", 0, "size=512k") != 0)
        skip();
    assert_int_equal(reserve_file_make(dir, &err), 0);
    kept = size_of("/tmp/spare");
    fill("/tmp/ballast");
    assert_int_equal(reserve_file_make("/tmp/ballast", &err), -1);
    for (;; made++) {
        snprintf(path, sizeof(path), "/tmp/%d", made);
        events[made] = event_create(path, 1, &err);
        if (events[made] == NULL)
            break;
        assert_true(made < (int)(kept / EVENT_PAGE_BYTES));
    }
    assert_int_equal(made, kept / EVENT_PAGE_BYTES);
    assert_non_null(strstr(err.text, "no room"));
    assert_int_equal(size_of("/tmp/spare"), 0);
    for (int i = 0; i < made; i++) {
        event_unlink(events[i]);
        event_destroy(events[i]);
    }
    unlink("/tmp/ballast");
    events[0] = event_create("/tmp/0", 1, &err);
    assert_non_null(events[0]);
    assert_int_equal(size_of("/tmp/spare"), kept);
    event_destroy(events[0]);
    assert_int_equal(umount(dir), 0);
}

/* ---- a worker that takes the file away ------------------------------------------------------- */

/* The page is made here and not in set_up, since cmocka puts its own SIGBUS handler in place
 * before each test. */
static void test_truncated(void **state)
{
    struct fixture *f = *state;
    struct event_status status;
    char path[64];
    struct event *event;

    snprintf(path, sizeof(path), "%s/torn", f->dir);
    event = event_create(path, GENERATION, NULL);
    assert_non_null(event);
    atomic_store(&f->page->word, EVENT_WORD(GENERATION, 3));
    assert_int_equal(event_read(f->event).step, 3);
    assert_int_equal(truncate(path, 0), 0);
    status = event_hold(event, EVENT_GROW, "reason", 2, 0);
    assert_int_equal(status.state, EVENT_STATE_NONE);
    assert_int_equal(status.step, 0);
    event_run_to(event, 9);
    /* Growing it again does not help: what was agreed is gone. The other page is as it was. */
    assert_int_equal(truncate(path, EVENT_PAGE_BYTES), 0);
    assert_int_equal(event_read(event).state, EVENT_STATE_NONE);
    assert_int_equal(event_read(f->event).step, 3);
    event_unlink(event);
    event_destroy(event);
}

static void test_truncated_before_each_call(void **state)
{
    struct fixture *f = *state;

    for (int call = 0; call < 4; call++) {
        struct event_progress progress;
        char path[64];
        struct event *event;

        snprintf(path, sizeof(path), "%s/torn", f->dir);
        event = event_create(path, 1, NULL);
        assert_non_null(event);
        assert_int_equal(truncate(path, 0), 0);
        if (call == 0)
            event_read(event);
        else if (call == 1)
            event_hold(event, EVENT_STOP, "", 0, 0);
        else if (call == 2)
            assert_false(event_read_progress(event, &progress));
        else
            event_run_to(event, 1);
        event_unlink(event);
        event_destroy(event);
    }
}

/* The name is only for finding it. */
static void test_unlinked(void **state)
{
    struct fixture *f = *state;

    unlink(f->path);
    atomic_store(&f->page->word, EVENT_WORD(GENERATION, 8));
    assert_int_equal(event_read(f->event).step, 8);
    assert_int_equal(event_hold(f->event, EVENT_GROW, "", 2, 0).step, 8);
    assert_true((atomic_load(&f->page->word) & EVENT_HOLD) != 0);
}

/* SIGBUS that is none of ours still ends the process. */
static void test_other_bus_errors(void **state)
{
    struct fixture *f = *state;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGBUS, SIG_DFL);
        event_create(f->path, 1, NULL); /* installs the guard above the default action */
        if (truncate(f->path, 0) == 0)
            *(volatile uint32_t *)&map_page(f->path)->bytes = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_page, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_name_is_taken, set_up, tear_down),
        cmocka_unit_test(test_cannot_be_created),
        cmocka_unit_test_setup_teardown(test_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hold, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hold_without_reason, set_up, tear_down),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_full),
        cmocka_unit_test_setup_teardown(test_race, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_truncated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_truncated_before_each_call, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unlinked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_bus_errors, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
