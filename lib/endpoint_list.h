/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the tasks of replicas that are ready listen. Pure. */
#ifndef ELASTIC_ENDPOINT_LIST_H
#define ELASTIC_ENDPOINT_LIST_H

#include <json-c/json.h>

#include "lib/error.h"

/* The tasks of the ready replicas in a leader's answer to `roles`: {"job", "epoch", "endpoints":
 * [{"role", "replica", "task", "node", "address", "ports"}]}. A new object. NULL with err: a name,
 * address or port is none. So no file made of it has lines or words that the job put there. */
json_object *endpoints_of(json_object *answer, struct error *err);

#endif
