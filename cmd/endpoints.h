/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the tasks of replicas that are ready listen, in forms that other programs read. Pure. */
#ifndef SELASTIC_ENDPOINTS_H
#define SELASTIC_ENDPOINTS_H

#include <json-c/json.h>

#include "cmd/render.h"
#include "lib/error.h"

/* The tasks of the replicas (replicas_of) that are ready: {"job", "epoch", "endpoints": [{"role",
 * "replica", "task", "node", "address", "ports"}]}. A new object. NULL with err: a name, address or
 * port is none. So no file made of it has lines or words that the job put there. */
json_object *endpoints_of(json_object *replicas, struct error *err);

/* A line for each task and port. These are of endpoints_of, and new strings. */
char *endpoints_text(json_object *endpoints, const struct render_options *options);

/* Lines of /etc/hosts: the first task of each replica. */
char *endpoints_hosts(json_object *endpoints);

/* Lines of a backend of haproxy: the first port of the first task of each replica. */
char *endpoints_haproxy(json_object *endpoints);

/* What file_sd_configs of Prometheus reads: each task and port is a target. A new object. */
json_object *endpoints_prometheus(json_object *endpoints);

#endif
