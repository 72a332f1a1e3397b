/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients of DI-orchestrator v1alpha1 see of a job (di_view.h). */
#include "lib/di_view.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/api_view.h"

static const char aggregator[] = "aggregator";

/* Gangs that aggregators own. */
struct pairs {
    json_object *owners; /* by the name of the gang, the one of its aggregator */
    json_object *ready;  /* by the name of the aggregator: its gang is ready */
};

static void read_pairs(json_object *answer, struct pairs *pairs)
{
    json_object *list = json_object_object_get(answer, "replicas");
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

    *pairs = (struct pairs){json_object_new_object(), json_object_new_object()};
    for (size_t i = 0; i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        const char *owner = api_view_text(one, "owner");

        if (owner[0] == '\0')
            continue;
        json_object_object_add(pairs->owners, api_view_text(one, "name"),
                               json_object_new_string(owner));
        if (strcmp(api_view_text(one, "state"), "ready") == 0)
            json_object_object_add(pairs->ready, owner, json_object_new_boolean(true));
    }
}

static void free_pairs(const struct pairs *pairs)
{
    json_object_put(pairs->owners);
    json_object_put(pairs->ready);
}

/* What the coordinator sees: a logic learner is there when all of it is. */
static bool is_seen(const struct pairs *pairs, const char *role, const char *replica)
{
    return strcmp(role, aggregator) != 0 ? json_object_object_get(pairs->owners, replica) == NULL
                                         : json_object_object_get(pairs->ready, replica) != NULL;
}

/* NAME.NAMESPACE:PORT, the first port of a task. Of a gang other tasks may be on other nodes: they
 * have names of their own, NAME.TASK. */
static void add_url(json_object *urls, json_object *endpoint, const char *namespace)
{
    int task = api_view_number(endpoint, "task");
    char url[200], which[16] = "";

    if (task > 0)
        snprintf(which, sizeof(which), ".%d", task);
    json_object_object_foreach (json_object_object_get(endpoint, "ports"), name, port) {
        (void)name;
        snprintf(url, sizeof(url), "%.100s%s.%s:%d", api_view_text(endpoint, "replica"), which,
                 namespace, json_object_get_int(port));
        json_object_array_add(urls, json_object_new_string(url));
        return;
    }
}

/* The first task of each ready replica of the role. */
static void add_role(json_object *urls, json_object *endpoints, const struct pairs *pairs,
                     const char *role, const char *namespace)
{
    json_object *list = json_object_object_get(endpoints, "endpoints");

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);

        if (strcmp(api_view_text(one, "role"), role) == 0 && api_view_number(one, "task") == 0 &&
            is_seen(pairs, role, api_view_text(one, "replica")))
            add_url(urls, one, namespace);
    }
}

/* All tasks of the gang of that aggregator. */
static void add_gang(json_object *urls, json_object *endpoints, const struct pairs *pairs,
                     const char *owner, const char *namespace)
{
    json_object *list = json_object_object_get(endpoints, "endpoints");

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i),
                    *of = json_object_object_get(pairs->owners, api_view_text(one, "replica"));

        if (of != NULL && strcmp(json_object_get_string(of), owner) == 0)
            add_url(urls, one, namespace);
    }
}

json_object *di_view_list(json_object *answer, const char *namespace, const char *name,
                          struct error *err)
{
    struct pairs pairs;
    int count;
    json_object *endpoints = api_view_endpoints(answer, NULL, &count, err), *list, *collectors,
                *learners;

    if (endpoints == NULL)
        return NULL;
    collectors = json_object_new_array();
    learners = json_object_new_array();
    read_pairs(answer, &pairs);
    if (api_view_replica(answer, aggregator, name) != NULL) {
        add_gang(learners, endpoints, &pairs, name, namespace);
    } else {
        add_role(collectors, endpoints, &pairs, "collector", namespace);
        add_role(learners, endpoints, &pairs, "learner", namespace);
        add_role(learners, endpoints, &pairs, aggregator, namespace);
    }
    free_pairs(&pairs);
    json_object_put(endpoints);
    list = json_object_new_object();
    json_object_object_add(list, "namespace", json_object_new_string(namespace));
    json_object_object_add(list, "coordinator", json_object_new_string(name));
    json_object_object_add(list, "collectors", collectors);
    json_object_object_add(list, "learners", learners);
    return list;
}
