/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growth that has come to nothing (setbacks.h). */
#include "lib/setbacks.h"

static double later(double a, double b)
{
    return a > b ? a : b;
}

double setbacks_pause(const struct setbacks *setbacks, double grow_delay)
{
    double pause = later(grow_delay, SETBACKS_PAUSE), most = later(grow_delay, SETBACKS_PAUSE_MOST);

    if (setbacks->again == 0)
        return grow_delay;
    for (int i = 0; i < setbacks->again && pause < most; i++)
        pause *= 2;
    return pause < most ? pause : most;
}

void setbacks_add(struct setbacks *setbacks, double now, double grow_delay, double asked)
{
    if (setbacks->last < 0 ||
        now > setbacks->last + setbacks_pause(setbacks, grow_delay) + SETBACKS_QUIET)
        setbacks->again = 0;
    else if (asked >= setbacks->last) /* and not one of several that are taken back together */
        setbacks->again++;
    setbacks->last = now;
}
