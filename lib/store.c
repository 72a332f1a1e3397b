/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store on which the processes of a world meet (store.h). */
#include "lib/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/linkhash.h>

#define NUMBER_SIZE 24 /* of an int64_t in decimal */

/* A value, shared by its key and the answers that carry it: a thousand requests that wait for a
 * large value do not need a thousand copies. */
struct bytes {
    int holders;
    size_t len;
    char data[];
};

/* A request that waits, or that has been answered. */
struct asked {
    struct store_answer answer;
    struct bytes *bytes; /* into which answer.value points */
    enum store_op op;
    char **keys;
    int key_count;
    size_t key_bytes;
    double deadline;
    struct asked *next;
};

struct scope {
    struct store_scope name;
    struct lh_table *table; /* key → struct bytes */
    size_t bytes;
    struct asked *first, **last; /* requests that wait, the oldest first */
    int waiters;
    size_t waiter_bytes;
    struct scope *next;
};

struct store {
    struct scope *scopes;
    int scope_count;
    struct asked *first, **last; /* requests that have been answered */
    struct asked *taken;         /* by the last store_answer */
};

/* ---- pieces ---------------------------------------------------------------------------------- */

static struct bytes *bytes_create(const void *data, size_t len)
{
    struct bytes *bytes = malloc(sizeof(*bytes) + len);

    if (bytes == NULL)
        return NULL;
    bytes->holders = 1;
    bytes->len = len;
    if (len > 0)
        memcpy(bytes->data, data, len);
    return bytes;
}

static void bytes_release(struct bytes *bytes)
{
    if (bytes != NULL && --bytes->holders == 0)
        free(bytes);
}

static void asked_free(struct asked *asked)
{
    for (int i = 0; asked != NULL && i < asked->key_count; i++)
        free(asked->keys[i]);
    if (asked != NULL) {
        free(asked->keys);
        bytes_release(asked->bytes);
    }
    free(asked);
}

static void entry_free(struct lh_entry *entry)
{
    free(lh_entry_k(entry));
    bytes_release(lh_entry_v(entry));
}

static bool same_scope(struct store_scope a, struct store_scope b)
{
    return a.generation == b.generation && a.attempt == b.attempt;
}

static struct scope **find_scope(struct store *store, struct store_scope name)
{
    struct scope **at = &store->scopes;

    while (*at != NULL && !same_scope((*at)->name, name))
        at = &(*at)->next;
    return at;
}

static struct lh_entry *find_entry(const struct scope *scope, const char *key)
{
    return lh_table_lookup_entry(scope->table, key);
}

static struct bytes *find(const struct scope *scope, const char *key)
{
    struct lh_entry *entry = find_entry(scope, key);

    return entry != NULL ? lh_entry_v(entry) : NULL;
}

static int count_present(const struct scope *scope, const char *const *keys, int count)
{
    int present = 0;

    while (present < count && find_entry(scope, keys[present]) != NULL)
        present++;
    return present;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void answer(struct store *store, struct asked *asked, enum store_result result)
{
    asked->answer.result = result;
    asked->next = NULL;
    *store->last = asked;
    store->last = &asked->next;
}

static void set_value(struct asked *asked, struct bytes *bytes)
{
    bytes->holders++;
    asked->bytes = bytes;
    asked->answer.value = bytes->data;
    asked->answer.len = bytes->len;
}

/* Remove the request that *at points to from the waiting requests. */
static struct asked *unlink_waiter(struct scope *scope, struct asked **at)
{
    struct asked *asked = *at;

    *at = asked->next;
    if (*at == NULL)
        scope->last = at;
    scope->waiters--;
    scope->waiter_bytes -= asked->key_bytes;
    return asked;
}

static bool is_ready(const struct scope *scope, const struct asked *asked)
{
    return count_present(scope, (const char *const *)asked->keys, asked->key_count) ==
           asked->key_count;
}

static void answer_present(struct store *store, const struct scope *scope, struct asked *asked)
{
    if (asked->op == STORE_GET)
        set_value(asked, find(scope, asked->keys[0]));
    answer(store, asked, STORE_DONE);
}

static bool names(const struct asked *asked, const char *key)
{
    for (int i = 0; i < asked->key_count; i++)
        if (strcmp(asked->keys[i], key) == 0)
            return true;
    return false;
}

/* That key has been set: answer the requests that waited for it. */
static void answer_waiters(struct store *store, struct scope *scope, const char *key)
{
    for (struct asked **at = &scope->first; *at != NULL;) {
        if (names(*at, key) && is_ready(scope, *at))
            answer_present(store, scope, unlink_waiter(scope, at));
        else
            at = &(*at)->next;
    }
}

bool store_answer(struct store *store, struct store_answer *taken)
{
    struct asked *asked = store->first;

    asked_free(store->taken);
    store->taken = asked;
    if (asked == NULL)
        return false;
    store->first = asked->next;
    if (store->first == NULL)
        store->last = &store->first;
    *taken = asked->answer;
    return true;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

struct store *store_create(void)
{
    struct store *store = calloc(1, sizeof(*store));

    if (store != NULL)
        store->last = &store->first;
    return store;
}

int store_begin_scope(struct store *store, struct store_scope name)
{
    struct scope *scope;

    if (*find_scope(store, name) != NULL)
        return 0;
    scope = store->scope_count < STORE_SCOPES_MAX ? calloc(1, sizeof(*scope)) : NULL;
    if (scope == NULL || (scope->table = lh_kchar_table_new(64, entry_free)) == NULL) {
        free(scope);
        return -1;
    }
    scope->name = name;
    scope->last = &scope->first;
    scope->next = store->scopes;
    store->scopes = scope;
    store->scope_count++;
    return 0;
}

void store_end_scope(struct store *store, struct store_scope name)
{
    struct scope **at = find_scope(store, name), *scope = *at;

    if (scope == NULL)
        return;
    while (scope->first != NULL)
        answer(store, unlink_waiter(scope, &scope->first), STORE_GONE);
    *at = scope->next;
    store->scope_count--;
    lh_table_free(scope->table);
    free(scope);
}

void store_destroy(struct store *store)
{
    struct store_answer taken;

    if (store == NULL)
        return;
    while (store->scopes != NULL)
        store_end_scope(store, store->scopes->name);
    while (store_answer(store, &taken))
        ;
    free(store);
}

/* ---- operations ------------------------------------------------------------------------------ */

static enum store_result refuse(struct asked *asked, enum store_result result, const char *reason)
{
    asked->answer.reason = reason;
    return result;
}

/* Takes bytes over. Whether the key is new is in *fresh. */
static enum store_result put(struct scope *scope, struct asked *asked, const char *key,
                             struct bytes *bytes, bool *fresh)
{
    struct lh_entry *entry = find_entry(scope, key);
    struct bytes *old = entry != NULL ? lh_entry_v(entry) : NULL;
    size_t freed = old != NULL ? old->len : 0, needed;
    char *copy;

    *fresh = false;
    if (bytes == NULL)
        return STORE_NO_MEMORY;
    needed = bytes->len + (old == NULL ? strlen(key) : 0);
    if (needed > STORE_BYTES_MAX - (scope->bytes - freed)) {
        bytes_release(bytes);
        return refuse(asked, STORE_FULL, "more than 64 MiB of keys and values in this world");
    }
    if (old != NULL) {
        lh_entry_set_val(entry, bytes);
        bytes_release(old);
    } else {
        if (lh_table_length(scope->table) >= STORE_KEYS_MAX) {
            bytes_release(bytes);
            return refuse(asked, STORE_FULL, "more than 65536 keys in this world");
        }
        copy = strdup(key);
        if (copy == NULL || lh_table_insert(scope->table, copy, bytes) != 0) {
            free(copy);
            bytes_release(bytes);
            return STORE_NO_MEMORY;
        }
        *fresh = true;
    }
    scope->bytes += needed - freed;
    return STORE_DONE;
}

static enum store_result do_set(struct scope *scope, const struct store_request *request,
                                struct asked *asked, bool *fresh)
{
    return put(scope, asked, request->keys[0], bytes_create(request->value, request->len), fresh);
}

/* Read the whole value as a decimal integer, as add itself writes it. */
static bool to_number(const struct bytes *bytes, int64_t *number)
{
    char text[NUMBER_SIZE], *end;

    if (bytes->len == 0 || bytes->len >= sizeof(text))
        return false;
    memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = '\0';
    if (strspn(text, "-0123456789") != bytes->len)
        return false;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && end != text;
}

static enum store_result do_add(struct scope *scope, const struct store_request *request,
                                struct asked *asked, bool *fresh)
{
    const struct bytes *old = find(scope, request->keys[0]);
    enum store_result result;
    char text[NUMBER_SIZE];
    int64_t sum = 0;
    int len;

    if (old != NULL && !to_number(old, &sum))
        return refuse(asked, STORE_BAD, "what is there is no integer");
    if (__builtin_add_overflow(sum, request->amount, &sum))
        return refuse(asked, STORE_BAD, "the sum is too large");
    len = snprintf(text, sizeof(text), "%" PRId64, sum);
    result = put(scope, asked, request->keys[0], bytes_create(text, (size_t)len), fresh);
    if (result == STORE_DONE)
        asked->answer.number = sum;
    return result;
}

static enum store_result do_compare_set(struct scope *scope, const struct store_request *request,
                                        struct asked *asked, bool *fresh)
{
    struct bytes *old = find(scope, request->keys[0]), *now = old;
    enum store_result result = STORE_DONE;
    bool same = old == NULL
                    ? request->expected_len == 0
                    : old->len == request->expected_len &&
                          (old->len == 0 || memcmp(old->data, request->expected, old->len) == 0);

    if (same) {
        result = do_set(scope, request, asked, fresh);
        now = find(scope, request->keys[0]);
    }
    if (result != STORE_DONE)
        return result;
    if (now != NULL) {
        set_value(asked, now);
        return STORE_DONE;
    }
    /* As torch's own stores do: if the key is missing, the expected value comes back. */
    asked->bytes = bytes_create(request->expected, request->expected_len);
    if (asked->bytes == NULL)
        return STORE_NO_MEMORY;
    asked->answer.value = asked->bytes->data;
    asked->answer.len = asked->bytes->len;
    return STORE_DONE;
}

static enum store_result do_delete(struct scope *scope, const struct store_request *request,
                                   struct asked *asked, bool *fresh)
{
    struct lh_entry *entry = find_entry(scope, request->keys[0]);

    (void)fresh;
    if (entry != NULL) {
        scope->bytes -= strlen(request->keys[0]) + ((struct bytes *)lh_entry_v(entry))->len;
        lh_table_delete_entry(scope->table, entry);
        asked->answer.number = 1;
    }
    return STORE_DONE;
}

static enum store_result do_check(struct scope *scope, const struct store_request *request,
                                  struct asked *asked, bool *fresh)
{
    (void)fresh;
    asked->answer.number = count_present(scope, request->keys, request->key_count) ==
                           request->key_count;
    return STORE_DONE;
}

static enum store_result do_num_keys(struct scope *scope, const struct store_request *request,
                                     struct asked *asked, bool *fresh)
{
    (void)request;
    (void)fresh;
    asked->answer.number = lh_table_length(scope->table);
    return STORE_DONE;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Keep a copy of the keys that the request waits for. */
static enum store_result add_waiter(struct scope *scope, const struct store_request *request,
                                    struct asked *asked, size_t key_bytes)
{
    if (scope->waiters >= STORE_WAITERS_MAX ||
        key_bytes > STORE_WAITERS_BYTES_MAX - scope->waiter_bytes)
        return refuse(asked, STORE_FULL, "too many requests wait in this world");
    asked->keys = calloc((size_t)request->key_count + 1, sizeof(*asked->keys));
    for (int i = 0; asked->keys != NULL && i < request->key_count; i++) {
        asked->keys[i] = strdup(request->keys[i]);
        if (asked->keys[i] == NULL)
            return STORE_NO_MEMORY;
        asked->key_count++;
    }
    if (asked->keys == NULL)
        return STORE_NO_MEMORY;
    asked->key_bytes = key_bytes;
    asked->deadline = request->deadline;
    asked->next = NULL;
    *scope->last = asked;
    scope->last = &asked->next;
    scope->waiters++;
    scope->waiter_bytes += key_bytes;
    return STORE_DONE;
}

static void wait_or_answer(struct store *store, struct scope *scope,
                           const struct store_request *request, struct asked *asked,
                           size_t key_bytes, double now)
{
    enum store_result result;

    if (count_present(scope, request->keys, request->key_count) == request->key_count) {
        if (asked->op == STORE_GET)
            set_value(asked, find(scope, request->keys[0]));
        answer(store, asked, STORE_DONE);
    } else if (!(request->deadline > now)) {
        answer(store, asked, STORE_TIMEOUT);
    } else {
        result = add_waiter(scope, request, asked, key_bytes);
        if (result != STORE_DONE)
            answer(store, asked, result);
    }
}

/* Why the request is not allowed, NULL: it is. */
static const char *fault_of(const struct store_request *request, size_t *key_bytes)
{
    bool many = request->op == STORE_WAIT || request->op == STORE_CHECK;

    *key_bytes = 0;
    if ((unsigned)request->op >= STORE_OPS)
        return "no such operation";
    if (!many && request->key_count != (request->op == STORE_NUM_KEYS ? 0 : 1))
        return "a wrong number of keys";
    if (request->key_count < 0 || request->key_count > STORE_ASK_KEYS_MAX)
        return "more than 4096 keys at once";
    for (int i = 0; i < request->key_count; i++) {
        size_t len = strnlen(request->keys[i], STORE_KEY_MAX + 1);

        if (len == 0 || len > STORE_KEY_MAX)
            return "a key has 1 to 1024 bytes";
        *key_bytes += len;
    }
    if (*key_bytes > STORE_ASK_BYTES_MAX)
        return "more than 256 KiB of keys at once";
    if (request->len > STORE_VALUE_MAX || request->expected_len > STORE_VALUE_MAX)
        return "a value has at most 1 MiB";
    return NULL;
}

int store_ask(struct store *store, const struct store_request *request, double now)
{
    static enum store_result (*const table[STORE_OPS])(struct scope *, const struct store_request *,
                                                       struct asked *, bool *fresh) = {
        [STORE_SET] = do_set,       [STORE_ADD] = do_add,     [STORE_COMPARE_SET] = do_compare_set,
        [STORE_DELETE] = do_delete, [STORE_CHECK] = do_check, [STORE_NUM_KEYS] = do_num_keys,
    };
    struct scope *scope = *find_scope(store, request->scope);
    struct asked *asked = calloc(1, sizeof(*asked));
    bool fresh = false;
    size_t key_bytes;

    if (asked == NULL)
        return -1;
    asked->answer.id = request->id;
    asked->op = request->op;
    asked->answer.reason = fault_of(request, &key_bytes);
    if (asked->answer.reason != NULL) {
        answer(store, asked, STORE_BAD);
    } else if (scope == NULL) {
        answer(store, asked, STORE_GONE);
    } else if (request->op == STORE_GET || request->op == STORE_WAIT) {
        wait_or_answer(store, scope, request, asked, key_bytes, now);
    } else {
        answer(store, asked, table[request->op](scope, request, asked, &fresh));
        if (fresh)
            answer_waiters(store, scope, request->keys[0]);
    }
    return 0;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void forget(struct store *store, uint64_t owner, const uint64_t *number)
{
    for (struct scope *scope = store->scopes; scope != NULL; scope = scope->next)
        for (struct asked **at = &scope->first; *at != NULL;) {
            const struct store_id *id = &(*at)->answer.id;

            if (id->owner == owner && (number == NULL || id->number == *number))
                asked_free(unlink_waiter(scope, at));
            else
                at = &(*at)->next;
        }
}

void store_forget(struct store *store, struct store_id id)
{
    forget(store, id.owner, &id.number);
}

void store_forget_owner(struct store *store, uint64_t owner)
{
    forget(store, owner, NULL);
}

bool store_deadline(const struct store *store, double *when)
{
    bool any = false;

    for (const struct scope *scope = store->scopes; scope != NULL; scope = scope->next)
        for (const struct asked *asked = scope->first; asked != NULL; asked = asked->next) {
            if (!any || asked->deadline < *when)
                *when = asked->deadline;
            any = true;
        }
    return any;
}

void store_expire(struct store *store, double now)
{
    for (struct scope *scope = store->scopes; scope != NULL; scope = scope->next)
        for (struct asked **at = &scope->first; *at != NULL;) {
            if ((*at)->deadline <= now)
                answer(store, unlink_waiter(scope, at), STORE_TIMEOUT);
            else
                at = &(*at)->next;
        }
}
