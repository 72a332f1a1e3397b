/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many replicas a shard should have, by the requests that it has at the same time (doc/user/
 * serve.md). Pure.
 *
 * More are wanted at once, fewer only when the most of a while did not need them. */
#ifndef ELASTIC_SERVICE_SCALE_H
#define ELASTIC_SERVICE_SCALE_H

#include <stdint.h>

struct service_scale_options {
    int least, most;  /* replicas */
    int64_t sessions; /* that one replica should have; 0: there are always `least` */
    double calm;      /* fewer are wanted after so many seconds */
};

/* Begins as {0}. */
struct service_scale {
    int replicas; /* that there should be; 0: the least */
    int low;      /* the most that were needed … */
    double since; /* … from then on; 0: all are needed */
};

/* The shard has so many requests. Returns how many replicas it should have. */
int service_scale_step(struct service_scale *scale, const struct service_scale_options *options,
                       int64_t sessions, double now);
/* When the next step is due even if the requests stay as they are; 0: never. */
double service_scale_deadline(const struct service_scale *scale,
                              const struct service_scale_options *options);

#endif
