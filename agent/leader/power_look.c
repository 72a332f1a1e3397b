/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which nodes are powered down (power_look.h). */
#include "agent/leader/power_look.h"

#include <stdlib.h>

#include "common/log.h"
#include "lib/conf.h"
#include "lib/names.h"
#include "lib/text.h"

static bool are_too_few(const struct power_look *look, const struct power_pending *pending)
{
    char **left = names_without(look->power.up, look->others);
    int count = names_count_without(left, pending->avoids ? look->avoid : NULL);

    strings_free(left);
    return count >= 0 && count < pending->nodes;
}

/* Nodes that are up now, and are not left out for another reason, are no longer excluded. Returns
 * the nodes that it stays off now; NULL: as before. */
static char **stay_off(struct power_look *look, const struct power_pending *pending)
{
    char **now = names_without(look->power.asleep, look->others);
    char **then = names_without(pending->asleep, now);
    char **no_longer = names_without(then, look->avoid);
    struct error err = {""};
    int rc = now == NULL || then == NULL || no_longer == NULL ? -1 : 0;

    if (rc == 0 && !names_equal(now, pending->asleep)) {
        rc = slurm_client_stay_off(pending->job, now, no_longer, &err);
        look->questions += 2;
    }
    strings_free(then);
    strings_free(no_longer);
    if (rc == 0)
        return now;
    log_debug("extension job %u: %s", pending->job, err.text);
    strings_free(now);
    return NULL;
}

void power_look_ask(struct power_look *look)
{
    /* The plugin of Slurm knows the key of the pool, not what a user may have asked for. */
    look->known = slurm_client_power(look->pool->partition, !look->pool->wake, &look->power,
                                     &look->err) == 0;
    look->questions += look->power.saves ? 2 : 1;
    if (!look->known)
        log_debug("Slurm: %s", look->err.text);
    for (int i = 0; look->known && look->power.up != NULL && i < look->count; i++) {
        struct power_pending *pending = &look->pending[i];
        char **now;

        pending->too_few = are_too_few(look, pending);
        now = !pending->too_few ? stay_off(look, pending) : NULL;
        if (now != NULL) {
            strings_free(pending->asleep);
            pending->asleep = now;
        } else if (!pending->too_few) {
            look->power.as_of = 0; /* again the next time, whether nodes have changed or not */
        }
    }
}

struct power_look *power_look_create(const struct pool *pool, int pending)
{
    struct power_look *look = calloc(1, sizeof(*look));

    if (look == NULL)
        return NULL;
    look->pool = pool;
    look->pending = calloc((size_t)pending + 1, sizeof(*look->pending));
    if (look->pending != NULL)
        return look;
    free(look);
    return NULL;
}

void power_look_destroy(struct power_look *look)
{
    if (look == NULL)
        return;
    for (int i = 0; i < look->count; i++)
        strings_free(look->pending[i].asleep);
    strings_free(look->others);
    strings_free(look->avoid);
    strings_free(look->power.up);
    strings_free(look->power.asleep);
    free(look->pending);
    free(look);
}
