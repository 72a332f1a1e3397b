/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client of DI-orchestrator v1alpha1 sends (di_request.h).
 *
 * As there, keys are found in any case, and unknown keys of a body are left alone. A body of GET is
 * not read. */
#include "lib/di_request.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/http_table.h"
#include "lib/json_text.h"
#include "lib/role_needs.h"
#include "lib/roles.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const kinds[DI_KINDS] = {"collectors", "learners"};

static int refuse(struct di_request *request, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(struct di_request *request, int status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(request->message, sizeof(request->message), fmt, args);
    va_end(args);
    error_clean(request->message);
    request->verb = DI_REFUSED;
    request->status = status;
    return -1;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static int read_parameter(const struct http_parameter *is, struct di_request *request)
{
    struct {
        const char *key;
        char *value;
    } known[] = {{"namespace", request->namespace},
                 {"coordinator", request->coordinator},
                 {"name", request->name},
                 {"aggregator", request->aggregator}};

    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcasecmp(known[i].key, is->name) != 0)
            continue;
        if (known[i].value[0] == '\0')
            snprintf(known[i].value, DI_NAME_MAX, "%.*s", DI_NAME_MAX, is->value);
        return 0;
    }
    return refuse(request, 400, "request param %s is not supported", is->name);
}

static int read_parameters(const char *query, struct di_request *request)
{
    struct http_parameter parameter;

    while (http_next_parameter(&query, &parameter))
        if (read_parameter(&parameter, request) != 0)
            return -1;
    return 0;
}

/* ---- the body -------------------------------------------------------------------------------- */

static int bad(struct di_request *request, const char *key, const char *expected)
{
    return refuse(request, 400, "failed to decode request body: %s: %s is expected", key, expected);
}

/* NULL: it is not there, or null. */
static json_object *find(json_object *body, const char *wanted)
{
    json_object *found = NULL;

    json_object_object_foreach (body, key, value)
        found = strcasecmp(key, wanted) == 0 ? value : found;
    return found;
}

static int read_name(json_object *body, const char *key, char *name, struct di_request *request)
{
    json_object *value = find(body, key);

    if (value == NULL)
        return 0;
    if (!json_object_is_type(value, json_type_string))
        return bad(request, key, "a text");
    snprintf(name, DI_NAME_MAX, "%s", json_object_get_string(value));
    return 0;
}

static int read_quantity(json_object *object, const char *key, double *quantity,
                         struct di_request *request)
{
    json_object *value = find(object, key);

    if (value == NULL)
        return 0;
    if (role_quantity(value, quantity))
        return 0;
    return bad(request, key, "a quantity such as 2, 500m or 200Mi");
}

static int read_kind(json_object *body, enum di_kind kind, struct di_request *request)
{
    json_object *object = find(body, kinds[kind]), *replicas;
    struct di_size *size = &request->sizes[kind];
    int64_t number;

    if (object == NULL)
        return 0;
    if (!json_object_is_type(object, json_type_object))
        return bad(request, kinds[kind], "an object");
    replicas = find(object, "replicas");
    number = json_object_get_int64(replicas);
    if (replicas != NULL && (!json_object_is_type(replicas, json_type_int) || number < 0 ||
                             number > ROLES_REPLICAS_MAX))
        return bad(request, "replicas", "a whole number from 0 to 10000");
    request->replicas[kind] = (int)number;
    if (read_quantity(object, "cpus", &size->cpus, request) != 0 ||
        read_quantity(object, "gpus", &size->gpus, request) != 0)
        return -1;
    return read_quantity(object, "memory", &size->memory, request);
}

static bool is_known(char *const *names, const char *name)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static int read_names(json_object *body, struct di_request *request)
{
    size_t count = 0, most = 1;

    for (int i = 0; i < DI_KINDS; i++) {
        json_object *list = find(body, kinds[i]);

        if (list != NULL && !json_object_is_type(list, json_type_array))
            return bad(request, kinds[i], "a list of names");
        most += list != NULL ? json_object_array_length(list) : 0;
    }
    if (most > ROLES_REPLICAS_MAX)
        return bad(request, "collectors and learners", "10000 names at most");
    request->names = calloc(most, sizeof(*request->names));
    if (request->names == NULL)
        return refuse(request, 500, "out of memory");
    for (int i = 0; i < DI_KINDS; i++) {
        json_object *list = find(body, kinds[i]);

        for (size_t k = 0; list != NULL && k < json_object_array_length(list); k++) {
            json_object *name = json_object_array_get_idx(list, k);

            if (!json_object_is_type(name, json_type_string))
                return bad(request, kinds[i], "a list of names");
            if (is_known(request->names, json_object_get_string(name)))
                continue;
            request->names[count] = strndup(json_object_get_string(name), DI_NAME_MAX);
            if (request->names[count++] == NULL)
                return refuse(request, 500, "out of memory");
        }
    }
    return 0;
}

static int read_keys(json_object *body, struct di_request *request)
{
    if (read_name(body, "namespace", request->namespace, request) != 0 ||
        read_name(body, "coordinator", request->coordinator, request) != 0)
        return -1;
    if (request->verb == DI_FAIL)
        return read_names(body, request);
    if (read_kind(body, DI_COLLECTORS, request) != 0)
        return -1;
    return read_kind(body, DI_LEARNERS, request);
}

static int read_body(const char *text, size_t size, struct di_request *request)
{
    struct error err;
    json_object *body;
    int rc;

    if (size == 0)
        return refuse(request, 400, "failed to decode request body: EOF");
    body = json_text_parse(text, size, &err);
    if (body == NULL)
        return refuse(request, 400, "failed to decode request body: %s", err.text);
    rc = read_keys(body, request);
    json_object_put(body);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static const struct http_route routes[] = {
    {"GET", "/v1alpha1/replicas", DI_LIST, NULL, NULL},
    {"POST", "/v1alpha1/replicas", DI_ADD, NULL, NULL},
    {"DELETE", "/v1alpha1/replicas", DI_REMOVE, NULL, NULL},
    {"POST", "/v1alpha1/replicas/failed", DI_FAIL, NULL, NULL},
};
static const struct http_table table = {routes, COUNT(routes)};

bool di_request_is(const char *target)
{
    struct http_target found;

    return http_find(&table, "", target, &found, NULL) != 404;
}

struct di_request *di_request_read(const char *method, const char *target, const char *body,
                                   size_t size)
{
    struct di_request *request = calloc(1, sizeof(*request));
    struct http_target found;
    bool known = http_find(&table, method, target, &found, NULL) == 0;

    if (request == NULL)
        return NULL;
    request->path = found.route->path;
    request->verb = known ? (enum di_verb)found.route->verb : DI_REFUSED;
    if (!known)
        refuse(request, 501, "%s not implemented", error_value(method).text);
    else if (request->verb == DI_LIST)
        read_parameters(found.query, request);
    else
        read_body(body, size, request);
    return request;
}

void di_request_destroy(struct di_request *request)
{
    if (request == NULL)
        return;
    if (request->names != NULL)
        strings_free(request->names);
    free(request);
}

bool di_request_changes(const struct di_request *request)
{
    return request->verb == DI_ADD || request->verb == DI_REMOVE || request->verb == DI_FAIL;
}
