/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libelastic: the public functions (elastic.h) over the one event page of this process.
 *
 * The state is global because the interface is: a process is one worker, as in MPI. */
#include "client/elastic.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/event.h"
#include "client/nodes.h"
#include "client/snapshot.h"
#include "client/sockets.h"
#include "client/store.h"
#include "client/term_guard.h"

#define STEP_TIME_MAX INT64_C(86400000000) /* microseconds */

static struct event_client *worker;
static struct sockets *sockets; /* of the present world; NULL: none is watched */
static bool child;              /* of a worker, which has the event page */
static _Thread_local struct event_client_error last_error;

static int bad_argument(const char *text)
{
    snprintf(last_error.text, sizeof(last_error.text), "%s", text);
    return ELASTIC_ERROR_ARGUMENT;
}

static void after_fork(void)
{
    if (worker == NULL)
        return;
    event_client_forget(worker);
    sockets_forget(sockets);
    sockets = NULL;
    worker = NULL;
    child = true;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

int elastic_interface(void)
{
    return ELASTIC_INTERFACE;
}

/* A job that a worker submits may inherit the worker's environment, and is no worker by that. */
static bool is_of_another_job(void)
{
    const char *world = getenv("ELASTIC_JOB_ID"), *job = getenv("SLURM_JOB_ID");
    static bool said;

    if (world == NULL || job == NULL || strcmp(world, job) == 0)
        return false;
    if (!said)
        fprintf(stderr,
                "elastic: job %.16s has inherited the environment of a worker of job %.16s: this "
                "process goes on as without elasticrun\n",
                job, world);
    said = true;
    return true;
}

int elastic_attach(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *path = getenv("ELASTIC_EVENT_FILE");

    last_error.text[0] = '\0';
    if (worker != NULL)
        return 0;
    if (child || path == NULL || path[0] == '\0' || is_of_another_job())
        return ELASTIC_NOT_ELASTIC;
    worker = event_client_open(path, &last_error);
    if (worker == NULL && errno == EBUSY) {
        child = true;
        return ELASTIC_NOT_ELASTIC;
    }
    if (worker == NULL)
        return ELASTIC_ERROR_PAGE;
    pthread_once(&once, watch_forks);
    return 0;
}

static int pass_gate(enum event_gate_place passed)
{
    int rc = elastic_attach();

    return rc != 0 ? rc : event_client_gate(worker, passed, &last_error);
}

int elastic_init(void)
{
    return pass_gate(EVENT_PASSED_INIT);
}

int elastic_loading(void)
{
    return pass_gate(EVENT_PASSED_LOAD);
}

int elastic_event_test(struct elastic_event *event)
{
    if (worker == NULL)
        return 0;
    return event_client_boundary(worker, event, &last_error);
}

int elastic_finish(struct elastic_event *event)
{
    if (worker == NULL)
        return 0;
    return event_client_finish(worker, event, &last_error);
}

int elastic_event_wait(struct elastic_event *event, int timeout_ms)
{
    struct timespec pause = {.tv_sec = timeout_ms / 1000,
                             .tv_nsec = (long)(timeout_ms % 1000) * 1000000};

    if (worker != NULL)
        return event_client_wait(worker, event, timeout_ms, &last_error);
    while (timeout_ms > 0 && nanosleep(&pause, &pause) != 0)
        ;
    return 0;
}

int elastic_training(void)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    event_client_training(worker);
    return 0;
}

int elastic_live(void)
{
    int rc = elastic_attach();

    if (rc == 0)
        event_client_live(worker);
    return rc;
}

int elastic_model_signature(int64_t signature)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (signature < 1)
        return bad_argument("the number of what is trained must be at least 1");
    event_client_signature(worker, (uint64_t)signature);
    return 0;
}

int elastic_moved(int64_t bytes)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (bytes < 0)
        return bad_argument("moved: a number of bytes cannot be negative");
    event_client_moved(worker, (uint64_t)bytes);
    return 0;
}

int elastic_stacks(int number)
{
    int rc;

    if (number < 1 || number > SIGRTMAX)
        return bad_argument("the signal must be from 1 to SIGRTMAX");
    rc = elastic_attach();
    if (rc == 0)
        event_client_stacks(worker, number);
    return rc;
}

int elastic_world(struct elastic_world *world)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    event_client_world(worker, world);
    return 0;
}

int elastic_torn(int timeout_ms)
{
    /* ELASTIC_NOT_ELASTIC is 1 */
    return worker != NULL ? event_client_torn(worker, timeout_ms, &last_error) : 0;
}

int elastic_world_forms(void)
{
    struct elastic_world world;

    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    elastic_world_left();
    event_client_world(worker, &world);
    sockets = sockets_watch(event_client_torn_word(worker), world.size);
    if (sockets == NULL) {
        event_client_fail(&last_error, "connections cannot be watched: %s", strerror(errno));
        return ELASTIC_ERROR_PAGE;
    }
    return 0;
}

int elastic_world_formed(void)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (sockets != NULL)
        sockets_formed(sockets);
    return 0;
}

int elastic_world_left(void)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    sockets_leave(sockets);
    sockets = NULL;
    return 0;
}

/* After a planned end the workers may still give parts to each other, over the connections of the
 * world that has ended. The page of the next world then tells of a loss. */
static void go_on_watching(const struct event_client *next)
{
    if (sockets == NULL)
        return;
    if (atomic_load(event_client_torn_word(worker)) != 0)
        elastic_world_left();
    else if (next != NULL && !sockets_follow(sockets, event_client_torn_word(next)))
        sockets = NULL;
}

int elastic_next_world(struct elastic_world *world, int timeout_ms)
{
    struct event_client *next, *before = worker;
    bool save;
    int rc;

    if (worker == NULL)
        return 0; /* ELASTIC_NOT_ELASTIC is 1 */
    rc = event_client_next(worker, timeout_ms, &next, &save, &last_error);
    if (rc != 1)
        return rc;
    go_on_watching(next);
    memset(world, 0, sizeof(*world));
    world->save = save;
    if (next == NULL)
        return 1;
    worker = next;
    event_client_close(before);
    event_client_world(worker, world);
    /* Processes that the worker starts from now on find that this page is taken. */
    setenv("ELASTIC_EVENT_FILE", event_client_path(worker), 1);
    return 1;
}

void elastic_guard_child(void)
{
    if (child)
        term_guard_chain();
}

void elastic_finalize(void)
{
    if (worker != NULL) {
        snapshot_client_close();
        nodes_close();
    }
    elastic_world_left();
    event_client_close(worker);
    worker = NULL;
}

const char *elastic_error(void)
{
    return last_error.text;
}

/* ---- a place to meet ------------------------------------------------------------------------- */

static int check_key(const char *key)
{
    size_t len = key != NULL ? strlen(key) : 0;

    if (len >= 1 && len <= STORE_CLIENT_KEY_MAX) {
        while (*key >= ' ' && *key <= '~' && *key != '"' && *key != '\\')
            key++;
        if (*key == '\0')
            return 0;
    }
    snprintf(last_error.text, sizeof(last_error.text),
             "a key has 1 to %d printable ASCII characters, no quotation mark and no backslash",
             STORE_CLIENT_KEY_MAX);
    return ELASTIC_ERROR_ARGUMENT;
}

/* The store of the world that this worker is in. */
static int find_store(const char *key, struct store_client *store)
{
    struct elastic_world world;
    int rc;

    last_error.text[0] = '\0';
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    rc = check_key(key);
    if (rc == 0)
        rc = event_client_gate(worker, EVENT_PASSED_LOAD, &last_error);
    if (rc != 0)
        return rc;
    event_client_world(worker, &world);
    *store = (struct store_client){getenv("ELASTIC_STORE"), world.generation, world.attempt};
    if (store->path != NULL && store->path[0] != '\0')
        return 0;
    event_client_fail(&last_error, "this node has no store: ELASTIC_STORE is not set");
    return ELASTIC_ERROR_STORE;
}

int elastic_put(const char *key, const void *value, size_t size)
{
    struct store_client store;
    int rc = find_store(key, &store);

    if (rc != 0)
        return rc;
    if (size > STORE_CLIENT_VALUE_MAX || (size > 0 && value == NULL)) {
        event_client_fail(&last_error, "a value of %zu bytes: at most %zu", size,
                          STORE_CLIENT_VALUE_MAX);
        return ELASTIC_ERROR_ARGUMENT;
    }
    return store_client_put(&store, key, value, size, &last_error);
}

int elastic_get(const char *key, void *value, size_t *size, int timeout_ms)
{
    struct store_client store;
    int rc = find_store(key, &store);

    return rc != 0 ? rc : store_client_get(&store, key, value, size, timeout_ms, &last_error);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* One worker of the first node and one of the last node keep snapshots. */
static bool keeps_snapshots(const struct elastic_world *world)
{
    return world->local_rank == 0 &&
           (world->rank == 0 || world->rank + world->local_size >= world->size);
}

int elastic_snapshot(const struct elastic_part *parts, int count, int flags)
{
    struct snapshot_place place = {.run_dir = getenv("ELASTIC_RUN_DIR"),
                                   .checkpoint = getenv("ELASTIC_CHECKPOINT_DIR"),
                                   .incarnation = getenv("ELASTIC_INCARNATION")};
    struct elastic_world world;
    int rc;

    last_error.text[0] = '\0';
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    rc = event_client_gate(worker, EVENT_PASSED_LOAD, &last_error);
    if (rc != 0)
        return rc;
    event_client_world(worker, &world);
    if (!keeps_snapshots(&world))
        return ELASTIC_ELSEWHERE;
    if (place.run_dir == NULL || place.checkpoint == NULL || place.incarnation == NULL) {
        event_client_fail(&last_error, "no snapshot: ELASTIC_RUN_DIR, ELASTIC_CHECKPOINT_DIR and "
                                       "ELASTIC_INCARNATION must be as elasticrun has set them");
        return ELASTIC_ERROR_SNAPSHOT;
    }
    place.generation = world.generation;
    place.step = (int64_t)event_client_step(worker);
    return snapshot_client_keep(&place, parts, count, flags, &last_error);
}

int elastic_snapshot_wait(int timeout_ms)
{
    last_error.text[0] = '\0';
    return worker != NULL ? snapshot_client_wait(timeout_ms, &last_error) : ELASTIC_NOT_ELASTIC;
}

/* ---- progress, and nodes --------------------------------------------------------------------- */

int elastic_report_progress(int64_t done, int64_t total, const char *unit)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* reports at a time */

    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (done < 0 || total < 0)
        return bad_argument("progress: neither number may be negative");
    if (unit != NULL && strlen(unit) >= ELASTIC_UNIT_BYTES)
        return bad_argument("progress: a unit has at most 23 bytes");
    pthread_mutex_lock(&one);
    event_client_progress(worker, done, total, unit != NULL ? unit : "");
    pthread_mutex_unlock(&one);
    return 0;
}

int elastic_report_step_time(int64_t microseconds)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* reports at a time */

    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (microseconds < 0 || microseconds > STEP_TIME_MAX)
        return bad_argument("step time: it is from 0 to 86400 seconds");
    pthread_mutex_lock(&one);
    event_client_step_time(worker, microseconds);
    pthread_mutex_unlock(&one);
    return 0;
}

int elastic_checkpoint_done(void)
{
    return worker != NULL ? nodes_saved(&last_error) : ELASTIC_NOT_ELASTIC;
}

int elastic_request_nodes(int nodes, int within_s, char *id)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (within_s < 0)
        return bad_argument("a number of seconds cannot be negative");
    event_client_training(worker); /* the request of this worker itself must not kill it */
    return nodes_extend(nodes, within_s, id, &last_error);
}

int elastic_release_nodes(int nodes, char *id)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    event_client_training(worker);
    return nodes_release(nodes, NULL, id, &last_error);
}

int elastic_release_named(const char *names, char *id)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (names == NULL || names[0] == '\0')
        return bad_argument("names of nodes, with commas, must be given");
    event_client_training(worker);
    return nodes_release(0, names, id, &last_error);
}

int elastic_cancel_request(const char *id)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    if (id == NULL || id[0] == '\0' || strlen(id) >= ELASTIC_ID_BYTES)
        return bad_argument("the id of a request must be given, as it was got");
    return nodes_cancel(id, &last_error);
}

int elastic_request_result(const char *id, struct elastic_result *result, int timeout_ms)
{
    if (worker == NULL)
        return ELASTIC_NOT_ELASTIC;
    return nodes_result(id, result, timeout_ms, worker, &last_error);
}

/* ---- what elasticrun has put into the environment -------------------------------------------- */

static int number_of(const char *name)
{
    const char *text = worker != NULL ? getenv(name) : NULL;
    char *end = NULL;
    long value;

    if (text == NULL)
        return -1;
    errno = 0;
    value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && value >= 0 && value <= INT32_MAX
               ? (int)value
               : -1;
}

int elastic_generation(void)
{
    return worker != NULL ? event_client_generation(worker) : -1;
}

int64_t elastic_step(void)
{
    return worker != NULL ? (int64_t)event_client_step(worker) : -1;
}

int elastic_rank(void)
{
    return number_of("RANK");
}

int elastic_size(void)
{
    return number_of("WORLD_SIZE");
}

int elastic_local_rank(void)
{
    return number_of("LOCAL_RANK");
}

int elastic_local_size(void)
{
    return number_of("LOCAL_WORLD_SIZE");
}

int elastic_nodes(void)
{
    return number_of("ELASTIC_NODES");
}

int elastic_min_nodes(void)
{
    return number_of("ELASTIC_MIN_NODES");
}

int elastic_max_nodes(void)
{
    return number_of("ELASTIC_MAX_NODES");
}
