/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/pieces: bytes of every length come back, also across the border of a piece; what is
 * damaged is noticed. */
#include "lib/pieces.h"

#include "lib/json_get.h"
#include "tests/unit/support.h"

struct mail {
    json_object *pieces[8];
    int count;
};

static void post(json_object *piece, void *arg)
{
    struct mail *mail = arg;

    assert_true(mail->count < 8);
    mail->pieces[mail->count++] = piece;
}

static json_object *letter(void)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string("gather"));
    return msg;
}

static void there_and_back(const char *data, size_t len)
{
    struct mail mail = {.count = 0};
    struct pieces pieces = {0};

    assert_int_equal(pieces_send(letter(), data, len, post, &mail), 0);
    assert_int_equal(mail.count, len == 0 ? 1 : (int)((len - 1) / PIECE_BYTES) + 1);
    for (int i = 0; i < mail.count; i++) {
        assert_string_equal(json_get_string(mail.pieces[i], "t"), "gather");
        assert_int_equal(pieces_take(&pieces, mail.pieces[i]), i == mail.count - 1);
        json_object_put(mail.pieces[i]);
    }
    assert_int_equal(pieces.len, len);
    if (len > 0)
        assert_memory_equal(pieces.data, data, len);
    free(pieces.data);
}

static void test_every_length(void **state)
{
    static const size_t lengths[] = {
        0, 1, 2, 3, 4, 100, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 7};
    size_t most = lengths[COUNT(lengths) - 1];
    char *data = malloc(most);
    uint64_t seed = 11;

    (void)state;
    for (size_t i = 0; i < most; i++)
        data[i] = (char)random_next(&seed);
    for (size_t i = 0; i < COUNT(lengths); i++)
        there_and_back(data, lengths[i]);
    free(data);
}

static void test_damage(void **state)
{
    static const char *const damaged[] = {"A", "AA=", "AAAA====", "A AA", "!!!!", "AAA*"};
    struct pieces pieces = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(damaged); i++) {
        json_object *msg = letter();

        json_object_object_add(msg, "data", json_object_new_string(damaged[i]));
        json_object_object_add(msg, "last", json_object_new_boolean(true));
        assert_int_equal(pieces_take(&pieces, msg), -1);
        json_object_put(msg);
    }
    assert_int_equal(pieces.len, 0);
    free(pieces.data);
}

/* Another type, or nothing at all: no bytes, and not the end. */
static void test_missing(void **state)
{
    struct pieces pieces = {0};
    json_object *msg = letter();

    (void)state;
    assert_int_equal(pieces_take(&pieces, msg), 0);
    json_object_object_add(msg, "data", json_object_new_int(7));
    json_object_object_add(msg, "last", json_object_new_string("yes"));
    assert_int_equal(pieces_take(&pieces, msg), 0);
    assert_int_equal(pieces.len, 0);
    json_object_put(msg);
    free(pieces.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
