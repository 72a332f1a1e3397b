/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A question to Slurm: which nodes of a pool are powered down, and what follows for extensions that
 * wait in its queue and must not power nodes up. */
#ifndef ELASTIC_AGENT_LEADER_POWER_LOOK_H
#define ELASTIC_AGENT_LEADER_POWER_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/slurm_client.h"

struct pool;

struct power_pending {
    uint32_t job;
    int nodes;
    char **asleep; /* that it stays off because they are powered down: then, and now */
    bool avoids;   /* it stays off those to avoid as well */
    bool too_few;  /* are up: it cannot start, and stays as it was */
};

struct power_look {
    const struct pool *pool;
    char **others; /* nodes that the job has, or that it stays off anyway */
    char **avoid;  /* nodes that are left out for a while */
    struct power_pending *pending;
    int count;
    int questions; /* so far */
    bool known;    /* Slurm has answered; else err says why not */
    struct slurm_power power;
    struct error err;
};

/* Room for so many pending extensions. NULL: out of memory. */
struct power_look *power_look_create(const struct pool *pool, int pending);
void power_look_destroy(struct power_look *look); /* accepts NULL */

/* In a thread: ask, and have pending extensions stay off nodes that are powered down now. */
void power_look_ask(struct power_look *look);

#endif
