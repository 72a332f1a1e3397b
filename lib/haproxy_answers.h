/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What haproxy (2.6) answers to questions of its runtime API. Pure. What does not look like an
 * answer is refused: then nobody knows what haproxy does. */
#ifndef ELASTIC_HAPROXY_ANSWERS_H
#define ELASTIC_HAPROXY_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/haproxy_text.h"

enum haproxy_state {
    HAPROXY_IN_MAINT, /* it gets no requests, and is not checked */
    HAPROXY_IN_DRAIN, /* it gets no new requests, is checked, and answers */
    HAPROXY_IS_DOWN,  /* its check fails: no requests, whatever else holds */
    HAPROXY_IS_UP,    /* it gets requests */
};

struct haproxy_row {
    int shard;
    char *name; /* of the server */
    enum haproxy_state state;
    bool checked; /* its latest check has succeeded */
    bool untried; /* it has had no check yet */
    int64_t sessions;
};

/* `show stat -1 6 -1`: backends and servers. */
#define HAPROXY_SHOW_STAT "show stat -1 6 -1\n"
struct haproxy_stat {
    int *shards; /* that have a backend, ascending */
    int shard_count;
    struct haproxy_row *rows; /* by shard and name */
    int count;
};

/* -1 with err, and stat is empty. */
int haproxy_stat_read(const char *answer, struct haproxy_stat *stat, struct error *err);
void haproxy_stat_clear(struct haproxy_stat *stat);
/* NULL: there is none. */
const struct haproxy_row *haproxy_stat_find(const struct haproxy_stat *stat, int shard,
                                            const char *name);
bool haproxy_stat_has_shard(const struct haproxy_stat *stat, int shard);

/* `show sess`: haproxy counts these questions. A stream that began before one has a number that is
 * not larger than those in the answer to it; one that begins later has a larger one. */
#define HAPROXY_SHOW_STREAMS "show sess\n"
struct haproxy_streams {
    int64_t latest; /* the largest number */
    int64_t older;  /* how many in a shard have no larger one than the limit */
};
int haproxy_streams_read(const char *answer, int64_t limit, struct haproxy_streams *streams,
                         struct error *err);
/* What shuts these older ones, as many as a command holds. A new string; *count 0: there is none to
 * shut. NULL with err. */
char *haproxy_shut_command(const char *answer, int64_t limit, int *count, struct error *err);

/* `show proc`, of the master. */
#define HAPROXY_SHOW_WORKERS "show proc\n"
struct haproxy_workers {
    int master, worker; /* process ids; worker 0: there is none */
    int old;            /* how many workers end their requests */
};
int haproxy_workers_read(const char *answer, struct haproxy_workers *workers, struct error *err);

/* `show info`: the worker that answers; 0: none is named. The master has a new worker in its list
 * before that worker has taken over. */
#define HAPROXY_SHOW_INFO "show info\n"
int haproxy_worker_read(const char *answer);

/* `show table requests`: the keys that somebody asks for, in order, at most so many: a new list.
 * There is none without models on demand. *more: there are more of them. */
#define HAPROXY_SHOW_ASKED "show table requests\n"
json_object *haproxy_asked_read(const char *answer, int most, bool *more);

/* `show map FILE`: its routes, by key, a new array for haproxy_routes_free(). */
int haproxy_map_read(const char *answer, struct haproxy_route **routes, int *count,
                     struct error *err);
void haproxy_routes_free(struct haproxy_route *routes, int count);

/* The number in shard_NUMBER; 0: it is none. */
int haproxy_shard_number(const char *text, int length);
/* Order of routes by key, for qsort() and bsearch(). */
int haproxy_compare_routes(const void *a, const void *b);

#endif
