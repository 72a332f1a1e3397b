/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which agent may lead an elastic job (doc/internals/takeover.md).
 *
 * A leader leads a *term*. The first node of the base leads term 0. Each later term is *claimed*,
 * by making a file that can be made only once. So no two agents ever lead the same term. This file
 * decides only which agents may try to claim, and how long a leader may act without a new claim:
 *
 *   - An agent that has lost its leader votes for another agent. An agent with the votes of half
 *     the base may claim the next term.
 *   - A leader may act while it knows that more than half of the base has heard it lately: these
 *     nodes have not voted.
 *   - Else the leader has to claim the next term itself, each time that it loses a node of the
 *     base, even if the node comes back at once.
 *   - No agent follows a leader of an earlier term than it knows of.
 *
 * Pure. Times are seconds on the caller's clock. */
#ifndef ELASTIC_SUCCESSION_H
#define ELASTIC_SUCCESSION_H

#include <stdbool.h>

/* May an agent with that many votes, its own among them, claim the next term? nodes: of the
 * base. */
bool succession_may_claim(int nodes, int votes);

/* What a leader knows about its right to lead. */
struct lease {
    int nodes; /* of the base */
    /* Nodes that are lost together may fall silent one after the other for this long. */
    double settle;
    /* A leader that has lost more than half of the base leaves the next term to other agents for
     * this long. */
    double patience;
    int term;
    bool lapsed;  /* another agent may be about to lead */
    double since; /* when the lease lapsed */
};

enum lease_state {
    LEASE_HOLDS,
    LEASE_CLAIM, /* the leader has to claim the next term before it does anything else */
    LEASE_WAITS, /* the leader has to claim the next term, but not yet */
};

/* heard: nodes of the base, the leader's own among them, that are known to have heard this leader
 * lately. lost: nodes have been lost since the last call. more: the leader reaches more nodes of
 * the job, with extensions, than it has lost, so it need not leave the next term to other agents.
 * *wait: seconds until LEASE_WAITS ends, if nothing happens. */
enum lease_state lease_look(struct lease *lease, double now, int heard, bool lost, bool more,
                            double *wait);
/* The leader has claimed the next term. */
void lease_claimed(struct lease *lease);

#endif
