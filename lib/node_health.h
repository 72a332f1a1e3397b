/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What on a node makes its workers slow? From counters that any user can read.
 *
 * Pure: the agent reads the files, when a world begins and when one of its workers is found to be
 * slow. What is said is likely, not proven. */
#ifndef ELASTIC_NODE_HEALTH_H
#define ELASTIC_NODE_HEALTH_H

#include <stddef.h>
#include <stdint.h>

/* At one moment. -1: not known. */
struct node_health {
    int64_t throttled;  /* how often a processor was throttled since boot, of all */
    int64_t net_errors; /* errors of network devices since boot, of all */
    /* Share of the last minute in which some task waited, in percent. */
    double cpu, memory, io;
};
#define NODE_HEALTH_NONE                                                                           \
    {                                                                                              \
        -1, -1, -1, -1, -1                                                                         \
    }

/* Add a counter of a file ("17\n"); what is no number is not counted. */
void node_health_add(int64_t *sum, const char *text);
/* avg60 of the line "some" of a file of /proc/pressure; -1: there is none. */
double node_health_pressure(const char *text);

/* The most likely cause, in a word for metrics: throttled, memory, network, io, cpu or unknown; and
 * in text with its figure. Returns the word. */
const char *node_health_cause(const struct node_health *before, const struct node_health *now,
                              char *text, size_t size);

#endif
