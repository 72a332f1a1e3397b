/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of lib/change.c against doc/internals/change.md: which facts end a phase. */
#include "lib/change.c" /* first: cmocka has a macro of a name that it uses */

#include "lib/text.h"
#include "tests/unit/support.h"

#define PAGE "doc/internals/change.md"

static char *page;

static int set_up(void **state)
{
    page = read_tree_file(PAGE);
    return 0;
}

static int tear_down(void **state)
{
    free(page);
    return 0;
}

/* Does any row that holds in the phase, and perhaps in each phase, end it? */
static bool ends(enum change_phase phase, enum change_fact_kind fact)
{
    const struct row *row = find_row(phase, fact);

    return row != NULL && (row->next & ~(1u << phase)) != 0;
}

static bool ends_each(enum change_fact_kind fact)
{
    const struct row *row = find_row(CHANGE_ASSEMBLING, fact);

    return row != NULL && row->phases == ANY && row->next != 0;
}

/* "PLAN, TIME, STOP": in the order of the facts; "–" where there is none. */
static void facts_that_end(enum change_phase phase, char *text, size_t size)
{
    text[0] = '\0';
    for (int fact = 0; fact < CHANGE_FACT_COUNT; fact++)
        if (!ends_each(fact) && ends(phase, fact))
            text_append(text, size, "%s%s", text[0] != '\0' ? ", " : "", change_fact_name(fact));
    if (text[0] == '\0')
        text_append(text, size, "–");
}

/* The third cell of the row of that name in the page's first table. */
static void page_says(const char *name, char *text, size_t size)
{
    char head[64];
    const char *cell;

    snprintf(head, sizeof(head), "\n| %s | ", name);
    cell = strstr(page, head);
    if (cell == NULL)
        fail_msg(PAGE ": no row %s", name);
    cell = strstr(cell + strlen(head), " | ");
    assert_non_null(cell);
    cell += strlen(" | ");
    snprintf(text, size, "%.*s", (int)(strstr(cell, " | ") - cell), cell);
}

static void test_page(void **state)
{
    (void)state;
    assert_non_null(strstr(page, "| phase | what happens | ends when (fact) |"));
    for (int phase = 0; phase < CHANGE_PHASE_COUNT; phase++) {
        char table_says[256], text[256];

        facts_that_end(phase, table_says, sizeof(table_says));
        page_says(change_phase_name(phase), text, sizeof(text));
        if (strcmp(text, table_says) != 0)
            fail_msg(PAGE ": %s ends when: %s, in the table of lib/change.c: %s",
                     change_phase_name(phase), text, table_says);
    }
}

/* What would stand in each row is said once. */
static void test_deposed(void **state)
{
    (void)state;
    for (int fact = 0; fact < CHANGE_FACT_COUNT; fact++)
        assert_int_equal(ends_each(fact), fact == CHANGE_FACT_DEPOSED);
    assert_non_null(strstr(page, "DEPOSED ends each phase"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_deposed),
    };

    return cmocka_run_group_tests_name("change_table", tests, set_up, tear_down);
}
