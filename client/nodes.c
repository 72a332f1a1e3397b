/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of a worker to its job by PMIx (nodes.h).
 *
 * libpmix is loaded when the first of these functions is called, and never linked. A program that
 * only asks for events does not need libpmix; a program that uses it already, such as an MPI
 * program, shares it. So nothing here may be a macro of PMIx that calls a function of PMIx.
 *
 * A PMIx server can be stopped or killed at any time. Nothing waits for it longer than a limit.
 * PMIx_Init and PMIx_Finalize have no other form, so they run in a thread of their own. Of all
 * other calls the forms are used that answer by a callback. An answer that comes too late belongs
 * to the callback, which frees it. No lock is held while PMIx is called.
 *
 * An event tells how an accepted request ends (events.c of the server); some releases send two. The
 * server keeps the event for processes that come later: that is how a process hears of requests of
 * its predecessor. */
#include "client/nodes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "pmix/compat.h"

#define LIBRARY    "libpmix.so.2"
#define CONNECT_MS 20000 /* takes some milliseconds */
#define ANSWER_MS  40000 /* the server itself gives up after 30 s */
#define QUERY_MS   10000
#define NOTIFY_MS  10000
#define LEAVE_MS   5000
#define LOOK_MS    100 /* for a change, while a result is waited for */

#define SERVER_GONE "the PMIx server of this node has ended: the next world gets another"

#define RESULTS   64 /* ended requests that are remembered */
#define INFOS_MAX 3

static struct {
    void *handle;
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Error_string) *error_string;
    __typeof__(PMIx_Register_event_handler) *register_handler;
    __typeof__(PMIx_Deregister_event_handler) *deregister_handler;
    __typeof__(PMIx_Notify_event) *notify;
    __typeof__(PMIx_Allocation_request_nb) *allocate;
    __typeof__(PMIx_Query_info_nb) *query;
} pmix;

enum state { CLOSED, OPENING, OPEN, CLOSING, BROKEN };

/* Of the process, as libpmix is. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum state state;
    bool lost;       /* the server has gone */
    char error[256]; /* why the state is BROKEN */
    pmix_proc_t self;
    size_t handlers[2];
    struct {
        struct elastic_result result;
        bool taken;
    } ended[RESULTS]; /* a ring */
    size_t ended_count;
} nodes = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A question. It lives until both the caller and the callback are through. */
struct op {
    bool done, dropped;
    pmix_status_t status;
    pmix_info_t info[INFOS_MAX];
    size_t count;
    char label[48]; /* our id, by which the server finds the reason of a refusal */
    char id[ELASTIC_ID_BYTES];
    char *names;
    char *keys[2];
    pmix_query_t query;
    char text[256]; /* the answer: an id, a reason */
};

static void make_condition(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&nodes.changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct timespec after_ms(int64_t ms)
{
    struct timespec at = {0};

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* ---- what PMIx tells by itself, in its thread ------------------------------------------------ */

static const char *text_in(const pmix_info_t *info, size_t count, const char *key)
{
    for (size_t i = 0; info != NULL && i < count; i++)
        if (pmix_compat_is_key(&info[i], key) && info[i].value.type == PMIX_STRING &&
            info[i].value.data.string != NULL)
            return info[i].value.data.string;
    return "";
}

static bool is_known(const char *id)
{
    for (size_t i = 0; i < nodes.ended_count && i < RESULTS; i++)
        if (strcmp(nodes.ended[i].result.id, id) == 0)
            return true;
    return false;
}

static void on_end(size_t handler, pmix_status_t code, const pmix_proc_t *source,
                   pmix_info_t info[], size_t count, pmix_info_t results[], size_t result_count,
                   pmix_event_notification_cbfunc_fn_t done, void *cookie)
{
    struct elastic_result result = {
        .outcome = code == PMIX_DVM_IS_READY ? ELASTIC_DONE : ELASTIC_FAILED,
    };

    snprintf(result.id, sizeof(result.id), "%s", text_in(info, count, PMIX_ALLOC_ID));
    snprintf(result.reason, sizeof(result.reason), "%s",
             text_in(info, count, PMIX_QUERY_ALLOC_STATUS));
    for (size_t i = 0; i < count; i++)
        if (pmix_compat_is_key(&info[i], PMIX_NUM_NODES) && info[i].value.type == PMIX_UINT32)
            result.nodes = (int32_t)info[i].value.data.uint32;
    pthread_mutex_lock(&nodes.lock);
    if (result.id[0] != '\0' && !is_known(result.id)) {
        nodes.ended[nodes.ended_count % RESULTS].result = result;
        nodes.ended[nodes.ended_count % RESULTS].taken = false;
        nodes.ended_count++;
        pthread_cond_broadcast(&nodes.changed);
    }
    pthread_mutex_unlock(&nodes.lock);
    /* The program may have a handler of its own for this event. */
    done(PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, cookie);
}

static void on_lost(size_t handler, pmix_status_t code, const pmix_proc_t *source,
                    pmix_info_t info[], size_t count, pmix_info_t results[], size_t result_count,
                    pmix_event_notification_cbfunc_fn_t done, void *cookie)
{
    /* Any process may send such an event. An event about the server's own end comes from the
     * library, in the server's name. */
    if (source == NULL || strncmp(source->nspace, nodes.self.nspace, PMIX_MAX_NSLEN) != 0) {
        pthread_mutex_lock(&nodes.lock);
        nodes.lost = true;
        pthread_cond_broadcast(&nodes.changed);
        pthread_mutex_unlock(&nodes.lock);
    }
    done(PMIX_EVENT_NO_ACTION_TAKEN, NULL, 0, NULL, NULL, cookie);
}

/* ---- entering PMIx, and leaving it ----------------------------------------------------------- */

static int load(struct event_client_error *err)
{
    const struct {
        const char *name;
        void *place;
    } symbols[] = {{"PMIx_Init", &pmix.init},
                   {"PMIx_Finalize", &pmix.finalize},
                   {"PMIx_Error_string", &pmix.error_string},
                   {"PMIx_Register_event_handler", &pmix.register_handler},
                   {"PMIx_Deregister_event_handler", &pmix.deregister_handler},
                   {"PMIx_Notify_event", &pmix.notify},
                   {"PMIx_Allocation_request_nb", &pmix.allocate},
                   {"PMIx_Query_info_nb", &pmix.query}};

    if (pmix.handle == NULL)
        pmix.handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (pmix.handle == NULL) {
        event_client_fail(
            err, "PMIx is not installed here, or not found (%s): asking for nodes needs it",
            dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(pmix.handle, symbols[i].name);

        if (symbol == NULL) {
            event_client_fail(err, "%s has no %s: OpenPMIx 4.2 or later is needed", LIBRARY,
                              symbols[i].name);
            return -1;
        }
        memcpy(symbols[i].place, &symbol, sizeof(symbol)); /* C has no cast for it */
    }
    return 0;
}

static int enter(struct event_client_error *err)
{
    pmix_status_t ends[] = {PMIX_DVM_IS_READY, PMIX_ERR_DVM_MOD}, lost = PMIX_ERR_LOST_CONNECTION;
    pmix_status_t status;

    if (load(err) != 0)
        return -1;
    status = pmix.init(&nodes.self, NULL, 0);
    if (status != PMIX_SUCCESS) {
        event_client_fail(err, "the PMIx server of this node cannot be reached: %s",
                          pmix.error_string(status));
        return -1;
    }
    /* Without a callback these calls wait, and return the handler's number. */
    status = pmix.register_handler(&lost, 1, NULL, 0, on_lost, NULL, NULL);
    if (status < 0) {
        event_client_fail(err, "PMIx tells no events: %s", pmix.error_string(status));
        return -1;
    }
    nodes.handlers[0] = (size_t)status;
    status = pmix.register_handler(ends, 2, NULL, 0, on_end, NULL, NULL);
    if (status < 0) {
        event_client_fail(err, "PMIx tells no events of requests: %s", pmix.error_string(status));
        return -1;
    }
    nodes.handlers[1] = (size_t)status;
    return 0;
}

static void *run_enter(void *arg)
{
    struct event_client_error err = {""};
    bool good = enter(&err) == 0;

    pthread_mutex_lock(&nodes.lock);
    nodes.state = good ? OPEN : BROKEN;
    snprintf(nodes.error, sizeof(nodes.error), "%.255s", err.text);
    pthread_cond_broadcast(&nodes.changed);
    pthread_mutex_unlock(&nodes.lock);
    return NULL;
}

static void *run_leave(void *arg)
{
    for (size_t i = 0; i < 2; i++)
        pmix.deregister_handler(nodes.handlers[i], NULL, NULL);
    pmix.finalize(NULL, 0);
    pthread_mutex_lock(&nodes.lock);
    nodes.state = CLOSED;
    pthread_cond_broadcast(&nodes.changed);
    pthread_mutex_unlock(&nodes.lock);
    return NULL;
}

/* With the lock held. The program's signals are not for this thread, nor for threads that PMIx
 * starts from it. */
static void begin(enum state state, void *(*run)(void *arg))
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, old;

    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    nodes.state = state;
    if (pthread_create(&thread, &attributes, run, NULL) != 0) {
        nodes.state = BROKEN;
        snprintf(nodes.error, sizeof(nodes.error), "no thread could be started for PMIx");
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
}

/* With the lock held. */
static void await(enum state state, int64_t ms)
{
    struct timespec limit = after_ms(ms);

    while (nodes.state == state && pthread_cond_timedwait(&nodes.changed, &nodes.lock, &limit) == 0)
        ;
}

/* With the lock held. */
static int why_not(struct event_client_error *err)
{
    if (nodes.state == OPEN && !nodes.lost)
        return 0;
    if (nodes.state == OPENING || nodes.state == CLOSING)
        event_client_fail(err, "the PMIx server of this node does not answer");
    else if (nodes.state == BROKEN)
        event_client_fail(err, "%s", nodes.error);
    else
        event_client_fail(err, "%s", SERVER_GONE);
    return ELASTIC_ERROR_PMIX;
}

static int be_open(struct event_client_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc;

    pthread_once(&once, make_condition);
    pthread_mutex_lock(&nodes.lock);
    if (nodes.state == CLOSED && getenv("PMIX_NAMESPACE") == NULL) {
        event_client_fail(
            err,
            "this worker was started without PMIx, by which nodes are asked for: elasticrun was "
            "given --pmix=no, or has said why");
        rc = ELASTIC_ERROR_PMIX;
    } else {
        if (nodes.state == CLOSED)
            begin(OPENING, run_enter);
        await(OPENING, CONNECT_MS);
        rc = why_not(err);
    }
    pthread_mutex_unlock(&nodes.lock);
    return rc;
}

void nodes_close(void)
{
    pthread_mutex_lock(&nodes.lock);
    if (nodes.state == OPEN && !nodes.lost) {
        begin(CLOSING, run_leave);
        await(CLOSING, LEAVE_MS);
    }
    pthread_mutex_unlock(&nodes.lock);
}

/* ---- questions and answers ------------------------------------------------------------------- */

static struct op *op_create(struct event_client_error *err)
{
    struct op *op = calloc(1, sizeof(*op));
    uint64_t number = 0;

    if (op == NULL || getrandom(&number, sizeof(number), 0) != sizeof(number)) {
        event_client_fail(err, "out of memory");
        free(op);
        return NULL;
    }
    snprintf(op->label, sizeof(op->label), "libelastic.%016llx", (unsigned long long)number);
    return op;
}

static void op_destroy(struct op *op)
{
    if (op == NULL)
        return;
    free(op->names);
    free(op);
}

static pmix_value_t *add(struct op *op, const char *key, pmix_data_type_t type)
{
    pmix_info_t *info = &op->info[op->count++];

    snprintf(info->key, sizeof(info->key), "%s", key);
    info->value.type = type;
    return &info->value;
}

static void answered(struct op *op, pmix_status_t status, const char *text)
{
    bool dropped;

    pthread_mutex_lock(&nodes.lock);
    op->done = true;
    op->status = status;
    snprintf(op->text, sizeof(op->text), "%s", text);
    dropped = op->dropped;
    pthread_cond_broadcast(&nodes.changed);
    pthread_mutex_unlock(&nodes.lock);
    if (dropped)
        op_destroy(op);
}

static void on_done(pmix_status_t status, void *arg)
{
    answered(arg, status, "");
}

/* The answer is a text: an id, a reason, or the value that was asked for. */
static void on_info(pmix_status_t status, pmix_info_t *info, size_t count, void *arg,
                    pmix_release_cbfunc_t release, void *release_arg)
{
    struct op *op = arg;
    const char *key = op->keys[0];

    if (key == NULL)
        key = status == PMIX_SUCCESS ? PMIX_ALLOC_ID : PMIX_QUERY_ALLOC_STATUS;
    answered(op, status, text_in(info, count, key));
    if (release != NULL)
        release(release_arg);
}

/* The result of a call that PMIx has taken, or has not (status). NULL: op belongs to the callback
 * now, and the reason is in err. */
static struct op *settle(struct op *op, pmix_status_t status, int64_t ms,
                         struct event_client_error *err)
{
    struct timespec limit = after_ms(ms);
    int rc = 0;

    if (status != PMIX_SUCCESS) {
        op->status = status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
        return op;
    }
    pthread_mutex_lock(&nodes.lock);
    while (!op->done && !nodes.lost && rc == 0)
        rc = pthread_cond_timedwait(&nodes.changed, &nodes.lock, &limit);
    op->dropped = !op->done;
    if (!op->done && why_not(err) == 0)
        event_client_fail(
            err, "the PMIx server of this node does not answer; what was asked may still be done");
    if (!op->done)
        op = NULL;
    pthread_mutex_unlock(&nodes.lock);
    return op;
}

/* PMIx 4.2 hands on no text with a refusal, so the server is asked for the text. */
static void ask_why(const char *label, char *text, size_t size)
{
    struct event_client_error err = {""};
    struct op *op = op_create(&err);
    pmix_query_t *query;

    if (op == NULL)
        return;
    query = &op->query;
    op->keys[0] = ELASTIC_PMIX_REFUSAL;
    query->keys = op->keys;
    snprintf(op->label, sizeof(op->label), "%s", label);
    add(op, PMIX_ALLOC_REQ_ID, PMIX_STRING)->data.string = op->label;
    query->qualifiers = op->info;
    query->nqual = op->count;
    op = settle(op, pmix.query(query, 1, on_info, op), QUERY_MS, &err);
    if (op != NULL && op->status == PMIX_SUCCESS)
        snprintf(text, size, "%s", op->text);
    op_destroy(op);
}

/* PMIx knows of the end of its server a second before it reports the end. */
static int failed(pmix_status_t status, struct event_client_error *err)
{
    if (status == PMIX_ERR_UNREACH || status == PMIX_ERR_LOST_CONNECTION ||
        status == PMIX_ERR_COMM_FAILURE)
        event_client_fail(err, "%s", SERVER_GONE);
    else
        event_client_fail(err, "PMIx has failed: %s", pmix.error_string(status));
    return ELASTIC_ERROR_PMIX;
}

static int refused(const struct op *op, struct event_client_error *err)
{
    static const struct {
        pmix_status_t status;
        const char *text;
    } table[] = {
        {PMIX_ERR_BAD_PARAM, "the job cannot have that many nodes, or they are its base job's"},
        {PMIX_ERR_NOT_FOUND, "this job has no such node, or no such request"},
        {PMIX_ERR_NOT_AVAILABLE, "not now: there is nowhere to grow, too much has been asked for, "
                                 "or the job is ending"},
        {PMIX_ERR_NOT_SUPPORTED, "this PMIx, or its server, does not know such a request"},
    };
    char text[256] = "";

    snprintf(text, sizeof(text), "%s", op->text);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].status != op->status)
            continue;
        if (text[0] == '\0')
            ask_why(op->label, text, sizeof(text));
        event_client_fail(err, "refused: %s", text[0] != '\0' ? text : table[i].text);
        return ELASTIC_ERROR_REFUSED;
    }
    return failed(op->status, err);
}

/* op is taken over. */
static int request(struct op *op, pmix_alloc_directive_t directive, char *id,
                   struct event_client_error *err)
{
    int rc = 0;

    add(op, PMIX_ALLOC_REQ_ID, PMIX_STRING)->data.string = op->label;
    op = settle(op, pmix.allocate(directive, op->info, op->count, on_info, op), ANSWER_MS, err);
    if (op == NULL)
        return ELASTIC_ERROR_PMIX;
    if (op->status != PMIX_SUCCESS)
        rc = refused(op, err);
    else if (id != NULL)
        snprintf(id, ELASTIC_ID_BYTES, "%s", op->text);
    op_destroy(op);
    return rc;
}

/* ---- the functions --------------------------------------------------------------------------- */

static struct op *begin_request(int count, struct event_client_error *err, int *rc)
{
    struct op *op;

    *rc = ELASTIC_ERROR_ARGUMENT;
    if (count < 1) {
        event_client_fail(err, "%d nodes: must be 1 or more", count);
        return NULL;
    }
    *rc = be_open(err);
    if (*rc != 0)
        return NULL;
    op = op_create(err);
    if (op == NULL)
        *rc = ELASTIC_ERROR_PMIX;
    return op;
}

int nodes_extend(int count, int within_s, char *id, struct event_client_error *err)
{
    int rc;
    struct op *op = begin_request(count, err, &rc);

    if (op == NULL)
        return rc;
    add(op, PMIX_ALLOC_NUM_NODES, PMIX_UINT64)->data.uint64 = (uint64_t)count;
    if (within_s > 0)
        add(op, PMIX_TIMEOUT, PMIX_INT)->data.integer = within_s;
    return request(op, PMIX_ALLOC_EXTEND, id, err);
}

int nodes_release(int count, const char *names, char *id, struct event_client_error *err)
{
    int rc;
    struct op *op = begin_request(names != NULL ? 1 : count, err, &rc);

    if (op == NULL)
        return rc;
    if (names == NULL) {
        add(op, PMIX_ALLOC_NUM_NODES, PMIX_UINT64)->data.uint64 = (uint64_t)count;
    } else if ((op->names = strdup(names)) != NULL) {
        add(op, PMIX_ALLOC_NODE_LIST, PMIX_STRING)->data.string = op->names;
    } else {
        event_client_fail(err, "out of memory");
        op_destroy(op);
        return ELASTIC_ERROR_PMIX;
    }
    return request(op, PMIX_ALLOC_RELEASE, id, err);
}

int nodes_cancel(const char *id, struct event_client_error *err)
{
    int rc;
    struct op *op = begin_request(1, err, &rc);

    if (op == NULL)
        return rc;
    snprintf(op->id, sizeof(op->id), "%s", id);
    add(op, PMIX_ALLOC_ID, PMIX_STRING)->data.string = op->id;
    return request(op, PMIX_ALLOC_REQ_CANCEL, NULL, err);
}

/* With the lock held: take the result with that id, or the oldest that has not been taken. */
static bool take_result(const char *id, struct elastic_result *result)
{
    size_t first = nodes.ended_count > RESULTS ? nodes.ended_count - RESULTS : 0;

    for (size_t i = first; i < nodes.ended_count; i++) {
        bool *taken = &nodes.ended[i % RESULTS].taken;
        const struct elastic_result *each = &nodes.ended[i % RESULTS].result;

        if (id != NULL ? strcmp(each->id, id) != 0 : *taken)
            continue;
        *taken = true;
        if (result != NULL)
            *result = *each;
        return true;
    }
    return false;
}

int nodes_result(const char *id, struct elastic_result *result, int timeout_ms,
                 const struct event_client *client, struct event_client_error *err)
{
    struct timespec limit = after_ms(timeout_ms < 0 ? 0 : timeout_ms);
    int rc = be_open(err);

    if (rc != 0)
        return rc;
    pthread_mutex_lock(&nodes.lock);
    for (;;) {
        struct timespec look = after_ms(LOOK_MS);
        bool last = timeout_ms >= 0 &&
                    (look.tv_sec > limit.tv_sec ||
                     (look.tv_sec == limit.tv_sec && look.tv_nsec > limit.tv_nsec));

        if (take_result(id, result))
            break;
        rc = why_not(err);
        if (rc != 0)
            break;
        rc = ELASTIC_PENDING;
        /* Other workers may wait for this worker at a boundary, and the result may wait for the
         * change. */
        if (timeout_ms == 0 || event_client_held(client))
            break;
        if (pthread_cond_timedwait(&nodes.changed, &nodes.lock, last ? &limit : &look) != 0 && last)
            timeout_ms = 0; /* look once more */
        rc = 0;
    }
    pthread_mutex_unlock(&nodes.lock);
    return rc;
}

int nodes_saved(struct event_client_error *err)
{
    int rc;
    struct op *op = begin_request(1, err, &rc);

    if (op == NULL)
        return rc;
    op = settle(op,
                pmix.notify(PMIX_JCTRL_CHECKPOINT_COMPLETE, &nodes.self, PMIX_RANGE_RM, NULL, 0,
                            on_done, op),
                NOTIFY_MS, err);
    if (op == NULL)
        return ELASTIC_ERROR_PMIX;
    if (op->status != PMIX_SUCCESS)
        rc = failed(op->status, err);
    op_destroy(op);
    return rc;
}
