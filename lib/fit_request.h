/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP interface of a job: what a client sends about trainings of its service (fits), as the
 * command line of elastic-fit. Pure.
 *
 * There are two forms: /v1/fits of our own, and /v1/fine_tuning/jobs as clients of OpenAI use it.
 * Fits lie in files of the user, which the leader does not read: elastic-fit does. */
#ifndef ELASTIC_FIT_REQUEST_H
#define ELASTIC_FIT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api_reply;

enum fit_verb {
    FIT_LIST,
    FIT_START,
    FIT_SHOW,
    FIT_CANCEL,
    FIT_LOG,         /* of our form: what the training has printed */
    FIT_EVENTS,      /* of OpenAI's form: its history */
    FIT_CHECKPOINTS, /* of OpenAI's form: there are none */
};

#define FIT_PAGE_MAX 100 /* jobs of an answer in OpenAI's form */

struct fit_request {
    enum fit_verb verb;
    bool openai;
    int64_t id;
    char **options; /* of elastic-fit: "--model=a"; NULL: none */
    char *input;    /* what it reads, as others see arguments: data, config; NULL: nothing */
    /* Of lists in OpenAI's form. */
    int64_t after; /* what follows this one; 0: from the beginning */
    int limit;
};

/* Does it belong to fits? target as it came: "/v1/fits/7". */
bool fit_request_is(const char *target);

/* A new request. NULL with reply: it is refused. */
struct fit_request *fit_request_read(const char *method, const char *target, const char *body,
                                     size_t size, struct api_reply *reply);
void fit_request_destroy(struct fit_request *request); /* accepts NULL */

/* The command line, for strings_free(). NULL: out of memory. */
char **fit_request_command(const struct fit_request *request, const char *service);

#endif
