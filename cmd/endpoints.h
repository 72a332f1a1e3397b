/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Endpoints (lib/endpoint_list.h) in forms that people and other programs read. Pure. */
#ifndef SELASTIC_ENDPOINTS_H
#define SELASTIC_ENDPOINTS_H

#include <json-c/json.h>

#include "cmd/render.h"
#include "lib/endpoint_list.h"

/* A line for each task and port. These are new strings. */
char *endpoints_text(json_object *endpoints, const struct render_options *options);

/* Lines of /etc/hosts: the first task of each replica. */
char *endpoints_hosts(json_object *endpoints);

/* Lines of a backend of haproxy: the first port of the first task of each replica. */
char *endpoints_haproxy(json_object *endpoints);

/* What file_sd_configs of Prometheus reads: each task and port is a target. A new object. */
json_object *endpoints_prometheus(json_object *endpoints);

#endif
