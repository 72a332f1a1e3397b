/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store on which the processes of a world meet: bytes under keys, and requests that wait. Pure.
 *
 * It is the store of torch.distributed (doc/internals/live.md). Time is the caller's, in seconds of
 * any clock, and so are the numbers of the owners of requests.
 *
 * Every key belongs to a scope, which is one start of a world. The keys and requests of a scope go
 * when the scope ends. A request to a scope that has not begun, or has ended, is refused. */
#ifndef ELASTIC_STORE_H
#define ELASTIC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_SCOPES_MAX        16                  /* at a time */
#define STORE_KEY_MAX           1024                /* bytes of a key */
#define STORE_VALUE_MAX         ((size_t)1 << 20)   /* bytes of a value */
#define STORE_KEYS_MAX          65536               /* keys of a scope */
#define STORE_BYTES_MAX         ((size_t)64 << 20)  /* bytes of the keys and values of a scope */
#define STORE_ASK_KEYS_MAX      4096                /* keys that one request names */
#define STORE_ASK_BYTES_MAX     ((size_t)256 << 10) /* bytes of the keys that one request names */
#define STORE_WAITERS_MAX       8192                /* requests of a scope that wait */
#define STORE_WAITERS_BYTES_MAX ((size_t)16 << 20)  /* bytes of the keys of these requests */

struct store_scope {
    int generation;
    int attempt;
};

enum store_op {
    STORE_SET,
    STORE_GET,   /* waits until the key is there */
    STORE_WAIT,  /* waits until all keys are there at the same moment */
    STORE_CHECK, /* are the keys there? */
    STORE_ADD,   /* adds to a decimal integer; a missing key counts as 0 */
    /* Sets if the value is the expected one, or if the key is missing and expected is empty. */
    STORE_COMPARE_SET,
    STORE_DELETE,
    STORE_NUM_KEYS
};
#define STORE_OPS 8

enum store_result {
    STORE_DONE,
    STORE_GONE,    /* there is no such scope, or it has ended */
    STORE_TIMEOUT, /* the deadline has passed */
    STORE_BAD,     /* a request that no correct program makes; reason says why */
    STORE_FULL,    /* a limit of the scope is reached; reason says which */
    STORE_NO_MEMORY
};

/* The owner of a request, and its number, which is unique among the waiting requests of the
 * owner. */
struct store_id {
    uint64_t owner;
    uint64_t number;
};

struct store_request {
    struct store_id id;
    struct store_scope scope;
    enum store_op op;
    const char *const *keys; /* one; WAIT and CHECK: any number; NUM_KEYS: none */
    int key_count;
    const void *value; /* SET, COMPARE_SET: the new value */
    size_t len;
    const void *expected; /* COMPARE_SET */
    size_t expected_len;
    int64_t amount;  /* ADD */
    double deadline; /* GET, WAIT */
};

struct store_answer {
    struct store_id id;
    enum store_result result;
    /* GET: the value. COMPARE_SET: the value that is there now, or expected if the key is missing.
     * NULL: none. */
    const void *value;
    size_t len;
    int64_t number;     /* ADD: the sum; CHECK, DELETE: 1 or 0; NUM_KEYS */
    const char *reason; /* of BAD and FULL, a string that is never freed; else NULL */
};

struct store;

struct store *store_create(void); /* NULL: out of memory */
void store_destroy(struct store *store);

/* Begin a scope. A scope that exists already stays as it is. -1: too many scopes, or out of
 * memory. */
int store_begin_scope(struct store *store, struct store_scope scope);
/* Drop the keys of a scope. Requests that wait there are answered STORE_GONE. */
void store_end_scope(struct store *store, struct store_scope scope);

/* Make a request. Every request gets one answer, as a rule at once. Requests of other owners that
 * waited for this one get their answers, too. Everything is copied. -1: no memory is left even for
 * an answer, so it never comes. */
int store_ask(struct store *store, const struct store_request *request, double now);

/* Take the next answer. True with *answer, which is valid until the next call of any function of
 * this file. */
bool store_answer(struct store *store, struct store_answer *answer);

/* Forget one request, or all requests of an owner: their answers are not wanted any more. */
void store_forget(struct store *store, struct store_id id);
void store_forget_owner(struct store *store, uint64_t owner);

/* The earliest deadline of all waiting requests in *when. False: no request waits. */
bool store_deadline(const struct store *store, double *when);
/* Answer the requests whose deadline is not after now: STORE_TIMEOUT. */
void store_expire(struct store *store, double now);

#endif
