/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/store: what each operation answers, requests that wait, scopes, what is refused, and
 * random use against a plain model. */
#include "lib/store.h"

#include "tests/unit/support.h"

#define TEXT 4096

static const struct store_scope one = {1, 1}, two = {1, 2};
static uint64_t next_number;

/* ---- asking ---------------------------------------------------------------------------------- */

static const char *const results[] = {"done", "gone", "timeout", "bad", "full", "memory"};

static void print_answer(const struct store_answer *answer, char *text)
{
    size_t used = strlen(text);

    used += (size_t)snprintf(text + used, TEXT - used, "%d.%d %s", (int)answer->id.owner,
                             (int)answer->id.number, results[answer->result]);
    if (answer->value != NULL)
        used += (size_t)snprintf(text + used, TEXT - used, " %.*s",
                                 answer->len < 40 ? (int)answer->len : 40,
                                 (const char *)answer->value);
    if (answer->number != 0)
        used += (size_t)snprintf(text + used, TEXT - used, " %lld", (long long)answer->number);
    snprintf(text + used, TEXT - used, "\n");
}

/* All answers, a line each: "OWNER.NUMBER RESULT [VALUE] [NUMBER]". Not for two at once. */
static const char *answers(struct store *s)
{
    static char text[TEXT];
    struct store_answer answer;

    text[0] = '\0';
    while (store_answer(s, &answer)) {
        assert_int_equal(answer.reason != NULL,
                         answer.result == STORE_BAD || answer.result == STORE_FULL);
        if (answer.reason != NULL)
            assert_one_line(answer.reason);
        print_answer(&answer, text);
    }
    return text;
}

/* Owner 1 asks; the numbers of its requests count from 1. */
static const char *ask(struct store *s, struct store_request request)
{
    request.id = (struct store_id){1, ++next_number};
    assert_int_equal(store_ask(s, &request, 0), 0);
    return answers(s);
}

static struct store_request of_key(struct store_scope scope, enum store_op op,
                                   const char *const *key)
{
    return (struct store_request){.scope = scope, .op = op, .keys = key, .key_count = 1};
}

static const char *set(struct store *s, struct store_scope scope, const char *key, const char *text)
{
    struct store_request request = of_key(scope, STORE_SET, &key);

    request.value = text;
    request.len = strlen(text);
    return ask(s, request);
}

static const char *get(struct store *s, struct store_scope scope, const char *key, double deadline)
{
    struct store_request request = of_key(scope, STORE_GET, &key);

    request.deadline = deadline;
    return ask(s, request);
}

static const char *add(struct store *s, const char *key, int64_t amount)
{
    struct store_request request = of_key(one, STORE_ADD, &key);

    request.amount = amount;
    return ask(s, request);
}

static const char *compare_set(struct store *s, const char *key, const char *expected,
                               const char *desired)
{
    struct store_request request = of_key(one, STORE_COMPARE_SET, &key);

    request.expected = expected;
    request.expected_len = strlen(expected);
    request.value = desired;
    request.len = strlen(desired);
    return ask(s, request);
}

static const char *delete_key(struct store *s, const char *key)
{
    return ask(s, of_key(one, STORE_DELETE, &key));
}

static const char *keys_op(struct store *s, enum store_op op, const char *a, const char *b,
                           double deadline)
{
    const char *keys[] = {a, b};
    struct store_request request = of_key(one, op, keys);

    request.key_count = b != NULL ? 2 : a != NULL;
    request.deadline = deadline;
    return ask(s, request);
}

static struct store *begin(void)
{
    struct store *s = store_create();

    next_number = 0;
    assert_int_equal(store_begin_scope(s, one), 0);
    return s;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void test_operations(void **state)
{
    struct store *s = begin();

    (void)state;
    assert_string_equal(set(s, one, "k", "v"), "1.1 done\n");
    assert_string_equal(get(s, one, "k", 0), "1.2 done v\n");
    assert_string_equal(set(s, one, "k", "longer"), "1.3 done\n");
    assert_string_equal(get(s, one, "k", 0), "1.4 done longer\n");
    assert_string_equal(set(s, one, "empty", ""), "1.5 done\n");
    assert_string_equal(get(s, one, "empty", 0), "1.6 done \n");
    assert_string_equal(keys_op(s, STORE_CHECK, "k", "empty", 0), "1.7 done 1\n");
    assert_string_equal(keys_op(s, STORE_CHECK, "k", "other", 0), "1.8 done\n");
    assert_string_equal(keys_op(s, STORE_CHECK, NULL, NULL, 0), "1.9 done 1\n");
    assert_string_equal(keys_op(s, STORE_NUM_KEYS, NULL, NULL, 0), "1.10 done 2\n");
    assert_string_equal(delete_key(s, "k"), "1.11 done 1\n");
    assert_string_equal(delete_key(s, "k"), "1.12 done\n");
    assert_string_equal(keys_op(s, STORE_NUM_KEYS, NULL, NULL, 0), "1.13 done 1\n");
    store_destroy(s);
}

static void test_add(void **state)
{
    struct store *s = begin();
    static const char *const no_integers[] = {
        "", "x", "1x", " 1", "1 ", "-", "+1", "0x10", "99999999999999999999"};

    (void)state;
    assert_string_equal(add(s, "n", 5), "1.1 done 5\n");
    assert_string_equal(add(s, "n", -12), "1.2 done -7\n");
    assert_string_equal(get(s, one, "n", 0), "1.3 done -7\n");
    assert_string_equal(add(s, "n", 7), "1.4 done\n");
    assert_string_equal(get(s, one, "n", 0), "1.5 done 0\n");
    set(s, one, "n", "9223372036854775806");
    assert_string_equal(add(s, "n", 1), "1.7 done 9223372036854775807\n");
    assert_string_equal(add(s, "n", 1), "1.8 bad\n");
    assert_string_equal(get(s, one, "n", 0), "1.9 done 9223372036854775807\n");
    set(s, one, "n", "-9223372036854775808");
    assert_string_equal(add(s, "n", 0), "1.11 done -9223372036854775808\n");
    for (size_t i = 0; i < COUNT(no_integers); i++) {
        set(s, one, "n", no_integers[i]);
        assert_non_null(strstr(add(s, "n", 1), " bad"));
        assert_non_null(strstr(get(s, one, "n", 0), no_integers[i]));
    }
    store_destroy(s);
}

static void test_compare_set(void **state)
{
    struct store *s = begin();

    (void)state;
    assert_string_equal(compare_set(s, "k", "x", "new"), "1.1 done x\n");
    assert_string_equal(keys_op(s, STORE_CHECK, "k", NULL, 0), "1.2 done\n");
    assert_string_equal(compare_set(s, "k", "", "first"), "1.3 done first\n");
    assert_string_equal(compare_set(s, "k", "", "second"), "1.4 done first\n");
    assert_string_equal(compare_set(s, "k", "first", "second"), "1.5 done second\n");
    assert_string_equal(compare_set(s, "k", "secon", "third"), "1.6 done second\n");
    assert_string_equal(get(s, one, "k", 0), "1.7 done second\n");
    store_destroy(s);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void test_waiting(void **state)
{
    struct store *s = begin();
    double when;

    (void)state;
    assert_false(store_deadline(s, &when));
    assert_string_equal(get(s, one, "a", 0), "1.1 timeout\n"); /* not even a moment */
    assert_string_equal(get(s, one, "a", 9), "");
    assert_string_equal(keys_op(s, STORE_WAIT, "a", "b", 5), "");
    assert_string_equal(keys_op(s, STORE_WAIT, "b", NULL, 7), "");
    assert_true(store_deadline(s, &when) && when == 5);
    assert_string_equal(set(s, one, "c", "x"), "1.5 done\n");
    assert_string_equal(set(s, one, "a", "x"), "1.6 done\n1.2 done x\n");
    store_expire(s, 4.9);
    assert_string_equal(answers(s), "");
    store_expire(s, 5);
    assert_string_equal(answers(s), "1.3 timeout\n");
    assert_true(store_deadline(s, &when) && when == 7);
    assert_string_equal(add(s, "b", 0), "1.7 done\n1.4 done\n");
    assert_false(store_deadline(s, &when));
    /* All at the same moment. */
    keys_op(s, STORE_WAIT, "d", "e", 9);
    set(s, one, "d", "");
    delete_key(s, "d");
    assert_string_equal(compare_set(s, "e", "", "x"), "1.11 done x\n");
    assert_string_equal(set(s, one, "d", ""), "1.12 done\n1.8 done\n");
    store_destroy(s);
}

static void test_value_of_an_answer(void **state)
{
    struct store *s = begin();
    struct store_answer answer;
    const char *key = "k";
    struct store_request request = of_key(one, STORE_GET, &key);

    (void)state;
    request.deadline = 1;
    for (uint64_t i = 0; i < 3; i++) {
        request.id = (struct store_id){2, i};
        store_ask(s, &request, 0);
    }
    assert_string_equal(set(s, one, "k", "old"),
                        "1.1 done\n2.0 done old\n2.1 done old\n2.2 done old\n");
    store_ask(s, &request, 0);
    request.op = STORE_DELETE;
    store_ask(s, &request, 0);
    store_end_scope(s, one);
    /* It is that of the moment at which it was answered. */
    assert_true(store_answer(s, &answer));
    assert_memory_equal(answer.value, "old", 3);
    assert_string_equal(answers(s), "2.2 done 1\n");
    store_destroy(s);
}

static void test_forget(void **state)
{
    struct store *s = begin();
    const char *key = "k";
    struct store_request request = of_key(one, STORE_GET, &key);

    (void)state;
    request.deadline = 1;
    for (uint64_t owner = 1; owner <= 3; owner++)
        for (uint64_t i = 0; i < 2; i++) {
            request.id = (struct store_id){owner, i};
            store_ask(s, &request, 0);
        }
    store_forget(s, (struct store_id){1, 1});
    store_forget(s, (struct store_id){1, 7});
    store_forget_owner(s, 3);
    assert_string_equal(set(s, one, "k", "v"), "1.1 done\n1.0 done v\n2.0 done v\n2.1 done v\n");
    store_destroy(s);
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void test_scopes(void **state)
{
    struct store *s = begin();
    struct store_scope scope = {9, 0};

    (void)state;
    assert_string_equal(set(s, two, "k", "v"), "1.1 gone\n");
    assert_int_equal(store_begin_scope(s, two), 0);
    assert_string_equal(set(s, two, "k", "v"), "1.2 done\n");
    assert_string_equal(get(s, one, "k", 0), "1.3 timeout\n");
    assert_string_equal(get(s, one, "k", 9), "");
    assert_string_equal(get(s, two, "other", 9), "");
    assert_int_equal(store_begin_scope(s, two), 0); /* changes nothing */
    store_end_scope(s, one);
    assert_string_equal(answers(s), "1.4 gone\n");
    assert_string_equal(get(s, one, "k", 9), "1.6 gone\n");
    assert_string_equal(get(s, two, "k", 9), "1.7 done v\n");
    store_end_scope(s, one);
    store_end_scope(s, two);
    assert_string_equal(answers(s), "1.5 gone\n");
    assert_int_equal(store_begin_scope(s, one), 0);
    assert_string_equal(get(s, one, "k", 0), "1.8 timeout\n");
    while (store_begin_scope(s, scope) == 0)
        scope.attempt++;
    assert_int_equal(scope.attempt, STORE_SCOPES_MAX - 1);
    store_end_scope(s, one);
    assert_int_equal(store_begin_scope(s, scope), 0);
    store_destroy(s);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_bad_requests(void **state)
{
    struct store *s = begin();
    static char long_key[STORE_KEY_MAX + 2], value[STORE_VALUE_MAX + 1];
    static const char *many[STORE_ASK_KEYS_MAX + 1];
    const char *key = long_key;
    struct store_request request = of_key(one, STORE_SET, &key);

    (void)state;
    memset(long_key, 'k', STORE_KEY_MAX + 1);
    assert_string_equal(set(s, one, long_key, ""), "1.1 bad\n");
    long_key[STORE_KEY_MAX] = '\0';
    assert_string_equal(set(s, one, long_key, ""), "1.2 done\n");
    assert_string_equal(set(s, one, "", ""), "1.3 bad\n");
    request.value = value;
    request.len = STORE_VALUE_MAX + 1;
    assert_string_equal(ask(s, request), "1.4 bad\n");
    request.len = STORE_VALUE_MAX;
    assert_string_equal(ask(s, request), "1.5 done\n");
    request.op = STORE_COMPARE_SET;
    request.expected = value;
    request.expected_len = STORE_VALUE_MAX + 1;
    assert_string_equal(ask(s, request), "1.6 bad\n");
    request.op = (enum store_op)STORE_OPS;
    assert_string_equal(ask(s, request), "1.7 bad\n");
    request = (struct store_request){.scope = one, .op = STORE_GET};
    assert_string_equal(ask(s, request), "1.8 bad\n");
    request.op = STORE_NUM_KEYS;
    request.keys = &key;
    request.key_count = 1;
    assert_string_equal(ask(s, request), "1.9 bad\n");
    request.op = STORE_CHECK;
    request.keys = many;
    for (int i = 0; i <= STORE_ASK_KEYS_MAX; i++)
        many[i] = "k";
    request.key_count = STORE_ASK_KEYS_MAX + 1;
    assert_string_equal(ask(s, request), "1.10 bad\n");
    request.key_count = STORE_ASK_KEYS_MAX;
    assert_string_equal(ask(s, request), "1.11 done\n");
    for (int i = 0; i < 257; i++)
        many[i] = long_key;
    request.key_count = 257;
    assert_string_equal(ask(s, request), "1.12 bad\n");
    request.key_count = -1;
    assert_string_equal(ask(s, request), "1.13 bad\n");
    store_destroy(s);
}

static void test_full(void **state)
{
    struct store *s = begin();
    static char value[STORE_VALUE_MAX];
    static const char *many[250];
    char name[16], long_key[STORE_KEY_MAX + 1];
    const char *key = name;
    struct store_request request = of_key(one, STORE_SET, &key);
    int count = 0;

    (void)state;
    /* Bytes: a value that is replaced makes room, one that is deleted, too. */
    request.value = value;
    request.len = STORE_VALUE_MAX;
    for (; count < 63; count++) {
        snprintf(name, sizeof(name), "%d", count);
        assert_non_null(strstr(ask(s, request), "done"));
    }
    snprintf(name, sizeof(name), "more");
    assert_non_null(strstr(ask(s, request), "full"));
    snprintf(name, sizeof(name), "7");
    assert_non_null(strstr(ask(s, request), "done"));
    delete_key(s, "7");
    snprintf(name, sizeof(name), "more");
    assert_non_null(strstr(ask(s, request), "done"));
    store_end_scope(s, one);
    /* Keys. */
    store_begin_scope(s, one);
    for (count = 0; count < STORE_KEYS_MAX; count++) {
        snprintf(name, sizeof(name), "%d", count);
        assert_non_null(strstr(add(s, name, 1), "done"));
    }
    assert_non_null(strstr(add(s, "more", 1), "full"));
    assert_non_null(strstr(compare_set(s, "more", "", "x"), "full"));
    assert_non_null(strstr(add(s, "3", 1), "done"));
    delete_key(s, "3");
    assert_non_null(strstr(add(s, "more", 1), "done"));
    store_end_scope(s, one);
    /* Those that wait, and their keys. */
    store_begin_scope(s, one);
    for (count = 0; count < STORE_WAITERS_MAX; count++)
        assert_string_equal(get(s, one, "k", 9), "");
    assert_non_null(strstr(get(s, one, "k", 9), "full"));
    store_forget_owner(s, 1);
    assert_string_equal(get(s, one, "k", 9), "");
    memset(long_key, 'k', STORE_KEY_MAX);
    long_key[STORE_KEY_MAX] = '\0';
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = long_key;
    request = (struct store_request){
        .scope = one, .op = STORE_WAIT, .keys = many, .key_count = COUNT(many), .deadline = 9};
    count = 0;
    while (strcmp(ask(s, request), "") == 0)
        count++;
    assert_int_equal(count, STORE_WAITERS_BYTES_MAX / (COUNT(many) * STORE_KEY_MAX));
    store_destroy(s);
}

/* ---- a plain model --------------------------------------------------------------------------- */

#define MODEL_SCOPES  3
#define MODEL_KEYS    4
#define MODEL_WAITERS 4096
#define MODEL_VALUE   24

struct model_waiter {
    bool waits;
    struct store_id id;
    int scope;
    enum store_op op;
    unsigned keys; /* a bit for each */
    double deadline;
};

struct model {
    bool begun[MODEL_SCOPES];
    bool there[MODEL_SCOPES][MODEL_KEYS];
    char value[MODEL_SCOPES][MODEL_KEYS][MODEL_VALUE];
    struct model_waiter waiters[MODEL_WAITERS]; /* in the order of their asking */
    int waiter_count;
    char text[TEXT]; /* what is to be answered */
};

static void expect(struct model *m, struct store_id id, enum store_result result, const char *value,
                   int64_t number)
{
    struct store_answer answer = {.id = id,
                                  .result = result,
                                  .value = value,
                                  .len = value != NULL ? strlen(value) : 0,
                                  .number = number};

    print_answer(&answer, m->text);
}

static bool model_has(const struct model *m, int scope, unsigned keys)
{
    for (int k = 0; k < MODEL_KEYS; k++)
        if ((keys & 1u << k) != 0 && !m->there[scope][k])
            return false;
    return true;
}

static int lowest(unsigned keys)
{
    return __builtin_ctz(keys);
}

static void model_wake(struct model *m, int scope)
{
    for (int i = 0; i < m->waiter_count; i++) {
        struct model_waiter *w = &m->waiters[i];

        if (!w->waits || w->scope != scope || !model_has(m, scope, w->keys))
            continue;
        w->waits = false;
        expect(m, w->id, STORE_DONE, w->op == STORE_GET ? m->value[scope][lowest(w->keys)] : NULL,
               0);
    }
}

static void model_put(struct model *m, int scope, int key, const char *value)
{
    m->there[scope][key] = true;
    snprintf(m->value[scope][key], MODEL_VALUE, "%s", value);
}

static void model_ask(struct model *m, const struct model_waiter *asked, const char *value,
                      const char *expected, int64_t amount, double now)
{
    int scope = asked->scope, key = asked->keys != 0 ? lowest(asked->keys) : 0, count = 0;
    bool *there = &m->there[scope][key];
    char *old = m->value[scope][key], text[MODEL_VALUE];
    long long sum;

    if (!m->begun[scope]) {
        expect(m, asked->id, STORE_GONE, NULL, 0);
        return;
    }
    switch (asked->op) {
    case STORE_SET:
        model_put(m, scope, key, value);
        expect(m, asked->id, STORE_DONE, NULL, 0);
        break;
    case STORE_ADD:
        sum = (*there ? atoll(old) : 0) + amount;
        snprintf(text, sizeof(text), "%lld", sum);
        model_put(m, scope, key, text);
        expect(m, asked->id, STORE_DONE, NULL, sum);
        break;
    case STORE_COMPARE_SET:
        if (*there ? strcmp(old, expected) == 0 : expected[0] == '\0')
            model_put(m, scope, key, value);
        expect(m, asked->id, STORE_DONE, *there ? old : expected, 0);
        break;
    case STORE_DELETE:
        expect(m, asked->id, STORE_DONE, NULL, *there);
        *there = false;
        break;
    case STORE_CHECK:
        expect(m, asked->id, STORE_DONE, NULL, model_has(m, scope, asked->keys));
        break;
    case STORE_NUM_KEYS:
        for (int k = 0; k < MODEL_KEYS; k++)
            count += m->there[scope][k];
        expect(m, asked->id, STORE_DONE, NULL, count);
        break;
    default:
        if (!model_has(m, scope, asked->keys) && asked->deadline <= now) {
            expect(m, asked->id, STORE_TIMEOUT, NULL, 0);
        } else {
            assert_true(m->waiter_count < MODEL_WAITERS);
            m->waiters[m->waiter_count] = *asked;
            m->waiters[m->waiter_count++].waits = true;
        }
        break;
    }
    model_wake(m, scope);
}

static void model_end(struct model *m, int scope)
{
    for (int i = 0; i < m->waiter_count; i++)
        if (m->waiters[i].waits && m->waiters[i].scope == scope) {
            m->waiters[i].waits = false;
            expect(m, m->waiters[i].id, STORE_GONE, NULL, 0);
        }
    m->begun[scope] = false;
    memset(m->there[scope], 0, sizeof(m->there[scope]));
}

static void model_forget(struct model *m, uint64_t owner)
{
    for (int i = 0; i < m->waiter_count; i++)
        if (m->waiters[i].id.owner == owner)
            m->waiters[i].waits = false;
}

static void ask_both(struct store *s, struct model *m, uint64_t *random, double now)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    static const char *const values[] = {"", "1", "2", "-3"};
    enum store_op op = (enum store_op)random_below(random, STORE_OPS);
    bool many = op == STORE_WAIT || op == STORE_CHECK;
    const char *value = values[random_below(random, 4)],
               *expected = values[random_below(random, 4)];
    int64_t amount = (int)random_below(random, 5) - 2;
    unsigned keys = many ? random_below(random, 1u << MODEL_KEYS) : 1u << random_below(random, 4);
    struct model_waiter asked = {
        .id = {random_below(random, 3), ++next_number},
        .scope = (int)random_below(random, MODEL_SCOPES),
        .op = op,
        .keys = op == STORE_NUM_KEYS ? 0 : keys,
        .deadline = now + (int)random_below(random, 10) - 1,
    };
    const char *list[MODEL_KEYS];
    struct store_request request = {.id = asked.id,
                                    .scope = {7, asked.scope},
                                    .op = op,
                                    .keys = list,
                                    .value = value,
                                    .len = strlen(value),
                                    .expected = expected,
                                    .expected_len = strlen(expected),
                                    .amount = amount,
                                    .deadline = asked.deadline};

    /* An empty value is no integer. */
    if (op == STORE_ADD && m->there[asked.scope][lowest(keys)] &&
        m->value[asked.scope][lowest(keys)][0] == '\0')
        return;
    for (int k = 0; k < MODEL_KEYS; k++)
        if ((asked.keys & 1u << k) != 0)
            list[request.key_count++] = names[k];
    assert_int_equal(store_ask(s, &request, now), 0);
    model_ask(m, &asked, value, expected, amount, now);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Whom the end of a time limit reaches in one go has no order across scopes. */
static void sort_lines(char *text)
{
    char copy[TEXT], *lines[256];
    int count = 0;

    snprintf(copy, sizeof(copy), "%s", text);
    for (char *line = strtok(copy, "\n"); line != NULL; line = strtok(NULL, "\n"))
        lines[count++] = line;
    qsort(lines, (size_t)count, sizeof(lines[0]), compare_lines);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        strcat(text, lines[i]);
        strcat(text, "\n");
    }
}

static void compare(struct store *s, struct model *m, double now)
{
    char got[TEXT];
    double when = 0, first = -1;

    snprintf(got, sizeof(got), "%s", answers(s));
    sort_lines(got);
    sort_lines(m->text);
    assert_string_equal(got, m->text);
    m->text[0] = '\0';
    for (int i = 0; i < m->waiter_count; i++)
        if (m->waiters[i].waits && (first < 0 || m->waiters[i].deadline < first))
            first = m->waiters[i].deadline;
    assert_int_equal(store_deadline(s, &when), first >= 0);
    if (first >= 0) {
        assert_true(when == first);
        assert_true(when > now);
    }
}

static void one_sequence(uint64_t seed)
{
    static struct model model;
    struct store *s = store_create();
    uint64_t random = seed;
    double now = 100;

    memset(&model, 0, sizeof(model));
    next_number = 0;
    for (int step = 0; step < 600; step++) {
        int scope = (int)random_below(&random, MODEL_SCOPES);
        uint64_t owner = random_below(&random, 3);

        switch (random_below(&random, 24)) {
        case 0:
            store_end_scope(s, (struct store_scope){7, scope});
            model_end(&model, scope);
            break;
        case 1:
        case 2:
        case 3:
            assert_int_equal(store_begin_scope(s, (struct store_scope){7, scope}), 0);
            model.begun[scope] = true;
            break;
        case 4:
            store_forget_owner(s, owner);
            model_forget(&model, owner);
            break;
        case 5:
        case 6:
            now += random_below(&random, 4);
            store_expire(s, now);
            for (int i = 0; i < model.waiter_count; i++)
                if (model.waiters[i].waits && model.waiters[i].deadline <= now) {
                    model.waiters[i].waits = false;
                    expect(&model, model.waiters[i].id, STORE_TIMEOUT, NULL, 0);
                }
            break;
        default:
            ask_both(s, &model, &random, now);
            break;
        }
        compare(s, &model, now);
    }
    store_destroy(s);
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++)
        one_sequence(seed);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),  cmocka_unit_test(test_add),
        cmocka_unit_test(test_compare_set), cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_forget),      cmocka_unit_test(test_value_of_an_answer),
        cmocka_unit_test(test_scopes),      cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_full),        cmocka_unit_test(test_random),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
