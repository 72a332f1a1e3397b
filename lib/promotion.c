/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From which checkpoint or flushed snapshot a job goes on (promotion.h). */
#include "lib/promotion.h"

#include <inttypes.h>
#include <stddef.h>

#define NUMBER_MAX 99999999999999999 /* fits where numbers are read */

static bool counts(const struct promotion_entry *entry, uint32_t job, int64_t latest)
{
    return entry->complete && entry->key.job == job &&
           (snapshot_is_flushed_name(entry->name, job) ||
            (snapshot_checkpoint_number(entry->name) >= 0 &&
             snapshot_checkpoint_number(entry->name) <= latest));
}

/* Of two entries with the same key the checkpoint counts as newer: nothing has to be done for
 * it. */
static bool is_newer(const struct promotion_entry *a, const struct promotion_entry *b)
{
    int order = snapshot_key_compare(&a->key, &b->key);

    return order > 0 || (order == 0 && snapshot_checkpoint_number(a->name) >= 0);
}

int promotion_decide(uint32_t job, int64_t latest, struct promotion_entry *entries, int count,
                     struct promotion *promotion, struct error *err)
{
    const struct promotion_entry *newest = NULL;
    int64_t largest = 0;

    *promotion = (struct promotion){0};
    for (int i = 0; i < count; i++) {
        int64_t number = snapshot_checkpoint_number(entries[i].name);

        entries[i].remove = false;
        if (number > largest)
            largest = number;
        if (counts(&entries[i], job, latest) && (newest == NULL || is_newer(&entries[i], newest)))
            newest = &entries[i];
    }
    if (newest != NULL && snapshot_checkpoint_number(newest->name) < 0) {
        if (largest >= NUMBER_MAX)
            return error_set(err,
                             "there is a checkpoint with the number %" PRId64
                             ", and larger ones than %" PRId64 " are not made",
                             largest, NUMBER_MAX);
        promotion->chosen = newest;
        promotion->number = largest + 1;
    }
    for (int i = 0; i < count; i++)
        entries[i].remove = &entries[i] != promotion->chosen &&
                            snapshot_is_flushed_name(entries[i].name, job);
    return 0;
}
