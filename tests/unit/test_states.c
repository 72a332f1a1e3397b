/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/states, lib/state_manifest: names, manifests, which state is the latest, which may go. */
#include "tests/unit/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/states.h"
#include "lib/text.h"

#define DIGEST "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void test_names(void **unused)
{
    static const struct {
        const char *name;
        int64_t number;
        bool partial;
    } names[] = {
        {"000007", 7, false},
        {"000007.partial", 7, true},
        {"00000012", 12, false},
        {"999999999999999999", STATE_NUMBER_MAX, false},
        {"1234567890123456789", 0, false},
        {"00007", 0, false},
        {"000000", 0, false},
        {"000007.new", 0, false},
        {"000007x", 0, false},
        {"current", 0, false},
        {".partial", 0, true},
        {"", 0, false},
    };
    char name[STATE_NAME_SIZE];
    bool partial;
    (void)unused;

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_true(state_number(names[i].name, &partial) == names[i].number);
        if (names[i].number > 0)
            assert_int_equal(partial, names[i].partial);
    }
    state_name(name, 7);
    assert_string_equal(name, "000007");
    state_name(name, STATE_NUMBER_MAX);
    assert_true(state_number(name, &partial) == STATE_NUMBER_MAX);
    assert_true(state_pointer_number("000007\n", 7) == 7);
    assert_true(state_pointer_number("000007", 6) == 7);
    assert_true(state_pointer_number("000007\n\n", 8) == 0);
    assert_true(state_pointer_number("000007\0x", 8) == 0);
    assert_true(state_pointer_number("", 0) == 0);
}

static void test_manifest_as_it_was(void **unused)
{
    struct state_manifest *manifest = state_manifest_create(), *again;
    struct error err;
    char *text, *second;
    (void)unused;

    assert_int_equal(state_manifest_add(manifest, "sub/b", 5, DIGEST, &err), 0);
    assert_int_equal(state_manifest_add(manifest, "a b\"ü", 0, DIGEST, &err), 0);
    assert_int_equal(state_manifest_sort(manifest, &err), 0);
    manifest->previous = 6;
    manifest->run = strdup("fit 3 of job 12");
    manifest->has_key = true;
    manifest->key = (struct snapshot_key){.job = 12, .restarts = 1, .generation = 3, .step = 99};
    text = state_manifest_text(manifest);
    assert_string_equal(text, "{\"format\":1,\"files\":{\"a b\\\"ü\":0,\"sub/b\":5},\"blake2b\":{"
                              "\"a b\\\"ü\":\"" DIGEST "\",\"sub/b\":\"" DIGEST "\"},"
                              "\"previous\":6,\"run\":\"fit 3 of job 12\","
                              "\"incarnation\":\"12.1\",\"generation\":3,\"step\":99}");
    again = state_manifest_parse(text, strlen(text), &err);
    assert_non_null(again);
    assert_int_equal(again->count, 2);
    assert_true(again->bytes == 5 && again->previous == 6 && again->has_key);
    assert_string_equal(state_manifest_find(again, "sub/b")->digest, DIGEST);
    assert_null(state_manifest_find(again, "sub"));
    second = state_manifest_text(again);
    assert_string_equal(second, text);
    free(text);
    free(second);
    state_manifest_destroy(manifest);
    state_manifest_destroy(again);
}

static void test_bad_manifests(void **unused)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", NULL},
        {"{\"format\": 1, \"files\": {\"a\": 1}", NULL},
        {"[]", NULL},
        {"{\"files\": {\"a\": 1}}", "\"format\" is not 1, the one that this version reads"},
        {"{\"format\": 1}", "\"files\" must be an object with the sizes of files"},
        {"{\"format\": 1, \"files\": {}}", "\"files\" must be an object with the sizes of files"},
        {"{\"format\": 1, \"files\": {\"a\": \"1\"}}", "the size of a is no whole number"},
        {"{\"format\": 1, \"files\": {\"a\": -1}}", NULL},
        {"{\"format\": 1, \"files\": {\"a\": 1.0}}", "the size of a is no whole number"},
        {"{\"format\": 1, \"files\": {\"a\": 9999999999999999999}}", NULL},
        {"{\"format\": 1, \"files\": {\"../a\": 1}}",
         "a state cannot have a file of the name \"../a\""},
        {"{\"format\": 1, \"files\": {\"/a\": 1}}",
         "a state cannot have a file of the name \"/a\""},
        {"{\"format\": 1, \"files\": {\"a/./b\": 1}}", NULL},
        {"{\"format\": 1, \"files\": {\"a\\nb\": 1}}", NULL},
        {"{\"format\": 1, \"files\": {\"complete.json\": 1}}", NULL},
        {"{\"format\": 1, \"files\": {\"a/b\": 1, \"a-\": 1, \"a\": 1}}",
         "a/b is there twice, or below a file"},
        {"{\"format\": 1, \"files\": {\"a\": 1}, \"blake2b\": {}}",
         "\"blake2b\" of a must be 64 hexadecimal digits"},
        {"{\"format\": 1, \"files\": {\"a\": 1}, \"blake2b\": 7}", "\"blake2b\" must be an object"},
        {"{\"format\": 1, \"files\": {\"a\": 1}, \"previous\": -1}",
         "\"previous\" must be the number of a state"},
        {"{\"format\": 1, \"files\": {\"a\": 1}, \"run\": \"a\\nb\"}",
         "\"run\" must be a name of at most 200 bytes"},
        {"{\"format\": 1, \"files\": {\"a\": 1152921504606846976, \"b\": 1}}", NULL},
    };
    (void)unused;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct error err = {""};

        assert_null(state_manifest_parse(bad[i].text, strlen(bad[i].text), &err));
        assert_true(err.text[0] != '\0');
        if (bad[i].why != NULL)
            assert_string_equal(err.text, bad[i].why);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static int64_t one_byte(const char *file, void *arg)
{
    (void)arg;
    return strcmp(file, "missing") == 0 ? -1 : 1;
}

/* "1 2p 3t 4@12.0.3": complete, partial, torn, complete by job 12, restarts 0, generation 3. */
static struct states make(const char *text, int64_t current)
{
    struct states states = {0};
    char *copy = strdup(text), *at = copy, *word;

    while ((word = strsep(&at, " ")) != NULL) {
        long number = strtol(word, &word, 10);
        char name[2 * STATE_NAME_SIZE], manifest[160] = "{\"format\":1,\"files\":{\"a\":1}}";
        struct state *state;
        int job, restarts, generation;

        snprintf(name, sizeof(name), "%06ld%s", number, *word == 'p' ? STATE_PARTIAL : "");
        assert_int_equal(states_add(&states, name, NULL), 0);
        states_sort(&states);
        state = (struct state *)(uintptr_t)states_find(&states, number);
        if (sscanf(word, "@%d.%d.%d", &job, &restarts, &generation) == 3)
            snprintf(
                manifest, sizeof(manifest),
                "{\"format\":1,\"files\":{\"a\":1},\"incarnation\":\"%d.%d\",\"generation\":%d}",
                job, restarts, generation);
        if (*word == 't')
            states_judge_torn(state, "torn");
        else if (*word != 'p')
            states_judge(state, manifest, strlen(manifest), one_byte, NULL);
    }
    free(copy);
    states.current = current;
    return states;
}

static void test_latest(void **unused)
{
    static const struct {
        const char *states;
        int64_t current, latest;
    } cases[] = {
        {"1", 0, 1},
        {"1 2 3", 3, 3},
        {"3 1 2", 0, 3},
        /* A crash between the state and the pointer; a user has gone back. */
        {"1 2 3", 2, 2},
        {"1 2t 3", 2, 1},
        {"1 2p", 1, 1},
        {"1p 2t", 0, 0},
        {"1 3", 2, 1},
        {"2 3", 1, 0},
        /* A world that had been given up has written last. */
        {"1@12.0.3 2@12.0.2", 2, 1},
        {"1@12.1.0 2@12.0.9 3@12.1.1", 0, 3},
        {"1@12.0.3 2@13.0.2", 2, 2},
        {"1@12.0.3 2", 2, 2},
        {"1t 2@12.0.2", 2, 2},
    };
    (void)unused;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct states states = make(cases[i].states, cases[i].current);
        const struct state *latest = states_latest(&states);

        assert_true((latest != NULL ? latest->number : 0) == cases[i].latest);
        states_clear(&states);
    }
}

static void expect_going(const char *text, int64_t current, int keep, int64_t own,
                         const char *expected)
{
    struct states states = make(text, current);
    char going[160] = "";

    for (size_t i = 0; i < states.count; i++)
        if (states_may_go(&states, &states.list[i], keep, own))
            text_append(going, sizeof(going), "%ld ", (long)states.list[i].number);
    assert_string_equal(going, expected);
    states_clear(&states);
}

static void test_what_may_go(void **unused)
{
    (void)unused;
    expect_going("1 2 3 4", 4, 2, 4, "1 2 ");
    expect_going("1 2 3 4", 2, 1, 4, "1 ");
    expect_going("1 2p 3t 4", 4, 2, 4, "2 ");
    expect_going("1t 2 3", 3, 2, 3, "1 ");
    expect_going("1p 2p", 0, 1, 2, "");
    expect_going("1 2 3p", 2, 1, 2, "1 ");
    expect_going("1 2 3 4", 0, 1, 3, "1 2 ");
}

static void test_what_a_user_may(void **unused)
{
    struct states states = make("1 2 3p 4t", 2);
    struct error err;
    (void)unused;

    assert_int_equal(states_check_remove(&states, 1, false, &err), 0);
    assert_int_equal(states_check_remove(&states, 4, false, &err), 0);
    assert_int_equal(states_check_remove(&states, 3, true, &err), 0);
    assert_int_equal(states_check_remove(&states, 2, true, &err), -1);
    assert_string_equal(err.text, "000002 is the current state: use another one first");
    assert_int_equal(states_check_remove(&states, 3, false, &err), -1);
    assert_int_equal(states_check_remove(&states, 9, false, &err), -1);
    assert_string_equal(err.text, "there is no state 000009");
    assert_int_equal(states_check_use(&states, 1, &err), 0);
    assert_int_equal(states_check_use(&states, 3, &err), -1);
    assert_int_equal(states_check_use(&states, 4, &err), -1);
    assert_string_equal(err.text, "000004 is not complete: torn");
    assert_true(states_next(&states) == 5);
    states_clear(&states);
    assert_true(states_next(&states) == 1);
    states = make("999999999999999999p", 0);
    assert_true(states_next(&states) == 0);
    states_clear(&states);
}

static void test_two_names_of_a_number(void **unused)
{
    struct states states = {0};
    (void)unused;

    assert_int_equal(states_add(&states, "000007", NULL), 0);
    assert_int_equal(states_add(&states, "000007.partial", NULL), 0);
    states_sort(&states);
    assert_int_equal(states.count, 1);
    assert_int_equal(states.list[0].kind, STATE_IS_TORN);
    assert_null(states.list[0].why);
    assert_int_equal(states_add(&states, "0000007", NULL), 0);
    states_sort(&states);
    assert_int_equal(states.count, 1);
    assert_string_equal(states.list[0].why, "there are two names of this number");
    states_clear(&states);
}

/* A server may list names in any order. The time must not grow with the square of their number. */
static void test_hostile_listing(void **unused)
{
    struct timespec began, now;
    struct states states = {0};
    (void)unused;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    for (int i = 4 * STATES_MAX; i > 0; i--) {
        char name[STATE_NAME_SIZE];

        state_name(name, i % STATES_MAX + 1);
        assert_int_equal(states_add(&states, name, NULL), 0);
    }
    states_sort(&states);
    assert_int_equal(states.count, STATES_MAX);
    assert_true(states.list[0].number == 1);
    assert_true(states_find(&states, 4711) == &states.list[4710]);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    assert_true(now.tv_sec - began.tv_sec < 2);
    states_clear(&states);
}

static void test_too_many(void **unused)
{
    struct states states = {0};
    struct error err = {""};
    char name[STATE_NAME_SIZE];
    int i = 0, rc = 0;
    (void)unused;

    for (; rc == 0 && i < 3 * STATES_MAX; i++) {
        state_name(name, i + 1);
        rc = states_add(&states, name, &err);
    }
    assert_int_equal(rc, -1);
    assert_string_equal(err.text, "there are more than 100000 states");
    states_clear(&states);
}

/* Histories of pushes, crashes, removals and rollbacks: what counts never goes. */
static void test_random_histories(void **unused)
{
    (void)unused;
    for (unsigned int seed = 1; seed <= 300; seed++) {
        char text[2048] = "";
        int64_t current = 0;
        unsigned int state = seed;

        for (int number = 1; number <= 30; number++) {
            int what = rand_r(&state) % 4;
            struct states states;
            const struct state *latest;
            int keep = 1 + rand_r(&state) % 3;

            text_append(text, sizeof(text), "%s%d%s", text[0] != '\0' ? " " : "", number,
                        what == 0   ? "p"
                        : what == 1 ? "t"
                                    : "");
            if (what > 1 && rand_r(&state) % 4 != 0)
                current = number;
            states = make(text, current);
            latest = states_latest(&states);
            assert_true(states_next(&states) == number + 1);
            text[0] = '\0';
            for (size_t i = 0; i < states.count; i++) {
                const struct state *each = &states.list[i];
                bool goes = what > 1 && states_may_go(&states, each, keep, number);

                assert_false(goes &&
                             (each == latest || each->number == current || each->number >= number));
                if (!goes)
                    text_append(text, sizeof(text), "%s%ld%s", text[0] != '\0' ? " " : "",
                                (long)each->number,
                                each->kind == STATE_IS_PARTIAL ? "p"
                                : each->kind == STATE_IS_TORN  ? "t"
                                                               : "");
            }
            states_clear(&states);
        }
    }
}

/* The manifests of all complete states together have as many bytes as one program keeps. */
static void test_manifests_in_memory(void **unused)
{
    const struct state complete = {.kind = STATE_IS_COMPLETE}, torn = {.kind = STATE_IS_TORN};
    struct states states = {0};
    struct error err = {""};
    (void)unused;

    for (size_t i = 0; i < STATES_TEXT_MAX / STATE_MANIFEST_MAX; i++)
        assert_int_equal(states_weigh(&states, &complete, STATE_MANIFEST_MAX, &err), 0);
    assert_int_equal(states_weigh(&states, &torn, STATE_MANIFEST_MAX, &err), 0);
    assert_int_equal(states_weigh(&states, &complete, 0, &err), 0);
    assert_int_equal(states_weigh(&states, &complete, 1, &err), -1);
    assert_string_equal(err.text, "the manifests of all states have more than 256 MiB");
    assert_int_equal(states_weigh(&states, &torn, 1, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_manifest_as_it_was),
        cmocka_unit_test(test_bad_manifests),
        cmocka_unit_test(test_latest),
        cmocka_unit_test(test_what_may_go),
        cmocka_unit_test(test_what_a_user_may),
        cmocka_unit_test(test_two_names_of_a_number),
        cmocka_unit_test(test_hostile_listing),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_manifests_in_memory),
        cmocka_unit_test(test_random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
