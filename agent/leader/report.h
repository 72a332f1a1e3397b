/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What files and the log are told about the job. */
#ifndef ELASTIC_AGENT_LEADER_REPORT_H
#define ELASTIC_AGENT_LEADER_REPORT_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_member;
struct leader_options;
struct report;

/* NULL: out of memory. */
struct report *report_create(void);
void report_destroy(struct report *report);

/* The last generation that generation.json tells of in this run of the job: of an elasticrun
 * before. 0: there was none. */
int report_last_generation(const struct leader_options *options);
/* The present world has been formed: files and history. */
int report_generation(struct leader *leader);
/* The first step of the generation has been made; not aware: by a script of whose steps nothing is
 * known, so that all that is known is when its workers were ready. */
void report_stepping(struct leader *leader, bool aware);
void report_end(struct leader *leader);

/* A member's beat says what its program has reported of its progress. */
void report_progress(struct leader *leader, const struct leader_member *m, json_object *beat);
/* Keep a worker's failure as one line. */
void report_failure(struct leader *leader, struct leader_member *member, json_object *exit);
/* Print it, once it is known to be the cause and not a consequence. */
void report_root_cause(struct leader *leader);

/* What selastic shows: the generations as a new array, the progress as a new object (NULL: none has
 * been reported), and since when (Unix time) the present world has been there. */
json_object *report_history_json(const struct leader *leader);
json_object *report_progress_json(const struct leader *leader);
double report_since(const struct leader *leader);

#endif
