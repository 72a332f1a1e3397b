/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A loop with workers, and programs for them (workers_fixture.h). */
#include "tests/unit/workers_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/workers/exec_worker.h"
#include "client/event_page.h"

#define LIMIT_MS 120000

/* ---- the loop -------------------------------------------------------------------------------- */

const char *run_program(void)
{
    static char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    assert_true(len > 0);
    path[len] = '\0';
    return path;
}

static void on_ready(void *arg)
{
    ((struct run *)arg)->ready++;
}

static void on_parked(void *arg)
{
    ((struct run *)arg)->parked++;
}

static void on_begun(void *arg)
{
    struct run *run = arg;

    run->begun++;
}

static void on_stepping(void *arg)
{
    ((struct run *)arg)->stepping++;
}

static void on_exited(const struct worker_exit *ended, void *arg)
{
    struct run *run = arg;
    struct ending *ending = &run->endings[ended->rank];
    json_object *value;

    run->exits++;
    ending->count++;
    ending->code = ended->code;
    ending->signal = ended->signal;
    ending->told = ended->told;
    ending->early = ended->early;
    ending->at = uv_now(&run->loop);
    if (ended->error == NULL)
        return;
    assert_true(json_object_object_get_ex(ended->error, "message", &value));
    snprintf(ending->message, sizeof(ending->message), "%s", json_object_get_string(value));
    assert_true(json_object_object_get_ex(ended->error, "extra", &value));
    snprintf(ending->extra, sizeof(ending->extra), "%s",
             json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
}

static void on_drained(void *arg)
{
    struct run *run = arg;

    run->drained++;
    if (run->destroy_when_drained) {
        workers_destroy(run->workers);
        run->workers = NULL;
    }
}

static void on_output(int rank, int fd, const char *data, size_t len, void *arg)
{
    struct run *run = arg;
    struct text *text = &run->texts[rank][fd];
    size_t room = text->bytes < RUN_TEXT_MAX ? RUN_TEXT_MAX - text->bytes : 0;

    memcpy(text->head + (RUN_TEXT_MAX - room), data, len < room ? len : room);
    text->bytes += len;
    if (len > run->largest_chunk)
        run->largest_chunk = len;
}

static const struct workers_handlers handlers = {
    .ready = on_ready,
    .parked = on_parked,
    .begun = on_begun,
    .stepping = on_stepping,
    .exited = on_exited,
    .drained = on_drained,
    .output = on_output,
};

struct run *run_create(int slots)
{
    struct run *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    uv_loop_init(&run->loop);
    uv_timer_init(&run->loop, &run->wake);
    snprintf(run->dir, sizeof(run->dir), "/dev/shm/elastic-test-XXXXXX");
    assert_non_null(mkdtemp(run->dir));
    run->world = world_create(7, 1);
    assert_int_equal(world_set_node(run->world, 0, "node1", slots), 0);
    run->world->master_addr = strdup("127.0.0.1");
    run->world->master_port = 12345;
    run->world->kind = strdup("start");
    run->world->reason = strdup("a test");
    run->options = (struct workers_options){
        .program = run_program(),
        .cwd = "/tmp",
        .umask = 027,
        .user_env = environ,
        .own_env = environ,
        .place = {.job_id = "12",
                  .incarnation = "12.0",
                  .min_nodes = 1,
                  .max_nodes = 1,
                  .run_dir = run->dir},
    };
    return run;
}

void run_start(struct run *run)
{
    struct error err = {""};

    run->workers = workers_start(&run->loop, run->world, &run->options, &handlers, run, &err);
    assert_string_equal(err.text, "");
    assert_non_null(run->workers);
    assert_int_equal(run->ready + run->exits, 0); /* never from inside */
}

void run_start_act(struct run *run, const char *name, const char *argument)
{
    const char *argv[] = {run_program(), "--act", name, argument, NULL};

    run->options.argv = (char *const *)argv;
    run_start(run);
    run->options.argv = NULL; /* workers_start has copied what it needs */
}

static void on_wake(uv_timer_t *timer)
{
    (void)timer;
}

void run_await_begin(struct run *run)
{
    uv_update_time(&run->loop);
    run->deadline = uv_now(&run->loop) + LIMIT_MS;
    uv_timer_start(&run->wake, on_wake, 20, 20);
}

bool run_turn(struct run *run)
{
    uv_run(&run->loop, UV_RUN_ONCE);
    return uv_now(&run->loop) < run->deadline;
}

void run_destroy(struct run *run)
{
    workers_destroy(run->workers);
    run_await_begin(run);
    uv_close((uv_handle_t *)&run->wake, NULL);
    assert_int_equal(uv_run(&run->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&run->loop), 0);
    world_destroy(run->world);
    assert_int_equal(rmdir(run->dir), 0); /* its files are gone */
    free(run);
}

int run_number(const struct run *run, int rank, const char *name)
{
    char key[32];
    const char *at;

    snprintf(key, sizeof(key), "%s=", name);
    at = strstr(run->texts[rank][1].head, key);
    return at != NULL && strchr(at, '\n') != NULL ? atoi(at + strlen(key)) : 0;
}

/* The letter of /proc/PID/stat, 'X' when there is no such process. */
static char process_state(pid_t pid)
{
    char path[32], stat[512], state = 'X';
    const char *end;
    FILE *file;
    size_t got;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return state;
    got = fread(stat, 1, sizeof(stat) - 1, file);
    fclose(file);
    stat[got] = '\0';
    end = strrchr(stat, ')');
    return end != NULL && sscanf(end + 1, " %c", &state) == 1 ? state : 'X';
}

bool process_gone(pid_t pid)
{
    char state = process_state(pid);

    return state == 'Z' || state == 'X';
}

bool process_stopped(pid_t pid)
{
    return process_state(pid) == 'T';
}

/* ---- programs for workers -------------------------------------------------------------------- */

static void nap(int ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&ts, NULL);
}

static void say(const char *name, int number)
{
    dprintf(1, "%s=%d\n", name, number);
}

static void wait_forever(void)
{
    for (;;)
        pause();
}

static struct event_page *attach(enum event_page_state state)
{
    int fd = open(getenv("ELASTIC_EVENT_FILE"), O_RDWR | O_CLOEXEC);
    struct event_page *page = mmap(NULL, EVENT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                   0);

    if (fd < 0 || page == MAP_FAILED || page->magic != EVENT_PAGE_MAGIC ||
        page->bytes != EVENT_PAGE_BYTES)
        _exit(99);
    close(fd);
    atomic_store(&page->state, (uint32_t)state);
    return page;
}

/* One boundary, as the client library does it. False when the worker has been given the event. */
static bool boundary(struct event_page *page)
{
    for (;;) {
        uint64_t word = atomic_load(&page->word), run_to;

        if (atomic_load(&page->torn) != 0) {
            atomic_store(&page->told, 1);
            return false;
        }
        if ((word & EVENT_HOLD) == 0) {
            if (atomic_compare_exchange_strong(&page->word, &word, word + 1))
                return true;
            continue;
        }
        run_to = atomic_load(&page->run_to);
        if ((run_to & EVENT_VALID) == 0) {
            nap(1);
        } else if (EVENT_STEP(word) < EVENT_STEP(run_to)) {
            atomic_store(&page->word, word + 1);
            return true;
        } else {
            atomic_store(&page->told, 1);
            return false;
        }
    }
}

/* Train so many steps, then end with 0; rank 0 is the fastest. */
static int act_train(const char *argument)
{
    struct event_page *page = attach(EVENT_STATE_TRAINING);
    int steps = atoi(argument), rank = atoi(getenv("RANK"));

    say("here", 1);
    for (int i = 0; i < steps; i++) {
        if (!boundary(page)) {
            say("stopped", (int)EVENT_STEP(atomic_load(&page->word)));
            say("kind", (int)atomic_load(&page->kind));
            say("nodes", (int)page->next_nodes);
            dprintf(1, "reason: %s\n", page->reason);
            return 0;
        }
        nap(2 + rank);
    }
    return 0;
}

/* Ends with 0: rank 0 after its last boundary, rank 1 before it, rank 2 is not live. Rank 3
 * waits to hear why, until it is let go. */
static int act_end_live(const char *argument)
{
    struct event_page *page = attach(EVENT_STATE_TRAINING);
    int rank = atoi(getenv("RANK"));

    (void)argument;
    atomic_store(&page->live, rank != 2);
    atomic_fetch_add(&page->word, 1);
    if (rank == 0)
        atomic_fetch_or(&page->word, EVENT_STEP_MASK);
    atomic_store(&page->asks, rank == 3);
    while (rank == 3 && atomic_load(&page->torn) == 0)
        nap(1);
    return 0;
}

/* A worker that lives on: the page that its agent has named, NULL when it is to leave. */
static struct event_page *next_page(const struct event_page *page)
{
    char path[PATH_MAX];
    struct event_page *next;
    int fd;

    while (atomic_load(&page->next) == EVENT_NEXT_UNKNOWN)
        nap(1);
    if (atomic_load(&page->next) == EVENT_NEXT_SAVE)
        say("saved", 1);
    if (atomic_load(&page->next) != EVENT_NEXT_WORLD)
        return NULL;
    snprintf(path, sizeof(path), "%s", getenv("ELASTIC_EVENT_FILE"));
    snprintf(strrchr(path, '/'), sizeof(path) - strlen(path), "/%s", page->next_file);
    fd = open(path, O_RDWR | O_CLOEXEC);
    next = mmap(NULL, EVENT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || next == MAP_FAILED || next->magic != EVENT_PAGE_MAGIC)
        _exit(99);
    close(fd);
    atomic_store(&next->live, 1);
    atomic_store(&next->signature, atomic_load(&page->signature));
    atomic_store(&next->state, EVENT_STATE_TRAINING);
    return next;
}

static void say_world(const char *name, const struct event_page *page, int number)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%s", (int)EVENT_GENERATION(atomic_load(&page->word)), name);
    say(text, number);
}

/* Wait while there is a file of that name beside the page. */
static void wait_while(const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s", getenv("ELASTIC_EVENT_FILE"));
    snprintf(strrchr(path, '/'), sizeof(path) - strlen(path), "/%s", name);
    while (access(path, F_OK) == 0)
        nap(1);
}

/* Train in one world after the other; rank 0 of the first does not leave it while there is a
 * file "slow". The argument is what it trains. */
static int act_live(const char *argument)
{
    struct event_page *page = attach(EVENT_STATE_ATTACHED);
    bool slow = atoi(getenv("RANK")) == 0;

    atomic_store(&page->live, 1);
    atomic_store(&page->signature, (uint64_t)atoi(argument));
    if (atomic_load(&page->gate) == EVENT_GATE_CLOSED) {
        atomic_store(&page->place, EVENT_AT_GATE);
        while (atomic_load(&page->gate) == EVENT_GATE_CLOSED)
            nap(1);
    }
    atomic_store(&page->place, EVENT_PASSED_INIT);
    atomic_store(&page->state, EVENT_STATE_TRAINING);
    while (page != NULL) {
        atomic_store(&page->slowest, 1000 - (uint32_t)EVENT_GENERATION(atomic_load(&page->word)));
        say_world("rank", page, page->rank);
        say_world("size", page, page->size);
        say_world("local", page, page->local_rank * 10 + page->local_size);
        say_world("nodes", page, page->nodes);
        for (bool first = true; boundary(page); first = false) {
            if (first)
                say_world("stepped", page, 1);
            nap(2);
        }
        say_world("stopped", page, (int)EVENT_STEP(atomic_load(&page->word)));
        if (slow)
            wait_while("slow");
        page = next_page(page);
    }
    say("left", 1);
    return 0;
}

/* The lowest rank trains on, the others do what their number says: 1 never attaches, 2 ends at
 * once, 3 crashes. */
static int act_mixed(const char *argument)
{
    switch (atoi(getenv("RANK"))) {
    case 1:
        say("here", 1);
        wait_forever();
        return 0;
    case 2:
        return 0;
    case 3:
        return 5;
    default:
        return act_train(argument);
    }
}

static int act_attach(const char *argument)
{
    attach(strcmp(argument, "training") == 0 ? EVENT_STATE_TRAINING : EVENT_STATE_ATTACHED);
    say("here", 1);
    wait_forever();
    return 0;
}

/* Wait at the gate as the client library does, or end before it. */
static int act_gate(const char *what)
{
    struct event_page *page = attach(EVENT_STATE_ATTACHED);

    say("before", 1);
    if (strcmp(what, "end") == 0)
        return 3;
    atomic_store(&page->place, EVENT_AT_GATE);
    while (atomic_load(&page->gate) == EVENT_GATE_CLOSED)
        nap(1);
    atomic_store(&page->place, EVENT_PASSED_INIT);
    say("through", 1);
    atomic_fetch_add(&page->word, 1); /* a boundary */
    wait_forever();
    return 0;
}

/* Take the page's file from under the agent. */
static int act_spoil(const char *how)
{
    const char *path = getenv("ELASTIC_EVENT_FILE");
    struct event_page *page = attach(EVENT_STATE_TRAINING);

    if (strcmp(how, "truncate") == 0) {
        if (truncate(path, 0) != 0)
            return 98;
    } else if (strcmp(how, "unlink") == 0) {
        unlink(path);
    } else {
        memset(page, 0xff, EVENT_PAGE_BYTES);
    }
    say("here", 1);
    wait_forever();
    return 0;
}

static int act_ignore_term(const char *argument)
{
    (void)argument;
    signal(SIGTERM, SIG_IGN);
    say("here", 1);
    wait_forever();
    return 0;
}

/* On SIGUSR2 says how many SIGUSR1 have come before it, plus one. */
static int act_count_usr1(const char *argument)
{
    sigset_t both;
    int count = 1;

    (void)argument;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    sigprocmask(SIG_BLOCK, &both, NULL);
    say("shim", (int)getppid());
    while (sigwaitinfo(&both, NULL) == SIGUSR1)
        count++;
    say("count", count);
    wait_forever();
    return 0;
}

static volatile sig_atomic_t caught;

static void catch_signal(int number)
{
    caught = number;
}

static int act_catch(const char *number)
{
    sigset_t blocked, old;

    sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    signal(atoi(number), catch_signal);
    say("here", 1);
    while (!caught)
        sigsuspend(&old);
    say("caught", caught);
    return 0;
}

/* Count SIGUSR1 until SIGTERM comes. */
static int act_count(const char *argument)
{
    sigset_t both;
    int number, count = 0;

    (void)argument;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, NULL);
    say("shim", getppid());
    say("here", 1);
    while (sigwait(&both, &number) == 0 && number == SIGUSR1)
        say("caught", ++count);
    say("total", count);
    return 0;
}

static volatile sig_atomic_t takes;

static void begin_to_take(int number)
{
    takes = number;
}

/* SIGTERM waits until SIGUSR1 has come. Then say by whom each is, 1: the shim, 2: another; until
 * the shim's has come. */
static int act_take_term(const char *argument)
{
    sigset_t term, before;
    siginfo_t info;

    (void)argument;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigaddset(&term, SIGUSR1);
    signal(SIGUSR1, begin_to_take);
    sigprocmask(SIG_BLOCK, &term, &before);
    say("self", getpid());
    say("shim", getppid());
    sigaddset(&before, SIGTERM);
    while (!takes)
        sigsuspend(&before);
    sigdelset(&term, SIGUSR1);
    for (const char *const *order = (const char *const[]){"first", "second", NULL}; *order != NULL;
         order++) {
        if (sigwaitinfo(&term, &info) != SIGTERM)
            return 1;
        say(*order, info.si_pid == getppid() ? 1 : 2);
        if (info.si_pid == getppid())
            break;
    }
    return 0;
}

static int act_flood(const char *bytes)
{
    static char line[65536];
    long left = atol(bytes);

    memset(line, 'x', sizeof(line));
    for (size_t i = 99; i < sizeof(line); i += 100)
        line[i] = '\n';
    while (left > 0) {
        ssize_t written = write(1, line, left < (long)sizeof(line) ? (size_t)left : sizeof(line));

        if (written < 0)
            return 1;
        left -= written;
    }
    return 0;
}

/* A daemon by the book, without a trace of its origin: own session, no parent, no environment. */
static int act_daemonise(const char *then)
{
    int ready[2];
    char byte;

    if (pipe(ready) != 0)
        return 1;
    if (fork() == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        clearenv();
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        say("daemon", getpid());
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        wait_forever();
    }
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    say("self", getpid());
    if (strcmp(then, "wait") == 0)
        wait_forever();
    if (strcmp(then, "crash") == 0)
        raise(SIGKILL);
    return atoi(then);
}

/* A child in the worker's group and one in its own, and a grandchild: what a data loader looks
 * like. */
static int act_family(const char *argument)
{
    (void)argument;
    if (fork() == 0) {
        say("child", getpid());
        if (fork() == 0) {
            setpgid(0, 0);
            say("grandchild", getpid());
        }
        wait_forever();
    }
    wait_forever();
    return 0;
}

static int act_close_output(const char *argument)
{
    (void)argument;
    close(1);
    close(2);
    wait_forever();
    return 0;
}

static int act_stop_self(const char *argument)
{
    (void)argument;
    say("here", getpid());
    raise(SIGSTOP);
    return 0;
}

static int act_raise(const char *number)
{
    const struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    signal(atoi(number), SIG_DFL); /* a sanitizer may have its own handler */
    raise(atoi(number));
    return 0;
}

static int act_error_file(const char *what)
{
    const char *path = getenv("TORCHELASTIC_ERROR_FILE");
    FILE *file;

    if (strcmp(what, "directory") == 0)
        return mkdir(path, 0700) == 0 ? 1 : 2;
    if (strcmp(what, "fifo") == 0)
        return mkfifo(path, 0600) == 0 ? 1 : 2;
    if (strcmp(what, "link") == 0)
        return symlink("/dev/zero", path) == 0 ? 1 : 2;
    file = fopen(path, "we");
    if (file == NULL)
        return 2;
    if (strcmp(what, "large") == 0)
        for (int i = 0; i < 1 << 20; i++)
            fputc('[', file);
    else
        fputs(what, file);
    fclose(file);
    return 1;
}

/* What the shim promises of the process that it starts. */
static int act_look(const char *argument)
{
    sigset_t mask;
    struct sigaction pipe_action;
    char cwd[256], target[256] = "";
    int open_fds = 0;

    (void)argument;
    if (readlink("/proc/self/fd/0", target, sizeof(target) - 1) < 0)
        return 1;
    for (int fd = 3; fd < 256; fd++)
        open_fds += fcntl(fd, F_GETFD) >= 0;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigaction(SIGPIPE, NULL, &pipe_action);
    dprintf(1, "stdin: %s\ncwd: %s\numask: %03o\n", target, getcwd(cwd, sizeof(cwd)), umask(0));
    dprintf(1, "rank: %s\nevent: %s\n", getenv("RANK"), getenv("ELASTIC_EVENT_FILE"));
    dprintf(1, "open: %d\nleader: %d\n", open_fds, getsid(0) == getpid() && getpgrp() == getpid());
    dprintf(1, "blocked: %d\nsigpipe: %d\n",
            sigismember(&mask, SIGTERM) || sigismember(&mask, SIGCHLD),
            pipe_action.sa_handler == SIG_DFL);
    return 0;
}

static int act_reopen(const char *argument)
{
    FILE *file = fopen("/dev/stdout", "we");

    (void)argument;
    if (file == NULL)
        return 1;
    fputs("reopened\n", file);
    fclose(file);
    return 0;
}

/* An agent of its own with one worker that has a daemon; it is there to be killed. */
static int act_agent(const char *argument)
{
    struct run *run = run_create(1);

    (void)argument;
    run_start_act(run, "daemonise", "wait");
    AWAIT(run, run_number(run, 0, "daemon") > 0 && run_number(run, 0, "self") > 0);
    dprintf(1, "%s", run->texts[0][1].head);
    dprintf(1, "dir=%s\nend=1\n", run->dir);
    while (run->drained == 0)
        uv_run(&run->loop, UV_RUN_ONCE);
    return 1;
}

void run_dispatch(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*act)(const char *argument);
    } acts[] = {
        {"agent", act_agent},
        {"attach", act_attach},
        {"catch", act_catch},
        {"close-output", act_close_output},
        {"count", act_count},
        {"daemonise", act_daemonise},
        {"error-file", act_error_file},
        {"family", act_family},
        {"flood", act_flood},
        {"gate", act_gate},
        {"count-usr1", act_count_usr1},
        {"ignore-term", act_ignore_term},
        {"live", act_live},
        {"look", act_look},
        {"mixed", act_mixed},
        {"raise", act_raise},
        {"reopen", act_reopen},
        {"spoil", act_spoil},
        {"stop-self", act_stop_self},
        {"take-term", act_take_term},
        {"end-live", act_end_live},
        {"train", act_train},
    };

    signal(SIGPIPE, SIG_IGN); /* as elasticrun's main does */
    if (argc > 1 && strcmp(argv[1], EXEC_WORKER_OPTION) == 0)
        exit(workers_exec_shim(argc, argv));
    if (argc != 4 || strcmp(argv[1], "--act") != 0)
        return;
    signal(SIGPIPE, SIG_DFL);
    for (size_t i = 0; i < COUNT(acts); i++)
        if (strcmp(acts[i].name, argv[2]) == 0)
            exit(acts[i].act(argv[3]));
    exit(97);
}
