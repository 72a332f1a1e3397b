/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a picture of a job's life shows, as numbers. Pure. */
#ifndef SELASTIC_PICTURE_LIFE_H
#define SELASTIC_PICTURE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#define LIFE_POOLS_MAX 12 /* the last one stands for all others */

/* A generation. Times are seconds from the begin of the first. */
struct life_part {
    double begin, end, pause;         /* pause: 0 if there was none, or it is not known */
    double rate;                      /* steps a second; < 0: not known */
    int generation, size, node_count; /* each node counts once */
    const char *kind, *reason;        /* never NULL; of the JSON */
    int *nodes, *pools;               /* of each node: its row, and its index in pools */
    json_object *json;
};

struct life {
    struct life_part *parts;
    int count;
    double start, length; /* Unix time; seconds, > 0 */
    json_object *rows;    /* names of nodes in the order in which they came */
    int row_count;
    const char *pools[LIFE_POOLS_MAX]; /* labels: "base", the names of pools, "?" */
    int pool_count;
    int changes;     /* with a pause */
    double paused;   /* seconds in all */
    double away;     /* seconds without any generation: the job was requeued */
    double rate_max; /* the highest of all parts; < 0: none is known */
    int size_max;
};

/* end: Unix time of the last generation's end, if it has none; 0: not known. NULL: there is no
 * generation. The generations must outlive the life. */
struct life *life_create(json_object *generations, double end);
void life_destroy(struct life *life); /* accepts NULL */

/* The share of the time in which the job trained, from 0 to 1. */
double life_goodput(const struct life *life);

#endif
