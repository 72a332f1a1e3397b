/* SPDX-License-Identifier: GPL-2.0-or-later */
/* selastic topology: the file of shapes, answers of nodes, and who is odd. */
#include "tests/unit/support.h"

#include <stdbool.h>

#include "cmd/machine_find.h"
#include "cmd/node_answers.h"
#include "cmd/topology_check.h"
#include "lib/text.h"

/* ---- hostlists, as simple as these tests need them ------------------------------------------- */

static char *join(char *const *names, int count)
{
    char text[4096] = "";

    for (int i = 0; i < count; i++)
        text_append(text, sizeof(text), "%s%s", i > 0 ? "," : "", names[i]);
    return strdup(text);
}

static char **split(const char *text)
{
    char **names = calloc(64, sizeof(*names)), *copy = strdup(text), *rest = NULL;
    int count = 0;

    for (char *name = strtok_r(copy, ",", &rest); name != NULL && count < 63;
         name = strtok_r(NULL, ",", &rest))
        names[count++] = strdup(name);
    free(copy);
    return names;
}

/* hwloc takes milliseconds to make one up, and they are asked for thousands of times. */
static struct machine machine_of(const char *synthetic)
{
    static struct {
        const char *synthetic;
        struct machine machine;
    } known[4];
    size_t i = 0;

    while (known[i].synthetic != NULL && strcmp(known[i].synthetic, synthetic) != 0)
        i++;
    assert_true(i < COUNT(known) - 1);
    if (known[i].synthetic == NULL) {
        assert_int_equal(machine_find(synthetic, &known[i].machine, NULL), 0);
        known[i].synthetic = synthetic;
    }
    return known[i].machine;
}

#define SMALL "pack:1 core:4 pu:1"
#define LARGE "pack:2 core:8 pu:1"
#define OTHER "pack:2 core:8 pu:2"

static void set(struct topology_map *map, const char *node, const char *synthetic)
{
    struct machine machine = machine_of(synthetic);

    topology_map_set(map, node, &machine);
}

static const char *cores_of(const struct topology_map *map, const char *node)
{
    const struct topology_shape *shape = topology_map_find(map, node);
    static char text[16];

    snprintf(text, sizeof(text), "%d", shape != NULL ? shape->machine.cores : -1);
    return text;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void test_file_both_ways(void **state)
{
    struct topology_map map = {0}, back = {0};
    struct error err = {""};
    char *text, *again;

    (void)state;
    set(&map, "n10", LARGE);
    set(&map, "n2", SMALL);
    set(&map, "n1", LARGE);
    set(&map, "n3", OTHER);
    set(&map, "n3", SMALL); /* it has been changed: nobody has the other shape now */
    assert_int_equal(map.entry_count, 4);
    assert_string_equal(map.entries[0].node, "n1");
    assert_string_equal(map.entries[3].node, "n10");
    text = topology_map_format(&map, join);
    assert_non_null(strstr(text, "\"format\":1"));
    assert_non_null(strstr(text, "\"n1,n10\":\"2x8c-"));
    assert_non_null(strstr(text, "\"n2,n3\":\"1x4c-"));
    if (topology_map_parse(&back, text, strlen(text), split, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(back.shape_count, 2);
    assert_string_equal(cores_of(&back, "n1"), "16");
    assert_string_equal(cores_of(&back, "n3"), "4");
    assert_string_equal(cores_of(&back, "n4"), "-1");
    again = topology_map_format(&back, join);
    assert_string_equal(again, text);
    free(text);
    free(again);
    topology_map_clear(&map);
    topology_map_clear(&back);
}

static void test_file_of_many(void **state)
{
    struct topology_map map = {0};
    uint64_t seed = 77;
    char node[16];

    (void)state;
    for (int i = 0; i < 3000; i++) {
        snprintf(node, sizeof(node), "n%u", random_below(&seed, 1000));
        set(&map, node, random_below(&seed, 2) ? SMALL : LARGE);
    }
    assert_int_equal(map.shape_count, 2);
    for (int i = 1; i < map.entry_count; i++)
        assert_true(strverscmp(map.entries[i - 1].node, map.entries[i].node) < 0);
    topology_map_clear(&map);
}

static void test_file_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "not a file of shapes: 'format' is not 1"},
        {"{\"format\":2,\"shapes\":{},\"nodes\":{}}", "not a file of shapes: 'format' is not 1"},
        {"{\"format\":1,\"nodes\":{}}", "'shapes' and 'nodes' must be objects"},
        {"{\"format\":1,\"shapes\":[],\"nodes\":{}}", "'shapes' and 'nodes' must be objects"},
        {"{\"format\":1,\"shapes\":{\"a b\":{}},\"nodes\":{}}", "'a b' is not the name of a shape"},
        {"{\"format\":1,\"shapes\":{\"a\":{\"cores\":-2}},\"nodes\":{}}",
         "shape a: 'cores' is not a whole number from 0 to 65536"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n1\":\"b\"}}",
         "nodes 'n1': there is no description of their shape"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n1\":3}}",
         "nodes 'n1': there is no description of their shape"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n1,n2,n1\":\"a\"}}",
         "node n1 is there twice"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n 1\":\"a\"}}",
         "'n 1' is not the name of a node"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct topology_map map = {0};
        struct error err = {""};

        assert_int_equal(
            topology_map_parse(&map, cases[i].text, strlen(cases[i].text), split, &err), -1);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(map.entry_count, 0);
        assert_null(map.shapes);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

/* What a node prints, line by line. */
static char **lines_of(const char *node, const struct machine *machine)
{
    char *text = NULL, *rest = NULL, **lines = calloc(128, sizeof(*lines));
    size_t size;
    FILE *out = open_memstream(&text, &size);
    json_object *json;
    int count = 0;

    json = machine_to_json(machine);
    node_answer_print(out, node, json);
    json_object_put(json);
    fclose(out);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_true(strlen(line) < 1000);
        lines[count++] = strdup(line);
    }
    free(text);
    return lines;
}

/* So different in each domain that it takes several lines. */
static struct machine long_machine(void)
{
    struct machine machine = machine_of(OTHER);

    machine.domain_count = 40;
    for (int i = 0; i < machine.domain_count; i++)
        machine.domains[i] = (struct machine_domain){i, 2 * i, 1024 + i % 3 * 1024};
    machine_reduce(&machine);
    return machine;
}

static int take_machine(void *owner, const char *node, json_object *answer, struct error *err)
{
    struct machine machine;

    if (machine_from_json(answer, &machine, err) < 0)
        return -1;
    topology_map_set(owner, node, &machine);
    return 0;
}

static void test_answers(void **state)
{
    char *nodes[] = {"n10", "n2", "n3", "n4", "n5", NULL};
    struct machine machine = long_machine(), small = machine_of(SMALL);
    char **first = lines_of("n2", &machine), **second = lines_of("n10", &machine);
    char **third = lines_of("n4", &small);
    struct node_answers answers;
    struct topology_map map = {0};

    (void)state;
    node_answers_begin(&answers, nodes, 5, take_machine, &map);
    assert_non_null(first[1]);
    node_answers_take(&answers, "a line of the site's own prolog");
    node_answers_take(&answers, "elastic-node n99 1/1 {}");
    node_answers_take(&answers, "elastic-node ");
    node_answers_take(&answers, "elastic-node n3 1/0 {}");
    node_answers_take(&answers, "elastic-node n3 x");
    node_answers_take(&answers, "elastic-node n3 1/1 {\"cores\":-1}");
    node_answers_take(&answers, "elastic-node n5 error hwloc: no");
    /* Two nodes speak at once; one is cut off. */
    for (int i = 0; first[i] != NULL; i++) {
        node_answers_take(&answers, first[i]);
        if (i != 1)
            node_answers_take(&answers, second[i]);
    }
    node_answers_take(&answers, third[0]);
    assert_true(node_answers_find(&answers, "n2")->answered);
    assert_true(node_answers_find(&answers, "n4")->answered);
    assert_false(node_answers_find(&answers, "n10")->answered);
    assert_string_equal(node_answers_find(&answers, "n3")->reason,
                        "'cores' is not a whole number from 0 to 65536");
    assert_string_equal(node_answers_find(&answers, "n5")->reason, "hwloc: no");
    node_answer_fail(node_answers_find(&answers, "n5"), "no answer");
    assert_string_equal(node_answers_find(&answers, "n5")->reason, "hwloc: no");
    node_answer_fail(node_answers_find(&answers, "n2"), "no answer");
    assert_null(node_answers_find(&answers, "n2")->reason);
    assert_null(node_answers_find(&answers, "n99"));
    assert_int_equal(map.entry_count, 2);
    assert_int_equal(topology_map_find(&map, "n2")->machine.domain_count, 40);
    node_answers_clear(&answers);
    topology_map_clear(&map);
    strings_free(first);
    strings_free(second);
    strings_free(third);
}

/* ---- who is odd ------------------------------------------------------------------------------ */

#define PEERS_MAX 32

/* "n1:s p b n2:…" as "NODE:SHAPE:KIND:PARTITIONS:LEAF": shape s, l or o, "-" for none; the text
 * of the check. */
static char *check(const char *nodes, bool *odd)
{
    struct topology_peer peers[PEERS_MAX];
    struct topology_map map = {0};
    char *copy = strdup(nodes), *rest = NULL, *text;
    json_object *found;
    int count = 0;

    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *parts = NULL, *fields[5];

        for (int i = 0; i < 5; i++)
            fields[i] = strtok_r(i == 0 ? word : NULL, ":", &parts);
        peers[count++] = (struct topology_peer){fields[0], fields[2], fields[3],
                                                fields[4] != NULL ? fields[4] : ""};
        if (fields[1][0] != '-')
            set(&map, fields[0], fields[1][0] == 's' ? SMALL : fields[1][0] == 'l' ? LARGE : OTHER);
    }
    found = topology_check(&map, peers, count, join);
    *odd = topology_check_odd(found);
    text = topology_check_text(found);
    json_object_put(found);
    topology_map_clear(&map);
    free(copy);
    return text;
}

static void test_check(void **state)
{
    /* The names of shapes end in a hash: "~" stands for it. */
    static const struct {
        const char *nodes;
        bool odd;
        const char *text;
    } cases[] = {
        {"", false, "nodes that should be alike are\n"},
        {"n1:s:k:p:a n2:s:k:p:a n3:s:k:p:b", false, "nodes that should be alike are\n"},
        {"n1:s:k:p:a n2:s:k:p:a n3:-:k:p:b", false,
         "nodes that should be alike are\nnot collected yet: n3\n"},
        /* another kind may be different */
        {"n1:s:k:p:a n2:s:k:p:a n3:l:j:p:a", false, "nodes that should be alike are\n"},
        /* one of three on a leaf */
        {"n1:s:k:p:a n2:l:k:p:a n3:s:k:p:a", true,
         "n2: 2x8c-1g~, unlike 2 of 3 nodes (switch a, partitions p), which are 1x4c-1g~\n"},
        /* two racks, each of its own make */
        {"n1:s:k:p:a n2:s:k:p:a n3:s:k:p:a n4:l:k:p:b n5:l:k:p:b n6:l:k:p:b", false,
         "nodes that should be alike are\n"},
        /* alone on its leaf: those of the partition say */
        {"n1:s:k:p:a n2:s:k:p:a n3:s:k:p:a n4:l:k:p:b", true,
         "n4: 2x8c-1g~, unlike 3 of 4 nodes (partitions p), which are 1x4c-1g~\n"},
        /* alone in its partition: all of its kind say */
        {"n1:s:k:p:a n2:s:k:p:a n3:s:k:p:a n4:l:k:q:b", true,
         "n4: 2x8c-1g~, unlike 3 of 4 nodes (all that Slurm has configured alike), which are "
         "1x4c-1g~\n"},
        /* without a tree */
        {"n1:s:k:p n2:l:k:p n3:s:k:p", true,
         "n2: 2x8c-1g~, unlike 2 of 3 nodes (partitions p), which are 1x4c-1g~\n"},
        /* one to one */
        {"n1:s:k:p:a n2:l:k:p:a", true,
         "configured alike, but no shape is usual:\n    n1: 1x4c-1g~\n    n2: 2x8c-1g~\n"},
        {"n1:s:k:p:a n2:l:k:p:a n3:o:k:p:a n4:o:k:p:a", true,
         "configured alike, but no shape is usual:\n    n3,n4: 2x8c-1g~\n    n1: 1x4c-1g~\n"
         "    n2: 2x8c-1g~\n"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool odd;
        char *text = check(cases[i].nodes, &odd), plain[2048] = "", *rest = NULL;

        /* Without hashes, and without the differences, which test_machine knows. */
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            if (strstr(line, " instead of ") != NULL || strstr(line, "unlike the first") != NULL)
                continue;
            for (char *s = line, *dash; *s != '\0'; s++) {
                dash = *s == 'g' && s[1] == '-' ? s + 1 : NULL;
                text_append(plain, sizeof(plain), "%c%s", *s, dash ? "~" : "");
                s += dash ? 7 : 0;
            }
            text_append(plain, sizeof(plain), "\n");
        }
        assert_string_equal(plain, cases[i].text);
        assert_int_equal(odd, cases[i].odd);
        free(text);
    }
}

/* Whatever there is: who has the shape that more than half of its leaf's nodes have is never
 * odd, and with one shape nobody is. */
static void test_check_any(void **state)
{
    uint64_t seed = 4711;

    (void)state;
    for (int round = 0; round < 300; round++) {
        char nodes[2048] = "", node[16];
        int count = 1 + (int)random_below(&seed, 16), shapes = 1 + (int)random_below(&seed, 3);
        int with[2][3] = {{0}}, shape_of[PEERS_MAX], leaf_of[PEERS_MAX];
        bool odd;
        char *text;

        for (int i = 0; i < count; i++) {
            shape_of[i] = (int)random_below(&seed, (uint32_t)shapes);
            leaf_of[i] = (int)random_below(&seed, 2);
            with[leaf_of[i]][shape_of[i]]++;
            text_append(nodes, sizeof(nodes), "n%d:%c:k:p:%c ", i + 1, "slo"[shape_of[i]],
                        'a' + leaf_of[i]);
        }
        text = check(nodes, &odd);
        if (shapes == 1)
            assert_false(odd);
        for (int i = 0; i < count; i++) {
            int *on = with[leaf_of[i]], all = on[0] + on[1] + on[2];

            snprintf(node, sizeof(node), "n%d: ", i + 1);
            if (all >= 3 && on[shape_of[i]] * 2 > all) {
                char *at = strstr(text, node);

                assert_true(at == NULL || (at != text && at[-1] != '\n'));
            }
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_both_ways), cmocka_unit_test(test_file_of_many),
        cmocka_unit_test(test_file_refused),   cmocka_unit_test(test_answers),
        cmocka_unit_test(test_check),          cmocka_unit_test(test_check_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
