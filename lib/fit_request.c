/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients of the HTTP interface send about fits (fit_request.h). */
#include "lib/fit_request.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api_request.h"
#include "lib/fit_view.h"
#include "lib/http_table.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define VALUE_MAX 4096 /* bytes of a value */
#define LIMIT     20   /* jobs of an answer, as OpenAI's servers have it */

#define START_KEYS "data! model targets dataset format config from within trainer"
#define OPENAI_KEYS                                                                                \
    "model! training_file! validation_file hyperparameters method seed suffix metadata"

static const struct http_route routes[] = {
    {"GET", "/v1/fits", FIT_LIST, NULL, NULL},
    {"POST", "/v1/fits", FIT_START, NULL, START_KEYS},
    {"GET", "/v1/fits/*", FIT_SHOW, NULL, NULL},
    {"POST", "/v1/fits/*/cancel", FIT_CANCEL, NULL, "reason"},
    {"GET", "/v1/fits/*/log", FIT_LOG, NULL, NULL},
    {"GET", "/v1/fine_tuning/jobs", FIT_LIST, "after limit", NULL},
    {"POST", "/v1/fine_tuning/jobs", FIT_START, NULL, OPENAI_KEYS},
    {"GET", "/v1/fine_tuning/jobs/*", FIT_SHOW, NULL, NULL},
    {"POST", "/v1/fine_tuning/jobs/*/cancel", FIT_CANCEL, NULL, NULL},
    {"GET", "/v1/fine_tuning/jobs/*/events", FIT_EVENTS, "limit", NULL},
    {"GET", "/v1/fine_tuning/jobs/*/checkpoints", FIT_CHECKPOINTS, NULL, NULL},
};
static const struct http_table table = {routes, COUNT(routes)};

/* ---- the path -------------------------------------------------------------------------------- */

static bool begins_with(const char *target, const char *with)
{
    size_t length = strlen(with);

    return strncmp(target, with, length) == 0 && strchr("/?", target[length]) != NULL;
}

static bool is_openai(const char *target)
{
    return begins_with(target, "/v1/fine_tuning");
}

bool fit_request_is(const char *target)
{
    return begins_with(target, "/v1/fits") || is_openai(target);
}

static int read_id(const char *text, size_t length, bool openai, int64_t *id)
{
    static const char prefix[] = FIT_JOB_PREFIX;
    size_t skip = openai ? strlen(prefix) : 0;
    int number;

    if (length <= skip || strncmp(text, prefix, skip) != 0 ||
        number_parse(text + skip, length - skip, 1, INT32_MAX, &number) != 0)
        return -1;
    *id = number;
    return 0;
}

static int find_route(const char *method, const char *target, struct http_target *found,
                      int64_t *id, struct api_reply *reply)
{
    bool openai = is_openai(target);
    struct error err;
    int status = http_find(&table, method, target, found, &err);

    if (status == 0 && found->names[0].length > 0 &&
        read_id(found->names[0].text, found->names[0].length, openai, id) != 0) {
        error_set(&err, "there is no '%s'", error_value(target).text);
        status = 404;
    }
    if (status == 0)
        return 0;
    fit_view_refuse(reply, openai, status, "%s", err.text);
    memcpy(reply->allow, found->allow, sizeof(reply->allow));
    return -1;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int read_parameter(const char *name, const char *value, void *arg, struct error *err)
{
    struct fit_request *request = arg;

    if (strcmp(name, "limit") == 0)
        return number_parse(value, strlen(value), 1, FIT_PAGE_MAX, &request->limit) == 0
                   ? 0
                   : error_set(err, "a number from 1 to %d is expected", FIT_PAGE_MAX);
    return read_id(value, strlen(value), true, &request->after) == 0
               ? 0
               : error_set(err, "a job is expected: " FIT_JOB_PREFIX "N");
}

/* ---- the body -------------------------------------------------------------------------------- */

static int add_option(struct fit_request *request, const char *name, const char *value)
{
    char *option = NULL, *list[2];
    int rc;

    if (asprintf(&option, "--%s=%s", name, value) < 0)
        return -1;
    list[0] = option;
    list[1] = NULL;
    rc = strings_append(&request->options, list);
    free(option);
    return rc;
}

static int refuse_value(struct api_reply *reply, bool openai, const char *key, const char *wanted)
{
    return fit_view_refuse(reply, openai, 400, "%s: %s is expected", key, wanted);
}

static int no_memory(struct api_reply *reply, bool openai)
{
    return fit_view_refuse(reply, openai, 500, "out of memory");
}

/* NULL with reply: it is none. */
static const char *text_of(const struct fit_request *request, const char *key, json_object *body,
                           struct api_reply *reply)
{
    const char *value = json_get_string(body, key);

    if (value != NULL && value[0] != '\0' && strlen(value) <= VALUE_MAX && error_is_clean(value))
        return value;
    refuse_value(reply, request->openai, key, "a text of one line");
    return NULL;
}

static int add_text(struct fit_request *request, json_object *input, const char *option,
                    const char *key, json_object *body, struct api_reply *reply)
{
    const char *value = text_of(request, key, body, reply);

    (void)input;
    if (value == NULL)
        return -1;
    return add_option(request, option, value) == 0 ? 0 : no_memory(reply, request->openai);
}

/* The service's directory is no place for a client to begin at. A URL may have a password in it, or
 * a signature. */
static int add_data(struct fit_request *request, json_object *input, const char *option,
                    const char *key, json_object *body, struct api_reply *reply)
{
    const char *value = json_get_string(body, key);

    if (value == NULL || (value[0] != '/' && strstr(value, "://") == NULL))
        return refuse_value(reply, request->openai, key, "a path that begins with '/', or a URL");
    if (text_of(request, key, body, reply) == NULL)
        return -1;
    json_object_object_add(input, option, json_object_new_string(value));
    return 0;
}

/* Each user of the node can read arguments. */
static int take_input(struct fit_request *request, json_object *input, struct api_reply *reply)
{
    const char *text = json_object_to_json_string_ext(input, JSON_C_TO_STRING_PLAIN |
                                                                 JSON_C_TO_STRING_NOSLASHESCAPE);

    if (json_object_object_length(input) == 0)
        return 0;
    request->input = text != NULL ? strdup(text) : NULL;
    return request->input != NULL && add_option(request, "data", "-") == 0
               ? 0
               : no_memory(reply, request->openai);
}

static int add_config(struct fit_request *request, json_object *input, const char *option,
                      const char *key, json_object *body, struct api_reply *reply)
{
    json_object *value = json_object_object_get(body, key);

    if (json_object_is_type(value, json_type_object)) {
        json_object_object_add(input, option, json_object_get(value));
        return 0;
    }
    if (json_object_is_type(value, json_type_string) &&
        text_made_of(json_get_string(body, key), "_-") &&
        strcmp(json_get_string(body, key), "-") != 0)
        return add_text(request, input, option, key, body, reply);
    return refuse_value(reply, false, key, "an object, or the name of a configuration");
}

static int add_within(struct fit_request *request, json_object *input, const char *option,
                      const char *key, json_object *body, struct api_reply *reply)
{
    json_object *value = json_object_object_get(body, key);

    (void)input;
    if (!json_object_is_type(value, json_type_object))
        return refuse_value(reply, false, key, "an object with start, fit or target");
    json_object_object_foreach (value, what, time) {
        char *text = NULL;
        int rc;

        if (!json_object_is_type(time, json_type_string) &&
            !json_object_is_type(time, json_type_int))
            return refuse_value(reply, false, key, "a time such as \"2h\" or 7200");
        if (asprintf(&text, "%s=%s", what, json_object_get_string(time)) < 0)
            return no_memory(reply, false);
        rc = error_is_clean(text) ? add_option(request, option, text) : -1;
        free(text);
        if (rc != 0)
            return refuse_value(reply, false, key, "a time such as \"2h\" or 7200");
    }
    return 0;
}

static int ignore(struct fit_request *request, json_object *input, const char *option,
                  const char *key, json_object *body, struct api_reply *reply)
{
    (void)request;
    (void)input;
    (void)option;
    (void)key;
    (void)body;
    (void)reply;
    return 0;
}

/* What the keys of a body become; which there may be is in the table. */
struct key {
    const char *name, *option;
    /* To the options, or to what elastic-fit reads. */
    int (*add)(struct fit_request *request, json_object *input, const char *option, const char *key,
               json_object *body, struct api_reply *reply);
};

static const struct key start_keys[] = {
    {"model", "model", add_text},     {"data", "data", add_data},
    {"targets", "targets", add_data}, {"dataset", "dataset", add_text},
    {"format", "format", add_text},   {"config", "config", add_config},
    {"from", "from", add_text},       {"within", "within", add_within},
    {"trainer", "trainer", add_text}, {NULL, NULL, NULL},
};
static const struct key cancel_keys[] = {
    {"reason", "reason", add_text},
    {NULL, NULL, NULL},
};
/* What a training may want to know of the rest is its configuration: add_openai_config(). */
static const struct key openai_keys[] = {
    {"model", "model", add_text},
    {"training_file", "data", add_data},
    {"validation_file", "targets", add_data},
    {"hyperparameters", NULL, ignore},
    {"method", NULL, ignore},
    {"seed", NULL, ignore},
    {"suffix", NULL, ignore},
    {"metadata", NULL, ignore},
    {NULL, NULL, NULL},
};
static const struct key no_keys[] = {{NULL, NULL, NULL}};

static const struct key *keys_of(const struct fit_request *request)
{
    if (request->verb == FIT_START)
        return request->openai ? openai_keys : start_keys;
    return request->verb == FIT_CANCEL && !request->openai ? cancel_keys : no_keys;
}

static void add_openai_config(json_object *input, json_object *body)
{
    json_object *config = json_object_new_object();

    for (const struct key *key = openai_keys; key->name != NULL; key++) {
        json_object *value = json_object_object_get(body, key->name);

        if (key->add == ignore && value != NULL)
            json_object_object_add(config, key->name, json_object_get(value));
    }
    if (json_object_object_length(config) > 0)
        json_object_object_add(input, "config", json_object_get(config));
    json_object_put(config);
}

static int add_keys(struct fit_request *request, json_object *input, json_object *body,
                    struct api_reply *reply)
{
    for (const struct key *key = keys_of(request); key->name != NULL; key++)
        if (json_object_object_get(body, key->name) != NULL &&
            key->add(request, input, key->option, key->name, body, reply) != 0)
            return -1;
    if (request->openai && request->verb == FIT_START)
        add_openai_config(input, body);
    return take_input(request, input, reply);
}

static int read_keys(struct fit_request *request, const struct http_route *route, json_object *body,
                     struct api_reply *reply)
{
    json_object *input;
    struct error err;
    int rc;

    if (http_check_keys(route, body, &err) != 0)
        return fit_view_refuse(reply, request->openai, 400, "%s", err.text);
    input = json_object_new_object();
    rc = add_keys(request, input, body, reply);
    json_object_put(input);
    return rc;
}

static int read_body(struct fit_request *request, const struct http_route *route, const char *text,
                     size_t size, struct api_reply *reply)
{
    struct error err;
    json_object *body;
    int rc;

    if (size == 0 && !http_needs_body(route))
        return 0;
    body = json_text_parse(text != NULL ? text : "", size, &err);
    if (body == NULL)
        return fit_view_refuse(reply, request->openai, 400, "the body is no JSON object: %s",
                               err.text);
    rc = read_keys(request, route, body, reply);
    json_object_put(body);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct fit_request *fit_request_read(const char *method, const char *target, const char *body,
                                     size_t size, struct api_reply *reply)
{
    struct fit_request *request;
    struct http_target found;
    bool openai = is_openai(target);
    struct error err;
    int64_t id = 0;

    if (find_route(method, target, &found, &id, reply) != 0)
        return NULL;
    request = calloc(1, sizeof(*request));
    if (request == NULL) {
        no_memory(reply, openai);
        return NULL;
    }
    *request = (struct fit_request){
        .verb = (enum fit_verb)found.route->verb, .openai = openai, .id = id, .limit = LIMIT};
    if (http_parameters(&found, read_parameter, request, &err) != 0)
        fit_view_refuse(reply, openai, 400, "%s", err.text);
    else if (read_body(request, found.route, body, size, reply) == 0)
        return request;
    fit_request_destroy(request);
    return NULL;
}

void fit_request_destroy(struct fit_request *request)
{
    if (request != NULL) {
        strings_free(request->options);
        free(request->input);
    }
    free(request);
}

char **fit_request_command(const struct fit_request *request, const char *service)
{
    static const char *const words[] = {
        [FIT_LIST] = "list",        [FIT_START] = "start", [FIT_SHOW] = "show",
        [FIT_CANCEL] = "cancel",    [FIT_LOG] = "log",     [FIT_EVENTS] = "show",
        [FIT_CHECKPOINTS] = "show",
    };
    char number[24];
    /* "--": none of them is an option. */
    char *head[] = {"elastic-fit", (char *)(uintptr_t)words[request->verb], "--json", NULL};
    char *tail[] = {"--", (char *)(uintptr_t)service, request->id > 0 ? number : NULL, NULL};
    char **command = NULL;

    snprintf(number, sizeof(number), "%" PRId64, request->id);
    if (strings_append(&command, head) == 0 &&
        (request->options == NULL || strings_append(&command, request->options) == 0) &&
        strings_append(&command, tail) == 0)
        return command;
    strings_free(command);
    return NULL;
}
