/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of extension jobs is asked of Slurm (scancel.h). Calls into libslurm block for as long as
 * slurmctld does, so they run in libuv's threads. */
#include "agent/leader/scancel.h"

#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/planning.h"
#include "agent/leader/slurm_look.h"
#include "common/log.h"
#include "common/slurm_queue.h"

struct scancel {
    int cancelling; /* cancellations under way */
    bool cleaned;   /* extensions have been cancelled at the end */
};

struct cancelling {
    struct leader *leader;
    uint32_t *jobs;
    int count;
    bool last; /* the job is ending: nothing follows */
};

static void cancel_work(void *arg)
{
    struct cancelling *c = arg;
    struct error err;

    for (int i = 0; i < c->count; i++)
        if (slurm_client_cancel(c->jobs[i], &err) != 0)
            log_debug("cancel job %u: %s", c->jobs[i], err.text);
}

static void cancel_done(void *arg)
{
    struct cancelling *c = arg;
    struct leader *leader = c->leader;

    leader->scancel->cancelling--;
    if (c->last)
        leader->scancel->cleaned = true;
    free(c->jobs);
    free(c);
    if (leader_has_ended(leader))
        leader_look_at_end(leader, 0);
    else
        planning_later(leader, 0);
}

void scancel_jobs(struct leader *leader, const uint32_t *jobs, int count, bool last)
{
    struct cancelling *c;

    /* Another node may lead now, and work with these jobs. If not, a later look at Slurm sees that
     * they linger. */
    if (!last && !leader_has_ended(leader) && !lease_may_act(leader))
        return;
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return;
    c->jobs = calloc((size_t)count + 1, sizeof(*c->jobs));
    if (c->jobs == NULL) {
        free(c);
        return;
    }
    memcpy(c->jobs, jobs, (size_t)count * sizeof(*jobs));
    c->count = count;
    c->last = last;
    c->leader = leader;
    if (slurm_ask(leader->loop, cancel_work, cancel_done, c) == 0) {
        leader->scancel->cancelling++;
        return;
    }
    free(c->jobs);
    free(c);
}

bool scancel_busy(const struct leader *leader)
{
    return leader->scancel->cancelling > 0;
}

bool scancel_cleaned(const struct leader *leader)
{
    return leader->scancel->cleaned;
}

void scancel_disown(struct leader *leader)
{
    leader->scancel->cleaned = true;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct scancel *scancel_create(void)
{
    return calloc(1, sizeof(struct scancel));
}

void scancel_destroy(struct scancel *scancel)
{
    free(scancel);
}
