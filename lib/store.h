/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store on which the processes of a world meet (torch.distributed's; doc/live.md): bytes under keys, and requests that wait for keys.
 * Pure: time is the caller's, in seconds of any clock, and so are the names of those who ask.
 *
 * Every key belongs to a scope, one start of a world. What belongs to a scope goes when the scope ends, and nothing can be asked of it
 * before it has begun or after it has ended. */
#ifndef ELASTIC_STORE_H
#define ELASTIC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_SCOPES_MAX        16                  /* at a time */
#define STORE_KEY_MAX           1024                /* bytes of a key */
#define STORE_VALUE_MAX         ((size_t)1 << 20)   /* bytes of a value */
#define STORE_KEYS_MAX          65536               /* keys of a scope */
#define STORE_BYTES_MAX         ((size_t)64 << 20)  /* … and their and their values' bytes */
#define STORE_ASK_KEYS_MAX      4096                /* keys that one request names */
#define STORE_ASK_BYTES_MAX     ((size_t)256 << 10) /* … and their bytes */
#define STORE_WAITERS_MAX       8192                /* requests of a scope that wait */
#define STORE_WAITERS_BYTES_MAX ((size_t)16 << 20) /* … and the bytes of the keys that they name */

struct store_scope {
    int generation;
    int attempt;
};

enum store_op {
    STORE_SET,
    STORE_GET,         /* waits until the key is there */
    STORE_WAIT,        /* … until all keys are, at the same moment */
    STORE_CHECK,       /* are they? */
    STORE_ADD,         /* to a decimal integer; a key that is not there counts as 0 */
    STORE_COMPARE_SET, /* if the value is the expected one, or none is and expected is empty */
    STORE_DELETE,
    STORE_NUM_KEYS
};
#define STORE_OPS 8

enum store_result {
    STORE_DONE,
    STORE_GONE,    /* there is no such scope (any more) */
    STORE_TIMEOUT, /* the deadline has passed */
    STORE_BAD,     /* what nobody who means well asks for; reason says why */
    STORE_FULL,    /* a limit of the scope is reached; reason says which */
    STORE_NO_MEMORY
};

/* Who asks, and the number of the request, which is unique among those of the owner that wait. */
struct store_id {
    uint64_t owner;
    uint64_t number;
};

struct store_request {
    struct store_id id;
    struct store_scope scope;
    enum store_op op;
    const char *const *keys; /* one, but for WAIT and CHECK (any number), NUM_KEYS (none) */
    int key_count;
    const void *value; /* SET, COMPARE_SET: the new one */
    size_t len;
    const void *expected; /* COMPARE_SET */
    size_t expected_len;
    int64_t amount;  /* ADD */
    double deadline; /* GET, WAIT */
};

struct store_answer {
    struct store_id id;
    enum store_result result;
    const void
        *value; /* GET; COMPARE_SET: what is there now, or expected, if nothing is. NULL: none */
    size_t len;
    int64_t number;     /* ADD: the sum; CHECK, DELETE: 1 or 0; NUM_KEYS */
    const char *reason; /* of BAD and FULL, a string that stays; else NULL */
};

struct store;

struct store *store_create(void); /* NULL: out of memory */
void store_destroy(struct store *store);

/* -1: too many, or out of memory. One that is there already stays as it is. */
int store_begin_scope(struct store *store, struct store_scope scope);
/* Drop its keys; whoever waits there is answered STORE_GONE. */
void store_end_scope(struct store *store, struct store_scope scope);

/* Every request gets one answer, as a rule at once; those that others wait for by then get theirs too. Everything is copied. -1: out of memory
 * for even that answer: it never comes. */
int store_ask(struct store *store, const struct store_request *request, double now);

/* Take the next answer: true with *answer, which is good until the next call of any function of this file. */
bool store_answer(struct store *store, struct store_answer *answer);

/* Nobody wants the answer any more, or nobody of that owner any. */
void store_forget(struct store *store, struct store_id id);
void store_forget_owner(struct store *store, uint64_t owner);

/* The earliest deadline of those that wait in *when. False: nobody waits. */
bool store_deadline(const struct store *store, double *when);
/* Answer those whose deadline is not after now: STORE_TIMEOUT. */
void store_expire(struct store *store, double now);

#endif
