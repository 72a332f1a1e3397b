/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic jobs have used (lib/usage), as JSON and for people. Pure. */
#ifndef SELASTIC_USAGE_LIST_H
#define SELASTIC_USAGE_LIST_H

#include "cmd/render.h"
#include "lib/conf.h"
#include "lib/usage.h"

/* {"jobs": [{"job", "name", "user", "account", "state", "start", "runs", "extensions", "seconds",
 * "node_hours", "cpu_hours", "gpu_hours", "cost", "pools": [{"pool", "jobs", "node_hours",
 * "cpu_hours", "gpu_hours", "cost"}]}], "node_hours", "cpu_hours", "gpu_hours", "cost"}. cost is
 * null where a price is not known: prices are those of conf, which may be NULL. job 0: all. */
json_object *usage_json(const struct usage *usage, const struct conf *conf, uint32_t job);

/* pools: a line for each pool as well. A new string. */
char *render_usage(json_object *usage, bool pools, const struct render_options *options);

#endif
