/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What selastic shows, against the files in tests/unit/selastic: NAME.json in, NAME.txt or
 * NAME.out.json out. */
#include "cmd/doctor_job.h"
#include "cmd/history_file.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "cmd/timeline.h"
#include "tests/unit/selastic_fixture.h"
#include "tests/unit/support.h"

static json_object *read_state(const char *name)
{
    json_object *answer = read_json(name);
    json_object *state = shape_state(answer);
    json_object_put(answer);
    return state;
}

static json_object *read_history(void)
{
    json_object *answer = read_json("history.json");
    json_object *history = shape_history(12, answer);
    json_object_put(answer);
    return history;
}

static void test_show(void **unused)
{
    json_object *state = read_state("state-growing.json");
    assert_golden(render_state(state, &pipe_options), "state-growing.txt");
    json_object_put(state);
}

static void test_show_roles(void **unused)
{
    json_object *state = read_state("state-roles.json");
    assert_golden(render_state(state, &pipe_options), "state-roles.txt");
    json_object_put(state);
}

static void test_show_release(void **unused)
{
    json_object *state = read_state("state-growing.json"), *older = read_state("state-shrunk.json");
    const struct render_options same = {.now = NOW, .release = "0.1.0"},
                                later = {.now = NOW, .release = "0.2.0"};
    char *text = render_state(state, &same);
    assert_null(strstr(text, "Release"));
    free(text);
    text = render_state(state, &later);
    assert_non_null(
        strstr(text, "  Release          0.1.0 leads the job, this selastic is of 0.2.0\n"));
    free(text);
    /* A leader that does not say it. */
    text = render_state(older, &later);
    assert_null(strstr(text, "Release"));
    free(text);
    json_object_put(state);
    json_object_put(older);
}

static void test_clean(void **unused)
{
    json_object *list = json_tokener_parse(
        "{\"directories\": [{\"directory\": \"/h/c-9\", \"job\": 9, \"changed\": 1690000150,"
        " \"bytes\": 1540000000, \"action\": \"removed\", \"why\": \"\"},"
        " {\"directory\": \"/h/c-8\\u001b\", \"job\": null, \"changed\": 1700000149,"
        " \"bytes\": 512, \"action\": \"kept\", \"why\": \"Slurm knows job 8\"}]}");
    char *text = render_clean(list, &pipe_options);
    assert_string_equal(text,
                        "JOBID  CHANGED       SIZE  ACTION   DIRECTORY   WHY\n"
                        "    9  115 d 17 h  1.5 GB  removed  /h/c-9      -\n"
                        "    -  1.0 s        512 B  kept     /h/c-8\\x1b  Slurm knows job 8\n");
    free(text);
    json_object_put(list);
}

static void test_show_json(void **unused)
{
    json_object *state = read_state("state-growing.json");
    char *json = serialize(state);
    json_object_put(state);
    assert_golden(json, "state-growing.out.json");
}

static void test_show_narrow(void **unused)
{
    json_object *state = read_state("state-growing.json");
    const struct render_options narrow = {.width = 60, .now = NOW};
    assert_golden(render_state(state, &narrow), "state-growing-60.txt");
    json_object_put(state);
}

/* The example in selastic(1) is what selastic prints. */
static void test_show_manual(void **unused)
{
    json_object *state = read_state("state-shrunk.json");
    char *page = read_tree_file("doc/man/selastic.1");
    char *text = render_state(state, &terminal);
    if (strstr(page, text) == NULL)
        fail_msg("selastic(1) does not have:\n%s", text);
    free(text);
    free(page);
    json_object_put(state);
}

static void test_show_hostile(void **unused)
{
    json_object *state = read_state("state-hostile.json");
    /* Where line breaks are in a pretty text differs between versions of json-c. */
    char *json = shape_serialize(state, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
    assert_harmless(json);
    json_object *again = json_tokener_parse(json);
    assert_true(json_object_equal(again, state));
    json_object_put(again);
    assert_golden(json, "state-hostile.out.json");
    char *text = render_state(state, &pipe_options);
    assert_harmless(text);
    assert_golden(text, "state-hostile.txt");
    json_object_put(state);
}

/* An answer without anything in it, and one that is no object. */
static void test_show_nothing(void **unused)
{
    json_object *empty = json_object_new_object(), *number = json_object_new_int(5);
    json_object *states[] = {shape_state(empty), shape_state(number), shape_state(NULL)};
    for (int i = 0; i < 3; i++) {
        assert_golden(render_state(states[i], &terminal), "state-nothing.txt");
        json_object_put(states[i]);
    }
    json_object_put(empty);
    json_object_put(number);
}

static void test_list(void **unused)
{
    json_object *list = read_json("list.json"), *none = json_tokener_parse("{\"jobs\": []}");
    const struct render_options wide = {.width = 100, .now = NOW};
    assert_golden(render_list(list, &pipe_options), "list.txt");
    assert_golden(render_list(list, &wide), "list-100.txt");
    char *text = render_list(none, &terminal);
    assert_string_equal(text, "JOBID  NAME  USER  STATE  SIZE  MIN:MAX  GEN  PENDING  WHY\n");
    free(text);
    json_object_put(list);
    json_object_put(none);
}

static void test_history(void **unused)
{
    json_object *history = read_history();
    assert_golden(render_history(history, &pipe_options), "history.txt");
    json_object_put(history);
}

static void test_history_of_another_day(void **unused)
{
    json_object *history = read_history();
    const struct render_options later = {.now = NOW + 86400, .over = true};
    assert_golden(render_history(history, &later), "history-later.txt");
    json_object_put(history);
}

static void test_history_file(void **unused)
{
    struct history_losses losses;
    char *text = read_sample("history.jsonl");
    json_object *history = history_file_parse(12, text, strlen(text), &losses);
    history_end(history, 1700000230);
    char *json = serialize(history);
    free(text);
    json_object_put(history);
    assert_int_equal(losses.skipped, 8);
    assert_golden(json, "history.jsonl.out.json");
}

/* Where a pause is not known, the sum says so. */
static void test_history_file_text(void **unused)
{
    struct history_losses losses;
    char *text = read_sample("history.jsonl");
    json_object *history = history_file_parse(12, text, strlen(text), &losses);
    free(text);
    assert_golden(render_history(history, &pipe_options), "history.jsonl.txt");
    json_object_put(history);
}

static void test_history_file_empty(void **unused)
{
    struct history_losses losses;
    json_object *history = history_file_parse(12, "", 0, &losses);
    history_end(history, NOW);
    assert_int_equal(losses.skipped, 0);
    char *text = render_history(history, &terminal);
    assert_string_equal(text, "GEN  TIME  KIND  NODES  WORKERS  LASTED  PAUSE  REASON\n");
    free(text);
    json_object_put(history);
}

static void test_history_end_before_start(void **unused)
{
    struct history_losses losses;
    static const char line[] = "{\"generation\": 1, \"time\": 100, \"kind\": \"start\"}\n";
    json_object *history = history_file_parse(12, line, strlen(line), &losses);
    json_object *generation = json_object_array_get_idx(field_array(history, "generations"), 0);
    history_end(history, 99);
    assert_null(json_object_object_get(generation, "until"));
    history_end(history, 101);
    assert_true(json_object_get_int(json_object_object_get(generation, "until")) == 101);
    json_object_put(history);
}

/* doctor --job: what the answers know, and answers that know nothing. */
static void test_doctor_lines(void **unused)
{
    json_object *state = read_json("state-growing.json"), *answer = read_json("history.json");
    json_object *history = shape_history(12, answer), *nothing = json_object_new_object();
    json_object *lines = doctor_job_lines(state, history, NOW);
    assert_string_equal(
        json_object_to_json_string_ext(lines, JSON_C_TO_STRING_SPACED),
        "{ \"size\": \"running, 4 nodes, allowed 2:6\", "
        "\"why\": \"4 nodes; 1 more has joined and takes part in the next generation\", "
        "\"why_not_more\": \"extension job 17 (1 node) is powering up, 45 s\", "
        "\"last\": \"30 s ago: grow to 6 nodes: extension 15 has joined; training paused for 12 "
        "s\", "
        "\"next\": \"5 nodes: workers start, 4 of 5 nodes ready\" }");
    json_object_put(lines);
    json_object_object_del(state, "next_world");
    lines = doctor_job_lines(state, NULL, NOW);
    assert_string_equal(json_object_get_string(json_object_object_get(lines, "next")),
                        "1 extension job in the queue");
    assert_string_equal(json_object_get_string(json_object_object_get(lines, "last")), "not known");
    json_object_put(lines);
    lines = doctor_job_lines(nothing, nothing, NOW);
    assert_string_equal(json_object_get_string(json_object_object_get(lines, "next")),
                        "no change is under way");
    assert_string_equal(json_object_get_string(json_object_object_get(lines, "why")), "not known");
    json_object_put(lines);
    json_object_put(nothing);
    json_object_put(history);
    json_object_put(answer);
    json_object_put(state);
}

static void test_timeline(void **unused)
{
    json_object *history = read_history();
    const struct timeline_options options = {.width = 80, .max_rows = 40, .end = NOW};
    assert_golden(timeline_draw(field_array(history, "generations"), &options), "timeline.txt");
    json_object_put(history);
}

/* The job was requeued: between its two lives there is nothing. */
static void test_timeline_gap(void **unused)
{
    struct history_losses losses;
    char *text = read_sample("history.jsonl");
    const struct timeline_options options = {.width = 60, .max_rows = 40, .end = 1700000230};
    json_object *history = history_file_parse(12, text, strlen(text), &losses);
    free(text);
    assert_golden(timeline_draw(field_array(history, "generations"), &options), "timeline-gap.txt");
    json_object_put(history);
}

static void test_timeline_chart(void **unused)
{
    json_object *history = read_history();
    const struct timeline_options options = {.width = 60, .max_rows = 5, .end = NOW};
    assert_golden(timeline_draw(field_array(history, "generations"), &options),
                  "timeline-chart.txt");
    json_object_put(history);
}

static void test_timeline_hostile(void **unused)
{
    static const char *const hostile[] = {
        "[{\"generation\":1,\"time\":-1e308,\"size\":2,\"nodes\":[\"a\"]},"
        "{\"generation\":2,\"time\":1e308,\"size\":-2,\"nodes\":[\"a\",\"b\"],\"pause\":1e308}]",
        "[{\"generation\":1,\"time\":1700000100,\"size\":2147483648,\"nodes\":[\"\\u001b[2J\"]},"
        "{\"generation\":2,\"time\":5,\"size\":3,\"nodes\":[\"b\"],\"until\":1}]",
        "[{\"generation\":1,\"time\":5}]",
        "[{\"generation\":1,\"time\":5,\"nodes\":[\"a-name-that-is-longer-than-any-label-should-"
        "be\"]},"
        "{\"generation\":1,\"time\":5,\"nodes\":[\"a-name-that-is-longer-than-any-label-should-"
        "be\"]}]",
    };
    for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
        json_object *generations = json_tokener_parse(hostile[i]);
        for (int rows = 0; rows < 2; rows++) {
            const struct timeline_options options = {.width = 50, .max_rows = rows * 9, .end = NOW};
            char *text = timeline_draw(generations, &options);
            assert_string_not_equal(text, "");
            assert_width(text, 50);
            assert_harmless(text);
            free(text);
        }
        json_object_put(generations);
    }
}

static void test_timeline_of_nothing(void **unused)
{
    const struct timeline_options options = {.width = 0, .max_rows = 40};
    json_object *none = json_object_new_array();
    char *texts[] = {timeline_draw(NULL, &options), timeline_draw(none, &options)};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(texts[i], "");
        free(texts[i]);
    }
    json_object_put(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_show_json),
        cmocka_unit_test(test_show_roles),
        cmocka_unit_test(test_show_release),
        cmocka_unit_test(test_show_narrow),
        cmocka_unit_test(test_show_manual),
        cmocka_unit_test(test_show_hostile),
        cmocka_unit_test(test_show_nothing),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_history_of_another_day),
        cmocka_unit_test(test_history_file),
        cmocka_unit_test(test_history_file_text),
        cmocka_unit_test(test_history_file_empty),
        cmocka_unit_test(test_history_end_before_start),
        cmocka_unit_test(test_doctor_lines),
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_timeline_gap),
        cmocka_unit_test(test_timeline_chart),
        cmocka_unit_test(test_timeline_hostile),
        cmocka_unit_test(test_timeline_of_nothing),
    };
    setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests_name("selastic_render", tests, NULL, NULL);
}
