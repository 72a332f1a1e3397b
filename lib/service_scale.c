/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many replicas a shard should have (service_scale.h). */
#include "lib/service_scale.h"

static int bounded(int64_t count, const struct service_scale_options *options)
{
    if (count < options->least)
        return options->least;
    return count > options->most ? options->most : (int)count;
}

int service_scale_step(struct service_scale *scale, const struct service_scale_options *options,
                       int64_t sessions, double now)
{
    int need;

    if (options->sessions <= 0)
        return scale->replicas = options->least;
    sessions = sessions > 0 ? sessions : 0;
    need = bounded(sessions / options->sessions + (sessions % options->sessions > 0), options);
    scale->replicas = bounded(scale->replicas, options);
    if (need >= scale->replicas) {
        scale->replicas = need;
        scale->since = 0;
        return need;
    }
    if (scale->since == 0) {
        scale->since = now;
        scale->low = need;
    }
    if (need > scale->low)
        scale->low = need;
    if (now - scale->since >= options->calm) {
        scale->replicas = scale->low;
        scale->since = 0;
    }
    return scale->replicas;
}

double service_scale_deadline(const struct service_scale *scale,
                              const struct service_scale_options *options)
{
    return scale->since > 0 ? scale->since + options->calm : 0;
}
