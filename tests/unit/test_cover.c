/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/cover: the cheapest set that is enough, against all sets that there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/cover.h"

#define ITEMS_MAX 10

/* The cheapest set as bits, the first item in the highest bit: so the first of equal sets is the
 * largest number. 0: none. */
static unsigned best_of_all(const struct cover_item *items, int count, int need)
{
    unsigned best = 0;
    int64_t least = INT64_MAX;

    for (unsigned set = 1; set < 1U << count; set++) {
        int64_t cost = 0;
        int gives = 0;
        bool idle = false;

        for (int i = 0; i < count; i++) {
            if (!(set >> (count - 1 - i) & 1))
                continue;
            idle = idle || items[i].gives == 0;
            gives += items[i].gives;
            cost += items[i].cost;
        }
        if (!idle && gives >= need && cost <= least) {
            least = cost;
            best = set;
        }
    }
    return best;
}

static void random_items_are_picked_as_by_trying_all_sets(void **state)
{
    unsigned seed = 4711;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct cover_item items[ITEMS_MAX];
        bool picked[ITEMS_MAX];
        int count = 1 + rand_r(&seed) % ITEMS_MAX, need = 1 + rand_r(&seed) % 16;
        unsigned got = 0, want;
        bool enough;

        for (int i = 0; i < count; i++)
            items[i] = (struct cover_item){rand_r(&seed) % 5, 1 + rand_r(&seed) % 6};
        want = best_of_all(items, count, need);
        enough = cover_pick(items, count, need, picked);
        for (int i = 0; i < count; i++)
            got = got << 1 | picked[i];
        if (enough != (want != 0) || got != want)
            fail_msg("round %d: picked %x, not %x", round, got, want);
    }
}

static void very_many_are_picked_in_order(void **state)
{
    enum { MANY = 4000 };
    struct cover_item *items = calloc(MANY, sizeof(*items));
    bool *picked = calloc(MANY, sizeof(*picked));

    (void)state;
    assert_true(items != NULL && picked != NULL);
    for (int i = 0; i < MANY; i++)
        items[i] = (struct cover_item){1 + i % 2, 1};
    assert_true(cover_pick(items, MANY, 3000, picked));
    for (int i = 0; i < MANY; i++)
        assert_int_equal(picked[i], i < 2000);
    assert_false(cover_pick(items, MANY, 6001, picked));
    for (int i = 0; i < MANY; i++)
        assert_false(picked[i]);
    free(items);
    free(picked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_items_are_picked_as_by_trying_all_sets),
        cmocka_unit_test(very_many_are_picked_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
