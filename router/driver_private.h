/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the driver share: driver.c looks and plans, driver_steps.c carries out. */
#ifndef ELASTIC_ROUTER_DRIVER_PRIVATE_H
#define ELASTIC_ROUTER_DRIVER_PRIVATE_H

#include "lib/retry.h"
#include "lib/router_plan.h"
#include "router/driver.h"
#include "router/haproxy.h"
#include "router/talk.h"

struct driver {
    uv_loop_t *loop;
    struct driver_options options;
    uv_timer_t timer; /* the next look */
    bool timer_open, destroyed, finishing;
    bool greeted; /* whether one of before goes on is known */
    struct haproxy *haproxy;
    struct talk *talk; /* NULL: none is under way */
    int failures;      /* questions in a row without an answer */

    struct route_table *table, *next; /* NULL: none */
    char *tokens;                     /* digests; NULL: none yet */
    bool outdated;                    /* haproxy knows other tokens, or nobody knows what */
    char *loaded;       /* the configuration that it was started with; NULL: unknown */
    char *config, *map; /* the files as they are; NULL: unknown */

    /* What it has. */
    struct haproxy_workers workers;
    struct haproxy_stat stat;
    struct haproxy_route *routes;
    int route_count;
    bool routes_known;
    bool switched, older; /* older requests are to be looked for; there are some */
    json_object *asked;   /* keys that somebody asks for; NULL: not known */
    bool asked_more;      /* … and others */
    int64_t limit;        /* of streams; -1: the next look says it */
    struct router_patience patience;
    bool overdue; /* older requests are to be shut */

    /* What is carried out. */
    struct router_plan plan;
    bool planned;
    int step;
    char **pieces;
    int piece;
    int64_t version, entries;

    /* Its life. Times are the loop's, ms. */
    struct retry retry;
    uint64_t started, saved, start_limit, reload_limit;
    int reload_from;                  /* the worker of before; 0: no reload is under way */
    struct haproxy_workers reload_to; /* of the latest look */
    int64_t confirmed;
    int starts, reloads;
    char why[512];
};

/* The next look. */
void driver_look_in(struct driver *d, uint64_t ms);
/* Streams with no larger number are to be shut; -1: none. */
int64_t driver_overdue(const struct driver *d);
/* A question or a command has failed. */
void driver_failed(struct driver *d, const char *what, const char *why);
/* False: it is not even asked, and that counts as failed. */
void driver_ask(struct driver *d, const char *socket, const char *command, talk_done *done);

void driver_config(const struct driver *d, const struct route_table *table,
                   struct haproxy_config *config);
/* Files of the plan. With `loads`, haproxy is about to read them. -1 with err. */
int driver_write_files(struct driver *d, bool loads, struct error *err);

/* Carries out the plan from its first step on. */
void driver_carry_out(struct driver *d);
/* Forgets it. */
void driver_drop_plan(struct driver *d);

#endif
