/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the policy of pools has learnt of a job, and what the job has cost. It outlives a leader and
 * a run of the job in a file of the state directory.
 *
 * Pure: the text of the file goes in and out. Times inside are on the leader's clock, which is
 * another one for the next leader; the file has them in Unix time. */
#ifndef ELASTIC_LEDGER_H
#define ELASTIC_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/policy.h"
#include "lib/pools.h"
#include "lib/retry.h"
#include "lib/spending.h"

#define LEDGER_FILE     "pools.json"
#define LEDGER_FILE_MAX 65536 /* bytes */
#define LEDGER_WHY_MAX  255   /* bytes */
/* Seconds. A leader writes each minute, and the next one begins seconds after its end: what is
 * longer is a clock that was set. */
#define LEDGER_GAP_MAX 600.0
/* The nodes of the base in struct spending: no pool can have that name. */
#define LEDGER_BASE "(base)"

/* What a pool has been like. */
struct ledger_pool {
    char name[POLICY_POOL_NAME_MAX + 1];
    double boot;                  /* estimate, seconds; 0: no node of it has joined yet */
    struct retry refused, failed; /* since when it is not asked (first and max are 0) */
    char why[LEDGER_WHY_MAX + 1]; /* … for users */
};

/* A run of a job. */
struct ledger_run {
    uint32_t job, restarts;
};

/* All zero: a new job. */
struct ledger {
    struct spending spending;
    struct speed speed;
    struct pools_memory memory;
    struct ledger_pool pools[POOLS_MAX];
    int pool_count;
};

/* The record of a pool, a new one if it has none. NULL: there are too many. */
struct ledger_pool *ledger_pool(struct ledger *ledger, const char *name);

/* own: the run that writes it. now: on the leader's clock; unix_now: the same moment. A new string,
 * NULL when out of memory. */
char *ledger_text(const struct ledger *ledger, const struct ledger_run *own, double now,
                  double unix_now);

/* Returns -1 with ledger unchanged where the text is no ledger, or that of another job. What the
 * run before has spent counts, and pauses of pools last. takeover: own has had a leader before. If
 * the ledger is of this run then, the nodes of that leader are still there, and have cost something
 * meanwhile, for LEDGER_GAP_MAX at most. Else this run begins with the base only, and the time
 * between the runs has cost nothing. */
int ledger_parse(struct ledger *ledger, const char *text, size_t len, const struct ledger_run *own,
                 double now, double unix_now, bool takeover, struct error *err);

#endif
