/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a service's other job, as Slurm knows it (service_gone.h). */
#include "lib/service_gone.h"

#define GRAIN  2.0  /* seconds: file systems keep whole ones */
#define CLOCKS 60.0 /* seconds by which Slurm's clock and that of the file system may differ */

bool service_gone_ask(struct service_gone *gone, uint32_t job, double silent, double now)
{
    if (gone->job != job)
        *gone = (struct service_gone){
            .job = job, .retry = {.first = SERVICE_GONE_FIRST, .max = SERVICE_GONE_PAUSE}};
    if (now < gone->retry.after || (gone->asked && silent < SERVICE_GONE_LATE))
        return false;
    gone->asked = true;
    retry_failed(&gone->retry, now);
    return true;
}

bool service_gone_answered(struct service_gone *gone, const struct service_gone_answer *answer)
{
    bool known = gone->since > 0;

    if (gone->job != answer->job)
        return false;
    gone->since = answer->ended && answer->ago <= answer->silent + CLOCKS ? answer->asked : 0;
    return gone->since > 0 && !known;
}

bool service_gone_is(const struct service_gone *gone, uint32_t job, double silent, double now)
{
    return gone->job == job && gone->since > 0 && silent + GRAIN >= now - gone->since;
}
