/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries out the fits of a service, one after the other.
 *
 * The record is written before each action, and after each fact. So this process may end anywhere,
 * and the next one goes on. It looks again and again, as all that it waits for is in files or comes
 * from the leader. */
#ifndef FIT_RUNNER_H
#define FIT_RUNNER_H

#include "fit/home.h"
#include "fit/leader_link.h"

struct runner;

struct runner_options {
    const struct home *home;
    struct service_link *link;
    int64_t claim;          /* this process's (home_claim) */
    uint32_t job, restarts; /* of the service … */
    const char *cluster;    /* … on that cluster; NULL: not known */
    const char *guests;     /* the service, which trains for other users, too; NULL: it does not */
};

/* NULL: out of memory. */
struct runner *runner_create(const struct runner_options *options);
void runner_destroy(struct runner *runner); /* accepts NULL */

enum runner_sees {
    RUNNER_IDLE,  /* there is no fit */
    RUNNER_WAITS, /* there is one, and nothing can be done at once */
    RUNNER_MOVED, /* there was something to do */
};

/* One look: at the fit that goes on, or for the next one. -1 with err: it is to be tried again, as
 * long as the claim holds. */
int runner_look(struct runner *runner, enum runner_sees *sees, struct error *err);

/* This process ends, and the fit does not: the access of its trainer is taken back. The next runner
 * gives it again. */
void runner_leave(struct runner *runner);

#endif
