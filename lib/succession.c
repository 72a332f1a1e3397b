/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may lead an elastic job (succession.h). */
#include "lib/succession.h"

bool succession_may_claim(int nodes, int votes)
{
    return votes > 0 && 2 * votes >= nodes;
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
    /* Those that are back may have voted meanwhile. */
    if (2 * heard >= lease->nodes || more)
        return LEASE_CLAIM;
    *wait = lease->since + lease->patience - now;
    return *wait > 0 ? LEASE_WAITS : LEASE_CLAIM;
}

void lease_claimed(struct lease *lease)
{
    lease->term++;
    lease->lapsed = false;
}
