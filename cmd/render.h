/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What selastic shows to people: JSON of a known shape (shape.h) in, text out. Pure. */
#ifndef SELASTIC_RENDER_H
#define SELASTIC_RENDER_H

#include <stdbool.h>
#include <time.h>

#include <json-c/json.h>

struct render_options {
    int width; /* columns of the terminal; 0: no terminal, nothing is cut */
    time_t now;
    const char *release; /* of this selastic; NULL: that of the leader is not shown */
    bool over; /* history: the job has ended, a generation without an end does not go on */
};

/* `selastic show`: of shape_state. New string. */
char *render_state(json_object *state, const struct render_options *options);

/* `selastic list`: of {"jobs": [...]} (jobs.h). New string. */
char *render_list(json_object *list, const struct render_options *options);

/* What `selastic clean` has done with each directory. */
char *render_clean(json_object *list, const struct render_options *options);

/* `selastic history`: of shape_history. New string. */
char *render_history(json_object *history, const struct render_options *options);

#endif
