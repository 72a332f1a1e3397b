/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asking select/cons_tres, and which jobs it may take for an answer. */
#ifndef ELASTIC_SELECT_PREEMPT_H
#define ELASTIC_SELECT_PREEMPT_H

#include "src/common/bitstring.h"
#include "src/common/list.h"

#include "lib/placement.h"

struct job_record;

/* One call of select_p_job_test, without the nodes. */
struct request {
    struct job_record *job;
    uint32_t min_nodes, max_nodes, req_nodes;
    uint16_t mode;
    List candidates; /* that may be preempted, NULL: none */
    List *victims;   /* that are to be; NULL where the caller does not care */
    bitstr_t *cores; /* not to be used */
    /* A test may change the job. So that each one finds it as it was: */
    uint64_t memory;
    uint32_t cpus;
};

/* Ask select/cons_tres. nodes: those to choose from, then those chosen, as in select_p_job_test;
 * candidates: instead of the request's. Returns what it does. */
int request_ask(const struct request *request, bitstr_t *nodes, List candidates);

/* The same, with no future: only whether the job can start now, after candidates have left. */
int request_ask_now(const struct request *request, bitstr_t *nodes, List candidates);

/* The next test appends to the list of victims, for a test has been made that does not count. */
void request_forget_victims(const struct request *request);

/* Ask about a job that may need others to leave: those extensions first whose loss costs least
 * (placement_victims), and never more nodes than without us. Where no extension is a candidate, or
 * the site orders them itself (preempt_strict_order, preempt_youngest_first), it is request_ask. */
int request_ask_preempting(const struct request *request, const struct placement_map *map,
                           bitstr_t *nodes);

#endif
