/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of a job with roles report: where their data or their model lies.
 *
 * The latest are kept, in a ring of bounded size, for who collects them. A report is shown once it
 * is in the job's file, so that none is lost that anybody has heard of. Pure. */
#ifndef ELASTIC_REPORTS_H
#define ELASTIC_REPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

#define REPORT_MAX       4096 /* bytes of a report as JSON */
#define REPORT_PATH_MAX  1024 /* bytes of its path */
#define REPORT_KEYS_MAX  32   /* with those of objects in it */
#define REPORT_KEY_MAX   64   /* bytes */
#define REPORT_DEPTH_MAX 4    /* levels of objects and arrays, with the report itself */
#define REPORT_ID_MAX    40   /* bytes of what tells reports from each other, with the NUL */

#define REPORTS_MAX      1000         /* that are kept */
#define REPORTS_BYTES    (256 * 1024) /* … as JSON, names included */
#define REPORTS_PENDING  200          /* that wait for the file at once */
#define REPORTS_FILE_MAX (2 * REPORTS_BYTES + 1024 * REPORTS_MAX)

/* Is that object a report: {"path": "/data/7", "size": 5, "loss": 0.5}? -1 with err. */
int report_check(json_object *report, struct error *err);
/* Its text, read strictly, and written in its shortest form into `into`, which has REPORT_MAX + 1
 * bytes. -1 with err. */
int report_read(const char *text, size_t size, char *into, struct error *err);

struct reports;

struct reports *reports_create(void);
void reports_destroy(struct reports *reports); /* accepts NULL */

enum reports_result {
    REPORTS_KEPT,  /* a report of this id is in the file already */
    REPORTS_WAITS, /* it will be, with the next text but one at most */
    REPORTS_FULL,  /* too many wait */
};

/* text: of report_read(). *number is what it is called. */
enum reports_result reports_add(struct reports *reports, double time, const char *role,
                                const char *replica, const char *id, const char *text, int *number);

/* Do some wait that are in no text so far? */
bool reports_wait(const struct reports *reports);
/* The text of the file with all that there are, a new string. reports_written() follows, before
 * the next one. NULL: out of memory. */
char *reports_text(struct reports *reports);
/* It is in the file; or it is not, and all that wait are forgotten. */
void reports_written(struct reports *reports, bool ok);
/* What a leader before has written. -1 with err: it is no such text, and nothing is read. */
int reports_parse(struct reports *reports, const char *text, size_t size, struct error *err);

/* The numbers of the first and the last one that are kept; 0: none. */
int reports_first(const struct reports *reports);
int reports_last(const struct reports *reports);
/* Adds "first", "last", "missed" and "reports", with those of higher numbers. */
void reports_show(const struct reports *reports, int after, json_object *into);

#endif
