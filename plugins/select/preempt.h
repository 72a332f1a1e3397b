/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to select/cons_tres, and which jobs may be preempted for an answer. */
#ifndef ELASTIC_SELECT_PREEMPT_H
#define ELASTIC_SELECT_PREEMPT_H

#include "plugins/select/compat.h"

#include "lib/placement.h"

struct job_record;

/* One call of select_p_job_test, without the nodes. */
struct request {
    struct job_record *job;
    uint32_t min_nodes, max_nodes, req_nodes;
    uint16_t mode;
    list_t *candidates; /* jobs that may be preempted, NULL: none */
    list_t **victims; /* jobs that are to be preempted; NULL where the caller does not need them */
    excluded_cores_t *cores; /* not to be used */
    times_t *times;
    /* A test may change the job. These fields restore it before each test. */
    uint64_t memory;
    uint32_t cpus;
};

/* Ask select/cons_tres. nodes: the nodes to choose from, then the chosen nodes, as in
 * select_p_job_test. candidates: used in place of the request's. Returns the result of
 * select/cons_tres. */
int request_ask(const struct request *request, bitstr_t *nodes, list_t *candidates);

/* The same for the present only: can the job start now, after the candidates have left? */
int request_ask_now(const struct request *request, bitstr_t *nodes, list_t *candidates);

/* Clear the list of victims: the last test does not count, and the next test would append to the
 * list. */
void request_forget_victims(const struct request *request);

/* Ask about a job that may need other jobs to leave. Extensions whose loss costs least are
 * preempted first (placement_victims), and never more nodes than without this plugin. Where no
 * extension is a candidate, or the site orders the candidates itself (preempt_strict_order,
 * preempt_youngest_first), this is request_ask. */
int request_ask_preempting(const struct request *request, const struct placement_map *map,
                           bitstr_t *nodes);

#endif
