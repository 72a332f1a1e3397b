/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a job's output that are of a role or a replica. */
#ifndef SELASTIC_LOGS_H
#define SELASTIC_LOGS_H

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>

/* Does the line begin with the label of that role ("collector"), replica ("collector-3") or task
 * ("pair-0.1")? NULL: any line. */
bool logs_match(const char *line, const char *name);

#define LOGS_PIECE 65536 /* bytes of a longer line are printed before its end has come */

/* Which lines are printed, and how. */
struct logs {
    const char *name; /* as above */
    bool clean;       /* for a terminal: control characters become \xHH, but for tabs */
    bool json;        /* each line, or piece of one, is an object on a line: logs_object() */
    bool inside;      /* a line whose first pieces have been read; false at the beginning */
    bool match;       /* that line */
    bool found;       /* a line of that name */
};

/* {"line": the text, without the end of the line, "ends": whether the line ends with it}. What is
 * no UTF-8 becomes U+FFFD. */
json_object *logs_object(const char *text, size_t length, bool ends);

/* The object, on one line. */
void logs_print_object(const char *text, size_t length, bool ends, FILE *out);

/* Read on. A line that is not complete stays in the file for the next call, if it is not that long;
 * with all it is printed. -1: it cannot be written. */
int logs_print(struct logs *logs, FILE *file, bool all, FILE *out);

#endif
