/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The site's file of prices (price_list.h). It may be on a file system that hangs, so a thread
 * reads it. */
#include "agent/leader/price_list.h"

#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "common/files.h"
#include "common/log.h"
#include "common/slurm_queue.h"
#include "lib/prices.h"

#define LOOK_EVERY 30.0 /* seconds */

struct price_list {
    struct prices *prices; /* NULL: none yet */
    double looked;         /* 0: never */
    bool looking;
    char trouble[512]; /* what was wrong with the file, as was said; "": nothing */
};

struct look {
    struct leader *leader;
    struct price_list *list;
    char *text;
    size_t len;
    struct error err;
};

static void read_file(void *arg)
{
    struct look *look = arg;

    look->text = file_read(look->leader->options->conf->prices, PRICES_FILE_MAX, &look->len,
                           &look->err);
}

/* Prices that were good stay, until the file is good again. */
static void note_trouble(const struct leader *leader, struct price_list *own, const char *what)
{
    const char *path = leader->options->conf->prices;
    bool known = strcmp(own->trouble, what) == 0;

    snprintf(own->trouble, sizeof(own->trouble), "%s", what);
    if (!known)
        log_error("job %u: prices: %s: %s; the prices of before are used", leader->options->job,
                  path, what);
}

static void done(void *arg)
{
    struct look *look = arg;
    struct leader *leader = look->leader;
    struct price_list *own = look->list;
    struct prices *prices = look->text != NULL ? prices_parse(look->text, look->len, &look->err)
                                               : NULL;

    own->looking = false;
    if (prices == NULL) {
        note_trouble(leader, own, look->err.text);
    } else {
        prices_destroy(own->prices);
        own->prices = prices;
        own->trouble[0] = '\0';
        planning_later(leader, 0);
    }
    free(look->text);
    free(look);
    leader_look_at_end(leader, 0);
}

void price_list_watch(struct price_list *own, struct leader *leader)
{
    double now = leader_now(leader);
    struct look *look;

    if (leader->options->conf->prices == NULL)
        return;
    planning_later(leader, LOOK_EVERY);
    if (own->looking || (own->looked > 0 && now - own->looked < LOOK_EVERY))
        return;
    look = calloc(1, sizeof(*look));
    if (look == NULL)
        return;
    look->leader = leader;
    look->list = own;
    own->looked = now;
    own->looking = slurm_ask(leader->loop, read_file, done, look) == 0;
    if (!own->looking)
        free(look);
}

bool price_list_busy(const struct price_list *list)
{
    return list->looking;
}

double price_list_of(const struct price_list *list, const struct pool *pool)
{
    const struct price *price = pool != NULL ? prices_find(list->prices, pool->name) : NULL;

    if (price != NULL)
        return price->price;
    return pool != NULL ? pool->price : -1;
}

int price_list_nodes(const struct price_list *list, const struct pool *pool)
{
    const struct price *price = prices_find(list->prices, pool->name);

    return price != NULL ? price->nodes : -1;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct price_list *price_list_create(void)
{
    return calloc(1, sizeof(struct price_list));
}

void price_list_destroy(struct price_list *list)
{
    if (list == NULL)
        return;
    prices_destroy(list->prices);
    free(list);
}
