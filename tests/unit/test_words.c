/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/words: a table of texts. */
#include "lib/words.h"

#include "lib/text.h"
#include "tests/unit/support.h"

static void test_words(void **state)
{
    static const struct {
        const char *text, *words; /* with | behind each; NULL: refused */
    } table[] = {
        {"", ""},
        {" \t\n ", ""},
        {"a", "a|"},
        {"  a  b\tc\n", "a|b|c|"},
        {"'pre_1' 'pre_2' 'pre_3'", "pre_1|pre_2|pre_3|"},
        {"'a b' \"c  d\"", "a b|c  d|"},
        {"'' \"\"", "||"},
        {"a'b c'd", "ab cd|"},
        {"a\\ b", "a b|"},
        {"'a\\'", "a\\|"},
        {"\"a\\\"b\"", "a\"b|"},
        {"\"it's\"", "it's|"},
        {"$HOME `id` * ; rm", "$HOME|`id`|*|;|rm|"},
        {"'open", NULL},
        {"\"open", NULL},
        {"a 'b' \"", NULL},
        {"end\\", NULL},
        {"'a\\''", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct error err = {""};
        char **words = words_split(table[i].text, &err), all[200] = "";

        for (char **word = words; words != NULL && *word != NULL; word++)
            text_append(all, sizeof(all), "%s|", *word);
        if (table[i].words == NULL) {
            assert_null(words);
            assert_one_line(err.text);
        } else {
            assert_non_null(words);
            assert_string_equal(all, table[i].words);
        }
        strings_free(words);
    }
}

static void test_many(void **state)
{
    char text[2 * (WORDS_MAX_COUNT + 1) + 1] = "";
    struct error err = {""};
    char **words;

    (void)state;
    for (int i = 0; i < WORDS_MAX_COUNT; i++)
        memcpy(text + 2 * i, "a ", 3);
    words = words_split(text, &err);
    assert_int_equal(strings_count(words), WORDS_MAX_COUNT);
    strings_free(words);
    memcpy(text + 2 * WORDS_MAX_COUNT, "a", 2);
    assert_null(words_split(text, &err));
    assert_string_equal(err.text, "there are more than 256 words");
}

/* Random texts of what means something: no crash, and the words have no more than the text. */
static void test_random(void **state)
{
    static const char letters[] = "ab '\"\\\t";

    (void)state;
    for (uint64_t seed = 1; seed <= RANDOM_ROUNDS(20000); seed++) {
        uint64_t random = seed;
        char text[20];
        size_t length = random_below(&random, sizeof(text)), all = 0;
        char **words;

        for (size_t i = 0; i < length; i++)
            text[i] = letters[random_below(&random, sizeof(letters) - 1)];
        text[length] = '\0';
        words = words_split(text, NULL);
        for (char **word = words; words != NULL && *word != NULL; word++)
            all += strlen(*word);
        assert_true(all <= length);
        strings_free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
