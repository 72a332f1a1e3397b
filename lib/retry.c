/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pauses that double (retry.h). */
#include "lib/retry.h"

double retry_failed(struct retry *retry, double now)
{
    double pause = retry->pause > 0 ? retry->pause : retry->first;

    if (now < retry->after)
        return retry->after - now;
    retry->after = now + pause;
    retry->pause = 2 * pause < retry->max ? 2 * pause : retry->max;
    return pause;
}

void retry_reset(struct retry *retry)
{
    retry->pause = 0;
    retry->after = 0;
}

void retry_go_on(struct retry *retry, const struct retry *from, double now)
{
    double last = now + retry->max;

    retry->pause = from->pause < retry->max ? from->pause : retry->max;
    retry->after = from->after < last ? from->after : last;
}
