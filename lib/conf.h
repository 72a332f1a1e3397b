/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf: the site's limits, defaults and pools, from its text. Keys: architecture.md. */
#ifndef ELASTIC_CONF_H
#define ELASTIC_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "lib/policy.h"

#define CONF_PORTS_MIN 16 /* ports in port_range: the leader's candidates */

struct pool {
    char name[POLICY_POOL_NAME_MAX + 1];
    char *partition;  /* never NULL after parsing */
    char *qos;        /* NULL: none */
    char *constraint; /* NULL: none */
    int grace;        /* seconds, 0 unknown */
    int time_min;     /* minutes */
    bool wake;
};

struct conf {
    int max_pending;
    int max_nodes; /* 0: no limit */
    int max_grace; /* seconds, 0: no limit */
    int port_first, port_last;
    int heartbeat_timeout; /* seconds */
    int newcomer_timeout;  /* seconds */
    int node_backoff;      /* seconds, 0: no node is left out */
    int epilog_flush;      /* seconds */
    int snapshot_keep;     /* seconds */
    char *state_dir;       /* pattern */
    char *snapshot_dir;
    char *munge_socket; /* NULL: munge's default */
    char *shapes_file;  /* NULL: beside elastic.conf (conf_file_shapes) */
    /* Who tells that a node is about to be taken away; NULL: nobody. */
    char *reclaim_program, *reclaim_url;
    char *reclaim_header; /* NULL: none */
    char *reclaim_answer; /* is in the answer then; NULL: any answer will do */
    /* The times all set (a site without `grace` never defaults above its max_grace), signal 0, the
     * pools default_pool, else the first pool; none if there are no pools. */
    struct policy defaults;
    struct pool *pools;
    int pool_count;
};

/* A configuration with the built-in values and no pool. NULL if out of memory. */
struct conf *conf_create(void);
void conf_destroy(struct conf *conf); /* accepts NULL */

/* Parse the text of an elastic.conf into a new conf. name is the file's name for messages
 * ("NAME:LINE: unknown key 'x'; known keys: …"). Returns NULL with err set at the first error. */
struct conf *conf_parse(const char *name, const char *text, size_t len, struct error *err);

const struct pool *conf_pool(const struct conf *conf, const char *name); /* NULL: unknown */

/* "a, b": the names of all pools, for messages. Returns buf. */
char *conf_pool_names(const struct conf *conf, char *buf, size_t size);

/* Check a merged policy against the site's limits: MAX, grace, known pools (any name is known where
 * the site has no pools: it means the partition). -1 with a message that names option, value and
 * limit. */
int conf_check_policy(const struct conf *conf, const struct policy *policy, struct error *err);

/* Expand %h %u %j %c in a pattern into a new string; "%%" is a percent sign. Any other % stays as
 * it is. NULL if out of memory. */
char *conf_expand(const char *pattern, const char *home, const char *user, const char *job,
                  const char *cluster);

#endif
