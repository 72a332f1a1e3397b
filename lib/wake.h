/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which extensions may make Slurm power nodes up. Pure. */
#ifndef ELASTIC_WAKE_H
#define ELASTIC_WAKE_H

#include <stdbool.h>

#include "lib/conf.h"
#include "lib/policy.h"

/* May an extension in that pool (NULL: not known) make Slurm power nodes up? Only the site can
 * allow it (pool key `wake`). A user can always do without. */
bool wake_allowed(const struct pool *pool, enum policy_wake user);

/* The pool that an extension belongs to, as slurmctld can know it: by the name that the extension
 * was submitted with (NULL: none), else by its partition and its QOS (either may be NULL). If more
 * than one pool has these, one that may not power nodes up. NULL: none. conf may be NULL. */
const struct pool *wake_pool(const struct conf *conf, const char *name, const char *partition,
                             const char *qos);

#endif
