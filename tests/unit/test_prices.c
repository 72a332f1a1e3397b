/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/prices: the file with the prices of pools. */
#include "lib/prices.h"

#include "tests/unit/support.h"

static struct prices *parse(const char *text)
{
    struct error err = {""};
    struct prices *prices = prices_parse(text, strlen(text), &err);

    if (prices == NULL)
        fail_msg("%s", err.text);
    return prices;
}

static void assert_price(const struct prices *prices, const char *pool, double price, int nodes)
{
    const struct price *found = prices_find(prices, pool);

    assert_non_null(found);
    assert_near(found->price, price, 1e-9);
    assert_int_equal(found->nodes, nodes);
}

static void test_prices(void **state)
{
    struct prices *prices = parse("# written at 12:00\n"
                                  "us-east-2b 0.92 12\n"
                                  "\n"
                                  "\ton-demand\t3.06   # no limit\r\n"
                                  "free 0 0 #\n"
                                  "last 2"); /* no line break at the end */

    (void)state;
    assert_price(prices, "us-east-2b", 0.92, 12);
    assert_price(prices, "on-demand", 3.06, -1);
    assert_price(prices, "last", 2, -1);
    assert_null(prices_find(prices, "us-east-2"));
    assert_null(prices_find(prices, "#"));
    assert_null(prices_find(NULL, "last"));
    prices_destroy(prices);
    prices_destroy(NULL);
    prices = parse("");
    assert_null(prices_find(prices, ""));
    prices_destroy(prices);
}

static void test_bad_prices(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a\n", "line 1: the price of pool a is missing; write POOL PRICE [NODES]"},
        {"a # 3\n", "line 1: the price of pool a is missing; write POOL PRICE [NODES]"},
        {"# a\n\na x\n", "line 3: 'x' is not a price from 0 to 1000000000; write a number such as "
                         "12 or 0.35, with at most 6 digits behind the point"},
        {"a -1", "line 1: '-1' is not a price from 0 to 1000000000; write a number such as 12 or "
                 "0.35, with at most 6 digits behind the point"},
        {"a 1 -1", "line 1: '-1' is not a number of nodes; write POOL PRICE [NODES]"},
        {"a 1 2 3", "line 1: '3' is one word too many; write POOL PRICE [NODES]"},
        {"a = 1", "line 1: '=' is not a price from 0 to 1000000000; write a number such as 12 or "
                  "0.35, with at most 6 digits behind the point"},
        {"a 1\nb 2\na 1\n", "line 3: pool a has a line already; leave one of them out"},
        {"-a 1",
         "line 1: '-a' is not a pool's name; write NAME or NAME,NAME without blanks, with 1 "
         "to 63 letters, digits and _ - . + in a name, a letter, digit or _ first"},
    };
    static const char nul[] = "a 1\n\0b 2\n";
    struct error err;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        /* Without the NUL behind it, so that a sanitizer sees a read beyond the end. */
        size_t len = strlen(cases[i].text);
        char *copy = malloc(len);

        memcpy(copy, cases[i].text, len);
        if (prices_parse(copy, len, &err) != NULL)
            fail_msg("%s was accepted", cases[i].text);
        assert_string_equal(err.text, cases[i].message);
        assert_null(prices_parse(copy, len, NULL));
        free(copy);
    }
    assert_null(prices_parse(nul, sizeof(nul) - 1, &err));
    assert_string_equal(err.text, "there is a NUL byte in it; write lines of text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_bad_prices),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("prices", tests, NULL, NULL);
}
