/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenPMIx's server library (library.h).
 *
 * Rules of the library that are not in its documentation, found in the source of 4.2.2 and 5.0.7:
 *
 *   - A function of the module that has returned PMIX_SUCCESS owes its callback, exactly once, also
 *     if the client has died.
 *   - fence_nb, connect and disconnect must not return anything else. On another value the library
 *     forgets the waiting clients when it calls because one of the clients has died.
 *   - The data of fence_nb is ours to free. All other arguments are the library's, and may go when
 *     we return.
 *   - The callbacks of lookup, query, allocate and job_control put the reply into the queue of the
 *     client's connection, which has no lock: they must be called in the library's thread. All
 *     other callbacks find their way to that thread themselves.
 *   - notify_event must return PMIX_OPERATION_SUCCEEDED.
 *   - Without job_control the library does not clean up the files of clients either. */
#include "pmix/library.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "lib/text.h"
#include "pmix/environment.h"

/* The library exists once per process and gives its functions no cookie. */
static struct {
    pthread_mutex_t lock; /* for first and last */
    struct call *first, **last;
    uv_async_t wake;
    void (*handle)(struct call *call);
} library = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &library.first};

/* ---- calls ----------------------------------------------------------------------------------- */

static void post(struct call *call)
{
    pthread_mutex_lock(&library.lock);
    call->next = NULL;
    *library.last = call;
    library.last = &call->next;
    pthread_mutex_unlock(&library.lock);
    uv_async_send(&library.wake);
}

static void on_wake(uv_async_t *wake)
{
    struct call *call, *next;

    (void)wake;
    pthread_mutex_lock(&library.lock);
    call = library.first;
    library.first = NULL;
    library.last = &library.first;
    pthread_mutex_unlock(&library.lock);
    for (; call != NULL; call = next) {
        next = call->next;
        if (call->type == CALL_OWN)
            call->answer.done(call, call->cookie);
        else
            library.handle(call);
    }
}

void call_free(struct call *call)
{
    if (call == NULL)
        return;
    free(call->procs);
    if (call->info != NULL)
        PMIX_INFO_FREE(call->info, call->info_count);
    if (call->directives != NULL)
        PMIX_INFO_FREE(call->directives, call->directive_count);
    if (call->queries != NULL)
        PMIX_QUERY_FREE(call->queries, call->query_count);
    if (call->found != NULL)
        PMIX_PDATA_FREE(call->found, call->found_count);
    strings_free(call->keys);
    free(call->data);
    free(call->text);
    free(call);
}

static pmix_info_t *copy_info(const pmix_info_t *info, size_t count)
{
    pmix_info_t *copy = NULL;

    if (count > 0)
        PMIX_INFO_CREATE(copy, count);
    for (size_t i = 0; copy != NULL && i < count; i++)
        PMIX_INFO_XFER(&copy[i], &info[i]);
    return copy;
}

/* False: out of memory, which must not be taken for no keys. */
static bool copy_keys(struct call *call, char *const *keys)
{
    call->keys = strings_copy(keys);
    return keys == NULL || call->keys != NULL;
}

static struct call *call_new(enum call_type type, const pmix_proc_t *source,
                             const pmix_proc_t *procs, size_t proc_count, const pmix_info_t *info,
                             size_t info_count)
{
    struct call *call = calloc(1, sizeof(*call));

    if (call == NULL)
        return NULL;
    call->type = type;
    if (source != NULL)
        call->source = *source;
    call->procs = malloc((proc_count + 1) * sizeof(*procs));
    if (call->procs == NULL) {
        free(call);
        return NULL;
    }
    if (proc_count > 0)
        memcpy(call->procs, procs, proc_count * sizeof(*procs));
    call->proc_count = proc_count;
    call->info = copy_info(info, info_count);
    call->info_count = call->info != NULL ? info_count : 0;
    return call;
}

struct call *call_own(void (*done)(struct call *call, void *arg), void *arg)
{
    struct call *call = call_new(CALL_OWN, NULL, NULL, 0, NULL, 0);

    if (call == NULL)
        return NULL;
    call->answer.done = done;
    call->cookie = arg;
    return call;
}

void call_post(struct call *call, pmix_status_t status, const char *data, size_t len)
{
    call->status = status;
    if (len > 0 && (call->data = malloc(len)) != NULL) {
        memcpy(call->data, data, len);
        call->len = len;
    }
    if (len > 0 && call->data == NULL)
        call->status = PMIX_ERR_NOMEM;
    post(call);
}

/* OpenPMIx 6 and later read the infos of an answer after the call that has handed them over. */
static void call_used(void *call)
{
    call_free(call);
}

static void answer_now(pmix_status_t status, void *cookie)
{
    struct call *call = cookie;

    (void)status;
    if (call->type == CALL_LOOKUP) {
        call->answer.lookup(call->status, call->found, call->found_count, call->cookie);
        call_free(call);
    } else {
        call->answer.info(call->status, call->info, call->info_count, call->cookie, call_used,
                          call);
    }
}

/* Answer with call->found or call->info in the library's thread. The end of an event handler that
 * does not exist brings us there. */
static void answer_in_library(struct call *call, pmix_status_t status)
{
    call->status = status;
    if (PMIx_Deregister_event_handler(SIZE_MAX, answer_now, call) == PMIX_ERR_INIT)
        answer_now(status, call);
}

/* The question's data is freed to make room for the answer. */
static void replace_info(struct call *call, const pmix_info_t *info, size_t count)
{
    if (call->info != NULL)
        PMIX_INFO_FREE(call->info, call->info_count);
    call->info = copy_info(info, count);
    call->info_count = call->info != NULL ? count : 0;
}

void call_answer(struct call *call, pmix_status_t status)
{
    switch (call->type) {
    case CALL_FENCE:
    case CALL_MODEX:
        call->answer.modex(status, NULL, 0, call->cookie, NULL, NULL);
        break;
    case CALL_LOOKUP:
    case CALL_QUERY:
    case CALL_ALLOCATE:
    case CALL_CONTROL:
        replace_info(call, NULL, 0);
        answer_in_library(call, status);
        return;
    case CALL_TOOL:
        /* The library reads the name in any case, so it must be there. */
        call->answer.tool(status, &call->source, call->cookie);
        break;
    case CALL_NOTIFY: /* answered when the call came */
    case CALL_JOINED:
    case CALL_OWN:
        break;
    default:
        call->answer.op(status, call->cookie);
    }
    call_free(call);
}

void call_answer_data(struct call *call, char *data, size_t len)
{
    /* The library takes a pointer to no bytes for an error: so NULL and 0. */
    if (len == 0) {
        free(data);
        data = NULL;
    }
    call->answer.modex(PMIX_SUCCESS, data, len, call->cookie, data != NULL ? free : NULL, data);
    call_free(call);
}

void call_answer_found(struct call *call, pmix_status_t status, pmix_pdata_t *found, size_t count)
{
    call->found = found;
    call->found_count = count;
    answer_in_library(call, status);
}

void call_answer_info(struct call *call, pmix_status_t status, pmix_info_t *info, size_t count)
{
    replace_info(call, info, count);
    answer_in_library(call, call->info_count == count ? status : PMIX_ERR_NOMEM);
}

void call_answer_tool(struct call *call, const pmix_proc_t *name)
{
    call->source = *name;
    call_answer(call, PMIX_SUCCESS);
}

/* ---- values as bytes ------------------------------------------------------------------------- */

pmix_status_t values_pack(const void *values, int32_t count, pmix_data_type_t type,
                          pmix_byte_object_t *packed)
{
    pmix_data_buffer_t buffer;
    pmix_status_t status = PMIX_SUCCESS;

    *packed = (pmix_byte_object_t){0};
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (count > 0)
        status = PMIx_Data_pack(NULL, &buffer, (void *)values, count, type);
    if (status == PMIX_SUCCESS)
        status = PMIx_Data_unload(&buffer, packed);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

pmix_status_t values_unpack(pmix_byte_object_t *packed, void *values, int32_t count,
                            pmix_data_type_t type)
{
    pmix_data_buffer_t buffer;
    pmix_status_t status = PMIX_SUCCESS;
    int32_t got = count;

    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    if (count > 0)
        status = PMIx_Data_load(&buffer, packed); /* which are the buffer's then */
    if (count > 0 && status == PMIX_SUCCESS)
        status = PMIx_Data_unpack(NULL, &buffer, values, &got, type);
    if (status == PMIX_SUCCESS && got != count)
        status = PMIX_ERR_UNPACK_FAILURE;
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    free(packed->bytes);
    return status;
}

/* ---- the module: all of it runs in the library's thread -------------------------------------- */

/* Since OpenPMIx 6 a client waits in PMIx_Init for an answer, and this value is one. Older
 * libraries wait for none. */
static pmix_status_t on_joined(const pmix_proc_t *proc, void *object, pmix_info_t info[],
                               size_t info_count, pmix_op_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_JOINED, proc, NULL, 0, NULL, 0);

    (void)object;
    (void)info;
    (void)info_count;
    (void)answer;
    (void)cookie;
    if (call != NULL)
        post(call);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t answer,
                                  void *cookie)
{
    (void)proc;
    (void)object;
    (void)answer;
    (void)cookie;
    return PMIX_OPERATION_SUCCEEDED;
}

/* The loop will answer the call. */
static pmix_status_t accept_call(struct call *call, void *cookie)
{
    call->cookie = cookie;
    post(call);
    return PMIX_SUCCESS;
}

static pmix_status_t on_abort(const pmix_proc_t *source, void *object, int status,
                              const char message[], pmix_proc_t procs[], size_t proc_count,
                              pmix_op_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_ABORT, source, procs, proc_count, NULL, 0);

    (void)object;
    if (call == NULL)
        return PMIX_ERR_NOMEM;
    call->status = status;
    call->text = message != NULL ? strdup(message) : NULL;
    call->answer.op = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_fence(const pmix_proc_t procs[], size_t proc_count,
                              const pmix_info_t info[], size_t info_count, char *data, size_t len,
                              pmix_modex_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_FENCE, NULL, procs, proc_count, info, info_count);

    if (call == NULL) {
        free(data);
        answer(PMIX_ERR_NOMEM, NULL, 0, cookie, NULL, NULL);
        return PMIX_SUCCESS;
    }
    call->data = data;
    call->len = data != NULL ? len : 0;
    call->answer.modex = answer;
    return accept_call(call, cookie);
}

static pmix_status_t collective(enum call_type type, const pmix_proc_t procs[], size_t proc_count,
                                const pmix_info_t info[], size_t info_count,
                                pmix_op_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(type, NULL, procs, proc_count, info, info_count);

    if (call == NULL) {
        answer(PMIX_ERR_NOMEM, cookie);
        return PMIX_SUCCESS;
    }
    call->answer.op = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_connect(const pmix_proc_t procs[], size_t proc_count,
                                const pmix_info_t info[], size_t info_count,
                                pmix_op_cbfunc_t answer, void *cookie)
{
    return collective(CALL_CONNECT, procs, proc_count, info, info_count, answer, cookie);
}

static pmix_status_t on_disconnect(const pmix_proc_t procs[], size_t proc_count,
                                   const pmix_info_t info[], size_t info_count,
                                   pmix_op_cbfunc_t answer, void *cookie)
{
    return collective(CALL_DISCONNECT, procs, proc_count, info, info_count, answer, cookie);
}

static pmix_status_t on_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t info_count,
                              pmix_modex_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_MODEX, NULL, proc, 1, info, info_count);

    if (call == NULL)
        return PMIX_ERR_NOMEM;
    call->answer.modex = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_spawn(const pmix_proc_t *proc, const pmix_info_t job_info[],
                              size_t info_count, const pmix_app_t apps[], size_t app_count,
                              pmix_spawn_cbfunc_t answer, void *cookie)
{
    (void)job_info;
    (void)info_count;
    (void)app_count;
    (void)answer;
    (void)cookie;
    log_info("rank %u: PMIx_Spawn (MPI_Comm_spawn) of %s is not supported: a job grows by nodes, "
             "see PMIx_Allocation_request",
             proc->rank, app_count > 0 && apps[0].cmd != NULL ? apps[0].cmd : "nothing");
    return PMIX_ERR_NOT_SUPPORTED;
}

static pmix_status_t on_events(pmix_status_t *codes, size_t count, const pmix_info_t info[],
                               size_t info_count, pmix_op_cbfunc_t answer, void *cookie)
{
    (void)codes;
    (void)count;
    (void)info;
    (void)info_count;
    (void)answer;
    (void)cookie;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_no_events(pmix_status_t *codes, size_t count, pmix_op_cbfunc_t answer,
                                  void *cookie)
{
    (void)codes;
    (void)count;
    (void)answer;
    (void)cookie;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_publish(const pmix_proc_t *source, const pmix_info_t info[],
                                size_t info_count, pmix_op_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_PUBLISH, source, NULL, 0, info, info_count);

    if (call == NULL)
        return PMIX_ERR_NOMEM;
    call->answer.op = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_lookup(const pmix_proc_t *source, char **keys, const pmix_info_t info[],
                               size_t info_count, pmix_lookup_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_LOOKUP, source, NULL, 0, info, info_count);

    if (call == NULL || !copy_keys(call, keys)) {
        call_free(call);
        return PMIX_ERR_NOMEM;
    }
    call->answer.lookup = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_unpublish(const pmix_proc_t *source, char **keys, const pmix_info_t info[],
                                  size_t info_count, pmix_op_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_UNPUBLISH, source, NULL, 0, info, info_count);

    if (call == NULL || !copy_keys(call, keys)) {
        call_free(call);
        return PMIX_ERR_NOMEM;
    }
    call->answer.op = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_query(pmix_proc_t *source, pmix_query_t *queries, size_t count,
                              pmix_info_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_QUERY, source, NULL, 0, NULL, 0);

    if (call == NULL)
        return PMIX_ERR_NOMEM;
    PMIX_QUERY_CREATE(call->queries, count);
    for (size_t i = 0; call->queries != NULL && i < count; i++) {
        call->queries[i].keys = strings_copy(queries[i].keys);
        call->queries[i].qualifiers = copy_info(queries[i].qualifiers, queries[i].nqual);
        call->queries[i].nqual = call->queries[i].qualifiers != NULL ? queries[i].nqual : 0;
    }
    call->query_count = call->queries != NULL ? count : 0;
    call->answer.info = answer;
    return accept_call(call, cookie);
}

static void on_log(const pmix_proc_t *source, const pmix_info_t data[], size_t data_count,
                   const pmix_info_t directives[], size_t directive_count, pmix_op_cbfunc_t answer,
                   void *cookie)
{
    struct call *call = call_new(CALL_LOG, source, NULL, 0, data, data_count);

    if (call == NULL) {
        answer(PMIX_ERR_NOMEM, cookie);
        return;
    }
    call->directives = copy_info(directives, directive_count);
    call->directive_count = call->directives != NULL ? directive_count : 0;
    call->answer.op = answer;
    accept_call(call, cookie);
}

static pmix_status_t on_allocate(const pmix_proc_t *source, pmix_alloc_directive_t directive,
                                 const pmix_info_t info[], size_t info_count,
                                 pmix_info_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_ALLOCATE, source, NULL, 0, info, info_count);

    if (call == NULL)
        return PMIX_ERR_NOMEM;
    call->directive = directive;
    call->answer.info = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_job_control(const pmix_proc_t *source, const pmix_proc_t targets[],
                                    size_t target_count, const pmix_info_t info[],
                                    size_t info_count, pmix_info_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_CONTROL, source, targets, target_count, info, info_count);

    if (call == NULL)
        return PMIX_ERR_NOMEM;
    call->answer.info = answer;
    return accept_call(call, cookie);
}

static pmix_status_t on_notify(pmix_status_t code, const pmix_proc_t *source,
                               pmix_data_range_t range, pmix_info_t info[], size_t info_count,
                               pmix_op_cbfunc_t answer, void *cookie)
{
    struct call *call = call_new(CALL_NOTIFY, source, NULL, 0, info, info_count);

    (void)answer;
    (void)cookie;
    if (call == NULL)
        return PMIX_ERR_NOMEM;
    call->status = code;
    call->range = range;
    post(call);
    return PMIX_OPERATION_SUCCEEDED;
}

static void on_tool(pmix_info_t *info, size_t info_count, pmix_tool_connection_cbfunc_t answer,
                    void *cookie)
{
    struct call *call = call_new(CALL_TOOL, NULL, NULL, 0, info, info_count);
    pmix_proc_t nobody;

    if (call == NULL) {
        PMIX_LOAD_PROCID(&nobody, "", PMIX_RANK_UNDEF);
        answer(PMIX_ERR_NOMEM, &nobody, cookie);
        return;
    }
    call->answer.tool = answer;
    accept_call(call, cookie);
}

/* The library answers PMIX_ERR_NOT_SUPPORTED for functions that are missing here. */
static pmix_server_module_t module = {
    .client_connected2 = on_joined,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_modex,
    .spawn = on_spawn,
    .connect = on_connect,
    .disconnect = on_disconnect,
    .register_events = on_events,
    .deregister_events = on_no_events,
    .publish = on_publish,
    .lookup = on_lookup,
    .unpublish = on_unpublish,
    .notify_event = on_notify,
    .query = on_query,
    .tool_connected = on_tool,
    .log = on_log,
    .allocate = on_allocate,
    .job_control = on_job_control,
};

/* ---- life ------------------------------------------------------------------------------------ */

/* Events that a client sends with PMIX_RANGE_RM or _LOCAL come here and not to the module. This,
 * too, is the library's thread. */
static void on_own_event(size_t id, pmix_status_t code, const pmix_proc_t *source,
                         pmix_info_t info[], size_t info_count, pmix_info_t results[],
                         size_t result_count, pmix_event_notification_cbfunc_fn_t done,
                         void *cookie)
{
    (void)id;
    (void)results;
    (void)result_count;
    if (source != NULL)
        on_notify(code, source, PMIX_RANGE_RM, info, info_count, NULL, NULL);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cookie);
}

static void listen_for_events(void)
{
    pmix_status_t codes[] = {PMIX_JCTRL_CHECKPOINT_COMPLETE};

    PMIx_Register_event_handler(codes, 1, NULL, 0, on_own_event, NULL, NULL);
}

int library_start(uv_loop_t *loop, const char *name, uint32_t rank, const char *directory,
                  void (*handle)(struct call *call), struct error *err)
{
    pmix_info_t *info;
    pmix_status_t status;
    size_t count = 0;

    environment_prepare();
    library.handle = handle;
    uv_async_init(loop, &library.wake, on_wake);
    PMIX_INFO_CREATE(info, 7);
    PMIX_INFO_LOAD(&info[count++], PMIX_HOSTNAME, name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[count++], PMIX_SERVER_NSPACE, "elasticrun", PMIX_STRING);
    PMIX_INFO_LOAD(&info[count++], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[count++], PMIX_SERVER_TMPDIR, directory, PMIX_STRING);
    PMIX_INFO_LOAD(&info[count++], PMIX_SYSTEM_TMPDIR, directory, PMIX_STRING);
    PMIX_INFO_LOAD(&info[count++], PMIX_SERVER_TOOL_SUPPORT, NULL, PMIX_BOOL);
    /* Else each client explores the machine by itself. */
    PMIX_INFO_LOAD(&info[count++], PMIX_SERVER_SHARE_TOPOLOGY, NULL, PMIX_BOOL);
    status = PMIx_server_init(&module, info, count);
    PMIX_INFO_FREE(info, 7);
    if (status != PMIX_SUCCESS)
        return error_set(err, "PMIx_server_init: %s", PMIx_Error_string(status));
    listen_for_events();
    return 0;
}
