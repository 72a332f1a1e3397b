/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/hang: a table of what is seen of a training, one moment after the other. */
#include "lib/hang.h"

#include "tests/unit/support.h"

struct moment {
    struct hang_view view;
    enum hang_state state;
    double usual;
};

static void play(const struct moment *moments, size_t count, double limit)
{
    struct hang hang = {0};
    double silent;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(hang_look(&hang, &moments[i].view, limit, &silent), moments[i].state);
        assert_float_equal(hang.usual, moments[i].usual, 1e-9);
        assert_true(moments[i].state == HANG_NO ? silent >= 0 : silent >= limit);
    }
}

#define PLAY(moments, limit) play(moments, sizeof(moments) / sizeof((moments)[0]), limit)

static void test_steps_and_then_none(void **state)
{
    static const struct moment moments[] = {
        {{100, 1, 0, false, false}, HANG_NO, 0},      /* the world is formed */
        {{100, 1, 0, true, false}, HANG_NO, 0},       /* it runs */
        {{200, 1, 0, true, false}, HANG_NO, 0},       /* nothing is known of its first step */
        {{230, 1, 1, true, true}, HANG_NO, 0},        /* which takes its time */
        {{230.5, 1, 2, true, true}, HANG_NO, 0.5},    /* two */
        {{234, 1, 5, true, true}, HANG_NO, 1},        /* the mean of four */
        {{239, 1, 15, true, true}, HANG_NO, 0.5},     /* ten: what was before does not matter */
        {{243, 1, 15, true, true}, HANG_NO, 0.5},     /* not yet */
        {{244, 1, 15, true, true}, HANG_SHOW, 0.5},   /* 5 s, the limit and ten steps */
        {{245.9, 1, 15, true, true}, HANG_NO, 0.5},   /* the stacks are written */
        {{246, 1, 15, true, true}, HANG_YES, 0.5},    /* … or cannot be */
        {{247, 2, 0, false, true}, HANG_NO, 0.5},     /* the next world */
        {{248, 2, 0, true, true}, HANG_NO, 0.5},      /* … runs */
        {{254, 2, 0, true, true}, HANG_SHOW, 0.5},    /* … and hangs */
        {{255, 2, 1, true, true}, HANG_NO, 0.5},      /* not quite */
        {{263, 2, 2, true, true}, HANG_NO, 1.25},     /* a step of 8 s */
        {{275, 2, 2, true, true}, HANG_NO, 1.25},     /* for ten times the usual */
        {{275.5, 2, 2, true, true}, HANG_SHOW, 1.25}, /* … which is over */
        {{277.5, 2, 2, true, true}, HANG_YES, 1.25},  /* … for the last time */
    };

    (void)state;
    PLAY(moments, 5);
}

static void test_the_first_step_of_a_world_does_not_say_what_is_usual(void **state)
{
    static const struct moment moments[] = {
        {{0, 1, 0, true, true}, HANG_NO, 0},      /* it runs */
        {{40, 1, 2, true, true}, HANG_NO, 0},     /* … slowly at first */
        {{42, 1, 22, true, true}, HANG_NO, 0.1},  /* … and then quickly */
        {{43, 2, 0, false, true}, HANG_NO, 0.1},  /* the next world is formed */
        {{44, 2, 0, true, true}, HANG_NO, 0.1},   /* … and runs */
        {{46, 2, 1, true, true}, HANG_NO, 0.1},   /* its first step */
        {{51, 2, 1, true, true}, HANG_SHOW, 0.1}, /* the limit alone counts */
    };

    (void)state;
    PLAY(moments, 5);
}

static void test_worlds_that_come_and_go_do_not_hang(void **state)
{
    static const struct moment moments[] = {
        {{0, 1, 0, true, true}, HANG_NO, 0},    /* it runs */
        {{9, 1, 0, false, true}, HANG_NO, 0},   /* it is to be left */
        {{10, 1, 0, true, true}, HANG_NO, 0},   /* … or rather not */
        {{13.5, 1, 0, true, true}, HANG_NO, 0}, /* it does not last for long yet */
        {{14, 1, 5, true, true}, HANG_NO, 0},   /* five steps */
        {{19, 1, 10, true, true}, HANG_NO, 1},  /* … and five more */
        {{20, 2, 12, true, true}, HANG_NO, 1},  /* the next; what it is told late */
        {{21, 2, 1, true, true}, HANG_NO, 1},   /* … is of the one before */
        {{99, 3, 1, true, true}, HANG_NO, 1},   /* and one of which nothing was seen for long */
    };

    (void)state;
    PLAY(moments, 5);
}

static void test_never(void **state)
{
    static const struct moment moments[] = {
        {{0, 1, 1, true, true}, HANG_NO, 0},                                  /* it runs */
        {{1, 1, UINT64_MAX, true, true}, HANG_NO, 1. / (double)UINT64_MAX},   /* … fast */
        {{1e9, 1, UINT64_MAX, true, true}, HANG_NO, 1. / (double)UINT64_MAX}, /* nobody asks */
    };

    (void)state;
    PLAY(moments, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_and_then_none),
        cmocka_unit_test(test_the_first_step_of_a_world_does_not_say_what_is_usual),
        cmocka_unit_test(test_worlds_that_come_and_go_do_not_hang),
        cmocka_unit_test(test_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
