/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/rollout: limits, one rollout step by step, and random histories against what must hold. */
#include "lib/rollout.h"
#include "tests/unit/support.h"

#include <stdbool.h>

#define REPLICAS 64

/* ---- limits ---------------------------------------------------------------------------------- */

static void test_amount(void **state)
{
    static const struct {
        const char *text;
        int value; /* -1: refused */
        bool percent;
    } cases[] = {
        {"0", 0, false},    {"2", 2, false},     {"10000", 10000, false}, {"10001", -1, false},
        {"0%", 0, true},    {"50%", 50, true},   {"100%", 100, true},     {"101%", -1, false},
        {"", -1, false},    {"%", -1, false},    {"-1", -1, false},       {"5 %", -1, false},
        {"1.5", -1, false}, {"50%%", -1, false}, {"x", -1, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rollout_amount amount = {-1, false};

        assert_int_equal(rollout_amount_parse(cases[i].text, strlen(cases[i].text), &amount),
                         cases[i].value < 0 ? -1 : 0);
        assert_int_equal(amount.value, cases[i].value);
        assert_int_equal(amount.percent, cases[i].percent);
    }
}

static void test_limits(void **state)
{
    static const struct {
        int replicas;
        struct rollout_amount surge, unavailable;
        int most, least; /* -1: refused */
    } cases[] = {
        {10, {50, true}, {50, true}, 15, 5}, {3, {50, true}, {50, true}, 5, 2},
        {1, {50, true}, {50, true}, 2, 1},   {1, {0, true}, {50, true}, -1, 0},
        {10, {0, false}, {0, false}, -1, 0}, {10, {0, true}, {9, true}, -1, 0},
        {10, {1, true}, {0, true}, 11, 10},  {10, {0, false}, {1, false}, 10, 9},
        {4, {0, false}, {100, true}, 4, 1},  {4, {3, false}, {9, false}, 7, 1},
        {0, {0, false}, {0, false}, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rollout_limits limits = {-1, -1};
        struct error err = {""};
        int status = rollout_limits(cases[i].replicas, &cases[i].surge, &cases[i].unavailable,
                                    &limits, &err);

        assert_int_equal(status, cases[i].most < 0 ? -1 : 0);
        if (status != 0) {
            assert_one_line(err.text);
            continue;
        }
        assert_int_equal(cases[i].replicas + limits.surge, cases[i].most);
        assert_int_equal(cases[i].replicas - limits.unavailable, cases[i].least);
    }
}

/* ---- what there is --------------------------------------------------------------------------- */

struct world {
    struct rollout rollout;
    struct rollout_replica list[REPLICAS];
    int count, last, room; /* slots in all */
    int done, failed, waits;
    int lacks, least, most;
    char text[160];
};

static void begin(struct world *w, int replicas, int surge, int unavailable, int room)
{
    *w = (struct world){.room = room};
    w->rollout.replicas = replicas;
    w->rollout.limits = (struct rollout_limits){surge, unavailable};
    w->rollout.fail_fast = 2;
}

static int ready_of(const struct world *w, int64_t version)
{
    int count = 0;

    for (int i = 0; i < w->count; i++)
        count += w->list[i].ready && !w->list[i].leaves &&
                 (version == 0 || w->list[i].version == version);
    return count;
}

static struct rollout_replica *find(struct world *w, int id)
{
    for (int i = 0; i < w->count; i++)
        if (w->list[i].id == id)
            return &w->list[i];
    fail_msg("there is no replica %d", id);
    return NULL;
}

static void carry_out(struct world *w, const struct rollout_action *action)
{
    const struct rollout *r = &w->rollout;
    int want = r->back && r->before == 0 ? 0 : r->replicas;
    struct rollout_replica *replica;

    switch (action->kind) {
    case ROLLOUT_START:
        assert_true(w->count < REPLICAS && w->count < w->room);
        assert_true(w->count < want + r->limits.surge);
        assert_int_equal(action->version, r->back ? r->before : r->version);
        w->list[w->count++] = (struct rollout_replica){.id = ++w->last, .version = action->version};
        break;
    case ROLLOUT_DRAIN:
        replica = find(w, action->id);
        assert_false(replica->leaves);
        if (replica->ready && want > 0) {
            assert_true(ready_of(w, 0) > want - r->limits.unavailable);
            assert_true(ready_of(w, 0) > 1);
        }
        replica->leaves = true;
        break;
    case ROLLOUT_WAIT:
        w->waits++;
        strcpy(w->text, action->text);
        assert_one_line(action->text);
        break;
    case ROLLOUT_FAILED:
        w->failed++;
        strcpy(w->text, action->text);
        break;
    case ROLLOUT_DONE:
        w->done++;
        break;
    }
}

static void run(struct world *w)
{
    struct rollout_actions out = {0}, again = {0};

    w->waits = 0;
    assert_int_equal(rollout_run(&w->rollout, w->list, w->count, w->room - w->count, &out), 0);
    for (int i = 0; i < out.count; i++)
        carry_out(w, &out.list[i]);
    w->lacks = out.lacks;
    if (w->count > w->most)
        w->most = w->count;
    if (ready_of(w, 0) < w->least)
        w->least = ready_of(w, 0);
    assert_int_equal(rollout_run(&w->rollout, w->list, w->count, w->room - w->count, &again), 0);
    for (int i = 0; i < again.count; i++)
        assert_int_equal(again.list[i].kind, ROLLOUT_WAIT);
    free(out.list);
    free(again.list);
}

static void leave(struct world *w, int i)
{
    w->list[i] = w->list[--w->count];
}

/* Whatever leaves is gone, whatever has been started is ready. */
static void pass(struct world *w)
{
    for (int i = w->count - 1; i >= 0; i--) {
        if (w->list[i].leaves) {
            leave(w, i);
        } else if (!w->list[i].ready) {
            w->list[i].ready = true;
            rollout_ready(&w->rollout, w->list[i].version);
        }
    }
}

/* Those of that version that have been started fail. */
static void fail_starting(struct world *w, int64_t version)
{
    for (int i = w->count - 1; i >= 0; i--)
        if (w->list[i].version == version && !w->list[i].ready && !w->list[i].leaves) {
            rollout_failed(&w->rollout, version);
            leave(w, i);
        }
}

static void settle(struct world *w)
{
    int done = w->done;

    for (int i = 0; i < 100 && w->done == done; i++) {
        run(w);
        pass(w);
    }
    assert_int_equal(w->done, done + 1);
}

static void to_version(struct world *w, int64_t version)
{
    rollout_begin(&w->rollout, version);
    w->least = ready_of(w, 0);
    w->most = w->count;
}

/* ---- one rollout ----------------------------------------------------------------------------- */

static void test_ten(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 10, 5, 5, 40);
    to_version(&w, 1);
    settle(&w);
    assert_int_equal(ready_of(&w, 1), 10);
    to_version(&w, 2);
    settle(&w);
    assert_int_equal(ready_of(&w, 2), 10);
    assert_int_equal(w.count, 10);
    assert_int_equal(w.most, 15);
    assert_int_equal(w.least, 5);
    run(&w); /* and then nothing */
    assert_int_equal(w.done, 2);
    to_version(&w, 2); /* the same once more */
    run(&w);
    assert_int_equal(w.done, 2);
}

static void test_one(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 1, 1, 0, 2);
    to_version(&w, 1);
    settle(&w);
    to_version(&w, 2);
    run(&w); /* one more is started, and the old one stays */
    assert_int_equal(w.count, 2);
    assert_int_equal(ready_of(&w, 1), 1);
    pass(&w);
    run(&w);
    assert_int_equal(ready_of(&w, 2), 1);
    assert_int_equal(ready_of(&w, 1), 0);
    settle(&w);
    assert_int_equal(w.least, 1);
}

/* The old ones stay until one new one is ready. Then that one has all requests. */
static void test_one_first(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 4, 1, 3, 5);
    w.rollout.one_first = true;
    to_version(&w, 1);
    run(&w); /* nothing is ready that could answer: all start */
    assert_int_equal(w.count, 4);
    settle(&w);
    to_version(&w, 2);
    run(&w);
    assert_int_equal(w.count, 5);
    assert_int_equal(ready_of(&w, 1), 4);
    fail_starting(&w, 2);
    run(&w); /* another one in its place */
    assert_int_equal(ready_of(&w, 1), 4);
    pass(&w);
    run(&w);
    assert_int_equal(ready_of(&w, 1), 0);
    assert_int_equal(ready_of(&w, 2), 1);
    settle(&w);
    assert_int_equal(ready_of(&w, 2), 4);
    assert_int_equal(w.least, 1);
    to_version(&w, 3); /* the first one never gets ready: nobody has lost a replica */
    for (int i = 0; i < 2; i++) {
        run(&w);
        fail_starting(&w, 3);
    }
    settle(&w);
    assert_int_equal(w.failed, 1);
    assert_int_equal(ready_of(&w, 2), 4);
    assert_int_equal(w.least, 4);
    w.room = 4;
    to_version(&w, 4);
    run(&w);
    assert_int_equal(w.lacks, 1);
    assert_int_equal(ready_of(&w, 2), 4);
    assert_string_equal(w.text, "waits for room for 1 more of its replicas: 4 are ready, and 4 "
                                "have to be (max-unavailable)");
}

static void test_no_room(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 4, 2, 2, 4); /* within max-unavailable without free slots */
    to_version(&w, 1);
    settle(&w);
    to_version(&w, 2);
    run(&w);
    assert_int_equal(w.lacks, 2);
    assert_int_equal(ready_of(&w, 1), 2);
    settle(&w);
    assert_int_equal(w.most, 4);
    begin(&w, 4, 1, 0, 4); /* max-unavailable 0: it waits, and says so */
    to_version(&w, 1);
    settle(&w);
    to_version(&w, 2);
    run(&w);
    assert_int_equal(w.waits, 1);
    assert_int_equal(w.lacks, 1);
    assert_int_equal(ready_of(&w, 1), 4);
    assert_string_equal(w.text, "waits for room for 1 more of its replicas: 4 are ready, and 4 "
                                "have to be (max-unavailable)");
    w.room = 5;
    settle(&w);
    assert_int_equal(ready_of(&w, 2), 4);
    assert_int_equal(w.least, 4);
}

static void test_fail_fast(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 4, 2, 1, 40);
    to_version(&w, 1);
    settle(&w);
    to_version(&w, 2);
    run(&w);
    rollout_failed(&w.rollout, 2); /* one, and then one that is ready: not in a row */
    rollout_ready(&w.rollout, 2);
    rollout_failed(&w.rollout, 1); /* of the old version */
    rollout_failed(&w.rollout, 2);
    run(&w);
    assert_int_equal(w.failed, 0);
    fail_starting(&w, 2);
    run(&w);
    assert_int_equal(w.failed, 1);
    assert_string_equal(w.text, "2 new replicas in a row did not get ready");
    settle(&w);
    assert_int_equal(ready_of(&w, 1), 4);
    assert_int_equal(w.count, 4);
    assert_int_equal(w.failed, 1);
    to_version(&w, 1); /* it has that */
    run(&w);
    assert_int_equal(w.done, 2);
    to_version(&w, 2); /* once more, when asked */
    settle(&w);
    assert_int_equal(ready_of(&w, 2), 4);
    assert_int_equal(w.failed, 1);
}

/* Without a version before, going back is to have none. */
static void test_first_fails(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 3, 1, 1, 40);
    to_version(&w, 1);
    run(&w);
    fail_starting(&w, 1);
    settle(&w);
    assert_int_equal(w.failed, 1);
    assert_int_equal(w.count, 0);
}

static void test_fewer(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5, 1, 0, 40);
    to_version(&w, 1);
    settle(&w);
    w.rollout.replicas = 2;
    to_version(&w, 2);
    settle(&w);
    assert_int_equal(w.count, 2);
    w.rollout.replicas = 0;
    to_version(&w, 3);
    settle(&w);
    assert_int_equal(w.count, 0);
}

/* ---- random ---------------------------------------------------------------------------------- */

/* Replicas that come to another version as they are: none is replaced, and none is started but for
 * one that is missing. */
static void test_in_place(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 2, 1, 0, 40);
    w.rollout.in_place = true;
    to_version(&w, 1);
    settle(&w);
    assert_int_equal(w.done, 1);
    to_version(&w, 2);
    run(&w);
    w.list[0].version = 2;
    run(&w);
    assert_int_equal(w.last, 2);
    assert_int_equal(w.done, 1);
    leave(&w, 1); /* a new one has version 2 from its start */
    settle(&w);
    assert_int_equal(w.last, 3);
    assert_int_equal(w.done, 2);
    to_version(&w, 3);
    w.list[0].version = 3;
    rollout_failed(&w.rollout, 3);
    rollout_failed(&w.rollout, 3);
    run(&w);
    assert_string_equal(w.text, "2 times in a row a replica did not get its models");
    run(&w);
    assert_int_equal(w.done, 2);
    w.list[0].version = 2; /* it is back */
    run(&w);
    assert_int_equal(w.done, 3);
    assert_int_equal(w.last, 3);
    w.rollout.replicas = 1;
    w.rollout.done = false;
    settle(&w);
    assert_int_equal(w.count, 1);
}

/* … but for those that were started in another way. They are replaced, as others are. */
static void test_in_place_others(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 2, 1, 0, 40);
    w.rollout.in_place = true;
    to_version(&w, 1);
    settle(&w);
    to_version(&w, 2);
    for (int i = 0; i < w.count; i++) {
        w.list[i].other = true;
        w.list[i].version = 2; /* they have loaded its list */
    }
    settle(&w);
    assert_int_equal(w.last, 4);
    assert_int_equal(w.count, 2);
    assert_int_equal(w.most, 3);
    assert_int_equal(w.least, 2);
    to_version(&w, 3); /* new ones fail: those of before stay as they are */
    for (int i = 0; i < w.count; i++)
        w.list[i].other = true;
    run(&w);
    assert_int_equal(w.last, 5);
    rollout_failed(&w.rollout, 3);
    rollout_failed(&w.rollout, 3);
    run(&w);
    assert_int_equal(w.failed, 1);
    for (int i = 0; i < w.count; i++)
        w.list[i].other = w.list[i].version == 3;
    settle(&w);
    assert_int_equal(w.last, 5);
    assert_int_equal(w.count, 2);
    assert_int_equal(w.least, 2);
}

static void disturb(struct world *w, uint64_t *seed, int64_t *version)
{
    int i = w->count > 0 ? (int)random_below(seed, (uint32_t)w->count) : -1;

    switch (random_below(seed, 8)) {
    case 0:
        if (random_below(seed, 4) == 0)
            to_version(w, ++*version);
        break;
    case 1:
        w->room = (int)random_below(seed, 40);
        break;
    case 2:
        w->rollout.replicas = 1 + (int)random_below(seed, 10);
        if (w->rollout.limits.unavailable >= w->rollout.replicas)
            w->rollout.limits.unavailable = w->rollout.replicas - 1;
        if (w->rollout.limits.surge + w->rollout.limits.unavailable == 0)
            w->rollout.limits.surge = 1;
        break;
    case 3:
    case 4:
        if (i < 0)
            break;
        if (!w->list[i].ready && !w->list[i].leaves)
            rollout_failed(&w->rollout, w->list[i].version);
        leave(w, i);
        break;
    default:
        if (i < 0)
            break;
        if (w->list[i].leaves) {
            leave(w, i);
        } else {
            w->list[i].ready = true;
            rollout_ready(&w->rollout, w->list[i].version);
        }
    }
}

static void test_random(void **state)
{
    uint64_t seed = 99;

    (void)state;
    for (int i = 0; i < RANDOM_ROUNDS(5000); i++) {
        struct world w;
        int64_t version = 1, last;
        int replicas = 1 + (int)random_below(&seed, 10);

        begin(&w, replicas, 1 + (int)random_below(&seed, 5),
              (int)random_below(&seed, (uint32_t)replicas), 40);
        w.rollout.fail_fast = (int)random_below(&seed, 4);
        w.rollout.one_first = random_below(&seed, 2) == 1;
        to_version(&w, version);
        for (int event = 0; event < 100; event++) {
            disturb(&w, &seed, &version);
            run(&w);
        }
        w.room = 60;
        for (int calm = 0; calm < 100; calm++) {
            run(&w);
            pass(&w);
        }
        last = w.rollout.back ? w.rollout.before : w.rollout.version;
        assert_int_equal(w.count, last == 0 ? 0 : w.rollout.replicas);
        assert_int_equal(ready_of(&w, last), w.count);
        assert_true(w.rollout.done);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amount),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ten),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_one_first),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_fail_fast),
        cmocka_unit_test(test_first_fails),
        cmocka_unit_test(test_fewer),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_in_place_others),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
