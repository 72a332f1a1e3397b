/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of a job with roles report, in a file of the job, which a thread writes. */
#ifndef ELASTIC_AGENT_LEADER_ROLE_REPORTS_H
#define ELASTIC_AGENT_LEADER_ROLE_REPORTS_H

#include <stdbool.h>

#include "lib/reports.h"

struct leader;
struct link;
struct role_reports;

/* NULL: out of memory. */
struct role_reports *role_reports_create(void);
void role_reports_destroy(struct role_reports *own); /* accepts NULL */

/* Those that there are, with what a leader before this one has written. Borrowed. */
const struct reports *role_reports_list(struct leader *leader);

/* The report of that number is in the file; or trouble says why it is not. */
typedef void role_reports_done(struct leader *leader, struct link *link, int number,
                               const char *trouble);
/* A report of the job's, whose text report_read() has written. done is called later if it WAITS,
 * and only then. */
enum reports_result role_reports_add(struct leader *leader, struct link *link, const char *role,
                                     const char *replica, const char *id, const char *text,
                                     role_reports_done *done, int *number);
/* Nobody waits there any more. */
void role_reports_closed(struct leader *leader, const struct link *link);
/* The file is being written. */
bool role_reports_busy(const struct leader *leader);

#endif
