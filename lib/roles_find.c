/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions about the roles of a job (roles.h). */
#include <string.h>

#include "lib/roles.h"
#include "lib/text.h"

int roles_find(const struct roles *roles, const char *name)
{
    for (int i = 0; i < roles->count; i++) {
        if (strcmp(roles->list[i].name, name) == 0)
            return i;
    }
    return -1;
}

int roles_leader(const struct roles *roles)
{
    for (int i = 0; i < roles->count; i++)
        if (roles->list[i].leads)
            return i;
    for (int i = roles->count - 1; i >= 0; i--)
        if (!roles->list[i].trains)
            return i;
    return 0;
}

const char *role_pool(const struct role *role, int i)
{
    if (role->base != NULL && i-- == 0)
        return role->base;
    return i < (int)strings_count(role->pools) ? role->pools[i] : NULL;
}

int roles_shard(const struct roles *roles, int number)
{
    for (int i = 0; number > 0 && i < roles->count; i++) {
        if (roles->list[i].shards.number == number)
            return i;
    }
    return -1;
}

bool roles_are_trained(const struct roles *roles)
{
    return roles->fit.run != NULL || roles->fit.role != NULL || roles->fit.trainer != NULL;
}

int roles_trainer(const struct roles *roles)
{
    for (int i = 0; i < roles->count; i++) {
        if (roles->list[i].trains)
            return i;
    }
    return -1;
}

int roles_shards(const struct roles *roles)
{
    return roles_shard(roles, 1);
}

int roles_router(const struct roles *roles)
{
    for (int i = 0; i < roles->count; i++) {
        if (roles->list[i].kind == ROLE_ROUTER)
            return i;
    }
    return -1;
}

int roles_world(const struct roles *roles)
{
    for (int i = 0; i < roles->count; i++) {
        if (roles->list[i].kind == ROLE_WORLD)
            return i;
    }
    return -1;
}
