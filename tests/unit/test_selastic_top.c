/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic top` shows, and what its keys do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top_screen.h"
#include "tests/unit/selastic_fixture.h"
#include "tests/unit/support.h"

#define WIDTH  80
#define HEIGHT 10

static struct top_line lines[HEIGHT];

static void draw(struct top *top)
{
    top_draw(top, NOW, 5, WIDTH, HEIGHT, lines);
}

/* Jobs FIRST, FIRST + 1, …, each with so many steps. */
static json_object *jobs_of(int first, int count, int steps)
{
    json_object *list = json_object_new_object(), *jobs = json_object_new_array();

    for (int i = 0; i < count; i++) {
        json_object *job = json_object_new_object();

        json_object_object_add(job, "job", json_object_new_int(first + i));
        json_object_object_add(job, "name", json_object_new_string("train"));
        json_object_object_add(job, "user", json_object_new_string("ada"));
        json_object_object_add(job, "state", json_object_new_string("running"));
        json_object_object_add(job, "size", json_object_new_int(2));
        json_object_object_add(job, "sizes", json_object_new_string("2:8"));
        json_object_object_add(job, "steps", json_object_new_int(steps));
        json_object_object_add(job, "pending", json_object_new_int(1));
        json_object_object_add(job, "why", json_object_new_string("Resources"));
        json_object_array_add(jobs, job);
    }
    json_object_object_add(list, "jobs", jobs);
    return list;
}

static int chosen_line(void)
{
    int found = -1;

    for (int i = 0; i < HEIGHT; i++)
        if (lines[i].look == TOP_CHOSEN) {
            assert_int_equal(found, -1);
            found = i;
        }
    return found;
}

/* As JSON: rate -1: not known. */
static void assert_stream(const struct top *top, int job, double rate)
{
    json_object *look = top_json(top, NOW), *first;
    double found;

    first = json_object_array_get_idx(json_object_object_get(look, "jobs"), 0);
    assert_near(json_object_get_double(json_object_object_get(look, "time")), NOW, 1e-6);
    assert_int_equal(json_object_get_int(json_object_object_get(first, "job")), job);
    found = json_object_object_get(first, "steps_per_s") == NULL
                ? -1
                : json_object_get_double(json_object_object_get(first, "steps_per_s"));
    assert_near(found, rate, 1e-6);
    json_object_put(look);
}

static void assert_stream_of_trouble(const struct top *top)
{
    json_object *look = top_json(top, NOW);

    assert_string_equal(json_object_get_string(json_object_object_get(look, "error")),
                        "Slurm cannot\x1b[2J answer");
    assert_null(json_object_object_get(look, "jobs"));
    json_object_put(look);
}

static void test_list(void **state)
{
    struct top top = {.view = TOP_LIST};

    (void)state;
    draw(&top);
    assert_int_equal(chosen_line(), -1);
    top_take(&top, TOP_LIST, 0, jobs_of(7, 2, 100), NULL, NOW);
    draw(&top);
    assert_non_null(
        strstr(lines[0].text, "yours: jobs 2, nodes 4, pending extensions 2; every 5 s"));
    assert_string_equal(lines[1].text,
                        "JOB  NAME   USER  STATE    NODES  OF   STEPS/S  COST  WAITS FOR");
    assert_string_equal(lines[2].text,
                        "  7  train  ada   running      2  2:8        -     -  Resources");
    assert_int_equal(chosen_line(), 2);
    assert_non_null(strstr(lines[HEIGHT - 1].text, "q quit"));
    /* 30 steps in 4 seconds; then the job begins again. */
    top_take(&top, TOP_LIST, 0, jobs_of(7, 2, 130), NULL, NOW + 4);
    draw(&top);
    assert_string_equal(lines[2].text,
                        "  7  train  ada   running      2  2:8     7.50     -  Resources");
    top_take(&top, TOP_LIST, 0, jobs_of(7, 2, 10), NULL, NOW + 8);
    draw(&top);
    assert_non_null(strstr(lines[2].text, "2:8        -"));
    assert_stream(&top, 7, -1);
    top_take(&top, TOP_LIST, 0, jobs_of(7, 2, 40), NULL, NOW + 12);
    assert_stream(&top, 7, 7.5);
    /* What failed is said, and the list stays. */
    top_take(&top, TOP_LIST, 0, NULL, "Slurm cannot\x1b[2J answer", NOW + 16);
    draw(&top);
    assert_non_null(strstr(lines[0].text, "Slurm cannot\\x1b[2J answer"));
    assert_non_null(strstr(lines[2].text, "train"));
    assert_stream_of_trouble(&top);
    top_clear(&top);
}

static void test_cursor(void **state)
{
    struct top top = {.view = TOP_LIST};

    (void)state;
    top_take(&top, TOP_LIST, 0, jobs_of(1, 30, 0), NULL, NOW);
    assert_int_equal(top.chosen, 1);
    top_press(&top, TOP_UP, HEIGHT);
    assert_int_equal(top.chosen, 1);
    top_press(&top, TOP_DOWN, HEIGHT);
    assert_int_equal(top.chosen, 2);
    top_press(&top, TOP_LAST, HEIGHT);
    assert_int_equal(top.chosen, 30);
    draw(&top);
    assert_int_equal(chosen_line(), HEIGHT - 2);
    assert_non_null(strstr(lines[HEIGHT - 2].text, " 30  train"));
    top_press(&top, TOP_PAGE_UP, HEIGHT);
    assert_int_equal(top.chosen, 23);
    draw(&top);
    assert_int_equal(chosen_line(), 2);
    top_press(&top, TOP_FIRST, HEIGHT);
    top_press(&top, TOP_PAGE_DOWN, HEIGHT);
    assert_int_equal(top.chosen, 8);
    /* It stays with its job, and goes to the next one where that has ended. */
    top_take(&top, TOP_LIST, 0, jobs_of(5, 20, 0), NULL, NOW);
    assert_int_equal(top.chosen, 8);
    draw(&top);
    assert_non_null(strstr(lines[chosen_line()].text, "8  train"));
    top_take(&top, TOP_LIST, 0, jobs_of(100, 3, 0), NULL, NOW);
    assert_int_equal(top.chosen, 102);
    top_take(&top, TOP_LIST, 0, jobs_of(1, 0, 0), NULL, NOW);
    assert_int_equal(top.chosen, 0);
    top_press(&top, TOP_DOWN, HEIGHT);
    draw(&top);
    assert_int_equal(chosen_line(), -1);
    /* There is nothing to be opened. */
    top_press(&top, TOP_OPEN, HEIGHT);
    assert_int_equal(top.view, TOP_LIST);
    top_clear(&top);
}

static void test_views(void **state)
{
    struct top top = {.view = TOP_LIST};

    (void)state;
    top_take(&top, TOP_LIST, 0, jobs_of(12, 2, 0), NULL, NOW);
    assert_true(top_press(&top, TOP_OPEN, HEIGHT));
    assert_int_equal(top.view, TOP_SHOW);
    draw(&top);
    assert_string_equal(lines[1].text, "asking ...");
    /* Late answers of another view, and of another job. */
    top_take(&top, TOP_LIST, 0, jobs_of(50, 1, 0), NULL, NOW);
    top_take(&top, TOP_SHOW, 13, read_json("state-growing.out.json"), NULL, NOW);
    assert_null(top.detail);
    assert_int_equal(top.chosen, 12);
    top_take(&top, TOP_SHOW, 12, read_json("state-growing.out.json"), NULL, NOW);
    draw(&top);
    assert_non_null(strstr(lines[1].text, "Job "));
    top_press(&top, TOP_DOWN, HEIGHT);
    draw(&top);
    assert_null(strstr(lines[1].text, "Job "));
    /* Not beyond the end. */
    top_press(&top, TOP_LAST, HEIGHT);
    draw(&top);
    assert_string_not_equal(lines[HEIGHT - 2].text, "");
    top_press(&top, TOP_KEY_HISTORY, HEIGHT);
    assert_int_equal(top.first, 0);
    top_take(&top, TOP_HISTORY, 12, NULL, "job 12 has no history", NOW);
    draw(&top);
    assert_non_null(strstr(lines[0].text, "has no history"));
    assert_string_equal(lines[1].text, "");
    top_press(&top, TOP_BACK, HEIGHT);
    assert_int_equal(top.view, TOP_LIST);
    assert_false(top.all);
    top_press(&top, TOP_KEY_ALL, HEIGHT);
    assert_true(top.all);
    assert_false(top_press(&top, TOP_KEY_QUIT, HEIGHT));
    top_clear(&top);
}

/* Any keys, answers and sizes: it draws within its lines. */
static void test_random(void **state)
{
    struct top top = {.view = TOP_LIST};
    struct top_line many[61];

    (void)state;
    srand(1);
    for (int i = 0; i < 20000; i++) {
        int height = rand() % 60, width = rand() % 200;

        switch (rand() % 4) {
        case 0:
            top_take(&top, TOP_LIST, 0, jobs_of(rand() % 9 + 1, rand() % 70, rand() % 99), NULL,
                     NOW + i);
            break;
        case 1:
            if (top.view != TOP_LIST)
                top_take(&top, top.view, top.chosen, json_object_new_object(),
                         rand() % 2 ? "no" : NULL, NOW + i);
            break;
        default:
            top_press(&top, (enum top_key)(rand() % (TOP_KEY_QUIT + 1)), height);
        }
        memset(&many[height], 0x7f, sizeof(many[0]));
        top_draw(&top, NOW + i, 5, width, height, many);
        assert_int_equal((unsigned char)many[height].text[0], 0x7f);
    }
    top_clear(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_cursor),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_random),
    };

    setenv("TZ", "UTC", 1);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("selastic_top", tests, NULL, NULL);
}
