/* SPDX-License-Identifier: GPL-2.0-or-later */
/* doc/user/roles.md against the table of keys (lib/role_keys.h): it has each key as the table says
 * it, and no other, and its job files are accepted.
 *
 * "test_roles_keys --print" prints the tables as the page must have them. */
#include <stdbool.h>

#include "common/yaml_file.h"
#include "lib/role_time.h"
#include "lib/roles_private.h"
#include "lib/text.h"
#include "tests/unit/support.h"

#define ROW_MAX 1024

static char *page;

static const struct {
    enum roles_place place;
    const char *heading;
} sections[] = {
    {ROLES_PLACE_JOB, "## Keys of the job"},      {ROLES_PLACE_ROLE, "## Keys of a role"},
    {ROLES_PLACE_READY, "### Keys of ready"},     {ROLES_PLACE_DRAIN, "### Keys of drain"},
    {ROLES_PLACE_RESTART, "### Keys of restart"}, {ROLES_PLACE_UPDATE, "### Keys of update"},
    {ROLES_PLACE_SCALE, "### Keys of scale"},     {ROLES_PLACE_MODELS, "### Keys of models"},
    {ROLES_PLACE_FIT, "### Keys of fit"},         {ROLES_PLACE_WITHIN, "### Keys of within"},
};

static int set_up(void **state)
{
    page = read_tree_file("doc/user/roles.md");
    return 0;
}

static int tear_down(void **state)
{
    free(page);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *probe_values(const struct role_key *key)
{
    switch (key->probe) {
    case ROLE_PROBE_HTTP:
        return "a path";
    case ROLE_PROBE_FILE:
        return "a file";
    case ROLE_PROBE_EXEC:
        return "a list";
    default:
        return "`yes`";
    }
}

static void append_words(const struct role_key *key, char *row)
{
    for (int i = 0; i < ROLES_WORDS_MAX && key->words[i] != NULL; i++)
        text_append(row, ROW_MAX, "%s`%s`", i > 0 ? ", " : "", key->words[i]);
}

static const char *fixed_values(const struct role_key *key)
{
    switch (key->kind) {
    case ROLES_KIND_MEMORY:
        return "such as 512M, 3G";
    case ROLES_KIND_YES_NO:
        return "`yes`, `no`";
    case ROLES_KIND_LABEL:
    case ROLES_KIND_NAME:
    case ROLES_KIND_TEMPLATE:
        return "a name";
    case ROLES_KIND_PATH:
        return "a path";
    case ROLES_KIND_ROUTE_BY:
        return "as `--route-by`";
    case ROLES_KIND_POOL:
        return "a pool";
    case ROLES_KIND_COMMAND:
        return "a list";
    case ROLES_KIND_SIGNAL:
        return "a signal";
    case ROLES_KIND_BUDGET:
        return "N or N/SECONDS";
    case ROLES_KIND_PAUSES:
        return "FIRST..MOST";
    case ROLES_KIND_ROLE_NAMES:
        return "a list of roles";
    case ROLES_KIND_PROBE:
        return probe_values(key);
    case ROLES_KIND_AMOUNT:
        return "a number, or a percentage such as 50%";
    case ROLES_KIND_NOT_BUILT:
        return "none yet";
    default:
        return "a map";
    }
}

static void append_values(const struct role_key *key, char *row)
{
    switch (key->kind) {
    case ROLES_KIND_VERSION:
        text_append(row, ROW_MAX, "%d", key->max);
        break;
    case ROLES_KIND_NUMBER:
        text_append(row, ROW_MAX, "%d to %d", key->min, key->max);
        break;
    case ROLES_KIND_RANGE:
        text_append(row, ROW_MAX, "N or MIN:MAX, %d to %d", key->min, key->max);
        break;
    case ROLES_KIND_SHARDS:
        text_append(row, ROW_MAX, "N or 1:N, %d to %d", key->min, key->max);
        break;
    case ROLES_KIND_TIME:
        text_append(row, ROW_MAX, "such as %s", role_time_examples(key->min));
        break;
    case ROLES_KIND_FLAG:
    case ROLES_KIND_WORD:
        append_words(key, row);
        break;
    case ROLES_KIND_NAMES:
        text_append(row, ROW_MAX, "a list of up to %d names", key->max);
        break;
    case ROLES_KIND_POOLS:
        text_append(row, ROW_MAX, "a list of up to %d pools", key->max);
        break;
    default:
        text_append(row, ROW_MAX, "%s", fixed_values(key));
        break;
    }
}

static void append_default(const struct role_key *key, char *row)
{
    if (key->required)
        text_append(row, ROW_MAX, "must be there");
    else
        text_append(row, ROW_MAX, "%s", key->builtin != NULL ? key->builtin : "\xe2\x80\x93");
    if (key->builtin_world != NULL && key->world)
        text_append(row, ROW_MAX, "; of a world %s", key->builtin_world);
}

/* "| `cpus` * | 0 to 65535 | 1; of a world 0 | CPUs of a task. ... |" */
static const char *row_of(const struct role_key *key, char row[ROW_MAX])
{
    bool world = key->place == ROLES_PLACE_ROLE && (key->world || key->only_world);

    row[0] = '\0';
    text_append(row, ROW_MAX, "| `%s`%s | ", key->name, world ? " *" : "");
    append_values(key, row);
    text_append(row, ROW_MAX, " | ");
    append_default(key, row);
    return text_append(row, ROW_MAX, " | %s |", key->help);
}

static void print_tables(void)
{
    char row[ROW_MAX];

    for (size_t i = 0; i < COUNT(sections); i++) {
        printf("%s\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
               sections[i].heading);
        for (const struct role_key *key = role_keys; key->name != NULL; key++) {
            if (key->place == sections[i].place)
                printf("%s\n", row_of(key, row));
        }
        printf("\n");
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

/* From a heading to the next one. */
static const char *section(const char *heading, size_t *len)
{
    char line[64] = "";
    const char *begin, *end;

    text_append(line, sizeof(line), "\n%s\n", heading);
    begin = strstr(page, line);
    if (begin == NULL)
        fail_msg("doc/user/roles.md has no '%s'", heading);
    begin += strlen(line);
    end = strstr(begin, "\n#");
    *len = end != NULL ? (size_t)(end - begin) : strlen(begin);
    return begin;
}

static void test_rows(void **state)
{
    char row[ROW_MAX];

    for (size_t i = 0; i < COUNT(sections); i++) {
        size_t len, rows = 0, found = 0;
        const char *begin = section(sections[i].heading, &len);

        for (const char *at = begin; at != NULL && at < begin + len; at = strchr(at, '\n')) {
            at += *at == '\n' ? 1 : 0;
            found += strncmp(at, "| `", 3) == 0 ? 1 : 0;
        }
        for (const struct role_key *key = role_keys; key->name != NULL; key++) {
            const char *at;

            if (key->place != sections[i].place)
                continue;
            rows++;
            at = strstr(begin, row_of(key, row));
            if (at == NULL || at > begin + len)
                fail_msg("below '%s' of doc/user/roles.md is missing: %s", sections[i].heading,
                         row);
        }
        assert_int_equal(found, rows);
    }
}

static bool no_template(const char *name, void *arg)
{
    (void)name;
    (void)arg;
    return false;
}

static json_object *any_template(const char *name, void *arg, struct error *err)
{
    return json_tokener_parse("{\"run\": [\"program\"]}");
}

/* Each block of YAML with roles in it is a whole file. */
static void test_files(void **state)
{
    static const char mark[] = "\n```yaml\n";
    int files = 0;

    for (const char *at = strstr(page, mark); at != NULL; at = strstr(at, mark)) {
        const char *end = strstr(at + strlen(mark), "\n```\n");
        struct error err = {""};
        struct roles *roles;
        json_object *tree;

        at += strlen(mark);
        assert_non_null(end);
        tree = yaml_parse(at, (size_t)(end - at) + 1, &err);
        assert_string_equal(err.text, "");
        if (json_object_object_get_ex(tree, "roles", NULL)) {
            roles_use_templates(tree, yaml_where, NULL, any_template, no_template, NULL, &err);
            roles = roles_create(tree, yaml_where, NULL, &err);
            assert_string_equal(err.text, "");
            roles_destroy(roles);
            files++;
        }
        json_object_put(tree);
        at = end;
    }
    assert_true(files >= 2);
}

/* The table itself: what its rows say fits together. */
static void test_table(void **state)
{
    for (const struct role_key *key = role_keys; key->name != NULL; key++) {
        assert_non_null(key->help);
        assert_true(key->help[strlen(key->help) - 1] != '.');
        if (key->kind == ROLES_KIND_NUMBER || key->kind == ROLES_KIND_RANGE)
            assert_true(key->min < key->max);
        if (key->kind == ROLES_KIND_WORD || key->kind == ROLES_KIND_FLAG)
            assert_true(key->words[0] != NULL && key->words[1] != NULL);
        assert_true(key->place == ROLES_PLACE_ROLE || !(key->world || key->only_world));
        for (const struct role_key *other = role_keys; other < key; other++)
            assert_true(other->place != key->place || strcmp(other->name, key->name) != 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_files),
    };

    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        print_tables();
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("roles_keys", tests, set_up, tear_down);
}
