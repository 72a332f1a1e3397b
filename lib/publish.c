/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the processes of a job have published for each other (publish.h). */
#include "lib/publish.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct entry {
    struct publish_process owner; /* world is in world */
    enum publish_range range;
    enum publish_until until;
    bool orphan; /* its owner has ended */
    char *world, *key, *data;
    size_t len;
    struct entry *next; /* of its bucket, younger */
};

struct waiter {
    struct publish_question question; /* its strings, into which the question points */
    char *world, **keys;
    int needed;
    void *cookie;
    bool look; /* something that it asks for has been published */
    struct waiter *next;
};

struct publish {
    struct entry *buckets[BUCKETS];
    int count;
    size_t bytes;
    struct waiter *first; /* the oldest */
    int waiters;
};

struct publish *publish_create(void)
{
    return calloc(1, sizeof(struct publish));
}

static void entry_free(struct entry *e)
{
    free(e->world);
    free(e->key);
    free(e->data);
    free(e);
}

static void waiter_free(struct waiter *w)
{
    for (int i = 0; w->keys != NULL && i < w->question.count; i++)
        free(w->keys[i]);
    free(w->keys);
    free(w->world);
    free(w);
}

void publish_destroy(struct publish *publish)
{
    if (publish == NULL)
        return;
    for (int i = 0; i < BUCKETS; i++)
        for (struct entry *e = publish->buckets[i], *next; e != NULL; e = next) {
            next = e->next;
            entry_free(e);
        }
    for (struct waiter *w = publish->first, *next; w != NULL; w = next) {
        next = w->next;
        waiter_free(w);
    }
    free(publish);
}

/* ---- who sees what --------------------------------------------------------------------------- */

static bool within(enum publish_range range, const struct publish_process *a,
                   const struct publish_process *b)
{
    switch (range) {
    case PUBLISH_PROCESS:
        return a->rank == b->rank && strcmp(a->world, b->world) == 0;
    case PUBLISH_NODE:
        return a->node == b->node;
    case PUBLISH_WORLD:
        return strcmp(a->world, b->world) == 0;
    default:
        return true;
    }
}

/* A tool has the name of a world of which it is no process. */
static bool sees(const struct publish_process *asker, enum publish_range range,
                 const struct publish_process *owner)
{
    return (asker->rank != PUBLISH_TOOL || range == PUBLISH_NODE || range == PUBLISH_JOB) &&
           within(range, owner, asker);
}

static bool matches(const struct entry *e, const struct publish_question *question)
{
    return sees(&question->asker, e->range, &e->owner) &&
           sees(&question->asker, question->range, &e->owner);
}

/* FNV-1a */
static unsigned bucket_of(const char *key)
{
    uint32_t hash = 2166136261u;

    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash % BUCKETS;
}

static struct entry *find(const struct publish *publish, const struct publish_question *question,
                          const char *key)
{
    struct entry *e = publish->buckets[bucket_of(key)];

    while (e != NULL && (strcmp(e->key, key) != 0 || !matches(e, question)))
        e = e->next;
    return e;
}

static bool named_before(const struct publish_question *question, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(question->keys[i], question->keys[index]) == 0)
            return true;
    return false;
}

static size_t size_of(const char *key, size_t len)
{
    return strlen(key) + len;
}

static void remove_entry(struct publish *publish, struct entry **at)
{
    struct entry *e = *at;

    *at = e->next;
    publish->count--;
    publish->bytes -= size_of(e->key, e->len);
    entry_free(e);
}

/* ---- put ------------------------------------------------------------------------------------- */

/* Does an entry of that key exist that some process would see together with the new one? */
static bool collides(const struct publish *publish, const struct publish_process *owner,
                     enum publish_range range, const char *key)
{
    for (const struct entry *e = publish->buckets[bucket_of(key)]; e != NULL; e = e->next)
        if (strcmp(e->key, key) == 0 &&
            (within(e->range, &e->owner, owner) || within(range, owner, &e->owner)))
            return true;
    return false;
}

static bool fits(const struct publish *publish, int node, int count, size_t bytes)
{
    size_t node_bytes = bytes;
    int node_count = count;

    if (count > PUBLISH_COUNT_MAX - publish->count || bytes > PUBLISH_BYTES_MAX - publish->bytes)
        return false;
    for (int i = 0; i < BUCKETS; i++)
        for (const struct entry *e = publish->buckets[i]; e != NULL; e = e->next)
            if (e->owner.node == node) {
                node_count++;
                node_bytes += size_of(e->key, e->len);
            }
    return node_count <= PUBLISH_NODE_COUNT_MAX && node_bytes <= PUBLISH_NODE_BYTES_MAX;
}

static bool key_ok(const char *key)
{
    return key != NULL && key[0] != '\0' && strnlen(key, PUBLISH_KEY_MAX + 1) <= PUBLISH_KEY_MAX;
}

static enum publish_result check(const struct publish *publish, const struct publish_process *owner,
                                 enum publish_range range, const struct publish_datum *data,
                                 int count, struct error *err)
{
    size_t bytes = 0, key_bytes = 0;

    if (count < 1 || count > PUBLISH_KEYS_MAX) {
        error_set(err, "%d keys at once: 1 to %d", count, PUBLISH_KEYS_MAX);
        return PUBLISH_BAD;
    }
    for (int i = 0; i < count; i++) {
        if (!key_ok(data[i].key)) {
            error_set(err, "a key has 1 to %d bytes", PUBLISH_KEY_MAX);
            return PUBLISH_BAD;
        }
        if (data[i].len > PUBLISH_CALL_BYTES_MAX - bytes) {
            error_set(err, "more than %zu bytes at once", PUBLISH_CALL_BYTES_MAX);
            return PUBLISH_LARGE;
        }
        bytes += data[i].len;
        key_bytes += strlen(data[i].key);
    }
    for (int i = 0; i < count; i++) {
        bool twice = collides(publish, owner, range, data[i].key);

        for (int k = 0; !twice && k < i; k++)
            twice = strcmp(data[k].key, data[i].key) == 0;
        if (twice) {
            error_set(err, "%s is published already", error_value(data[i].key).text);
            return PUBLISH_DUPLICATE;
        }
    }
    if (!fits(publish, owner->node, count, bytes + key_bytes)) {
        error_set(err, "more than %d keys or %zu bytes of one node, or %d and %zu of all",
                  PUBLISH_NODE_COUNT_MAX, PUBLISH_NODE_BYTES_MAX, PUBLISH_COUNT_MAX,
                  PUBLISH_BYTES_MAX);
        return PUBLISH_LARGE;
    }
    return PUBLISH_DONE;
}

static struct entry *entry_create(const struct publish_process *owner, enum publish_range range,
                                  enum publish_until until, const struct publish_datum *datum)
{
    struct entry *e = calloc(1, sizeof(*e));

    if (e == NULL)
        return NULL;
    e->range = range;
    e->until = until;
    e->world = strdup(owner->world);
    e->key = strdup(datum->key);
    e->data = malloc(datum->len + 1);
    if (e->world == NULL || e->key == NULL || e->data == NULL) {
        entry_free(e);
        return NULL;
    }
    e->owner = (struct publish_process){e->world, owner->rank, owner->node};
    e->len = datum->len;
    if (datum->len > 0)
        memcpy(e->data, datum->data, datum->len);
    return e;
}

static void add(struct publish *publish, struct entry *e)
{
    struct entry **at = &publish->buckets[bucket_of(e->key)];

    while (*at != NULL)
        at = &(*at)->next;
    e->next = NULL;
    *at = e;
    publish->count++;
    publish->bytes += size_of(e->key, e->len);
    for (struct waiter *w = publish->first; w != NULL; w = w->next)
        for (int i = 0; !w->look && i < w->question.count; i++)
            w->look = strcmp(w->keys[i], e->key) == 0;
}

enum publish_result publish_put(struct publish *publish, const struct publish_process *owner,
                                enum publish_range range, enum publish_until until,
                                const struct publish_datum *data, int count, struct error *err)
{
    enum publish_result result = check(publish, owner, range, data, count, err);
    struct entry *fresh[PUBLISH_KEYS_MAX];

    for (int i = 0; result == PUBLISH_DONE && i < count; i++) {
        fresh[i] = entry_create(owner, range, until, &data[i]);
        if (fresh[i] != NULL)
            continue;
        while (i-- > 0)
            entry_free(fresh[i]);
        error_set(err, "out of memory");
        return PUBLISH_NO_MEMORY;
    }
    for (int i = 0; result == PUBLISH_DONE && i < count; i++)
        add(publish, fresh[i]);
    return result;
}

/* ---- read and remove ------------------------------------------------------------------------- */

int publish_count(const struct publish *publish, const struct publish_question *question)
{
    int count = 0;

    for (int i = 0; i < question->count; i++)
        count += !named_before(question, i) && find(publish, question, question->keys[i]) != NULL;
    return count;
}

static void forget_read(struct publish *publish, struct entry *e)
{
    struct entry **at = &publish->buckets[bucket_of(e->key)];

    while (*at != e)
        at = &(*at)->next;
    remove_entry(publish, at);
}

int publish_read(struct publish *publish, const struct publish_question *question,
                 void (*found)(const struct publish_process *owner,
                               const struct publish_datum *datum, void *arg),
                 void *arg)
{
    size_t bytes = 0;
    int count = 0;

    for (int i = 0; i < question->count; i++) {
        const struct entry *e = named_before(question, i)
                                    ? NULL
                                    : find(publish, question, question->keys[i]);

        bytes += e != NULL ? e->len : 0;
    }
    if (bytes > PUBLISH_READ_BYTES_MAX)
        return PUBLISH_LARGE;
    for (int i = 0; i < question->count; i++) {
        struct entry *e = named_before(question, i) ? NULL
                                                    : find(publish, question, question->keys[i]);

        if (e == NULL)
            continue;
        found(&e->owner, &(struct publish_datum){e->key, e->data, e->len}, arg);
        count++;
        if (e->until == PUBLISH_UNTIL_READ)
            forget_read(publish, e);
    }
    return count;
}

/* Remove the entries for which gone() is true. */
static int sweep(struct publish *publish, bool (*gone)(struct entry *e, const void *arg),
                 const void *arg)
{
    int count = publish->count;

    for (int i = 0; i < BUCKETS; i++)
        for (struct entry **at = &publish->buckets[i]; *at != NULL;) {
            if (gone(*at, arg))
                remove_entry(publish, at);
            else
                at = &(*at)->next;
        }
    return count - publish->count;
}

static bool is_asked_for(struct entry *e, const void *arg)
{
    const struct publish_question *question = arg;
    bool own = within(PUBLISH_PROCESS, &e->owner, &question->asker);
    bool named = question->count == 0;

    if (!matches(e, question) || (!own && (question->count == 0 || !e->orphan)))
        return false;
    for (int i = 0; !named && i < question->count; i++)
        named = strcmp(e->key, question->keys[i]) == 0;
    return named;
}

int publish_remove(struct publish *publish, const struct publish_question *question)
{
    return sweep(publish, is_asked_for, question);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void drop_waiters(struct publish *publish, enum publish_range range,
                         const struct publish_process *process, void (*dropped)(void *cookie))
{
    for (struct waiter **at = &publish->first, *w; (w = *at) != NULL;) {
        if (!within(range, &w->question.asker, process)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        publish->waiters--;
        dropped(w->cookie);
        waiter_free(w);
    }
}

static bool ends_with_process(struct entry *e, const void *arg)
{
    if (!within(PUBLISH_PROCESS, &e->owner, arg))
        return false;
    e->orphan = true;
    return e->until == PUBLISH_UNTIL_PROCESS || e->range == PUBLISH_PROCESS;
}

void publish_process_gone(struct publish *publish, const struct publish_process *process,
                          void (*dropped)(void *cookie))
{
    sweep(publish, ends_with_process, process);
    drop_waiters(publish, PUBLISH_PROCESS, process, dropped);
}

static bool ends_with_world(struct entry *e, const void *arg)
{
    if (!within(PUBLISH_WORLD, &e->owner, arg))
        return false;
    e->orphan = true;
    return e->until != PUBLISH_UNTIL_JOB || e->range == PUBLISH_PROCESS ||
           e->range == PUBLISH_WORLD;
}

void publish_world_gone(struct publish *publish, const char *world, void (*dropped)(void *cookie))
{
    struct publish_process process = {.world = world};

    sweep(publish, ends_with_world, &process);
    drop_waiters(publish, PUBLISH_WORLD, &process, dropped);
}

static bool ends_with_node(struct entry *e, const void *arg)
{
    if (!within(PUBLISH_NODE, &e->owner, arg))
        return false;
    e->orphan = true;
    return e->until == PUBLISH_UNTIL_PROCESS || e->range == PUBLISH_PROCESS ||
           e->range == PUBLISH_NODE;
}

void publish_node_gone(struct publish *publish, int node, void (*dropped)(void *cookie))
{
    struct publish_process process = {.node = node};

    sweep(publish, ends_with_node, &process);
    drop_waiters(publish, PUBLISH_NODE, &process, dropped);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static struct waiter *waiter_create(const struct publish_question *question, int needed,
                                    void *cookie)
{
    struct waiter *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return NULL;
    w->question = *question;
    w->needed = needed;
    w->cookie = cookie;
    w->look = true;
    w->world = strdup(question->asker.world);
    w->keys = calloc((size_t)question->count, sizeof(*w->keys));
    for (int i = 0; w->keys != NULL && i < question->count; i++)
        if ((w->keys[i] = strdup(question->keys[i])) == NULL) {
            waiter_free(w);
            return NULL;
        }
    if (w->world == NULL || w->keys == NULL) {
        waiter_free(w);
        return NULL;
    }
    w->question.asker.world = w->world;
    w->question.keys = (const char *const *)w->keys;
    return w;
}

static int distinct(const struct publish_question *question)
{
    int count = 0;

    for (int i = 0; i < question->count; i++)
        count += !named_before(question, i);
    return count;
}

enum publish_result publish_wait(struct publish *publish, const struct publish_question *question,
                                 int needed, void *cookie, struct error *err)
{
    struct waiter **at = &publish->first, *w;

    if (question->count < 1 || question->count > PUBLISH_KEYS_MAX || needed < PUBLISH_ALL ||
        needed > distinct(question)) {
        error_set(err, "a wait for %d of %d keys (at most %d)", needed, question->count,
                  PUBLISH_KEYS_MAX);
        return PUBLISH_BAD;
    }
    for (int i = 0; i < question->count; i++)
        if (!key_ok(question->keys[i])) {
            error_set(err, "a key has 1 to %d bytes", PUBLISH_KEY_MAX);
            return PUBLISH_BAD;
        }
    if (publish->waiters >= PUBLISH_WAITERS_MAX) {
        error_set(err, "%d lookups wait: no more", publish->waiters);
        return PUBLISH_LARGE;
    }
    w = waiter_create(question, needed == PUBLISH_ALL ? distinct(question) : needed, cookie);
    if (w == NULL) {
        error_set(err, "out of memory");
        return PUBLISH_NO_MEMORY;
    }
    while (*at != NULL)
        at = &(*at)->next;
    *at = w;
    publish->waiters++;
    return PUBLISH_DONE;
}

void *publish_ready(struct publish *publish, bool (*can)(void *cookie),
                    struct publish_question *question)
{
    for (struct waiter *w = publish->first; w != NULL; w = w->next) {
        if (!w->look)
            continue;
        if (publish_count(publish, &w->question) < w->needed) {
            w->look = false; /* until there is more */
        } else if (can == NULL || can(w->cookie)) {
            *question = w->question;
            return w->cookie;
        }
    }
    return NULL;
}

void publish_unwait(struct publish *publish, const void *cookie)
{
    for (struct waiter **at = &publish->first, *w; (w = *at) != NULL; at = &w->next)
        if (w->cookie == cookie) {
            *at = w->next;
            publish->waiters--;
            waiter_free(w);
            return;
        }
}
