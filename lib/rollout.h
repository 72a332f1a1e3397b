/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the replicas of a role come from one version to another, without too many at once and without
 * too few that are ready. Pure.
 *
 * The caller says what there is, and does what rollout_run() answers. There are never more replicas
 * than `replicas` and the surge, those that are draining among them. As long as it is the rollout
 * that ends replicas, so many are ready: `replicas` less the unavailable, and at least one. What
 * fails is the caller's to end: the rollout starts others. */
#ifndef ELASTIC_ROLLOUT_H
#define ELASTIC_ROLLOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define ROLLOUT_REPLICAS_MAX 10000

/* "2" or "50%". */
struct rollout_amount {
    int value; /* 0 to ROLLOUT_REPLICAS_MAX; in percent 0 to 100 */
    bool percent;
};

/* 0, or -1 with *amount unchanged. */
int rollout_amount_parse(const char *text, size_t len, struct rollout_amount *amount);

struct rollout_limits {
    int surge;       /* so many more than replicas; a part is rounded up */
    int unavailable; /* so many fewer ready ones; rounded down. One stays ready */
};

/* -1 with err: neither lets anything happen. */
int rollout_limits(int replicas, const struct rollout_amount *surge,
                   const struct rollout_amount *unavailable, struct rollout_limits *limits,
                   struct error *err);

/* The caller may keep and copy it. */
struct rollout {
    int replicas;
    struct rollout_limits limits;
    /* Replicas come to another version as they are, and say so: none is replaced for its version,
     * but those that are `other` */
    bool in_place;
    /* One replica of the version gets ready first: the surge has to have room for it. Then all of
     * other versions go at once, down to what limits allow. */
    bool one_first;
    int fail_fast;   /* so many new replicas in a row that do not get ready end it; 0: none does */
    int64_t version; /* that all are to have */
    int64_t before;  /* that they had; 0: there were none */
    int failures;    /* in a row */
    bool back;       /* it goes back to the version before */
    bool told;       /* … and FAILED has been said */
    bool done;
};

struct rollout_replica {
    int id;
    int64_t version;
    bool ready;
    bool leaves; /* it is draining, or has failed, and is still there */
    /* In place: it was started in another way than those of the version are. So it does not come to
     * that as it is, whatever it says. */
    bool other;
};

enum rollout_action_kind {
    ROLLOUT_START,  /* one replica of that version */
    ROLLOUT_DRAIN,  /* that replica */
    ROLLOUT_WAIT,   /* nothing can be done: text says for what it waits */
    ROLLOUT_FAILED, /* it goes back from now on: text. Once */
    ROLLOUT_DONE,   /* all have that version; after FAILED: the one before. Once */
};

struct rollout_action {
    enum rollout_action_kind kind;
    int id;
    int64_t version;
    char text[160];
};

struct rollout_actions {
    struct rollout_action *list; /* owned; free() */
    int count, room;
    int lacks; /* so many more it would start if there was room for them */
};

/* All replicas are to have this version from now on. The version that they had before is what the
 * latest rollout that was DONE has brought, unless that was said by rollout.before. */
void rollout_begin(struct rollout *rollout, int64_t version);
/* A replica has got ready. */
void rollout_ready(struct rollout *rollout, int64_t version);
/* A replica of that version has ended, or was ended, before it was ready; one in place cannot come
 * to it. */
void rollout_failed(struct rollout *rollout, int64_t version);

/* What is to be done now. There are these replicas, and room for so many more (free). A second call
 * with what the first one has changed does nothing. -1: out of memory. */
int rollout_run(struct rollout *rollout, const struct rollout_replica *list, int count, int free,
                struct rollout_actions *out);

#endif
