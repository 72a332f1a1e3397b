/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command lines of selastic's subcommands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cmd/arguments.h"
#include "cmd/logs.h"

#define WORDS_MAX 20

static int parse(const char *line, struct arguments *arguments, struct error *err)
{
    static char copy[256];
    assert_true(strlen(line) < sizeof(copy));
    char *words[WORDS_MAX + 1] = {NULL}, *rest = NULL;
    int count = 0;
    strcpy(copy, line);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < WORDS_MAX);
        words[count++] = word;
    }
    return arguments_parse(count, words, arguments, err);
}

static struct arguments good(const char *line)
{
    struct arguments arguments;
    struct error err = {""};
    if (parse(line, &arguments, &err) < 0)
        fail_msg("'%s' was refused: %s", line, err.text);
    return arguments;
}

static void assert_refused(const char *line, const char *message)
{
    struct arguments arguments;
    struct error err = {""};
    if (parse(line, &arguments, &err) == 0)
        fail_msg("'%s' was accepted", line);
    assert_string_equal(err.text, message);
}

static void test_list(void **unused)
{
    assert_false(good("list").all);
    assert_true(good("list --all").all);
    assert_true(good("list --all --json").json);
    assert_true(good("list --help").help);
    assert_refused("list 12", "'list' takes no arguments besides options");
}

static void test_show(void **unused)
{
    assert_int_equal(good("show 12").job_id, 12);
    assert_int_equal(good("show --json 67108863").job_id, 67108863);
    assert_true(good("show 12 -h").help);
    assert_true(good("show --help").help);
    assert_refused("show", "'show' takes one argument: JOB");
    assert_refused("show 1 2", "'show' takes one argument: JOB");
}

static void test_wait(void **unused)
{
    assert_int_equal(good("wait 12 --size 4").goal.min, 4);
    assert_int_equal(good("wait 12 --size 4").goal.max, 4);
    assert_int_equal(good("wait 12 --size=4:8").goal.max, 8);
    assert_true(good("wait 12 --step 1000000000000").goal.step == 1000000000000);
    assert_string_equal(good("wait --state running 12").goal.state, "running");
    assert_true(good("wait 12 --ended --timeout 86400").goal.ended);
    assert_int_equal(good("wait 12 --ended --timeout 86400").wait_seconds, 86400);
    assert_int_equal(good("wait 12 --ended").wait_seconds, 0);
    assert_true(good("wait 12 --size 2 --step 5 --json").json);
    assert_refused("wait --ended", "'wait' takes one argument: JOB");
    assert_refused("wait 12", "'wait' takes one of --size, --step, --state and --ended at least");
    assert_refused("wait 12 --ended --step 4",
                   "--ended cannot be given with --size, --step or --state");
    assert_refused("wait 12 --state pending --size 4",
                   "a pending job has no size and no step: give --state=pending alone");
    assert_refused("wait 12 --size 0",
                   "--size=0 is not allowed; give nodes from 1 to 65533 (4), or MIN:MAX (4:8)");
    assert_refused("wait 12 --size 8:4",
                   "--size=8:4 is not allowed; give nodes from 1 to 65533 (4), or MIN:MAX (4:8)");
    assert_refused("wait 12 --size 4:",
                   "--size=4: is not allowed; give nodes from 1 to 65533 (4), or MIN:MAX (4:8)");
    assert_refused("wait 12 --step 0", "--step=0 is not allowed; give a step from 1 on");
    assert_refused("wait 12 --step 1e3", "--step=1e3 is not allowed; give a step from 1 on");
    assert_refused("wait 12 --step 9999999999999999999",
                   "--step=9999999999999999999 is not allowed; give a step from 1 on");
    assert_refused("wait 12 --state done",
                   "--state=done is not allowed; give pending, waiting, running, switching or "
                   "ending (--ended: the job has ended)");
    assert_refused("wait 12 --ended --timeout 0",
                   "--timeout=0 is not allowed; give seconds from 1 to 2592000");
}

static void test_doctor(void **unused)
{
    assert_int_equal(good("doctor").job_id, 0);
    assert_int_equal(good("doctor --job 12 --json").job_id, 12);
    assert_true(good("doctor --here --json").here);
    assert_string_equal(good("doctor --nodes n[1-2] --timeout 5").hostlist, "n[1-2]");
    assert_refused("doctor 12", "'doctor' takes no arguments besides options");
    assert_refused("doctor --here --job 12", "'doctor' takes one of --job, --here and --nodes");
    assert_refused("doctor --here --nodes n1", "'doctor' takes one of --job, --here and --nodes");
    assert_refused("doctor --token /t", "'doctor' takes --token with --here");
    assert_true(good("doctor --here --pieces").pieces);
    assert_refused("doctor --pieces", "'doctor' takes --pieces with --here");
    assert_refused("doctor --partition p", "'doctor' takes --partition with --nodes");
    assert_refused("doctor --nodes n1 --timeout 0",
                   "--timeout=0 is not allowed; give seconds from 1 to 3600");
}

static void test_usage(void **unused)
{
    assert_int_equal(good("usage").job_id, 0);
    assert_int_equal(good("usage 12").job_id, 12);
    assert_string_equal(good("usage -u ada").user, "ada");
    assert_string_equal(good("usage --user=ada-2 -A lab.x").account, "lab.x");
    assert_string_equal(good("usage --since now-7days --until 2026-11-01T08:00").since,
                        "now-7days");
    assert_true(good("usage --all --json").all);
    assert_refused("usage 1 2", "'usage' takes at most one argument: JOB");
    assert_refused("usage -u a,b", "'a,b' is no name of a user or an account");
    assert_refused("usage -u", "option '-u' needs a value");
    assert_refused("usage --since x;y",
                   "'x;y' is no time; give one in the form of sacct, such as 2026-11-01, "
                   "2026-11-01T08:00 or now-7days");
}

static void test_top(void **unused)
{
    assert_int_equal(good("top").interval, 0);
    assert_true(good("top --json --interval=2").json);
    assert_int_equal(good("top --all --interval 2").interval, 2);
    assert_refused("top --interval 1", "--interval=1: give seconds from 2 to 3600");
    assert_refused("top 12", "'top' takes no arguments besides options");
}

static void test_watch(void **unused)
{
    assert_true(good("show 12").watch <= 0);
    assert_true(good("show 12 --watch").watch > 1.9);
    assert_true(good("show --watch=0.5 12").watch < 0.6);
    assert_refused("show 12 --watch=0", "--watch=0 is not allowed; give seconds from 0.5 to 3600");
    assert_refused("show 12 --watch=nan",
                   "--watch=nan is not allowed; give seconds from 0.5 to 3600");
    assert_refused("show 12 --watch=1s",
                   "--watch=1s is not allowed; give seconds from 0.5 to 3600");
    assert_refused("show 12 --watch=", "--watch= is not allowed; give seconds from 0.5 to 3600");
}

static void test_topology(void **unused)
{
    assert_int_equal(good("topology collect").action, TOPOLOGY_COLLECT);
    assert_int_equal(good("topology collect").timeout, 60);
    assert_null(good("topology collect").file);
    assert_int_equal(good("topology collect --timeout=5").timeout, 5);
    assert_string_equal(good("topology collect --output /x").file, "/x");
    assert_string_equal(good("topology collect --nodes=n[1-2] --json").hostlist, "n[1-2]");
    assert_string_equal(good("topology collect --partition=p").partition, "p");
    assert_int_equal(good("topology show --json").action, TOPOLOGY_SHOW);
    assert_string_equal(good("topology check --file=/x").file, "/x");
    assert_int_equal(good("topology check").action, TOPOLOGY_CHECK);
    assert_true(good("topology describe --pieces").pieces);
    assert_true(good("topology describe --json").json);
    assert_true(good("topology --help").help);
    assert_true(good("topology show --help").help);
    assert_refused("topology",
                   "'topology' takes an action first: collect, show, check or describe");
    assert_refused("topology --json show",
                   "unknown option '--json' of 'topology'; see 'selastic topology --help'");
    assert_refused("topology draw", "unknown action 'draw' of 'topology'; actions: collect, show, "
                                    "check, describe");
    assert_refused("topology show 12", "'topology show' takes no arguments besides options");
    assert_refused("topology show --nodes=n1", "unknown option '--nodes=n1' of 'topology show'; "
                                               "see 'selastic topology --help'");
    assert_refused("topology collect --timeout=0",
                   "--timeout=0 is not allowed; give seconds from 1 to 3600");
    assert_refused("topology collect --timeout=1m",
                   "--timeout=1m is not allowed; give seconds from 1 to 3600");
}

static void assert_size(const char *line, bool relative, int nodes)
{
    struct arguments arguments = good(line);
    assert_int_equal(arguments.job_id, 12);
    assert_int_equal(arguments.relative, relative);
    assert_int_equal(arguments.nodes, nodes);
}

static void test_resize(void **unused)
{
    assert_size("resize 12 6", false, 6);
    assert_size("resize 12 +2", true, 2);
    assert_size("resize 12 -2", true, -2);
    assert_size("resize --json 12 -2", true, -2);
    assert_size("resize -2 12", true, -2);
    assert_size("resize 12 -- -2", true, -2);
    assert_size("resize 12 65533", false, 65533);
    assert_true(good("resize 12 -2 --json").json);
    assert_refused("resize 12", "'resize' takes two arguments: JOB and N, +K or -K");
    assert_refused("resize -2", "'resize' takes two arguments: JOB and N, +K or -K");
    assert_refused("resize 12 -2 +2", "'resize' takes two arguments: JOB and N, +K or -K");
}

static void test_bad_sizes(void **unused)
{
    static const char *const bad[] = {"0",   "+0",  "-0",  "65534", "6x",
                                      "++2", "+-2", "2:4", "0x6",   "6.0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char line[64], message[160];
        snprintf(line, sizeof(line), "resize 12 %s", bad[i]);
        snprintf(message, sizeof(message),
                 "'%s' is not a size; give a number of nodes from 1 to 65533 (6) or a difference "
                 "(+2, -2)",
                 bad[i]);
        assert_refused(line, message);
    }
}

static void test_bad_jobs(void **unused)
{
    static const char *const bad[] = {
        "0", "12.0", "12_3", "+12", "0x1", "67108864", "99999999999999999999", "twelve"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char line[64], message[160];
        snprintf(line, sizeof(line), "show %s", bad[i]);
        snprintf(message, sizeof(message),
                 "'%s' is not a job id; give the number that squeue shows (of an array's task: "
                 "squeue -o %%A)",
                 bad[i]);
        assert_refused(line, message);
    }
}

static void assert_scale(const char *line, int index, const char *role, bool relative, int n)
{
    struct arguments arguments = good(line);
    const struct scale *scale = &arguments.scales[index];
    assert_int_equal(arguments.job_id, 12);
    assert_true(index < arguments.scale_count);
    assert_int_equal(scale->role_length, strlen(role));
    assert_memory_equal(scale->text, role, strlen(role));
    assert_int_equal(scale->relative, relative);
    assert_int_equal(scale->replicas, n);
}

static void test_reports(void **unused)
{
    (void)unused;
    assert_null(good("reports 12").name);
    assert_string_equal(good("reports 12 collector").name, "collector");
    assert_string_equal(good("reports 12 collector-3 --after 7 --follow --json").name,
                        "collector-3");
    assert_int_equal(good("reports 12 --after=7").after, 7);
    assert_true(good("reports -f 12").follow);
    assert_refused("reports", "'reports' takes one or two arguments: JOB and ROLE or REPLICA");
    assert_refused("reports 12 pair-0.1",
                   "'pair-0.1' is not a role or replica; give its name (collector, collector-3)");
    assert_refused("reports 12 --after=-1",
                   "--after=-1 is not allowed; give the number of a report, or 0");
}

static void test_scale(void **unused)
{
    assert_scale("scale 12 collector=8", 0, "collector", false, 8);
    assert_scale("scale 12 collector=0", 0, "collector", false, 0);
    assert_scale("scale 12 collector=10000", 0, "collector", false, 10000);
    assert_scale("scale 12 collector=+2", 0, "collector", true, 2);
    assert_scale("scale 12 collector=-2 --json", 0, "collector", true, -2);
    assert_scale("scale 12 shard-3=-2", 0, "shard-3", true, -2);
    assert_scale("scale 12 a=1 b-2=+3 c=-4", 2, "c", true, -4);
    assert_int_equal(good("scale 12 a=1 b-2=+3 c=-4").scale_count, 3);
    assert_true(good("scale --help").help);
    assert_refused("scale 12", "'scale' takes JOB and then one to 16 changes: ROLE=N, ROLE=+K or "
                               "ROLE=-K");
    assert_refused("scale 12 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1",
                   "'scale' takes JOB and then one to 16 changes: ROLE=N, ROLE=+K or ROLE=-K");
    assert_refused("scale a=1 12", "'a=1' is not a job id; give the number that squeue shows (of "
                                   "an array's task: squeue -o %A)");
}

/* The name of a role may end with -2: only with = it is clear what is meant. */
static void test_bad_scales(void **unused)
{
    static const char *const bad[] = {"collector", "collector+2", "collector-2", "=8",   "8",
                                      "-2",        "+2",          "Collector=8", "-a=8", "a:8"};
    static const char *const numbers[] = {"",    "x",   "10001", "+0",  "-0",
                                          "++2", "+-2", "2:4",   "0x6", "6.0"};
    char line[64], message[256];
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        bool option = strcmp(bad[i], "-a=8") == 0;
        snprintf(line, sizeof(line), "scale 12 %s", bad[i]);
        snprintf(message, sizeof(message),
                 "'%s' is not a change of a role; give ROLE=N (collector=8), ROLE=+K "
                 "(collector=+2) or ROLE=-K (collector=-2)",
                 bad[i]);
        assert_refused(line, option ? "unknown option '-a' of 'scale'; see 'selastic scale "
                                      "--help'"
                                    : message);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        snprintf(line, sizeof(line), "scale 12 a=1 b=%s", numbers[i]);
        snprintf(message, sizeof(message),
                 "'%s' is not a number of replicas; give one from 0 to 10000 (8) or a difference "
                 "(+2, -2)",
                 numbers[i]);
        assert_refused(line, message);
    }
}

static void test_roles(void **unused)
{
    assert_int_equal(good("roles 12").job_id, 12);
    assert_true(good("roles 12 --watch=5 --json").watch > 4.9);
    assert_refused("roles", "'roles' takes one argument: JOB");
    assert_refused("roles 12 collector", "'roles' takes one argument: JOB");
}

static void test_replicas(void **unused)
{
    assert_null(good("replicas 12").role);
    assert_string_equal(good("replicas 12 shard-3 --watch").role, "shard-3");
    assert_refused("replicas", "'replicas' takes one or two arguments: JOB and ROLE");
    assert_refused("replicas 12 a b", "'replicas' takes one or two arguments: JOB and ROLE");
    assert_refused("replicas 12 A", "'A' is not a role; give its name (collector)");
    assert_refused("replicas 12 -2", "'-2' is not a role; give its name (collector)");
}

static void test_fail(void **unused)
{
    static const char *const bad[] = {"collector",   "collector-", "3",    "-3",
                                      "collector-x", "A-3",        "a=-3", "--"};
    assert_string_equal(good("fail 12 collector-3").replica, "collector-3");
    assert_string_equal(good("fail 12 shard-3-10000 --json").replica, "shard-3-10000");
    assert_refused("fail 12", "'fail' takes two arguments: JOB and REPLICA");
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char line[64], message[128];
        snprintf(line, sizeof(line), "fail 12 %s", bad[i]);
        snprintf(message, sizeof(message), "'%s' is not a replica; give its name (collector-3)",
                 bad[i]);
        assert_refused(line, strcmp(bad[i], "--") == 0
                                 ? "'fail' takes two arguments: JOB and REPLICA"
                                 : message);
    }
}

static void test_endpoints(void **unused)
{
    assert_int_equal(good("endpoints 12").format, ENDPOINTS_TEXT);
    assert_null(good("endpoints 12").role);
    assert_string_equal(good("endpoints 12 --role=collector").role, "collector");
    assert_int_equal(good("endpoints 12 --format text").format, ENDPOINTS_TEXT);
    assert_int_equal(good("endpoints 12 --format=json").format, ENDPOINTS_JSON);
    assert_int_equal(good("endpoints 12 --format=hosts").format, ENDPOINTS_HOSTS);
    assert_int_equal(good("endpoints 12 --format=prometheus").format, ENDPOINTS_PROMETHEUS);
    assert_int_equal(good("endpoints 12 --format=haproxy").format, ENDPOINTS_HAPROXY);
    assert_refused("endpoints", "'endpoints' takes one argument: JOB");
    assert_refused("endpoints 12 --format=yaml", "--format=yaml is not allowed; give text, json, "
                                                 "hosts, prometheus or haproxy");
    assert_refused("endpoints 12 --format=", "--format= is not allowed; give text, json, hosts, "
                                             "prometheus or haproxy");
    assert_refused("endpoints 12 --role=a,b", "'a,b' is not a role; give its name (collector)");
    assert_true(good("endpoints 12 --json").json);
    assert_true(good("endpoints 12 --json --format=json").json);
    assert_refused("endpoints 12 --json --format=hosts",
                   "'endpoints' takes --json, or another --format");
}

static void test_exporter(void **unused)
{
    struct arguments arguments = good("exporter");

    (void)unused;
    assert_string_equal(arguments.address, "127.0.0.1");
    assert_int_equal(arguments.port, 9842);
    assert_int_equal(arguments.jobs, 50);
    assert_int_equal(arguments.interval, 15);
    assert_int_equal(arguments.timeout, 10);
    assert_false(arguments.once);
    arguments = good("exporter --once --jobs=3 --interval=5 --timeout=600 --address=::1");
    assert_true(arguments.once);
    assert_int_equal(arguments.jobs, 3);
    assert_int_equal(arguments.interval, 5);
    assert_int_equal(arguments.timeout, 600);
    assert_string_equal(arguments.address, "::1");
    assert_refused("exporter --jobs=0",
                   "--jobs=0 is not allowed; give a number of jobs from 1 to 1000");
    assert_refused("exporter --interval=1", "--interval=1: give seconds from 2 to 3600");
    assert_refused("exporter --timeout=601",
                   "--timeout=601 is not allowed; give seconds from 1 to 600");
    assert_refused("exporter --address=here",
                   "--address=here is not allowed; give the number of an "
                   "address, such as 127.0.0.1 or ::");
    assert_refused("exporter 12", "'exporter' takes no arguments besides options");
}

static void test_remove_and_proxy(void **unused)
{
    assert_string_equal(good("remove 12 collector-3").replica, "collector-3");
    assert_refused("remove 12", "'remove' takes two arguments: JOB and REPLICA");
    assert_int_equal(good("proxy 12").port, 0);
    assert_int_equal(good("proxy 12 --port=1024").port, 1024);
    assert_refused("proxy 12 --port=80",
                   "--port=80 is not allowed; give a port from 1024 to 65535");
    assert_refused("proxy 12 --port=65536",
                   "--port=65536 is not allowed; give a port from 1024 to 65535");
}

static void test_logs(void **unused)
{
    assert_null(good("logs 12").name);
    assert_false(good("logs 12").follow);
    assert_string_equal(good("logs 12 collector").name, "collector");
    assert_string_equal(good("logs 12 pair-0.1 -f").name, "pair-0.1");
    assert_true(good("logs 12 --follow").follow);
    assert_true(good("logs 12 --json").json);
    assert_refused("logs 12 a/b",
                   "'a/b' is not a role or replica; give its name (collector, collector-3), or "
                   "that of a task (pair-0.1)");
    assert_refused("logs", "'logs' takes one or two arguments: JOB and ROLE or REPLICA");
    assert_refused("show 12 -f", "unknown option '-f' of 'show'; see 'selastic show --help'");
}

/* A label is the whole of what is before the colon. */
static void test_lines_of_logs(void **unused)
{
    static const struct {
        const char *line, *name;
        bool match;
    } cases[] = {
        {"anything", NULL, true},
        {"collector-3: hello\n", "collector", true},
        {"collector-3: hello\n", "collector-3", true},
        {"collector-30: hello\n", "collector-3", false},
        {"collector-3: hello\n", "collect", false},
        {"pair-0.1: x", "pair", true},
        {"pair-0.1: x", "pair-0", true},
        {"pair-0.1: x", "pair-0.1", true},
        {"pair-0.11: x", "pair-0.1", false},
        {"pair-0.1: x", "pair-0.2", false},
        {"pair-0.1:\n", "pair-0", true},
        {"pair-0.1:x\n", "pair-0", false},
        {"pair-big-0: x", "pair", false},
        {"pair-: x", "pair", false},
        {"", "pair", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (logs_match(cases[i].line, cases[i].name) != cases[i].match)
            fail_msg("%s of %s", cases[i].line, cases[i].name);
}

/* As it would be printed, in two calls: what is there, and what is there when the job has ended. */
static void assert_printed(struct logs logs, const char *text, size_t size, const char *first,
                           const char *all)
{
    char *printed = NULL;
    size_t length = 0;
    FILE *file = tmpfile(), *out = open_memstream(&printed, &length);

    assert_true(file != NULL && out != NULL);
    assert_int_equal(fwrite(text, 1, size, file), size);
    rewind(file);
    assert_int_equal(logs_print(&logs, file, false, out), 0);
    assert_string_equal(printed, first);
    assert_int_equal(logs_print(&logs, file, true, out), 0);
    assert_string_equal(printed, all);
    fclose(out);
    fclose(file);
    free(printed);
}

#define PRINTED(logs, text, first, all) assert_printed(logs, text, sizeof(text) - 1, first, all)

static void test_logs_as_they_are_printed(void **unused)
{
    struct logs of_role = {.name = "pair"}, clean = {.clean = true}, raw = {.name = NULL};
    struct logs json = {.name = "pair", .json = true, .clean = true};

    PRINTED(of_role, "pair-0: a\nother\npair-1: b\npair-1: c", "pair-0: a\npair-1: b\n",
            "pair-0: a\npair-1: b\npair-1: c");
    PRINTED(raw, "\x1b]0;x\a\n", "\x1b]0;x\a\n", "\x1b]0;x\a\n");
    PRINTED(clean, "a\tb\x1b[2J\r\n\0c\n\xff", "a\tb\\x1b[2J\\x0d\n\\x00c\n",
            "a\tb\\x1b[2J\\x0d\n\\x00c\n\\xff");
#define A_PAIR "{ \"line\": \"pair-0: \\u0000\\u001b\\u00e9\\ufffd\\ufffd/\", \"ends\": true }\n"
    PRINTED(json, "pair-0: \0\x1b\xc3\xa9\xff\xc3/\nother\npair-1: \"b", A_PAIR,
            A_PAIR "{ \"line\": \"pair-1: \\\"b\", \"ends\": false }\n");
#undef A_PAIR
}

/* A job can write a line of gigabytes. */
static void test_a_line_of_logs_that_does_not_end(void **unused)
{
    const struct logs cases[] = {{.name = NULL}, {.name = "pair"}, {.name = "pai"}};
    const size_t size = LOGS_PIECE + 1000;
    char *line = calloc(1, size + 1), *first;

    memset(line, 'x', size);
    memcpy(line, "pair-0: ", 8);
    first = strndup(line, LOGS_PIECE);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_printed(cases[i], line, size, i < 2 ? first : "", i < 2 ? line : "");
    free(first);
    free(line);
}

static void test_history(void **unused)
{
    struct arguments arguments = good("history 12 --timeline --user ada --state-dir=/x/12");
    assert_true(arguments.timeline);
    assert_string_equal(arguments.user, "ada");
    assert_string_equal(arguments.state_dir, "/x/12");
    assert_null(good("history 12").user);
    assert_refused("history 12 --user", "option '--user' needs a value");
}

static void test_plan(void **unused)
{
    assert_string_equal(good("plan rl.yaml").file, "rl.yaml");
    assert_null(good("plan rl.yaml").partition);
    assert_string_equal(good("plan --partition=cpu rl.yaml --json").partition, "cpu");
    assert_refused("plan", "'plan' takes one argument: FILE");
    assert_refused("plan a b", "'plan' takes one argument: FILE");
    assert_refused("plan a --nodes=2",
                   "unknown option '--nodes=2' of 'plan'; see 'selastic plan --help'");
}

static void test_clean(void **unused)
{
    assert_int_equal(good("clean").days, 30);
    assert_false(good("clean").dry_run);
    assert_int_equal(good("clean --older-than 7").days, 7);
    assert_true(good("clean --dry-run --json").dry_run);
    assert_refused("clean 12", "'clean' takes no arguments besides options");
    assert_refused("clean --older-than=0",
                   "--older-than=0 is not allowed; give days from 1 to 3650");
    assert_refused("clean --older-than=7d",
                   "--older-than=7d is not allowed; give days from 1 to 3650");
}

static void test_bad_options(void **unused)
{
    assert_refused("list --jason",
                   "unknown option '--jason' of 'list'; see 'selastic list --help'");
    assert_refused("show 12 -x", "unknown option '-x' of 'show'; see 'selastic show --help'");
    assert_refused("show 12 -xy", "unknown option '-x' of 'show'; see 'selastic show --help'");
    assert_refused("show 12 --all", "unknown option '--all' of 'show'; see 'selastic show --help'");
    assert_refused("show 12 -2", "unknown option '-2' of 'show'; see 'selastic show --help'");
    assert_refused("list --json=yes", "option '--json=yes' takes no value");
    assert_refused("list --help=yes", "option '--help=yes' takes no value");
    assert_refused("status 12",
                   "unknown command 'status'; did you mean 'show'? 'selastic --help' lists all");
    assert_refused(
        "hostory 12",
        "unknown command 'hostory'; did you mean 'history'? 'selastic --help' lists all");
    assert_refused("sho 12",
                   "unknown command 'sho'; did you mean 'show'? 'selastic --help' lists all");
    assert_refused(
        "delete 12",
        "unknown command 'delete'; commands: list, top, show, wait, resize, history, "
        "roles, replicas, scale, fail, remove, endpoints, logs, reports, proxy, usage, exporter, "
        "services, shard, apply, flush, repack, move, place, withdraw, serve, handover, clean, "
        "plan, "
        "states, fit, router, "
        "doctor, "
        "topology, "
        "help");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_doctor),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_top),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_topology),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_bad_jobs),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_bad_scales),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_remove_and_proxy),
        cmocka_unit_test(test_exporter),
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_lines_of_logs),
        cmocka_unit_test(test_logs_as_they_are_printed),
        cmocka_unit_test(test_a_line_of_logs_that_does_not_end),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_bad_options),
    };
    return cmocka_run_group_tests_name("selastic_arguments", tests, NULL, NULL);
}
