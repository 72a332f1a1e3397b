/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a router does, as JSON in a file of its directory, and as text for people. */
#ifndef ELASTIC_ROUTER_STATUS_H
#define ELASTIC_ROUTER_STATUS_H

#include <stdio.h>

#include <json-c/json.h>

#include "router/driver.h"

/* `tokens`: how many there are; -1: none are needed. A new object. */
json_object *status_json(const struct driver_view *view, const char *service, const char *listen,
                         const char *source, int tokens);
/* As lines. What does not look like a status is left out. */
void status_print(json_object *status, FILE *out);

#endif
