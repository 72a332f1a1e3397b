/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's life as a drawing: nodes downwards, time to the right. Pure: generations in, text out. */
#ifndef SELASTIC_TIMELINE_H
#define SELASTIC_TIMELINE_H

#include <json-c/json.h>

struct timeline_options {
    int width;    /* columns of a line, at least 40 */
    int max_rows; /* more nodes than this are drawn as a chart of sizes instead of a row per node */
    /* Unix time at which the drawing ends if the last generation has no end ("until"). */
    double end;
};

/* The drawing of the "generations" of a history (shape.h), lines with newlines, as a new string. */
char *timeline_draw(json_object *generations, const struct timeline_options *options);

#endif
