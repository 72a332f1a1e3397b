/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/survey_plan: no user takes the questions, or the memory, of the others. */
#include "lib/survey_plan.h"
#include "tests/unit/support.h"

#define SELF 7
#define ROWS 300

static json_object *numbers(int count)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < count; i++)
        json_object_array_add(list, json_object_new_int(i));
    return list;
}

static void test_weights(void **state)
{
    static const struct {
        const char *text;
        long weight;
    } cases[] = {
        {"1", 1},
        {"null", 1},
        {"\"x\"", 1},
        {"\"0123456789012345678901234567890123456789012345678901234567890123\"", 3},
        {"[]", 8},
        {"{}", 16},
        {"[1,2,[]]", 18},
        {"{\"a\":1,\"b\":{}}", 35},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_object *value = json_tokener_parse(cases[i].text);

        assert_int_equal(survey_weight(value), cases[i].weight);
        json_object_put(value);
    }
}

/* How many are asked at once; none is answered. */
static int ask_all(struct survey_plan *plan, int last[2])
{
    bool refused;
    int count = 0, row;

    while ((row = survey_plan_next(plan, &refused)) >= 0) {
        assert_false(refused);
        last[count++ % 2] = row;
    }
    return count;
}

static void test_questions_under_way(void **state)
{
    static const struct {
        uid_t first, second; /* users of the rows in turn */
        int asked;
    } cases[] = {
        {SELF, SELF, SURVEY_AT_A_TIME},
        {1, 1, SURVEY_USER_AT_A_TIME},
        {1, 2, 2 * SURVEY_USER_AT_A_TIME},
        {1, SELF, SURVEY_AT_A_TIME},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        uid_t users[ROWS];
        int last[2] = {-1, -1};

        for (int row = 0; row < ROWS; row++)
            users[row] = row % 2 == 0 ? cases[i].first : cases[i].second;
        struct survey_plan *plan = survey_plan_create(users, ROWS, SELF);
        assert_int_equal(ask_all(plan, last), cases[i].asked);
        /* Who has answered makes place for another row. */
        assert_true(survey_plan_done(plan, last[0], NULL));
        assert_int_equal(ask_all(plan, last), 1);
        survey_plan_destroy(plan);
    }
}

static void test_an_answer_that_is_too_large(void **state)
{
    const uid_t users[] = {1, 1, 2, 1, SELF};
    json_object *large = numbers(SURVEY_USER_WEIGHT_MAX), *small = numbers(10);
    struct survey_plan *plan = survey_plan_create(users, COUNT(users), SELF);
    bool refused = false, is_refused[COUNT(users)];

    (void)state;
    for (size_t i = 0; i < COUNT(users); i++)
        assert_int_equal(survey_plan_next(plan, &refused), (int)i);
    assert_int_equal(survey_plan_next(plan, &refused), -1);
    assert_true(survey_plan_done(plan, 0, small));
    assert_false(survey_plan_done(plan, 1, large));
    assert_false(survey_plan_done(plan, 3, small)); /* it had been asked already */
    assert_true(survey_plan_done(plan, 2, small));  /* another user */
    assert_true(survey_plan_done(plan, 4, large));  /* the asker's own */
    survey_plan_destroy(plan);

    /* Who is refused need not be asked. */
    plan = survey_plan_create(users, COUNT(users), SELF);
    assert_int_equal(survey_plan_next(plan, &refused), 0);
    assert_false(survey_plan_done(plan, 0, large));
    for (int row; (row = survey_plan_next(plan, &refused)) >= 0;)
        is_refused[row] = refused;
    assert_true(is_refused[1] && is_refused[3]);
    assert_false(is_refused[2] || is_refused[4]);
    survey_plan_destroy(plan);
    json_object_put(large);
    json_object_put(small);
}

/* Answers that are small enough alone add up. */
static void test_answers_add_up(void **state)
{
    uid_t users[ROWS];
    json_object *answer = numbers(SURVEY_USER_WEIGHT_MAX / 10);
    int kept = 0, row;
    bool refused = false;

    (void)state;
    for (int i = 0; i < ROWS; i++)
        users[i] = 1;
    struct survey_plan *plan = survey_plan_create(users, ROWS, SELF);
    while ((row = survey_plan_next(plan, &refused)) >= 0)
        kept += survey_plan_done(plan, row, refused ? NULL : answer) && !refused;
    assert_int_equal(kept, 9);
    survey_plan_destroy(plan);
    json_object_put(answer);
}

/* Many users with large answers have a bound together. Who says little is heard all the same. */
static void test_all_users_together(void **state)
{
    enum { USERS = 100 };
    uid_t users[USERS];
    json_object *large = numbers(SURVEY_USER_WEIGHT_MAX / 2), *small = numbers(1000);
    int kept = 0, row;
    bool refused = false;

    (void)state;
    for (int i = 0; i < USERS; i++)
        users[i] = (uid_t)(SELF + 1 + i);
    struct survey_plan *plan = survey_plan_create(users, USERS, SELF);
    while ((row = survey_plan_next(plan, &refused)) >= 0)
        if (row == USERS - 1)
            assert_true(survey_plan_done(plan, row, small));
        else
            kept += survey_plan_done(plan, row, large);
    assert_in_range(kept, 15, SURVEY_WEIGHT_MAX / (SURVEY_USER_WEIGHT_MAX / 2));
    survey_plan_destroy(plan);
    json_object_put(large);
    json_object_put(small);
}

/* Each row once, whoever answers when; never more at once than allowed. */
static void test_random(void **state)
{
    (void)state;
    srand(1);
    for (int history = 0; history < 200; history++) {
        uid_t users[ROWS];
        int asked[ROWS] = {0}, way[ROWS], count = 1 + rand() % ROWS, open = 0;

        for (int i = 0; i < count; i++)
            users[i] = (uid_t)(rand() % (1 + history % 12));
        struct survey_plan *plan = survey_plan_create(users, count, SELF);
        for (bool idle = false; !idle || open > 0;) {
            bool refused;
            int row = survey_plan_next(plan, &refused), of_user = 0;

            idle = row < 0;
            if (row >= 0) {
                asked[row]++;
                way[open++] = row;
                for (int i = 0; i < open; i++)
                    of_user += users[way[i]] == users[row];
                assert_true(open <= SURVEY_AT_A_TIME);
                assert_true(users[row] == SELF || of_user <= SURVEY_USER_AT_A_TIME);
            } else if (open > 0) {
                int which = rand() % open;
                survey_plan_done(plan, way[which], NULL);
                way[which] = way[--open];
            }
        }
        for (int i = 0; i < count; i++)
            assert_int_equal(asked[i], 1);
        survey_plan_destroy(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_questions_under_way),
        cmocka_unit_test(test_an_answer_that_is_too_large),
        cmocka_unit_test(test_answers_add_up),
        cmocka_unit_test(test_all_users_together),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
