/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/policy and lib/json_text: options, policy files, layers. Every message is spelled out. */
#include <signal.h>

#include "lib/json_text.h"
#include "lib/policy.h"
#include "lib/text.h"
#include "tests/unit/support.h"

static int parse(struct policy *policy, const char *text, struct error *err)
{
    return policy_parse_json(policy, text, strlen(text), err);
}

static void parse_good(struct policy *policy, const char *text)
{
    struct error err = {""};

    if (parse(policy, text, &err) != 0)
        fail_msg("%s: %s", text, err.text);
}

/* The policy as plain JSON text, in buf. */
static const char *describe(const struct policy *policy, char buf[1024])
{
    json_object *obj = policy_to_json(policy);

    buf[0] = '\0';
    text_append(buf, 1024, "%s", json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN));
    json_object_put(obj);
    return buf;
}

static void assert_policy(const struct policy *policy, const char *expected)
{
    char buf[1024];

    assert_string_equal(describe(policy, buf), expected);
}

static int same_name(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* No two rows may answer to the same name. */
static void assert_unlike(const struct policy_option *a, const struct policy_option *b)
{
    if (same_name(a->option, b->option) || same_name(a->environment, b->environment) ||
        same_name(a->json, b->json) || same_name(a->conf, b->conf) || same_name(a->label, b->label))
        fail_msg("%s and %s share a name", a->json, b->json);
}

/* sbatch --help has 24 columns for "--NAME=ARGUMENT". */
static void assert_helpful(const struct policy_option *option)
{
    if (strncmp(option->option, "elastic", 7) != 0 || strlen(option->help) < 20 ||
        strlen(option->option) + strlen(option->argument) + 3 > 24)
        fail_msg("--%s=%s does not fit into a help text", option->option, option->argument);
}

#define MLFLOW_URL                                                                                 \
    "write none, or an address such as http://mlflow.example:5000, without a name or password "    \
    "(MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD have these)"

static void test_table(void **state)
{
    for (const struct policy_option *o = policy_options; o->json != NULL; o++) {
        assert_int_equal(strncmp(o->environment, "ELASTIC_", 8), 0);
        assert_true(o->kind == POLICY_KIND_NUMBER || o->allowed != NULL);
        for (const struct policy_option *other = o + 1; other->json != NULL; other++)
            assert_unlike(o, other);
        if (o->option == NULL)
            continue;
        assert_helpful(o);
        assert_ptr_equal(policy_find(o->option), o);
    }
    assert_ptr_equal(policy_find("grow-delay"), policy_find("elastic-grow-delay"));
    assert_null(policy_find("elastic-"));
    assert_null(policy_find(""));
}

/* The text that policy_option_text gives for a value means that value. */
static void assert_accepted(const struct policy_option *option, const char *text)
{
    struct policy policy;
    struct error err = {""};
    char *again;

    policy_init(&policy);
    if (policy_option_set(&policy, option, text, &err) != 0)
        fail_msg("%s: %s", option->json, err.text);
    assert_true(policy_option_is_set(&policy, option));
    again = policy_option_text(&policy, option);
    assert_string_equal(again, text);
    free(again);
}

static void assert_limits(const struct policy_option *option)
{
    struct policy policy;
    struct error err = {""};
    char text[16];

    snprintf(text, sizeof(text), "%d", option->min);
    assert_accepted(option, text);
    snprintf(text, sizeof(text), "%d", option->max);
    assert_accepted(option, text);
    snprintf(text, sizeof(text), "%d", option->max + 1);
    policy_init(&policy);
    assert_int_equal(policy_option_set(&policy, option, text, &err), -1);
    snprintf(text, sizeof(text), "%d to %d", option->min, option->max);
    assert_non_null(strstr(err.text, text));
    assert_in_range(option->builtin, option->min, option->max);
}

static void test_values_of_the_table(void **state)
{
    for (const struct policy_option *o = policy_options; o->json != NULL; o++) {
        char *builtin = policy_option_default(o);

        if (builtin != NULL)
            assert_accepted(o, builtin);
        free(builtin);
        if (o->kind == POLICY_KIND_NUMBER)
            assert_limits(o);
        for (size_t i = 0; i < POLICY_WORDS_MAX && o->words[i] != NULL; i++) {
            assert_accepted(o, o->words[i]);
            assert_non_null(strstr(o->allowed, o->words[i]));
        }
    }
}

static void test_variables(void **state)
{
    char buf[64];

    assert_string_equal(policy_option_variable("elastic", buf, sizeof(buf)),
                        "_SLURM_SPANK_OPTION_elastic_elastic");
    assert_string_equal(policy_option_variable("elastic-grow-delay", buf, sizeof(buf)),
                        "_SLURM_SPANK_OPTION_elastic_elastic_grow_delay");
}

static void test_options(void **state)
{
    struct policy policy;
    struct error err = {""};
    static const char *const given[][2] = {
        {"elastic", "2:8:2"},
        {"grace", "120"},
        {"grow-delay", "0"},
        {"snooze", "31536000"},
        {"fault-wait", "7"},
        {"hang-wait", "900"},
        {"max-restarts", "5/3600"},
        {"pool", "a,b-1"},
        {"signal", "USR1"},
        {"grow", "ask"},
        {"requeue", "fault,limit"},
        {"deadline", "2026-12-01T08:00+01:00"},
        {"fallback", "300"},
        {"budget", "1200.50"},
        {"max-price", "0.000001"},
        {"wake", "no"},
        {"reclaim", "shrink"},
        {"replica", "2"},
        {"straggler", "replace"},
        {"mlflow", "https://m.example:5000/base"},
        {"experiment", "digits \xc3\xa9"},
        {"run-name", "600"},
        {"run-id", "0123abc"},
    };

    policy_init(&policy);
    assert_policy(&policy, "{}");
    for (size_t i = 0; i < COUNT(given); i++) {
        assert_false(policy_option_is_set(&policy, policy_find(given[i][0])));
        assert_int_equal(policy_set(&policy, given[i][0], given[i][1], &err), 0);
        assert_true(policy_option_is_set(&policy, policy_find(given[i][0])));
    }
    assert_policy(&policy,
                  "{\"nodes\":\"2:8:2\",\"replica\":2,\"grace\":120,\"grow_delay\":0,\"snooze\":"
                  "31536000,\"fault_wait\":7,"
                  "\"hang_wait\":900,\"straggler\":\"replace\",\"max_restarts\":\"5\\/"
                  "3600\",\"signal\":\"USR1\",\"grow\":\"ask\","
                  "\"requeue\":\"limit,fault\",\"pool\":[\"a\",\"b-1\"],"
                  "\"deadline\":\"2026-12-01T07:00:00Z\",\"fallback\":300,\"budget\":1200.5,"
                  "\"max_price\":0.000001,\"wake\":\"no\",\"reclaim\":\"shrink\","
                  "\"mlflow_tracking_uri\":\"https:\\/\\/m.example:5000\\/base\","
                  "\"mlflow_experiment_name\":\"digits \xc3\xa9\",\"mlflow_run_name\":\"600\","
                  "\"mlflow_run_id\":\"0123abc\"}");
    assert_true(policy.deadline == 1796108400);
    assert_true(policy.budget == 1200.5);
    assert_near(policy.max_price, 1e-6, 1e-12);
    assert_int_equal(policy.fallback, 300);
    assert_int_equal(policy.wake, POLICY_WAKE_NO);
    assert_int_equal(policy.reclaim, POLICY_RECLAIM_SHRINK);
    assert_int_equal(policy.straggler, POLICY_STRAGGLER_REPLACE);
    assert_int_equal(policy.signal, SIGUSR1);
    assert_int_equal(policy.grow, POLICY_GROW_ASK);
    policy_clear(&policy);
    assert_policy(&policy, "{}");
}

#define RESTARTS                                                                                   \
    "is not a number of restarts; write N, from 0 to 1000000, or N/SECONDS for N within any so "   \
    "many seconds"
#define SECONDS "is not a number of seconds; allowed are whole numbers from 0 to 31536000"
#define SIGNALS                                                                                    \
    "write a name such as USR1 or SIGTERM, a number from 1 to 64, or none; KILL and STOP cannot "  \
    "be caught"
#define FALLBACK "is not allowed; write never, deadline or whole seconds from 0 to 31536000"
#define AMOUNT                                                                                     \
    "is not an amount up to 1000000000; write a number such as 12 or 0.35, with at most 6 digits " \
    "behind the point"
#define NOTHING "allows nothing; write an amount greater than 0, or leave the option out"
#define TIME                                                                                       \
    "is not a time; write a time such as 2026-12-01T08:00, 16:00, 12/01, \"tomorrow 8:00\" or "    \
    "now+60hours"
#define POOLS "write NAME or NAME,NAME without blanks"
#define LETTERS                                                                                    \
    POOLS ", with 1 to 63 letters, digits and _ - . + in a name, a letter, digit or _ first"
#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A60 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_bad_options(void **state)
{
    static const struct {
        const char *name, *value, *message;
    } cases[] = {
        {"elastic", "8:2",
         "--elastic=8:2: MIN 8 is larger than MAX 2; write MIN:MAX with 1 <= MIN <= MAX <= 65533"},
        {"elastic", "",
         "--elastic=: the value is empty; write MIN:MAX such as 2:8, MIN:MAX:STEP such as 2:8:2, "
         "or a list such as 2,4,8"},
        {"grace", "", "--elastic-grace=: '' " SECONDS},
        {"grace", "-5", "--elastic-grace=-5: '-5' " SECONDS},
        {"grace", "ten", "--elastic-grace=ten: 'ten' " SECONDS},
        {"grace", "10s", "--elastic-grace=10s: '10s' " SECONDS},
        {"grace", "1.5", "--elastic-grace=1.5: '1.5' " SECONDS},
        {"grace", " 5", "--elastic-grace= 5: ' 5' " SECONDS},
        {"grow-delay", "31536001", "--elastic-grow-delay=31536001: '31536001' " SECONDS},
        {"snooze", "4294967296", "--elastic-snooze=4294967296: '4294967296' " SECONDS},
        {"grow", "", "--elastic-grow=: '' is not allowed; write auto or ask"},
        {"grow", "Ask", "--elastic-grow=Ask: 'Ask' is not allowed; write auto or ask"},
        {"grow", "no", "--elastic-grow=no: 'no' is not allowed; write auto or ask"},
        {"fault-wait", "99999999999999999999",
         "--elastic-fault-wait=99999999999999999999: '99999999999999999999' " SECONDS},
        {"fault-wait", "5\n6", "--elastic-fault-wait=5?6: '5?6' " SECONDS},
        {"requeue", "always",
         "--elastic-requeue=always: 'always' is not allowed; write limit, fault, limit,fault or "
         "none"},
        {"requeue", "limit,limit",
         "--elastic-requeue=limit,limit: 'limit,limit' is not allowed; write limit, fault, "
         "limit,fault or none"},
        {"requeue", "limit,none",
         "--elastic-requeue=limit,none: 'limit,none' is not allowed; write limit, fault, "
         "limit,fault or none"},
        {"requeue", "limit,",
         "--elastic-requeue=limit,: 'limit,' is not allowed; write limit, fault, limit,fault or "
         "none"},
        {"requeue", "",
         "--elastic-requeue=: '' is not allowed; write limit, fault, limit,fault or none"},
        {"hang-wait", "-1", "--elastic-hang-wait=-1: '-1' " SECONDS},
        {"max-restarts", "two", "--elastic-max-restarts=two: 'two' " RESTARTS},
        {"max-restarts", "3/0", "--elastic-max-restarts=3/0: '3/0' " RESTARTS},
        {"signal", "", "--elastic-signal=: '' is not a signal; " SIGNALS},
        {"signal", "USR3", "--elastic-signal=USR3: 'USR3' is not a signal; " SIGNALS},
        {"signal", "SIG", "--elastic-signal=SIG: 'SIG' is not a signal; " SIGNALS},
        {"signal", "SIGSIGUSR1",
         "--elastic-signal=SIGSIGUSR1: 'SIGSIGUSR1' is not a signal; " SIGNALS},
        {"signal", "0", "--elastic-signal=0: '0' is not a signal; " SIGNALS},
        {"signal", "65", "--elastic-signal=65: '65' is not a signal; " SIGNALS},
        {"signal", "-1", "--elastic-signal=-1: '-1' is not a signal; " SIGNALS},
        {"signal", "KILL", "--elastic-signal=KILL: a worker cannot catch SIGKILL; " SIGNALS},
        {"signal", "sigstop", "--elastic-signal=sigstop: a worker cannot catch SIGSTOP; " SIGNALS},
        {"signal", "62", "--elastic-signal=62: signal 62 is elasticrun's own; " SIGNALS},
        {"signal", "63", "--elastic-signal=63: signal 63 is elasticrun's own; " SIGNALS},
        {"signal", "9", "--elastic-signal=9: a worker cannot catch SIGKILL; " SIGNALS},
        {"signal", "32",
         "--elastic-signal=32: a worker cannot catch signal 32, which the C library uses "
         "itself; " SIGNALS},
        {"pool", "", "--elastic-pool=: a pool's name is missing; " POOLS},
        {"pool", "a,", "--elastic-pool=a,: a pool's name is missing; " POOLS},
        {"pool", ",a", "--elastic-pool=,a: a pool's name is missing; " POOLS},
        {"pool", "a, b", "--elastic-pool=a, b: ' b' is not a pool's name; " LETTERS},
        {"pool", "-x", "--elastic-pool=-x: '-x' is not a pool's name; " LETTERS},
        {"pool", "a;b", "--elastic-pool=a;b: 'a;b' is not a pool's name; " LETTERS},
        {"pool", "a,b,a", "--elastic-pool=a,b,a: pool 'a' is named twice; name each once"},
        {"pool", A64, "--elastic-pool=" A60 "...: '" A60 "...' is not a pool's name; " LETTERS},
        {"pool", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
         "--elastic-pool=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17: more than 16 pools; name at "
         "most so many"},
        {"deadline", "", "--elastic-deadline=: '' " TIME},
        {"deadline", "60", "--elastic-deadline=60: '60' " TIME},
        {"deadline", "2026-02-30",
         "--elastic-deadline=2026-02-30: '2026-02-30': month 2 of 2026 has no day 30"},
        {"deadline", "now+60hours",
         "--elastic-deadline=now+60hours: 'now+60hours' depends on when it is read; write a whole "
         "date, such as 2026-12-01T08:00"},
        {"fallback", "", "--elastic-fallback=: '' " FALLBACK},
        {"fallback", "-2", "--elastic-fallback=-2: '-2' " FALLBACK},
        {"fallback", "always", "--elastic-fallback=always: 'always' " FALLBACK},
        {"fallback", "31536001", "--elastic-fallback=31536001: '31536001' " FALLBACK},
        {"budget", "", "--elastic-budget=: '' " AMOUNT},
        {"budget", "-5", "--elastic-budget=-5: '-5' " AMOUNT},
        {"budget", "1e3", "--elastic-budget=1e3: '1e3' " AMOUNT},
        {"budget", "0", "--elastic-budget=0: '0' " NOTHING},
        {"max-price", "0.000", "--elastic-max-price=0.000: '0.000' " NOTHING},
        {"max-price", "-0.1", "--elastic-max-price=-0.1: '-0.1' " AMOUNT},
        {"max-price", "0.1234567", "--elastic-max-price=0.1234567: '0.1234567' " AMOUNT},
        {"wake", "true", "--elastic-wake=true: 'true' is not allowed; write yes or no"},
        {"reclaim", "none",
         "--elastic-reclaim=none: 'none' is not allowed; write replace or shrink"},
        {"mlflow", "ftp://m", "--elastic-mlflow=ftp://m: 'ftp://m' is not allowed; " MLFLOW_URL},
        {"mlflow", "/scratch/mlruns",
         "--elastic-mlflow=/scratch/mlruns: '/scratch/mlruns' is not allowed; " MLFLOW_URL},
        {"mlflow", "http://ada:secret@m",
         "--elastic-mlflow=http://ada:secret@m: 'http://ada:secret@m' is not "
         "allowed; " MLFLOW_URL},
        {"mlflow", "http://", "--elastic-mlflow=http://: 'http://' is not allowed; " MLFLOW_URL},
        {"mlflow", "http:///x",
         "--elastic-mlflow=http:///x: 'http:///x' is not allowed; " MLFLOW_URL},
        {"run-name", "",
         "--elastic-run-name=: '' is not allowed; write 1 to 250 characters in a line"},
        {"run-name", "a\nb",
         "--elastic-run-name=a?b: 'a?b' is not allowed; write 1 to 250 characters in a "
         "line"},
        {"run-id", "../x",
         "--elastic-run-id=../x: '../x' is not allowed; write the id of a run: 1 to 64 "
         "letters, digits, - and _"},
        {"run-id", "01234567890123456789012345678901234567890123456789012345678901234",
         "--elastic-run-id="
         "012345678901234567890123456789012345678901234567890123456789...: "
         "'012345678901234567890123456789012345678901234567890123456789...' is not allowed; "
         "write the id of a run: 1 to 64 letters, digits, - and _"},
        {"straggler", "no",
         "--elastic-straggler=no: 'no' is not allowed; write report, replace or off"},
        {"colour", "red", "--elastic-colour=red: there is no option of this name"},
    };
    struct policy policy;

    policy_init(&policy);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};

        if (policy_set(&policy, cases[i].name, cases[i].value, &err) != -1)
            fail_msg("--elastic-%s=%s was accepted", cases[i].name, cases[i].value);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(policy_set(&policy, cases[i].name, cases[i].value, NULL), -1);
        assert_policy(&policy, "{}");
    }
    assert_null(policy_find("colour"));
}

static void test_signals(void **state)
{
    static const struct {
        const char *text;
        int number;
    } cases[] = {
        {"USR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"TERM", SIGTERM}, {"sigterm", SIGTERM},
        {"Hup", SIGHUP},   {"10", 10},           {"34", 34},        {"64", 64},
        {"none", 0},       {"NONE", 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct policy policy, again;
        json_object *obj;

        policy_init(&policy);
        assert_int_equal(policy_set(&policy, "signal", cases[i].text, NULL), 0);
        assert_int_equal(policy.signal, cases[i].number);
        /* And through a policy file, also where the signal has no name. */
        obj = policy_to_json(&policy);
        policy_init(&again);
        parse_good(&again, json_object_to_json_string(obj));
        assert_int_equal(again.signal, cases[i].number);
        json_object_put(obj);
    }
}

static void test_a_failed_option_leaves_the_old_value(void **state)
{
    struct policy policy;

    policy_init(&policy);
    policy_set(&policy, "elastic", "2:4", NULL);
    policy_set(&policy, "pool", "a,b", NULL);
    policy_set(&policy, "grace", "9", NULL);
    policy_set(&policy, "signal", "HUP", NULL);
    assert_int_equal(policy_set(&policy, "elastic", "2:x", NULL), -1);
    assert_int_equal(policy_set(&policy, "pool", "c,d,,", NULL), -1);
    assert_int_equal(policy_set(&policy, "grace", "9999999999", NULL), -1);
    assert_int_equal(policy_set(&policy, "signal", "KILL", NULL), -1);
    assert_policy(&policy,
                  "{\"nodes\":\"2:4\",\"grace\":9,\"signal\":\"HUP\",\"pool\":[\"a\",\"b\"]}");
    assert_int_equal(policy_set(&policy, "pool", "c", NULL), 0);
    assert_policy(&policy, "{\"nodes\":\"2:4\",\"grace\":9,\"signal\":\"HUP\",\"pool\":[\"c\"]}");
}

static void test_file(void **state)
{
    struct policy policy;

    policy_init(&policy);
    parse_good(
        &policy,
        " {\"nodes\": \"2,4,8\", \"grace\": 30, \"grow_delay\": 1, \"snooze\": 2,\n"
        "  \"fault_wait\": 3, \"hang_wait\": 4, \"max_restarts\": 5, \"pool\": [\"spot\", "
        "\"spare\"], \"signal\": 12,\n"
        "  \"scale_config\": {\"4\": {\"lr\": 0.1, \"tags\": [null, true]}, \"16\": {}}} \n");
    assert_policy(
        &policy,
        "{\"nodes\":\"2,4,8\",\"grace\":30,\"grow_delay\":1,\"snooze\":2,\"fault_wait\":3,"
        "\"hang_wait\":4,\"max_restarts\":5,\"signal\":\"USR2\",\"pool\":[\"spot\",\"spare\"],"
        "\"scale_config\":{\"4\":{\"lr\":0.1,\"tags\":[null,true]},\"16\":{}}}");
    /* A second file: what it says replaces, the rest stays. */
    parse_good(&policy,
               "{\"pool\": \"a,b\", \"scale_config\": {\"2\": {\"x\": 1}}, \"grace\": 31}");
    assert_policy(
        &policy, "{\"nodes\":\"2,4,8\",\"grace\":31,\"grow_delay\":1,\"snooze\":2,\"fault_wait\":3,"
                 "\"hang_wait\":4,\"max_restarts\":5,\"signal\":\"USR2\",\"pool\":[\"a\",\"b\"],"
                 "\"scale_config\":{\"2\":{\"x\":1}}}");
    parse_good(&policy, "{}");
    policy_clear(&policy);
}

#define KNOWN                                                                                      \
    "unknown key; known keys: nodes, replica, grace, grow_delay, snooze, fault_wait, hang_wait, "  \
    "straggler, max_restarts, signal, grow, requeue, pool, deadline, fallback, budget, "           \
    "max_price, wake, "                                                                            \
    "reclaim, mlflow_tracking_uri, mlflow_experiment_name, mlflow_run_name, mlflow_run_id, "       \
    "scale_config"
#define WHOLE  "write a whole number of seconds from 0 to 31536000"
#define OBJECT "write {\"key\": value, ...}"
#define NODES  "write a string such as \"2:8\", \"2:8:2\" or \"2,4,8\""
#define LIST   "write \"a,b\" or [\"a\", \"b\"]"

/* Sizes and --elastic-replica may come from different layers. */
static void test_kept_together(void **state)
{
    static const struct {
        const char *sizes, *replica, *becomes, *refusal;
    } cases[] = {
        {"2:8", NULL, "2:8", NULL},
        {"2:8", "1", "2:8", NULL},
        {"2:8", "2", "2:8:2", NULL},
        {"2:9", "2", NULL, "--elastic-replica=2: MAX 9 is not a multiple of 2; use 8 or 10"},
        {NULL, "2", NULL,
         "--elastic-replica=2 is about the sizes of a training: it needs --elastic=MIN:MAX"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct policy policy;
        struct error err = {""};
        char text[SIZES_TEXT_MAX];

        policy_init(&policy);
        if (cases[i].sizes != NULL)
            policy_set(&policy, "elastic", cases[i].sizes, NULL);
        if (cases[i].replica != NULL)
            policy_set(&policy, "replica", cases[i].replica, NULL);
        assert_int_equal(policy_keep_together(&policy, &err), cases[i].refusal == NULL ? 0 : -1);
        if (cases[i].refusal != NULL)
            assert_string_equal(err.text, cases[i].refusal);
        else
            assert_string_equal(sizes_format(&policy.sizes, text, sizeof(text)), cases[i].becomes);
        policy_clear(&policy);
    }
}

/* What is relative is fixed when it is read, and its text is the same for every reader. */
static void test_deadline(void **state)
{
    struct policy policy, again, none;
    struct error err = {""};
    char *text;

    (void)state;
    policy_init(&policy);
    policy_init(&again);
    policy_init(&none);
    policy.now = 1764575999.75;
    assert_int_equal(policy_set(&policy, "deadline", "now+60hours", &err), 0);
    assert_true(policy.deadline == 1764575999 + 60 * 3600);
    text = policy_option_text(&policy, policy_find("deadline"));
    assert_string_equal(text, "2025-12-03T19:59:59Z");
    assert_int_equal(policy_set(&again, "deadline", text, &err), 0);
    assert_true(again.deadline == policy.deadline);
    free(text);
    /* Files are read at the same moment, and merged values stay. */
    policy_clear(&policy);
    parse_good(&policy, "{\"deadline\": \"now+1minutes\"}");
    assert_true(policy.deadline == 1764575999 + 60);
    policy_merge(&again, &policy);
    assert_true(again.deadline == 1764575999 + 60 * 3600);
    policy_merge(&none, &policy);
    assert_true(none.deadline == 1764575999 + 60);

    assert_int_equal(policy_check_deadline(&none, none.deadline - 1, &err), 0);
    assert_int_equal(policy_check_deadline(&none, none.deadline, &err), -1);
    assert_string_equal(err.text, "--elastic-deadline=2025-12-01T08:00:59Z has passed already; "
                                  "name a time to come");
    policy_clear(&none);
    assert_int_equal(policy_check_deadline(&none, 1e10, &err), 0);
}

static void test_fallback(void **state)
{
    static const struct {
        const char *text;
        int value;
    } cases[] = {{"never", POLICY_FALLBACK_NEVER},
                 {"deadline", POLICY_FALLBACK_DEADLINE},
                 {"0", 0},
                 {"31536000", POLICY_SECONDS_MAX}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct policy policy;
        char *text;

        policy_init(&policy);
        assert_int_equal(policy_set(&policy, "fallback", cases[i].text, NULL), 0);
        assert_int_equal(policy.fallback, cases[i].value);
        text = policy_option_text(&policy, policy_find("fallback"));
        assert_string_equal(text, cases[i].text);
        free(text);
    }
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        /* Not JSON, or not all of it. */
        {"", "there is nothing in it; " OBJECT},
        {" \n\t", "there is nothing in it; " OBJECT},
        {"[]", "this is not a JSON object; " OBJECT},
        {"null", "this is not a JSON object; " OBJECT},
        {"\"nodes\"", "this is not a JSON object; " OBJECT},
        {"nodes = 2:8", "this is not a JSON object; " OBJECT},
        {"\xef\xbb\xbf{}", "this is not a JSON object; " OBJECT},
        {"{", "line 1, column 2: the text ends too early; a bracket, brace or quote is not closed"},
        {"{\"grace\": 5",
         "line 1, column 12: the text ends too early; a bracket, brace or quote is not closed"},
        {"{\"pool\": \"a",
         "line 1, column 12: the text ends too early; a bracket, brace or quote is not closed"},
        {"{\"grace\": 5}\n{}", "line 2, column 1: there is text behind the end of the JSON object"},
        {"{\"grace\": 5}\n\n  x",
         "line 3, column 3: there is text behind the end of the JSON object"},
        {"{\"grace\": 5,}", "line 1, column 13: unexpected character"},
        {"{\n \"grace\" 5}", "line 2, column 10: object property name separator ':' expected"},
        {"{grace: 5}", "line 1, column 2: quoted object property name expected"},
        {"{'grace': 5}",
         "line 1, column 2: a single quote; JSON writes names and strings in double quotes"},
        {"{'a\"': 5}",
         "line 1, column 2: a single quote; JSON writes names and strings in double quotes"},
        {"{\"grace\": 5} // why",
         "line 1, column 14: there is text behind the end of the JSON object"},
        {"{\"pool\": \"\xff\"}", "line 1, column 11: this is not UTF-8"},
        {"{\"pool\": \"\xf0\x80\x98\x80\"}", "line 1, column 11: this is not UTF-8"},
        {"{\"pool\": \"a\nb\"}", "line 1, column 10: a raw line break or control character in a "
                                 "string; write \\n, \\t, ..."},
        {"{\"grace\": 5.}", "line 1, column 12: a number with a needless zero in front, or no "
                            "digit on both sides of its point"},
        {"{\"grace\": -05}", "line 1, column 12: a number with a needless zero in front, or no "
                             "digit on both sides of its point"},
        {"{\"scale_config\": {\"2\": [1, 02.5, 3]}}",
         "line 1, column 28: a number with a needless zero in front, or no digit on both sides of "
         "its point"},
        {"{\"scale_config\": {\"2\": {\"lr\": NaN}}}",
         "\"lr\": NaN, Infinity and numbers that need more than 64 bits are not allowed"},
        {"{\"scale_config\": {\"2\": {\"lr\": 1e999}}}",
         "\"lr\": NaN, Infinity and numbers that need more than 64 bits are not allowed"},
        {"{\"grace\": 99999999999999999999}",
         "\"grace\": NaN, Infinity and numbers that need more than 64 bits are not allowed"},
        /* Keys. */
        {"{\"grace\": 5, \"grace\": 5}",
         "line 1, column 14: \"grace\" is there twice in one object; leave one of them out"},
        {"{\"grace\": 5,\n\"gr\\u0061ce\": 5}",
         "line 2, column 1: \"grace\" is there twice in one object; leave one of them out"},
        {"{\"scale_config\": {\"2\": {}, \"2\": {}}}",
         "line 1, column 28: \"2\" is there twice in one object; leave one of them out"},
        {"{\"gr\\u0000ace\": 5}", "line 1, column 2: a key with \\u0000 in it is not allowed"},
        {"{\"Grace\": 5}", "\"Grace\": " KNOWN},
        {"{\"\": 5}", "\"\": " KNOWN},
        {"{\"graceful\\nShutdown\": 5}", "\"graceful?Shutdown\": " KNOWN},
        {"{\"elastic\": \"2:8\"}", "\"elastic\": " KNOWN},
        /* Types and values. */
        {"{\"nodes\": 4}", "\"nodes\": a number is not allowed here; " NODES},
        {"{\"nodes\": [2, 4]}", "\"nodes\": an array is not allowed here; " NODES},
        {"{\"nodes\": null}", "\"nodes\": null is not allowed here; " NODES},
        {"{\"nodes\": \"2\\u0000:8\"}",
         "\"nodes\": a string with \\u0000 in it is not allowed here; " NODES},
        {"{\"nodes\": \"8:2\"}", "\"nodes\": '8:2': MIN 8 is larger than MAX 2; write MIN:MAX with "
                                 "1 <= MIN <= MAX <= 65533"},
        {"{\"nodes\": \"\"}", "\"nodes\": '': the value is empty; write MIN:MAX such as 2:8, "
                              "MIN:MAX:STEP such as 2:8:2, "
                              "or a list such as 2,4,8"},
        {"{\"grace\": \"5\"}", "\"grace\": a string is not allowed here; " WHOLE},
        {"{\"grace\": 5.0}", "\"grace\": a number with a fraction is not allowed here; " WHOLE},
        {"{\"grace\": true}", "\"grace\": true or false is not allowed here; " WHOLE},
        {"{\"grace\": null}", "\"grace\": null is not allowed here; " WHOLE},
        {"{\"grace\": {}}", "\"grace\": an object is not allowed here; " WHOLE},
        {"{\"grow_delay\": -1}", "\"grow_delay\": -1 is out of range; allowed are whole numbers of "
                                 "seconds from 0 to 31536000"},
        {"{\"snooze\": 9223372036854775807}",
         "\"snooze\": 9223372036854775807 is out of range; allowed are whole numbers "
         "of seconds from 0 to 31536000"},
        {"{\"grow\": true}", "\"grow\": true or false is not allowed here; write auto or ask"},
        {"{\"grow\": \"yes\"}", "\"grow\": 'yes': 'yes' is not allowed; write auto or ask"},
        {"{\"signal\": \"KILL\"}", "\"signal\": 'KILL': a worker cannot catch SIGKILL; " SIGNALS},
        {"{\"signal\": 4294967306}", "\"signal\": '4294967306' is not a signal; " SIGNALS},
        {"{\"signal\": 0}", "\"signal\": '0' is not a signal; " SIGNALS},
        {"{\"signal\": false}", "\"signal\": true or false is not allowed here; " SIGNALS},
        {"{\"deadline\": 1796108400}", "\"deadline\": a number is not allowed here; write a time "
                                       "such as 2026-12-01T08:00, 16:00, "
                                       "12/01, \"tomorrow 8:00\" or now+60hours"},
        {"{\"deadline\": \"soon\"}", "\"deadline\": 'soon': 'soon' " TIME},
        {"{\"fallback\": 1.5}",
         "\"fallback\": a number with a fraction is not allowed here; write never, deadline or "
         "whole seconds from 0 to 31536000"},
        {"{\"fallback\": -3}", "\"fallback\": '-3' " FALLBACK},
        {"{\"budget\": -0.5}", "\"budget\": '-0.5' " AMOUNT},
        {"{\"budget\": 1e3}", "\"budget\": '1e3' " AMOUNT},
        {"{\"budget\": null}",
         "\"budget\": null is not allowed here; write an amount greater than 0"},
        {"{\"max_price\": 0}", "\"max_price\": '0' " NOTHING},
        {"{\"wake\": false}", "\"wake\": true or false is not allowed here; write yes or no"},
        {"{\"pool\": 3}", "\"pool\": a number is not allowed here; " LIST},
        {"{\"pool\": []}", "\"pool\": the list is empty; name a pool, or leave the key out"},
        {"{\"pool\": \"\"}", "\"pool\": '': a pool's name is missing; " POOLS},
        {"{\"pool\": [\"a\", 2]}",
         "\"pool\": entry 2 of the list is a number; write names, such as [\"a\", \"b\"]"},
        {"{\"pool\": [\"a,b\"]}", "\"pool\": 'a,b' is not a pool's name; " LETTERS},
        {"{\"pool\": [\"a\", \"a\"]}", "\"pool\": pool 'a' is named twice; name each once"},
        {"{\"scale_config\": []}",
         "\"scale_config\": an array is not allowed here; write {\"WORLD_SIZE\": {...}, ...}"},
        {"{\"scale_config\": {\"two\": {}}}", "\"scale_config\": 'two' is not a world size; write "
                                              "a number of workers from 1 to 10000000"},
        {"{\"scale_config\": {\"04\": {}}}", "\"scale_config\": '04' is not a world size; write a "
                                             "number of workers from 1 to 10000000"},
        {"{\"scale_config\": {\"0\": {}}}",
         "\"scale_config\": '0' is not a world size; write a number of workers from 1 to 10000000"},
        {"{\"scale_config\": {\"4\": 0.1}}",
         "\"scale_config\": the entry of world size 4 is a number with a fraction; write "
         "an object: {\"4\": {...}}"},
    };
    struct policy policy;

    policy_init(&policy);
    parse_good(&policy, "{\"grace\": 1, \"pool\": \"old\", \"scale_config\": {\"1\": {}}}");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};
        /* Without the NUL behind it, so that a sanitizer sees a read beyond the end. */
        size_t len = strlen(cases[i].text);
        char *copy = malloc(len > 0 ? len : 1);

        memcpy(copy, cases[i].text, len);
        if (policy_parse_json(&policy, copy, len, &err) != -1)
            fail_msg("%s was accepted", cases[i].text);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(policy_parse_json(&policy, copy, len, NULL), -1);
        free(copy);
    }
    assert_policy(&policy, "{\"grace\":1,\"pool\":[\"old\"],\"scale_config\":{\"1\":{}}}");
    policy_clear(&policy);
}

static void test_nul_in_a_file(void **state)
{
    static const char text[] = "{\"grace\":\n\0 5}";
    static const char behind[] = "{\"grace\": 5}\0";
    struct policy policy;
    struct error err = {""};

    policy_init(&policy);
    assert_int_equal(policy_parse_json(&policy, text, sizeof(text) - 1, &err), -1);
    assert_string_equal(err.text, "line 2, column 1: a NUL byte; JSON is text");
    assert_int_equal(policy_parse_json(&policy, behind, sizeof(behind) - 1, &err), -1);
    assert_string_equal(err.text, "line 1, column 13: a NUL byte; JSON is text");
}

/* depth objects in each other; json_text_parse's result. */
static int parse_nested(int depth, const char *open, const char *close, struct error *err)
{
    char text[JSON_TEXT_DEPTH * 40] = "{\"a\":";
    json_object *obj;

    for (int i = 1; i < depth; i++)
        text_append(text, sizeof(text), "%s", open);
    text_append(text, sizeof(text), "0");
    for (int i = 1; i < depth; i++)
        text_append(text, sizeof(text), "%s", close);
    text_append(text, sizeof(text), "}");
    obj = json_text_parse(text, strlen(text), err);
    json_object_put(obj);
    return obj != NULL ? 0 : -1;
}

static void test_nesting(void **state)
{
    struct error err = {""};

    assert_int_equal(parse_nested(JSON_TEXT_DEPTH - 1, "{\"a\":", "}", &err), 0);
    assert_int_equal(parse_nested(JSON_TEXT_DEPTH - 1, "[", "]", &err), 0);
    assert_int_equal(parse_nested(JSON_TEXT_DEPTH + 1, "{\"a\":", "}", &err), -1);
    assert_non_null(strstr(
        err.text, "nested too deeply; at most 32 arrays and objects in each other are allowed"));
    assert_int_equal(parse_nested(JSON_TEXT_DEPTH + 1, "[", "]", &err), -1);
    assert_non_null(strstr(err.text, "nested too deeply"));
}

/* {"a":[WORD,WORD,...]} with so many words; json_text_parse's result. */
static int parse_list(const char *word, size_t count, struct error *err)
{
    size_t size = strlen(word) + 1, len = 0;
    char *text = malloc(count * size + 16);
    json_object *obj;

    len += (size_t)sprintf(text, "{\"a\":[");
    for (size_t i = 0; i < count; i++)
        len += (size_t)sprintf(text + len, "%s%s", i > 0 ? "," : "", word);
    len += (size_t)sprintf(text + len, "]}");
    obj = json_text_parse(text, len, err);
    json_object_put(obj);
    free(text);
    return obj != NULL ? 0 : -1;
}

/* Some MiB of empty objects would take a GiB. */
static void test_many_containers(void **state)
{
    static const char string[] = "\"{{[\\\"[[{{'[[\"",
                      filled[] = "{\"bytes\":1234567,\"step\":123456789}";
    const size_t many = 2 * (size_t)JSON_TEXT_CONTAINERS;
    struct error err = {""};

    (void)state;
    assert_int_equal(parse_list("{}", JSON_TEXT_CONTAINERS, &err), 0);
    assert_int_equal(parse_list("{}", many, &err), -1);
    assert_non_null(strstr(err.text, "too many arrays and objects"));
    assert_int_equal(parse_list("[]", many, &err), -1);
    assert_non_null(strstr(err.text, "too many arrays and objects"));
    /* Those in strings are none, and a long text may have more of them. */
    assert_int_equal(parse_list(string, JSON_TEXT_CONTAINERS, &err), 0);
    assert_int_equal(parse_list(filled, many, &err), 0);
}

/* {"scale_config":{"2":{"k":"xxx…"}}} with so many x. */
static char *large_entry(size_t letters)
{
    static const char head[] = "{\"scale_config\":{\"2\":{\"k\":\"", tail[] = "\"}}}";
    char *text = malloc(letters + sizeof(head) + sizeof(tail));

    memcpy(text, head, sizeof(head) - 1);
    memset(text + sizeof(head) - 1, 'x', letters);
    memcpy(text + sizeof(head) - 1 + letters, tail, sizeof(tail));
    return text;
}

static void test_large_scale_config(void **state)
{
    size_t most = POLICY_SCALE_TEXT_MAX - strlen("{\"k\":\"\"}");
    char *fits = large_entry(most), *larger = large_entry(most + 1);
    struct policy policy;
    struct error err = {""};
    json_object *entry;

    policy_init(&policy);
    parse_good(&policy, fits);
    entry = json_object_object_get(policy.scale_config, "2");
    assert_int_equal(strlen(json_object_to_json_string_ext(entry, JSON_C_TO_STRING_PLAIN)),
                     POLICY_SCALE_TEXT_MAX);
    assert_int_equal(parse(&policy, larger, &err), -1);
    assert_string_equal(
        err.text,
        "\"scale_config\": the entry of world size 2 has 65537 bytes; at most 65536 are allowed");
    policy_clear(&policy);
    free(fits);
    free(larger);
}

/* As many keys as fit into a file: the look for those given twice must not be quadratic. */
static void test_many_keys(void **state)
{
    char *text = malloc(POLICY_FILE_MAX + 64);
    size_t used = (size_t)sprintf(text, "{\"scale_config\":{");
    struct policy policy;
    struct error err = {""};
    int n = 0;

    while (used < POLICY_FILE_MAX - 40)
        used += (size_t)sprintf(text + used, "%s\"%d\":{}", n > 0 ? "," : "", n + 1), n++;
    strcpy(text + used, "}}");
    policy_init(&policy);
    parse_good(&policy, text);
    strcpy(text + used, ",\"1\":{}}}");
    assert_int_equal(parse(&policy, text, &err), -1);
    assert_non_null(strstr(err.text, "\"1\" is there twice"));
    policy_clear(&policy);
    free(text);
}

static void test_layers(void **state)
{
    struct policy line, environment, file;

    policy_init(&line);
    policy_init(&environment);
    policy_init(&file);
    policy_set(&line, "grace", "0", NULL);
    policy_set(&environment, "grace", "1", NULL);
    policy_set(&environment, "elastic", "2:4", NULL);
    policy_set(&environment, "signal", "none", NULL);
    parse_good(
        &file,
        "{\"grace\": 2, \"nodes\": \"2,3\", \"pool\": \"p\", \"signal\": \"HUP\", \"snooze\": 5, "
        "\"scale_config\": {\"2\": {}}}");
    policy_merge(&line, &environment);
    policy_merge(&line, &file);
    policy_clear(&file);
    /* Zero and "none" are values, not gaps; sizes come whole from one layer. */
    assert_policy(
        &line, "{\"nodes\":\"2:4\",\"grace\":0,\"snooze\":5,\"signal\":\"none\",\"pool\":[\"p\"],"
               "\"scale_config\":{\"2\":{}}}");
    policy_defaults(&line);
    assert_policy(&line,
                  "{\"nodes\":\"2:4\",\"replica\":1,\"grace\":0,\"grow_delay\":60,\"snooze\":5,"
                  "\"fault_wait\":30,"
                  "\"hang_wait\":0,\"straggler\":\"report\",\"max_restarts\":3,"
                  "\"signal\":\"none\",\"grow\":\"auto\",\"requeue\":\"none\",\"pool\":[\"p\"],"
                  "\"wake\":\"yes\",\"reclaim\":\"replace\","
                  "\"scale_config\":{\"2\":{}}}");
    policy_clear(&line);
    policy_defaults(&line);
    assert_policy(
        &line,
        "{\"replica\":1,\"grace\":600,\"grow_delay\":60,\"snooze\":0,\"fault_wait\":30,\"hang_"
        "wait\":0,\"straggler\":\"report\",\"max_restarts\":3,"
        "\"signal\":\"none\",\"grow\":\"auto\",\"requeue\":\"none\","
        "\"wake\":\"yes\",\"reclaim\":\"replace\"}");
}

/* What policy_to_json writes is a policy file that says the same. */
static void assert_round_trip(const struct policy *policy)
{
    struct policy again;
    char first[1024], second[1024];

    policy_init(&again);
    parse_good(&again, describe(policy, first));
    assert_string_equal(describe(&again, second), first);
    policy_clear(&again);
}

/* A good file with some of its bytes changed, left out or doubled. */
static size_t mutate(char *text, size_t len, uint64_t *random)
{
    static const char bytes[] = "{}[]\",:\\'.-0129eEntu \n\x01\x80\xff\0x";

    for (uint32_t changes = random_below(random, 3) + 1; changes > 0 && len > 1; changes--) {
        size_t at = random_below(random, (uint32_t)len);

        switch (random_below(random, 4)) {
        case 0:
            memmove(text + at, text + at + 1, len - at - 1);
            len--;
            break;
        case 1:
            memmove(text + at + 1, text + at, len - at);
            len++;
            break;
        case 2:
            len = at > 0 ? at : 1;
            break;
        default:
            text[at] = bytes[random_below(random, sizeof(bytes))];
        }
    }
    return len;
}

static void test_random_files(void **state)
{
    static const char good[] =
        "{\"nodes\":\"2:8:2\",\"grace\":30,\"pool\":[\"a\",\"b\"],\"signal\":\"USR1\","
        "\"scale_config\":{\"4\":{\"lr\":-0.5e-3,\"x\\u00e4\":[1,{\"y\":null}]}},\"snooze\":1}";
    uint64_t random = 5;
    int accepted = 0;

    for (int round = 0; round < RANDOM_ROUNDS(60000); round++) {
        char text[sizeof(good) + 8], *exact;
        struct policy policy;
        struct error err = {""};
        size_t len;

        memcpy(text, good, sizeof(good));
        len = mutate(text, sizeof(good) - 1, &random);
        exact = malloc(len);
        memcpy(exact, text, len);
        policy_init(&policy);
        if (policy_parse_json(&policy, exact, len, &err) == 0) {
            accepted++;
            assert_round_trip(&policy);
        } else {
            assert_one_line(err.text);
            assert_policy(&policy, "{}");
        }
        policy_clear(&policy);
        free(exact);
    }
    assert_in_range(accepted, RANDOM_ROUNDS(1000), RANDOM_ROUNDS(40000));
}

/* json-c 0.18 would refuse them. */
static void test_bytes_beyond_ascii(void **state)
{
    static const char good[] = "{\"na\xc3\xafve\": [\"Gr\xc3\xbc\xc3\x9f"
                               "e\", 1]} ";
    static const char *const bad[] = {
        "{\"a\": \"\xc3\xbc\n\"}", "{\"a\": \xc3\xbc}", "{\"a\": 01, \"\xc3\xbc\": 2}",
        "{\"a\": 'x\xc3\xbc'}",    "{\"\xc3\xbc\": 1",
    };
    json_object *root, *value;
    struct error err;

    (void)state;
    root = json_text_parse(good, strlen(good), &err);
    assert_non_null(root);
    assert_true(json_object_object_get_ex(root, "na\xc3\xafve", &value));
    assert_string_equal(json_object_get_string(json_object_array_get_idx(value, 0)),
                        "Gr\xc3\xbc\xc3\x9f"
                        "e");
    json_object_put(root);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_null(json_text_parse(bad[i], strlen(bad[i]), &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_bytes_beyond_ascii),
        cmocka_unit_test(test_values_of_the_table),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_a_failed_option_leaves_the_old_value),
        cmocka_unit_test(test_kept_together),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_fallback),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_nul_in_a_file),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_many_containers),
        cmocka_unit_test(test_large_scale_config),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_random_files),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
