/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drives haproxy to what the table of routes says: looks, plans (lib/router_plan), carries out a
 * batch, looks again. Each question has a time limit. A haproxy that has ended is started again,
 * one that does not answer is killed first. */
#ifndef ELASTIC_ROUTER_DRIVER_H
#define ELASTIC_ROUTER_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "lib/haproxy_answers.h"
#include "lib/route_table.h"
#include "router/home.h"

struct driver;

struct driver_options {
    const struct home *home;
    const char *program; /* haproxy's path */
    const char *listen;  /* ADDRESS:PORT */
    enum haproxy_key
        by; /* where requests carry their key, if what is not NULL; else the table says */
    const char *what;
    bool has_tokens; /* nobody is answered before driver_set_tokens() */
    void (*looked)(void *arg);
    void (*ended)(void *arg); /* after driver_finish(): haproxy is gone */
    void *arg;
};

/* What is known by now. All of it is the driver's. */
struct driver_view {
    const struct route_table *table; /* NULL: none yet */
    const struct haproxy_stat *stat;
    int64_t confirmed; /* the latest epoch of that table which has become true; -1: none */
    bool leaving;      /* workers of before a reload still have requests */
    int master, worker, old, starts, reloads;
    const char *why; /* what it waits for; "": nothing */
    /* Keys that somebody asks for; NULL: the table does not want to know. And perhaps others. */
    json_object *asked;
    bool asked_more;
};

/* NULL: out of memory. */
struct driver *driver_create(uv_loop_t *loop, const struct driver_options *options);
/* haproxy goes on. Freed once the loop has closed its handles. */
void driver_destroy(struct driver *driver);

/* The table that counts from now on. It is shared. */
void driver_set_table(struct driver *driver, struct route_table *table);
/* Digests of the tokens that count from now on (lib/route_tokens.h). They are copied. */
void driver_set_tokens(struct driver *driver, const char *digests);
struct driver_view driver_view(const struct driver *driver);

/* haproxy ends what it has, for so many milliseconds at most; 0: at once. */
void driver_finish(struct driver *driver, uint64_t ms);

#endif
