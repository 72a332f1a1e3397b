/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collectives, and data of processes on other nodes.
 *
 * These are calls of the library on one side and messages of the leader on the other:
 *
 *   fence  client ─▶ library ─▶ gather{key, nodes, data} ─▶ leader, which waits for all of nodes
 *          client ◀─ library ◀─ gathered{key, data} ◀────── leader
 *   get    client ─▶ library ─▶ relay{to, "modex", rank} ─▶ leader ─▶ server, library
 *          client ◀─ library ◀─ relay{to, "modexed", data} ◀─ leader ◀──┘
 *
 * The library has at most one collective at a time for a set of processes, so the set is its name.
 * Data that is larger than a message goes in pieces. */
#include "pmix/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/pieces.h"

/* Wait for a process that has not published anything yet: as a rule it is about to. */
#define MODEX_SECONDS 60

/* Bytes on their way to the agent: far fewer than a link takes before it ends. */
#define ASKED_MAX ((size_t)16 << 20)

/* A call that another node, or all nodes, will answer. */
struct waiting {
    struct call *call;
    int attempt;
    char *key;   /* key of a collective; NULL: a question to one node */
    uint64_t id; /* of a question */
    void (*done)(struct call *call, json_object *answer); /* for a question to the leader */
    struct pieces answer;
    uv_timer_t *timer; /* NULL: no deadline */
    struct waiting *next;
};

/* ---- waiting --------------------------------------------------------------------------------- */

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

/* Take the entry out of the list and free it; the call belongs to the caller. */
static struct call *end_waiting(struct waiting *w)
{
    struct call *call = w->call;
    struct waiting **at = &host.waiting;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (w->timer != NULL)
        uv_close((uv_handle_t *)w->timer, free_handle);
    free(w->key);
    free(w->answer.data);
    free(w);
    return call;
}

static void on_deadline(uv_timer_t *timer)
{
    struct waiting *w = timer->data;
    json_object *msg;

    if (w->key == NULL) {
        call_answer(end_waiting(w), PMIX_ERR_TIMEOUT);
        return;
    }
    /* The other nodes do not wait for us any longer, either. The leader tells them and us. A
     * process that was answered here and now would be back with the next collective of the same
     * processes. It would take the leader's word about this collective for the end of the next. */
    msg = host_message("ungather", w->attempt);
    json_object_object_add(msg, "key", json_object_new_string(w->key));
    json_object_object_add(msg, "status", json_object_new_int(PMIX_ERR_TIMEOUT));
    host_send(msg);
}

/* The time limit of the client in seconds, else `otherwise`; 0: none. */
static double limit_of(const struct call *call, double otherwise)
{
    for (size_t i = 0; i < call->info_count; i++)
        if (PMIX_CHECK_KEY(&call->info[i], PMIX_TIMEOUT) && call->info[i].value.type == PMIX_INT &&
            call->info[i].value.data.integer > 0)
            return call->info[i].value.data.integer;
    return otherwise;
}

static struct waiting *wait_for(struct call *call, int attempt, double seconds)
{
    struct waiting *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return NULL;
    w->call = call;
    w->attempt = attempt;
    w->id = ++host.next_id;
    if (seconds > 0 && (w->timer = malloc(sizeof(*w->timer))) != NULL) {
        uv_timer_init(&host.loop, w->timer);
        w->timer->data = w;
        uv_timer_start(w->timer, on_deadline, (uint64_t)(seconds * 1000), 0);
    }
    w->next = host.waiting;
    host.waiting = w;
    return w;
}

void exchange_drop(const struct space *space)
{
    struct waiting *w = host.waiting, *next;

    for (; w != NULL; w = next) {
        next = w->next;
        if (w->attempt == space->attempt)
            call_answer(end_waiting(w), PMIX_ERR_LOST_CONNECTION);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void send_piece(json_object *piece, void *arg)
{
    (void)arg;
    host_send(piece);
}

/* The library's status, if another node's library has sent one; else a word of the leader, which
 * knows no PMIx. */
static pmix_status_t status_in(json_object *msg)
{
    int64_t status;

    return json_get_int(msg, "status", INT32_MIN, 0, &status) ? (pmix_status_t)status
                                                              : PMIX_SUCCESS;
}

/* A piece of an answer. The answer may be complete with it. */
static void answer_piece(struct waiting *w, json_object *msg)
{
    pmix_status_t status = status_in(msg);
    struct pieces answer;
    int rc = 0;

    if (status == PMIX_SUCCESS) {
        rc = pieces_take(&w->answer, msg);
        if (rc == 0)
            return;
        if (rc < 0)
            status = PMIX_ERR_UNPACK_FAILURE;
    }
    answer = w->answer;
    w->answer.data = NULL;
    if (status == PMIX_SUCCESS && (w->call->type == CALL_FENCE || w->call->type == CALL_MODEX)) {
        call_answer_data(end_waiting(w), answer.data, answer.len);
        return;
    }
    free(answer.data);
    call_answer(end_waiting(w), status);
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* The nodes of these processes, ascending. All processes must be of one namespace. NULL: they are
 * not. */
static json_object *nodes_of(const struct space *space, const struct call *call)
{
    bool *member = calloc((size_t)space->world->node_count, sizeof(*member));
    json_object *nodes = json_object_new_array();
    bool good = member != NULL && nodes != NULL;

    for (size_t i = 0; good && i < call->proc_count; i++) {
        pmix_rank_t rank = call->procs[i].rank;
        int node = rank == PMIX_RANK_WILDCARD ? 0 : space_node_of(space, rank);

        if (node < 0 || strcmp(call->procs[i].nspace, space->name) != 0)
            good = false;
        else if (rank == PMIX_RANK_WILDCARD)
            memset(member, true, (size_t)space->world->node_count);
        else
            member[node] = true;
    }
    for (int i = 0; good && i < space->world->node_count; i++)
        if (member[i])
            json_object_array_add(nodes, json_object_new_int(i));
    free(member);
    if (good)
        return nodes;
    json_object_put(nodes);
    return NULL;
}

/* "fence:*" or "fence:0,2,3". The library has sorted the processes. */
static char *key_of(const struct call *call)
{
    static const char *const names[] = {
        [CALL_FENCE] = "fence", [CALL_CONNECT] = "connect", [CALL_DISCONNECT] = "disconnect"};
    char *key = NULL;
    size_t len;
    FILE *file = open_memstream(&key, &len);

    if (file == NULL)
        return NULL;
    fprintf(file, "%s:", names[call->type]);
    for (size_t i = 0; i < call->proc_count; i++) {
        if (i > 0)
            fputc(',', file);
        if (call->procs[i].rank == PMIX_RANK_WILDCARD)
            fputc('*', file);
        else
            fprintf(file, "%u", call->procs[i].rank);
    }
    if (fclose(file) == 0)
        return key;
    free(key);
    return NULL;
}

void exchange_fence(struct call *call)
{
    struct space *space = call->proc_count > 0 ? host_space_by_name(call->procs[0].nspace) : NULL;
    json_object *nodes = space != NULL ? nodes_of(space, call) : NULL, *msg;
    struct waiting *w;
    char *key;

    if (nodes == NULL) {
        /* Processes of several namespaces: there is one at a time. */
        call_answer(call, PMIX_ERR_NOT_SUPPORTED);
        return;
    }
    key = key_of(call);
    w = key != NULL ? wait_for(call, space->attempt, limit_of(call, 0)) : NULL;
    if (w == NULL) {
        free(key);
        json_object_put(nodes);
        call_answer(call, PMIX_ERR_NOMEM);
        return;
    }
    w->key = key;
    msg = host_message("gather", space->attempt);
    json_object_object_add(msg, "key", json_object_new_string(key));
    json_object_object_add(msg, "nodes", nodes);
    pieces_send(msg, call->data, call->len, send_piece, NULL);
}

static void on_gathered(json_object *msg)
{
    const char *key = json_get_string(msg, "key");
    int64_t attempt;

    if (key == NULL || !json_get_int(msg, "attempt", 0, INT32_MAX, &attempt))
        return;
    for (struct waiting *w = host.waiting; w != NULL; w = w->next)
        if (w->key != NULL && w->attempt == attempt && strcmp(w->key, key) == 0) {
            answer_piece(w, msg);
            return;
        }
}

/* ---- data of one process --------------------------------------------------------------------- */

static json_object *relay(int attempt, int to, const char *what, uint64_t id)
{
    json_object *msg = host_message("relay", attempt);

    json_object_object_add(msg, "to", json_object_new_int(to));
    json_object_object_add(msg, "what", json_object_new_string(what));
    json_object_object_add(msg, "id", json_object_new_int64((int64_t)id));
    return msg;
}

void exchange_modex(struct call *call)
{
    struct space *space = host_space_by_name(call->procs[0].nspace);
    pmix_rank_t rank = call->procs[0].rank;
    int node = space != NULL ? space_node_of(space, rank) : -1;
    struct waiting *w;
    json_object *msg;

    if (node < 0 || node == space->index) {
        call_answer(call, PMIX_ERR_NOT_FOUND);
        return;
    }
    w = wait_for(call, space->attempt, limit_of(call, MODEX_SECONDS));
    if (w == NULL) {
        call_answer(call, PMIX_ERR_NOMEM);
        return;
    }
    msg = relay(space->attempt, node, "modex", w->id);
    json_object_object_add(msg, "rank", json_object_new_int64(rank));
    host_send(msg);
}

/* Another node's question, for which the library looks for the answer. */
struct question {
    int attempt, from;
    uint64_t id;
};

static void on_found(struct call *call, void *arg)
{
    struct question *question = arg;
    json_object *msg = relay(question->attempt, question->from, "modexed", question->id);

    if (call->status != PMIX_SUCCESS)
        json_object_object_add(msg, "status", json_object_new_int(call->status));
    pieces_send(msg, call->data, call->status == PMIX_SUCCESS ? call->len : 0, send_piece, NULL);
    call_free(call);
    free(question);
}

/* From the library's thread. */
static void on_library_found(pmix_status_t status, char *data, size_t len, void *cookie)
{
    call_post(cookie, status, data, len);
}

/* The library waits without limit for a process to publish; the asking node does not. */
static void on_question(const struct space *space, json_object *msg, int from, uint64_t id)
{
    struct question *question = malloc(sizeof(*question));
    struct call *call = question != NULL ? call_own(on_found, question) : NULL;
    pmix_status_t status = PMIX_ERR_NOT_FOUND;
    int64_t rank;
    pmix_proc_t proc;

    if (call == NULL) {
        free(question);
        return;
    }
    *question = (struct question){.attempt = space->attempt, .from = from, .id = id};
    if (json_get_int(msg, "rank", 0, INT32_MAX, &rank) &&
        space_node_of(space, (pmix_rank_t)rank) == space->index) {
        PMIX_LOAD_PROCID(&proc, space->name, (pmix_rank_t)rank);
        status = PMIx_server_dmodex_request(&proc, on_library_found, call);
    }
    if (status != PMIX_SUCCESS)
        call_post(call, status, NULL, 0);
}

static void on_relay(json_object *msg)
{
    const char *what = json_get_string(msg, "what");
    int64_t attempt, from, id;
    struct space *space;

    if (what == NULL || !json_get_int(msg, "attempt", 0, INT32_MAX, &attempt) ||
        !json_get_int(msg, "from", 0, INT32_MAX, &from) ||
        !json_get_int(msg, "id", 0, INT64_MAX, &id) || (space = host_space((int)attempt)) == NULL)
        return;
    if (strcmp(what, "notify") == 0) {
        events_relayed(space, msg);
        return;
    }
    if (strcmp(what, "modex") == 0) {
        on_question(space, msg, (int)from, (uint64_t)id);
        return;
    }
    for (struct waiting *w = host.waiting; w != NULL; w = w->next)
        if (w->key == NULL && w->done == NULL && w->attempt == attempt && w->id == (uint64_t)id) {
            answer_piece(w, msg);
            return;
        }
}

/* ---- questions to the leader ----------------------------------------------------------------- */

void exchange_ask(struct call *call, const struct space *space, const char *what, json_object *msg,
                  double seconds, void (*done)(struct call *call, json_object *answer))
{
    struct waiting *w = wait_for(call, space->attempt, seconds);

    if (w == NULL) {
        json_object_put(msg);
        call_answer(call, PMIX_ERR_NOMEM);
        return;
    }
    w->done = done;
    json_object_object_add(msg, "t", json_object_new_string("ask"));
    json_object_object_add(msg, "what", json_object_new_string(what));
    json_object_object_add(msg, "attempt", json_object_new_int(space->attempt));
    json_object_object_add(msg, "id", json_object_new_int64((int64_t)w->id));
    host_send(msg);
}

bool asked_begin(struct call *call, struct space *space, size_t bytes)
{
    if (bytes > ASKED_MAX - space->asked)
        return false;
    space->asked += bytes;
    call->len = bytes;
    return true;
}

void asked_end(const struct call *call)
{
    struct space *space = host_space_by_name(call->source.nspace);

    if (space != NULL)
        space->asked -= call->len;
}

static void on_answer(json_object *msg)
{
    int64_t id, attempt;

    /* The attempt is checked, because questions of an earlier elasticrun-pmix of this node may have
     * had the same numbers. */
    if (!json_get_int(msg, "id", 0, INT64_MAX, &id) ||
        !json_get_int(msg, "attempt", 0, INT32_MAX, &attempt))
        return;
    for (struct waiting *w = host.waiting; w != NULL; w = w->next)
        if (w->done != NULL && w->attempt == attempt && w->id == (uint64_t)id) {
            void (*done)(struct call * call, json_object * answer) = w->done;

            done(end_waiting(w), msg);
            return;
        }
}

bool exchange_on_message(const char *type, json_object *msg)
{
    if (strcmp(type, "gathered") == 0)
        on_gathered(msg);
    else if (strcmp(type, "relay") == 0)
        on_relay(msg);
    else if (strcmp(type, "answer") == 0)
        on_answer(msg);
    else
        return false;
    return true;
}
