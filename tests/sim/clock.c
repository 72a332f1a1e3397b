/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtual clock: what is due, in the order of its time, and libuv's timers, works and
 * handles on it. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/sim.h"

struct event {
    uint64_t when, number;
    struct host *owner;
    void (*run)(void *arg);
    void *arg;
    size_t place; /* in the heap, from 1; 0: not in it */
    struct event *next_free;
};

static struct {
    struct event **heap; /* from 1 */
    size_t count, room;
    uint64_t now, number, done;
    struct event *unused;
    uint64_t random;
} it;

/* ---- chance ---------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = it.random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t chance(uint32_t below)
{
    return below > 0 ? (uint32_t)(draw() >> 33) % below : 0;
}

bool chance_percent(uint32_t percent)
{
    return chance(100) < percent;
}

uint64_t chance_between(uint64_t least, uint64_t most)
{
    return most > least ? least + draw() % (most - least + 1) : least;
}

/* ---- the heap -------------------------------------------------------------------------------- */

static bool before(const struct event *a, const struct event *b)
{
    return a->when < b->when || (a->when == b->when && a->number < b->number);
}

static void put(struct event *event, size_t place)
{
    it.heap[place] = event;
    event->place = place;
}

static void rise(struct event *event, size_t place)
{
    for (; place > 1 && before(event, it.heap[place / 2]); place /= 2)
        put(it.heap[place / 2], place);
    put(event, place);
}

static void sink(struct event *event, size_t place)
{
    size_t child;

    for (; (child = 2 * place) <= it.count; place = child) {
        if (child < it.count && before(it.heap[child + 1], it.heap[child]))
            child++;
        if (!before(it.heap[child], event))
            break;
        put(it.heap[child], place);
    }
    put(event, place);
}

static void take_out(struct event *event)
{
    struct event *last = it.heap[it.count--];
    size_t place = event->place;

    event->place = 0;
    if (last == event)
        return;
    if (place > 1 && before(last, it.heap[place / 2]))
        rise(last, place);
    else
        sink(last, place);
}

static void put_in(struct event *event)
{
    if (it.count + 2 > it.room) {
        it.room = it.room > 0 ? 2 * it.room : 1024;
        it.heap = realloc(it.heap, it.room * sizeof(struct event *));
        MUST(it.heap != NULL);
    }
    rise(event, ++it.count);
}

static void discard(struct event *event)
{
    if (event->owner != NULL)
        event->owner->waiting--;
    event->next_free = it.unused;
    it.unused = event;
}

/* ---- what is due ----------------------------------------------------------------------------- */

void clock_begin(uint64_t seed)
{
    while (it.count > 0) {
        struct event *event = it.heap[it.count];

        take_out(event);
        event->owner = NULL; /* of the history before */
        discard(event);
    }
    it.now = 1000 * SECOND;
    it.number = it.done = 0;
    it.random = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
}

uint64_t clock_now(void)
{
    return it.now;
}

uint64_t clock_events(void)
{
    return it.done;
}

size_t clock_waiting(void)
{
    return it.count;
}

struct event *clock_at(uint64_t when, struct host *owner, void (*run)(void *arg), void *arg)
{
    struct event *event = it.unused;

    if (event != NULL)
        it.unused = event->next_free;
    else
        MUST((event = malloc(sizeof(*event))) != NULL);
    *event = (struct event){.when = when > it.now ? when : it.now,
                            .number = it.number++,
                            .owner = owner,
                            .run = run,
                            .arg = arg};
    if (owner != NULL)
        owner->waiting++;
    put_in(event);
    return event;
}

struct event *clock_in(uint64_t delay, struct host *owner, void (*run)(void *arg), void *arg)
{
    return clock_at(it.now + delay, owner, run, arg);
}

void clock_cancel(struct event *event)
{
    if (event == NULL)
        return;
    if (event->place > 0) {
        take_out(event);
        discard(event);
        return;
    }
    event->run = NULL; /* its process has missed it */
}

static void miss(struct host *host, struct event *event)
{
    host->missed = realloc(host->missed, ((size_t)host->missed_count + 1) * sizeof(struct event *));
    MUST(host->missed != NULL);
    host->missed[host->missed_count++] = event;
}

void clock_resume(struct host *host)
{
    int count = host->missed_count;

    host->missed_count = 0;
    for (int i = 0; i < count; i++) {
        struct event *event = host->missed[i];

        if (event->run == NULL) {
            discard(event);
            continue;
        }
        event->when = it.now;
        event->number = it.number++;
        put_in(event);
    }
}

static const struct host *measured;
static void run_measured(void (*run)(void *arg), void *arg);

bool clock_step(uint64_t until)
{
    struct event *event = it.count > 0 ? it.heap[1] : NULL;
    struct host *owner;

    if (event == NULL || event->when > until)
        return false;
    it.now = event->when;
    it.done++;
    take_out(event);
    owner = event->owner;
    if (owner != NULL && owner->state == HOST_STOPPED) {
        miss(owner, event);
        return true;
    }
    host_now = owner;
    if (owner == NULL || owner->state == HOST_RUNNING) {
        void (*run)(void *arg) = event->run;
        void *arg = event->arg;

        discard(event);
        if (owner != NULL && owner == measured)
            run_measured(run, arg);
        else
            run(arg);
    } else {
        discard(event);
    }
    host_now = NULL;
    return true;
}

void clock_reach(uint64_t when)
{
    if (it.now < when)
        it.now = when;
}

/* ---- what a process costs -------------------------------------------------------------------- */

static uint64_t measured_ns;

void clock_measure(const struct host *host)
{
    measured = host;
    measured_ns = 0;
}

uint64_t clock_measured(void)
{
    return measured_ns;
}

/* clock_gettime() tells the virtual time. */
static uint64_t cpu_ns(void)
{
    struct timespec now = {0};

    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void run_measured(void (*run)(void *arg), void *arg)
{
    uint64_t before = cpu_ns();

    run(arg);
    measured_ns += cpu_ns() - before;
}

/* ---- libuv's timers -------------------------------------------------------------------------- */

enum { HANDLE_ACTIVE = 1, HANDLE_CLOSING = 2, HANDLE_CLOSED = 4 };

/* What is known of a handle, in the words that libuv leaves free there. */
#define EVENT(handle) ((handle)->u.reserved[0])

uint64_t uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return it.now / MS;
}

void uv_update_time(uv_loop_t *loop)
{
    (void)loop;
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    timer->loop = loop;
    timer->type = UV_TIMER;
    timer->flags = 0;
    timer->repeat = 0;
    EVENT(timer) = NULL;
    return 0;
}

static void fire(void *arg)
{
    uv_timer_t *timer = arg;

    EVENT(timer) = NULL;
    timer->flags &= ~(unsigned)HANDLE_ACTIVE;
    if (timer->repeat > 0) {
        timer->flags |= HANDLE_ACTIVE;
        timer->timeout = it.now + timer->repeat * MS;
        EVENT(timer) = clock_at(timer->timeout, host_of_loop(timer->loop), fire, timer);
    }
    timer->timer_cb(timer);
}

int uv_timer_stop(uv_timer_t *timer)
{
    clock_cancel(EVENT(timer));
    EVENT(timer) = NULL;
    timer->flags &= ~(unsigned)HANDLE_ACTIVE;
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb fired, uint64_t timeout, uint64_t repeat)
{
    if (timer->flags & (HANDLE_CLOSING | HANDLE_CLOSED))
        return UV_EINVAL;
    uv_timer_stop(timer);
    timer->timer_cb = fired;
    timer->repeat = repeat;
    timer->timeout = timeout < NEVER / MS / 4 ? it.now + timeout * MS : NEVER / 4;
    timer->flags |= HANDLE_ACTIVE;
    EVENT(timer) = clock_at(timer->timeout, host_of_loop(timer->loop), fire, timer);
    return 0;
}

uint64_t uv_timer_get_due_in(const uv_timer_t *timer)
{
    return (timer->flags & HANDLE_ACTIVE) && timer->timeout > it.now
               ? (timer->timeout - it.now) / MS
               : 0;
}

/* ---- other handles --------------------------------------------------------------------------- */

int uv_is_active(const uv_handle_t *handle)
{
    return (handle->flags & HANDLE_ACTIVE) != 0;
}

int uv_is_closing(const uv_handle_t *handle)
{
    return (handle->flags & (HANDLE_CLOSING | HANDLE_CLOSED)) != 0;
}

static void on_closed(void *arg)
{
    uv_handle_t *handle = arg;

    handle->flags = HANDLE_CLOSED;
    if (handle->close_cb != NULL)
        handle->close_cb(handle);
}

void uv_close(uv_handle_t *handle, uv_close_cb closed)
{
    MUST(!uv_is_closing(handle));
    if (handle->type == UV_TIMER)
        uv_timer_stop((uv_timer_t *)handle);
    handle->flags |= HANDLE_CLOSING;
    handle->close_cb = closed;
    clock_in(0, host_of_loop(handle->loop), on_closed, handle);
}

/* Who reads them tells what comes out of them. */
int uv_pipe_init(uv_loop_t *loop, uv_pipe_t *pipe, int ipc)
{
    (void)ipc;
    memset(pipe, 0, sizeof(*pipe));
    pipe->loop = loop;
    pipe->type = UV_NAMED_PIPE;
    return 0;
}

int uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb read)
{
    stream->alloc_cb = alloc;
    stream->read_cb = read;
    return 0;
}

int uv_read_stop(uv_stream_t *stream)
{
    stream->read_cb = NULL;
    return 0;
}

/* ---- work in threads ------------------------------------------------------------------------- */

struct work {
    uv_work_t *req;
    uv_work_cb work;
    uv_after_work_cb done;
};

static void finish_work(void *arg)
{
    struct work *item = arg, copy = *item;

    free(item);
    copy.done(copy.req, 0);
}

static void do_work(void *arg)
{
    struct work *item = arg;

    item->work(item->req);
    clock_in(chance_between(0, 3 * MS), host_of_loop(item->req->loop), finish_work, item);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work, uv_after_work_cb done)
{
    struct work *item = malloc(sizeof(*item));

    MUST(item != NULL);
    *item = (struct work){req, work, done};
    req->loop = loop;
    clock_in(chance_between(0, 3 * MS), host_of_loop(loop), do_work, item);
    return 0;
}

/* ---- pieces that only call back when they are gone ------------------------------------------- */

struct goodbye {
    void (*gone)(void *arg);
    void *arg;
};

static void say_goodbye(void *arg)
{
    struct goodbye *goodbye = arg, copy = *goodbye;

    free(goodbye);
    copy.gone(copy.arg);
}

void clock_goodbye(void (*gone)(void *arg), void *arg)
{
    struct goodbye *goodbye = malloc(sizeof(*goodbye));

    MUST(goodbye != NULL);
    *goodbye = (struct goodbye){gone, arg};
    clock_in(chance_between(0, 5 * MS), host_now, say_goodbye, goodbye);
}

/* ---- what is random -------------------------------------------------------------------------- */

int uv_random(uv_loop_t *loop, uv_random_t *req, void *buf, size_t len, unsigned flags,
              uv_random_cb done)
{
    (void)loop;
    (void)req;
    (void)flags;
    (void)done;
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)buf)[i] = (unsigned char)chance(256);
    return 0;
}
