/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a replica needs, in messages, files and requests. Pure. */
#ifndef ELASTIC_ROLE_NEEDS_H
#define ELASTIC_ROLE_NEEDS_H

#include <stdbool.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/slots.h"

/* "needs": the whole gang. */
void role_needs_add(json_object *into, const struct slots_gang *gang);
/* Read it; gang stays as it is where there is none. False: it is no such thing. */
bool role_needs_read(json_object *from, struct slots_gang *gang);

/* What a request says that a task needs, in place of what its role says; -1: nothing is said. */
struct role_needs {
    int64_t cpus, gpus, memory; /* memory in MiB */
    int64_t processes; /* tasks of a gang that is owned, with a GPU each; -1: as its role */
};

#define ROLE_NEEDS_NONE                                                                            \
    {                                                                                              \
        -1, -1, -1, -1                                                                             \
    }

/* As the key "needs" of an order to the leader, if something is said. */
void role_needs_ask(json_object *order, const struct role_needs *needs);
/* A key of a body: "cpus", "gpus", "memory" or "processes", as a number or a text ("0.5", "200Mi").
 * Without a unit memory is in MiB. Rounded up. -1 with err. */
int role_needs_value(struct role_needs *needs, const char *key, json_object *value,
                     struct error *err);
/* The same gang with those needs. Nothing is said of nodes. -1 with err: no gang can have them. */
int role_needs_apply(const struct role_needs *needs, struct slots_gang *gang, struct error *err);

/* A quantity of Kubernetes: 2, "0.5", "500m", "200Mi". False: it is none. */
bool role_quantity(json_object *value, double *quantity);

#endif
