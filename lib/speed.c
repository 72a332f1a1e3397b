/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast a job works with so many nodes (speed.h). */
#include "lib/speed.h"

#include <math.h>
#include <string.h>

/* Pool adjacent violators (Ayer et al. 1955): the monotone rates that are nearest to the measured
 * ones, each weighted by how long it was measured. */
static void fit(struct speed *speed)
{
    struct block {
        double rate, seconds;
        int points;
    } blocks[SPEED_POINTS_MAX];
    int count = 0, at = 0;

    for (int i = 0; i < speed->count; i++) {
        const struct speed_point *point = &speed->points[i];

        blocks[count++] = (struct block){
            .rate = point->rate, .seconds = point->seconds, .points = 1};
        for (; count > 1 && blocks[count - 2].rate > blocks[count - 1].rate; count--) {
            struct block *low = &blocks[count - 2], *high = &blocks[count - 1];
            double seconds = low->seconds + high->seconds;

            low->rate = (low->rate * low->seconds + high->rate * high->seconds) / seconds;
            low->seconds = seconds;
            low->points += high->points;
        }
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < blocks[i].points; k++)
            speed->points[at++].fitted = blocks[i].rate;
}

/* The point that says least, to make room for another one. */
static int least(const struct speed *speed)
{
    int found = 0;

    for (int i = 1; i < speed->count; i++)
        if (speed->points[i].seconds < speed->points[found].seconds)
            found = i;
    return found;
}

static struct speed_point *insert(struct speed *speed, int nodes)
{
    int at = 0;

    if (speed->count == SPEED_POINTS_MAX) {
        int drop = least(speed);

        speed->count--;
        memmove(&speed->points[drop], &speed->points[drop + 1],
                (size_t)(speed->count - drop) * sizeof(speed->points[0]));
    }
    while (at < speed->count && speed->points[at].nodes < nodes)
        at++;
    memmove(&speed->points[at + 1], &speed->points[at],
            (size_t)(speed->count - at) * sizeof(speed->points[0]));
    speed->count++;
    speed->points[at] = (struct speed_point){.nodes = nodes};
    return &speed->points[at];
}

void speed_add(struct speed *speed, int nodes, double units, double seconds)
{
    struct speed_point *point = NULL;
    double old;

    if (nodes <= 0 || !(units > 0) || !(seconds > 0) || !isfinite(units) || !isfinite(seconds))
        return;
    for (int i = 0; i < speed->count; i++)
        if (speed->points[i].nodes == nodes)
            point = &speed->points[i];
    if (point == NULL)
        point = insert(speed, nodes);
    old = fmin(point->seconds, fmax(SPEED_MEMORY - seconds, 0));
    point->rate = (point->rate * old + units) / (old + seconds);
    point->seconds = fmin(old + seconds, SPEED_MEMORY);
    fit(speed);
}

bool speed_known(const struct speed *speed)
{
    return speed->count > 0;
}

double speed_at(const struct speed *speed, int nodes)
{
    const struct speed_point *points = speed->points, *last;
    double slope;

    if (speed->count == 0 || nodes <= 0)
        return 0;
    if (nodes <= points[0].nodes)
        return points[0].fitted * nodes / points[0].nodes;
    for (int i = 1; i < speed->count; i++) {
        const struct speed_point *a = &points[i - 1], *b = &points[i];

        if (nodes <= b->nodes)
            return a->fitted + (b->fitted - a->fitted) * (nodes - a->nodes) / (b->nodes - a->nodes);
    }
    last = &points[speed->count - 1];
    slope = last->fitted / last->nodes;
    if (speed->count > 1)
        slope = fmin(slope, (last->fitted - last[-1].fitted) / (last->nodes - last[-1].nodes));
    return last->fitted + slope * (nodes - last->nodes);
}
