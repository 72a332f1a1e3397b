/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/admission: who is let in, with which changes, and what the others are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/admission.h"

#define ELASTIC "_SLURM_SPANK_OPTION_elastic_elastic="
#define POOL    "_SLURM_SPANK_OPTION_elastic_elastic_pool="
#define EXTEND  "_SLURM_SPANK_OPTION_elastic_elastic_extend="

#define ENV_MAX 8

static const char conf_text[] = "max_nodes = 16\n"
                                "max_grace = 300\n"
                                "default_pool = spot\n"
                                "[pool spot]\n"
                                "partition = low\n"
                                "qos = cheap\n"
                                "constraint = spot\n"
                                "time_min = 10\n"
                                "[pool on-demand]\n"
                                "partition = high\n"
                                "time_min = 200\n";

static struct conf *parse_conf(const char *text)
{
    struct error err = {""};
    struct conf *conf = conf_parse("elastic.conf", text, strlen(text), &err);

    if (!conf)
        fail_msg("%s", err.text);
    return conf;
}

static struct admission_env env_of(const char *const entries[ENV_MAX])
{
    struct admission_env env = {.entries = (char *const *)entries};

    while (env.count < ENV_MAX && entries[env.count])
        env.count++;
    return env;
}

static void assert_text(const char *got, const char *want)
{
    if (want)
        assert_string_equal(got ? got : "(none)", want);
    else
        assert_null(got);
}

static void assert_refused(int rc, enum admission_refusal got, enum admission_refusal want,
                           const struct error *err, const char *const said[])
{
    assert_int_equal(rc, -1);
    for (size_t i = 0; i < 3 && said[i]; i++)
        if (!strstr(err->text, said[i]))
            fail_msg("'%s' does not say '%s'", err->text, said[i]);
    assert_int_equal(got, want);
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void roles_follow_from_the_options(void **state)
{
    static const struct {
        const char *env[ENV_MAX];
        enum admission_role role;
    } table[] = {
        {{NULL}, ADMISSION_RIGID},
        {{"PATH=/bin", "_SLURM_SPANK_OPTION_pyxis_image=" ELASTIC "2:8"}, ADMISSION_RIGID},
        {{"_SLURM_SPANK_OPTION_elastic_elastic_grace=10"}, ADMISSION_RIGID},
        /* Options of a later release. */
        {{ELASTIC "2:8", "_SLURM_SPANK_OPTION_elastic_elastic_new=7", "ELASTIC_NEW=x"},
         ADMISSION_BASE},
        {{ELASTIC "2:8"}, ADMISSION_BASE},
        {{"SPANK_" ELASTIC "2:8"}, ADMISSION_BASE},
        {{ELASTIC}, ADMISSION_BASE},
        {{"A=b", "ELASTIC_SIZES=2:8"}, ADMISSION_BASE},
        {{EXTEND "12"}, ADMISSION_EXTENSION},
        {{ELASTIC "2:8", "SPANK_" EXTEND "12"}, ADMISSION_EXTENSION},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct admission_env env = env_of(table[i].env);
        if (admission_role(&env) != table[i].role)
            fail_msg("row %zu: role %d", i, (int)admission_role(&env));
    }
}

static void an_extension_names_its_base_by_a_number(void **state)
{
    static const struct {
        const char *text;
        uint32_t id;
    } table[] = {{"12", 12}, {"2147483647", 2147483647}, {"0", 0},  {"", 0}, {"12_3", 0},
                 {"-1", 0},  {"4294967308", 0},          {"12 ", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char entry[128];
        char *entries[] = {entry};
        struct admission_env env = {entries, 1};

        snprintf(entry, sizeof(entry), EXTEND "%s", table[i].text);
        assert_int_equal(admission_base_of(&env), table[i].id);
    }
}

static void assert_merged(const char *dependency, const uint32_t *ids, size_t count)
{
    uint32_t id;

    for (size_t i = 0; i < count; i++) {
        dependency = admission_merged_into(dependency, &id);
        assert_non_null(dependency);
        assert_int_equal(id, ids[i]);
    }
    assert_null(admission_merged_into(dependency, &id));
}

static void a_comment_makes_an_extension_of_a_rigid_job_only(void **state)
{
    static const struct {
        const char *env[ENV_MAX], *comment;
        enum admission_role role;
    } table[] = {
        {{NULL}, NULL, ADMISSION_RIGID},
        {{NULL}, "mine", ADMISSION_RIGID},
        {{NULL}, "elastic-extension-of=12.0", ADMISSION_EXTENSION},
        {{ELASTIC "2:8"}, "elastic-extension-of=12.0", ADMISSION_BASE},
        {{EXTEND "12"}, NULL, ADMISSION_EXTENSION},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct admission_env env = env_of(table[i].env);
        assert_int_equal(admission_role_of_job(&env, table[i].comment), table[i].role);
    }
    assert_merged(NULL, (const uint32_t[]){0}, 0);
    assert_merged("afterok:3", (const uint32_t[]){0}, 0);
    assert_merged("expand:31", (const uint32_t[]){31}, 1);
    assert_merged("afterok:3,EXPAND:31", (const uint32_t[]){31}, 1);
    assert_merged("expand:3,Expand:x?expand:31:7", (const uint32_t[]){3, 0, 31}, 3);
}

static void an_empty_environment_may_be_null(void **state)
{
    struct admission_env env = {NULL, 0};
    char *holes[] = {NULL, (char *)"ELASTIC_SIZES=2:8"};
    struct admission_env with_holes = {holes, 2};

    (void)state;
    assert_null(admission_env_get(&env, "A"));
    assert_int_equal(admission_role(&env), ADMISSION_RIGID);
    assert_string_equal(admission_env_get(&with_holes, "ELASTIC_SIZES"), "2:8");
}

/* ---- base jobs ------------------------------------------------------------------------------- */

static struct admission_request request_of(const char *const env[ENV_MAX])
{
    return (struct admission_request){
        .env = env_of(env),
        .uid = 1000,
        .min_nodes = ADMISSION_UNSET,
        .max_nodes = ADMISSION_UNSET,
        .tasks = ADMISSION_UNSET,
        .tasks_per_node = ADMISSION_UNSET,
        .min_cpus = ADMISSION_UNSET,
        .requeue = ADMISSION_UNSET,
        .time_limit = ADMISSION_UNSET,
        .time_min = ADMISSION_UNSET,
        .base_left = ADMISSION_UNSET,
        .partition_nodes = ADMISSION_UNSET,
    };
}

static void a_base_gets_its_min_and_survives_a_node(void **state)
{
    static const char *const env[ENV_MAX] = {ELASTIC "2:8:2"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err;

    (void)state;
    assert_int_equal(admission_base(conf, &request, &changes, &err), 0);
    assert_int_equal(changes.min_nodes, 2);
    assert_int_equal(changes.max_nodes, 2);
    assert_int_equal(changes.kill_on_node_fail, 0);
    assert_int_equal(changes.requeue, ADMISSION_UNSET); /* as the site has it */
    assert_string_equal(changes.admin_comment, "elastic=2:8:2");
    assert_int_equal(changes.tasks, ADMISSION_UNSET);
    assert_int_equal(changes.time_limit, ADMISSION_UNSET);
    assert_null(changes.name);
    assert_null(changes.partition);
    assert_null(changes.excluded);
    admission_changes_clear(&changes);
    assert_null(changes.admin_comment);
    conf_destroy(conf);
}

static void a_base_is_requeued_as_the_site_has_it_or_the_user_says(void **state)
{
    static const struct {
        const char *env[ENV_MAX];
        int requeue, after;
    } table[] = {
        {{ELASTIC "2:8"}, ADMISSION_UNSET, ADMISSION_UNSET},
        {{ELASTIC "2:8", "ELASTIC_REQUEUE=none"}, ADMISSION_UNSET, ADMISSION_UNSET},
        {{ELASTIC "2:8", "ELASTIC_REQUEUE=fault"}, ADMISSION_UNSET, 1},
        {{ELASTIC "2:8", "ELASTIC_REQUEUE=fault"}, 0, ADMISSION_UNSET},
    };
    struct conf *conf = parse_conf(conf_text);

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct admission_request request = request_of(table[i].env);
        struct admission_changes changes;
        struct error err;

        request.requeue = table[i].requeue;
        assert_int_equal(admission_base(conf, &request, &changes, &err), 0);
        assert_int_equal(changes.requeue, table[i].after);
        admission_changes_clear(&changes);
    }
    conf_destroy(conf);
}

static void what_the_user_said_is_kept(void **state)
{
    static const char *const env[ENV_MAX] = {ELASTIC "2,3,8"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err;

    (void)state;
    request.min_nodes = request.max_nodes = 2;
    request.requeue = 0;
    request.admin_comment = "ticket 5";
    request.tasks = 8;
    request.tasks_per_node = 4;
    assert_int_equal(admission_base(conf, &request, &changes, &err), 0);
    assert_int_equal(changes.requeue, ADMISSION_UNSET);
    assert_int_equal(changes.tasks, ADMISSION_UNSET);
    assert_null(changes.admin_comment);
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

static void tasks_per_node_count_for_every_node(void **state)
{
    /* As sbatch --ntasks-per-node=4 --cpus-per-task=2 without --nodes sends it. */
    static const char *const env[ENV_MAX] = {ELASTIC "2:8"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err;

    (void)state;
    request.tasks = request.tasks_per_node = 4;
    request.min_cpus = 8;
    assert_int_equal(admission_base(conf, &request, &changes, &err), 0);
    assert_int_equal(changes.tasks, 8);
    assert_int_equal(changes.min_cpus, 16);
    admission_changes_clear(&changes);

    request.min_nodes = request.max_nodes = 2;
    assert_int_equal(admission_base(conf, &request, &changes, &err), 0);
    assert_int_equal(changes.tasks, ADMISSION_UNSET);
    assert_int_equal(changes.min_cpus, ADMISSION_UNSET);
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

static const struct {
    const char *env[ENV_MAX];
    int min_nodes, max_nodes, tasks, partition_nodes;
    bool array, heterogeneous;
    enum admission_refusal refusal;
    const char *said[3];
} bad_bases[] = {
    {{ELASTIC "8:2"},
     -1,
     -1,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_VALUE,
     {"--elastic=8:2", "MIN 8", "MAX 2"}},
    {{ELASTIC}, -1, -1, -1, -1, false, false, ADMISSION_REFUSE_VALUE, {"--elastic="}},
    {{"ELASTIC_SIZES=2:8:9"}, -1, -1, -1, -1, false, false, ADMISSION_REFUSE_VALUE, {"2:8:9"}},
    {{ELASTIC "2:17"}, -1, -1, -1, -1, false, false, ADMISSION_REFUSE_VALUE, {"17", "16"}},
    {{ELASTIC "2:8", "ELASTIC_GRACE=301"},
     -1,
     -1,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_VALUE,
     {"301", "300"}},
    {{ELASTIC "2:8", "_SLURM_SPANK_OPTION_elastic_elastic_grace=-1"},
     -1,
     -1,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_VALUE,
     {"--elastic-grace=-1"}},
    {{ELASTIC "2:8", "ELASTIC_POOL=spot,moon"},
     -1,
     -1,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_VALUE,
     {"moon", "spot", "on-demand"}},
    {{ELASTIC "2:8", "ELASTIC_SIGNAL=SIGKILL"},
     -1,
     -1,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_VALUE,
     {"--elastic-signal=SIGKILL"}},
    {{ELASTIC "2:8", "ELASTIC_GROW=never"},
     -1,
     -1,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_VALUE,
     {"--elastic-grow=never"}},
    {{ELASTIC "2:8"},
     3,
     3,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_NODES,
     {"--nodes=3", "MIN of 2"}},
    {{ELASTIC "2:8"},
     2,
     8,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_NODES,
     {"--nodes=2-8", "MIN of 2"}},
    {{ELASTIC "2:8"},
     3,
     -1,
     -1,
     -1,
     false,
     false,
     ADMISSION_REFUSE_NODES,
     {"--nodes=3", "MIN of 2"}},
    {{ELASTIC "5:8"},
     -1,
     -1,
     -1,
     4,
     false,
     false,
     ADMISSION_REFUSE_NODES,
     {"MIN of 5", "partition batch", "at most 4"}},
    {{ELASTIC "4:8"},
     -1,
     -1,
     3,
     -1,
     false,
     false,
     ADMISSION_REFUSE_NODES,
     {"--ntasks=3", "MIN of 4"}},
    {{ELASTIC "2:8"}, -1, -1, -1, -1, true, false, ADMISSION_REFUSE_KIND, {"--array"}},
    {{ELASTIC "2:8"}, -1, -1, -1, -1, false, true, ADMISSION_REFUSE_KIND, {"heterogeneous"}},
};

static void bad_bases_are_refused_with_the_value(void **state)
{
    struct conf *conf = parse_conf(conf_text);

    (void)state;
    for (size_t i = 0; i < sizeof(bad_bases) / sizeof(bad_bases[0]); i++) {
        struct admission_request request = request_of(bad_bases[i].env);
        struct admission_changes changes;
        struct error err = {""};
        int rc;

        request.min_nodes = bad_bases[i].min_nodes;
        request.max_nodes = bad_bases[i].max_nodes;
        request.tasks = bad_bases[i].tasks;
        request.partition_nodes = bad_bases[i].partition_nodes;
        request.partition_name = "batch";
        request.array = bad_bases[i].array;
        request.heterogeneous = bad_bases[i].heterogeneous;
        rc = admission_base(conf, &request, &changes, &err);
        assert_refused(rc, changes.refusal, bad_bases[i].refusal, &err, bad_bases[i].said);
    }
    conf_destroy(conf);
}

/* A wrong value in this variable is refused, and the message names the option. */
static void refuses(const struct conf *conf, const char *variable,
                    const struct policy_option *option)
{
    bool any_line = option->kind == POLICY_KIND_TEXT && option->form == POLICY_FORM_LINE;
    char entry[128], said[64];
    const char *env[ENV_MAX] = {ELASTIC "2:8", entry};
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err = {""};
    int rc;

    snprintf(entry, sizeof(entry), "%s=%s", variable, any_line ? "\t!" : "?!");
    snprintf(said, sizeof(said), "--%s=?!: ", option->option);
    request.env = env_of(env);
    rc = admission_base(conf, &request, &changes, &err);
    assert_refused(rc, changes.refusal, ADMISSION_REFUSE_VALUE, &err, (const char *const[3]){said});
}

static void each_option_of_the_table_is_checked(void **state)
{
    struct conf *conf = parse_conf(conf_text);
    char variable[96];

    (void)state;
    for (const struct policy_option *o = policy_options; o->json; o++) {
        if (!o->option || o->kind == POLICY_KIND_SIZES)
            continue;
        refuses(conf, o->environment, o);
        refuses(conf, policy_option_variable(o->option, variable, sizeof(variable)), o);
    }
    conf_destroy(conf);
}

static void without_pools_every_name_may_be_a_partition(void **state)
{
    static const char *const env[ENV_MAX] = {ELASTIC "2:800", "ELASTIC_POOL=moon",
                                             "ELASTIC_GRACE=100000"};
    struct conf *conf = parse_conf("");
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err = {""};

    (void)state;
    if (admission_base(conf, &request, &changes, &err) < 0)
        fail_msg("%s", err.text);
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

/* Relative to when slurmctld reads it, where the client did not fix it. */
static void a_deadline_that_has_passed_is_refused(void **state)
{
    static const struct {
        const char *entry, *said;
    } rows[] = {
        {"ELASTIC_DEADLINE=2026-12-01T07:00:01Z", NULL},
        {"ELASTIC_DEADLINE=2026-12-01T07:00:00Z",
         "--elastic-deadline=2026-12-01T07:00:00Z has passed already; name a time to come"},
        {"_SLURM_SPANK_OPTION_elastic_elastic_deadline=now+1", NULL},
        {"_SLURM_SPANK_OPTION_elastic_elastic_deadline=now",
         "--elastic-deadline=2026-12-01T07:00:00Z has passed already; name a time to come"},
    };
    struct conf *conf = parse_conf(conf_text);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *env[ENV_MAX] = {ELASTIC "2:8", rows[i].entry};
        struct admission_request request = request_of(env);
        struct admission_changes changes;
        struct error err = {""};
        int rc;

        request.now = 1796108400;
        rc = admission_base(conf, &request, &changes, &err);
        assert_int_equal(rc, rows[i].said ? -1 : 0);
        if (rc == 0)
            admission_changes_clear(&changes);
        else
            assert_string_equal(err.text, rows[i].said);
    }
    conf_destroy(conf);
}

#define TAKEN                                                                                      \
    "the nodes of the base job may be taken away, and the job ends or waits with them: partition " \
    "low is that of pool spot; submit the base to another partition"
#define NO_WAKE     "--elastic-wake=yes has no effect: no pool of the job has wake = yes"
#define NO_FALLBACK "--elastic-fallback has no effect: no pool of the job has fallback = yes"

static void what_a_user_may_not_have_meant_is_said(void **state)
{
    static const char pools[] = "reclaim = aws\n[pool spot]\npartition = low\n"
                                "[pool on-demand]\npartition = high\nfallback = yes\nwake = yes\n"
                                "[pool some]\npartition = mixed\nconstraint = spot\n";
    static const struct {
        const char *env[ENV_MAX];
        const char *partitions, *features, *warning;
    } rows[] = {
        {{ELASTIC "2:8"}, "high", NULL, NULL},
        {{ELASTIC "2:8"}, NULL, NULL, NULL},
        {{ELASTIC "2:8"}, "low", NULL, "warning: " TAKEN},
        {{ELASTIC "2:8"}, "high,low", "a100", "warning: " TAKEN},
        {{ELASTIC "2:8"}, "lower,slow,lo", NULL, NULL},
        {{ELASTIC "2:8"}, "mixed", NULL, NULL},
        {{ELASTIC "2:8"}, "mixed", "owned", NULL},
        {{ELASTIC "2:8", "ELASTIC_WAKE=yes"}, "high", NULL, "warning: " NO_WAKE},
        {{ELASTIC "2:8", "ELASTIC_WAKE=no"}, "high", NULL, NULL},
        {{ELASTIC "2:8", "ELASTIC_WAKE=yes", "ELASTIC_POOL=spot,on-demand"}, "high", NULL, NULL},
        {{ELASTIC "2:8", "ELASTIC_FALLBACK=never"}, "high", NULL, NULL},
        {{ELASTIC "2:8", "ELASTIC_FALLBACK=60"}, "high", NULL, "warning: " NO_FALLBACK},
        {{ELASTIC "2:8", "ELASTIC_FALLBACK=deadline", "ELASTIC_POOL=on-demand"},
         "high",
         NULL,
         NULL},
        {{ELASTIC "2:8", "ELASTIC_WAKE=yes", "ELASTIC_FALLBACK=deadline"},
         "low",
         NULL,
         "warning: " NO_WAKE "; " NO_FALLBACK "; " TAKEN},
    };
    struct conf *conf = parse_conf(pools);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct admission_request request = request_of(rows[i].env);
        struct admission_changes changes;
        struct error err = {""};

        request.partitions = rows[i].partitions;
        request.features = rows[i].features;
        if (admission_base(conf, &request, &changes, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_text(changes.warning, rows[i].warning);
        admission_changes_clear(&changes);
    }
    conf_destroy(conf);
}

/* ---- extensions ------------------------------------------------------------------------------ */

static const char *const base_env[ENV_MAX] = {"SPANK_" ELASTIC "2:8", "SPANK_ELASTIC_SIZES=2:8"};

static struct admission_job running_base(void)
{
    return (struct admission_job){
        .id = 12,
        .restarts = 1,
        .uid = 1000,
        .known = true,
        .running = true,
        .role = ADMISSION_BASE,
        .env = env_of(base_env),
        .name = "train",
        .nodes = "n[1-2]",
        .node_count = 2,
        .minutes_left = 90,
    };
}

static struct admission_request extension_of(const char *const env[ENV_MAX], int nodes)
{
    struct admission_request request = request_of(env);

    request.min_nodes = request.max_nodes = nodes;
    request.comment = "elastic-extension-of=12.1";
    return request;
}

static void an_extension_is_put_into_its_pool(void **state)
{
    static const char *const env[ENV_MAX] = {EXTEND "12"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = extension_of(env, 2);
    struct admission_job base = running_base();
    struct admission_siblings siblings = {.node_count = 4, .nodes = "n[5-6]"};
    struct admission_changes changes;
    struct error err = {""};

    (void)state;
    base.features = "a100";
    request.excluded = "n9";
    request.requeue = 1;
    if (admission_extension(conf, &request, &base, &siblings, &changes, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(changes.partition, "low");
    assert_string_equal(changes.qos, "cheap");
    assert_string_equal(changes.features, "(a100)&(spot)");
    assert_string_equal(changes.name, "train+");
    assert_string_equal(changes.excluded, "n9,n[1-2],n[5-6]");
    assert_int_equal(changes.requeue, 0);
    assert_int_equal(changes.min_nodes, 2);
    assert_int_equal(changes.max_nodes, 2);
    assert_int_equal(changes.time_limit, 90);
    assert_int_equal(changes.time_min, ADMISSION_UNSET);
    assert_int_equal(changes.kill_on_node_fail, ADMISSION_UNSET);
    assert_null(changes.admin_comment);
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

static void the_pool_is_the_extensions_then_the_bases_then_the_sites(void **state)
{
    static const struct {
        const char *conf;
        const char *env[ENV_MAX], *base[ENV_MAX];
        const char *partition, *features;
    } table[] = {
        {conf_text, {EXTEND "12", POOL "on-demand"}, {ELASTIC "2:8"}, "high", "a100"},
        {conf_text,
         {EXTEND "12", POOL "on-demand"},
         {ELASTIC "2:8", "ELASTIC_POOL=spot"},
         "high",
         "a100"},
        {conf_text,
         {EXTEND "12"},
         {ELASTIC "2:8", "SPANK_ELASTIC_POOL=on-demand,spot"},
         "high",
         "a100"},
        {conf_text, {EXTEND "12"}, {ELASTIC "2:8"}, "low", "(a100)&(spot)"},
        {"[pool b]\n[pool a]\n", {EXTEND "12"}, {ELASTIC "2:8"}, "b", "a100"},
        {"", {EXTEND "12", POOL "moon"}, {ELASTIC "2:8"}, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct conf *conf = parse_conf(table[i].conf);
        struct admission_request request = extension_of(table[i].env, 1);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {0};
        struct admission_changes changes;
        struct error err = {""};

        base.env = env_of(table[i].base);
        base.features = "a100";
        if (admission_extension(conf, &request, &base, &siblings, &changes, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_text(changes.partition, table[i].partition);
        assert_text(changes.features, table[i].features);
        admission_changes_clear(&changes);
        conf_destroy(conf);
    }
}

static void an_extension_ends_with_its_base(void **state)
{
    static const struct {
        int left, limit, least; /* of the base, and asked for */
        const char *pool;
        int want_limit, want_least;
    } table[] = {
        {90, ADMISSION_UNSET, ADMISSION_UNSET, POOL "spot", 90, ADMISSION_UNSET},
        {90, 200, ADMISSION_UNSET, POOL "spot", 90, ADMISSION_UNSET},
        {90, ADMISSION_UNLIMITED, ADMISSION_UNSET, POOL "spot", 90, ADMISSION_UNSET},
        {90, 20, 5, POOL "spot", 20, 5},
        {90, 20, 60, POOL "spot", 20, 20},
        {5, ADMISSION_UNSET, ADMISSION_UNSET, POOL "spot", 5, ADMISSION_UNSET},
        {90, ADMISSION_UNSET, 200, POOL "on-demand", 90, 90},
        {ADMISSION_UNLIMITED, ADMISSION_UNSET, ADMISSION_UNSET, POOL "spot", ADMISSION_UNSET,
         ADMISSION_UNSET},
        {ADMISSION_UNLIMITED, ADMISSION_UNLIMITED, ADMISSION_UNSET, POOL "spot",
         ADMISSION_UNLIMITED, ADMISSION_UNSET},
    };
    struct conf *conf = parse_conf(conf_text);

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const char *env[ENV_MAX] = {EXTEND "12", table[i].pool};
        struct admission_request request = extension_of(env, 1);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {0};
        struct admission_changes changes;
        struct error err = {""};

        base.minutes_left = table[i].left;
        request.time_limit = table[i].limit;
        request.time_min = table[i].least;
        if (admission_extension(conf, &request, &base, &siblings, &changes, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(changes.time_limit, table[i].want_limit);
        assert_int_equal(changes.time_min, table[i].want_least);
        admission_changes_clear(&changes);
    }
    conf_destroy(conf);
}

/* One reason at a time: what is set here differs from a request that is let in. */
static const struct bad_extension {
    const char *env[ENV_MAX];
    const char *base_env[ENV_MAX];
    const char *comment;
    int min_nodes, max_nodes, siblings;
    uint32_t uid;
    bool unknown, pending, ended, array, ending;
    enum admission_refusal refusal;
    const char *said[3];
} bad_extensions[] = {
    {.unknown = true,
     .refusal = ADMISSION_REFUSE_JOB,
     .said = {"--elastic-extend=12", "no job 12"}},
    {.env = {EXTEND "twelve"}, .refusal = ADMISSION_REFUSE_VALUE, .said = {"not the id of a job"}},
    {.uid = 1001, .refusal = ADMISSION_REFUSE_OWNER, .said = {"job 12 belongs to another user"}},
    /* A stranger learns nothing more about the job. */
    {.uid = 1001, .ended = true, .refusal = ADMISSION_REFUSE_OWNER, .said = {"another user"}},
    {.base_env = {"A=b"}, .refusal = ADMISSION_REFUSE_JOB, .said = {"job 12 is not elastic"}},
    {.base_env = {"SPANK_" EXTEND "7"},
     .refusal = ADMISSION_REFUSE_JOB,
     .said = {"itself an extension", "job 7"}},
    {.pending = true, .refusal = ADMISSION_REFUSE_JOB, .said = {"does not run yet"}},
    {.ended = true, .refusal = ADMISSION_REFUSE_JOB, .said = {"has ended"}},
    {.ending = true, .refusal = ADMISSION_REFUSE_JOB, .said = {"ends within a minute"}},
    {.min_nodes = 7,
     .max_nodes = 7,
     .refusal = ADMISSION_REFUSE_NODES,
     .said = {"7 more", "job 12 has 2", "MAX is 8"}},
    {.siblings = 6,
     .refusal = ADMISSION_REFUSE_NODES,
     .said = {"1 more", "wait for 6", "MAX is 8"}},
    {.min_nodes = 1,
     .max_nodes = 4,
     .refusal = ADMISSION_REFUSE_NODES,
     .said = {"--nodes=1-4", "fixed number"}},
    {.array = true, .refusal = ADMISSION_REFUSE_KIND, .said = {"--array"}},
    {.comment = "",
     .refusal = ADMISSION_REFUSE_VALUE,
     .said = {"--comment=elastic-extension-of=12.1"}},
    {.comment = "elastic-extension-of=12.0",
     .refusal = ADMISSION_REFUSE_VALUE,
     .said = {"=12.0'", "of=12.1"}},
    {.env = {EXTEND "12", POOL "moon"},
     .refusal = ADMISSION_REFUSE_VALUE,
     .said = {"moon", "spot", "on-demand"}},
};

static void another_takes_the_place_of_a_lost_base_node(void **state)
{
    static const char *const env[ENV_MAX] = {EXTEND "12"};
    static const struct {
        int left, lost;
        int64_t siblings;
        bool fits;
    } rows[] = {
        {ADMISSION_UNSET, 2, 5, true},
        {ADMISSION_UNSET, 2, 6, false},
        {2, 2, 6, false},
        {1, 1, 6, true},
        {1, 2, 6, true},
        {1, 2, 7, false},
        {0, 2, 7, true},
        {9, 2, 6, false},
        /* Slurm has no node of it, or only one, as out of service. */
        {1, 0, 6, false},
        {0, 0, 5, true},
        {0, 0, 6, false},
        {0, 1, 6, true},
        {0, 1, 7, false},
        {0, 9, 7, true},
        {0, 0, INT32_MAX, false},
        {0, 0, INT64_MAX / 2, false},
    };
    struct conf *conf = parse_conf(conf_text);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct admission_request request = extension_of(env, 1);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {.node_count = rows[i].siblings};
        struct admission_changes changes;
        struct error err = {""};
        int rc;

        base.lost = rows[i].lost;
        request.base_left = rows[i].left;
        rc = admission_extension(conf, &request, &base, &siblings, &changes, &err);
        assert_int_equal(rc, rows[i].fits ? 0 : -1);
        if (rc == 0)
            admission_changes_clear(&changes);
    }
    conf_destroy(conf);
}

/* Join, then leave: what takes the place of fallback nodes may exceed MAX until they leave. */
static void fallback_nodes_are_replaced_beyond_max(void **state)
{
    static const char pools[] = "[pool spot]\n[pool on-demand]\nfallback = yes\n";
    static const struct {
        const char *site, *pool;
        int64_t siblings, fallback; /* nodes that all siblings have; of these, in fallback pools */
        int asked;
        bool fits;
        int64_t waiting; /* … of requests to other pools */
    } rows[] = {
        /* The base has 2 of at most 8. */
        {"", POOL "spot", 6, 0, 1, false, 0},
        {"", POOL "spot", 6, 2, 1, true, 0},
        {"", POOL "spot", 6, 2, 2, true, 0},
        {"", POOL "spot", 6, 2, 3, false, 0},
        {"", POOL "spot", 8, 2, 1, false, 0}, /* the replacements are there, and nobody has left */
        {"", POOL "spot", 7, 2, 1, true, 0},
        {"", POOL "on-demand", 6, 2, 1, false, 0},
        {"", POOL "on-demand", 5, 2, 1, true, 0},
        {"", POOL "on-demand", 8, 0, 1, false, 2},
        {"", POOL "on-demand", 7, 0, 1, true, 2},
        {"", POOL "spot", 7, 0, 1, false, 2},
        {"", NULL, 6, 2, 2, true, 0}, /* the first pool of the site */
        /* No more nodes are replaced than a job at MAX has beside its base. */
        {"", POOL "spot", 11, 11, 1, true, 0},
        {"", POOL "spot", 12, 12, 1, false, 0},
        {"", POOL "on-demand", 11, 0, 1, true, 11},
        {"", POOL "on-demand", 12, 0, 1, false, 12},
        /* The site's limit is for MAX, not for nodes that are there until others leave. */
        {"max_nodes = 8\n", POOL "spot", 6, 2, 2, true, 0},
        {"max_nodes = 8\n", POOL "spot", 6, 2, 3, false, 0},
        {"max_nodes = 8\n", POOL "on-demand", 7, 0, 1, true, 2},
        {"max_nodes = 8\n", POOL "on-demand", 8, 0, 1, false, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *env[ENV_MAX] = {EXTEND "12", rows[i].pool};
        char text[256];
        struct admission_request request = extension_of(env, rows[i].asked);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {.node_count = rows[i].siblings,
                                              .replaced_count = rows[i].fallback,
                                              .waiting_count = rows[i].waiting};
        struct admission_changes changes;
        struct error err = {""};
        struct conf *conf;
        int rc;

        snprintf(text, sizeof(text), "%s%s", rows[i].site, pools);
        conf = parse_conf(text);
        rc = admission_extension(conf, &request, &base, &siblings, &changes, &err);
        if (rc != (rows[i].fits ? 0 : -1))
            fail_msg("row %zu: %d %s", i, rc, err.text);
        if (rc == 0)
            admission_changes_clear(&changes);
        conf_destroy(conf);
    }
}

/* slurmd could not run a prolog with more, and Slurm drains a node whose prolog does not run. */
static void an_environment_that_no_prolog_could_have_is_refused(void **state)
{
    static const struct {
        size_t entries, len;
        bool fits;
    } rows[] = {
        {0, 0, true},     {1, 98303, true},  {1, 98304, false},
        {4, 65535, true}, {5, 60000, false}, {100, 100000, false},
        {1000, 99, true}, {1001, 1, false},  {1000000, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = calloc(1, rows[i].len + 1);
        char **entries = calloc(rows[i].entries + 1, sizeof(*entries));
        struct admission_env env = {entries, rows[i].entries};
        struct error err = {""};

        memset(text, 'x', rows[i].len);
        for (size_t k = 0; k < rows[i].entries; k++)
            entries[k] = text;
        if ((admission_check_env(&env, &err) == 0) != rows[i].fits)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(err.text[0] != '\0', !rows[i].fits);
        free(entries);
        free(text);
    }
    {
        /* Slurm unpacks an empty entry as NULL. */
        char **none = calloc(1001, sizeof(*none));
        struct admission_env env = {none, 1001};

        assert_int_equal(admission_check_env(&env, NULL), -1);
        free(none);
    }
}

/* slurmctld has the locks for all jobs meanwhile. */
static void no_question_looks_at_more_entries_than_a_job_may_have(void **state)
{
    char other[] = "SPANK_x=1", extends[] = EXTEND "12";
    char *entries[ADMISSION_ENV_COUNT + 1];
    const struct admission_env env = {entries, ADMISSION_ENV_COUNT + 1};

    (void)state;
    for (size_t i = 0; i < ADMISSION_ENV_COUNT; i++)
        entries[i] = other;
    entries[ADMISSION_ENV_COUNT] = extends;
    assert_int_equal(admission_role(&env), ADMISSION_RIGID);
    entries[ADMISSION_ENV_COUNT - 1] = extends;
    assert_int_equal(admission_role(&env), ADMISSION_EXTENSION);
    assert_int_equal(admission_base_of(&env), 12);
}

static void a_base_is_not_marked_as_an_extension(void **state)
{
    static const char *const env[ENV_MAX] = {ELASTIC "2:8"};
    struct conf *conf = parse_conf("");
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err = {""};

    (void)state;
    request.comment = "elastic-extension-of=1.0";
    assert_int_equal(admission_base(conf, &request, &changes, &err), -1);
    assert_non_null(strstr(err.text, "choose another one"));
    conf_destroy(conf);
}

static void it_says_how_many_nodes_are_too_many_for_a_while(void **state)
{
    static const char *const env[ENV_MAX] = {EXTEND "12", POOL "spot"};
    struct conf *conf = parse_conf("[pool spot]\n[pool on-demand]\nfallback = yes\n");
    struct admission_request request = extension_of(env, 3);
    struct admission_job base = running_base();
    struct admission_siblings siblings = {.node_count = 6, .replaced_count = 2};
    struct admission_changes changes;
    struct error err = {""};

    (void)state;
    assert_int_equal(admission_extension(conf, &request, &base, &siblings, &changes, &err), -1);
    assert_string_equal(
        err.text, "--elastic-extend=12: 3 more nodes are too many; job 12 has 2, its extensions "
                  "have or wait for 6, and its MAX is 8 (10 until replaced nodes leave)");
    conf_destroy(conf);
}

static void whether_others_may_replace_an_extension_its_pool_decides(void **state)
{
    static const struct {
        const char *conf, *env[ENV_MAX], *base[ENV_MAX];
        bool replaced;
    } rows[] = {
        {"[pool spot]\n[pool dear]\nfallback = yes\n", {POOL "dear"}, {ELASTIC "2:8"}, true},
        {"[pool spot]\n[pool dear]\nfallback = yes\n", {POOL "spot"}, {ELASTIC "2:8"}, false},
        {"[pool spot]\n[pool dear]\nfallback = yes\n", {NULL}, {ELASTIC "2:8"}, false},
        {"[pool spot]\n[pool dear]\nfallback = yes\n",
         {"SPANK_" POOL "dear"},
         {ELASTIC "2:8"},
         true},
        {"[pool spot]\n[pool dear]\nfallback = yes\n", {NULL}, {"ELASTIC_POOL=dear"}, true},
        {"[pool spot]\n[pool dear]\nfallback = yes\n", {POOL "gone"}, {ELASTIC "2:8"}, false},
        {"", {POOL "dear"}, {ELASTIC "2:8"}, false},
        {"reclaim = aws\nreclaim_advice = replace\n[pool spot]\nreclaim = yes\n",
         {POOL "spot"},
         {ELASTIC "2:8"},
         true},
        {"reclaim = aws\nreclaim_advice = replace\n[pool spot]\nreclaim = no\n",
         {POOL "spot"},
         {ELASTIC "2:8"},
         false},
        {"reclaim_advice = ignore\n[pool spot]\nreclaim = yes\n",
         {POOL "spot"},
         {ELASTIC "2:8"},
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct conf *conf = parse_conf(rows[i].conf);
        struct admission_job base = running_base();
        struct admission_env env = env_of(rows[i].env);
        int pool, unnamed;

        base.env = env_of(rows[i].base);
        unnamed = admission_pool(conf, &(struct admission_env){0}, &base);
        pool = admission_pool_or(conf, &env, &base, unnamed);
        assert_int_equal(pool, admission_pool(conf, &env, &base));
        assert_int_equal(admission_is_replaced(conf, pool), rows[i].replaced);
        /* What the base has in its environment is not looked at again. */
        base.env = (struct admission_env){0};
        assert_int_equal(admission_pool_or(conf, &env, &base, unnamed), pool);
        conf_destroy(conf);
    }
}

static void a_successor_may_come_as_early_as_its_nodes_need(void **state)
{
    (void)state;
    assert_int_equal(admission_succession(0), 180);
    assert_int_equal(admission_succession(60), 180);
    assert_int_equal(admission_succession(300), 540);
}

static void an_extension_lives_no_longer_than_its_pool_says(void **state)
{
    static const struct {
        int left, limit, least; /* of the base, and asked for */
        const char *pool;
        int want_limit, want_least;
    } rows[] = {
        {90, ADMISSION_UNSET, ADMISSION_UNSET, POOL "short", 30, ADMISSION_UNSET},
        {20, ADMISSION_UNSET, ADMISSION_UNSET, POOL "short", 20, ADMISSION_UNSET},
        {90, 25, 5, POOL "short", 25, 5},
        {90, 60, 45, POOL "short", 30, 30},
        {ADMISSION_UNLIMITED, ADMISSION_UNLIMITED, ADMISSION_UNSET, POOL "short", 30,
         ADMISSION_UNSET},
        {ADMISSION_UNLIMITED, ADMISSION_UNSET, ADMISSION_UNSET, POOL "short", 30, ADMISSION_UNSET},
        {ADMISSION_UNLIMITED, ADMISSION_UNSET, ADMISSION_UNSET, POOL "long", ADMISSION_UNSET,
         ADMISSION_UNSET},
    };
    struct conf *conf = parse_conf("[pool short]\nmax_time = 30\n[pool long]\n");

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *env[ENV_MAX] = {EXTEND "12", rows[i].pool};
        struct admission_request request = extension_of(env, 1);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {0};
        struct admission_changes changes;
        struct error err = {""};

        base.minutes_left = rows[i].left;
        request.time_limit = rows[i].limit;
        request.time_min = rows[i].least;
        if (admission_extension(conf, &request, &base, &siblings, &changes, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(changes.time_limit, rows[i].want_limit);
        assert_int_equal(changes.time_min, rows[i].want_least);
        admission_changes_clear(&changes);
    }
    conf_destroy(conf);
}

static void bad_extensions_are_each_told_why(void **state)
{
    static const char *const good_env[ENV_MAX] = {EXTEND "12"};
    struct conf *conf = parse_conf(conf_text);

    (void)state;
    for (size_t i = 0; i < sizeof(bad_extensions) / sizeof(bad_extensions[0]); i++) {
        const struct bad_extension *row = &bad_extensions[i];
        struct admission_request request = extension_of(row->env[0] ? row->env : good_env, 1);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {.node_count = row->siblings};
        struct admission_changes changes;
        struct error err = {""};
        int rc;

        base.id = admission_base_of(&request.env);
        if (row->base_env[0]) {
            base.env = env_of(row->base_env);
            base.role = admission_role(&base.env);
            base.extends = admission_base_of(&base.env);
        }
        if (row->min_nodes) {
            request.min_nodes = row->min_nodes;
            request.max_nodes = row->max_nodes;
        }
        if (row->comment)
            request.comment = row->comment;
        if (row->uid)
            request.uid = row->uid;
        request.array = row->array;
        base.known = !row->unknown;
        base.pending = row->pending;
        base.running = !row->pending && !row->ended;
        if (row->ending)
            base.minutes_left = 0;
        rc = admission_extension(conf, &request, &base, &siblings, &changes, &err);
        assert_refused(rc, changes.refusal, row->refusal, &err, row->said);
        assert_null(changes.name);
    }
    conf_destroy(conf);
}

/* What level 0 submits, and what a user may type: the comment and nothing else. */
static void an_extension_may_be_known_by_its_comment_alone(void **state)
{
    static const char *const none[ENV_MAX] = {NULL};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = extension_of(none, 1);
    struct admission_job base = running_base();
    struct admission_siblings siblings = {0};
    struct admission_changes changes;
    struct error err = {""};

    (void)state;
    assert_true(admission_is_marked("elastic-extension-of=x"));
    assert_false(admission_is_marked("elastic") || admission_is_marked(NULL));
    assert_int_equal(admission_marked_base("elastic-extension-of=12.1"), 12);
    assert_int_equal(admission_marked_base("elastic-extension-of=x"), 0);
    assert_int_equal(admission_marked_base(NULL), 0);
    assert_int_equal(admission_extension(conf, &request, &base, &siblings, &changes, &err), 0);
    assert_string_equal(changes.partition, "low");
    admission_changes_clear(&changes);
    request.uid++;
    assert_int_equal(admission_extension(conf, &request, &base, &siblings, &changes, &err), -1);
    assert_string_equal(err.text, "--comment=elastic-extension-of=12.1: job 12 belongs to another "
                                  "user; name a running elastic job of your own");
    request.uid--;
    base.env = (struct admission_env){0};
    base.role = ADMISSION_RIGID;
    assert_int_equal(admission_extension(conf, &request, &base, &siblings, &changes, &err), 0);
    assert_null(changes.partition);
    assert_null(changes.name);
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

/* A job that was not submitted as elastic: max_nodes of the site counts as its MAX. */
static void a_rigid_base_gets_no_more_than_any_max(void **state)
{
    static const char *const none[ENV_MAX] = {NULL};
    static const struct {
        const char *conf;
        int min_nodes, max_nodes;
        int64_t siblings;
        int nodes;        /* that it is held to */
        const char *said; /* NULL: let in */
    } rows[] = {
        {"", 9, 12, 90, ADMISSION_UNSET, NULL},
        {"max_nodes = 8\n", 2, 2, 4, 2, NULL},
        {"max_nodes = 8\n", ADMISSION_UNSET, ADMISSION_UNSET, 5, 1, NULL},
        {"max_nodes = 8\n[pool low]\nmax_nodes = 1\n", 3, 3, 3, 3, NULL},
        {"max_nodes = 8\n", 2, 2, 5, 0,
         "--comment=elastic-extension-of=12.1: 2 more nodes are too many; job 12 has 2, its "
         "extensions have or wait for 5, and max_nodes of the site is 8"},
        {"max_nodes = 8\n", 1, 4, 0, 0,
         "--comment=elastic-extension-of=12.1: --nodes=1-4; an extension needs a fixed number of "
         "nodes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct conf *conf = parse_conf(rows[i].conf);
        struct admission_request request = extension_of(none, 1);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {.node_count = rows[i].siblings};
        struct admission_changes changes;
        struct error err = {""};
        int rc;

        request.min_nodes = rows[i].min_nodes;
        request.max_nodes = rows[i].max_nodes;
        base.env = (struct admission_env){0};
        base.role = ADMISSION_RIGID;
        assert_int_equal(admission_pool(conf, &request.env, &base), -1);
        rc = admission_extension(conf, &request, &base, &siblings, &changes, &err);
        assert_int_equal(rc, rows[i].said ? -1 : 0);
        if (rows[i].said) {
            assert_string_equal(err.text, rows[i].said);
            assert_int_equal(changes.refusal, ADMISSION_REFUSE_NODES);
        } else {
            assert_int_equal(changes.min_nodes, rows[i].nodes);
            assert_int_equal(changes.max_nodes, rows[i].nodes);
            assert_null(changes.partition);
            admission_changes_clear(&changes);
        }
        conf_destroy(conf);
    }
}

static void a_pool_gives_a_job_no_more_than_its_max_nodes(void **state)
{
    static const struct {
        const char *pool;
        int nodes;
        int64_t in_pool;
        const char *said; /* NULL: let in */
    } rows[] = {
        {POOL "small", 2, 0, NULL},
        {POOL "small", 1, 1, NULL},
        {POOL "small", 1, 2,
         "--elastic-extend=12: 1 more nodes are too many; job 12 has or waits for 2 of pool small, "
         "and max_nodes of this pool is 2"},
        {POOL "small", 3, 0,
         "--elastic-extend=12: 3 more nodes are too many; job 12 has or waits for 0 of pool small, "
         "and max_nodes of this pool is 2"},
        {NULL, 1, 2,
         "--elastic-extend=12: 1 more nodes are too many; job 12 has or waits for 2 of pool small, "
         "and max_nodes of this pool is 2"},
        {POOL "large", 3, 3, NULL},
    };
    struct conf *conf = parse_conf("[pool small]\nmax_nodes = 2\n[pool large]\n");

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *env[ENV_MAX] = {EXTEND "12", rows[i].pool};
        struct admission_request request = extension_of(env, rows[i].nodes);
        struct admission_job base = running_base();
        struct admission_siblings siblings = {.node_count = rows[i].in_pool,
                                              .pool_count = rows[i].in_pool};
        struct admission_changes changes;
        struct error err = {""};
        int rc;

        assert_int_equal(admission_pool(conf, &request.env, &base),
                         rows[i].pool && strcmp(rows[i].pool, POOL "large") == 0);
        rc = admission_extension(conf, &request, &base, &siblings, &changes, &err);
        assert_int_equal(rc, rows[i].said ? -1 : 0);
        if (rows[i].said) {
            assert_string_equal(err.text, rows[i].said);
            assert_int_equal(changes.refusal, ADMISSION_REFUSE_NODES);
        } else {
            admission_changes_clear(&changes);
        }
    }
    conf_destroy(conf);
}

static void siblings_that_own_their_nodes_need_not_be_excluded(void **state)
{
    static const char *const env[ENV_MAX] = {EXTEND "12"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = extension_of(env, 1);
    struct admission_job base = running_base();
    struct admission_siblings siblings = {.node_count = 2, .nodes = "n[5-6]"};
    struct admission_changes changes;
    struct error err = {""};

    (void)state;
    base.whole_nodes = true;
    if (admission_extension(conf, &request, &base, &siblings, &changes, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(changes.excluded, "n[1-2]");
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

static void a_base_that_lost_a_node_may_be_extended_up_to_max(void **state)
{
    static const char *const env[ENV_MAX] = {EXTEND "12"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = extension_of(env, 1);
    struct admission_job base = running_base();
    struct admission_siblings siblings = {.node_count = 6};
    struct admission_changes changes;
    struct error err = {""};

    (void)state;
    base.node_count = 1;
    base.name = NULL;
    base.nodes = NULL;
    if (admission_extension(conf, &request, &base, &siblings, &changes, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(changes.name, "elastic+");
    assert_string_equal(changes.excluded, "");
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

/* ---- updates --------------------------------------------------------------------------------- */

#define NO ADMISSION_UNSET

static void an_extension_asks_for_no_more_time_than_its_pool_has(void **state)
{
    static const struct {
        int asked, asked_min, limit, min, most; /* minutes */
        int limit_after, min_after;
    } table[] = {
        {NO, NO, 60, NO, ADMISSION_UNLIMITED, 60, NO},
        {NO, NO, 60, NO, 60, 60, NO},
        {NO, NO, 60, NO, 30, 30, NO},
        {NO, NO, 60, 40, 30, 30, 30},
        {NO, NO, 60, 20, 30, 30, 20},
        {60, 40, NO, NO, 30, 30, 30},
        {ADMISSION_UNLIMITED, NO, NO, NO, 30, 30, NO},
        {NO, NO, NO, NO, 30, 30, NO},
        {NO, NO, NO, NO, ADMISSION_UNLIMITED, NO, NO},
        {20, NO, NO, NO, 30, NO, NO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct admission_request request = {.time_limit = table[i].asked,
                                            .time_min = table[i].asked_min};
        struct admission_changes changes = {.time_limit = table[i].limit, .time_min = table[i].min};

        admission_shorten(&request, table[i].most, &changes);
        assert_int_equal(changes.time_limit, table[i].limit_after);
        assert_int_equal(changes.time_min, table[i].min_after);
    }
}

static void users_may_not_change_what_was_admitted(void **state)
{
    static const struct {
        struct admission_update update;
        const char *said; /* NULL: allowed */
    } table[] = {
        {{ADMISSION_RIGID, true, 5, 5, 5, 0, true, "mine", false, false, false, false}, NULL},
        {{ADMISSION_RIGID, true, NO, NO, NO, 0, false, "elastic-extension-of=12.1", false, false,
          false, false},
         "only when it is submitted"},
        {{ADMISSION_RIGID, true, NO, NO, NO, 0, false, NULL, true, false, false, false}, "merged"},
        {{ADMISSION_BASE, true, NO, NO, NO, 2, true, "mine", false, false, false, false}, NULL},
        {{ADMISSION_BASE, true, NO, NO, NO, 2, true, "elastic-extension-of=12.1", false, false,
          false, false},
         "only when it is submitted"},
        {{ADMISSION_BASE, true, 2, 2, NO, 2, false, NULL, false, false, false, false}, NULL},
        {{ADMISSION_BASE, true, 2, NO, NO, 2, false, NULL, false, false, false, false}, NULL},
        {{ADMISSION_BASE, true, 3, NO, NO, 2, false, NULL, false, false, false, false}, "MIN of 2"},
        {{ADMISSION_BASE, true, 1, NO, NO, 2, false, NULL, false, false, false, false},
         "selastic resize"},
        {{ADMISSION_BASE, true, NO, 3, NO, 2, false, NULL, false, false, false, false}, "MIN of 2"},
        {{ADMISSION_BASE, true, 1, 2, NO, 2, false, NULL, false, false, false, false}, "MIN of 2"},
        {{ADMISSION_BASE, true, 2, 3, NO, 2, false, NULL, false, false, false, false}, "MIN of 2"},
        {{ADMISSION_BASE, true, INT32_MAX, NO, NO, 2, false, NULL, false, false, false, false},
         "MIN of 2"},
        {{ADMISSION_BASE, false, 0, NO, NO, 2, false, NULL, false, false, false, false},
         "MIN of 2"},
        {{ADMISSION_BASE, true, 2, 2, 4, 2, false, NULL, false, false, false, false}, "MIN of 2"},
        {{ADMISSION_BASE, true, NO, NO, 3, 2, false, NULL, false, false, false, false}, "MIN of 2"},
        {{ADMISSION_BASE, true, NO, NO, 1, 2, false, NULL, false, false, false, false}, NULL},
        {{ADMISSION_BASE, false, NO, NO, 1, 2, false, NULL, false, false, false, false},
         "MIN of 2"},
        {{ADMISSION_BASE, false, NO, NO, 2, 2, false, NULL, false, false, false, false}, NULL},
        {{ADMISSION_EXTENSION, true, NO, NO, NO, 0, false, NULL, false, false, false, false}, NULL},
        {.update = {.role = ADMISSION_EXTENSION,
                    .pending = true,
                    .min_nodes = NO,
                    .max_nodes = NO,
                    .listed = NO,
                    .longer = true},
         .said = "time limit"},
        {.update = {.role = ADMISSION_BASE,
                    .pending = true,
                    .min_nodes = NO,
                    .max_nodes = NO,
                    .listed = NO,
                    .min = 2,
                    .longer = true},
         .said = NULL},
        {{ADMISSION_EXTENSION, true, 2, NO, NO, 0, false, NULL, false, false, false, false},
         "extension"},
        {{ADMISSION_EXTENSION, true, NO, 2, NO, 0, false, NULL, false, false, false, false},
         "extension"},
        {{ADMISSION_EXTENSION, false, NO, NO, 1, 0, false, NULL, false, false, false, false},
         "extension"},
        {{ADMISSION_EXTENSION, true, NO, NO, NO, 0, true, NULL, false, false, false, false},
         "partition"},
        {{ADMISSION_EXTENSION, true, NO, NO, NO, 0, false, "", false, false, false, false},
         "comment"},
        {{ADMISSION_EXTENSION, true, NO, NO, NO, 0, false, NULL, false, false, true, false},
         "tasks"},
        {{ADMISSION_EXTENSION, true, NO, NO, NO, 0, false, NULL, false, true, true, false},
         "resources"},
        {{ADMISSION_BASE, true, NO, NO, NO, 2, false, NULL, false, false, true, false}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct error err = {""};
        int rc = admission_update(&table[i].update, &err);

        assert_int_equal(rc, table[i].said ? -1 : 0);
        if (table[i].said && !strstr(err.text, table[i].said))
            fail_msg("row %zu: '%s'", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_follow_from_the_options),
        cmocka_unit_test(an_extension_names_its_base_by_a_number),
        cmocka_unit_test(a_comment_makes_an_extension_of_a_rigid_job_only),
        cmocka_unit_test(an_empty_environment_may_be_null),
        cmocka_unit_test(a_base_gets_its_min_and_survives_a_node),
        cmocka_unit_test(a_base_is_requeued_as_the_site_has_it_or_the_user_says),
        cmocka_unit_test(what_the_user_said_is_kept),
        cmocka_unit_test(tasks_per_node_count_for_every_node),
        cmocka_unit_test(bad_bases_are_refused_with_the_value),
        cmocka_unit_test(each_option_of_the_table_is_checked),
        cmocka_unit_test(without_pools_every_name_may_be_a_partition),
        cmocka_unit_test(an_extension_is_put_into_its_pool),
        cmocka_unit_test(the_pool_is_the_extensions_then_the_bases_then_the_sites),
        cmocka_unit_test(an_extension_ends_with_its_base),
        cmocka_unit_test(another_takes_the_place_of_a_lost_base_node),
        cmocka_unit_test(bad_extensions_are_each_told_why),
        cmocka_unit_test(an_extension_may_be_known_by_its_comment_alone),
        cmocka_unit_test(a_deadline_that_has_passed_is_refused),
        cmocka_unit_test(what_a_user_may_not_have_meant_is_said),
        cmocka_unit_test(fallback_nodes_are_replaced_beyond_max),
        cmocka_unit_test(an_environment_that_no_prolog_could_have_is_refused),
        cmocka_unit_test(no_question_looks_at_more_entries_than_a_job_may_have),
        cmocka_unit_test(a_base_is_not_marked_as_an_extension),
        cmocka_unit_test(it_says_how_many_nodes_are_too_many_for_a_while),
        cmocka_unit_test(whether_others_may_replace_an_extension_its_pool_decides),
        cmocka_unit_test(a_successor_may_come_as_early_as_its_nodes_need),
        cmocka_unit_test(an_extension_lives_no_longer_than_its_pool_says),
        cmocka_unit_test(a_rigid_base_gets_no_more_than_any_max),
        cmocka_unit_test(a_pool_gives_a_job_no_more_than_its_max_nodes),
        cmocka_unit_test(siblings_that_own_their_nodes_need_not_be_excluded),
        cmocka_unit_test(a_base_that_lost_a_node_may_be_extended_up_to_max),
        cmocka_unit_test(an_extension_asks_for_no_more_time_than_its_pool_has),
        cmocka_unit_test(users_may_not_change_what_was_admitted),
    };

    return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
