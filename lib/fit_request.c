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
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define VALUE_MAX 4096 /* bytes of a value */
#define LIMIT     20   /* jobs of an answer, as OpenAI's servers have it */

static const struct route {
    const char *method, *path; /* "#" is the number of a fit, or "ftjob-" and its number */
    enum fit_verb verb;
    bool openai;
} routes[] = {
    {"GET", "/v1/fits", FIT_LIST, false},
    {"POST", "/v1/fits", FIT_START, false},
    {"GET", "/v1/fits/#", FIT_SHOW, false},
    {"POST", "/v1/fits/#/cancel", FIT_CANCEL, false},
    {"GET", "/v1/fits/#/log", FIT_LOG, false},
    {"GET", "/v1/fine_tuning/jobs", FIT_LIST, true},
    {"POST", "/v1/fine_tuning/jobs", FIT_START, true},
    {"GET", "/v1/fine_tuning/jobs/#", FIT_SHOW, true},
    {"POST", "/v1/fine_tuning/jobs/#/cancel", FIT_CANCEL, true},
    {"GET", "/v1/fine_tuning/jobs/#/events", FIT_EVENTS, true},
    {"GET", "/v1/fine_tuning/jobs/#/checkpoints", FIT_CHECKPOINTS, true},
};

/* ---- the path -------------------------------------------------------------------------------- */

static bool begins_with(const char *path, const char *end, const char *with)
{
    size_t length = strlen(with);

    return (size_t)(end - path) >= length && strncmp(path, with, length) == 0 &&
           (path + length == end || path[length] == '/');
}

static bool is_openai(const char *path, const char *end)
{
    return begins_with(path, end, "/v1/fine_tuning");
}

bool fit_request_is(const char *path, const char *end)
{
    return begins_with(path, end, "/v1/fits") || is_openai(path, end);
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

static bool matches(const struct route *route, const char *path, const char *end, int64_t *id)
{
    const char *form = route->path;

    for (; *form != '\0'; form++) {
        size_t length = 0;

        if (*form != '#') {
            if (path == end || *path++ != *form)
                return false;
            continue;
        }
        while (path + length < end && path[length] != '/')
            length++;
        if (read_id(path, length, route->openai, id) != 0)
            return false;
        path += length;
    }
    return path == end;
}

static const struct route *find_route(const char *method, const char *target, const char *end,
                                      int64_t *id, struct api_reply *reply)
{
    char allow[sizeof(reply->allow)] = "";
    bool openai = is_openai(target, end);

    for (size_t i = 0; i < COUNT(routes); i++) {
        if (!matches(&routes[i], target, end, id))
            continue;
        if (strcmp(method, routes[i].method) == 0 ||
            (strcmp(method, "HEAD") == 0 && strcmp(routes[i].method, "GET") == 0))
            return &routes[i];
        text_append(allow, sizeof(allow), "%s%s", allow[0] != '\0' ? ", " : "", routes[i].method);
    }
    if (allow[0] == '\0') {
        fit_view_refuse(reply, openai, 404, "there is no '%s'", error_value(target).text);
        return NULL;
    }
    fit_view_refuse(reply, openai, 405, "%s of '%s': allowed %s %s", error_value(method).text,
                    error_value(target).text, strchr(allow, ',') != NULL ? "are" : "is", allow);
    memcpy(reply->allow, allow, sizeof(allow));
    return NULL;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int read_parameter(struct fit_request *request, const char *text, size_t length)
{
    static const char after[] = "after=", limit[] = "limit=";

    if (request->verb != FIT_LIST && request->verb != FIT_EVENTS)
        return -1;
    if (length > strlen(limit) && strncmp(text, limit, strlen(limit)) == 0)
        return number_parse(text + strlen(limit), length - strlen(limit), 1, FIT_PAGE_MAX,
                            &request->limit);
    if (request->verb == FIT_LIST && length > strlen(after) &&
        strncmp(text, after, strlen(after)) == 0)
        return read_id(text + strlen(after), length - strlen(after), true, &request->after);
    return -1;
}

static int read_parameters(struct fit_request *request, const char *query, struct api_reply *reply)
{
    while (*query != '\0') {
        size_t length = strcspn(query, "&");
        char shown[64];

        snprintf(shown, sizeof(shown), "%.*s", (int)(length < 60 ? length : 60), query);
        if (length > 0 && (!request->openai || read_parameter(request, query, length) != 0))
            return fit_view_refuse(reply, request->openai, 400, "parameter '%s': known here %s",
                                   error_value(shown).text,
                                   request->openai ? "are after=" FIT_JOB_PREFIX "N of a list of "
                                                     "jobs, and limit=1 to 100 of a list"
                                                   : "is none");
        query += length + (query[length] == '&');
    }
    return 0;
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

static int add_text(struct fit_request *request, const char *option, const char *key,
                    json_object *body, struct api_reply *reply)
{
    const char *value = json_get_string(body, key);

    if (value == NULL || value[0] == '\0' || strlen(value) > VALUE_MAX || !error_is_clean(value))
        return refuse_value(reply, request->openai, key, "a text of one line");
    return add_option(request, option, value) == 0 ? 0 : no_memory(reply, request->openai);
}

/* The service's directory is no place for a client to begin at. */
static int add_data(struct fit_request *request, const char *option, const char *key,
                    json_object *body, struct api_reply *reply)
{
    const char *value = json_get_string(body, key);

    if (value == NULL || (value[0] != '/' && strstr(value, "://") == NULL))
        return refuse_value(reply, request->openai, key, "a path that begins with '/', or a URL");
    return add_text(request, option, key, body, reply);
}

static int add_object(struct fit_request *request, const char *option, json_object *value,
                      struct api_reply *reply)
{
    const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                                 JSON_C_TO_STRING_NOSLASHESCAPE);

    return text != NULL && add_option(request, option, text) == 0
               ? 0
               : no_memory(reply, request->openai);
}

static int add_config(struct fit_request *request, const char *option, const char *key,
                      json_object *body, struct api_reply *reply)
{
    json_object *value = json_object_object_get(body, key);

    (void)option;
    if (json_object_is_type(value, json_type_object))
        return add_object(request, "config", value, reply);
    if (json_object_is_type(value, json_type_string) &&
        text_made_of(json_get_string(body, key), "_-"))
        return add_text(request, "config", key, body, reply);
    return refuse_value(reply, false, key, "an object, or the name of a configuration");
}

static int add_within(struct fit_request *request, const char *option, const char *key,
                      json_object *body, struct api_reply *reply)
{
    json_object *value = json_object_object_get(body, key);

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

static int ignore(struct fit_request *request, const char *option, const char *key,
                  json_object *body, struct api_reply *reply)
{
    (void)request;
    (void)option;
    (void)key;
    (void)body;
    (void)reply;
    return 0;
}

/* What the keys of a body become. */
struct key {
    const char *name, *option;
    int (*add)(struct fit_request *request, const char *option, const char *key, json_object *body,
               struct api_reply *reply);
    bool needed;
};

static const struct key start_keys[] = {
    {"data", "data", add_data, true},
    {"model", "model", add_text, false},
    {"targets", "targets", add_data, false},
    {"dataset", "dataset", add_text, false},
    {"format", "format", add_text, false},
    {"config", "config", add_config, false},
    {"from", "from", add_text, false},
    {"within", "within", add_within, false},
    {NULL, NULL, NULL, false},
};
static const struct key cancel_keys[] = {
    {"reason", "reason", add_text, false},
    {NULL, NULL, NULL, false},
};
/* What a training may want to know of the rest is its configuration: add_openai_config(). */
static const struct key openai_keys[] = {
    {"model", "model", add_text, true},
    {"training_file", "data", add_data, true},
    {"validation_file", "targets", add_data, false},
    {"hyperparameters", NULL, ignore, false},
    {"method", NULL, ignore, false},
    {"seed", NULL, ignore, false},
    {"suffix", NULL, ignore, false},
    {"metadata", NULL, ignore, false},
    {NULL, NULL, NULL, false},
};
static const struct key no_keys[] = {{NULL, NULL, NULL, false}};

static const struct key *keys_of(const struct fit_request *request)
{
    if (request->verb == FIT_START)
        return request->openai ? openai_keys : start_keys;
    return request->verb == FIT_CANCEL && !request->openai ? cancel_keys : no_keys;
}

static int add_openai_config(struct fit_request *request, json_object *body,
                             struct api_reply *reply)
{
    json_object *config = json_object_new_object();
    int rc = 0;

    for (const struct key *key = openai_keys; key->name != NULL; key++) {
        json_object *value = json_object_object_get(body, key->name);

        if (key->add == ignore && value != NULL)
            json_object_object_add(config, key->name, json_object_get(value));
    }
    if (json_object_object_length(config) > 0)
        rc = add_object(request, "config", config, reply);
    json_object_put(config);
    return rc;
}

static int refuse_key(const struct fit_request *request, const struct key *keys, const char *name,
                      struct api_reply *reply)
{
    char known[200] = "";

    for (const struct key *key = keys; key->name != NULL; key++)
        text_append(known, sizeof(known), "%s%s", key == keys ? "" : ", ", key->name);
    return fit_view_refuse(reply, request->openai, 400,
                           "key '%s' of the body is not known; known here %s%s",
                           error_value(name).text,
                           known[0] == '\0'             ? "is none"
                           : strchr(known, ',') == NULL ? "is "
                                                        : "are ",
                           known);
}

static int read_keys(struct fit_request *request, json_object *body, struct api_reply *reply)
{
    const struct key *keys = keys_of(request), *key;

    json_object_object_foreach (body, name, value) {
        for (key = keys; key->name != NULL && strcmp(key->name, name) != 0; key++)
            ;
        if (key->name == NULL)
            return refuse_key(request, keys, name, reply);
        if (value != NULL && key->add(request, key->option, name, body, reply) != 0)
            return -1;
    }
    for (key = keys; key->name != NULL; key++)
        if (key->needed && json_object_object_get(body, key->name) == NULL)
            return fit_view_refuse(reply, request->openai, 400, "the body needs the key '%s'",
                                   key->name);
    return keys == openai_keys ? add_openai_config(request, body, reply) : 0;
}

static int read_body(struct fit_request *request, const char *text, size_t size,
                     struct api_reply *reply)
{
    struct error err;
    json_object *body;
    int rc;

    if (size == 0 && request->verb != FIT_START)
        return 0;
    body = json_text_parse(text != NULL ? text : "", size, &err);
    if (body == NULL)
        return fit_view_refuse(reply, request->openai, 400, "the body is no JSON object: %s",
                               err.text);
    rc = read_keys(request, body, reply);
    json_object_put(body);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct fit_request *fit_request_read(const char *method, const char *target, const char *body,
                                     size_t size, struct api_reply *reply)
{
    const char *end = target + strcspn(target, "?");
    struct fit_request *request;
    const struct route *route;
    int64_t id = 0;

    route = find_route(method, target, end, &id, reply);
    if (route == NULL)
        return NULL;
    request = calloc(1, sizeof(*request));
    if (request == NULL) {
        no_memory(reply, route->openai);
        return NULL;
    }
    *request = (struct fit_request){
        .verb = route->verb, .openai = route->openai, .id = id, .limit = LIMIT};
    if (read_parameters(request, end + (*end == '?'), reply) == 0 &&
        read_body(request, body, size, reply) == 0)
        return request;
    fit_request_destroy(request);
    return NULL;
}

void fit_request_destroy(struct fit_request *request)
{
    if (request != NULL)
        strings_free(request->options);
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
    /* "--": a service may have any name. */
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
