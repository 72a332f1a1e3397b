/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the tasks of replicas that are ready listen (endpoint_list.h). */
#include "lib/endpoint_list.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/roles.h"
#include "lib/world.h"

#define PORT_MAX 65535

static bool is_address(const char *text)
{
    struct in6_addr address;

    return world_name_ok(text) || (text != NULL && inet_pton(AF_INET6, text, &address) == 1);
}

static bool ports_ok(json_object *ports)
{
    if (ports == NULL)
        return true;
    if (!json_object_is_type(ports, json_type_object))
        return false;
    json_object_object_foreach (ports, name, value) {
        int64_t port;

        (void)value;
        if (!world_name_ok(name) || !json_get_int(ports, name, 1, PORT_MAX, &port))
            return false;
    }
    return true;
}

static int add_task(json_object *list, json_object *replica, json_object *task, struct error *err)
{
    const char *role = json_get_string(replica, "role"), *name = json_get_string(replica, "name");
    const char *address = json_get_string(task, "address");
    json_object *ports = json_object_object_get(task, "ports"), *entry;
    int64_t number = -1;

    json_get_int(task, "task", 0, ROLES_TASKS_MAX, &number);
    if (!world_name_ok(role) || !world_name_ok(name) || number < 0)
        return error_set(err, "its elasticrun names a replica '%s' of role '%s', task %" PRId64,
                         error_value(name).text, error_value(role).text, number);
    if (!is_address(address))
        return error_set(err, "its elasticrun names no address for task %" PRId64 " of %s: '%s'",
                         number, name, error_value(address).text);
    if (!ports_ok(ports))
        return error_set(err, "its elasticrun names ports of task %" PRId64 " of %s that are none",
                         number, name);
    entry = json_object_new_object();
    json_object_object_add(entry, "role", json_from_string(role));
    json_object_object_add(entry, "replica", json_from_string(name));
    json_object_object_add(entry, "task", json_object_new_int64(number));
    json_object_object_add(entry, "node", json_from_string(json_get_string(task, "node")));
    json_object_object_add(entry, "address", json_from_string(address));
    json_object_object_add(entry, "ports",
                           ports != NULL ? json_object_get(ports) : json_object_new_object());
    json_object_array_add(list, entry);
    return 0;
}

static int add_replica(json_object *list, json_object *replica, struct error *err)
{
    const char *state = json_get_string(replica, "state");
    json_object *tasks = json_object_object_get(replica, "tasks");

    if (state == NULL || strcmp(state, "ready") != 0 ||
        !json_object_is_type(tasks, json_type_array))
        return 0;
    for (size_t i = 0; i < json_object_array_length(tasks); i++)
        if (add_task(list, replica, json_object_array_get_idx(tasks, i), err) != 0)
            return -1;
    return 0;
}

json_object *endpoints_of(json_object *answer, struct error *err)
{
    json_object *endpoints = json_object_new_object(), *list = json_object_new_array();
    json_object *all = json_object_object_get(answer, "replicas");
    size_t count = json_object_is_type(all, json_type_array) ? json_object_array_length(all) : 0;

    json_object_object_add(endpoints, "job",
                           json_object_get(json_object_object_get(answer, "job")));
    json_object_object_add(endpoints, "epoch",
                           json_object_get(json_object_object_get(answer, "epoch")));
    json_object_object_add(endpoints, "endpoints", list);
    for (size_t i = 0; i < count; i++)
        if (add_replica(list, json_object_array_get_idx(all, i), err) != 0) {
            int64_t job = 0;

            json_get_int(answer, "job", 0, UINT32_MAX, &job);
            error_prefix(err, "job %" PRId64, job);
            json_object_put(endpoints);
            return NULL;
        }
    return endpoints;
}
