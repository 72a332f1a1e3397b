/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/publish: who sees what and for how long, lookups that wait, what is refused, and random
 * use against a plain model. */
#include "lib/publish.h"

#include "tests/unit/support.h"

#define TEXT 256

static const struct publish_process a0 = {"a", 0, 1}, a1 = {"a", 1, 1}, a2 = {"a", 2, 2},
                                    b0 = {"b", 0, 2}, tool = {"a", PUBLISH_TOOL, 1},
                                    far_tool = {"a", PUBLISH_TOOL, 2};

static enum publish_result put(struct publish *p, struct publish_process owner,
                               enum publish_range range, enum publish_until until, const char *key,
                               const char *text)
{
    struct publish_datum datum = {key, text, strlen(text)};

    return publish_put(p, &owner, range, until, &datum, 1, NULL);
}

static void concatenate(const struct publish_process *owner, const struct publish_datum *datum,
                        void *arg)
{
    char *text = arg;
    size_t used = strlen(text);

    snprintf(text + used, TEXT - used, "%s%d:%s=%.*s ", owner->world, owner->rank, datum->key,
             (int)datum->len, (const char *)datum->data);
}

/* The value, as "world rank:key=value ", "" if there is none. Not for two at once. */
static const char *look(struct publish *p, struct publish_process asker, enum publish_range range,
                        const char *key)
{
    static char text[TEXT];
    struct publish_question question = {asker, range, &key, 1};
    int count = publish_count(p, &question);

    text[0] = '\0';
    assert_int_equal(publish_read(p, &question, concatenate, text), count);
    return text;
}

static int remove_key(struct publish *p, struct publish_process asker, const char *key)
{
    struct publish_question question = {asker, PUBLISH_JOB, &key, key != NULL};

    return publish_remove(p, &question);
}

static int dropped_count;
static void *last_dropped;

static void dropped(void *cookie)
{
    dropped_count++;
    last_dropped = cookie;
}

static void test_ranges(void **state)
{
    struct publish *p = publish_create();

    (void)state;
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_WORLD, "job", "1");
    put(p, a0, PUBLISH_WORLD, PUBLISH_UNTIL_WORLD, "world", "2");
    put(p, a0, PUBLISH_NODE, PUBLISH_UNTIL_WORLD, "node", "3");
    put(p, a0, PUBLISH_PROCESS, PUBLISH_UNTIL_WORLD, "own", "4");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "job"), "a0:job=1 ");
    assert_string_equal(look(p, b0, PUBLISH_WORLD, "job"), "");
    assert_string_equal(look(p, a2, PUBLISH_WORLD, "job"), "a0:job=1 ");
    assert_string_equal(look(p, a2, PUBLISH_NODE, "job"), "");
    assert_string_equal(look(p, a2, PUBLISH_JOB, "world"), "a0:world=2 ");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "world"), "");
    assert_string_equal(look(p, a1, PUBLISH_JOB, "node"), "a0:node=3 ");
    assert_string_equal(look(p, a2, PUBLISH_JOB, "node"), "");
    assert_string_equal(look(p, a0, PUBLISH_JOB, "own"), "a0:own=4 ");
    assert_string_equal(look(p, a1, PUBLISH_JOB, "own"), "");
    assert_string_equal(look(p, far_tool, PUBLISH_JOB, "job"), "a0:job=1 ");
    assert_string_equal(look(p, tool, PUBLISH_NODE, "job"), "a0:job=1 ");
    assert_string_equal(look(p, tool, PUBLISH_WORLD, "job"), "");
    assert_string_equal(look(p, tool, PUBLISH_JOB, "world"), "");
    assert_string_equal(look(p, tool, PUBLISH_JOB, "node"), "a0:node=3 ");
    assert_string_equal(look(p, far_tool, PUBLISH_JOB, "node"), "");
    assert_string_equal(look(p, tool, PUBLISH_JOB, "own"), "");
    publish_destroy(p);
}

static void test_duplicates(void **state)
{
    struct publish *p = publish_create();
    struct publish_datum two[] = {{"new", "1", 1}, {"k", "2", 1}},
                         twice[] = {{"x", "", 0}, {"x", "", 0}};
    struct error err = {""};

    (void)state;
    assert_int_equal(put(p, a0, PUBLISH_WORLD, PUBLISH_UNTIL_WORLD, "k", "a"), PUBLISH_DONE);
    assert_int_equal(put(p, a1, PUBLISH_WORLD, PUBLISH_UNTIL_WORLD, "k", "a"), PUBLISH_DUPLICATE);
    /* Nobody sees both of these. */
    assert_int_equal(put(p, b0, PUBLISH_WORLD, PUBLISH_UNTIL_WORLD, "k", "b"), PUBLISH_DONE);
    assert_string_equal(look(p, a2, PUBLISH_JOB, "k"), "a0:k=a ");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "k"), "b0:k=b ");
    assert_int_equal(put(p, b0, PUBLISH_JOB, PUBLISH_UNTIL_WORLD, "k", "b"), PUBLISH_DUPLICATE);
    /* All or nothing. */
    assert_int_equal(publish_put(p, &a2, PUBLISH_JOB, PUBLISH_UNTIL_JOB, two, 2, &err),
                     PUBLISH_DUPLICATE);
    assert_one_line(err.text);
    assert_string_equal(look(p, a2, PUBLISH_JOB, "new"), "");
    assert_int_equal(publish_put(p, &a2, PUBLISH_JOB, PUBLISH_UNTIL_JOB, twice, 2, &err),
                     PUBLISH_DUPLICATE);
    publish_destroy(p);
}

static void test_ends(void **state)
{
    struct publish *p = publish_create();

    (void)state;
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_READ, "read", "1");
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_READ, "unread", "1");
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_PROCESS, "process", "2");
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_WORLD, "world", "3");
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, "job", "4");
    put(p, a0, PUBLISH_WORLD, PUBLISH_UNTIL_JOB, "hidden", "5");
    put(p, a0, PUBLISH_NODE, PUBLISH_UNTIL_JOB, "node", "6");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "read"), "a0:read=1 ");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "read"), "");
    publish_process_gone(p, &a0, dropped);
    assert_string_equal(look(p, b0, PUBLISH_JOB, "process"), "");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "world"), "a0:world=3 ");
    publish_world_gone(p, "a", dropped);
    assert_string_equal(look(p, b0, PUBLISH_JOB, "world"), "");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "unread"), "");
    assert_string_equal(look(p, a0, PUBLISH_JOB, "hidden"), "");
    assert_string_equal(look(p, a1, PUBLISH_JOB, "node"), "a0:node=6 ");
    publish_node_gone(p, 1, dropped);
    assert_string_equal(look(p, a1, PUBLISH_JOB, "node"), "");
    assert_string_equal(look(p, b0, PUBLISH_JOB, "job"), "a0:job=4 ");
    /* Its owner cannot remove it any more. */
    assert_int_equal(remove_key(p, b0, NULL), 0);
    assert_int_equal(remove_key(p, b0, "job"), 1);
    publish_destroy(p);
}

static void test_remove(void **state)
{
    struct publish *p = publish_create();

    (void)state;
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, "x", "1");
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, "y", "1");
    put(p, a1, PUBLISH_JOB, PUBLISH_UNTIL_JOB, "z", "1");
    assert_int_equal(remove_key(p, a1, "x"), 0);
    assert_int_equal(remove_key(p, a0, "x"), 1);
    assert_int_equal(remove_key(p, a0, NULL), 1);
    assert_string_equal(look(p, a0, PUBLISH_JOB, "z"), "a1:z=1 ");
    publish_destroy(p);
}

static void test_waiting(void **state)
{
    struct publish *p = publish_create();
    const char *keys[] = {"x", "y", "z", "x"};
    struct publish_question two = {a1, PUBLISH_JOB, keys, 3}, all = {b0, PUBLISH_JOB, keys, 4},
                            of_tool = {tool, PUBLISH_JOB, keys, 1}, q;
    char text[TEXT] = "";
    int first, second, third;

    (void)state;
    assert_int_equal(publish_wait(p, &two, 2, &first, NULL), PUBLISH_DONE);
    assert_int_equal(publish_wait(p, &all, PUBLISH_ALL, &second, NULL), PUBLISH_DONE);
    assert_null(publish_ready(p, NULL, &q));
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_READ, "x", "1");
    assert_null(publish_ready(p, NULL, &q));
    put(p, a0, PUBLISH_WORLD, PUBLISH_UNTIL_WORLD, "z", "3");
    assert_ptr_equal(publish_ready(p, NULL, &q), &first);
    assert_int_equal(publish_read(p, &q, concatenate, text), 2);
    assert_string_equal(text, "a0:x=1 a0:z=3 ");
    publish_unwait(p, &first);
    assert_null(publish_ready(p, NULL, &q));
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_WORLD, "x", "1");
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_WORLD, "y", "2");
    assert_null(publish_ready(p, NULL, &q)); /* z is not for it */
    put(p, b0, PUBLISH_WORLD, PUBLISH_UNTIL_WORLD, "z", "4");
    assert_ptr_equal(publish_ready(p, NULL, &q), &second);
    dropped_count = 0;
    assert_int_equal(publish_wait(p, &two, 1, &third, NULL), PUBLISH_DONE);
    publish_process_gone(p, &a0, dropped);
    assert_int_equal(dropped_count, 0);
    publish_process_gone(p, &a1, dropped);
    assert_ptr_equal(last_dropped, &third);
    publish_node_gone(p, b0.node, dropped);
    assert_ptr_equal(last_dropped, &second);
    assert_int_equal(dropped_count, 2);
    assert_int_equal(publish_wait(p, &of_tool, 1, &first, NULL), PUBLISH_DONE);
    publish_world_gone(p, "b", dropped);
    publish_process_gone(p, &a0, dropped);
    assert_int_equal(dropped_count, 2);
    publish_world_gone(p, "a", dropped);
    assert_int_equal(dropped_count, 3);
    assert_ptr_equal(last_dropped, &first);
    publish_destroy(p);
}

static void *refused;

static bool can(void *cookie)
{
    return cookie != refused;
}

static void test_turns(void **state)
{
    struct publish *p = publish_create();
    const char *key = "x";
    struct publish_question question = {a1, PUBLISH_JOB, &key, 1}, q;
    int first, second, third;

    (void)state;
    publish_wait(p, &question, 1, &first, NULL);
    publish_wait(p, &question, 0, &second, NULL); /* whether it is there or not */
    publish_wait(p, &question, 1, &third, NULL);
    refused = NULL;
    assert_ptr_equal(publish_ready(p, can, &q), &second);
    refused = &second;
    assert_null(publish_ready(p, can, &q));
    put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_WORLD, "x", "1");
    refused = &first;
    assert_ptr_equal(publish_ready(p, can, &q), &second);
    publish_unwait(p, &second);
    assert_ptr_equal(publish_ready(p, can, &q), &third);
    /* It has not been forgotten. */
    refused = NULL;
    assert_ptr_equal(publish_ready(p, can, &q), &first);
    publish_destroy(p);
}

static void test_refusals(void **state)
{
    struct publish *p = publish_create();
    char key[PUBLISH_KEY_MAX + 2], *large = calloc(1, PUBLISH_CALL_BYTES_MAX + 1);
    const char *keys[PUBLISH_KEYS_MAX + 1], *long_key = key;
    struct publish_datum data[PUBLISH_KEYS_MAX + 1] = {{key, NULL, 0}};
    struct publish_question question = {a0, PUBLISH_JOB, keys, PUBLISH_KEYS_MAX + 1};
    struct error err;

    (void)state;
    memset(key, 'k', sizeof(key));
    key[PUBLISH_KEY_MAX + 1] = '\0';
    for (int i = 0; i <= PUBLISH_KEYS_MAX; i++)
        keys[i] = "k";
    assert_int_equal(put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, key, ""), PUBLISH_BAD);
    assert_int_equal(put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, "", ""), PUBLISH_BAD);
    assert_int_equal(publish_put(p, &a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, data, 0, &err),
                     PUBLISH_BAD);
    assert_int_equal(
        publish_put(p, &a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, data, PUBLISH_KEYS_MAX + 1, &err),
        PUBLISH_BAD);
    data[0] = (struct publish_datum){NULL, NULL, 0};
    assert_int_equal(publish_put(p, &a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, data, 1, &err),
                     PUBLISH_BAD);
    data[0] = (struct publish_datum){"k", large, PUBLISH_CALL_BYTES_MAX + 1};
    assert_int_equal(publish_put(p, &a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, data, 1, &err),
                     PUBLISH_LARGE);
    data[0].len = SIZE_MAX;
    assert_int_equal(publish_put(p, &a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, data, 1, &err),
                     PUBLISH_LARGE);
    assert_one_line(err.text);
    assert_int_equal(publish_wait(p, &question, 1, p, &err), PUBLISH_BAD);
    question.count = 2;
    assert_int_equal(publish_wait(p, &question, 2, p, &err), PUBLISH_BAD); /* twice the same */
    assert_int_equal(publish_wait(p, &question, -2, p, &err), PUBLISH_BAD);
    question.count = 0;
    assert_int_equal(publish_wait(p, &question, 0, p, &err), PUBLISH_BAD);
    question = (struct publish_question){a0, PUBLISH_JOB, &long_key, 1};
    assert_int_equal(publish_wait(p, &question, 1, p, &err), PUBLISH_BAD);
    free(large);
    publish_destroy(p);
}

static void test_floods_are_bounded(void **state)
{
    struct publish *p = publish_create();
    char *large = calloc(1, PUBLISH_CALL_BYTES_MAX), key[16], text[TEXT] = "";
    const char *keys[] = {"0", "1", "2"}, *k = "k";
    struct publish_question three = {b0, PUBLISH_JOB, keys, 3}, one = {a0, PUBLISH_JOB, &k, 1};
    struct publish_datum datum = {key, large, PUBLISH_CALL_BYTES_MAX};
    int count = 0;

    (void)state;
    do
        snprintf(key, sizeof(key), "%d", count);
    while (publish_put(p, &a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, &datum, 1, NULL) == PUBLISH_DONE &&
           ++count < 100);
    assert_int_equal(count, 15); /* with their keys no 16 */
    /* Another node has its own share. */
    assert_int_equal(put(p, b0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, "b", "x"), PUBLISH_DONE);
    assert_int_equal(publish_read(p, &three, concatenate, text), PUBLISH_LARGE);
    assert_string_equal(text, "");
    assert_int_equal(remove_key(p, a1, NULL), 0);
    assert_int_equal(remove_key(p, a0, NULL), 15);
    for (count = 0; count < PUBLISH_NODE_COUNT_MAX; count++) {
        snprintf(key, sizeof(key), "%d", count);
        assert_int_equal(put(p, a0, PUBLISH_JOB, PUBLISH_UNTIL_JOB, key, ""), PUBLISH_DONE);
    }
    assert_int_equal(put(p, a1, PUBLISH_JOB, PUBLISH_UNTIL_JOB, "more", ""), PUBLISH_LARGE);
    for (count = 0; count < PUBLISH_WAITERS_MAX; count++)
        assert_int_equal(publish_wait(p, &one, 1, p, NULL), PUBLISH_DONE);
    assert_int_equal(publish_wait(p, &one, 1, p, NULL), PUBLISH_LARGE);
    free(large);
    publish_destroy(p);
}

/* ---- random ---------------------------------------------------------------------------------- */

#define ENTRIES 64
#define KEYS    4

struct model {
    struct {
        bool there, srun_look;
        struct publish_process owner;
        enum publish_range range;
        enum publish_until until;
        int key, value;
    } entry[ENTRIES];
    int count;
};

static const char *const worlds[] = {"a", "b"}, *const key_names[KEYS] = {"k0", "k1", "k2", "k3"};

/* Ranks 0 to 3 of two worlds, two on each of two nodes. */
static struct publish_process random_process(uint64_t *seed)
{
    int rank = (int)random_below(seed, 4);

    return (struct publish_process){worlds[random_below(seed, 2)], rank, rank / 2};
}

static bool near(enum publish_range range, struct publish_process x, struct publish_process y)
{
    bool same_world = strcmp(x.world, y.world) == 0;

    return range == PUBLISH_JOB || (range == PUBLISH_WORLD && same_world) ||
           (range == PUBLISH_NODE && x.node == y.node) ||
           (range == PUBLISH_PROCESS && same_world && x.rank == y.rank);
}

static int model_find(const struct model *m, struct publish_process asker, enum publish_range range,
                      int key)
{
    for (int i = 0; i < m->count; i++)
        if (m->entry[i].there && m->entry[i].key == key &&
            near(m->entry[i].range, m->entry[i].owner, asker) &&
            near(range, m->entry[i].owner, asker))
            return i;
    return -1;
}

static void random_put(struct publish *p, struct model *m, uint64_t *seed)
{
    struct publish_process owner = random_process(seed);
    enum publish_range range = random_below(seed, 4);
    enum publish_until until = random_below(seed, 4);
    int key = (int)random_below(seed, KEYS), value = (int)random_below(seed, 1000);
    bool duplicate = false;
    char text[8];

    for (int i = 0; i < m->count; i++)
        duplicate = duplicate || (m->entry[i].there && m->entry[i].key == key &&
                                  (near(m->entry[i].range, m->entry[i].owner, owner) ||
                                   near(range, m->entry[i].owner, owner)));
    if (m->count == ENTRIES)
        return;
    snprintf(text, sizeof(text), "%d", value);
    assert_int_equal(put(p, owner, range, until, key_names[key], text),
                     duplicate ? PUBLISH_DUPLICATE : PUBLISH_DONE);
    if (duplicate)
        return;
    m->entry[m->count].there = true;
    m->entry[m->count].srun_look = false;
    m->entry[m->count].owner = owner;
    m->entry[m->count].range = range;
    m->entry[m->count].until = until;
    m->entry[m->count].key = key;
    m->entry[m->count++].value = value;
}

static void random_look(struct publish *p, struct model *m, uint64_t *seed)
{
    struct publish_process asker = random_process(seed);
    enum publish_range range = random_below(seed, 4);
    int key = (int)random_below(seed, KEYS), i = model_find(m, asker, range, key);
    char expected[64] = "";

    if (i >= 0) {
        snprintf(expected, sizeof(expected), "%s%d:%s=%d ", m->entry[i].owner.world,
                 m->entry[i].owner.rank, key_names[key], m->entry[i].value);
        m->entry[i].there = m->entry[i].until != PUBLISH_UNTIL_READ;
    }
    assert_string_equal(look(p, asker, range, key_names[key]), expected);
}

static void random_remove(struct publish *p, struct model *m, uint64_t *seed)
{
    struct publish_process asker = random_process(seed);
    int key = (int)random_below(seed, KEYS + 1), count = 0;

    for (int i = 0; i < m->count; i++) {
        bool own = near(PUBLISH_PROCESS, m->entry[i].owner, asker);
        bool named = key < KEYS && m->entry[i].key == key;

        if (!m->entry[i].there || !near(m->entry[i].range, m->entry[i].owner, asker) ||
            !(key == KEYS ? own : named && (own || m->entry[i].srun_look)))
            continue;
        m->entry[i].there = false;
        count++;
    }
    assert_int_equal(remove_key(p, asker, key < KEYS ? key_names[key] : NULL), count);
}

static void random_end(struct publish *p, struct model *m, uint64_t *seed)
{
    struct publish_process who = random_process(seed);
    enum publish_range what = random_below(seed, 3);

    if (what == PUBLISH_PROCESS)
        publish_process_gone(p, &who, dropped);
    else if (what == PUBLISH_NODE)
        publish_node_gone(p, who.node, dropped);
    else
        publish_world_gone(p, who.world, dropped);
    for (int i = 0; i < m->count; i++) {
        enum publish_range range = m->entry[i].range;
        enum publish_until until = m->entry[i].until;

        if (!near(what, m->entry[i].owner, who))
            continue;
        m->entry[i].srun_look = true;
        if (range == PUBLISH_PROCESS || range == what || until == PUBLISH_UNTIL_PROCESS ||
            (what == PUBLISH_WORLD && until != PUBLISH_UNTIL_JOB))
            m->entry[i].there = false;
    }
}

/* One that waits, in each round: ready when and only when the model has what it waits for. */
static void random_round(uint64_t *seed)
{
    struct publish *p = publish_create();
    struct model m = {.count = 0};
    struct publish_process asker = random_process(seed);
    struct publish_question question = {asker, PUBLISH_JOB, key_names, KEYS}, ready;
    int needed = 1 + (int)random_below(seed, KEYS);

    assert_int_equal(publish_wait(p, &question, needed, &m, NULL), PUBLISH_DONE);
    for (int step = 0; step < 60; step++) {
        uint32_t what = random_below(seed, 10);
        int there = 0, before = dropped_count;

        if (what < 5)
            random_put(p, &m, seed);
        else if (what < 8)
            random_look(p, &m, seed);
        else if (what < 9)
            random_remove(p, &m, seed);
        else
            random_end(p, &m, seed);
        if (dropped_count > before)
            assert_int_equal(publish_wait(p, &question, needed, &m, NULL), PUBLISH_DONE);
        for (int key = 0; key < KEYS; key++)
            there += model_find(&m, asker, PUBLISH_JOB, key) >= 0;
        assert_int_equal(publish_count(p, &question), there);
        assert_ptr_equal(publish_ready(p, NULL, &ready), there >= needed ? &m : NULL);
    }
    publish_destroy(p);
}

static void test_random(void **state)
{
    uint64_t seed = 7;

    (void)state;
    for (int i = 0; i < 2000; i++)
        random_round(&seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),   cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_ends),     cmocka_unit_test(test_remove),
        cmocka_unit_test(test_waiting),  cmocka_unit_test(test_turns),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_floods_are_bounded),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
