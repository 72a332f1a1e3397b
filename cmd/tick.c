/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The distance of two marks on an axis of time (tick.h). */
#include "cmd/tick.h"

#include <math.h>
#include <stddef.h>

#define WEEK 604800

double tick_round(double least)
{
    static const double steps[] = {1,   2,    5,    10,   15,    30,    60,    120,   300,   600,
                                   900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800};
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (steps[i] >= least)
            return steps[i];
    return ceil(least / WEEK) * WEEK;
}
