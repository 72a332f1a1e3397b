/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the processes of a job have published for each other, and the lookups that wait. Pure.
 *
 * Published are bytes under a key, seen within a range and kept for some time. The meaning of the
 * bytes is not known here. Time limits are the caller's.
 *
 * A process is known by the name of its world, its rank in that world and the number of its
 * node. */
#ifndef ELASTIC_PUBLISH_H
#define ELASTIC_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

/* The rank of a tool. A tool is on its node, but no process of the world: its end only ends its
 * waiting. */
#define PUBLISH_TOOL (-1)

#define PUBLISH_KEY_MAX        511                 /* bytes of a key */
#define PUBLISH_KEYS_MAX       64                  /* keys that one call publishes or asks for */
#define PUBLISH_CALL_BYTES_MAX ((size_t)1 << 20)   /* that one call publishes */
#define PUBLISH_READ_BYTES_MAX ((size_t)2 << 20)   /* that one call reads */
#define PUBLISH_NODE_COUNT_MAX 1024                /* entries from one node */
#define PUBLISH_NODE_BYTES_MAX ((size_t)16 << 20)  /* bytes of their keys and data */
#define PUBLISH_COUNT_MAX      65536               /* entries */
#define PUBLISH_BYTES_MAX      ((size_t)256 << 20) /* bytes of their keys and data */
#define PUBLISH_WAITERS_MAX    4096                /* lookups that wait */

/* Who sees an entry. In a lookup: whose entries are looked at. */
enum publish_range {
    PUBLISH_PROCESS, /* its owner alone */
    PUBLISH_NODE,    /* processes on its owner's node */
    PUBLISH_WORLD,   /* processes of its owner's world */
    PUBLISH_JOB      /* all */
};

/* How long an entry is kept, if nobody removes it. An entry that nobody can see any more is never
 * kept. */
enum publish_until {
    PUBLISH_UNTIL_READ,    /* until it has been read once; no longer than its owner's world */
    PUBLISH_UNTIL_PROCESS, /* as long as its owner */
    PUBLISH_UNTIL_WORLD,   /* as long as its owner's world */
    PUBLISH_UNTIL_JOB
};

struct publish_process {
    const char *world;
    int rank;
    int node;
};

struct publish_datum {
    const char *key;
    const void *data;
    size_t len;
};

struct publish_question {
    struct publish_process asker;
    enum publish_range range;
    const char *const *keys;
    int count;
};

enum publish_result {
    PUBLISH_LARGE = -4,     /* a limit is reached */
    PUBLISH_DUPLICATE = -3, /* there is an entry with this key, and some process would see both */
    PUBLISH_BAD = -2,       /* a question that no correct program asks */
    PUBLISH_NO_MEMORY = -1,
    PUBLISH_DONE = 0
};

struct publish;

struct publish *publish_create(void); /* NULL: out of memory */
void publish_destroy(struct publish *publish);

/* Publish all of data, or nothing, with the reason in err (may be NULL). Everything is copied. A
 * lookup that waits may now be complete: publish_ready. */
enum publish_result publish_put(struct publish *publish, const struct publish_process *owner,
                                enum publish_range range, enum publish_until until,
                                const struct publish_datum *data, int count, struct error *err);

/* How many of the keys are published. A key that is named twice counts once. */
int publish_count(const struct publish *publish, const struct publish_question *question);

/* Call found for each of the keys that is published, in the order of the keys; the pointers are
 * valid during the call. Entries that are to be read once are then removed. Returns the number of
 * entries found. PUBLISH_LARGE: the entries have more than PUBLISH_READ_BYTES_MAX, and nothing has
 * been read. */
int publish_read(struct publish *publish, const struct publish_question *question,
                 void (*found)(const struct publish_process *owner,
                               const struct publish_datum *datum, void *arg),
                 void *arg);

/* Remove the entries that the asker has published in that range under these keys (count 0: all
 * keys). Entries of ended processes under these keys are removed, too, because nobody else can
 * remove them. Returns the number of removed entries. */
int publish_remove(struct publish *publish, const struct publish_question *question);

/* A process has ended, a world has ended (it has no process left), a node is gone. Entries that are
 * kept no longer than that are removed. So are lookups that wait there: each cookie is passed to
 * dropped. */
void publish_process_gone(struct publish *publish, const struct publish_process *process,
                          void (*dropped)(void *cookie));
void publish_world_gone(struct publish *publish, const char *world, void (*dropped)(void *cookie));
void publish_node_gone(struct publish *publish, int node, void (*dropped)(void *cookie));

#define PUBLISH_ALL (-1)

/* Wait until `needed` of the keys are published. PUBLISH_ALL: all of them. 0: only for its turn. A
 * key that is named twice counts once. The question is copied. */
enum publish_result publish_wait(struct publish *publish, const struct publish_question *question,
                                 int needed, void *cookie, struct error *err);
/* The lookup that has waited longest among those that are complete and for which `can` (NULL:
 * always) is true. Returns its cookie, and its question, which is valid until the lookup stops
 * waiting. Read, end the waiting, call again. NULL: no lookup is complete. */
void *publish_ready(struct publish *publish, bool (*can)(void *cookie),
                    struct publish_question *question);
void publish_unwait(struct publish *publish, const void *cookie);

#endif
