/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf: the limits, defaults and pools of a site, from the text of the file.
 *
 * The manual elastic.conf(5) explains the keys. */
#ifndef ELASTIC_CONF_H
#define ELASTIC_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "lib/policy.h"

#define CONF_PORTS_MIN 16 /* ports in port_range: the leader's candidates */

struct pool {
    char name[POLICY_POOL_NAME_MAX + 1];
    /* Never NULL after parsing. */
    char *partition;
    /* NULL: none. */
    char *qos;
    char *constraint;
    /* Seconds; 0: not known. */
    int grace;
    /* Minutes. */
    int time_min;
    /* Minutes that an extension lives at most; 0: no limit. */
    int max_time;
    /* Its nodes may be powered up. */
    bool wake;
    /* Used when the other pools do not give enough (on-demand). */
    bool fallback;
    /* A cloud may take its nodes away after a notice. */
    bool reclaim;
    /* Of a node and hour; -1: not known. */
    double price;
    /* Nodes that one job has of it; 0: as many as its MAX. */
    int max_nodes;
    /* Nodes of one job that power up at once. */
    int max_resume;
    /* NULL: none. */
    char *zone;
};

/* Who tells that a node is about to be taken away. */
enum conf_cloud {
    CONF_CLOUD_NONE,
    CONF_CLOUD_AWS,
    CONF_CLOUD_GCP,
    CONF_CLOUD_AZURE,
    CONF_CLOUD_ALIBABA,
    CONF_CLOUD_TENCENT,
};

/* What follows when the cloud only advises to replace a node. */
enum conf_advice {
    CONF_ADVICE_IGNORE,
    CONF_ADVICE_REPLACE,
};

/* What the epilog does with a node that is about to be taken away. */
enum conf_drain {
    CONF_DRAIN_NONE,
    CONF_DRAIN_DRAIN,
    CONF_DRAIN_POWER_DOWN,
};

struct conf_reclaim {
    enum conf_cloud cloud;
    enum conf_advice advice;
    enum conf_drain drain;
    /* Another address for the metadata service of that cloud. NULL: the cloud's own. */
    char *endpoint;
    /* A program and an address of the site. NULL: there is none. */
    char *program, *url;
    /* The key reclaim names one of these, not only the key of its own. */
    bool named;
    /* NULL: the request for url has no header of its own. */
    char *header;
    /* The answer from url contains this text when the node is about to be taken away. NULL: each
     * answer with status 200 says so. */
    char *answer;
};

struct conf {
    /* The file that was looked for, and whether it was there; NULL: conf_parse has made this. */
    char *path;
    bool was_read;
    int max_pending;
    /* 0: no limit. */
    int max_nodes;
    /* Seconds; 0: no limit. */
    int max_grace;
    int port_first, port_last;
    /* Seconds. */
    int heartbeat_timeout;
    int newcomer_timeout;
    /* Seconds; 0: no node is left out. */
    int node_backoff;
    /* Seconds between two looks at Slurm's list of all nodes; 0: a node in turn. */
    int drain_look;
    /* Seconds. */
    int epilog_flush;
    int snapshot_keep;
    /* A pattern for conf_expand. */
    char *state_dir;
    char *snapshot_dir;
    /* NULL: munge's default. */
    char *munge_socket;
    /* NULL: beside elastic.conf (conf_file_shapes). */
    char *shapes_file;
    /* Templates of roles, NAME.yaml. NULL: there are none. */
    char *roles_dir;
    struct conf_reclaim reclaim;
    /* The file with prices of pools (lib/prices.h). NULL: none. */
    char *prices;
    /* Seconds: the first and the longest pause of a pool that has failed. */
    int pool_backoff_first, pool_backoff_max;
    /* All values that have a default are set. Without the key grace, the grace time is at most
     * max_grace. The pools are those of default_pool, else the first pool, else none. */
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

/* Does the site say what nodes cost, be it of one pool only? */
bool conf_has_prices(const struct conf *conf);

/* A new pool at the end of conf->pools, with the built-in values; its partition is that of its
 * name. NULL with err set if out of memory. */
struct pool *conf_add_pool(struct conf *conf, const char *name, struct error *err);

/* "a, b": the names of all pools, for messages. Returns buf. */
char *conf_pool_names(const struct conf *conf, char *buf, size_t size);

/* Check a merged policy against the limits of the site: MAX, grace, known pools. Where the site has
 * no pools, each name is known: it is the name of a partition. Returns -1 with a message that names
 * option, value and limit. */
int conf_check_policy(const struct conf *conf, const struct policy *policy, struct error *err);

/* What a user may not have meant, in one line; warnings->text is empty where there is nothing.
 * partitions (with commas) and features are those of the base job; NULL: not known. */
void conf_warn_policy(const struct conf *conf, const struct policy *policy, const char *partitions,
                      const char *features, struct error *warnings);

/* Expand %h %u %j %c in a pattern into a new string; "%%" is a percent sign. Any other % stays as
 * it is. NULL if out of memory. */
char *conf_expand(const char *pattern, const char *home, const char *user, const char *job,
                  const char *cluster);

#endif
