/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the message task_start orders (replica_order.h). */
#include "agent/member/replica_order.h"

#include "agent/port.h"
#include "lib/json_get.h"
#include "lib/role_needs.h"

/* The first node of a gang chooses MASTER_PORT, which it adds to the message. */
static int choose_port(json_object *msg, struct replica_order *order, struct error *err)
{
    int64_t index, port;
    int chosen;

    if (!json_get_int(msg, "node_index", 0, INT32_MAX, &index) || index != 0 ||
        !json_get_int(msg, "master_port", 0, 0, &port))
        return 0;
    order->master_fd = port_hold(&chosen, err);
    order->no_port = order->master_fd < 0;
    if (order->no_port)
        return -1;
    json_object_object_add(msg, "master_port", json_object_new_int(chosen));
    return 0;
}

int replica_order_read(struct replica_order *order, const struct roles *roles, json_object *msg,
                       struct error *err)
{
    const char *role = json_get_string(msg, "role");
    int index = role != NULL ? roles_find(roles, role) : -1;

    if (index < 0 || roles->list[index].kind == ROLE_WORLD)
        return error_set(err, "no role of replicas is called '%s'", error_value(role).text);
    order->role = &roles->list[index];
    order->name = json_get_string(msg, "name");
    if (order->name == NULL)
        return error_set(err, "it has no name");
    if (choose_port(msg, order, err) != 0)
        return -1;
    order->world = world_from_json(msg, err);
    if (order->world == NULL)
        return -1;
    order->owner = json_get_string(msg, "owner");
    if (!json_get_int(msg, "owner_port", 0, 65535, &order->owner_port))
        order->owner_port = 0;
    order->models = json_get_string(msg, "models");
    if (!json_get_int(msg, "version", 0, INT64_MAX, &order->version))
        order->version = 0;
    if (!json_get_int(msg, "program", 0, INT64_MAX, &order->program))
        order->program = 0;
    order->run = json_get_strings(msg, "run", ROLES_TEXT_MAX);
    if (json_object_object_get_ex(msg, "run", NULL) &&
        (order->run == NULL || order->run[0] == NULL))
        return error_set(err, "its command is none");
    order->gang = order->role->gang;
    if (!role_needs_read(msg, &order->gang))
        return error_set(err, "what it needs is not clear");
    if (world_size(order->world) != order->gang.tasks)
        return error_set(err, "%d tasks for a gang of %d", world_size(order->world),
                         order->gang.tasks);
    if (!json_get_int(msg, "node_index", 0, order->world->node_count - 1, &order->index))
        return error_set(err, "there is no place in it for this node");
    return 0;
}
