/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a server has, as a table: paths and methods, and the parameters and keys that each takes.
 * What is not in the table is refused, with one line. Pure.
 *
 * No name that can be in a path or a parameter needs an escape: what has a '%' is no such name. */
#ifndef ELASTIC_HTTP_TABLE_H
#define ELASTIC_HTTP_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

#define HTTP_NAMES     2   /* in a path */
#define HTTP_VALUE_MAX 100 /* bytes of the value of a parameter; longer ones are cut */

struct http_route {
    /* "*" is a name; "**", at the end, is all that follows, with its slashes. */
    const char *method, *path;
    int verb;
    /* Words with a blank in between; NULL: none. A key with '!' behind it has to be there. */
    const char *parameters, *keys;
};

struct http_table {
    const struct http_route *routes;
    size_t count;
};

struct http_name {
    const char *text;
    size_t length;
};

struct http_target {
    const struct http_route *route;
    struct http_name names[HTTP_NAMES]; /* length 0: the path has no such one */
    const char *query;                  /* what follows '?' */
    char allow[40];                     /* of a refused method: those that the path has */
};

/* Which route is it? 0; or with err 404: there is no such path, or 405: it has other methods. HEAD
 * is a GET. */
int http_find(const struct http_table *table, const char *method, const char *target,
              struct http_target *found, struct error *err);

struct http_parameter {
    char text[61], name[61], value[HTTP_VALUE_MAX]; /* "name=value", as much as fits */
    bool has_value;
};

/* Take the next parameter off. False: there is none. */
bool http_next_parameter(const char **query, struct http_parameter *parameter);

/* Call read() for each parameter; it returns -1 with err to stop. -1 with err, too, for one that
 * the route does not have. */
int http_parameters(const struct http_target *target,
                    int (*read)(const char *name, const char *value, void *arg, struct error *err),
                    void *arg, struct error *err);

/* Has the body all keys that it needs, and no others? -1 with err. */
int http_check_keys(const struct http_route *route, json_object *body, struct error *err);
bool http_needs_body(const struct http_route *route);

/* Copy as much as fits: a longer name is nobody's, and the end that it has then is not the one of a
 * name either. */
void http_copy_name(char *into, size_t size, struct http_name name);

#endif
