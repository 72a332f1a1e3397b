/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/promotion: which flushed snapshot becomes a checkpoint, with which number, and what goes. */
#include "lib/promotion.h"

#include "tests/unit/support.h"

#define JOB       12
#define ENTRIES   8
#define NO_LATEST INT64_MAX

/* "NAME[:JOB.RESTARTS.GENERATION.STEP]"; without the latter it is not complete. Step "-" is
 * none. */
static void fill(struct promotion_entry *entry, const char *text)
{
    const char *colon = strchr(text, ':');
    char step[32] = "";

    memset(entry, 0, sizeof(*entry));
    snprintf(entry->name, sizeof(entry->name), "%.*s",
             (int)(colon != NULL ? (size_t)(colon - text) : strlen(text)), text);
    if (colon == NULL)
        return;
    assert_int_equal(sscanf(colon, ":%u.%u.%d.%31s", &entry->key.job, &entry->key.restarts,
                            &entry->key.generation, step),
                     4);
    entry->key.step = step[0] == '-' ? SNAPSHOT_NO_STEP : strtoll(step, NULL, 10);
    entry->complete = true;
}

struct example {
    const char *what;
    int64_t latest;
    const char *entries[ENTRIES];
    int chosen; /* -1: none */
    int64_t number;
    const char *removed; /* '1' for each entry that goes */
};

#define FLUSHED(key, node) ".flushed-" key "-" node ":" key

static const struct example examples[] = {
    {"nothing", NO_LATEST, {NULL}, -1, 0, ""},
    {"only checkpoints", 2, {"00000001:12.0.1.5", "00000002:12.0.1.9"}, -1, 0, "00"},
    {"no checkpoint yet", NO_LATEST, {FLUSHED("12.0.1.5", "n1")}, 0, 1, "0"},
    {"newer by its step", 1, {"00000001:12.0.1.5", FLUSHED("12.0.1.6", "n1")}, 1, 2, "00"},
    {"older by its step", 1, {"00000001:12.0.1.6", FLUSHED("12.0.1.5", "n1")}, -1, 0, "01"},
    {"the same", 1, {FLUSHED("12.0.1.6", "n1"), "00000001:12.0.1.6"}, -1, 0, "10"},
    {"a checkpoint without a step is the last of its world",
     1,
     {"00000001:12.0.1.-", FLUSHED("12.0.1.99", "n1")},
     -1,
     0,
     "01"},
    {"but not of the job", 1, {"00000001:12.0.1.-", FLUSHED("12.0.2.0", "n1")}, 1, 2, "00"},
    {"of a later run", 7, {"00000007:12.0.9.9", FLUSHED("12.1.1.1", "n1")}, 1, 8, "00"},
    {"of an earlier run", 7, {"00000007:12.1.1.1", FLUSHED("12.0.9.9", "n1")}, -1, 0, "01"},
    {"the newest of several, the others go",
     3,
     {FLUSHED("12.0.1.5", "n1"), FLUSHED("12.0.2.1", "n2"), "00000003:12.0.1.5",
      FLUSHED("12.0.2.0", "n3")},
     1,
     4,
     "1001"},
    {"of two copies one",
     NO_LATEST,
     {FLUSHED("12.0.1.5", "n1"), FLUSHED("12.0.1.5", "n2")},
     0,
     1,
     "01"},
    {"what is not complete is not chosen, and goes",
     1,
     {".flushed-12.0.9.9-n1", "00000001:12.0.1.1", FLUSHED("12.0.1.2", "n2")},
     2,
     2,
     "100"},
    {"a checkpoint that is not complete counts for the numbers only",
     5,
     {"00000005", FLUSHED("12.0.1.2", "n2")},
     1,
     6,
     "00"},
    {"another job's is not touched, whatever it says",
     1,
     {FLUSHED("13.0.9.9", "n1"), "00000001:12.0.1.1", ".flushed-13.0.9.9-n2",
      ".flushed-1.0.9.9-n1:1.0.9.9"},
     -1,
     0,
     "0000"},
    {"nor is it chosen by the name that it has",
     NO_LATEST,
     {".flushed-12.0.9.9-n1:13.0.9.9"},
     -1,
     0,
     "1"},
    {"another job's checkpoints say nothing",
     9,
     {"00000009:13.5.5.5", FLUSHED("12.0.1.1", "n1")},
     1,
     10,
     "00"},
    {"what was never announced does not count",
     1,
     {"00000001:12.0.1.1", "00000002:12.0.1.9", FLUSHED("12.0.1.5", "n1")},
     2,
     3,
     "000"},
    {"numbers need not be in order, nor have eight digits",
     NO_LATEST,
     {"100000000:12.0.1.1", "3:12.0.1.2", FLUSHED("12.0.1.5", "n1")},
     2,
     100000001,
     "000"},
};

static void test_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(examples); i++) {
        const struct example *example = &examples[i];
        struct promotion_entry entries[ENTRIES];
        struct promotion promotion;
        struct error err = {""};
        int count = 0;

        for (; count < ENTRIES && example->entries[count] != NULL; count++)
            fill(&entries[count], example->entries[count]);
        assert_int_equal(promotion_decide(JOB, example->latest, entries, count, &promotion, &err),
                         0);
        if ((promotion.chosen == NULL ? -1 : promotion.chosen - entries) != example->chosen ||
            promotion.number != example->number)
            fail_msg("%s: entry %d gets number %d", example->what,
                     promotion.chosen == NULL ? -1 : (int)(promotion.chosen - entries),
                     (int)promotion.number);
        for (int k = 0; k < count; k++)
            if (entries[k].remove != (example->removed[k] == '1'))
                fail_msg("%s: %s %s", example->what, entries[k].name,
                         entries[k].remove ? "goes" : "stays");
    }
}

static void test_numbers_are_used_up(void **state)
{
    struct promotion_entry entries[2];
    struct promotion promotion;
    struct error err = {""};

    (void)state;
    fill(&entries[1], FLUSHED("12.0.1.5", "n1"));
    for (int i = 0; i < 2; i++) {
        fill(&entries[0], i == 0 ? "99999999999999999" : "99999999999999999999999");
        assert_int_equal(promotion_decide(JOB, NO_LATEST, entries, 2, &promotion, &err), -1);
        assert_one_line(err.text);
        assert_null(promotion.chosen);
        assert_false(entries[1].remove);
    }
    fill(&entries[0], "99999999999999998");
    assert_int_equal(promotion_decide(JOB, NO_LATEST, entries, 2, &promotion, &err), 0);
    assert_int_equal(promotion.number, 99999999999999999);
}

/* Whatever there is, and in whatever order it is listed: the result is the newest there is,
 * nothing of the job is left beside it, and a second look finds nothing to do. */
static void test_random(void **state)
{
    uint64_t seed = 29;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct promotion_entry entries[ENTRIES];
        struct promotion promotion;
        int count = (int)random_below(&seed, ENTRIES + 1);
        const struct promotion_entry *best = NULL;

        for (int k = 0; k < count; k++) {
            struct snapshot_key *key = &entries[k].key;

            *key = (struct snapshot_key){.job = JOB + random_below(&seed, 2),
                                         .restarts = random_below(&seed, 2),
                                         .generation = (int)random_below(&seed, 3),
                                         .step = random_below(&seed, 4)};
            entries[k].complete = random_below(&seed, 5) > 0;
            if (random_below(&seed, 2) > 0)
                snprintf(entries[k].name, sizeof(entries[k].name), "%08d", k + 1);
            else
                snapshot_flushed_name(entries[k].name, key, "n1");
            if (entries[k].complete && key->job == JOB &&
                (best == NULL || snapshot_key_compare(key, &best->key) > 0))
                best = &entries[k];
        }
        assert_int_equal(promotion_decide(JOB, NO_LATEST, entries, count, &promotion, NULL), 0);
        if (promotion.chosen != NULL) {
            assert_int_equal(snapshot_key_compare(&promotion.chosen->key, &best->key), 0);
            snprintf(entries[promotion.chosen - entries].name, SNAPSHOT_NAME_SIZE, "%08d",
                     (int)promotion.number);
        } else if (best != NULL && snapshot_checkpoint_number(best->name) < 0) {
            bool other = false; /* a checkpoint of the same state */

            for (int k = 0; k < count; k++)
                other = other || (snapshot_checkpoint_number(entries[k].name) >= 0 &&
                                  entries[k].complete && entries[k].key.job == JOB &&
                                  snapshot_key_compare(&entries[k].key, &best->key) == 0);
            assert_true(other);
        }
        for (int k = 0; k < count; k++)
            assert_int_equal(entries[k].remove, snapshot_is_flushed_name(entries[k].name, JOB));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_numbers_are_used_up),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
