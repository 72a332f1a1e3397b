/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/shard_plan: a table of what goes where, and random cases against what must always hold. */
#include "lib/shard_plan.h"

#include <inttypes.h>

#include "tests/unit/support.h"

#define MODELS 8
#define MANY   40

/* ---- table ----------------------------------------------------------------------------------- */

struct plan_case {
    const char *what;
    struct shard_plan_options options;
    const char *shards; /* "1 2+8 3!": in the second leave 8, the third is closed */
    const char *models; /* "a4 b7@1:6": of size 4; of size 7, in shard 1 with 6 */
    const char *want;   /* "a1 b2", "a0!": refused */
    bool repack;
};

static const struct plan_case cases[] = {
    {"nothing", {10, 4}, "", "", "", false},
    {"the first model makes the first shard", {10, 4}, "", "a4", "a1", false},
    {"the largest first", {10, 4}, "", "a4 b7 c3 d6", "a2 b1 c1 d2", false},
    {"equal sizes by name", {10, 4}, "", "b6 a6", "b2 a1", false},
    {"the shard with the least room that is enough",
     {10, 4},
     "1 2 3",
     "a2@1:2 b6@2:6 c4@3:4 d3",
     "a1 b2 c3 d2",
     false},
    {"of two with equal room the smaller number",
     {10, 4},
     "2 1",
     "a4@2:4 b4@1:4 c3",
     "a2 b1 c1",
     false},
    {"a full shard is left full", {10, 1}, "1", "a10@1:10 b1", "a1 b0!", false},
    {"exactly full", {10, 1}, "", "a4 b6", "a1 b1", false},
    {"one that is too large disturbs nobody", {10, 2}, "", "a11 b6 c5", "a0! b1 c2", false},
    {"no room at the maximum: those that fit get it", {10, 1}, "", "a6 b5 c4", "a1 b0! c1", false},
    {"grown, and it fits", {10, 4}, "1", "a6@1:4 b4@1:4", "a1 b1", false},
    {"grown, and it does not: it moves", {10, 4}, "1", "a7@1:4 b4@1:4", "a2 b1", false},
    {"grown, and nowhere is room: it stays as it is",
     {10, 1},
     "1",
     "a7@1:4 b4@1:4",
     "a1! b1",
     false},
    {"two have grown, and one can stay: the one that grew less",
     {10, 4},
     "1",
     "a8@1:4 b6@1:4",
     "a2 b1",
     false},
    {"shrunk: its room is another's", {10, 1}, "1", "a3@1:8 b7", "a1 b1", false},
    {"what leaves takes room until it is gone",
     {10, 4},
     "1",
     "a9@1:5 b5@1:5 c5",
     "a2 b1 c3",
     false},
    {"what left before takes room, too", {10, 4}, "1+8", "a3", "a2", false},
    {"nobody comes to a closed shard", {10, 4}, "1!", "a3", "a2", false},
    {"a closed shard counts", {10, 1}, "1!", "a3", "a0!", false},
    {"a free number is taken again", {10, 4}, "1 3", "a9@1:9 b9@3:9 c9", "a1 b3 c2", false},
    {"nobody moves to make it nicer", {10, 4}, "1 2", "a1@1:1 b1@2:1", "a1 b2", false},
    {"but when asked", {10, 4}, "1 2", "a1@1:1 b2@2:2", "a2 b2", true},
    {"repacking: of equal ones the last is emptied",
     {10, 4},
     "1 2",
     "a1@1:1 b1@2:1",
     "a1 b1",
     true},
    {"repacking: all of a shard or none",
     {10, 4},
     "1 2 3",
     "a3@1:3 b2@1:2 c7@2:7 d9@3:9",
     "a1 b1 c2 d3",
     true},
    {"repacking: a shard that has got models stays",
     {10, 4},
     "1 2 3",
     "a2@1:2 b3@2:3 c9@3:9",
     "a2 b2 c3",
     true},
    {"repacking leaves alone what moves already",
     {10, 4},
     "1 2",
     "a9@1:3 b4@1:4 c2@2:2",
     "a3 b1 c1",
     true},
};

static int read_shards(const char *text, struct shard_plan_shard *shards)
{
    int count = 0, length;

    for (; *text != '\0'; text += length, count++) {
        struct shard_plan_shard *shard = &shards[count];

        assert_true(count < MODELS);
        *shard = (struct shard_plan_shard){0};
        assert_int_equal(sscanf(text, " %d%n", &shard->number, &length), 1);
        text += length;
        length = 0;
        sscanf(text, "+%" SCNd64 "%n", &shard->leaves, &length);
        shard->closed = text[length] == '!';
        length += shard->closed;
    }
    return count;
}

static int read_models(const char *text, struct shard_plan_model *models, char (*names)[2])
{
    int count = 0, length;

    for (; *text != '\0'; text += length, count++) {
        struct shard_plan_model *model = &models[count];

        assert_true(count < MODELS);
        *model = (struct shard_plan_model){.name = names[count]};
        assert_int_equal(sscanf(text, " %1[a-z]%" SCNd64 "%n", names[count], &model->size, &length),
                         2);
        text += length;
        length = 0;
        sscanf(text, "@%d:%" SCNd64 "%n", &model->shard, &model->present, &length);
    }
    return count;
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct plan_case *c = &cases[i];
        struct shard_plan_shard shards[MODELS];
        struct shard_plan_model models[MODELS];
        char names[MODELS][2], got[256] = "";
        int shard_count = read_shards(c->shards, shards);
        int count = read_models(c->models, models, names);

        assert_int_equal((c->repack ? shard_plan_repack : shard_plan)(&c->options, shards,
                                                                      shard_count, models, count),
                         0);
        for (int m = 0; m < count; m++)
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s%d%s", m > 0 ? " " : "",
                     models[m].name, models[m].to, models[m].refused ? "!" : "");
        if (strcmp(got, c->want) != 0)
            fail_msg("%s: '%s', expected '%s'", c->what, got, c->want);
    }
}

static void test_size(void **state)
{
    (void)state;
    assert_int_equal(shard_plan_size(7, 5, 3, 1), 7);
    assert_int_equal(shard_plan_size(0, 5, 3, 1), 5);
    assert_int_equal(shard_plan_size(0, 0, 100, 1), 120);
    assert_int_equal(shard_plan_size(0, 0, 1, 9), 2); /* up */
    assert_int_equal(shard_plan_size(0, 0, 0, 9), 9);
    assert_int_equal(shard_plan_size(0, 0, INT64_MAX, 9), SHARD_PLAN_SIZE_MAX);
    assert_int_equal(shard_plan_size(INT64_MAX, 0, 0, 9), SHARD_PLAN_SIZE_MAX);
}

/* ---- random ---------------------------------------------------------------------------------- */

struct random_case {
    struct shard_plan_options options;
    struct shard_plan_shard shards[MANY];
    struct shard_plan_model models[MANY];
    char names[MANY][8];
    int shard_count, count;
};

/* What was in its shards before fitted. */
static void make_case(struct random_case *c, uint64_t *seed)
{
    int64_t used[MANY + 1] = {0};

    memset(c, 0, sizeof(*c));
    c->options = (struct shard_plan_options){20, 1 + (int)random_below(seed, 12)};
    c->count = (int)random_below(seed, MANY);
    for (int i = 0; i < c->options.max; i++)
        if (random_below(seed, 2) == 0) {
            struct shard_plan_shard *shard = &c->shards[c->shard_count++];

            *shard = (struct shard_plan_shard){i + 1, random_below(seed, 6), false};
            shard->closed = random_below(seed, 6) == 0;
            used[i + 1] = shard->leaves;
        }
    for (int i = 0; i < c->count; i++) {
        struct shard_plan_model *model = &c->models[i];

        snprintf(c->names[i], sizeof(c->names[i]), "m%d", (i * 7) % MANY);
        model->name = c->names[i];
        model->size = 1 + random_below(seed, random_below(seed, 10) == 0 ? 25 : 8);
        if (c->shard_count == 0 || random_below(seed, 3) == 0)
            continue;
        model->shard = c->shards[random_below(seed, (uint32_t)c->shard_count)].number;
        model->present = random_below(seed, 3) > 0 ? model->size : 1 + random_below(seed, 8);
        if (used[model->shard] + model->present > 20)
            model->shard = model->present = 0;
        else
            used[model->shard] += model->present;
    }
}

static void sum(const struct random_case *c, int64_t *used, int64_t *load, int *inside)
{
    for (int i = 0; i < c->shard_count; i++)
        used[c->shards[i].number] += c->shards[i].leaves;
    for (int i = 0; i < c->count; i++) {
        const struct shard_plan_model *m = &c->models[i];
        int64_t takes = m->refused ? m->present : m->size;

        if (m->to > 0) {
            used[m->to] += takes;
            load[m->to] += takes;
            inside[m->to]++;
        }
        if (m->shard > 0 && m->shard != m->to)
            used[m->shard] += m->present;
    }
}

static bool is_known(const struct random_case *c, int number, bool *closed)
{
    for (int i = 0; i < c->shard_count; i++)
        if (c->shards[i].number == number) {
            *closed = c->shards[i].closed;
            return true;
        }
    *closed = false;
    return false;
}

static void check_case(const struct random_case *c, bool repacked)
{
    int64_t used[MANY + 1] = {0}, load[MANY + 1] = {0};
    int inside[MANY + 1] = {0}, made = c->shard_count;
    bool closed;

    sum(c, used, load, inside);
    for (int i = 1; i <= MANY; i++) {
        bool known = is_known(c, i, &closed);

        assert_true(used[i] <= 20); /* also while models move */
        if (!known && inside[i] > 0)
            made++;
    }
    assert_true(made <= c->options.max || made == c->shard_count);
    for (int i = 0; i < c->count; i++) {
        const struct shard_plan_model *m = &c->models[i];

        is_known(c, m->to, &closed);
        assert_true(m->to <= c->options.max && m->to >= 0);
        assert_false(closed && m->to != m->shard);
        if (m->refused) {
            assert_int_equal(m->to, m->shard);
            for (int s = 1; s <= MANY && !repacked; s++)
                assert_false(is_known(c, s, &closed) && !closed && used[s] + m->size <= 20);
            assert_true(repacked || made == c->options.max || m->size > 20);
        } else {
            assert_true(m->to > 0);
        }
        if (m->shard > 0 && m->size <= m->present && !repacked)
            assert_int_equal(m->to, m->shard); /* sticky */
    }
}

static void test_random(void **state)
{
    uint64_t seed = 42;

    (void)state;
    for (int i = 0; i < RANDOM_ROUNDS(20000); i++) {
        struct random_case c, again;
        bool repack = i % 4 == 0;

        make_case(&c, &seed);
        again = c;
        for (int m = 0; m < c.count; m++) /* the order of what is asked does not matter */
            again.models[m] = c.models[c.count - 1 - m];
        assert_int_equal((repack ? shard_plan_repack : shard_plan)(
                             &c.options, c.shards, c.shard_count, c.models, c.count),
                         0);
        check_case(&c, repack);
        assert_int_equal((repack ? shard_plan_repack : shard_plan)(&again.options, again.shards,
                                                                   again.shard_count, again.models,
                                                                   c.count),
                         0);
        for (int m = 0; m < c.count; m++)
            assert_int_equal(again.models[m].to, c.models[c.count - 1 - m].to);
    }
}

/* A plan that has been carried out and is asked for once more moves nothing. */
static void test_again(void **state)
{
    uint64_t seed = 7;

    (void)state;
    for (int i = 0; i < RANDOM_ROUNDS(5000); i++) {
        struct random_case c;

        make_case(&c, &seed);
        assert_int_equal(shard_plan(&c.options, c.shards, c.shard_count, c.models, c.count), 0);
        c.shard_count = 0;
        for (int s = 1; s <= c.options.max; s++)
            c.shards[c.shard_count++] = (struct shard_plan_shard){s, 0, true};
        for (int m = 0; m < c.count; m++) {
            if (!c.models[m].refused)
                c.models[m].present = c.models[m].size;
            c.models[m].shard = c.models[m].to;
        }
        assert_int_equal(shard_plan(&c.options, c.shards, c.shard_count, c.models, c.count), 0);
        for (int m = 0; m < c.count; m++)
            assert_int_equal(c.models[m].to, c.models[m].shard);
    }
}

/* ---- many models that are updated again and again -------------------------------------------- */

#define CROWD    2000
#define CAPACITY 1000
#define UPDATES  20 /* rounds, of one model in 20 each */

/* The crowd is where it was planned. Returns how many shards have models. */
static int settle(struct shard_plan_model *crowd, struct shard_plan_shard *shards)
{
    static int64_t used[CROWD + 1];
    int count = 0;

    memset(used, 0, sizeof(used));
    for (int i = 0; i < CROWD; i++) {
        assert_false(crowd[i].refused);
        crowd[i].shard = crowd[i].to;
        crowd[i].present = crowd[i].size;
        used[crowd[i].to] += crowd[i].size;
    }
    for (int i = 1; i <= CROWD; i++) {
        assert_true(used[i] <= CAPACITY);
        if (used[i] > 0)
            shards[count++] = (struct shard_plan_shard){i, 0, false};
    }
    return count;
}

/* One model in 20, by up to a half more or less. Returns how many; grown says which need more. */
static int update_some(struct shard_plan_model *crowd, bool *grown, uint64_t *seed)
{
    int count = 0;

    for (int i = 0; i < CROWD; i++) {
        grown[i] = false;
        if (random_below(seed, 20) > 0)
            continue;
        crowd[i].size = 1 + crowd[i].size * (50 + random_below(seed, 101)) / 100;
        grown[i] = crowd[i].size > crowd[i].present;
        count++;
    }
    return count;
}

static int64_t bound_of(const struct shard_plan_model *crowd)
{
    int64_t size = 0;

    for (int i = 0; i < CROWD; i++)
        size += crowd[i].size;
    return (size + CAPACITY - 1) / CAPACITY;
}

/* A strategy that does not disturb: only models that have grown move, few of them, and hardly more
 * shards are needed than there must be. */
static void test_stable(void **state)
{
    static struct shard_plan_model crowd[CROWD];
    static struct shard_plan_shard shards[CROWD];
    static char names[CROWD][8];
    static bool grown[CROWD];
    const struct shard_plan_options options = {CAPACITY, CROWD};
    int count, updated = 0, moved = 0;
    uint64_t seed = 11;

    (void)state;
    for (int i = 0; i < CROWD; i++) {
        snprintf(names[i], sizeof(names[i]), "m%d", i);
        crowd[i] = (struct shard_plan_model){.name = names[i], .size = 2 + random_below(&seed, 40)};
    }
    assert_int_equal(shard_plan(&options, shards, 0, crowd, CROWD), 0);
    count = settle(crowd, shards);
    assert_int_equal(count, bound_of(crowd));
    for (int round = 0; round < UPDATES; round++) {
        updated += update_some(crowd, grown, &seed);
        assert_int_equal(shard_plan(&options, shards, count, crowd, CROWD), 0);
        for (int i = 0; i < CROWD; i++) {
            assert_true(crowd[i].to == crowd[i].shard || grown[i]);
            moved += crowd[i].to != crowd[i].shard;
        }
        count = settle(crowd, shards);
    }
    print_message("# %d models were updated, %d of them moved; %d shards, bound %d\n", updated,
                  moved, count, (int)bound_of(crowd));
    assert_true(moved * 100 <= updated * 15);
    assert_true(count * 100 <= bound_of(crowd) * 105);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table), cmocka_unit_test(test_size),   cmocka_unit_test(test_random),
        cmocka_unit_test(test_again), cmocka_unit_test(test_stable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
