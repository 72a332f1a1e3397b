/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client of the HTTP interface sends, as a request (api_request.h).
 *
 * No name that can be in a path, a parameter or a value needs an escape: what has a '%' is no such
 * name. */
#include "lib/api_request.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/roles.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct route {
    const char *method, *path; /* "*" is a role, "+" a replica */
    enum api_verb verb;
    const char *parameter; /* that it may have; NULL: none */
    const char *key;       /* of its body; NULL: none */
    bool needs_key;
};

static const struct route routes[] = {
    {"GET", "/healthz", API_HEALTH, NULL, NULL, false},
    {"GET", "/metrics", API_METRICS, NULL, NULL, false},
    {"GET", "/v1/roles", API_ROLES, NULL, NULL, false},
    {"GET", "/v1/roles/*", API_ROLE, NULL, NULL, false},
    {"PATCH", "/v1/roles/*", API_SCALE, NULL, "replicas", true},
    {"GET", "/v1/roles/*/replicas", API_REPLICAS, NULL, NULL, false},
    {"POST", "/v1/roles/*/replicas", API_ADD, NULL, "count", true},
    {"GET", "/v1/roles/*/replicas/+", API_REPLICA, NULL, NULL, false},
    {"DELETE", "/v1/roles/*/replicas/+", API_REMOVE, NULL, NULL, false},
    {"POST", "/v1/roles/*/replicas/+/failed", API_FAIL, NULL, "reason", false},
    {"POST", "/v1/roles/*/replicas/+/report", API_REPORT, NULL, NULL, false},
    {"GET", "/v1/reports", API_REPORTS, "after", NULL, false},
    {"GET", "/v1/endpoints", API_ENDPOINTS, "role", NULL, false},
    {"GET", "/v1/watch", API_WATCH, "after", NULL, false},
    {"GET", "/v1/services", API_SERVICES, NULL, NULL, false},
    {"GET", "/v1/shards", API_SHARDS, NULL, NULL, false},
    {"POST", "/v1/shards/apply", API_APPLY, NULL, NULL, false},
    {"POST", "/v1/shards/flush", API_FLUSH, NULL, NULL, false},
};

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

/* Copy as much as fits: a longer name is nobody's, and the end that it has then is not the one of a
 * name either. */
static void copy_name(char *into, size_t size, const char *text, size_t length)
{
    snprintf(into, size, "%.*s", (int)(length < size ? length : size), text);
}

/* Does the path, which ends at `end`, have this form? What the stars stand for is kept. */
static bool matches(const char *form, const char *path, const char *end,
                    struct api_request *request)
{
    request->role[0] = request->replica[0] = '\0';
    for (; *form != '\0'; form++) {
        size_t length = 0;

        if (*form != '*' && *form != '+') {
            if (path == end || *path++ != *form)
                return false;
            continue;
        }
        while (path + length < end && path[length] != '/')
            length++;
        if (length == 0)
            return false;
        if (*form == '*')
            copy_name(request->role, sizeof(request->role), path, length);
        else
            copy_name(request->replica, sizeof(request->replica), path, length);
        path += length;
    }
    return path == end;
}

static bool is_method(const char *method, const char *of_route)
{
    /* The library leaves the body of the answer out. */
    return strcmp(method, of_route) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(of_route, "GET") == 0);
}

static const struct route *find_route(const struct api_input *input, const char *end,
                                      struct api_request *request, struct api_reply *reply)
{
    char allow[sizeof(reply->allow)] = "";

    for (size_t i = 0; i < COUNT(routes); i++) {
        if (!matches(routes[i].path, input->target, end, request))
            continue;
        if (is_method(input->method, routes[i].method))
            return &routes[i];
        text_append(allow, sizeof(allow), "%s%s", allow[0] != '\0' ? ", " : "", routes[i].method);
    }
    if (allow[0] == '\0') {
        refuse(reply, 404, "there is no '%s'", error_value(input->target).text);
        return NULL;
    }
    refuse(reply, 405, "%s of '%s': allowed %s %s", error_value(input->method).text,
           error_value(input->target).text, strchr(allow, ',') != NULL ? "are" : "is", allow);
    memcpy(reply->allow, allow, sizeof(allow));
    return NULL;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int read_parameter(const struct route *route, const char *text, size_t length,
                          struct api_request *request, struct api_reply *reply)
{
    const char *equals = memchr(text, '=', length);
    size_t name = equals != NULL ? (size_t)(equals - text) : length;
    char value[API_ROLE_MAX] = "", shown[64];

    snprintf(shown, sizeof(shown), "%.*s", (int)(length < 60 ? length : 60), text);
    if (route->parameter == NULL || strlen(route->parameter) != name ||
        strncmp(route->parameter, text, name) != 0)
        return refuse(reply, 400, "parameter '%s' is not known; known here %s%s",
                      error_value(shown).text, route->parameter != NULL ? "is " : "is none",
                      route->parameter != NULL ? route->parameter : "");
    if (equals != NULL)
        copy_name(value, sizeof(value), equals + 1, length - name - 1);
    if (route->verb == API_ENDPOINTS && value[0] != '\0' && request->role[0] == '\0') {
        memcpy(request->role, value, sizeof(value));
        return 0;
    }
    if (route->verb != API_ENDPOINTS && request->epoch < 0 &&
        number_parse(value, strlen(value), 0, INT_MAX, &request->epoch) == 0)
        return 0;
    return refuse(reply, 400, "parameter '%s': one %s is expected", error_value(shown).text,
                  route->verb == API_ENDPOINTS ? "name of a role" : "whole number");
}

static int read_parameters(const struct route *route, const char *query,
                           struct api_request *request, struct api_reply *reply)
{
    while (*query != '\0') {
        size_t length = strcspn(query, "&");

        if (length > 0 && read_parameter(route, query, length, request, reply) != 0)
            return -1;
        query += length + (query[length] == '&');
    }
    return 0;
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

/* The kernel says which user has connected. A browser of that user does what foreign web pages
 * want: they are kept out by what it says of them. */
static int check_sender(const struct api_input *input, struct api_reply *reply)
{
    static const char scheme[] = "http://";

    if (!input->tcp)
        return 0;
    if (input->host != NULL && !api_request_is_loopback(input->host))
        return refuse(reply, 403, "header Host: '%s' is not this machine: use 127.0.0.1",
                      error_value(input->host).text);
    if (input->origin == NULL ||
        (input->host != NULL && strncmp(input->origin, scheme, strlen(scheme)) == 0 &&
         strcmp(input->origin + strlen(scheme), input->host) == 0))
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

static bool is_need(const char *key)
{
    return strcmp(key, "cpus") == 0 || strcmp(key, "gpus") == 0 || strcmp(key, "memory") == 0;
}

static int read_keys(const struct route *route, json_object *body, struct api_request *request,
                     struct api_reply *reply)
{
    struct error err;
    bool has_key = false;

    json_object_object_foreach (body, key, value) {
        if (route->key != NULL && strcmp(key, route->key) == 0)
            has_key = true;
        else if (route->verb != API_ADD || !is_need(key))
            return refuse(reply, 400, "key '%s' of the body is not known; known here %s%s",
                          error_value(key).text,
                          route->key == NULL       ? "is none"
                          : route->verb == API_ADD ? "are cpus, gpus, memory and "
                                                   : "is ",
                          route->key != NULL ? route->key : "");
        else if (role_needs_value(&request->needs, key, value, &err) != 0)
            return refuse(reply, 400, "%s", err.text);
    }
    if (!has_key)
        return route->needs_key ? refuse(reply, 400, "the body needs the key '%s'", route->key) : 0;
    if (route->verb == API_FAIL)
        return read_reason(body, request, reply);
    return read_number(route->key, body, route->verb == API_ADD ? 1 : 0, request, reply);
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

static int read_body(const struct route *route, const struct api_input *input,
                     struct api_request *request, struct api_reply *reply)
{
    struct error err;
    json_object *body;
    int rc;

    if (input->body_size > API_BODY_MAX)
        return refuse(reply, 413, "the body has more than %d bytes", API_BODY_MAX);
    if (route->verb == API_REPORT)
        return read_report(input, request, reply);
    if (!route->needs_key && is_blank(input->body, input->body_size))
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
    const char *end = input->target + strcspn(input->target, "?");
    const struct route *route;

    *request = (struct api_request){.epoch = -1, .needs = ROLE_NEEDS_NONE};
    if (check_sender(input, reply) != 0)
        return -1;
    if (di_request_is(input->target, end))
        return read_di(input, request, reply);
    if (fit_request_is(input->target, end))
        return read_fit(input, request, reply);
    route = find_route(input, end, request, reply);
    if (route == NULL)
        return -1;
    request->verb = route->verb;
    request->format = metrics_format_for(input->accept);
    if (read_parameters(route, end + (*end == '?'), request, reply) != 0 ||
        (input->if_match != NULL && api_request_changes(request) &&
         read_if_match(input->if_match, request, reply) != 0))
        return -1;
    return read_body(route, input, request, reply);
}
