/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may power nodes up, and how many nodes are left for those who may not. */
#include "tests/unit/support.h"

#include "lib/sleepers.h"
#include "lib/text.h"
#include "lib/wake.h"

static const char text[] = "[pool spot]\nwake = yes\n"
                           "[pool cheap]\npartition = spot\nqos = low\n"
                           "[pool both]\npartition = mixed\nwake = yes\n"
                           "[pool other]\npartition = mixed\n";

static void test_only_the_site_can_allow_it(void **state)
{
    const struct pool yes = {.wake = true}, no = {.wake = false};

    (void)state;
    assert_true(wake_allowed(&yes, POLICY_WAKE_YES));
    assert_true(wake_allowed(&yes, 1));
    assert_false(wake_allowed(&yes, POLICY_WAKE_NO));
    assert_false(wake_allowed(&no, POLICY_WAKE_YES));
    assert_false(wake_allowed(&no, 1));
    assert_false(wake_allowed(NULL, 1));
}

static void test_the_pool_as_slurmctld_knows_it(void **state)
{
    static const struct {
        const char *name, *partition, *qos, *pool;
    } table[] = {
        {"spot", "spot", NULL, "spot"},   {"cheap", "spot", "low", "cheap"},
        {NULL, "spot", NULL, "spot"},     {NULL, "spot", "high", "spot"},
        {NULL, "spot", "low", "cheap"}, /* both fit, and this one may not */
        {NULL, "mixed", NULL, "other"},   {"both", "mixed", NULL, "both"},
        {"gone", "mixed", NULL, "other"}, /* not a pool any more, or a list */
        {NULL, "batch", NULL, NULL},      {NULL, NULL, NULL, NULL},
    };
    struct conf *conf = conf_parse("elastic.conf", text, sizeof(text) - 1, NULL);

    (void)state;
    assert_non_null(conf);
    for (size_t i = 0; i < COUNT(table); i++) {
        const struct pool *pool = wake_pool(conf, table[i].name, table[i].partition, table[i].qos);

        if ((pool == NULL) != (table[i].pool == NULL) ||
            (pool != NULL && strcmp(pool->name, table[i].pool) != 0))
            fail_msg("row %zu: pool %s", i, pool != NULL ? pool->name : "none");
    }
    assert_null(wake_pool(NULL, "spot", "spot", NULL)); /* elastic.conf is wrong */
    conf_destroy(conf);
}

/* ---- nodes that are powered down ------------------------------------------------------------- */

static char n1[] = "n1", n2[] = "n2", n3[] = "n3", n4[] = "n4", n5[] = "n5", n6[] = "n6";

static struct sleepers_request request(int nodes, int have, const struct sizes *sizes,
                                       char *const *others)
{
    return (struct sleepers_request){
        .name = "spot", .nodes = nodes, .have = have, .sizes = sizes, .others = others};
}

static void answer(struct sleepers_pool *pool, char *const *up, char *const *asleep, double now)
{
    sleepers_take(pool, SLEEPERS_LISTED, 1, strings_copy(up), strings_copy(asleep), NULL, now);
}

static void test_as_many_as_are_up(void **state)
{
    static const struct {
        const char *sizes;
        int have, nodes, up, expected; /* up: beside n1, which the job has */
        const char *why;
    } table[] = {
        {"1:8", 1, 1, 1, 1, ""},
        {"1:8", 1, 4, 4, 4, ""},
        {"1:8", 1, 4, 3, 3, ""},
        {"1:8", 1, 4, 0, 0, "pool spot: all its other nodes are powered down and wake=no"},
        {"1,4,8", 1, 3, 3, 3, ""},
        {"1,4,8", 1, 3, 2, 0, "pool spot: only 2 of its other nodes are not powered down"},
        {"1,4,8", 1, 7, 5, 3, ""},
        {"1,4,8", 1, 3, 1, 0, "pool spot: only 1 of its other nodes is not powered down"},
        {"2:8", 1, 1, 1, 1, ""},
        {"4:8", 1, 3, 2, 0, "pool spot: only 2 of its other nodes are"}, /* MIN is not reached */
        {"2:8:2", 2, 6, 5, 4, ""},
    };
    char *const own[] = {n1, NULL}, *const all[] = {n1, n2, n3, n4, n5, n6, NULL};

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct sleepers *sleepers = sleepers_create(1);
        struct sleepers_pool *pool = sleepers_of(sleepers, 0);
        char *up[8] = {NULL};
        struct sizes sizes;
        struct sleepers_request asked;

        assert_int_equal(sizes_parse(table[i].sizes, &sizes, NULL), 0);
        memcpy(up, all, (size_t)(table[i].up + 1) * sizeof(*up));
        asked = request(table[i].nodes, table[i].have, &sizes, own);
        answer(pool, up, all + table[i].up + 1, 100);
        if (sleepers_limit(pool, &asked, 101) != table[i].expected ||
            strncmp(pool->why, table[i].why, strlen(table[i].why)) != 0 ||
            (table[i].why[0] == '\0') != (pool->why[0] == '\0'))
            fail_msg("row %zu: %d nodes; %s", i, sleepers_limit(pool, &asked, 101), pool->why);
        sleepers_destroy(sleepers);
    }
}

static void test_slurm_is_asked_before(void **state)
{
    struct sleepers *sleepers = sleepers_create(2);
    struct sleepers_pool *pool = sleepers_of(sleepers, 1);
    struct sizes sizes;
    struct sleepers_request asked = request(1, 1, &sizes, (char *[]){n1, NULL});

    (void)state;
    assert_int_equal(sizes_parse("1:8", &sizes, NULL), 0);
    assert_int_equal(sleepers_limit(pool, &asked, 10), 0);
    assert_near(pool->wanted, 10, 1e-9);
    assert_int_equal(sleepers_limit(pool, &asked, 11), 0);
    assert_near(pool->wanted, 10, 1e-9); /* since then */
    assert_string_equal(pool->why, "");
    answer(pool, (char *[]){n1, n2, NULL}, (char *[]){n3, NULL}, 12);
    assert_int_equal(sleepers_limit(pool, &asked, 12), 1);
    /* Another one waits for that node already. */
    asked.coming = 1;
    assert_int_equal(sleepers_limit(pool, &asked, 13), 0);
    assert_near(pool->again, 13 + SLEEPERS_AGAIN, 1e-9);
    asked.coming = 0;
    pool->again = 0;
    /* Old again. */
    assert_int_equal(sleepers_limit(pool, &asked, 30), 0);
    assert_near(pool->wanted, 30, 1e-9);
    /* Nothing has changed: the lists stay. */
    sleepers_take(pool, SLEEPERS_LISTED, 1, NULL, NULL, NULL, 31);
    assert_int_equal(sleepers_limit(pool, &asked, 31), 1);
    /* The last node is powered down: asked for again after a while, and not before. */
    answer(pool, (char *[]){n1, NULL}, (char *[]){n2, n3, NULL}, 32);
    assert_int_equal(sleepers_limit(pool, &asked, 32), 0);
    assert_string_equal(pool->why, "pool spot: all its other nodes are powered down and wake=no");
    assert_int_equal(sleepers_limit(pool, &asked, 31.9 + SLEEPERS_AGAIN), 0);
    assert_true(pool->wanted < 32);
    assert_int_equal(sleepers_limit(pool, &asked, 32 + SLEEPERS_AGAIN), 0);
    assert_near(pool->wanted, 32 + SLEEPERS_AGAIN, 1e-9);
    assert_string_not_equal(pool->why, ""); /* as far as is known */
    answer(pool, (char *[]){n1, n2, NULL}, (char *[]){n3, NULL}, 70);
    assert_int_equal(sleepers_limit(pool, &asked, 70), 1);
    assert_string_equal(pool->why, "");
    sleepers_destroy(sleepers);
}

static void test_no_power_saving_and_no_answer(void **state)
{
    struct sleepers *sleepers = sleepers_create(1);
    struct sleepers_pool *pool = sleepers_of(sleepers, 0);
    struct sizes sizes;
    struct sleepers_request asked = request(4, 1, &sizes, NULL);

    (void)state;
    assert_int_equal(sizes_parse("1:8", &sizes, NULL), 0);
    sleepers_take(pool, SLEEPERS_NONE, 0, NULL, NULL, NULL, 100);
    assert_int_equal(sleepers_limit(pool, &asked, 100), 4);
    assert_int_equal(sleepers_limit(pool, &asked, 600), 4); /* not asked for again so soon */
    assert_true(pool->wanted < 100);
    assert_int_equal(sleepers_limit(pool, &asked, 800), 4); /* asked for beside that */
    assert_near(pool->wanted, 800, 1e-9);
    sleepers_take(pool, SLEEPERS_UNKNOWN, 0, NULL, NULL, "Access denied", 801);
    assert_int_equal(sleepers_limit(pool, &asked, 801), 0);
    assert_one_line(pool->why);
    assert_non_null(strstr(pool->why, "Access denied"));
    sleepers_destroy(sleepers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_site_can_allow_it),
        cmocka_unit_test(test_the_pool_as_slurmctld_knows_it),
        cmocka_unit_test(test_as_many_as_are_up),
        cmocka_unit_test(test_slurm_is_asked_before),
        cmocka_unit_test(test_no_power_saving_and_no_answer),
    };

    return cmocka_run_group_tests_name("wake", tests, NULL, NULL);
}
