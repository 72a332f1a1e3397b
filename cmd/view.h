/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that look at a job: once, or again and again until it has ended (--watch). */
#ifndef SELASTIC_VIEW_H
#define SELASTIC_VIEW_H

#include "cmd/command.h"
#include "cmd/render.h"

struct view {
    const char *question, *answer; /* types of messages */
    /* A new object that is printed with --json. NULL with err: the arguments do not suit the
     * answer. */
    json_object *(*shape)(json_object *answer, const struct arguments *arguments,
                          struct error *err);
    /* The text of such an object, a new string. */
    char *(*render)(json_object *object, const struct render_options *options);
};

/* Run a command with the arguments job_id, json and watch. */
enum exit_status view_run(const struct view *view, const struct arguments *arguments);

#endif
