/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agreed step from world to world: real pages, workers that are threads with the worker's
 * own code, and a leader with its agents over a network that loses messages, doubles them, and
 * brings them late and in another order.
 *
 * Each change takes some nodes out and others in, whose workers have waited at their gates; the
 * next one may come before all workers have entered the world that is. What must hold is in
 * check(). */
#include "tests/unit/support.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "agent/workers/event.h"
#include "client/event.h"

#define NODES      5
#define SLOTS      2
#define RANKS      (NODES * SLOTS)
#define WORLDS     8 /* of one training; they count from 1 */
#define WORKERS    (RANKS * WORLDS)
#define MESSAGES   512
#define WAIT_MS    120000
#define REPEAT_US  2000
#define NETWORK_US 1500

/* What an all-reduce does: nobody is a step ahead. */
struct collective {
    pthread_mutex_t lock;
    pthread_cond_t all;
    atomic_int size;
    int here;
    uint64_t round;
};

/* What became of a rank of a world. */
struct record {
    atomic_int entered;
    atomic_bool left; /* it was told that there is no next world for it */
    _Atomic uint64_t steps;
};

struct world {
    atomic_int
        size; /* the threads know it by the page alone, of which each side has its own mapping */
    bool goes_on[RANKS];
    uint64_t step; /* the leader's */
    atomic_bool announced;
    struct collective collective;
    struct record records[RANKS];
};

struct worker {
    struct training *training;
    struct event *pages[WORLDS + 2];
    int page_count;
    uint64_t seed;
    char path[96];
    pthread_t thread;
};

struct node {
    int generation; /* of its workers' world; 0: they wait at their gates */
    bool present;   /* in the leader's world */
    bool joins, leaves;
    int first; /* rank there */
    int next_first;
    bool answered; /* what is being asked */
    struct worker *workers[SLOTS];
    int slots;
};

enum type { HOLD, RUN_TO, START, HELD, DONE };

struct message {
    enum type type;
    int node, generation;
    uint64_t step;
    int64_t due_us;
};

struct training {
    char directory[64];
    bool coupled;
    uint32_t batch; /* how much of work a micro batch is */
    uint64_t seed;
    int generation; /* of the leader */
    struct node nodes[NODES];
    struct world worlds[WORLDS + 2];
    struct worker workers[WORKERS];
    int worker_count;
    struct message queue[MESSAGES];
    int queued, lost, doubled;
    uint64_t step; /* the highest that was answered */
    pthread_mutex_t lock;
    char failure[256]; /* the first one */
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_us(int64_t us)
{
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    if (us > 0)
        nanosleep(&pause, NULL);
}

/* In a thread nothing can be asserted. */
__attribute__((format(printf, 2, 3))) static void blame(struct training *t, const char *fmt, ...)
{
    va_list args;

    pthread_mutex_lock(&t->lock);
    va_start(args, fmt);
    if (t->failure[0] == '\0')
        vsnprintf(t->failure, sizeof(t->failure), fmt, args);
    va_end(args);
    pthread_mutex_unlock(&t->lock);
}

static bool failed(struct training *t)
{
    bool any;

    pthread_mutex_lock(&t->lock);
    any = t->failure[0] != '\0';
    pthread_mutex_unlock(&t->lock);
    return any;
}

/* ---- workers --------------------------------------------------------------------------------- */

static bool meet(struct collective *c)
{
    struct timespec limit;
    uint64_t round;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&c->lock);
    round = c->round;
    if (++c->here == c->size) {
        c->here = 0;
        c->round++;
        pthread_cond_broadcast(&c->all);
    }
    while (c->round == round && rc == 0)
        rc = pthread_cond_timedwait(&c->all, &c->lock, &limit);
    pthread_mutex_unlock(&c->lock);
    return rc == 0;
}

/* Some micro batches, or a step so short that boundaries are all that there is; now and then a
 * worker stalls. */
static void compute(uint64_t *seed, uint32_t batch)
{
    uint32_t batches = 1 + random_below(seed, 3);

    for (volatile uint32_t i = 0; i < batches * batch; i = i + 1)
        ;
    if (batch > 0 && random_below(seed, 300) == 0)
        sleep_us(random_below(seed, 6000));
}

/* Make the steps of a world. False: something is wrong. */
static bool train(struct worker *w, struct event_client *client, const struct elastic_world *at)
{
    struct training *t = w->training;
    struct world *world = &t->worlds[at->generation];
    struct record *record = &world->records[at->rank];
    struct event_client_error err = {""};
    struct elastic_event event = {0};
    uint64_t steps = 0;
    int answer;

    if (atomic_fetch_add(&record->entered, 1) != 0) {
        blame(t, "world %d: two workers are rank %d", at->generation, at->rank);
        return false;
    }
    for (;;) {
        compute(&w->seed, t->batch);
        if (t->coupled && !meet(&world->collective)) {
            blame(t, "world %d: rank %d waits in step %d for a rank that has stopped",
                  at->generation, at->rank, (int)steps);
            return false;
        }
        answer = event_client_boundary(client, &event, &err);
        if (answer != 0)
            break;
        steps++;
        if (atomic_load(&world->announced) && steps > world->step) {
            blame(t, "world %d: rank %d has not stopped after step %d", at->generation, at->rank,
                  (int)world->step);
            return false;
        }
    }
    atomic_store(&record->steps, steps);
    if (answer != 1)
        blame(t, "world %d: rank %d: %s", at->generation, at->rank, err.text);
    else if (!atomic_load(&world->announced))
        blame(t, "world %d: rank %d has stopped before the step was agreed", at->generation,
              at->rank);
    else if (event.step != (int64_t)steps || event.generation != at->generation)
        blame(t, "world %d: rank %d has made %d steps and is told of %d in world %d",
              at->generation, at->rank, (int)steps, (int)event.step, event.generation);
    else
        return true;
    return false;
}

static struct event_client *enter_next(struct worker *w, struct event_client *client, bool *wrong)
{
    struct event_client_error err = {""};
    struct event_client *next = NULL;
    bool save;

    if (random_below(&w->seed, 4) == 0)
        sleep_us(random_below(&w->seed, 8000));
    *wrong = event_client_next(client, WAIT_MS, &next, &save, &err) != 1;
    if (*wrong)
        blame(w->training, "no next world: %s", err.text);
    event_client_close(client);
    return next;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct training *t = w->training;
    struct event_client_error err = {""};
    struct event_client *client = event_client_open(w->path, &err);
    bool wrong = false;

    if (client == NULL || event_client_gate(client, EVENT_PASSED_INIT, &err) != 0)
        blame(t, "%s", err.text);
    while (client != NULL && !wrong) {
        struct elastic_world at;

        event_client_live(client);
        event_client_world(client, &at);
        if (at.generation < 1 || at.generation > WORLDS || at.rank < 0 ||
            at.rank >= t->worlds[at.generation].size || at.size != t->worlds[at.generation].size) {
            blame(t, "rank %d of %d in world %d", at.rank, at.size, at.generation);
            break;
        }
        if (!train(w, client, &at))
            break;
        client = enter_next(w, client, &wrong);
        if (client == NULL && !wrong)
            atomic_store(&t->worlds[at.generation].records[at.rank].left, true);
    }
    event_client_close(client);
    return NULL;
}

/* ---- agents ---------------------------------------------------------------------------------- */

static struct event *add_page(struct worker *w, int generation)
{
    struct error err = {""};
    char path[sizeof(w->path) + 16];

    snprintf(path, sizeof(path), "%s-%d", w->path, generation);
    w->pages[w->page_count] = event_create(generation == 0 ? w->path : path, generation, &err);
    if (w->pages[w->page_count] == NULL)
        fail_msg("%s", err.text);
    return w->pages[w->page_count++];
}

static struct event *page_of(const struct worker *w)
{
    return w->pages[w->page_count - 1];
}

static void place(struct training *t, const struct node *node, int slot, struct event *page,
                  int generation, int first)
{
    event_set_world(page, &(struct event_world){.generation = generation,
                                                .rank = first + slot,
                                                .size = t->worlds[generation].size,
                                                .local_rank = slot,
                                                .local_size = node->slots,
                                                .attempt = generation});
}

/* Its workers come to their gates, whatever world will be theirs. */
static void start_workers(struct training *t, struct node *node, int number)
{
    char directory[sizeof(t->directory)];

    memcpy(directory, t->directory, sizeof(directory));
    node->generation = 0;
    for (int i = 0; i < node->slots; i++) {
        struct worker *w = &t->workers[t->worker_count++];

        w->training = t;
        w->seed = t->seed + (uint64_t)t->worker_count;
        snprintf(w->path, sizeof(w->path), "%s/%d-%d", directory, number, t->worker_count);
        event_close_gate(add_page(w, 0));
        assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
        node->workers[i] = w;
    }
}

static void send_message(struct training *t, struct message message)
{
    int copies = 1;

    if (random_below(&t->seed, 6) == 0) {
        copies = 0;
        t->lost++;
    } else if (random_below(&t->seed, 6) == 0) {
        copies = 2;
        t->doubled++;
    }
    for (int i = 0; i < copies && t->queued < MESSAGES; i++) {
        message.due_us = now_us() + random_below(&t->seed, NETWORK_US);
        t->queue[t->queued++] = message;
    }
}

static void answer(struct training *t, const struct message *to, enum type type, uint64_t step)
{
    send_message(t,
                 (struct message){
                     .type = type, .node = to->node, .generation = to->generation, .step = step});
}

static void on_hold(struct training *t, struct node *node, const struct message *message)
{
    uint64_t step = 0;

    if (node->generation != message->generation)
        return; /* it comes from a world that is over here */
    for (int i = 0; i < node->slots; i++) {
        struct event_status status = event_hold(page_of(node->workers[i]), EVENT_GROW, "", 0, 0);

        step = status.step > step ? status.step : step;
    }
    answer(t, message, HELD, step);
}

static void on_run_to(struct training *t, struct node *node, const struct message *message)
{
    for (int i = 0; i < node->slots && node->generation == message->generation; i++) {
        struct worker *w = node->workers[i];
        struct event *page = page_of(w);

        if (node->leaves) {
            event_set_next(page, NULL, false);
        } else {
            struct event *next = add_page(w, message->generation + 1);

            place(t, node, i, next, message->generation + 1, node->next_first);
            event_set_next(page, next, false);
        }
        event_run_to(page, message->step);
    }
    if (node->generation == message->generation)
        node->generation++;
    answer(t, message, DONE, 0);
}

static void on_start(struct training *t, struct node *node, const struct message *message)
{
    for (int i = 0; i < node->slots && node->generation == 0; i++) {
        place(t, node, i, page_of(node->workers[i]), message->generation + 1, node->next_first);
        event_open_gate(page_of(node->workers[i]));
    }
    if (node->generation == 0)
        node->generation = message->generation + 1;
    answer(t, message, DONE, 0);
}

/* ---- the leader ------------------------------------------------------------------------------ */

static enum type asking;

static void on_message(struct training *t, const struct message *message)
{
    struct node *node = &t->nodes[message->node];

    switch (message->type) {
    case HOLD:
        on_hold(t, node, message);
        break;
    case RUN_TO:
        on_run_to(t, node, message);
        break;
    case START:
        on_start(t, node, message);
        break;
    case HELD:
    case DONE:
        if (message->generation != t->generation || (message->type == HELD) != (asking == HOLD))
            break;
        node->answered = true;
        t->step = message->step > t->step ? message->step : t->step;
    }
}

/* Deliver what is due, in any order, for so long. */
static void pass_time(struct training *t, int64_t us)
{
    int64_t until = now_us() + us;

    do {
        int64_t now = now_us(), next = until;

        for (int i = 0; i < t->queued;) {
            struct message message = t->queue[i];

            if (message.due_us > now) {
                next = message.due_us < next ? message.due_us : next;
                i++;
                continue;
            }
            t->queue[i] = t->queue[--t->queued];
            on_message(t, &message);
        }
        sleep_us((next < until ? next : until) - now_us());
    } while (now_us() < until);
}

/* Ask all that it concerns, again and again, until they have answered. */
static void ask(struct training *t, enum type type)
{
    int64_t limit = now_us() + WAIT_MS * 1000;
    bool all;

    asking = type;
    for (int i = 0; i < NODES; i++)
        t->nodes[i].answered = type == START ? !t->nodes[i].joins : !t->nodes[i].present;
    do {
        all = true;
        for (int i = 0; i < NODES; i++) {
            if (t->nodes[i].answered)
                continue;
            all = false;
            send_message(t, (struct message){.type = type,
                                             .node = i,
                                             .generation = t->generation,
                                             .step = t->worlds[t->generation].step});
        }
        if (!all)
            pass_time(t, REPEAT_US);
        if (now_us() > limit)
            blame(t, "world %d: an agent does not answer", t->generation);
    } while (!all && !failed(t));
}

/* Who is in the next world; nobody if it is the last. */
static void plan(struct training *t, bool last)
{
    struct world *next = &t->worlds[t->generation + 1];
    int stays = (int)random_below(&t->seed, NODES); /* this one in any case, if it can */

    next->size = 0;
    for (int turn = 0; turn < 2; turn++) /* those that stay come first */
        for (int i = 0; i < NODES; i++) {
            struct node *node = &t->nodes[i];

            if ((turn == 0) != node->present)
                continue;
            node->leaves = node->present &&
                           (last || (i != stays && random_below(&t->seed, 3) == 0));
            node->joins = !node->present && !last && (i == stays || random_below(&t->seed, 2) == 0);
            node->next_first = next->size;
            if (node->joins)
                node->slots = 1 + (int)random_below(&t->seed, SLOTS);
            if (node->joins || (node->present && !node->leaves))
                next->size += node->slots;
            if (node->joins)
                start_workers(t, node, i);
        }
    next->collective.size = next->size;
}

static void enter(struct training *t)
{
    struct world *world = &t->worlds[t->generation];

    for (int i = 0; i < NODES; i++) {
        struct node *node = &t->nodes[i];

        for (int k = 0; k < node->slots && node->present; k++)
            world->goes_on[node->first + k] = !node->leaves;
        node->present = node->joins || (node->present && !node->leaves);
        node->first = node->next_first;
    }
    t->generation++;
}

static void change(struct training *t, bool last)
{
    struct world *world = &t->worlds[t->generation];

    plan(t, last);
    t->step = 0;
    /* Often before all have entered the world that they are to leave. */
    pass_time(t, random_below(&t->seed, 3) == 0 ? 0 : random_below(&t->seed, 10000));
    ask(t, HOLD);
    world->step = t->step;
    atomic_store(&world->announced, true);
    ask(t, RUN_TO);
    ask(t, START);
    enter(t);
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* Each rank of each world was one worker, which has stopped after the step that the leader has
 * named, and then gone on or left as it was told. */
static void check(const struct training *t)
{
    for (int g = 1; g < t->generation; g++) {
        const struct world *world = &t->worlds[g];

        for (int rank = 0; rank < world->size; rank++) {
            const struct record *record = &world->records[rank];

            assert_int_equal(atomic_load(&record->entered), 1);
            assert_int_equal(atomic_load(&record->steps), world->step);
            assert_int_equal(atomic_load(&record->left), !world->goes_on[rank]);
        }
    }
}

static struct training *begin(bool coupled, uint64_t seed)
{
    struct training *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    snprintf(t->directory, sizeof(t->directory), "/dev/shm/elastic-test-XXXXXX");
    assert_non_null(mkdtemp(t->directory));
    t->coupled = coupled;
    t->batch = seed % 2 == 0 ? 0 : 300;
    t->seed = seed;
    pthread_mutex_init(&t->lock, NULL);
    for (size_t i = 0; i < COUNT(t->worlds); i++) {
        pthread_mutex_init(&t->worlds[i].collective.lock, NULL);
        pthread_cond_init(&t->worlds[i].collective.all, NULL);
    }
    /* The first world is a change from none. */
    plan(t, false);
    ask(t, START);
    enter(t);
    return t;
}

static void end(struct training *t)
{
    for (int i = 0; i < t->worker_count; i++)
        for (int k = 0; k < t->workers[i].page_count; k++) {
            event_unlink(t->workers[i].pages[k]);
            event_destroy(t->workers[i].pages[k]);
        }
    for (size_t i = 0; i < COUNT(t->worlds); i++) {
        pthread_mutex_destroy(&t->worlds[i].collective.lock);
        pthread_cond_destroy(&t->worlds[i].collective.all);
    }
    assert_int_equal(rmdir(t->directory), 0);
    free(t);
}

static void run(bool coupled)
{
    int lost = 0, doubled = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct training *t = begin(coupled, seed);

        while (t->generation < WORLDS && !failed(t))
            change(t, t->generation == WORLDS - 1);
        if (failed(t)) /* its threads may wait for each other for long */
            fail_msg("seed %d: %s", (int)seed, t->failure);
        for (int i = 0; i < t->worker_count; i++)
            assert_int_equal(pthread_join(t->workers[i].thread, NULL), 0);
        if (failed(t))
            fail_msg("seed %d: %s", (int)seed, t->failure);
        check(t);
        lost += t->lost;
        doubled += t->doubled;
        end(t);
    }
    assert_true(lost > 300 && doubled > 300);
}

static void test_from_world_to_world(void **state)
{
    (void)state;
    run(false);
}

static void test_from_world_to_world_while_a_collective_couples_the_ranks(void **state)
{
    (void)state;
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_world_to_world),
        cmocka_unit_test(test_from_world_to_world_while_a_collective_couples_the_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
