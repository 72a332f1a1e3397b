/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a site says to the roles of a job (roles_site.h). */
#include "lib/roles_site.h"

#include <stddef.h>

static int check_pool(const struct conf *conf, const struct role *role, const char *key,
                      const char *pool, struct error *err)
{
    char names[256];

    if (pool == NULL || conf->pool_count == 0 || conf_pool(conf, pool) != NULL)
        return 0;
    return error_set(err, "roles.%s.%s: '%s' is no pool; pools of this site: %s", role->name, key,
                     pool, conf_pool_names(conf, names, sizeof(names)));
}

int roles_check_pools(const struct roles *roles, const struct conf *conf, struct error *err)
{
    for (int i = 0; i < roles->count; i++) {
        const struct role *role = &roles->list[i];

        if (check_pool(conf, role, "base", role->base, err) < 0)
            return -1;
        for (char **pool = role->pools; pool != NULL && *pool != NULL; pool++)
            if (check_pool(conf, role, "pool", *pool, err) < 0)
                return -1;
    }
    return 0;
}

int roles_check_site(const struct roles *roles, const struct conf *conf, struct error *err)
{
    if (conf->max_nodes > 0 && roles->max_nodes > conf->max_nodes)
        return error_set(err,
                         "max-nodes: %d is larger than the %d nodes that this site allows an "
                         "elastic job (max_nodes in elastic.conf)",
                         roles->max_nodes, conf->max_nodes);
    return roles_check_pools(roles, conf, err);
}
