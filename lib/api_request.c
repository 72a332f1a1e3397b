/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client of the HTTP interface sends, as a request (api_request.h). */
#include "lib/api_request.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/http_table.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/roles.h"
#include "lib/shard_plan.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct http_route routes[] = {
    {"GET", "/healthz", API_HEALTH, NULL, NULL},
    {"GET", "/metrics", API_METRICS, NULL, NULL},
    {"GET", "/v1/roles", API_ROLES, NULL, NULL},
    {"GET", "/v1/roles/*", API_ROLE, NULL, NULL},
    {"PATCH", "/v1/roles/*", API_SCALE, NULL, "replicas!"},
    {"GET", "/v1/roles/*/replicas", API_REPLICAS, NULL, NULL},
    {"POST", "/v1/roles/*/replicas", API_ADD, NULL, "count! cpus gpus memory"},
    {"GET", "/v1/roles/*/replicas/*", API_REPLICA, NULL, NULL},
    {"DELETE", "/v1/roles/*/replicas/*", API_REMOVE, NULL, NULL},
    {"POST", "/v1/roles/*/replicas/*/failed", API_FAIL, NULL, "reason"},
    {"POST", "/v1/roles/*/replicas/*/report", API_REPORT, NULL, NULL},
    {"GET", "/v1/reports", API_REPORTS, "after", NULL},
    {"GET", "/v1/endpoints", API_ENDPOINTS, "role", NULL},
    {"GET", "/v1/watch", API_WATCH, "after", NULL},
    {"GET", "/v1/services", API_SERVICES, NULL, NULL},
    {"POST", "/v1/services/handover", API_HAND_OVER, NULL, NULL},
    {"PUT", "/v1/services/program", API_PROGRAM, NULL, "run!"},
    {"GET", "/v1/shards", API_SHARDS, NULL, NULL},
    {"POST", "/v1/shards/apply", API_APPLY, NULL, NULL},
    {"POST", "/v1/shards/flush", API_FLUSH, NULL, NULL},
    {"POST", "/v1/shards/repack", API_REPACK, NULL, NULL},
    {"PUT", "/v1/shards/*/models", API_PLACE, NULL, "models!"},
    {"PUT", "/v1/shards/*/routes", API_PLACE, NULL, "keys!"},
    {"GET", "/v1/models", API_MODELS, NULL, NULL},
    {"GET", "/v1/models/*", API_MODEL, NULL, NULL},
    {"PUT", "/v1/models/*", API_PUT_MODEL, NULL, "shard"},
    {"DELETE", "/v1/models/*", API_WITHDRAW, NULL, NULL},
    {"GET", "/v1/routes", API_ROUTES, NULL, NULL},
    {"GET", "/v1/routes/**", API_ROUTE, NULL, NULL},
    {"PUT", "/v1/routes/**", API_PUT_MODEL, NULL, "shard"},
    {"DELETE", "/v1/routes/**", API_WITHDRAW, NULL, NULL},
};
static const struct http_table table = {routes, COUNT(routes)};

/* ---- replies --------------------------------------------------------------------------------- */

void api_reply_set(struct api_reply *reply, int status, json_object *data, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    json_object *body = json_object_new_object();

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    error_clean(text);
    *reply = (struct api_reply){.status = status, .body = body, .epoch = -1};
    json_object_object_add(body, "success", json_object_new_boolean(status == 200));
    json_object_object_add(body, "code", json_object_new_int(status == 200 ? 0 : status));
    json_object_object_add(body, "message", json_object_new_string(text));
    json_object_object_add(body, "data", data);
}

void api_reply_clear(struct api_reply *reply)
{
    json_object_put(reply->body);
    free(reply->text);
    *reply = (struct api_reply){0};
}

static int refuse(struct api_reply *reply, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(struct api_reply *reply, int status, const char *fmt, ...)
{
    char text[900];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    api_reply_set(reply, status, NULL, "%s", text);
    return -1;
}

/* ---- the path -------------------------------------------------------------------------------- */

static int find_route(const struct api_input *input, struct http_target *found,
                      struct api_reply *reply)
{
    struct error err;
    int status = http_find(&table, input->method, input->target, found, &err);

    if (status == 0)
        return 0;
    refuse(reply, status, "%s", err.text);
    memcpy(reply->allow, found->allow, sizeof(reply->allow));
    return -1;
}

static bool is_below(const struct http_route *route, const char *path)
{
    return strncmp(route->path, path, strlen(path)) == 0;
}

static void take_names(const struct http_target *found, struct api_request *request)
{
    request->verb = (enum api_verb)found->route->verb;
    if (is_below(found->route, "/v1/roles/")) {
        http_copy_name(request->role, sizeof(request->role), found->names[0]);
        http_copy_name(request->replica, sizeof(request->replica), found->names[1]);
    } else if (is_below(found->route, "/v1/models/")) {
        http_copy_name(request->model, sizeof(request->model), found->names[0]);
    } else {
        http_copy_name(request->key, sizeof(request->key), found->names[0]);
    }
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int read_parameter(const char *name, const char *value, void *arg, struct error *err)
{
    struct api_request *request = arg;

    if (strcmp(name, "role") == 0) {
        if (value[0] == '\0' || request->role[0] != '\0')
            return error_set(err, "one name of a role is expected");
        snprintf(request->role, sizeof(request->role), "%.*s", API_ROLE_MAX, value);
        return 0;
    }
    if (request->epoch < 0 && number_parse(value, strlen(value), 0, INT_MAX, &request->epoch) == 0)
        return 0;
    return error_set(err, "one whole number is expected");
}

/* ---- headers --------------------------------------------------------------------------------- */

/* The machine itself, by a name that no foreign name server answers for. */
bool api_request_is_loopback(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

    for (size_t i = 0; i < COUNT(names); i++) {
        size_t length = strlen(names[i]);

        if (strncmp(host, names[i], length) == 0 && (host[length] == '\0' || host[length] == ':'))
            return true;
    }
    return false;
}

bool api_request_is_foreign(const char *host, const char *origin)
{
    static const char scheme[] = "http://";

    return origin != NULL && (host == NULL || strncmp(origin, scheme, strlen(scheme)) != 0 ||
                              strcmp(origin + strlen(scheme), host) != 0);
}

/* The kernel says which user has connected. A browser of that user does what foreign web pages
 * want: they are kept out by what it says of them. */
static int check_sender(const struct api_input *input, struct api_reply *reply)
{
    if (!input->tcp)
        return 0;
    if (input->host != NULL && !api_request_is_loopback(input->host))
        return refuse(reply, 403, "header Host: '%s' is not this machine: use 127.0.0.1",
                      error_value(input->host).text);
    if (!api_request_is_foreign(input->host, input->origin))
        return 0;
    return refuse(reply, 403, "header Origin: web pages of '%s' may not use the job",
                  error_value(input->origin).text);
}

/* The epoch is quoted in an ETag. */
static int read_if_match(const char *value, struct api_request *request, struct api_reply *reply)
{
    size_t length = strlen(value);
    char number[32];
    bool quoted = length >= 2 && value[0] == '"' && value[length - 1] == '"';

    if (strcmp(value, "*") == 0)
        return 0;
    snprintf(number, sizeof(number), "%.*s", quoted ? (int)length - 2 : (int)length,
             value + quoted);
    if (number_parse(number, strlen(number), 0, INT_MAX, &request->epoch) == 0)
        return 0;
    return refuse(reply, 400, "header If-Match: '%s' is no epoch", error_value(value).text);
}

/* ---- the body -------------------------------------------------------------------------------- */

static int read_number(const char *key, json_object *body, int least, struct api_request *request,
                       struct api_reply *reply)
{
    int64_t number;

    if (!json_get_int(body, key, least, ROLES_REPLICAS_MAX, &number))
        return refuse(reply, 400, "%s: a whole number from %d to %d is expected", key, least,
                      ROLES_REPLICAS_MAX);
    request->count = (int)number;
    return 0;
}

static int read_reason(json_object *body, struct api_request *request, struct api_reply *reply)
{
    const char *reason = json_get_string(body, "reason");

    if (reason == NULL)
        return refuse(reply, 400, "reason: a text is expected");
    snprintf(request->reason, sizeof(request->reason), "%s", reason);
    error_clean(request->reason);
    return 0;
}

static int read_needs(json_object *body, struct api_request *request, struct api_reply *reply)
{
    static const char *const needs[] = {"cpus", "gpus", "memory"};
    struct error err;

    for (size_t i = 0; i < COUNT(needs); i++) {
        json_object *value;

        if (json_object_object_get_ex(body, needs[i], &value) &&
            role_needs_value(&request->needs, needs[i], value, &err) != 0)
            return refuse(reply, 400, "%s", err.text);
    }
    return read_number("count", body, 1, request, reply);
}

static bool shard_of(const char *shard, int *number)
{
    static const char prefix[] = "shard_";

    return shard != NULL && strncmp(shard, prefix, strlen(prefix)) == 0 &&
           number_parse(shard + strlen(prefix), strlen(shard) - strlen(prefix), 1,
                        SHARD_PLAN_SHARDS_MAX, number) == 0;
}

static int read_shard(json_object *body, struct api_request *request, struct api_reply *reply)
{
    if (shard_of(json_get_string(body, "shard"), &request->count))
        return 0;
    return refuse(reply, 400, "shard: a shard such as \"shard_1\" is expected");
}

static bool is_list(json_object *list)
{
    if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) == 0)
        return false;
    for (size_t i = 0; i < json_object_array_length(list); i++)
        if (!json_object_is_type(json_object_array_get_idx(list, i), json_type_string))
            return false;
    return true;
}

static int read_list(const char *key, json_object *body, struct api_request *request,
                     struct api_reply *reply)
{
    json_object *list = json_object_object_get(body, key);
    const char *text;

    if (!is_list(list))
        return refuse(reply, 400, "%s: a list of one or more texts is expected", key);
    text = json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN);
    if (strlen(text) > REPORT_MAX)
        return refuse(reply, 400, "%s: it has more than %d bytes; selastic takes more", key,
                      REPORT_MAX);
    snprintf(request->report, sizeof(request->report), "%s", text);
    return 0;
}

static int read_place(json_object *body, struct api_request *request, struct api_reply *reply)
{
    if (!shard_of(request->key, &request->count))
        return refuse(reply, 404, "'%s' is no shard; one is called shard_1",
                      error_value(request->key).text);
    request->keys = !json_object_object_get_ex(body, "models", NULL);
    return read_list(request->keys ? "keys" : "models", body, request, reply);
}

static int read_keys(const struct http_route *route, json_object *body, struct api_request *request,
                     struct api_reply *reply)
{
    struct error err;

    if (http_check_keys(route, body, &err) != 0)
        return refuse(reply, 400, "%s", err.text);
    switch (route->verb) {
    case API_ADD:
        return read_needs(body, request, reply);
    case API_SCALE:
        return read_number("replicas", body, 0, request, reply);
    case API_FAIL:
        return json_object_object_length(body) > 0 ? read_reason(body, request, reply) : 0;
    case API_PLACE:
        return read_place(body, request, reply);
    case API_PROGRAM:
        return read_list("run", body, request, reply);
    case API_PUT_MODEL:
        return json_object_object_length(body) > 0 ? read_shard(body, request, reply) : 0;
    default:
        return 0;
    }
}

static int read_report(const struct api_input *input, struct api_request *request,
                       struct api_reply *reply)
{
    struct error err;

    if (report_read(input->body != NULL ? input->body : "", input->body_size, request->report,
                    &err) != 0)
        return refuse(reply, 400, "the body is no report: %s", err.text);
    snprintf(request->id, sizeof(request->id), "%s", input->id != NULL ? input->id : "");
    return 0;
}

static bool is_blank(const char *text, size_t size)
{
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL && text[size - 1] != '\0')
        size--;
    return size == 0;
}

static int read_body(const struct http_route *route, const struct api_input *input,
                     struct api_request *request, struct api_reply *reply)
{
    struct error err;
    json_object *body;
    int rc;

    if (input->body_size > API_BODY_MAX)
        return refuse(reply, 413, "the body has more than %d bytes", API_BODY_MAX);
    if (route->verb == API_REPORT)
        return read_report(input, request, reply);
    if (!http_needs_body(route) && is_blank(input->body, input->body_size))
        return 0;
    body = json_text_parse(input->body != NULL ? input->body : "", input->body_size, &err);
    if (body == NULL)
        return refuse(reply, 400, "the body is no JSON object: %s", err.text);
    rc = read_keys(route, body, request, reply);
    json_object_put(body);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool api_request_changes(const struct api_request *request)
{
    return request->verb == API_SCALE || request->verb == API_ADD || request->verb == API_REMOVE ||
           request->verb == API_FAIL ||
           (request->verb == API_DI && di_request_changes(request->di));
}

bool api_request_orders(const struct api_request *request)
{
    return request->verb == API_APPLY || request->verb == API_FLUSH ||
           request->verb == API_REPACK || request->verb == API_HAND_OVER ||
           request->verb == API_PUT_MODEL || request->verb == API_WITHDRAW ||
           request->verb == API_PLACE || request->verb == API_PROGRAM;
}

bool api_request_watches(const struct api_request *request)
{
    return request->verb == API_WATCH || (request->verb == API_REPORTS && request->epoch >= 0);
}

static int read_di(const struct api_input *input, struct api_request *request,
                   struct api_reply *reply)
{
    if (input->body_size > API_BODY_MAX)
        return refuse(reply, 413, "the body has more than %d bytes", API_BODY_MAX);
    request->verb = API_DI;
    request->di = di_request_read(input->method, input->target, input->body, input->body_size);
    return request->di != NULL ? 0 : refuse(reply, 500, "out of memory");
}

static int read_fit(const struct api_input *input, struct api_request *request,
                    struct api_reply *reply)
{
    if (input->body_size > API_BODY_MAX)
        return refuse(reply, 413, "the body has more than %d bytes", API_BODY_MAX);
    request->verb = API_FIT;
    request->fit = fit_request_read(input->method, input->target, input->body, input->body_size,
                                    reply);
    return request->fit != NULL ? 0 : -1;
}

int api_request_read(const struct api_input *input, struct api_request *request,
                     struct api_reply *reply)
{
    struct http_target found;
    struct error err;

    *request = (struct api_request){.epoch = -1, .needs = ROLE_NEEDS_NONE};
    if (check_sender(input, reply) != 0)
        return -1;
    if (di_request_is(input->target))
        return read_di(input, request, reply);
    if (fit_request_is(input->target))
        return read_fit(input, request, reply);
    if (find_route(input, &found, reply) != 0)
        return -1;
    take_names(&found, request);
    request->format = metrics_format_for(input->accept);
    if (http_parameters(&found, read_parameter, request, &err) != 0)
        return refuse(reply, 400, "%s", err.text);
    if (input->if_match != NULL && api_request_changes(request) &&
        read_if_match(input->if_match, request, reply) != 0)
        return -1;
    return read_body(found.route, input, request, reply);
}
