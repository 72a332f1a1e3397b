/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/snapshot: which state is newer, what a manifest may say, and the names of directories. */
#include "lib/snapshot.h"

#include <inttypes.h>

#include "tests/unit/support.h"

#define DIGEST "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define FILE_1 "{\"bytes\": 5, \"blake2b\": \"" DIGEST "\"}"
#define HEAD   "{\"format\": 1, \"incarnation\": \"12.0\", \"generation\": 3, \"step\": 1234, "
#define GOOD   HEAD "\"checkpoint\": \"/c\", \"files\": {\"state.pt\": " FILE_1 "}}"

static struct snapshot_key key(uint32_t restarts, int generation, int64_t step)
{
    return (struct snapshot_key){
        .job = 12, .restarts = restarts, .generation = generation, .step = step};
}

/* ---- order ----------------------------------------------------------------------------------- */

static void test_order(void **state)
{
    /* From the oldest to the newest. */
    const struct snapshot_key sorted[] = {
        key(0, 0, 0),
        key(0, 0, 1),
        key(0, 0, 1000),
        key(0, 0, SNAPSHOT_NO_STEP - 1),
        key(0, 0, SNAPSHOT_NO_STEP),
        key(0, 1, 0),
        key(0, 2, 5),
        key(0, INT32_MAX, 0),
        key(1, 0, 0),
        key(2, 0, SNAPSHOT_NO_STEP),
        key(UINT32_MAX, 0, 0),
    };

    (void)state;
    for (int i = 0; i < (int)COUNT(sorted); i++)
        for (int j = 0; j < (int)COUNT(sorted); j++) {
            int order = snapshot_key_compare(&sorted[i], &sorted[j]);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
            assert_int_equal(snapshot_key_covers(&sorted[i], &sorted[j]), i >= j);
        }
}

/* Whatever another job has written says nothing about this one's. */
static void test_other_job(void **state)
{
    struct snapshot_key mine = key(0, 1, 1), other = key(9, 9, 9);

    (void)state;
    assert_true(snapshot_key_covers(&other, &mine));
    other.job = 13;
    assert_false(snapshot_key_covers(&other, &mine));
    assert_false(snapshot_key_covers(&mine, &other));
}

static struct snapshot_key random_key(uint64_t *seed)
{
    return key(random_below(seed, 3), (int)random_below(seed, 3), (int64_t)random_below(seed, 4));
}

/* An order: of any three, too. */
static void test_random_order(void **state)
{
    uint64_t seed = 17;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct snapshot_key a = random_key(&seed), b = random_key(&seed), c = random_key(&seed);
        int64_t rank_a = a.restarts * 100 + a.generation * 10 + a.step;
        int64_t rank_b = b.restarts * 100 + b.generation * 10 + b.step;

        assert_int_equal(snapshot_key_compare(&a, &b) > 0, rank_a > rank_b);
        assert_int_equal(snapshot_key_compare(&a, &b) == 0, rank_a == rank_b);
        if (snapshot_key_compare(&a, &b) >= 0 && snapshot_key_compare(&b, &c) >= 0)
            assert_true(snapshot_key_compare(&a, &c) >= 0);
    }
}

/* ---- manifests ------------------------------------------------------------------------------- */

static struct snapshot *parse(const char *text, struct error *err)
{
    return snapshot_parse(text, strlen(text), err);
}

static void test_good_manifest(void **state)
{
    struct error err = {""};
    struct snapshot *snapshot = parse(GOOD, &err);

    (void)state;
    assert_non_null(snapshot);
    assert_int_equal(snapshot->key.job, 12);
    assert_int_equal(snapshot->key.restarts, 0);
    assert_int_equal(snapshot->key.generation, 3);
    assert_int_equal(snapshot->key.step, 1234);
    assert_string_equal(snapshot->checkpoint, "/c");
    assert_int_equal(snapshot->count, 1);
    assert_int_equal(snapshot->bytes, 5);
    assert_string_equal(snapshot->files[0].name, "state.pt");
    assert_int_equal(snapshot->files[0].digest[0], 0x00);
    assert_int_equal(snapshot->files[0].digest[1], 0x11);
    assert_int_equal(snapshot->files[0].digest[31], 0xff);
    snapshot_destroy(snapshot);
    snapshot_destroy(NULL);
}

#define WITH(files)     HEAD "\"checkpoint\": \"/c\", \"files\": " files "}"
#define TARGET(path)    HEAD "\"checkpoint\": " path ", \"files\": {\"a\": " FILE_1 "}}"
#define KEY(members)    "{" members "\"checkpoint\": \"/c\", \"files\": {\"a\": " FILE_1 "}}"
#define FORMAT1         "\"format\": 1, "
#define INCARNATION     "\"incarnation\": \"12.0\", "
#define GENERATION      "\"generation\": 3, "
#define STEP            "\"step\": 7, "
#define INCARNATED(how) KEY(FORMAT1 "\"incarnation\": " how ", " GENERATION STEP)

static void test_bad_manifests(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"", "nothing in it"},
        {"[]", "not a JSON object"},
        {"{}", "\"format\""},
        {GOOD "x", "behind the end"},
        {KEY(INCARNATION GENERATION STEP), "\"format\""},
        {KEY("\"format\": 2, " INCARNATION GENERATION STEP), "\"format\""},
        {KEY("\"format\": \"1\", " INCARNATION GENERATION STEP), "\"format\""},
        {KEY(FORMAT1 FORMAT1 INCARNATION GENERATION STEP), "there twice"},
        {KEY(FORMAT1 GENERATION STEP), "\"incarnation\""},
        {INCARNATED("12"), "\"incarnation\""},
        {INCARNATED("12.0"), "\"incarnation\""}, /* a number */
        {INCARNATED("\"12\""), "\"incarnation\""},
        {INCARNATED("\"12.\""), "\"incarnation\""},
        {INCARNATED("\".0\""), "\"incarnation\""},
        {INCARNATED("\"12.0.1\""), "\"incarnation\""},
        {INCARNATED("\"12.00\""), "\"incarnation\""},
        {INCARNATED("\"-1.0\""), "\"incarnation\""},
        {INCARNATED("\"12. 0\""), "\"incarnation\""},
        {INCARNATED("\"4294967296.0\""), "\"incarnation\""},
        {INCARNATED("\"99999999999999999999999.0\""), "\"incarnation\""},
        {INCARNATED("\"12.0\\u0000\""), "\"incarnation\""},
        {KEY(FORMAT1 INCARNATION STEP), "\"generation\""},
        {KEY(FORMAT1 INCARNATION "\"generation\": -1, " STEP), "\"generation\""},
        {KEY(FORMAT1 INCARNATION "\"generation\": 2147483648, " STEP), "\"generation\""},
        {KEY(FORMAT1 INCARNATION "\"generation\": 1.5, " STEP), "\"generation\""},
        {KEY(FORMAT1 INCARNATION GENERATION), "\"step\""},
        {KEY(FORMAT1 INCARNATION GENERATION "\"step\": -1, "), "\"step\""},
        {KEY(FORMAT1 INCARNATION GENERATION "\"step\": null, "), "\"step\""},
        /* No snapshot can say of itself that it is newer than all others. */
        {KEY(FORMAT1 INCARNATION GENERATION "\"step\": 9223372036854775807, "), "\"step\""},
        {KEY(FORMAT1 INCARNATION GENERATION "\"step\": 9223372036854775808, "), "\"step\""},
        {HEAD "\"files\": {\"a\": " FILE_1 "}}", "\"checkpoint\""},
        {TARGET("7"), "\"checkpoint\""},
        {TARGET("\"\""), "\"checkpoint\""},
        {TARGET("\"checkpoint\""), "\"checkpoint\""},
        {TARGET("\"../c\""), "\"checkpoint\""},
        {TARGET("\"/c\\u0000\""), "\"checkpoint\""},
        {HEAD "\"checkpoint\": \"/c\"}", "\"files\""},
        {WITH("{}"), "\"files\""},
        {WITH("[]"), "\"files\""},
        {WITH("[\"a\"]"), "\"files\""},
        {WITH("{\"\": " FILE_1 "}"), "file name"},
        {WITH("{\".\": " FILE_1 "}"), "file name"},
        {WITH("{\"..\": " FILE_1 "}"), "file name"},
        {WITH("{\".hidden\": " FILE_1 "}"), "file name"},
        {WITH("{\"/etc/passwd\": " FILE_1 "}"), "file name"},
        {WITH("{\"a/b\": " FILE_1 "}"), "file name"},
        {WITH("{\"a\\/..\": " FILE_1 "}"), "file name"},
        {WITH("{\"complete.json\": " FILE_1 "}"), "file name"},
        {WITH("{\"a\": " FILE_1 ", \"\\u0061\": " FILE_1 "}"), "there twice"},
        {WITH("{\"a\": 5}"), "\"bytes\""},
        {WITH("{\"a\": null}"), "\"bytes\""},
        {WITH("{\"a\": {\"blake2b\": \"" DIGEST "\"}}"), "\"bytes\""},
        {WITH("{\"a\": {\"bytes\": -1, \"blake2b\": \"" DIGEST "\"}}"), "\"bytes\""},
        {WITH("{\"a\": {\"bytes\": 9223372036854775807, \"blake2b\": \"" DIGEST "\"}}"),
         "\"bytes\""},
        {WITH("{\"a\": {\"bytes\": 5}}"), "\"blake2b\""},
        {WITH("{\"a\": {\"bytes\": 5, \"blake2b\": \"00\"}}"), "\"blake2b\""},
        {WITH("{\"a\": {\"bytes\": 5, \"blake2b\": \"" DIGEST "00\"}}"), "\"blake2b\""},
        {WITH("{\"a\": {\"bytes\": 5, \"blake2b\": \"g" DIGEST "\"}}"), "\"blake2b\""},
        {WITH("{\"a\": {\"bytes\": 5, \"blake2b\": 5}}"), "\"blake2b\""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct error err = {""};

        if (parse(bad[i].text, &err) != NULL || strstr(err.text, bad[i].says) == NULL)
            fail_msg("%s: %s", bad[i].text, err.text);
        assert_one_line(err.text);
    }
}

/* A manifest with so many files of so many bytes each; a new string. */
static char *many_files(int count, int64_t bytes)
{
    size_t size = 1000 + 200 * (size_t)count;
    char *text = calloc(1, size);

    strcpy(text, HEAD "\"checkpoint\": \"/c\", \"files\": {");
    for (int i = 0; i < count; i++) {
        size_t used = strlen(text);

        snprintf(text + used, size - used,
                 "%s\"f%d\": {\"bytes\": %" PRId64 ", \"blake2b\": \"" DIGEST "\"}",
                 i > 0 ? ", " : "", i, bytes);
    }
    strcat(text, "}}");
    return text;
}

static void test_how_many(void **state)
{
    static const struct {
        int count;
        int64_t bytes;
        bool ok;
    } cases[] = {
        {1, 0, true},
        {SNAPSHOT_FILES_MAX, 1, true},
        {SNAPSHOT_FILES_MAX + 1, 1, false},
        {1, SNAPSHOT_BYTES_MAX, true},
        {1, SNAPSHOT_BYTES_MAX + 1, false},
        {7, SNAPSHOT_BYTES_MAX, true},
        {8, SNAPSHOT_BYTES_MAX, false}, /* 2^63 in all */
        {SNAPSHOT_FILES_MAX, SNAPSHOT_BYTES_MAX, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};
        char *text = many_files(cases[i].count, cases[i].bytes);
        struct snapshot *snapshot = parse(text, &err);

        assert_int_equal(snapshot != NULL, cases[i].ok);
        if (snapshot != NULL)
            assert_int_equal(snapshot->bytes, cases[i].count * cases[i].bytes);
        snapshot_destroy(snapshot);
        free(text);
    }
}

/* One byte of it is another, or it ends early: refused, or all that is in it is within bounds. */
static void test_damaged_manifests(void **state)
{
    uint64_t seed = 23;
    int accepted = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[] = GOOD;
        size_t len = random_below(&seed, 8) > 0 ? sizeof(text) - 1
                                                : random_below(&seed, sizeof(text));
        struct error err = {""};
        struct snapshot *snapshot;

        if (len > 0)
            text[random_below(&seed, (uint32_t)len)] = (char)random_below(&seed, 256);
        snapshot = snapshot_parse(text, len, &err);
        if (snapshot == NULL) {
            assert_one_line(err.text);
            continue;
        }
        accepted++;
        assert_int_equal(snapshot->count, 1);
        assert_true(snapshot_file_name_ok(snapshot->files[0].name));
        assert_int_equal(snapshot->bytes, snapshot->files[0].bytes);
        assert_int_equal(snapshot->checkpoint[0], '/');
        snapshot_destroy(snapshot);
    }
    assert_true(accepted > 100);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static void test_becomes_a_checkpoint(void **state)
{
    const char text[] = HEAD "\"checkpoint\": \"/c\", \"files\": {\"state.pt\": " FILE_1
                             ", \"\xc3\xa4 \\\"\\n\": " FILE_1 "}}";
    struct snapshot *snapshot = parse(text, NULL);
    char *manifest = snapshot_checkpoint_manifest(snapshot);
    struct snapshot_key read;
    json_object *files, *root;

    (void)state;
    assert_string_equal(
        manifest, "{\"format\":1,\"incarnation\":\"12.0\",\"generation\":3,\"step\":1234,"
                  "\"files\":{\"state.pt\":5,\"\xc3\xa4 \\\"\\n\":5},"
                  "\"blake2b\":{\"state.pt\":\"" DIGEST "\",\"\xc3\xa4 \\\"\\n\":\"" DIGEST "\"}}");
    root = snapshot_parse_checkpoint(manifest, strlen(manifest), &read, &files, NULL);
    assert_non_null(root);
    assert_true(read.job == 12 && snapshot_key_compare(&read, &snapshot->key) == 0);
    assert_int_equal(json_object_object_length(files), 2);
    json_object_put(root);
    free(manifest);
    snapshot_destroy(snapshot);
}

static void test_checkpoints(void **state)
{
    static const struct {
        const char *text;
        int64_t step; /* -1: refused */
    } cases[] = {
        {"{" FORMAT1 INCARNATION GENERATION "\"files\": {\"state.pt\": 5}}", SNAPSHOT_NO_STEP},
        {"{" FORMAT1 INCARNATION GENERATION STEP "\"files\": {\"shards/0\": 5}}", 7},
        {"{" FORMAT1 INCARNATION GENERATION "\"step\": \"7\", \"files\": {\"a\": 5}}", -1},
        {"{" FORMAT1 INCARNATION GENERATION "\"files\": {}}", -1},
        {"{" FORMAT1 INCARNATION GENERATION "\"files\": [5]}", -1},
        {"{" FORMAT1 INCARNATION GENERATION STEP "\"file\": {\"a\": 5}}", -1},
        /* By no elastic job: it says nothing about one. */
        {"{" FORMAT1 "\"incarnation\": null, \"generation\": 0, \"files\": {\"a\": 5}}", -1},
        {"{\"format\": 1, \"files\": {\"a\": 5}}", -1},
        {"{\"format\": 2, " INCARNATION GENERATION "\"files\": {\"a\": 5}}", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};
        struct snapshot_key read = {.step = -1};
        json_object *files = NULL, *root;

        root = snapshot_parse_checkpoint(cases[i].text, strlen(cases[i].text), &read, &files, &err);
        assert_int_equal(root != NULL, cases[i].step >= 0);
        if (root != NULL)
            assert_true(read.step == cases[i].step && read.job == 12 && files != NULL);
        else
            assert_one_line(err.text);
        json_object_put(root);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_run_names(void **state)
{
    static const char *const bad[] = {"",
                                      "elastic",
                                      "elastic-",
                                      "elastic-1-2.3",
                                      "elastic-1-2.3-",
                                      "elastic-1-2-n",
                                      "-1-2.3-n",
                                      "elastic-x-2.3-n",
                                      "elastic-1-2.x-n",
                                      "elastic--1-2.3-n",
                                      "elastic-01-2.3-n",
                                      "elastic-1-2.03-n",
                                      "elastic-4294967295-2.3-n",
                                      "elastic-4294967296-2.3-n",
                                      "elastic-1-2.3-n\n",
                                      "elastic-1-2.3-a b",
                                      "elastic-1-2.3-a/b",
                                      "elastic-1-2.3-\xc3\xa4",
                                      "Elastic-1-2.3-n"};
    struct snapshot_run run = {0};
    struct error err = {""};
    char longest[32 + SNAPSHOT_NODE_MAX] = "elastic-1-2.3-";

    (void)state;
    assert_int_equal(snapshot_run_parse("elastic-1000-4294967295.7-gpu-01.site_b", &run, &err), 0);
    assert_int_equal(run.uid, 1000);
    assert_true(run.job == 4294967295 && run.restarts == 7);
    assert_string_equal(run.node, "gpu-01.site_b");
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (snapshot_run_parse(bad[i], &run, &err) == 0)
            fail_msg("'%s' is taken for a run directory", bad[i]);
        assert_one_line(err.text);
    }
    memset(longest + strlen(longest), 'n', SNAPSHOT_NODE_MAX);
    assert_int_equal(snapshot_run_parse(longest, &run, &err), 0);
    longest[strlen(longest)] = 'n';
    assert_int_equal(snapshot_run_parse(longest, &run, &err), -1);
}

static void test_file_names(void **state)
{
    char name[300] = "";

    (void)state;
    assert_true(snapshot_file_name_ok("state.pt"));
    assert_true(snapshot_file_name_ok("two\nlines"));
    assert_true(snapshot_file_name_ok("-rf"));
    assert_true(snapshot_file_name_ok("complete.json~"));
    memset(name, 'x', 255);
    assert_true(snapshot_file_name_ok(name));
    name[255] = 'x';
    assert_false(snapshot_file_name_ok(name));
}

static void test_directory_names(void **state)
{
    const struct snapshot_key largest = {
        .job = UINT32_MAX,
        .restarts = UINT32_MAX,
        .generation = INT32_MAX,
        .step = SNAPSHOT_NO_STEP - 1,
    };
    const struct snapshot_key small = key(0, 3, 1234);
    char name[SNAPSHOT_NAME_SIZE], node[SNAPSHOT_NODE_MAX + 1] = "";

    (void)state;
    snapshot_flushed_name(name, &small, "n1");
    assert_string_equal(name, ".flushed-12.0.3.1234-n1");
    assert_true(snapshot_is_checkpoint_name(name));
    assert_true(snapshot_is_flushed_name(name, 12));
    assert_false(snapshot_is_flushed_name(name, 1));
    assert_false(snapshot_is_flushed_name(name, 0));
    assert_int_equal(snapshot_flushing_pid(name, "n1"), 0);
    snapshot_flushing_name(name, &small, "n1", 77);
    assert_string_equal(name, ".flushing-12.0.3.1234-n1-77");
    assert_false(snapshot_is_checkpoint_name(name));
    assert_int_equal(snapshot_flushing_pid(name, "n1"), 77);
    assert_int_equal(snapshot_flushing_pid(name, "n"), 0);
    assert_int_equal(snapshot_flushing_pid(name, "n11"), 0);
    snapshot_other_name(name, 0xab);
    assert_string_equal(name, ".flushing-12.0.3.1234-n1-77+000000ab");
    snapshot_other_name(name, UINT32_MAX);
    assert_string_equal(name, ".flushing-12.0.3.1234-n1-77+ffffffff");
    assert_int_equal(snapshot_flushing_pid(name, "n1"), 77);
    assert_true(snapshot_is_flushing_name(name, 12, 1));
    assert_false(snapshot_is_flushing_name(name, 12, 0));
    assert_false(snapshot_is_flushing_name(name, 1, 1));
    assert_false(snapshot_is_flushing_name(".flushed-12.0.3.1234-n1", 12, 1));
    assert_false(snapshot_is_flushing_name(".flushing-12.0", 12, 1));
    /* The longest is whole. */
    memset(node, 'n', SNAPSHOT_NODE_MAX);
    snapshot_flushing_name(name, &largest, node, INT32_MAX);
    assert_int_equal(snapshot_flushing_pid(name, node), INT32_MAX);
    snapshot_other_name(name, 1);
    assert_int_equal(snapshot_flushing_pid(name, node), INT32_MAX);
}

static void test_other_directory_names(void **state)
{
    static const char *const no_temporary[] = {"",
                                               ".flushing-",
                                               ".flushing-12.0.3.1-n1",
                                               ".flushing-12.0.3.1-n1-",
                                               ".flushing-12.0.3.1-n1-0",
                                               ".flushing-12.0.3.1-n1--5",
                                               ".flushing-12.0.3.1-n1-5x",
                                               ".flushing-12.0.3.1-n1-5+",
                                               ".flushing-12.0.3.1-n1-5+000000ag",
                                               ".flushing-12.0.3.1-n1-5+0000000ab",
                                               ".flushing-12.0.3.1-n1-+000000ab",
                                               ".flushing-12.0.3-n1-5",
                                               ".flushing-12.0.3.1-n1-99999999999",
                                               ".flushing-12.x.3.1-n1-5",
                                               ".flushing-12.0.3.1-n2-n1-5 "};
    static const char *const no_checkpoint[] = {"", "latest", "1a", "-1", ".new-1", "1 "};

    (void)state;
    for (size_t i = 0; i < COUNT(no_temporary); i++)
        assert_int_equal(snapshot_flushing_pid(no_temporary[i], "n1"), 0);
    for (size_t i = 0; i < COUNT(no_checkpoint); i++)
        assert_false(snapshot_is_checkpoint_name(no_checkpoint[i]));
    assert_true(snapshot_is_checkpoint_name("00000012"));
    assert_int_equal(snapshot_checkpoint_number("00000012"), 12);
    assert_int_equal(snapshot_checkpoint_number("999999999999999999"), 999999999999999999);
    assert_int_equal(snapshot_checkpoint_number("9999999999999999999"), INT64_MAX);
    assert_int_equal(snapshot_checkpoint_number("0000000000000000000000001"), 1);
    assert_int_equal(snapshot_checkpoint_number("1a"), -1);
    assert_int_equal(snapshot_checkpoint_number(".flushed-12.0.3.1-n1"), -1);
    assert_int_equal(snapshot_flushing_pid(".flushing-12.0.3.1-a-1-5", "a-1"), 5);
    /* Of the node "a" it would be the process "1-5". */
    assert_int_equal(snapshot_flushing_pid(".flushing-12.0.3.1-a-1-5", "a"), 0);
}

static void test_parts(void **state)
{
    static const struct {
        const char *path, *base;
    } examples[] = {
        {"/a/b/.parts/n1", "/a/b"},
        {"/.parts/.parts/n1", "/.parts"},
        {"/a/b/.parts/n11", NULL},
        {"/a/b/.parts/n", NULL},
        {"/a/b/.parts/n1/", NULL},
        {"/a/b/x.parts/n1", NULL},
        {"/a/b/.parts-0123abcd/n1", NULL},
        {"/.parts/n1", NULL},
        {".parts/n1", NULL},
        {"n1", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(examples); i++) {
        char *base = NULL;

        assert_int_equal(snapshot_is_parts_path(examples[i].path, "n1", &base),
                         examples[i].base != NULL);
        if (examples[i].base != NULL)
            assert_string_equal(base, examples[i].base);
        else
            assert_null(base);
        free(base);
    }
    assert_true(snapshot_is_parts_name(".parts"));
    assert_true(snapshot_is_parts_name(".parts-0123abcd"));
    for (const char *const *name =
             (const char *[]){"", "parts", ".parts-", ".parts-0123abc", ".parts-0123abcde",
                              ".parts-0123ABCD", ".partsx", NULL};
         *name != NULL; name++)
        assert_false(snapshot_is_parts_name(*name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_other_job),
        cmocka_unit_test(test_random_order),
        cmocka_unit_test(test_good_manifest),
        cmocka_unit_test(test_bad_manifests),
        cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_damaged_manifests),
        cmocka_unit_test(test_becomes_a_checkpoint),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_run_names),
        cmocka_unit_test(test_file_names),
        cmocka_unit_test(test_directory_names),
        cmocka_unit_test(test_other_directory_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
