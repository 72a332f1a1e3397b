/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The manuals and etc/elastic.conf against the table of job options: names, defaults and limits. */
#include <ctype.h>
#include <stdbool.h>

#include "lib/policy.h"
#include "lib/text.h"
#include "tests/unit/support.h"

static char *elasticrun, *spank, *conf, *example;

static int set_up(void **state)
{
    elasticrun = read_tree_file("doc/man/elasticrun.1");
    spank = read_tree_file("doc/man/spank_elastic.8");
    conf = read_tree_file("doc/man/elastic.conf.5");
    example = read_tree_file("etc/elastic.conf");
    return 0;
}

static int tear_down(void **state)
{
    free(elasticrun);
    free(spank);
    free(conf);
    free(example);
    return 0;
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Is word in the first len bytes of text, and not as a part of a longer word? */
static bool has_word(const char *text, size_t len, const char *word)
{
    const char *end = text + len;
    size_t size = strlen(word);

    for (const char *at = strstr(text, word); at != NULL && at + size <= end;
         at = strstr(at + 1, word)) {
        if ((at == text || !in_word(at[-1])) && !in_word(at[size]))
            return true;
    }
    return false;
}

/* The next item of a list in an mdoc page, from its ".It" to what follows it. NULL: no more. */
static const char *next_item(const char *text, size_t *len)
{
    static const char *const ends[] = {"\n.It ", "\n.El", "\n.Sh ", "\n.Ss "};
    const char *item = strstr(text, "\n.It ");

    if (item == NULL)
        return NULL;
    item++;
    *len = strlen(item);
    for (size_t i = 0; i < COUNT(ends); i++) {
        const char *end = strstr(item, ends[i]);

        if (end != NULL && (size_t)(end - item) < *len)
            *len = (size_t)(end - item);
    }
    return item;
}

/* Is there an item that has both words, the first one in its head line where heads is true? */
static bool has_item(const char *page, const char *first, const char *second, bool heads)
{
    size_t len;

    for (const char *item = page; (item = next_item(item, &len)) != NULL; item += len) {
        size_t head = heads ? strcspn(item, "\n") : len;

        if (has_word(item, head, first) && has_word(item, len, second))
            return true;
    }
    return false;
}

/* "Fl -elastic-grace": how mdoc writes an option. */
static const char *flag(const struct policy_option *option, char buf[64])
{
    buf[0] = '\0';
    return text_append(buf, 64, "Fl -%s", option->option);
}

static void must(bool there, const char *page, const struct policy_option *option, const char *what,
                 const char *value)
{
    if (!there)
        fail_msg("%s: %s: %s %s is missing", page, option->json, what, value);
}

static void check_limits(const char *name, const char *page, const struct policy_option *option)
{
    char max[16];

    if (option->kind != POLICY_KIND_NUMBER)
        return;
    snprintf(max, sizeof(max), "%d", option->max);
    must(has_word(page, strlen(page), max), name, option, "the largest value", max);
}

static void check_elasticrun(const struct policy_option *option)
{
    char *builtin = policy_option_default(option), buf[64];
    const char *name = "elasticrun.1";

    must(has_item(elasticrun, option->json, option->json, true), name, option,
         "the key of policy files", option->json);
    if (option->option != NULL) {
        flag(option, buf);
        must(has_item(elasticrun, buf, buf, false), name, option, "the option", option->option);
        must(has_word(elasticrun, strlen(elasticrun), option->environment), name, option,
             "the variable", option->environment);
        for (size_t i = 0; i < POLICY_WORDS_MAX && option->words[i] != NULL; i++)
            must(has_item(elasticrun, buf, option->words[i], false), name, option, "the word",
                 option->words[i]);
        if (builtin != NULL)
            must(has_item(elasticrun, buf, builtin, false), name, option, "the default", builtin);
    }
    check_limits(name, elasticrun, option);
    free(builtin);
}

static void test_elasticrun(void **state)
{
    for (const struct policy_option *o = policy_options; o->json != NULL; o++)
        check_elasticrun(o);
}

static void test_spank_elastic(void **state)
{
    const char *name = "spank_elastic.8";
    char buf[64];

    for (const struct policy_option *o = policy_options; o->json != NULL; o++) {
        must(has_word(spank, strlen(spank), o->environment), name, o, "the variable",
             o->environment);
        if (o->option != NULL)
            must(has_item(spank, flag(o, buf), buf, true), name, o, "the option", o->option);
    }
}

static void test_elastic_conf(void **state)
{
    const char *name = "elastic.conf.5";

    for (const struct policy_option *o = policy_options; o->json != NULL; o++) {
        char *builtin = policy_option_default(o), head[64] = "";

        if (o->conf != NULL) {
            text_append(head, sizeof(head), "\n.It Cm %s\n", o->conf);
            must(strstr(conf, head) != NULL, name, o, "an item of its own for the key", o->conf);
            if (builtin != NULL)
                must(has_item(conf, o->conf, builtin, true), name, o, "the default", builtin);
            check_limits(name, conf, o);
        }
        free(builtin);
    }
}

/* The comment above a line of the example, back to the empty line before it. */
static bool comment_has(const char *line, const char *word)
{
    const char *start = line;

    while (start > example + 1 && !(start[-1] == '\n' && start[-2] == '\n'))
        start--;
    return has_word(start, (size_t)(line - start), word);
}

static void check_example(const struct policy_option *option)
{
    char *builtin = policy_option_default(option), line[128] = "", flag_text[64] = "";
    const char *at;

    text_append(line, sizeof(line), "\n#%s = %s%s", option->conf, builtin != NULL ? builtin : "",
                builtin != NULL ? "\n" : "");
    at = strstr(example, line);
    must(at != NULL, "etc/elastic.conf", option, "the line", line + 1);
    text_append(flag_text, sizeof(flag_text), "--%s", option->option);
    must(comment_has(at + 1, flag_text), "etc/elastic.conf", option, "in the comment, the option",
         flag_text);
    check_limits("etc/elastic.conf", example, option);
    free(builtin);
}

static void test_example(void **state)
{
    for (const struct policy_option *o = policy_options; o->json != NULL; o++) {
        if (o->conf != NULL)
            check_example(o);
    }
}

/* The search itself: words and items that are not there are not found. */
static void test_search(void **state)
{
    static const char page[] = "\n.It Fl -elastic-grow-delay Ns = Ns Ar S\nlong (60).\n"
                               ".It Fl -elastic-grow Ns = Ns Cm auto\nnot 600\n.El\n.Pp\nlast 7\n";

    assert_true(has_item(page, "Fl -elastic-grow-delay", "60", true));
    assert_false(has_item(page, "Fl -elastic-grow-delay", "600", true));
    assert_false(has_item(page, "Fl -elastic-grow", "60", true));
    assert_true(has_item(page, "Fl -elastic-grow", "auto", true));
    assert_false(has_item(page, "Fl -elastic-grow", "7", false));
    assert_false(has_item(page, "long", "60", true));
    assert_true(has_item(page, "long", "60", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search),        cmocka_unit_test(test_elasticrun),
        cmocka_unit_test(test_spank_elastic), cmocka_unit_test(test_elastic_conf),
        cmocka_unit_test(test_example),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("manuals", tests, set_up, tear_down);
}
