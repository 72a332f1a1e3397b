/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP interface of a job: what elastic-fit prints, as the answer to a client. Pure. */
#ifndef ELASTIC_FIT_VIEW_H
#define ELASTIC_FIT_VIEW_H

#include <stdbool.h>

#include "lib/api_request.h"
#include "lib/fit_request.h"

#define FIT_JOB_PREFIX "ftjob-" /* before the number of a fit, in OpenAI's form */

/* Exit statuses of elastic-fit. */
enum fit_exit { FIT_EXIT_OK, FIT_EXIT_FAILED, FIT_EXIT_USAGE, FIT_EXIT_NO_FIT, FIT_EXIT_OVER };

/* A refusal in the form that the client expects. Always returns -1. */
int fit_view_refuse(struct api_reply *reply, bool openai, int status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* elastic-fit has ended with that status, or -1: it has not come to its end. text: what it has
 * printed, NULL: nothing. */
void fit_view_reply(const struct fit_request *request, int status, const char *text,
                    struct api_reply *reply);

#endif
