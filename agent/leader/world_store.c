/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store on which the processes of a world meet, kept by the leader (lib/store.h;
 * doc/internals/live.md): no process of the world hosts it, so none takes it along when it dies.
 * Each start of a world is a scope. Members ask for their processes, and only in worlds that they
 * are part of.
 *
 * What a node has not read yet is bounded: small questions have large answers, and a connection in
 * which too much waits is given up. Beyond the bound the answer is "busy": the node asks again. */
#include "lib/store.h"

#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/pmix_world.h"
#include "agent/leader/roster.h"
#include "agent/leader/world_store.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/pieces.h"

/* Bytes on their way to a node; far below what ends a link. */
#define UNREAD_MAX  ((size_t)16 << 20)
#define TIMEOUT_MAX 1e9 /* seconds: nobody lives to see it */

struct world_store {
    struct store *store; /* NULL: nothing yet */
    uv_timer_t due;      /* the next of those that wait has waited long enough */
};

static struct store_scope scope_of(const struct pmix_relay *relay)
{
    return (struct store_scope){relay->generation, relay->attempt};
}

/* ---- answers --------------------------------------------------------------------------------- */

static const char *word_for(enum store_result result)
{
    static const char *const words[] = {
        [STORE_GONE] = "gone", [STORE_TIMEOUT] = "timeout",  [STORE_BAD] = "bad",
        [STORE_FULL] = "full", [STORE_NO_MEMORY] = "memory",
    };

    return words[result];
}

static void send_answer(struct leader_member *m, uint64_t number, json_object *msg,
                        const char *error, const char *reason)
{
    json_object_object_add(msg, "id", json_object_new_int64((int64_t)number));
    if (error != NULL)
        json_object_object_add(msg, "error", json_object_new_string(error));
    if (reason != NULL)
        json_object_object_add(msg, "reason", json_object_new_string(reason));
    leader_send(m, msg);
}

static void refuse(struct leader_member *m, uint64_t number, const char *error, const char *reason)
{
    send_answer(m, number, leader_message("stored", -1), error, reason);
}

static bool is_behind(const struct leader_member *m)
{
    return m->link != NULL && link_queued(m->link) > UNREAD_MAX;
}

static void tell(struct leader_member *m, const struct store_answer *answer)
{
    json_object *msg = leader_message("stored", -1);
    const char *error = word_for(answer->result);

    if (answer->value != NULL && is_behind(m))
        error = "busy";
    else if (answer->value != NULL && bytes_set(msg, "value", answer->value, answer->len) != 0)
        error = "memory";
    json_object_object_add(msg, "number", json_object_new_int64(answer->number));
    send_answer(m, answer->id.number, msg, error, answer->reason);
}

static void on_due(uv_timer_t *timer);

/* Send all answers that there are, and see when the next one is due for having waited. */
static void settle(struct leader *leader)
{
    double now = leader_now(leader), due;
    struct store_answer answer;

    while (store_answer(leader->world_store->store, &answer)) {
        struct leader_member *m = roster_by_id(leader, (int)answer.id.owner);

        if (m != NULL)
            tell(m, &answer);
    }
    if (uv_is_closing((uv_handle_t *)&leader->world_store->due))
        return;
    if (store_deadline(leader->world_store->store, &due))
        uv_timer_start(&leader->world_store->due, on_due,
                       due > now ? (uint64_t)((due - now) * 1000) + 1 : 0, 0);
    else
        uv_timer_stop(&leader->world_store->due);
}

static void on_due(uv_timer_t *timer)
{
    struct leader *leader = timer->data;

    store_expire(leader->world_store->store, leader_now(leader));
    settle(leader);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* What a request has that must be freed. */
struct pieces_of_request {
    const char *key;
    char **keys, *value, *expected;
};

static int op_of(json_object *msg)
{
    static const char *const words[STORE_OPS] = {
        [STORE_SET] = "set",       [STORE_GET] = "get",
        [STORE_WAIT] = "wait",     [STORE_CHECK] = "check",
        [STORE_ADD] = "add",       [STORE_COMPARE_SET] = "compare_set",
        [STORE_DELETE] = "delete", [STORE_NUM_KEYS] = "num_keys",
    };
    const char *op = json_get_string(msg, "op");

    for (int i = 0; op != NULL && i < STORE_OPS; i++)
        if (strcmp(op, words[i]) == 0)
            return i;
    return -1;
}

static bool read_keys(json_object *msg, struct store_request *request,
                      struct pieces_of_request *pieces)
{
    if (request->op == STORE_NUM_KEYS)
        return true;
    if (request->op != STORE_WAIT && request->op != STORE_CHECK) {
        pieces->key = json_get_string(msg, "key");
        request->keys = &pieces->key;
        request->key_count = 1;
        return pieces->key != NULL;
    }
    pieces->keys = json_get_strings(msg, "keys", STORE_ASK_KEYS_MAX);
    request->keys = (const char *const *)pieces->keys;
    while (pieces->keys != NULL && pieces->keys[request->key_count] != NULL)
        request->key_count++;
    return pieces->keys != NULL;
}

/* False: there is something else. */
static bool read_bytes(json_object *msg, const char *name, char **data, size_t *len)
{
    return (!json_object_object_get_ex(msg, name, NULL) || json_get_string(msg, name) != NULL) &&
           bytes_get(msg, name, data, len) == 0;
}

/* False: it cannot be understood. What is in pieces is to be freed all the same. */
static bool read_request(json_object *msg, double now, struct store_request *request,
                         struct pieces_of_request *pieces)
{
    double timeout = json_get_double(msg, "timeout", 0);
    int op = op_of(msg);

    if (op < 0)
        return false;
    request->op = (enum store_op)op;
    if (!(timeout >= 0)) /* also what is no number */
        timeout = 0;
    request->deadline = now + (timeout < TIMEOUT_MAX ? timeout : TIMEOUT_MAX);
    if (op == STORE_ADD && !json_get_int(msg, "amount", INT64_MIN, INT64_MAX, &request->amount))
        return false;
    if (!read_keys(msg, request, pieces) ||
        !read_bytes(msg, "value", &pieces->value, &request->len) ||
        !read_bytes(msg, "expected", &pieces->expected, &request->expected_len))
        return false;
    request->value = pieces->value;
    request->expected = pieces->expected;
    return true;
}

/* Is it a world that is, or is being prepared, and the member a part of it? */
static bool is_of_world(const struct leader *leader, const struct leader_member *m,
                        struct store_scope scope)
{
    const struct pmix_relay *now = &leader->relay, *next = &leader->next_relay;

    return (scope.attempt == now->attempt && scope.generation == now->generation &&
            m->part->place >= 0) ||
           (scope.attempt == next->attempt && scope.generation == next->generation &&
            m->part->next_place >= 0);
}

void world_store_request(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct store_request request = {.id = {.owner = (uint64_t)m->id}};
    struct pieces_of_request pieces = {0};
    int64_t id, generation, attempt;
    double now = leader_now(leader);

    if (!json_get_int(msg, "id", 0, INT64_MAX, &id))
        return;
    request.id.number = (uint64_t)id;
    if (!json_get_int(msg, "gen", 0, INT32_MAX, &generation) ||
        !json_get_int(msg, "attempt", 1, INT32_MAX, &attempt) ||
        !read_request(msg, now, &request, &pieces)) {
        refuse(m, request.id.number, "bad", "a request that cannot be understood");
    } else if (request.scope = (struct store_scope){(int)generation, (int)attempt},
               leader->world_store->store == NULL || !is_of_world(leader, m, request.scope)) {
        refuse(m, request.id.number, "gone", NULL);
    } else if (is_behind(m)) {
        refuse(m, request.id.number, "busy", NULL);
    } else {
        if (store_ask(leader->world_store->store, &request, now) != 0)
            refuse(m, request.id.number, "memory", NULL);
        settle(leader);
    }
    strings_free(pieces.keys);
    free(pieces.value);
    free(pieces.expected);
}

/* Who asked has gone. */
void world_store_withdraw(struct leader *leader, struct leader_member *m, json_object *msg)
{
    int64_t id;

    if (leader->world_store->store == NULL || !json_get_int(msg, "id", 0, INT64_MAX, &id))
        return;
    store_forget(leader->world_store->store, (struct store_id){(uint64_t)m->id, (uint64_t)id});
    settle(leader);
}

/* ---- life ------------------------------------------------------------------------------------ */

int world_store_begin(struct leader *leader, const struct pmix_relay *relay)
{
    if (leader->world_store->store == NULL)
        leader->world_store->store = store_create();
    return leader->world_store->store != NULL
               ? store_begin_scope(leader->world_store->store, scope_of(relay))
               : -1;
}

void world_store_end(struct leader *leader, const struct pmix_relay *relay)
{
    if (leader->world_store->store == NULL)
        return;
    store_end_scope(leader->world_store->store, scope_of(relay));
    settle(leader);
}

void world_store_member_gone(struct leader *leader, const struct leader_member *m)
{
    if (leader->world_store->store == NULL)
        return;
    store_forget_owner(leader->world_store->store, (uint64_t)m->id);
    settle(leader);
}

struct world_store *world_store_create(void)
{
    return calloc(1, sizeof(struct world_store));
}

void world_store_open(struct leader *leader)
{
    leader_timer_init(leader, &leader->world_store->due);
}

void world_store_close(struct leader *leader)
{
    leader_timer_close(&leader->world_store->due);
}

void world_store_destroy(struct world_store *store)
{
    if (store == NULL)
        return;
    store_destroy(store->store);
    free(store);
}
