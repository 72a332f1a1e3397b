/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's answer to `roles`, as the HTTP interface shows it (api_view.h). */
#include "lib/api_view.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/endpoint_list.h"
#include "lib/json_get.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what the answer has --------------------------------------------------------------------- */

static json_object *list_of(json_object *answer, const char *key, size_t *count)
{
    json_object *list = json_object_object_get(answer, key);

    *count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    return list;
}

const char *api_view_text(json_object *object, const char *key)
{
    const char *text = json_get_string(object, key);

    return text != NULL ? text : "";
}

int api_view_number(json_object *object, const char *key)
{
    int64_t number;

    return json_get_int(object, key, INT_MIN, INT_MAX, &number) ? (int)number : -1;
}

int api_view_epoch(json_object *answer)
{
    return api_view_number(answer, "epoch");
}

json_object *api_view_role(json_object *answer, const char *role)
{
    size_t count;
    json_object *list = list_of(answer, "roles", &count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(api_view_text(json_object_array_get_idx(list, i), "name"), role) == 0)
            return json_object_array_get_idx(list, i);
    return NULL;
}

json_object *api_view_replica(json_object *answer, const char *role, const char *replica)
{
    size_t count;
    json_object *list = list_of(answer, "replicas", &count);

    for (size_t i = 0; i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);

        if (strcmp(api_view_text(one, "name"), replica) == 0 &&
            strcmp(api_view_text(one, "role"), role) == 0)
            return one;
    }
    return NULL;
}

const char *api_view_names(json_object *answer, char *text, size_t size)
{
    size_t count;
    json_object *list = list_of(answer, "roles", &count);

    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        text_append(text, size, "%s%s", i > 0 ? ", " : "",
                    api_view_text(json_object_array_get_idx(list, i), "name"));
    return text;
}

static int count_in(json_object *answer, const char *role, const char *state)
{
    size_t count;
    json_object *list = list_of(answer, "replicas", &count);
    int found = 0;

    for (size_t i = 0; i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);

        found += strcmp(api_view_text(one, "role"), role) == 0 &&
                 strcmp(api_view_text(one, "state"), state) == 0;
    }
    return found;
}

int api_view_running(json_object *answer, const char *role)
{
    return count_in(answer, role, "starting") + count_in(answer, role, "ready") +
           count_in(answer, role, "failed");
}

/* ---- as clients see it ----------------------------------------------------------------------- */

static void keep(json_object *into, json_object *answer, const char *key)
{
    json_object_object_add(into, key, json_object_get(json_object_object_get(answer, key)));
}

json_object *api_view_roles(json_object *answer)
{
    json_object *view = json_object_new_object();

    keep(view, answer, "job");
    keep(view, answer, "epoch");
    keep(view, answer, "roles");
    return view;
}

json_object *api_view_all(json_object *answer)
{
    json_object *view = api_view_roles(answer);

    keep(view, answer, "replicas");
    return view;
}

/* Those objects of the list whose "role" it is; all for NULL. */
static json_object *of_role(json_object *list, size_t count, const char *role)
{
    json_object *kept = json_object_new_array();

    for (size_t i = 0; i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);

        if (role == NULL || strcmp(api_view_text(one, "role"), role) == 0)
            json_object_array_add(kept, json_object_get(one));
    }
    return kept;
}

json_object *api_view_replicas(json_object *answer, const char *role)
{
    json_object *view = json_object_new_object(), *list;
    size_t count;

    keep(view, answer, "job");
    keep(view, answer, "epoch");
    list = list_of(answer, "replicas", &count);
    json_object_object_add(view, "replicas", of_role(list, count, role));
    return view;
}

json_object *api_view_endpoints(json_object *answer, const char *role, int *count,
                                struct error *err)
{
    json_object *view = endpoints_of(answer, err), *list;
    size_t all;

    if (view == NULL)
        return NULL;
    list = list_of(view, "endpoints", &all);
    list = of_role(list, all, role);
    *count = (int)json_object_array_length(list);
    json_object_object_add(view, "endpoints", list);
    return view;
}

json_object *api_view_reports(json_object *answer, int *count)
{
    static const char *const keys[] = {"job", "first", "last", "missed"};
    json_object *view = json_object_new_object(), *list;
    size_t all;

    for (size_t i = 0; i < COUNT(keys); i++)
        keep(view, answer, keys[i]);
    list = list_of(answer, "reports", &all);
    *count = (int)all;
    json_object_object_add(view, "reports",
                           all > 0 ? json_object_get(list) : json_object_new_array());
    return view;
}

json_object *api_view_shards(json_object *answer)
{
    static const char *const keys[] = {"job",     "service", "term",    "epoch",      "revision",
                                       "shards",  "models",  "refused", "repository", "handover",
                                       "routers", "dir",     "counts"};
    json_object *view = json_object_new_object();

    for (size_t i = 0; i < COUNT(keys); i++)
        keep(view, answer, keys[i]);
    return view;
}

json_object *api_view_services(json_object *answer)
{
    static const char *const keys[] = {"service",  "job",      "term",    "epoch",
                                       "revision", "handover", "routers", "dir"};
    json_object *view = json_object_new_object(), *one = json_object_new_object();
    json_object *list = json_object_new_array();
    size_t count;

    for (size_t i = 0; i < COUNT(keys); i++)
        keep(one, answer, keys[i]);
    list_of(answer, "shards", &count);
    json_object_object_add(one, "shards", json_object_new_int((int)count));
    list_of(answer, "models", &count);
    json_object_object_add(one, "models", json_object_new_int((int)count));
    json_object_array_add(list, one);
    json_object_object_add(view, "services", list);
    return view;
}

static json_object *keep_list(json_object *answer, const char *key)
{
    json_object *view = json_object_new_object();

    keep(view, answer, key);
    return view;
}

json_object *api_view_models(json_object *answer)
{
    json_object *view = keep_list(answer, "models");

    keep(view, answer, "refused");
    return view;
}

json_object *api_view_model(json_object *answer, const char *key, const char *value)
{
    size_t count;
    json_object *list = list_of(answer, "models", &count);

    for (size_t i = 0; i < count; i++) {
        json_object *model = json_object_array_get_idx(list, i);
        const char *its = json_get_string(model, key);

        if (its != NULL && strcmp(its, value) == 0)
            return model;
    }
    return NULL;
}

json_object *api_view_route(json_object *model)
{
    json_object *route = json_object_new_object();
    int shard = api_view_number(model, "routed");
    char name[24];

    snprintf(name, sizeof(name), "shard_%d", shard);
    keep(route, model, "key");
    json_object_object_add(route, "model", json_object_new_string(api_view_text(model, "name")));
    json_object_object_add(route, "shard", shard > 0 ? json_object_new_string(name) : NULL);
    return route;
}

json_object *api_view_routes(json_object *answer)
{
    json_object *view = json_object_new_object(), *routes = json_object_new_array();
    size_t count;
    json_object *list = list_of(answer, "models", &count);

    for (size_t i = 0; i < count; i++)
        json_object_array_add(routes, api_view_route(json_object_array_get_idx(list, i)));
    json_object_object_add(view, "routes", routes);
    return view;
}
