/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the processes of a job have published for each other: bytes under a key, seen within a range and kept for some time, and the lookups
 * that wait for them. Pure: bytes are opaque, and time limits are the caller's.
 *
 * A process is known by the name of its world, its rank there and the number of its node. */
#ifndef ELASTIC_PUBLISH_H
#define ELASTIC_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

/* The rank of a tool: it is on its node, but no process of the world, whose end only ends its waiting. */
#define PUBLISH_TOOL (-1)

#define PUBLISH_KEY_MAX        511                 /* bytes of a key */
#define PUBLISH_KEYS_MAX       64                  /* that one call publishes or asks for */
#define PUBLISH_CALL_BYTES_MAX ((size_t)1 << 20)   /* that one call publishes */
#define PUBLISH_READ_BYTES_MAX ((size_t)2 << 20)   /* that one call reads */
#define PUBLISH_NODE_COUNT_MAX 1024                /* entries from one node */
#define PUBLISH_NODE_BYTES_MAX ((size_t)16 << 20)  /* … and their keys and data */
#define PUBLISH_COUNT_MAX      65536               /* entries */
#define PUBLISH_BYTES_MAX      ((size_t)256 << 20) /* … and their keys and data */
#define PUBLISH_WAITERS_MAX    4096                /* lookups that wait */

/* Who sees an entry. In a lookup: whose entries are looked at. */
enum publish_range {
    PUBLISH_PROCESS, /* its owner alone */
    PUBLISH_NODE,    /* processes on its owner's node */
    PUBLISH_WORLD,   /* processes of its owner's world */
    PUBLISH_JOB      /* all */
};

/* How long an entry is kept, if it is not removed. None that nobody can see any more is. */
enum publish_until {
    PUBLISH_UNTIL_READ,    /* once; no longer than its owner's world */
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
    PUBLISH_LARGE = -4, /* a limit is reached */
    PUBLISH_DUPLICATE =
        -3,           /* a key is there that one of the two owners' processes would see twice */
    PUBLISH_BAD = -2, /* what nobody who means well asks for */
    PUBLISH_NO_MEMORY = -1,
    PUBLISH_DONE = 0
};

struct publish;

struct publish *publish_create(void); /* NULL: out of memory */
void publish_destroy(struct publish *publish);

/* All of data, or nothing with the reason in err (may be NULL). Everything is copied. Whoever waits may now have what it waits for:
 * publish_ready. */
enum publish_result publish_put(struct publish *publish, const struct publish_process *owner,
                                enum publish_range range, enum publish_until until,
                                const struct publish_datum *data, int count, struct error *err);

/* How many of the keys are there. A key that is named twice counts once. */
int publish_count(const struct publish *publish, const struct publish_question *question);

/* Call found for each of the keys that is there, in their order; the pointers are good during the call. Those that are to be read once are gone then.
 * PUBLISH_LARGE: it is more than PUBLISH_READ_BYTES_MAX, and nothing has been read. Else the number of those found. */
int publish_read(struct publish *publish, const struct publish_question *question,
                 void (*found)(const struct publish_process *owner,
                               const struct publish_datum *datum, void *arg),
                 void *arg);

/* Remove what the asker has published in that range under these keys (count 0: all keys), and what is left under them by processes that have
 * ended, which nobody else can remove. Returns how many there were. */
int publish_remove(struct publish *publish, const struct publish_question *question);

/* A process has ended, a world has (no process of it is left), a node is gone: what was kept no longer than that goes, and who
 * waits there does, too: its cookie is passed to dropped. */
void publish_process_gone(struct publish *publish, const struct publish_process *process,
                          void (*dropped)(void *cookie));
void publish_world_gone(struct publish *publish, const char *world, void (*dropped)(void *cookie));
void publish_node_gone(struct publish *publish, int node, void (*dropped)(void *cookie));

#define PUBLISH_ALL (-1)

/* Wait until so many of the keys are there (PUBLISH_ALL; a key that is named twice counts once; 0: for its turn only). The question is copied. */
enum publish_result publish_wait(struct publish *publish, const struct publish_question *question,
                                 int needed, void *cookie, struct error *err);
/* The one who has waited longest of those that have what they wait for now, and for whom can says so (NULL: for all): its cookie, and its
 * question, which is good until it waits no longer. Read, end its waiting, ask again: NULL: nobody. */
void *publish_ready(struct publish *publish, bool (*can)(void *cookie),
                    struct publish_question *question);
void publish_unwait(struct publish *publish, const void *cookie);

#endif
