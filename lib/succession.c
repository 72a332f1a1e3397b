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
    *wait = lease->since + lease->patience - now;
    /* Those that are back may have voted meanwhile. */
    if (2 * heard > lease->nodes || more)
        *wait = 0;
    else if (2 * heard == lease->nodes) /* it, and another one: which may be the next to be lost */
        *wait = heard > 1 ? lease->since + lease->settle - now : 0;
    if (*wait <= 0)
        *wait = 0;
    return *wait > 0 ? LEASE_WAITS : LEASE_CLAIM;
}

void lease_claimed(struct lease *lease)
{
    lease->term++;
    lease->lapsed = false;
}
