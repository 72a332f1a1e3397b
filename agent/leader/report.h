/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What files and the log are told about the job. */
#ifndef ELASTIC_AGENT_LEADER_REPORT_H
#define ELASTIC_AGENT_LEADER_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "agent/leader/costs.h"
#include "lib/change.h"

struct leader;
struct leader_member;
struct leader_options;
struct report;

/* NULL: out of memory. */
struct report *report_create(struct leader *leader);
void report_destroy(struct report *report);

/* The last generation that generation.json tells of in this run of the job: of an elasticrun
 * before. 0: there was none. */
int report_last_generation(const struct leader_options *options);
/* The present world has been formed: files and history. pause_from: when the world before had been
 * held; < 0: there was none. total: of the job so far. pools: the pool of each node, "" for one of
 * the base, "-" if it is not known; NULL-terminated, taken over. */
void report_generation(struct leader *leader, double pause_from, struct costs_total total,
                       char **pools);
/* The first step of the generation has been made; not aware: by a script of whose steps nothing is
 * known, so that all that is known is when its workers were ready. */
void report_stepping(struct leader *leader, bool aware);
/* Why that extension has left, if a world has begun without it before anybody knew. */
void report_left(struct leader *leader, uint32_t job, const char *why);
/* A worker of the present world is slow. */
void report_straggler(struct leader *leader, const char *text);
void report_end(struct leader *leader);
/* A file of the state directory, with mode 0600, which a thread writes. text is freed; NULL: memory
 * was not there. */
void report_write(struct leader *leader, const char *name, char *text);
/* Is a file, or a line of the history, still to be written? */
bool report_busy(const struct leader *leader);

/* Workers of the present world have come to this step of it, or are to. */
void report_step(struct leader *leader, uint64_t step);
/* The steps of all worlds since this leader leads. */
int64_t report_steps(const struct leader *leader);
/* So many were made before this leader led. */
void report_inherit(struct leader *leader, int64_t steps);
/* A member's beat says what its program has reported of its progress. */
void report_progress(struct leader *leader, const struct leader_member *m, json_object *beat);
/* A worker's failure as one line, from what its agent has said. */
void report_failure(const char *node, const struct change_fact *exited, json_object *msg,
                    char *text, size_t size);

/* What selastic shows: the generations after that one as a new array, the progress as a new object
 * (NULL: none has been reported), and since when (Unix time) the present world has been there. */
json_object *report_history_json(const struct leader *leader, int after);
json_object *report_progress_json(const struct leader *leader);
double report_since(const struct leader *leader);
/* The work that the program has reported: units done, in all (0: not known), and when (leader_now).
 * False: it has reported nothing. */
bool report_work(const struct leader *leader, double *done, double *total, double *at);
/* Seconds that the longest of the latest changes took; < 0: none has been measured. */
double report_pause(const struct leader *leader);

#endif
