/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of a job have reported (lib/reports.h), as JSON and as text. Pure. */
#ifndef SELASTIC_REPORT_LIST_H
#define SELASTIC_REPORT_LIST_H

#include <stdbool.h>

#include <json-c/json.h>

#include "cmd/render.h"

/* Of a `reports` answer: a new object {"job", "first", "last", "missed", "reports": [...]} with
 * those of a role or a replica; of all if name is NULL. */
json_object *reports_of(json_object *answer, const char *name);

/* A line for each, after a line of titles if there is to be one. A new string. */
char *render_reports(json_object *reports, bool titles, const struct render_options *options);

#endif
