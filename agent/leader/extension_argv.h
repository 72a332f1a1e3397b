/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line and the environment of sbatch for an extension job. */
#ifndef ELASTIC_AGENT_LEADER_EXTENSION_ARGV_H
#define ELASTIC_AGENT_LEADER_EXTENSION_ARGV_H

#include <stdint.h>
#include <time.h>

struct job_info;
struct leader;
struct leader_options;
struct pool;

/* The command line as a NULL-terminated new array (strings_free). The extension is to stay off the
 * nodes that are used, unless the base owns its nodes, and off those in avoid, a comma list; either
 * may be NULL. most: minutes that the pool's partition allows, UINT32_MAX: any. Pure but for its
 * inputs. */
char **extension_argv(const struct leader_options *options, const struct job_info *base,
                      const struct pool *pool, int nodes, double delay, time_t now, uint32_t most,
                      char *const *used, const char *avoid);
/* The environment of sbatch, and so of the extension, as a NULL-terminated new array. */
char **extension_environment(struct leader *leader);

#endif
