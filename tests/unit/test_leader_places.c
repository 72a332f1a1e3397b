/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a leader may be found: the list that an extension gets, and texts that are none. */
#include "tests/unit/support.h"

#include "agent/leader_places.h"

static void test_there_and_back(void **state)
{
    struct leader_places places = {0}, read = {0};
    struct error err = {""};
    char *text;

    (void)state;
    assert_true(leader_places_add(&places, "192.0.2.1", 23000));
    assert_true(leader_places_add(&places, "2001:db8::7", 1));
    assert_true(leader_places_add(&places, "n3.example", 65535));
    text = leader_places_text(&places);
    assert_string_equal(text, "192.0.2.1:23000,2001:db8::7:1,n3.example:65535");
    assert_int_equal(leader_places_parse(&read, text, &err), 0);
    assert_int_equal(read.count, 3);
    assert_string_equal(read.list[1].address, "2001:db8::7");
    assert_int_equal(read.list[1].port, 1);
    free(text);
}

static void test_what_is_none(void **state)
{
    static const char *const texts[] = {
        "",    ",",     "a",      "a:",    ":1",     "a:0",        "a:65536",
        "a:x", "a:1,,", "a:1,b:", "a:+1,", "a:1,:2", "a: 1,b:2\n", "a:1,",
    };
    struct leader_places places = {.count = 1}, same = places;
    struct error err;
    char many[1024] = "", longest[300];

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        err.text[0] = '\0';
        if (leader_places_parse(&places, texts[i], &err) == 0)
            fail_msg("taken: %s", texts[i]);
        assert_non_null(strstr(err.text, "not ADDRESS:PORT"));
    }
    for (int i = 0; i <= LEADER_PLACES_MAX; i++)
        strcat(many, i > 0 ? ",node:1" : "node:1");
    assert_int_equal(leader_places_parse(&places, many, &err), -1);
    memset(longest, 'a', sizeof(longest));
    strcpy(longest + sizeof(longest) - 3, ":1");
    assert_int_equal(leader_places_parse(&places, longest, &err), -1);
    assert_memory_equal(&places, &same, sizeof(places));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_what_is_none),
    };

    return cmocka_run_group_tests_name("leader_places", tests, NULL, NULL);
}
