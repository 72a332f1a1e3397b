/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may lead an elastic job (doc/takeover.md).
 *
 * A leader leads a *term*. Term 0 is that of the first node of the base; each later one is *claimed*, by making a file that can be
 * made only once. So no two agents ever lead the same term, and what is decided here is only who may try, and how long a leader may go
 * on without trying:
 *
 *   - an agent that has lost its leader votes for another one; who has the votes of half the base may claim the next term;
 *   - a leader may act while it knows that more than half of the base has heard from it lately: these have not voted;
 *   - else it has to claim the next term itself, each time that it loses one of the base, and even if that comes back at once;
 *   - nobody follows a leader of an earlier term than it knows of.
 *
 * Pure. Times are seconds on the caller's clock. */
#ifndef ELASTIC_SUCCESSION_H
#define ELASTIC_SUCCESSION_H

#include <stdbool.h>

/* May who has so many votes (its own among them), of a base of so many nodes, claim the next term? */
bool succession_may_claim(int nodes, int votes);

/* What a leader knows of its right to lead. */
struct lease {
    int nodes; /* of the base */
    /* For so long the silence of those that are lost together may be noticed one after the other. */
    double settle;
    /* For which one that has lost more than half of it leaves it to others to claim the next term. */
    double patience;
    int term;
    bool lapsed;  /* somebody else may be about to lead */
    double since; /* when it has */
};

enum lease_state {
    LEASE_HOLDS,
    LEASE_CLAIM, /* nothing may be done before the next term has been claimed: try to */
    LEASE_WAITS, /* … and that only later */
};

/* heard: nodes of the base, its own among them, that are known to have heard from this leader lately. lost: some have ceased to be
 * since the last call. more: it reaches more of the job's nodes, extensions among them, than it has lost, so it is not for the others to go first.
 * *wait: seconds until LEASE_WAITS ends, if nothing happens. */
enum lease_state lease_look(struct lease *lease, double now, int heard, bool lost, bool more,
                            double *wait);
/* It has claimed the next term. */
void lease_claimed(struct lease *lease);

#endif
