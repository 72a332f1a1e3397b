/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where requests name their model: "json:$.model", "path:/v2/models/", "header:X-Tenant". */
#ifndef ELASTIC_ROUTE_BY_H
#define ELASTIC_ROUTE_BY_H

#include <stdbool.h>

enum haproxy_key {
    HAPROXY_HEADER, /* a request's header with that name is its key */
    HAPROXY_PATH,   /* what follows that prefix in the path, up to the next slash */
    HAPROXY_JSON,   /* that member of the body: "$.model" */
};

/* "header", "path", "json". */
const char *route_by_word(enum haproxy_key by);
/* *what points into text. False: it is none of them, or haproxy could read it as something else. */
bool route_by_parse(const char *text, enum haproxy_key *by, const char **what);

#define ROUTE_BY_FORM "header:NAME, path:/BEFORE/THE/KEY/ or json:$.MEMBER"

/* Nothing is escaped for haproxy: these are what it can only read as they are meant. */
bool haproxy_path_ok(const char *path);
bool haproxy_what_ok(enum haproxy_key by, const char *what);

#endif
