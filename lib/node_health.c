/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What on a node makes its workers slow (node_health.h). */
#include "lib/node_health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"

/* From so much on it may be a cause, in percent of the last minute. Workers of a training wait for
 * each other, and not for processors. */
#define MEMORY 5.0
#define IO     20.0
#define CPU    30.0

void node_health_add(int64_t *sum, const char *text)
{
    int number;

    if (number_parse(text, strcspn(text, "\n"), 0, INT32_MAX, &number) != 0)
        return;
    *sum = (*sum > 0 ? *sum : 0) + number;
}

double node_health_pressure(const char *text)
{
    double share;

    if (sscanf(text, "some avg10=%*f avg60=%lf", &share) != 1 || !(share >= 0 && share <= 100))
        return -1;
    return share;
}

/* How much a counter has grown; 0: not known. */
static long long more(int64_t before, int64_t now)
{
    return before >= 0 && now > before ? (long long)(now - before) : 0;
}

const char *node_health_cause(const struct node_health *before, const struct node_health *now,
                              char *text, size_t size)
{
    long long throttled = more(before->throttled, now->throttled),
              errors = more(before->net_errors, now->net_errors);

    if (throttled > 0) {
        snprintf(text, size, "its processors were throttled %lld time%s", throttled,
                 throttled == 1 ? "" : "s");
        return "throttled";
    }
    if (now->memory >= MEMORY) {
        snprintf(text, size, "its memory is short: tasks waited for %.0f %% of the last minute",
                 now->memory);
        return "memory";
    }
    if (errors > 0) {
        snprintf(text, size, "its network devices had %lld error%s", errors,
                 errors == 1 ? "" : "s");
        return "network";
    }
    if (now->io >= IO) {
        snprintf(text, size, "its storage is slow: tasks waited for %.0f %% of the last minute",
                 now->io);
        return "io";
    }
    if (now->cpu >= CPU) {
        snprintf(text, size, "its processors are busy: tasks waited for %.0f %% of the last minute",
                 now->cpu);
        return "cpu";
    }
    snprintf(text, size, "its counters show no cause");
    return "unknown";
}
