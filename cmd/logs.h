/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which lines of a job's output are of a role or a replica. Pure. */
#ifndef SELASTIC_LOGS_H
#define SELASTIC_LOGS_H

#include <stdbool.h>

/* Does the line begin with the label of that role ("collector"), replica ("collector-3") or task
 * ("pair-0.1")? NULL: any line. */
bool logs_match(const char *line, const char *name);

#endif
