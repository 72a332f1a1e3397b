/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nodes of the job's pools cost at this moment: the site's file of prices (the key prices of
 * elastic.conf), read again when it changes; else the pool's own price. */
#ifndef ELASTIC_AGENT_LEADER_PRICE_LIST_H
#define ELASTIC_AGENT_LEADER_PRICE_LIST_H

#include <stdbool.h>

struct leader;
struct pool;
struct price_list;

/* NULL: out of memory. */
struct price_list *price_list_create(void);
void price_list_destroy(struct price_list *list);

/* Look whether the file has changed, if the last look was a while ago. A plan follows. */
void price_list_watch(struct price_list *list, struct leader *leader);
bool price_list_busy(const struct price_list *list);
/* Per node and hour; < 0: nobody has said it. */
double price_list_of(const struct price_list *list, const struct pool *pool);
/* Nodes of it that can be had now; < 0: nobody has said it. */
int price_list_nodes(const struct price_list *list, const struct pool *pool);

#endif
