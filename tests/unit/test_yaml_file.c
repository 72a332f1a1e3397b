/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader of YAML and JSON (common/yaml_file.h). */
#include <unistd.h>

#include "common/yaml_file.h"
#include "lib/text.h"
#include "tests/unit/support.h"

static json_object *parse(const char *text)
{
    struct error err = {""};
    json_object *tree = yaml_parse(text, strlen(text), &err);

    if (tree == NULL)
        fail_msg("%s: %s", text, err.text);
    return tree;
}

/* The tree, as JSON. */
static void assert_tree(const char *text, const char *json)
{
    json_object *tree = parse(text);

    assert_string_equal(json_object_to_json_string_ext(tree, JSON_C_TO_STRING_PLAIN), json);
    json_object_put(tree);
}

static void test_trees(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"a: 1\n", "{\"a\":\"1\"}"},
        {"a: [b, {c: d}]\n", "{\"a\":[\"b\",{\"c\":\"d\"}]}"},
        {"a:\n  - no\n  - on\n  - 1e3\n  - 2:64\n  - 0x10\n",
         "{\"a\":[\"no\",\"on\",\"1e3\",\"2:64\",\"0x10\"]}"},
        {"a: |\n  two\n  lines\n", "{\"a\":\"two\\nlines\\n\"}"},
        {"a: 'null'\nb: \"\"\nc: \"~\"\n", "{\"a\":\"null\",\"b\":\"\",\"c\":\"~\"}"},
        {"{\"a\": [1, 2.5, true, \"x\\u00e9\\n\"],\n\t\"b\": {}}",
         "{\"a\":[\"1\",\"2.5\",\"true\",\"x\xc3\xa9\\n\"],\"b\":{}}"},
        {"{\"a\":1,\"b\":[]}", "{\"a\":\"1\",\"b\":[]}"},
        {"%YAML 1.1\n---\na: 1\n...\n", "{\"a\":\"1\"}"},
        {"\xef\xbb\xbf# mark and comment\na: 1 # one\n", "{\"a\":\"1\"}"},
        {"a: &x {b: [c]}\nd: *x\ne: [*x, *x]\n",
         "{\"a\":{\"b\":[\"c\"]},\"d\":{\"b\":[\"c\"]},\"e\":[{\"b\":[\"c\"]},{\"b\":[\"c\"]}]}"},
        {"a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":\"1\",\"b\":\"2\",\"c\":\"2\"}"},
        {"\"<<\": 1\n", "{\"<<\":\"1\"}"},
        {"a: 1\r\nb: 2\r\n", "{\"a\":\"1\",\"b\":\"2\"}"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_tree(cases[i].text, cases[i].json);
}

static void assert_place(json_object *part, int line, int column)
{
    int at[2] = {0, 0};

    assert_true(yaml_where(part, &at[0], &at[1], NULL));
    assert_int_equal(at[0], line);
    assert_int_equal(at[1], column);
}

/* What a map holds is at its key, what a list holds at itself; an alias is at its key, and what is
 * in it at the anchor. */
static void test_places(void **state)
{
    json_object *tree = parse("# comment\na: {b: c}\nd:\n  e:   &x [f,\n    g]\n  h: *x\n");
    json_object *d, *e, *h, *other = json_object_new_string("");
    int line, column;

    assert_place(tree, 2, 1);
    assert_place(json_object_object_get(json_object_object_get(tree, "a"), "b"), 2, 5);
    d = json_object_object_get(tree, "d");
    assert_place(d, 3, 1);
    e = json_object_object_get(d, "e");
    assert_place(e, 4, 3);
    assert_place(json_object_array_get_idx(e, 0), 4, 12);
    assert_place(json_object_array_get_idx(e, 1), 5, 5);
    h = json_object_object_get(d, "h");
    assert_place(h, 6, 3);
    assert_place(json_object_array_get_idx(h, 1), 5, 5);
    assert_false(yaml_where(other, &line, &column, NULL));
    json_object_put(other);
    json_object_put(tree);

    tree = parse("{}");
    assert_place(tree, 1, 1);
    json_object_put(tree);

    /* A tree that json-c has made. */
    tree = json_tokener_parse("{\"a\": 1.5}");
    assert_false(yaml_where(tree, &line, &column, NULL));
    assert_false(yaml_where(json_object_object_get(tree, "a"), &line, &column, NULL));
    assert_false(yaml_where(NULL, &line, &column, NULL));
    json_object_put(tree);
}

static void assert_refused(const char *text, size_t len, const char *message)
{
    struct error err = {""};
    json_object *tree = yaml_parse(text, len, &err);

    if (tree != NULL)
        fail_msg("accepted: %s", text);
    assert_string_equal(err.text, message);
    assert_one_line(err.text);
    assert_null(yaml_parse(text, len, NULL));
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "1:1: there is nothing in it; write KEY: VALUE"},
        {"# only this\n", "1:1: there is nothing in it; write KEY: VALUE"},
        {"---\n", "2:1: there is nothing in it; write KEY: VALUE"},
        {"text\n", "1:1: a text, where keys and values should be: write KEY: VALUE"},
        {"- a\n", "1:1: a list, where keys and values should be: write KEY: VALUE"},
        {"a: 1\n---\nb: 1\n", "2:1: a second document begins; write one only"},
        {"a: 1\n...\nb: 1\n", "3:1: did not find expected <document start>"},
        {"a: 1\nb: 2\na: 3\n", "3:1: 'a' is there twice in one map; leave one of them out"},
        {"{\"a\": 1, \"a\": 2}", "1:10: 'a' is there twice in one map; leave one of them out"},
        {"a: {<<: {b: 1}}\n", "1:5: merge keys (<<) are not allowed; write the keys here, or use "
                              "a template"},
        {"a: &x {b: 1}\nc:\n  <<: *x\n", "3:3: merge keys (<<) are not allowed; write the keys "
                                         "here, or use a template"},
        {"a: !!int 1\n", "1:4: tags (!\xe2\x80\xa6) are not allowed; the key says what a value is"},
        {"a: !x [1]\n", "1:4: tags (!\xe2\x80\xa6) are not allowed; the key says what a value is"},
        {"!x {a: 1}\n", "1:1: tags (!\xe2\x80\xa6) are not allowed; the key says what a value is"},
        {"a:\nb: 1\n", "1:1: 'a' has no value; write one, or leave the key out"},
        {"a:\n  b: ~\n", "2:3: 'b' has no value; write one, or leave the key out"},
        {"{\"a\": null}", "1:2: 'a' has no value; write one, or leave the key out"},
        {"a: [b, null]\n", "1:8: a value is missing; write one, or \"null\" for that text"},
        {"? [a]\n: b\n", "1:3: a list or map as a key is not allowed; write a text"},
        {"a: &x b\n*x : c\n", "2:1: an alias as a key is not allowed; write the text"},
        {"&x a: b\n", "1:1: an anchor at a key is not allowed"},
        {"a: *x\n", "1:4: 'x' is no anchor of a value that is complete here"},
        {"a: &x [*x]\n", "1:8: 'x' is no anchor of a value that is complete here"},
        {"a: \"x\\0y\"\n", "1:4: a NUL byte (\\0) in a text is not allowed"},
        {"a: \xff\n", "1:4: a byte that is not UTF-8 (#xff); save the file as UTF-8"},
        {"\xff\xfe"
         "a",
         "1:1: a byte that is not UTF-8 (#xff); save the file as UTF-8"},
        {"a: \x01\n", "1:4: control characters are not allowed (#x01)"},
        {"a: [1\n", "2:1: did not find expected ',' or ']', while parsing a flow sequence"},
        {"a: b: c\n", "1:5: mapping values are not allowed in this context"},
        {"a: 1\n\tb: 2\n",
         "2:1: found a tab character that violates indentation, while scanning a plain scalar"},
        {"a: \"\\ud83d\"\n", "1:7: found invalid Unicode character escape code, while parsing a "
                             "quoted scalar"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].message);
    assert_refused("a: b\n\0", 6, "2:1: a NUL byte (#x00); it should be text");
}

static char *repeated(const char *begin, const char *part, int count, const char *end)
{
    size_t size = strlen(begin) + strlen(part) * (size_t)count + strlen(end) + 1;
    char *text = calloc(size, 1), *at;

    assert_non_null(text);
    at = stpcpy(text, begin);
    for (int i = 0; i < count; i++)
        at = stpcpy(at, part);
    strcpy(at, end);
    return text;
}

static void refused_free(char *text, const char *message)
{
    assert_refused(text, strlen(text), message);
    free(text);
}

static void test_limits(void **state)
{
    char *text = repeated("a: ", "[", 63, "");
    char *closed = repeated(text, "]", 63, "\n"), *large;
    json_object *tree = parse(closed);

    json_object_put(tree);
    free(text);
    free(closed);
    refused_free(repeated("a: ", "[", 64, "\n"),
                 "1:67: more than 64 lists and maps within each other");
    refused_free(repeated("a: ", "[", 900000, "\n"),
                 "1:67: more than 64 lists and maps within each other");
    /* With the map, its key and the list. */
    closed = repeated("a: [", "b,", YAML_NODES_MAX - 3, "]\n");
    json_object_put(parse(closed));
    free(closed);
    refused_free(repeated("a: [", "b,", YAML_NODES_MAX - 2, "]\n"),
                 "1:19999: more than 10000 values, with what aliases stand for; write fewer");
    large = repeated("a: ", "b", YAML_TEXT_MAX - 2, "");
    refused_free(large, "1:1: it has 1048577 bytes; allowed are 1048576");
}

/* Nine times nine times … of an alias: refused before it is made. */
static void test_growth(void **state)
{
    char text[2048] = "a: &a [x,x,x,x,x,x,x,x,x]\n";

    for (char c = 'b'; c <= 'i'; c++)
        text_append(text, sizeof(text), "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c,
                    c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1);
    assert_refused(text, strlen(text),
                   "5:8: more than 10000 values, with what aliases stand for; write fewer");

    text[0] = '\0';
    text_append(text, sizeof(text), "a: &a [x]\n");
    for (int i = 0; i < 70; i++)
        text_append(text, sizeof(text), "k%d: &a [*a]\n", i);
    assert_refused(text, strlen(text),
                   "64:10: an alias makes more than 64 lists and maps within each other");
}

static void test_anchors(void **state)
{
    char text[4096] = "";

    for (int i = 0; i < 101; i++)
        text_append(text, sizeof(text), "k%d: &a%d x\n", i, i);
    assert_refused(text, strlen(text), "101:7: more than 100 anchors; use fewer");
}

static void test_load(void **state)
{
    char path[] = "/tmp/test_yaml_file.XXXXXX", expected[128];
    int fd = mkstemp(path);
    struct error err = {""};
    json_object *tree;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a: 1\n", 5), 5);
    tree = yaml_load(path, &err);
    assert_non_null(tree);
    json_object_put(tree);
    assert_int_equal(write(fd, "a: 2\n", 5), 5);
    assert_null(yaml_load(path, &err));
    snprintf(expected, sizeof(expected),
             "%s:2:1: 'a' is there twice in one map; leave one of them out", path);
    assert_string_equal(err.text, expected);
    close(fd);
    unlink(path);
    assert_null(yaml_load(path, &err));
    assert_one_line(err.text);
    assert_non_null(strstr(err.text, path));
    assert_null(yaml_load("/", &err));
    assert_one_line(err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees),    cmocka_unit_test(test_places),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_growth),   cmocka_unit_test(test_anchors),
        cmocka_unit_test(test_load),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("yaml_file", tests, NULL, NULL);
}
