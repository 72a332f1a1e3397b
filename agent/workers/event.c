/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's side of a worker's event page (event.h).
 *
 * SIGBUS is synchronous: it is raised in the thread that touches the page, during the access. The
 * handler jumps back to the beginning of the access. All other SIGBUS go to the handler that was
 * there before. */
#include "agent/workers/event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/reserve_file.h"
#include "agent/supervise.h"

struct event {
    char *path;
    int generation;
    struct event_page *page;
    bool torn; /* the worker has taken the file from under the mapping */
};

/* A signal handler has no other way to get these values: one for each process, one for each
 * thread. */
static struct sigaction previous_action;
static _Thread_local sigjmp_buf *volatile guard;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    if (guard != NULL)
        siglongjmp(*guard, 1);
    if ((previous_action.sa_flags & SA_SIGINFO) != 0)
        previous_action.sa_sigaction(number, info, context);
    else
        sigaction(SIGBUS, &previous_action, NULL); /* which the access meets when repeated */
}

/* Asked for at each page, since a library may have put its own handler in our place. */
static void install_guard(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO}, current;

    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, NULL, &current) == 0 && (current.sa_flags & SA_SIGINFO) != 0 &&
        current.sa_sigaction == on_bus_error)
        return;
    sigaction(SIGBUS, &action, &previous_action);
}

/* Run access(page, arg). False: the page is gone. access must not do anything that has to be
 * undone. */
static bool guarded(struct event *event, void (*access)(struct event *event, void *arg), void *arg)
{
    sigjmp_buf here;

    if (event->torn)
        return false;
    if (sigsetjmp(here, 1) != 0) {
        guard = NULL;
        event->torn = true;
        return false;
    }
    guard = &here;
    access(event, arg);
    guard = NULL;
    return true;
}

/* ---- creation -------------------------------------------------------------------------------- */

static void format_page(struct event *event, void *arg)
{
    struct event_page *page = event->page;

    page->version = EVENT_PAGE_VERSION;
    page->bytes = EVENT_PAGE_BYTES;
    page->agent_pid = (uint32_t)getpid();
    page->stepd_pid = (uint32_t)supervise_stepd();
    atomic_store(&page->word, EVENT_WORD(event->generation, 0));
    page->magic = EVENT_PAGE_MAGIC;
}

/* A new file with its blocks allocated: on a full file system this fails here, and not with
 * SIGBUS later. */
static int create_file(const char *path, struct error *err)
{
    int fd, rc;

    if (unlink(path) != 0 && errno != ENOENT)
        return error_set(err, "%s: cannot be removed: %s", path, strerror(errno));
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, "%s: cannot be created: %s", path, strerror(errno));
    rc = posix_fallocate(fd, 0, EVENT_PAGE_BYTES);
    if (rc == ENOSPC && reserve_file_give(path, EVENT_PAGE_BYTES))
        rc = posix_fallocate(fd, 0, EVENT_PAGE_BYTES);
    else if (rc == 0)
        reserve_file_refill(path);
    if (rc != 0) {
        close(fd);
        unlink(path);
        return error_set(err, "%s: no room for %d bytes: %s", path, EVENT_PAGE_BYTES, strerror(rc));
    }
    return fd;
}

struct event *event_create(const char *path, int generation, struct error *err)
{
    struct event *event = calloc(1, sizeof(*event));
    int fd = -1;

    if (event == NULL || (event->path = strdup(path)) == NULL) {
        error_set(err, "out of memory");
        free(event);
        return NULL;
    }
    install_guard();
    event->generation = generation;
    fd = create_file(path, err);
    if (fd < 0) {
        event_destroy(event);
        return NULL;
    }
    event->page = mmap(NULL, EVENT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (event->page == MAP_FAILED) {
        event->page = NULL;
        error_set(err, "%s: cannot be mapped: %s", path, strerror(errno));
        event_unlink(event);
        event_destroy(event);
        return NULL;
    }
    guarded(event, format_page, NULL);
    return event;
}

void event_destroy(struct event *event)
{
    if (event == NULL)
        return;
    if (event->page != NULL)
        munmap(event->page, EVENT_PAGE_BYTES);
    free(event->path);
    free(event);
}

void event_unlink(struct event *event)
{
    unlink(event->path);
}

const char *event_path(const struct event *event)
{
    return event->path;
}

/* ---- what the worker says -------------------------------------------------------------------- */

/* A worker may have written anything: a step of another generation does not count. */
static void interpret(const struct event *event, uint64_t word, struct event_status *status)
{
    uint32_t state = atomic_load(&event->page->state), place = atomic_load(&event->page->place);

    status->place = place >= EVENT_PASSED_INIT ? EVENT_PASSED_INIT : (enum event_gate_place)place;
    status->told = atomic_load(&event->page->told) != 0;
    status->live = atomic_load(&event->page->live) != 0;
    status->signature = atomic_load(&event->page->signature);
    status->waits = atomic_load(&event->page->waits) != 0;
    status->stacks_pid = (int)atomic_load(&event->page->stacks_pid);
    status->stacks_signal = (int)atomic_load(&event->page->stacks_signal);
    if (EVENT_GENERATION(word) != EVENT_GENERATION(EVENT_WORD(event->generation, 0)))
        return;
    status->state = state >= EVENT_STATE_TRAINING ? EVENT_STATE_TRAINING
                                                  : (enum event_page_state)state;
    status->slowest = atomic_load(&event->page->slowest);
    status->asks = atomic_load(&event->page->asks) != 0;
    status->moved = atomic_load(&event->page->moved);
    status->finished = EVENT_STEP(word) == EVENT_STEP_MASK;
    status->step = status->finished ? 0 : EVENT_STEP(word);
    /* A step is a passed boundary, in whatever order the two words became visible. */
    if (status->step > 0 || status->finished)
        status->state = EVENT_STATE_TRAINING;
}

static void read_page(struct event *event, void *arg)
{
    interpret(event, atomic_load(&event->page->word), arg);
}

struct event_status event_read(struct event *event)
{
    struct event_status status = {0};

    if (!guarded(event, read_page, &status))
        return (struct event_status){0};
    return status;
}

static void copy_progress(struct event *event, void *arg)
{
    struct event_progress *progress = arg;
    const struct event_page *page = event->page;
    uint64_t text[EVENT_UNIT_BYTES / 8];
    uint32_t number = atomic_load(&page->progress);

    progress->done = atomic_load(&page->done);
    progress->total = atomic_load(&page->total);
    for (size_t i = 0; i < EVENT_UNIT_BYTES / 8; i++)
        text[i] = atomic_load(&page->unit[i]);
    memcpy(progress->unit, text, sizeof(text));
    progress->unit[EVENT_UNIT_BYTES - 1] = '\0';
    progress->number = number == atomic_load(&page->progress) && number % 2 == 0 ? number : 0;
}

bool event_read_progress(struct event *event, struct event_progress *progress)
{
    *progress = (struct event_progress){0};
    if (!guarded(event, copy_progress, progress) || progress->number == 0 || progress->done < 0 ||
        progress->total < 0)
        return false;
    error_clean(progress->unit);
    return true;
}

static void copy_own(struct event *event, void *arg)
{
    struct event_own *own = arg;

    own->steps = atomic_load(&event->page->own_steps);
    own->microseconds = atomic_load(&event->page->own_us);
}

struct event_own event_read_own(struct event *event)
{
    struct event_own own = {0};

    return guarded(event, copy_own, &own) ? own : (struct event_own){0};
}

/* ---- worlds ---------------------------------------------------------------------------------- */

static void write_world(struct event *event, void *arg)
{
    const struct event_world *world = arg;
    struct event_page *page = event->page;

    event->generation = world->generation;
    atomic_store(&page->word, EVENT_WORD(world->generation, 0));
    page->rank = world->rank;
    page->size = world->size;
    page->local_rank = world->local_rank;
    page->local_size = world->local_size;
    page->nodes = world->nodes;
    page->attempt = world->attempt;
    page->patience_ms = (uint32_t)world->patience_ms;
}

void event_set_world(struct event *event, const struct event_world *world)
{
    struct event_world copy = *world;

    guarded(event, write_world, &copy);
}

struct next {
    enum event_next what;
    const char *file;
};

static void write_next(struct event *event, void *arg)
{
    const struct next *next = arg;
    struct event_page *page = event->page;

    if (next->file != NULL)
        snprintf(page->next_file, sizeof(page->next_file), "%s", next->file);
    atomic_store(&page->next, next->what);
    syscall(SYS_futex, &page->next, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void event_set_next(struct event *event, const struct event *page, bool save)
{
    const char *slash = page != NULL ? strrchr(page->path, '/') : NULL;
    struct next next = {.what = page != NULL ? EVENT_NEXT_WORLD
                                : save       ? EVENT_NEXT_SAVE
                                             : EVENT_NEXT_NONE,
                        .file = slash != NULL  ? slash + 1
                                : page != NULL ? page->path
                                               : NULL};

    guarded(event, write_next, &next);
}

/* Set the reason of a change: the first reason stands. */
static void write_reason(struct event_page *page, const char *reason)
{
    size_t len = strlen(reason);

    if (len >= sizeof(page->reason))
        len = sizeof(page->reason) - 1;
    memcpy(page->reason, reason, len);
    page->reason[len] = '\0';
}

static void tear_page(struct event *event, void *arg)
{
    struct event_page *page = event->page;

    if ((atomic_load(&page->word) & EVENT_HOLD) == 0)
        write_reason(page, arg);
    atomic_store(&page->torn, 1);
    syscall(SYS_futex, &page->torn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    syscall(SYS_futex, &page->kind, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void event_tear(struct event *event, const char *reason)
{
    guarded(event, tear_page, (char *)reason);
}

/* ---- the gate -------------------------------------------------------------------------------- */

static void set_gate(struct event *event, void *arg)
{
    const enum event_gate *gate = arg;

    atomic_store(&event->page->gate, (uint32_t)*gate);
    if (*gate == EVENT_GATE_OPEN)
        syscall(SYS_futex, &event->page->gate, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void event_close_gate(struct event *event)
{
    enum event_gate gate = EVENT_GATE_CLOSED;

    guarded(event, set_gate, &gate);
}

void event_open_gate(struct event *event)
{
    enum event_gate gate = EVENT_GATE_OPEN;

    guarded(event, set_gate, &gate);
}

/* ---- what the agent says --------------------------------------------------------------------- */

struct news {
    enum event_kind kind;
    const char *reason;
    int next_nodes;
    int64_t deadline_ms;
    struct event_status status;
};

/* The worker reads the event only after it has seen HOLD. So all fields are set before HOLD, and
 * stay. */
static void hold_page(struct event *event, void *arg)
{
    struct news *news = arg;
    struct event_page *page = event->page;

    if ((atomic_load(&page->word) & EVENT_HOLD) == 0) {
        write_reason(page, news->reason);
        page->next_nodes = (uint32_t)news->next_nodes;
        page->deadline_ms = news->deadline_ms;
        atomic_store(&page->kind, (uint32_t)news->kind);
    }
    interpret(event, atomic_fetch_or(&page->word, EVENT_HOLD), &news->status);
    syscall(SYS_futex, &page->kind, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

struct event_status event_hold(struct event *event, enum event_kind kind, const char *reason,
                               int next_nodes, int64_t deadline_ms)
{
    struct news news = {
        .kind = kind,
        .reason = reason != NULL ? reason : "",
        .next_nodes = next_nodes > 0 ? next_nodes : 0,
        .deadline_ms = deadline_ms,
    };

    if (!guarded(event, hold_page, &news))
        return (struct event_status){0};
    return news.status;
}

static void run_page(struct event *event, void *arg)
{
    const uint64_t *step = arg;

    atomic_store(&event->page->run_to, EVENT_VALID | EVENT_WORD(event->generation, *step));
}

void event_run_to(struct event *event, uint64_t step)
{
    guarded(event, run_page, &step);
}

enum event_kind event_kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum event_kind kind;
    } kinds[] = {{"grow", EVENT_GROW}, {"shrink", EVENT_SHRINK}, {"fault", EVENT_FAULT}};

    for (size_t i = 0; name != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i].name) == 0)
            return kinds[i].kind;
    return EVENT_STOP;
}
