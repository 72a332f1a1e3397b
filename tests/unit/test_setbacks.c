/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/setbacks: how long a job pauses whose extensions do not last. */
#include "lib/setbacks.h"
#include "tests/unit/support.h"

static void test_what_is_taken_back_again_and_again_pauses_longer(void **state)
{
    static const struct {
        double after; /* the setback before */
        double asked; /* … the extension that this one is about was asked for; < -1: none was */
        double pause;
    } table[] = {
        {1000, 900, 10}, /* the first one */
        {1, -500, 10},   /* and another one, which is taken back with it */
        {30, 0, 20},     /* what was asked for at once did not last */
        {40, 20, 40},     {60, 40, 80},    {100, 80, 160},
        {200, 160, 300},  {340, 300, 300}, /* no longer than that */
        {50, -5000, 300},                  /* a node was lost: no more and no less */
        {361, 310, 10},                    /* it was quiet for long */
    };
    struct setbacks setbacks = {.last = -1};
    double now = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        double before = now;

        now += table[i].after;
        setbacks_add(&setbacks, now, 10, table[i].asked < -1 ? -1 : before + table[i].asked);
        if (setbacks_pause(&setbacks, 10) != table[i].pause)
            fail_msg("row %zu: %g s", i, setbacks_pause(&setbacks, 10));
    }
    /* Without a delay there is a pause all the same, but for the first one. */
    setbacks = (struct setbacks){.last = 5};
    assert_true(setbacks_pause(&setbacks, 0) == 0);
    setbacks_add(&setbacks, 6, 0, 5);
    assert_true(setbacks_pause(&setbacks, 0) == 2 * SETBACKS_PAUSE);
    assert_true(setbacks_pause(&setbacks, 1000) == 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken_back_again_and_again_pauses_longer),
    };

    return cmocka_run_group_tests_name("setbacks", tests, NULL, NULL);
}
