/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's side of its event page (event.h).
 *
 * Why no rank stops alone: the worker moves its step from n to n+1 by compare-and-swap, only while
 * HOLD is clear. The agent sets HOLD by an atomic or. Whichever comes first, the agent has read the
 * step that the worker is in. The worker goes no further than S, the greatest of these steps of all
 * workers, and learns S before it stops. All accesses are sequentially consistent: values that the
 * agent writes before HOLD are there once the worker sees HOLD. */
#include "client/event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/term_guard.h"

/* The answer to HOLD takes a network round trip: look often at first, then with longer and longer
 * sleeps. */
#define SLEEP_FIRST_NS 20000
#define SLEEP_LAST_NS  2000000

/* The last resort when the agent lives and says nothing: for an event without a deadline. It is
 * also the least wait for an event whose deadline is near or over: the agent enforces the deadline,
 * not the worker. */
#define WAIT_DEFAULT_MS 60000
#define WAIT_LEAST_MS   2000

/* The wait for word of a loss, where the agent does not say how long it may take. */
#define PATIENCE_DEFAULT_MS 3000

/* Wait between two checks of the agent. At the gate, and when there is an event, the agent wakes
 * us; it cannot announce its own end. */
#define GATE_LOOK_NS 200000000
#define WAIT_LOOK_MS 200

/* How to see that the agent has died. Process ids are used again, so kill(pid, 0) alone is the last
 * choice. */
enum watch {
    WATCH_NONE,   /* the agent lives in another pid namespace: only the time limit is left */
    WATCH_PARENT, /* the agent is our parent: when it dies we get another parent */
    WATCH_FD,     /* the agent is the parent of a shell around us: a pidfd tells when it dies */
    WATCH_PID,    /* a kernel before 5.3 */
};

struct event_client {
    struct event_page *page;
    char *path;
    int page_fd; /* holds the lock */
    enum watch watch;
    pid_t agent;
    int agent_fd;
    int64_t stepped_ms; /* the last boundary, on the monotonic clock; 0: none yet */
};

_Static_assert(sizeof(struct event_page) <= EVENT_PAGE_BYTES, "the page fits");
_Static_assert(offsetof(struct event_page, word) == 16, "the layout is a contract");
_Static_assert(offsetof(struct event_page, reason) == 64, "the layout is a contract");
_Static_assert(offsetof(struct event_page, gate) == 256, "the layout is a contract");
_Static_assert(offsetof(struct event_page, progress) == 268, "the layout is a contract");
_Static_assert(offsetof(struct event_page, unit) == 288, "the layout is a contract");
_Static_assert(offsetof(struct event_page, rank) == 312, "the layout is a contract");
_Static_assert(offsetof(struct event_page, signature) == 408, "the layout is a contract");
_Static_assert(offsetof(struct event_page, torn) == 416, "the layout is a contract");
_Static_assert(offsetof(struct event_page, stacks_signal) == 428, "the layout is a contract");
_Static_assert(offsetof(struct event_page, asks) == 436, "the layout is a contract");
_Static_assert(offsetof(struct event_page, own_us) == 440, "the layout is a contract");
_Static_assert(offsetof(struct event_page, moved) == 456, "the layout is a contract");
_Static_assert(ELASTIC_UNIT_BYTES == EVENT_UNIT_BYTES, "a unit is not cut");
_Static_assert(sizeof(((struct elastic_event *)NULL)->reason) ==
                   sizeof(((struct event_page *)NULL)->reason),
               "a reason is not cut");
_Static_assert((int)ELASTIC_STOP == (int)EVENT_STOP, "the kinds are the same");

void event_client_fail(struct event_client_error *err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
}

/* ---- attaching ------------------------------------------------------------------------------- */

static bool file_is_ours(int fd, const char *path, struct event_client_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        event_client_fail(err, "%s: %s", path, strerror(errno));
        return false;
    }
    if (!S_ISREG(st.st_mode) || st.st_size != EVENT_PAGE_BYTES) {
        event_client_fail(err,
                          "%s: not an event page: must be a regular file of %d bytes, has %lld",
                          path, EVENT_PAGE_BYTES, (long long)st.st_size);
        return false;
    }
    if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        event_client_fail(
            err, "%s: belongs to user %u with mode %03o: must be writable by user %u only", path,
            (unsigned)st.st_uid, (unsigned)(st.st_mode & 0777), (unsigned)geteuid());
        return false;
    }
    return true;
}

static bool page_is_valid(const struct event_page *page, const char *path,
                          struct event_client_error *err)
{
    if (page->magic != EVENT_PAGE_MAGIC) {
        event_client_fail(err, "%s: not an event page: starts with %016llx", path,
                          (unsigned long long)page->magic);
        return false;
    }
    if (page->version != EVENT_PAGE_VERSION || page->bytes != EVENT_PAGE_BYTES) {
        event_client_fail(
            err,
            "%s: event page of version %u with %u bytes by elasticrun %.31s, this libelastic knows "
            "version %d with %d: they are of different releases",
            path, page->version, page->bytes,
            getenv("ELASTIC_RELEASE") != NULL ? getenv("ELASTIC_RELEASE") : "", EVENT_PAGE_VERSION,
            EVENT_PAGE_BYTES);
        return false;
    }
    if (page->agent_pid == 0 || page->agent_pid > INT32_MAX) {
        event_client_fail(err, "%s: event page of no agent (process %u)", path, page->agent_pid);
        return false;
    }
    return true;
}

static struct event_page *map_page(int fd, const char *path, struct event_client_error *err)
{
    struct event_page *page = mmap(NULL, EVENT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                   0);

    if (page == MAP_FAILED) {
        event_client_fail(err, "%s: cannot be mapped: %s", path, strerror(errno));
        return NULL;
    }
    if (!page_is_valid(page, path, err)) {
        munmap(page, EVENT_PAGE_BYTES);
        return NULL;
    }
    /* A data loader that is forked off must not count steps, even by mistake. */
    madvise(page, EVENT_PAGE_BYTES, MADV_DONTFORK);
    return page;
}

/* A data loader's process that is not forked off but started anew (multiprocessing's "spawn" and
 * "forkserver") has the worker's environment, and imports what the worker imports. A lock of this
 * kind belongs to a process: it is not inherited, ends with the process, and works between
 * containers, where process ids mean nothing. Where the file system has no locks, all are let
 * in. */
static bool take_page(int fd, const char *path, struct event_client_error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES))
        return true;
    if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        lock.l_pid = 0; /* it has just ended */
    event_client_fail(err,
                      "%s: process %d of this worker has attached: process %d is no worker, and "
                      "gets no events",
                      path, (int)lock.l_pid, (int)getpid());
    return false;
}

static void watch_agent(struct event_client *client)
{
    client->agent = (pid_t)client->page->agent_pid;
    client->agent_fd = -1;
    if (getppid() == client->agent) {
        client->watch = WATCH_PARENT;
        return;
    }
#ifdef SYS_pidfd_open
    client->agent_fd = (int)syscall(SYS_pidfd_open, client->agent, 0);
#endif
    if (client->agent_fd >= 0)
        client->watch = WATCH_FD;
    else if (errno != ESRCH && kill(client->agent, 0) == 0)
        client->watch = WATCH_PID;
    else
        client->watch = WATCH_NONE;
}

static bool agent_is_gone(const struct event_client *client)
{
    struct pollfd ended = {.fd = client->agent_fd, .events = POLLIN};

    switch (client->watch) {
    case WATCH_NONE:
        return false;
    case WATCH_PARENT:
        return getppid() != client->agent;
    case WATCH_FD:
        return poll(&ended, 1, 0) > 0;
    case WATCH_PID:
        return kill(client->agent, 0) != 0 && errno == ESRCH;
    }
    return false;
}

/* 0, or ELASTIC_ERROR_AGENT when no agent is there any more to answer. */
static int check_agent(const struct event_client *client, struct event_client_error *err)
{
    if (!agent_is_gone(client))
        return 0;
    event_client_fail(err, "elasticrun on this node (process %d) has died: this worker leaves",
                      (int)client->agent);
    return ELASTIC_ERROR_AGENT;
}

struct event_client *event_client_open(const char *path, struct event_client_error *err)
{
    struct event_client *client = calloc(1, sizeof(*client));
    uint32_t none = EVENT_STATE_NONE;

    if (client == NULL || (client->path = strdup(path)) == NULL) {
        event_client_fail(err, "out of memory");
        free(client);
        errno = ENOMEM;
        return NULL;
    }
    client->page_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    client->agent_fd = -1;
    if (client->page_fd < 0)
        event_client_fail(err, "%s: cannot be opened: %s", path, strerror(errno));
    else if (file_is_ours(client->page_fd, path, err))
        client->page = map_page(client->page_fd, path, err);
    if (client->page == NULL) {
        event_client_forget(client);
        errno = EINVAL;
        return NULL;
    }
    term_guard_install((pid_t)client->page->stepd_pid);
    if (!take_page(client->page_fd, path, err)) {
        event_client_close(client);
        errno = EBUSY;
        return NULL;
    }
    watch_agent(client);
    atomic_compare_exchange_strong(&client->page->state, &none, EVENT_STATE_ATTACHED);
    return client;
}

const char *event_client_path(const struct event_client *client)
{
    return client->path;
}

void event_client_close(struct event_client *client)
{
    if (client == NULL)
        return;
    munmap(client->page, EVENT_PAGE_BYTES);
    event_client_forget(client);
}

void event_client_forget(struct event_client *client)
{
    if (client->agent_fd >= 0)
        close(client->agent_fd);
    if (client->page_fd >= 0)
        close(client->page_fd);
    free(client->path);
    free(client);
}

/* ---- a boundary ------------------------------------------------------------------------------ */

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now = {0};

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The moment on the monotonic clock at which waiting ends. */
static int64_t wait_limit_ms(const struct event_page *page)
{
    int64_t left = WAIT_DEFAULT_MS;

    if (page->deadline_ms != 0)
        left = page->deadline_ms - clock_ms(CLOCK_REALTIME);
    if (left < WAIT_LEAST_MS)
        left = WAIT_LEAST_MS;
    return clock_ms(CLOCK_MONOTONIC) + left;
}

static bool is_torn(const struct event_page *page)
{
    return atomic_load_explicit(&page->torn, memory_order_acquire) != 0;
}

static void tell(struct event_page *page, uint64_t word, struct elastic_event *event)
{
    atomic_store(&page->told, 1);
    if (event == NULL)
        return;
    memset(event, 0, sizeof(*event));
    event->kind = is_torn(page) ? EVENT_FAULT : (int32_t)atomic_load(&page->kind);
    event->generation = (int32_t)EVENT_GENERATION(word);
    event->next_nodes = (int32_t)page->next_nodes;
    event->step = (int64_t)EVENT_STEP(word);
    event->deadline_ms = page->deadline_ms;
    memcpy(event->reason, page->reason, sizeof(event->reason));
    event->reason[sizeof(event->reason) - 1] = '\0';
}

enum answer { ANSWER_NONE, ANSWER_GO_ON, ANSWER_STOP };

/* The agent's answer to a worker that stands before the step after `word`. */
static enum answer read_answer(struct event_page *page, uint64_t word)
{
    uint64_t run_to = atomic_load(&page->run_to);

    if ((run_to & EVENT_VALID) == 0 || EVENT_GENERATION(run_to) != EVENT_GENERATION(word))
        return ANSWER_NONE;
    return EVENT_STEP(word) < EVENT_STEP(run_to) ? ANSWER_GO_ON : ANSWER_STOP;
}

/* Wait while HOLD is set and the answer is not there. Returns 0, or an error. */
static int wait_for_answer(const struct event_client *client, uint64_t *word,
                           struct event_client_error *err)
{
    struct event_page *page = client->page;
    struct timespec pause = {.tv_nsec = SLEEP_FIRST_NS};
    int64_t limit = wait_limit_ms(page);

    while (((*word = atomic_load(&page->word)) & EVENT_HOLD) != 0 &&
           read_answer(page, *word) == ANSWER_NONE && !is_torn(page)) {
        if (check_agent(client, err) != 0)
            return ELASTIC_ERROR_AGENT;
        if (clock_ms(CLOCK_MONOTONIC) >= limit) {
            event_client_fail(
                err, "elasticrun asked to wait after step %llu and said nothing more: leaving",
                (unsigned long long)EVENT_STEP(*word));
            return ELASTIC_ERROR_WAIT;
        }
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < SLEEP_LAST_NS)
            pause.tv_nsec += pause.tv_nsec / 2;
    }
    return 0;
}

/* How long a step may take is known only from the steps already made. */
static void time_step(struct event_client *client)
{
    int64_t now = clock_ms(CLOCK_MONOTONIC), took = now - client->stepped_ms;
    struct event_page *page = client->page;

    if (client->stepped_ms != 0 &&
        took > atomic_load_explicit(&page->slowest, memory_order_relaxed))
        atomic_store(&page->slowest, took < UINT32_MAX ? (uint32_t)took : UINT32_MAX);
    client->stepped_ms = now;
}

/* With `last` this worker passes no further boundary: no other worker is to wait for one. */
static int pass_boundary(struct event_client *client, bool last, struct elastic_event *event,
                         struct event_client_error *err)
{
    struct event_page *page = client->page;
    uint64_t word = atomic_load(&page->word);

    event_client_training(client);
    time_step(client);
    if (atomic_load_explicit(&page->gate, memory_order_relaxed) == EVENT_GATE_CLOSED) {
        /* The gate is passed later than it should be. */
        int rc = event_client_gate(client, EVENT_PASSED_LOAD, err);

        if (rc != 0)
            return rc;
    }
    for (;;) {
        if (is_torn(page)) {
            tell(page, word, event);
            return 1;
        }
        if (EVENT_STEP(word) == EVENT_STEP_MASK)
            return 0; /* the last boundary has been passed */
        if ((word & EVENT_HOLD) == 0) {
            if (atomic_compare_exchange_weak(&page->word, &word,
                                             last ? word | EVENT_STEP_MASK : word + 1))
                return 0;
            continue;
        }
        if (read_answer(page, word) == ANSWER_NONE) {
            int rc = wait_for_answer(client, &word, err);

            if (rc != 0)
                return rc;
            continue; /* an answer, or HOLD was lifted */
        }
        if (read_answer(page, word) == ANSWER_STOP) {
            tell(page, word, event);
            return 1;
        }
        if (last)
            atomic_fetch_or(&page->word, EVENT_STEP_MASK);
        else
            atomic_fetch_add(&page->word, 1);
        return 0;
    }
}

int event_client_boundary(struct event_client *client, struct elastic_event *event,
                          struct event_client_error *err)
{
    return pass_boundary(client, false, event, err);
}

int event_client_finish(struct event_client *client, struct elastic_event *event,
                        struct event_client_error *err)
{
    return pass_boundary(client, true, event, err);
}

bool event_client_held(const struct event_client *client)
{
    return (atomic_load(&client->page->word) & EVENT_HOLD) != 0 || is_torn(client->page);
}

/* The futex is `kind`, since the step in `word` changes all the time. The agent writes kind before
 * HOLD, and wakes after HOLD. */
static void wait_for_news(struct event_page *page, uint32_t kind, int64_t left_ms)
{
    int64_t look = left_ms < WAIT_LOOK_MS ? left_ms : WAIT_LOOK_MS;
    struct timespec pause = {.tv_nsec = (long)look * 1000000};

    syscall(SYS_futex, &page->kind, FUTEX_WAIT, kind, &pause, NULL, 0);
}

int event_client_wait(struct event_client *client, struct elastic_event *event, int timeout_ms,
                      struct event_client_error *err)
{
    struct event_page *page = client->page;
    int64_t limit;
    int rc = 0;

    /* A worker that waits for an event must not be killed without an event. */
    event_client_training(client);
    if (atomic_load(&page->gate) == EVENT_GATE_CLOSED)
        rc = event_client_gate(client, EVENT_PASSED_LOAD, err);
    if (rc != 0)
        return rc;
    atomic_store(&page->waits, 1);
    limit = timeout_ms < 0 ? INT64_MAX : clock_ms(CLOCK_MONOTONIC) + timeout_ms;
    for (;;) {
        uint32_t kind = atomic_load(&page->kind);
        int64_t left = limit - clock_ms(CLOCK_MONOTONIC);

        if (event_client_held(client)) {
            rc = event_client_boundary(client, event, err);
            return rc == 0 ? ELASTIC_GO_ON : rc;
        }
        if (check_agent(client, err) != 0)
            return ELASTIC_ERROR_AGENT;
        if (left <= 0)
            return 0;
        wait_for_news(page, kind, left);
    }
}

int event_client_gate(struct event_client *client, enum event_gate_place passed,
                      struct event_client_error *err)
{
    struct event_page *page = client->page;
    const struct timespec look = {.tv_nsec = GATE_LOOK_NS};

    if (atomic_load(&page->place) >= EVENT_PASSED_LOAD)
        return 0;
    atomic_store(&page->place, EVENT_AT_GATE);
    while (atomic_load(&page->gate) == EVENT_GATE_CLOSED) {
        if (agent_is_gone(client)) {
            event_client_fail(
                err, "elasticrun on this node (process %d) has died before this world began",
                (int)client->agent);
            return ELASTIC_ERROR_AGENT;
        }
        syscall(SYS_futex, &page->gate, FUTEX_WAIT, EVENT_GATE_CLOSED, &look, NULL, 0);
    }
    atomic_store(&page->place, passed);
    return 0;
}

void event_client_training(struct event_client *client)
{
    if (atomic_load_explicit(&client->page->state, memory_order_relaxed) < EVENT_STATE_TRAINING)
        atomic_store(&client->page->state, EVENT_STATE_TRAINING);
}

void event_client_progress(struct event_client *client, int64_t done, int64_t total,
                           const char *unit)
{
    struct event_page *page = client->page;
    uint64_t text[EVENT_UNIT_BYTES / 8] = {0};
    uint32_t number = atomic_load(&page->progress) & ~UINT32_C(1);

    memcpy(text, unit, strnlen(unit, sizeof(text) - 1));
    atomic_store(&page->progress, number + 1);
    atomic_store(&page->done, done);
    atomic_store(&page->total, total);
    for (size_t i = 0; i < EVENT_UNIT_BYTES / 8; i++)
        atomic_store(&page->unit[i], text[i]);
    atomic_store(&page->progress, number + 2 != 0 ? number + 2 : 2); /* 0: nothing reported */
}

void event_client_step_time(struct event_client *client, int64_t microseconds)
{
    atomic_fetch_add(&client->page->own_us, (uint64_t)microseconds);
    atomic_fetch_add(&client->page->own_steps, 1);
}

/* ---- live mode ------------------------------------------------------------------------------- */

void event_client_moved(struct event_client *client, uint64_t bytes)
{
    atomic_fetch_add(&client->page->moved, bytes);
}

void event_client_live(struct event_client *client)
{
    atomic_store(&client->page->live, 1);
}

void event_client_signature(struct event_client *client, uint64_t signature)
{
    atomic_store(&client->page->signature, signature);
}

uint64_t event_client_step(const struct event_client *client)
{
    return EVENT_STEP(atomic_load(&client->page->word));
}

void event_client_stacks(struct event_client *client, int number)
{
    atomic_store(&client->page->stacks_pid, (uint32_t)getpid());
    atomic_store(&client->page->stacks_signal, (uint32_t)number);
}

void event_client_world(const struct event_client *client, struct elastic_world *world)
{
    const struct event_page *page = client->page;

    *world = (struct elastic_world){
        .generation = event_client_generation(client),
        .attempt = page->attempt,
        .rank = page->rank,
        .size = page->size,
        .local_rank = page->local_rank,
        .local_size = page->local_size,
        .nodes = page->nodes,
    };
}

/* The page in the same directory that the agent has named. */
static struct event_client *open_beside(const struct event_client *client,
                                        struct event_client_error *err)
{
    char name[EVENT_FILE_BYTES], path[PATH_MAX];
    const char *slash = strrchr(client->path, '/');
    int directory = slash != NULL ? (int)(slash - client->path) + 1 : 0;
    struct event_client *next;

    memcpy(name, client->page->next_file, sizeof(name));
    name[sizeof(name) - 1] = '\0';
    if (name[0] == '\0' || strchr(name, '/') != NULL ||
        snprintf(path, sizeof(path), "%.*s%s", directory, client->path, name) >=
            (int)sizeof(path)) {
        event_client_fail(err, "%s: the next page is named \"%s\"", client->path, name);
        return NULL;
    }
    next = event_client_open(path, err);
    if (next != NULL) {
        event_client_live(next);
        event_client_signature(next, atomic_load(&client->page->signature));
        event_client_stacks(next, (int)atomic_load(&client->page->stacks_signal));
        event_client_training(next);
        atomic_store(&next->page->place, EVENT_PASSED_INIT);
    }
    return next;
}

/* Sleep until a word of the page is not 0. Returns 1; 0 when the time is over; or
 * ELASTIC_ERROR_AGENT. */
static int wait_for_word(const struct event_client *client, _Atomic uint32_t *word, int timeout_ms,
                         struct event_client_error *err)
{
    int64_t limit = timeout_ms < 0 ? INT64_MAX : clock_ms(CLOCK_MONOTONIC) + timeout_ms;

    while (atomic_load(word) == 0) {
        int64_t left = limit - clock_ms(CLOCK_MONOTONIC);
        struct timespec look = {.tv_nsec = GATE_LOOK_NS};

        if (check_agent(client, err) != 0)
            return ELASTIC_ERROR_AGENT;
        if (left <= 0)
            return 0;
        if (left < GATE_LOOK_NS / 1000000)
            look.tv_nsec = (long)left * 1000000;
        syscall(SYS_futex, word, FUTEX_WAIT, 0, &look, NULL, 0);
    }
    return 1;
}

int event_client_torn(const struct event_client *client, int timeout_ms,
                      struct event_client_error *err)
{
    struct event_page *page = client->page;
    int rc;

    if (timeout_ms >= 0)
        return wait_for_word(client, &page->torn, timeout_ms, err);
    /* The operation of other workers that has failed may have succeeded here so far. */
    atomic_store(&page->asks, 1);
    rc = wait_for_word(client, &page->torn,
                       page->patience_ms != 0 ? (int)page->patience_ms : PATIENCE_DEFAULT_MS, err);
    atomic_store(&page->asks, 0);
    return rc;
}

_Atomic uint32_t *event_client_torn_word(const struct event_client *client)
{
    return &client->page->torn;
}

int event_client_next(const struct event_client *client, int timeout_ms, struct event_client **next,
                      bool *save, struct event_client_error *err)
{
    int rc = wait_for_word(client, &client->page->next, timeout_ms, err);
    uint32_t found = atomic_load(&client->page->next);

    *next = NULL;
    *save = found == EVENT_NEXT_SAVE;
    if (rc != 1 || found != EVENT_NEXT_WORLD)
        return rc;
    *next = open_beside(client, err);
    return *next != NULL ? 1 : ELASTIC_ERROR_PAGE;
}

int event_client_generation(const struct event_client *client)
{
    return (int)EVENT_GENERATION(atomic_load(&client->page->word));
}
