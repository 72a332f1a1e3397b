/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a site says to the roles of a job, before it runs. Pure. */
#ifndef ELASTIC_ROLES_SITE_H
#define ELASTIC_ROLES_SITE_H

#include "lib/conf.h"
#include "lib/roles.h"

/* Does the site have all pools that roles name? Where the site has no pools, each name is known: it
 * is the name of a partition. -1 with err: "roles.collector.pool: …". */
int roles_check_pools(const struct roles *roles, const struct conf *conf, struct error *err);

/* Check roles against all that the site says: known pools, max-nodes. -1 with err. */
int roles_check_site(const struct roles *roles, const struct conf *conf, struct error *err);

#endif
