/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line and the environment of sbatch for an extension job. */
#ifndef ELASTIC_AGENT_LEADER_EXTENSION_ARGV_H
#define ELASTIC_AGENT_LEADER_EXTENSION_ARGV_H

#include <stdint.h>
#include <time.h>

#include "lib/slots.h"

struct job_info;
struct leader;
struct leader_options;
struct pool;
struct role;

/* What is asked for. */
struct extension_request {
    const struct pool *pool;
    uint32_t most;     /* minutes that the pool's partition allows, UINT32_MAX: any */
    const char *avoid; /* a comma list of nodes to stay off; NULL: none */
    int nodes;         /* 0: as many as Slurm takes */
    /* For the world. */
    double delay;      /* seconds until it may begin */
    char *const *used; /* nodes to stay off, unless the base owns its nodes; NULL: none */
    /* For replicas of a role. NULL: for the world. */
    const struct role *role;
    struct slots_gang gang; /* … with these needs */
    int replicas;
    int nodes_most; /* without a number of nodes; 0: any */
};

/* The command line as a NULL-terminated new array (strings_free). Pure but for its inputs. */
char **extension_argv(const struct leader_options *options, const struct job_info *base,
                      const struct extension_request *request, time_t now);
/* The environment of sbatch, and so of the extension, as a NULL-terminated new array. role: NULL
 * for the world. */
char **extension_environment(struct leader *leader, const struct role *role);

#endif
