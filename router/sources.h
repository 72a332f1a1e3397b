/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the table of routes comes from: a file, or the leaders of a service. During a handover
 * there are two: the one whose term is higher counts, once it has answered. */
#ifndef ELASTIC_ROUTER_SOURCES_H
#define ELASTIC_ROUTER_SOURCES_H

#include <uv.h>

#include "lib/conf.h"
#include "lib/route_table.h"
#include "router/driver.h"

struct sources;

struct sources_options {
    const char *service;
    const char *id;        /* of this router */
    const char *table;     /* the file with the table; NULL: leaders */
    const char *directory; /* of the service: leader.json, routes.json */
    const struct conf *conf;
    /* This table counts from now on. It is the sources'. */
    void (*table_changed)(struct route_table *table, void *arg);
    void *arg;
};

/* NULL: out of memory. Everything in options stays. */
struct sources *sources_create(uv_loop_t *loop, const struct sources_options *options);
void sources_destroy(struct sources *sources);

/* To be called now and then: the table of another leader counts when this one has been silent for
 * long. */
void sources_choose(struct sources *sources);

/* What haproxy does, for the leaders. */
void sources_report(struct sources *sources, const struct driver_view *view);
/* One line of where the table comes from, and how fresh it is. */
const char *sources_words(struct sources *sources);

#endif
