/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/metrics, lib/metrics_text: an answer of a leader as text, answers that are wrong, and the
 * names that etc/grafana/slurm-elastic.json asks for.
 *
 * With --print or --print=openmetrics the whole text of the sample is printed, for promtool. */
#include "lib/metrics.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "tests/unit/support.h"

static char *text_of(const struct metrics_job *jobs, int count, enum metrics_format format)
{
    static const struct metrics_site site = {.running = 3,
                                             .pending = 1,
                                             .base_nodes = 6,
                                             .extension_nodes = 3,
                                             .extensions = 2,
                                             .extensions_pending = 1,
                                             .shown = 2,
                                             .silent = 1,
                                             .seconds = 0.25};
    char *text = NULL;
    size_t size;
    struct metrics_writer writer = {.out = open_memstream(&text, &size), .format = format};

    metrics_jobs(&writer, jobs, count);
    metrics_site(&writer, &site);
    metrics_end(&writer);
    fclose(writer.out);
    return text;
}

static char *text_of_answer(const char *answer, enum metrics_format format)
{
    struct metrics_job job = {.id = 12, .answer = json_tokener_parse(answer)};
    char *text = text_of(&job, 1, format);

    json_object_put(job.answer);
    return text;
}

static char *text_of_sample(enum metrics_format format)
{
    char *json = read_tree_file("tests/unit/metrics/job.json"), *text;
    struct metrics_job jobs[] = {{.id = 12, .user = "ada", .answer = json_tokener_parse(json)},
                                 {.id = 40, .user = "bob", .answer = json_tokener_parse(json)}};

    assert_non_null(jobs[0].answer);
    text = text_of(jobs, 2, format);
    json_object_put(jobs[0].answer);
    json_object_put(jobs[1].answer);
    free(json);
    return text;
}

static void has(const char *text, const char *lines)
{
    if (strstr(text, lines) == NULL)
        fail_msg("not there:\n%s\nin:\n%s", lines, text);
}

#define JOB "{jobid=\"12\",user=\"ada\""

static void test_sample(void **state)
{
    static const char *const lines[] = {
        "\nelastic_job_target_nodes" JOB "} 6\n",
        "\nelastic_job_failures_total" JOB "} 1\n",
        "\nelastic_job_progress_goal" JOB "} 5000\n",
        "\nelastic_job_lost_work_total" JOB "} 18\n",
        "\nelastic_job_cost_total" JOB "} 1.15\n",
        "\nelastic_service_operations_total" JOB "} 100\n",
        "\nelastic_service_updates_total" JOB "} 31\n",
        "\nelastic_service_disruptive_updates_total" JOB "} 29\n",
        "\nelastic_service_route_changes_total" JOB "} 37\n",
        "\nelastic_job_info" JOB ",name=\"tr\\\"ai\\\\n\",leader=\"n1\",release=\"0.1.0\"} 1\n",
        "\nelastic_job_phase" JOB ",phase=\"running\"} 1\n",
        "\nelastic_job_phase" JOB ",phase=\"ending\"} 0\n",
        "\nelastic_job_worlds_total" JOB ",kind=\"grow\"} 1\n",
        "\nelastic_job_time_seconds_total" JOB ",use=\"changing\"} 3.25\n",
        "\nelastic_job_time_seconds_total" JOB ",use=\"repeated\"} 7.5\n",
        "\nelastic_job_pause_seconds_bucket" JOB ",le=\"0.5\"} 1\n"
        "elastic_job_pause_seconds_bucket" JOB ",le=\"1.0\"} 1\n"
        "elastic_job_pause_seconds_bucket" JOB ",le=\"2.5\"} 2\n"
        "elastic_job_pause_seconds_bucket" JOB ",le=\"+Inf\"} 3\n"
        "elastic_job_pause_seconds_sum" JOB "} 8.75\n"
        "elastic_job_pause_seconds_count" JOB "} 3\n",
        "\nelastic_job_pool_nodes" JOB ",pool=\"spot\",state=\"pending\"} 1\n",
        "\nelastic_job_pool_nodes" JOB ",pool=\"on-demand\",state=\"booting\"} 1\n",
        "\nelastic_job_pool_price" JOB ",pool=\"spot\"} 0.92\n",
        "\nelastic_job_extensions" JOB ",state=\"joined\"} 2\n",
        "\nelastic_job_extensions" JOB ",state=\"leaving\"} 0\n",
        "\nelastic_job_slurm_requests_total" JOB ",by=\"library\"} 41\n",
        "\nelastic_job_straggler_ratio" JOB ",node=\"n3\",rank=\"5\",cause=\"throttled\"} 1.8\n",
        "\nelastic_role_target" JOB ",role=\"collector\"} 2\n",
        "\nelastic_role_replicas" JOB ",role=\"collector\",state=\"starting\"} 1\n",
        "\nelastic_roles_epoch" JOB "} 4\n",
        "\nelastic_job_nodes{jobid=\"40\",user=\"bob\"} 4\n",
        "\nelastic_site_nodes{kind=\"extension\"} 3\n",
        "\nelastic_exporter_collect_seconds 0.25\n",
    };
    char *text = text_of_sample(METRICS_PROMETHEUS);

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++)
        has(text, lines[i]);
    assert_null(strstr(text, "pool=\"on-demand\"} ")); /* no price */
    assert_null(strstr(text, "kind=\"shrink\""));      /* none has been */
    assert_null(strstr(text, "# EOF"));
    free(text);
}

/* Each family is said once, though two jobs have samples of it. */
static void test_families(void **state)
{
    char *text = text_of_sample(METRICS_PROMETHEUS), *names[200], *line;
    size_t count = 0;

    (void)state;
    for (line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "# TYPE ", 7) != 0)
            continue;
        assert_true(count < COUNT(names));
        names[count++] = line + 7;
        for (size_t i = 0; i + 1 < count; i++)
            assert_string_not_equal(names[i], line + 7);
    }
    assert_true(count > 25);
    free(text);
}

static void test_formats(void **state)
{
    char *text = text_of_sample(METRICS_OPENMETRICS);

    (void)state;
    has(text, "# TYPE elastic_job_steps counter\nelastic_job_steps_total" JOB "} 5678\n");
    has(text, "# TYPE elastic_job info\nelastic_job_info" JOB);
    has(text, "# TYPE elastic_job_time_seconds counter\n"
              "# UNIT elastic_job_time_seconds seconds\n");
    assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
    free(text);
    text = text_of_sample(METRICS_PROMETHEUS);
    has(text, "# TYPE elastic_job_steps_total counter\n");
    has(text, "# TYPE elastic_job_info gauge\n");
    assert_null(strstr(text, "# UNIT"));
    free(text);
    assert_int_equal(metrics_format_for(NULL), METRICS_PROMETHEUS);
    assert_int_equal(metrics_format_for("text/plain"), METRICS_PROMETHEUS);
    assert_int_equal(metrics_format_for("application/openmetrics-text;version=1.0.0;q=0.5,*/*"),
                     METRICS_OPENMETRICS);
}

/* An answer, and what of it is not told. */
static void test_wrong_answers(void **state)
{
    static const struct {
        const char *answer, *not_told, *told;
    } table[] = {
        {"{\"size\": \"4\", \"max\": 3}", "elastic_job_nodes", "elastic_job_max_nodes"},
        {"{\"size\": null}", "elastic_job_nodes", NULL},
        {"{\"pools\": {\"pool\": 1}}", "elastic_job_pool", NULL},
        {"{\"pools\": [3, \"a\", {\"pool\": \"b\", \"ready\": 2}]}", "pool=\"\"",
         "pool=\"b\",state=\"ready\"} 2\n"},
        /* The same labels twice would spoil all that is scraped. */
        {"{\"pools\": [{\"pool\": \"b\", \"ready\": 2}, {\"pool\": \"b\", \"ready\": 7}]}",
         "\"ready\"} 7", "\"ready\"} 2"},
        {"{\"stragglers\": [{\"rank\": 1, \"factor\": 2}, {\"rank\": 1, \"factor\": 7}]}", "} 7\n",
         "rank=\"1\",cause=\"\"} 2\n"},
        {"{\"stragglers\": [{\"rank\": 1.2, \"factor\": 2}, {\"rank\": 1.4, \"factor\": 7}]}",
         "straggler", NULL},
        {"{\"roles\": {\"roles\": [{\"name\": \"a\\u0001\", \"target\": 1}, {\"name\": "
         "\"a\\u0002\", \"target\": 7}]}}",
         "} 7\n", "role=\"a?\"} 1\n"},
        {"{\"pools\": [{\"pool\": \"b?\", \"price\": 2}, {\"pool\": \"b\\u001f\", \"price\": 7}]}",
         "} 7\n", "pool=\"b?\"} 2\n"},
        {"{\"measures\": {\"pauses\": {\"bounds\": [1.00000000000001, 1.00000000000002], "
         "\"counts\": [1, 1], \"count\": 1, \"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": {\"pauses\": {\"bounds\": [1e40, 1.1e40], "
         "\"counts\": [1, 1], \"count\": 1, \"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": {\"pauses\": {\"bounds\": [NaN], \"counts\": [1], \"count\": 1, "
         "\"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": {\"pauses\": {\"bounds\": [1, 1], \"counts\": [1, 1], \"count\": 1, "
         "\"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": {\"pauses\": {\"bounds\": [1, 2], \"counts\": [2, 1], \"count\": 2, "
         "\"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": {\"pauses\": {\"bounds\": [1, 2], \"counts\": [1, 2], \"count\": 1, "
         "\"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": {\"pauses\": {\"bounds\": [1, 2], \"counts\": [1], \"count\": 1, "
         "\"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": {\"pauses\": {\"bounds\": [1], \"counts\": [\"x\"], \"count\": 1, "
         "\"sum\": 1}}}",
         "pause", NULL},
        {"{\"measures\": [1]}", "seconds_total", NULL},
        {"{\"roles\": \"2 roles\"}", "elastic_role", NULL},
        {"{\"name\": \"a\\nb\\u0001\\\"}\"}", "\nb", "name=\"a\\nb?\\\"}\","},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char *text = text_of_answer(table[i].answer, METRICS_PROMETHEUS);

        if (strstr(text, table[i].not_told) != NULL)
            fail_msg("%s: %s is told:\n%s", table[i].answer, table[i].not_told, text);
        if (table[i].told != NULL)
            has(text, table[i].told);
        free(text);
    }
}

/* A leader may say more than fits into labels. */
static void test_many_labels(void **state)
{
    json_object *answer = json_object_new_object(), *pools = json_object_new_array();
    struct metrics_job job = {.id = 12, .answer = answer};
    char *text, *longest = NULL;
    int lines = 0;

    (void)state;
    json_object_object_add(answer, "pools", pools);
    for (int i = 0; i < 5000; i++) {
        json_object *pool = json_object_new_object();
        char name[400];

        snprintf(name, sizeof(name), "%d-%0300d", i, 0);
        json_object_object_add(pool, "pool", json_object_new_string(name));
        json_object_object_add(pool, "price", json_object_new_double(1));
        json_object_array_add(pools, pool);
    }
    text = text_of(&job, 1, METRICS_PROMETHEUS);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strncmp(line, "elastic_job_pool_price{", 23) == 0) {
            lines++;
            longest = line;
        }
    assert_int_equal(lines, 64);
    assert_true(strlen(longest) < 200);
    free(text);
    json_object_put(answer);
}

static void test_values(void **state)
{
    static const struct metrics_family family = {"a_total", METRICS_COUNTER, NULL, "A"};
    static const struct {
        double value;
        const char *text;
    } table[] = {{0, "0"},
                 {-1, "-1"},
                 {1e14, "100000000000000"},
                 {0.1, "0.1"},
                 {1e-7, "1e-07"},
                 {1e20, "1e+20"},
                 {1.0 / 3, "0.333333333333"},
                 {INFINITY, "+Inf"},
                 {-INFINITY, "-Inf"},
                 {NAN, "NaN"}};

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char *text = NULL, expected[100];
        size_t size;
        struct metrics_writer writer = {.out = open_memstream(&text, &size)};

        metrics_sample(&writer, &family, NULL, table[i].value);
        fclose(writer.out);
        snprintf(expected, sizeof(expected),
                 "# HELP a_total A\n# TYPE a_total counter\na_total %s\n", table[i].text);
        assert_string_equal(text, expected);
        free(text);
    }
}

/* ---- the dashboard --------------------------------------------------------------------------- */

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Each name elastic_… in a query is one of a sample in text. Returns how many there are. */
static int check_query(const char *query, const char *text)
{
    int found = 0;

    for (const char *at = strstr(query, "elastic_"); at != NULL; at = strstr(at, "elastic_")) {
        char name[100] = "\n";
        size_t length = 1;

        while (is_name(*at) && length < sizeof(name) - 2)
            name[length++] = *at++;
        name[length] = '{';
        name[length + 1] = '\0';
        found++;
        if (strstr(text, name) != NULL)
            continue;
        name[length] = ' ';
        if (strstr(text, name) == NULL)
            fail_msg("the dashboard asks for %s, which nobody tells", name + 1);
    }
    return found;
}

static int check_queries(json_object *object, const char *text)
{
    int found = 0;

    if (json_object_is_type(object, json_type_array))
        for (size_t i = 0; i < json_object_array_length(object); i++)
            found += check_queries(json_object_array_get_idx(object, i), text);
    if (!json_object_is_type(object, json_type_object))
        return found;
    json_object_object_foreach (object, key, value) {
        if (json_object_is_type(value, json_type_string) &&
            (strcmp(key, "expr") == 0 || strcmp(key, "query") == 0))
            found += check_query(json_object_get_string(value), text);
        found += check_queries(value, text);
    }
    return found;
}

static void test_dashboard(void **state)
{
    char *json = read_tree_file("etc/grafana/slurm-elastic.json"),
         *text = text_of_sample(METRICS_PROMETHEUS);
    json_object *dashboard = json_tokener_parse(json);

    (void)state;
    assert_non_null(dashboard);
    assert_true(check_queries(dashboard, text) >= 15);
    json_object_put(dashboard);
    free(text);
    free(json);
}

/* A leader whose answer takes long to read would cost all jobs of the site their metrics. */
static void test_hostile_lists(void **state)
{
    json_object *answer = json_object_new_object(), *roles = json_object_new_object();
    json_object *list = json_object_new_array(), *replicas = json_object_new_array();
    struct metrics_job job = {.id = 12, .answer = answer};
    struct timespec began, now;
    char *text;

    (void)state;
    for (int i = 0; i < 64; i++) {
        char name[16];
        json_object *role = json_object_new_object();

        snprintf(name, sizeof(name), "r%d", i);
        json_object_object_add(role, "name", json_object_new_string(name));
        json_object_array_add(list, role);
    }
    for (int i = 0; i < 100001; i++) {
        json_object *replica = json_object_new_object();

        json_object_object_add(replica, "role", json_object_new_string("r63"));
        json_object_object_add(replica, "state", json_object_new_string("ready"));
        json_object_array_add(replicas, replica);
    }
    json_object_object_add(roles, "roles", list);
    json_object_object_add(roles, "replicas", replicas);
    json_object_object_add(answer, "roles", roles);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    text = text_of(&job, 1, METRICS_PROMETHEUS);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    has(text, "\nelastic_role_replicas{jobid=\"12\",role=\"r63\",state=\"ready\"} 100000\n");
    has(text, "\nelastic_role_replicas{jobid=\"12\",role=\"r0\",state=\"ready\"} 0\n");
    if (now.tv_sec - began.tv_sec >= 2)
        fail_msg("%ld s", (long)(now.tv_sec - began.tv_sec));
    json_object_put(answer);
    free(text);
}

static int streams;

/* In the place of libc's, for what is linked into this program. */
FILE *open_memstream(char **text, size_t *size)
{
    FILE *(*libc)(char **, size_t *) = (FILE * (*)(char **, size_t *))
        dlsym(RTLD_NEXT, "open_memstream");

    streams++;
    return libc(text, size);
}

static char *text_of_jobs(const struct metrics_job *jobs, int count)
{
    char *text = NULL;
    size_t size;
    struct metrics_writer writer = {.out = open_memstream(&text, &size),
                                    .format = METRICS_PROMETHEUS};

    metrics_jobs(&writer, jobs, count);
    fclose(writer.out);
    return text;
}

/* More text than a look may print would be no text at all. So whoever says more than its share
 * goes, and its neighbours stay. */
static void test_too_much_text(void **state)
{
    json_object *little = json_tokener_parse("{\"nodes\": 2}"), *much = json_object_new_object(),
                *roles = json_object_new_array(), *inner = json_object_new_object();
    struct metrics_job jobs[] = {{.id = 1, .user = "ada", .answer = little},
                                 {.id = 2, .user = "bob", .answer = much},
                                 {.id = 3, .user = "eve", .answer = little}};
    char *text, *shorter;
    size_t most;
    int shown;

    (void)state;
    for (int i = 0; i < 64; i++) {
        json_object *role = json_object_new_object();
        char name[32];

        snprintf(name, sizeof(name), "role%d", i);
        json_object_object_add(role, "name", json_object_new_string(name));
        json_object_object_add(role, "target", json_object_new_int(i));
        json_object_array_add(roles, role);
    }
    json_object_object_add(inner, "roles", roles);
    json_object_object_add(much, "roles", inner);
    text = text_of_jobs(jobs, 3);
    most = strlen(text);
    streams = 0;
    shorter = metrics_jobs_text(jobs, 3, most, &shown);
    assert_int_equal(streams, 1); /* what fits is written once */
    assert_int_equal(shown, 3);
    assert_string_equal(shorter, text);
    free(shorter);
    shorter = metrics_jobs_text(jobs, 3, most / 2, &shown);
    assert_int_equal(shown, 2);
    assert_int_equal(jobs[0].id, 1);
    assert_int_equal(jobs[1].id, 3);
    assert_int_equal(jobs[2].id, 2);
    assert_true(strlen(shorter) <= most / 2);
    assert_null(strstr(shorter, "bob"));
    free(text);
    text = text_of_jobs(jobs, 2);
    assert_string_equal(shorter, text);
    free(shorter);
    free(text);
    json_object_put(little);
    json_object_put(much);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),        cmocka_unit_test(test_families),
        cmocka_unit_test(test_formats),       cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_many_labels),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_dashboard),     cmocka_unit_test(test_hostile_lists),
        cmocka_unit_test(test_too_much_text),
    };

    if (argc > 1 && strncmp(argv[1], "--print", 7) == 0) {
        char *text = text_of_sample(
            strcmp(argv[1], "--print=openmetrics") == 0 ? METRICS_OPENMETRICS : METRICS_PROMETHEUS);

        fputs(text, stdout);
        free(text);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
