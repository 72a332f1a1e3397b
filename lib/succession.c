/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which agent may lead an elastic job (succession.h). */
#include "lib/succession.h"

bool succession_may_claim(int nodes, int votes)
{
    return votes > 0 && 2 * votes >= nodes;
}

/* Nodes that are back may have voted meanwhile. With exactly half of the base, the leader may soon
 * reach more or fewer nodes. */
static double wait_of(const struct lease *lease, double now, int heard, bool more)
{
    bool half = 2 * heard == lease->nodes;
    double until = lease->since + (half ? lease->settle : lease->patience);

    if (more || 2 * heard > lease->nodes || (half && heard == 1) || until < now)
        return 0;
    return until - now;
}

enum lease_state lease_look(struct lease *lease, double now, int heard, bool lost, bool more,
                            double *wait)
{
    *wait = 0;
    if (lost && !lease->lapsed && 2 * heard <= lease->nodes) {
        lease->lapsed = true;
        lease->since = now;
    }
    if (!lease->lapsed)
        return LEASE_HOLDS;
    *wait = wait_of(lease, now, heard, more);
    return *wait > 0 ? LEASE_WAITS : LEASE_CLAIM;
}

void lease_claimed(struct lease *lease)
{
    lease->term++;
    lease->lapsed = false;
}
