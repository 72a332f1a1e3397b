/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users, programs and files are told about the job. */
#ifndef ELASTIC_AGENT_LEADER_REPORT_H
#define ELASTIC_AGENT_LEADER_REPORT_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_member;
struct leader_options;
struct link;
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

/* "show", "history", "resize": what selastic asks. */
void report_show(struct leader *leader, struct link *link, json_object *msg);
void report_history(struct leader *leader, struct link *link, json_object *msg);
void report_resize(struct leader *leader, struct link *link, json_object *msg);
/* It has asked for something else. */
void report_unknown(struct leader *leader, struct link *link, const char *type);

#endif
