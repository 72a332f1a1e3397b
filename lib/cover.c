/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cheapest things that together give enough (cover.h). */
#include "lib/cover.h"

#include <stdlib.h>
#include <string.h>

#define CELLS_MAX  (1 << 20) /* of the table below: a few milliseconds, 8 MiB */
#define IMPOSSIBLE (INT64_MAX / 2)

/* best[i][need] is the cost of the cheapest set among items i, i + 1, … that gives need. Picked are
 * the members of the first such set. -1: out of memory. */
static int pick_cheapest(const struct cover_item *items, int count, int need, bool *picked)
{
    size_t row = (size_t)need + 1;
    int64_t *best = calloc(((size_t)count + 1) * row, sizeof(*best));

    if (best == NULL)
        return -1;
    for (int want = 1; want <= need; want++)
        best[(size_t)count * row + (size_t)want] = IMPOSSIBLE;
    for (int i = count - 1; i >= 0; i--) {
        const int64_t *rest = &best[((size_t)i + 1) * row];

        for (int want = 1; want <= need; want++) {
            int left = want > items[i].gives ? want - items[i].gives : 0;
            int64_t with = rest[left] + items[i].cost;

            best[(size_t)i * row + (size_t)want] = with < rest[want] ? with : rest[want];
        }
    }
    for (int i = 0, want = need; i < count && want > 0; i++) {
        int left = want > items[i].gives ? want - items[i].gives : 0;
        const int64_t *rest = &best[((size_t)i + 1) * row];

        picked[i] = items[i].gives > 0 &&
                    rest[left] + items[i].cost == best[(size_t)i * row + (size_t)want];
        if (picked[i])
            want = left;
    }
    free(best);
    return 0;
}

/* Pick in order until there is enough, then drop the picked items that are not needed. */
static void pick_in_order(const struct cover_item *items, int count, int need, bool *picked)
{
    int64_t excess = -(int64_t)need;

    for (int i = 0; i < count && excess < 0; i++) {
        picked[i] = items[i].gives > 0;
        excess += items[i].gives;
    }
    for (int i = count - 1; i >= 0; i--) {
        if (picked[i] && items[i].gives <= excess) {
            picked[i] = false;
            excess -= items[i].gives;
        }
    }
}

bool cover_pick(const struct cover_item *items, int count, int need, bool *picked)
{
    int64_t all = 0;

    for (int i = 0; i < count; i++)
        all += items[i].gives;
    memset(picked, 0, (size_t)count * sizeof(*picked));
    if (all < need)
        return false;
    if (((int64_t)count + 1) * ((int64_t)need + 1) > CELLS_MAX ||
        pick_cheapest(items, count, need, picked) != 0)
        pick_in_order(items, count, need, picked);
    return true;
}
