/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may power nodes up (wake.h). */
#include "lib/wake.h"

#include <string.h>

bool wake_allowed(const struct pool *pool, enum policy_wake user)
{
    return pool != NULL && pool->wake && user != POLICY_WAKE_NO;
}

const struct pool *wake_pool(const struct conf *conf, const char *name, const char *partition,
                             const char *qos)
{
    const struct pool *found = conf != NULL && name != NULL ? conf_pool(conf, name) : NULL;

    if (conf == NULL || found != NULL || partition == NULL)
        return found;
    for (int i = 0; i < conf->pool_count; i++) {
        const struct pool *pool = &conf->pools[i];

        if (strcmp(pool->partition, partition) == 0 &&
            (pool->qos == NULL || (qos != NULL && strcmp(pool->qos, qos) == 0)) &&
            (found == NULL || !pool->wake))
            found = pool;
    }
    return found;
}
