/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clock for deadlines. */
#ifndef ELASTIC_COMMON_MONOTONIC_H
#define ELASTIC_COMMON_MONOTONIC_H

#include <time.h>

/* Milliseconds of a clock that nobody sets. */
static inline long long monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Its whole seconds. */
static inline time_t monotonic_s(void)
{
    return (time_t)(monotonic_ms() / 1000);
}

#endif
