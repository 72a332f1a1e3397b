/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/sizes and lib/number: what is accepted, every message, and floor and next against a model
 * that enumerates. */
#include <limits.h>
#include <stdbool.h>

#include "lib/number.h"
#include "lib/sizes.h"
#include "lib/text.h"
#include "tests/unit/support.h"

#define MODEL_NODES 128

static void parse(const char *text, struct sizes *sizes)
{
    struct error err = {""};

    if (sizes_parse(text, sizes, &err) != 0)
        fail_msg("%s: %s", text, err.text);
}

static void test_accepted(void **state)
{
    static const struct {
        const char *text, *canonical;
        int min, max, step, count;
    } cases[] = {
        {"2:8", "2:8", 2, 8, 1, 0},
        {"2:8:2", "2:8:2", 2, 8, 2, 0},
        {"2:8:1", "2:8", 2, 8, 1, 0},
        {"2:8:6", "2:8:6", 2, 8, 6, 0},
        {"4", "4:4", 4, 4, 1, 0},
        {"4:4", "4:4", 4, 4, 1, 0},
        {"4:4:3", "4:4", 4, 4, 1, 0},
        {"1", "1:1", 1, 1, 1, 0},
        {"02:08", "2:8", 2, 8, 1, 0},
        {"1:65533", "1:65533", 1, 65533, 1, 0},
        {"1:65533:65532", "1:65533:65532", 1, 65533, 65532, 0},
        {"2,4,8", "2,4,8", 2, 8, 0, 3},
        {"2,3", "2,3", 2, 3, 0, 2},
        {"1,65533", "1,65533", 1, 65533, 0, 2},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sizes sizes;
        char text[SIZES_TEXT_MAX];

        parse(cases[i].text, &sizes);
        assert_string_equal(sizes_format(&sizes, text, sizeof(text)), cases[i].canonical);
        assert_int_equal(sizes.min, cases[i].min);
        assert_int_equal(sizes.max, cases[i].max);
        assert_int_equal(sizes.step, cases[i].step);
        assert_int_equal(sizes.count, cases[i].count);
    }
}

/* With --elastic-replica: what the sizes become, or why they cannot. */
static void test_kept_together(void **state)
{
    static const struct {
        const char *text;
        int nodes;
        const char *becomes, *refusal;
    } cases[] = {
        {"2:8", 0, "2:8", NULL},
        {"2:8", 1, "2:8", NULL},
        {"2:8", 2, "2:8:2", NULL},
        {"2:8:2", 2, "2:8:2", NULL},
        {"4:16:4", 2, "4:16:4", NULL},
        {"4:4", 4, "4:4", NULL},
        {"3:12", 3, "3:12:3", NULL},
        {"2,4,8", 2, "2,4,8", NULL},
        {"65533:65533", 65533, "65533:65533", NULL},
        {"1:8", 2, NULL, "MIN 1 is not a multiple of 2; use 2"},
        {"3:8", 2, NULL, "MIN 3 is not a multiple of 2; use 2 or 4"},
        {"2:7", 2, NULL, "MAX 7 is not a multiple of 2; use 6 or 8"},
        {"2:65533", 2, NULL, "MAX 65533 is not a multiple of 2; use 65532"},
        {"2:8:3", 2, NULL, "STEP 3 is not a multiple of 2; use 2 or 4"},
        {"2,4,5", 2, NULL, "size 5 is not a multiple of 2; use 4 or 6"},
        {"4", 3, NULL, "MIN 4 is not a multiple of 3; use 3 or 6"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sizes sizes, before;
        struct error err = {""};
        char text[SIZES_TEXT_MAX];
        int rc;

        parse(cases[i].text, &sizes);
        before = sizes;
        rc = sizes_keep_together(&sizes, cases[i].nodes, &err);
        if ((rc == 0) != (cases[i].refusal == NULL) ||
            strcmp(err.text, rc == 0 ? "" : cases[i].refusal) != 0)
            fail_msg("%s by %d: %d, %s", cases[i].text, cases[i].nodes, rc, err.text);
        if (rc == 0)
            assert_string_equal(sizes_format(&sizes, text, sizeof(text)), cases[i].becomes);
        else
            assert_memory_equal(&sizes, &before, sizeof(sizes));
    }
}

#define FORMS "write MIN:MAX such as 2:8, MIN:MAX:STEP such as 2:8:2, or a list such as 2,4,8"
#define RANGE "allowed are whole numbers from 1 to 65533"
#define ORDER "write the sizes in ascending order, each once, such as 2,4,8"

static void test_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "the value is empty; " FORMS},
        {"8:2", "MIN 8 is larger than MAX 2; write MIN:MAX with 1 <= MIN <= MAX <= 65533"},
        {"0:4", "MIN '0' is not a number of nodes; " RANGE},
        {"0", "the number '0' is not a number of nodes; " RANGE},
        {"-1:4", "MIN '-1' is not a number of nodes; " RANGE},
        {"+1:4", "MIN '+1' is not a number of nodes; " RANGE},
        {"2:-4", "MAX '-4' is not a number of nodes; " RANGE},
        {"a:b", "MIN 'a' is not a number of nodes; " RANGE},
        {"2:8x", "MAX '8x' is not a number of nodes; " RANGE},
        {"2.5:8", "MIN '2.5' is not a number of nodes; " RANGE},
        {"0x2:8", "MIN '0x2' is not a number of nodes; " RANGE},
        {"two", "'two' is not a number of nodes; " FORMS},
        {"-2", "'-2' is not a number of nodes; " FORMS},
        {"2..8", "'2..8' is not a number of nodes; " FORMS},
        {"2:65534", "MAX '65534' is not a number of nodes; " RANGE},
        {"2:4294967298", "MAX '4294967298' is not a number of nodes; " RANGE},
        {"18446744073709551618",
         "the number '18446744073709551618' is not a number of nodes; " RANGE},
        {":8", "MIN is missing; " FORMS},
        {"2:", "MAX is missing; " FORMS},
        {":", "MIN is missing; " FORMS},
        {"2:8:", "STEP is missing; " FORMS},
        {"2:8:0", "STEP '0' is not a number of nodes; " RANGE},
        {"2:8:-2", "STEP '-2' is not a number of nodes; " RANGE},
        {"2:8:4", "STEP 4 does not lead from MIN 2 to MAX 8; use a STEP that divides 6, or a MAX "
                  "of 6 or 10"},
        {"2:8:7",
         "STEP 7 does not lead from MIN 2 to MAX 8; use a STEP that divides 6, or a MAX of 2 or 9"},
        {"2:65533:65533", "STEP 65533 does not lead from MIN 2 to MAX 65533; use a STEP that "
                          "divides 65531, or a MAX of 2"},
        {"2:8:2:2", "there are more than three numbers; write MIN:MAX or MIN:MAX:STEP"},
        {"2,4:2", "a list and MIN:MAX[:STEP] exclude each other; write either 2,4,8 or 2:8:2"},
        {"2:8,2", "a list and MIN:MAX[:STEP] exclude each other; write either 2,4,8 or 2:8:2"},
        {"4,2", "size 2 comes after 4; " ORDER},
        {"2,8,4", "size 4 comes after 8; " ORDER},
        {"2,4,4", "size 4 is listed twice; " ORDER},
        {"2,,4", "a size of the list is missing; " FORMS},
        {",2", "a size of the list is missing; " FORMS},
        {"2,4,", "a size of the list is missing; " FORMS},
        {"0,2", "a size of the list '0' is not a number of nodes; " RANGE},
        {"2,x", "a size of the list 'x' is not a number of nodes; " RANGE},
        {" 2:8", "there is a blank in the value; write it without, such as 2:8 or 2,4,8"},
        {"2:8 ", "there is a blank in the value; write it without, such as 2:8 or 2,4,8"},
        {"2: 8", "there is a blank in the value; write it without, such as 2:8 or 2,4,8"},
        {"2, 4", "there is a blank in the value; write it without, such as 2:8 or 2,4,8"},
        {"2:8\n", "there is a blank in the value; write it without, such as 2:8 or 2,4,8"},
        {"2-8", "'2-8' is not a number of nodes; " FORMS},
        {"2:\0338", "MAX '?8' is not a number of nodes; " RANGE},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sizes sizes = {.min = 77};
        struct error err = {""};

        if (sizes_parse(cases[i].text, &sizes, &err) != -1)
            fail_msg("'%s' was accepted", cases[i].text);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(sizes.min, 77);
        assert_int_equal(sizes_parse(cases[i].text, &sizes, NULL), -1);
    }
}

static void test_very_long_text(void **state)
{
    char text[5000];
    struct sizes sizes;
    struct error err = {""};

    memset(text, '7', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(sizes_parse(text, &sizes, &err), -1);
    assert_one_line(err.text);
    assert_non_null(strstr(err.text, "777...' is not a number of nodes; " RANGE));
}

static void test_longest_list(void **state)
{
    char text[2 * SIZES_TEXT_MAX] = "", again[SIZES_TEXT_MAX];
    struct sizes sizes;
    struct error err = {""};

    for (int i = 0; i < SIZES_LIST_MAX; i++)
        text_append(text, sizeof(text), "%s%d", i > 0 ? "," : "", 60000 + i);
    parse(text, &sizes);
    assert_int_equal(sizes.count, SIZES_LIST_MAX);
    assert_string_equal(sizes_format(&sizes, again, sizeof(again)), text);
    strcat(text, ",61000");
    assert_int_equal(sizes_parse(text, &sizes, &err), -1);
    assert_string_equal(err.text,
                        "the list has more than 64 sizes; write MIN:MAX:STEP for so many");
}

static void test_format_in_a_short_buffer(void **state)
{
    struct sizes sizes, unset = {0};
    char text[8];

    parse("20,40,80", &sizes);
    for (size_t size = 1; size < sizeof(text); size++) {
        memset(text, 'x', sizeof(text));
        sizes_format(&sizes, text, size);
        assert_int_equal(strlen(text), size - 1);
        assert_memory_equal(text, "20,40,80", size - 1);
        assert_int_equal(text[size], 'x');
    }
    assert_string_equal(sizes_format(&unset, text, sizeof(text)), "");
}

/* Floor, next and allowed, each by looking at every number of nodes. */
static void compare_with_model(const struct sizes *sizes, const bool model[MODEL_NODES])
{
    for (int nodes = -2; nodes < MODEL_NODES; nodes++) {
        int below = 0, above = 0;

        for (int n = 1; n < MODEL_NODES; n++) {
            if (model[n] && n <= nodes)
                below = n;
            if (model[n] && n > nodes && above == 0)
                above = n;
        }
        assert_int_equal(sizes_floor(sizes, nodes), below);
        assert_int_equal(sizes_next(sizes, nodes), above);
        assert_int_equal(sizes_allowed(sizes, nodes), nodes > 0 && model[nodes]);
    }
    assert_int_equal(sizes_floor(sizes, INT_MAX), sizes->max);
    assert_int_equal(sizes_next(sizes, INT_MAX), 0);
    assert_int_equal(sizes_floor(sizes, INT_MIN), 0);
    assert_int_equal(sizes_next(sizes, INT_MIN), sizes->min);
}

static void test_every_small_range(void **state)
{
    for (int min = 1; min <= 12; min++) {
        for (int max = min; max <= 24; max++) {
            for (int step = 1; step <= 24; step++) {
                bool model[MODEL_NODES] = {false};
                struct sizes sizes;
                char text[32] = "";
                int n, rc;

                for (n = min; n <= max; n += step)
                    model[n] = true;
                text_append(text, sizeof(text), "%d:%d:%d", min, max, step);
                rc = sizes_parse(text, &sizes, NULL);
                assert_int_equal(rc, n - step == max ? 0 : -1);
                if (rc == 0)
                    compare_with_model(&sizes, model);
            }
        }
    }
}

static void test_random_lists(void **state)
{
    uint64_t random = 2;

    for (int round = 0; round < 300; round++) {
        bool model[MODEL_NODES] = {false};
        char text[SIZES_TEXT_MAX] = "", again[SIZES_TEXT_MAX];
        struct sizes sizes;
        int count = 0;

        for (uint32_t i = random_below(&random, 40) + 2; i > 0; i--)
            model[random_below(&random, MODEL_NODES - 4) + 1] = true;
        for (int n = 1; n < MODEL_NODES; n++) {
            if (model[n])
                text_append(text, sizeof(text), "%s%d", count++ > 0 ? "," : "", n);
        }
        if (count == 1)
            continue;
        parse(text, &sizes);
        assert_string_equal(sizes_format(&sizes, again, sizeof(again)), text);
        compare_with_model(&sizes, model);
    }
}

static void test_unset(void **state)
{
    const bool model[MODEL_NODES] = {false};
    struct sizes sizes = {0};

    compare_with_model(&sizes, model);
}

/* Any text either fails with a message and no effect, or gives sizes that hold together. */
static void test_random_texts(void **state)
{
    static const char letters[] = "0123456789::,,, -x";
    uint64_t random = 3;
    int accepted = 0;

    for (int round = 0; round < 200000; round++) {
        char text[16] = "", again[SIZES_TEXT_MAX];
        struct sizes sizes = {.min = -5}, same;
        struct error err = {""};
        uint32_t len = random_below(&random, 10);

        for (uint32_t i = 0; i < len; i++)
            text[i] = letters[random_below(&random, sizeof(letters) - 1)];
        if (sizes_parse(text, &sizes, &err) != 0) {
            assert_one_line(err.text);
            assert_int_equal(sizes.min, -5);
            continue;
        }
        accepted++;
        assert_true(1 <= sizes.min && sizes.min <= sizes.max && sizes.max <= SIZES_NODES_MAX);
        assert_true(sizes_allowed(&sizes, sizes.min) && sizes_allowed(&sizes, sizes.max));
        parse(sizes_format(&sizes, again, sizeof(again)), &same);
        assert_memory_equal(&sizes, &same, sizeof(sizes));
    }
    /* The letters are chosen so that both happen often. */
    assert_in_range(accepted, 1000, 190000);
}

static void test_numbers(void **state)
{
    static const char *const bad[] = {"",    "-1", "+1",         " 1", "1 ", "1.0",
                                      "1e3", "x",  "2147483648", "4",  "101"};
    int value = 7;

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(number_parse(bad[i], strlen(bad[i]), 5, 100, &value), -1);
        assert_int_equal(value, 7);
    }
    assert_int_equal(number_parse("5", 1, 5, 100, &value), 0);
    assert_int_equal(value, 5);
    assert_int_equal(number_parse("100", 3, 5, 100, &value), 0);
    assert_int_equal(value, 100);
    assert_int_equal(number_parse("000000000000000000000042", 24, 5, 100, &value), 0);
    assert_int_equal(value, 42);
    assert_int_equal(number_parse("2147483647", 10, 0, INT_MAX, &value), 0);
    assert_int_equal(value, INT_MAX);
    /* No further than len. */
    assert_int_equal(number_parse("123", 2, 0, 100, &value), 0);
    assert_int_equal(value, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_kept_together),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_very_long_text),
        cmocka_unit_test(test_longest_list),
        cmocka_unit_test(test_format_in_a_short_buffer),
        cmocka_unit_test(test_every_small_range),
        cmocka_unit_test(test_random_lists),
        cmocka_unit_test(test_unset),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_numbers),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
