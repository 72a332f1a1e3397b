/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic-fit prints, as the answer to a client (fit_view.h). */
#include "lib/fit_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fit.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

/* ---- refusals -------------------------------------------------------------------------------- */

static void add_text(json_object *to, const char *key, const char *text)
{
    json_object_object_add(to, key, json_from_string(text));
}

static void set_openai_error(struct api_reply *reply, int status, const char *text)
{
    json_object *body = json_object_new_object(), *error = json_object_new_object();

    *reply = (struct api_reply){.status = status, .body = body, .epoch = -1};
    add_text(error, "message", text);
    add_text(error, "type", status < 500 ? "invalid_request_error" : "server_error");
    add_text(error, "param", NULL);
    add_text(error, "code", NULL);
    json_object_object_add(body, "error", error);
}

int fit_view_refuse(struct api_reply *reply, bool openai, int status, const char *fmt, ...)
{
    char text[900];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    error_clean(text);
    if (openai)
        set_openai_error(reply, status, text);
    else
        api_reply_set(reply, status, NULL, "%s", text);
    return -1;
}

/* "ended as FAILED" is no failure of the request. */
static int http_status(const struct fit_request *request, int status)
{
    switch (status) {
    case FIT_EXIT_USAGE:
        return 400;
    case FIT_EXIT_NO_FIT:
        return 404;
    case FIT_EXIT_OVER:
        return 409;
    case FIT_EXIT_FAILED:
        return request->verb == FIT_START || request->verb == FIT_CANCEL ? 409 : 500;
    default:
        return 500;
    }
}

static void refuse(const struct fit_request *request, int status, json_object *printed,
                   struct api_reply *reply)
{
    const char *text = printed != NULL ? json_get_string(printed, "error") : NULL;

    fit_view_refuse(reply, request->openai, http_status(request, status), "%s",
                    text != NULL  ? text
                    : status >= 0 ? "elastic-fit has failed without a word"
                                  : "elastic-fit did not come to its end");
}

/* ---- OpenAI's form --------------------------------------------------------------------------- */

static const char *openai_status(const char *status)
{
    static const struct {
        enum fit_status status;
        const char *name;
    } names[] = {
        {FIT_WAIT_FOR_FIT, "running"}, {FIT_WAIT_FOR_TARGET_CONTAINER, "running"},
        {FIT_SUCCESS, "succeeded"},    {FIT_FAILED, "failed"},
        {FIT_CANCELLED, "cancelled"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(status, fit_status_name(names[i].status)) == 0)
            return names[i].name;
    return "queued";
}

static bool is_over(const char *status)
{
    return strcmp(status, "succeeded") == 0 || strcmp(status, "failed") == 0 ||
           strcmp(status, "cancelled") == 0;
}

static json_object *seconds(double at)
{
    return at > 0 ? json_object_new_int64((int64_t)at) : NULL;
}

static json_object *history_of(json_object *fit)
{
    json_object *history = json_object_object_get(fit, "history");

    return json_object_is_type(history, json_type_array) ? history : NULL;
}

static double last_change(json_object *fit)
{
    json_object *history = history_of(fit);
    size_t count = history != NULL ? json_object_array_length(history) : 0;

    return count > 0 ? json_get_double(json_object_array_get_idx(history, count - 1), "at", 0) : 0;
}

static json_object *openai_error(json_object *fit)
{
    json_object *error = json_object_new_object();

    add_text(error, "code", "training_failed");
    add_text(error, "message", json_get_string(fit, "reason"));
    add_text(error, "param", NULL);
    return error;
}

static json_object *hyperparameters(json_object *run)
{
    json_object *config = json_object_object_get(run, "config"), *found = NULL;

    if (json_object_is_type(config, json_type_object))
        found = json_object_object_get(config, "hyperparameters");
    return json_object_is_type(found, json_type_object) ? json_object_get(found)
                                                        : json_object_new_object();
}

static json_object *openai_job(json_object *fit)
{
    json_object *job = json_object_new_object(), *run = json_object_object_get(fit, "run");
    const char *name = json_get_string(fit, "status"), *status;
    char id[40];
    int64_t number = 0;

    status = openai_status(name != NULL ? name : "");
    json_get_int(fit, "fit", 0, INT64_MAX, &number);
    snprintf(id, sizeof(id), FIT_JOB_PREFIX "%" PRId64, number);
    add_text(job, "object", "fine_tuning.job");
    add_text(job, "id", id);
    add_text(job, "model", json_get_string(fit, "model"));
    add_text(job, "status", status);
    json_object_object_add(job, "created_at", seconds(json_get_double(run, "created", 0)));
    json_object_object_add(job, "finished_at", is_over(status) ? seconds(last_change(fit)) : NULL);
    json_object_object_add(job, "estimated_finish", NULL);
    add_text(job, "fine_tuned_model",
             strcmp(status, "succeeded") == 0 ? json_get_string(fit, "model") : NULL);
    add_text(job, "training_file", json_get_string(run, "trainData"));
    add_text(job, "validation_file", json_get_string(run, "targetsData"));
    json_object_object_add(job, "hyperparameters", hyperparameters(run));
    json_object_object_add(job, "error", strcmp(status, "failed") == 0 ? openai_error(fit) : NULL);
    add_text(job, "organization_id", json_get_string(fit, "service"));
    json_object_object_add(job, "result_files", json_object_new_array());
    json_object_object_add(job, "trained_tokens", NULL);
    json_object_object_add(job, "seed", json_object_new_int(0));
    return job;
}

static json_object *openai_list(json_object *data, bool has_more)
{
    json_object *list = json_object_new_object();

    add_text(list, "object", "list");
    json_object_object_add(list, "data", data);
    json_object_object_add(list, "has_more", json_object_new_boolean(has_more));
    return list;
}

/* The newest ones first. */
static json_object *openai_jobs(const struct fit_request *request, json_object *fits)
{
    json_object *data = json_object_new_array();
    size_t i = json_object_array_length(fits);
    bool has_more = false;

    while (i-- > 0) {
        json_object *fit = json_object_array_get_idx(fits, i);
        int64_t number = 0;

        json_get_int(fit, "fit", 0, INT64_MAX, &number);
        if (request->after > 0 && number >= request->after)
            continue;
        has_more = json_object_array_length(data) == (size_t)request->limit;
        if (has_more)
            break;
        json_object_array_add(data, openai_job(fit));
    }
    return openai_list(data, has_more);
}

static json_object *openai_events(const struct fit_request *request, json_object *fit)
{
    json_object *data = json_object_new_array(), *history = history_of(fit);
    size_t i = history != NULL ? json_object_array_length(history) : 0;

    while (i-- > 0 && json_object_array_length(data) < (size_t)request->limit) {
        json_object *step = json_object_array_get_idx(history, i),
                    *event = json_object_new_object();
        char id[60];

        snprintf(id, sizeof(id), "ftevent-%" PRId64 "-%zu", request->id, i + 1);
        add_text(event, "object", "fine_tuning.job.event");
        add_text(event, "id", id);
        json_object_object_add(event, "created_at", seconds(json_get_double(step, "at", 0)));
        add_text(event, "level", "info");
        add_text(event, "message", json_get_string(step, "status"));
        add_text(event, "type", "message");
        json_object_array_add(data, event);
    }
    return openai_list(data, false);
}

static json_object *openai_body(const struct fit_request *request, json_object *printed)
{
    switch (request->verb) {
    case FIT_LIST:
        return openai_jobs(request, json_object_object_get(printed, "fits"));
    case FIT_EVENTS:
        return openai_events(request, printed);
    case FIT_CHECKPOINTS:
        return openai_list(json_object_new_array(), false);
    default:
        return openai_job(printed);
    }
}

/* ---- all answers ----------------------------------------------------------------------------- */

/* Is it what elastic-fit prints for this request? */
static bool fits_request(const struct fit_request *request, json_object *printed)
{
    return printed != NULL &&
           (request->verb == FIT_LIST
                ? json_object_is_type(json_object_object_get(printed, "fits"), json_type_array)
                : json_get_string(printed, "status") != NULL &&
                      json_object_is_type(json_object_object_get(printed, "run"),
                                          json_type_object));
}

static void accept(const struct fit_request *request, json_object *printed, struct api_reply *reply)
{
    int64_t number = 0;

    if (request->openai) {
        *reply = (struct api_reply){
            .status = 200, .body = openai_body(request, printed), .epoch = -1};
        return;
    }
    json_get_int(printed, "fit", 0, INT64_MAX, &number);
    if (request->verb == FIT_LIST)
        api_reply_set(reply, 200, json_object_get(printed), "fits of service %s",
                      json_get_string(printed, "service"));
    else
        api_reply_set(reply, 200, json_object_get(printed), "fit %" PRId64 ": %s", number,
                      json_get_string(printed, "status"));
}

/* Of JSON lines {"line": "…", "ends": true} the lines, as the training has written them. NULL: out
 * of memory. A text in JSON is never shorter than itself. */
static char *log_text(const char *lines)
{
    char *text = malloc(strlen(lines) + 1), *to = text;

    while (text != NULL && *lines != '\0') {
        size_t length = strcspn(lines, "\n");
        json_object *one = json_text_parse(lines, length, NULL);
        const char *line = json_get_string(one, "line");

        if (line != NULL) {
            memcpy(to, line, strlen(line));
            to += strlen(line);
        }
        if (json_object_get_boolean(json_object_object_get(one, "ends")))
            *to++ = '\n';
        json_object_put(one);
        lines += length + (lines[length] != '\0');
    }
    if (text != NULL)
        *to = '\0';
    return text;
}

void fit_view_reply(const struct fit_request *request, int status, const char *text,
                    struct api_reply *reply)
{
    struct error err;
    json_object *printed;

    if (status == FIT_EXIT_OK && request->verb == FIT_LOG) {
        *reply = (struct api_reply){
            .status = 200, .text = log_text(text != NULL ? text : ""), .epoch = -1};
        return;
    }
    printed = text != NULL ? json_text_parse(text, strlen(text), &err) : NULL;
    if (status == FIT_EXIT_OK && fits_request(request, printed))
        accept(request, printed, reply);
    else
        refuse(request, status, printed, reply);
    json_object_put(printed);
}
