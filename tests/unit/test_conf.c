/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/conf: elastic.conf. Every error names file, line, key and what is allowed. */
#include <stdbool.h>

#include "lib/conf.h"
#include "lib/text.h"
#include "tests/unit/support.h"

static struct conf *parse(const char *text)
{
    struct error err = {""};
    struct conf *conf = conf_parse("elastic.conf", text, strlen(text), &err);

    if (conf == NULL)
        fail_msg("%s", err.text);
    return conf;
}

/* The values that etc/elastic.conf shows as built-in ones. */
static void assert_builtin_values(const struct conf *conf)
{
    assert_int_equal(conf->max_pending, 2);
    assert_int_equal(conf->max_nodes, 0);
    assert_int_equal(conf->max_grace, 0);
    assert_int_equal(conf->port_first, 23000);
    assert_int_equal(conf->port_last, 27999);
    assert_int_equal(conf->heartbeat_timeout, 2);
    assert_int_equal(conf->newcomer_timeout, 60);
    assert_int_equal(conf->node_backoff, 60);
    assert_int_equal(conf->drain_look, 0);
    assert_int_equal(conf->pool_backoff_first, 60);
    assert_int_equal(conf->pool_backoff_max, 600);
    assert_int_equal(conf->reclaim.advice, CONF_ADVICE_IGNORE);
    assert_int_equal(conf->reclaim.drain, CONF_DRAIN_NONE);
    assert_int_equal(conf->epilog_flush, 20);
    assert_int_equal(conf->snapshot_keep, 86400);
    assert_string_equal(conf->state_dir, "%h/.slurm-elastic/%c-%j");
    assert_string_equal(conf->snapshot_dir, "/run/slurm-elastic");
    assert_int_equal(conf->defaults.grace, 600);
    assert_int_equal(conf->defaults.grow_delay, 60);
    assert_int_equal(conf->defaults.snooze, 0);
    assert_int_equal(conf->defaults.fault_wait, 30);
    assert_int_equal(conf->defaults.hang_wait, 0);
    assert_int_equal(conf->defaults.straggler, POLICY_STRAGGLER_REPORT);
    assert_int_equal(conf->defaults.restarts.restarts, 3);
    assert_int_equal(conf->defaults.signal, 0);
    assert_int_equal(conf->defaults.grow, POLICY_GROW_AUTO);
    assert_int_equal(conf->defaults.requeue, 0);
    assert_true(conf->defaults.deadline == 0);
    assert_int_equal(conf->defaults.fallback, POLICY_UNSET);
    assert_int_equal(conf->defaults.wake, POLICY_WAKE_YES);
    assert_int_equal(conf->defaults.reclaim, POLICY_RECLAIM_REPLACE);
}

static void assert_builtin(const struct conf *conf)
{
    assert_builtin_values(conf);
    assert_null(conf->munge_socket);
    assert_null(conf->shapes_file);
    assert_null(conf->roles_dir);
    assert_null(conf->reclaim.program);
    assert_null(conf->reclaim.url);
    assert_null(conf->reclaim.header);
    assert_null(conf->reclaim.answer);
    assert_null(conf->prices);
    assert_false(conf_has_prices(conf));
    assert_int_equal(conf->reclaim.advice, CONF_ADVICE_IGNORE);
    assert_int_equal(conf->reclaim.drain, CONF_DRAIN_NONE);
    assert_int_equal(conf->defaults.pool_count, 0);
    assert_int_equal(conf->pool_count, 0);
}

static void test_builtin_values(void **state)
{
    static const char *const texts[] = {"", "\n", "# nothing\n  \t# more\r\n\r\n"};
    struct conf *conf = conf_create();

    assert_builtin(conf);
    conf_destroy(conf);
    conf_destroy(NULL);
    for (size_t i = 0; i < COUNT(texts); i++) {
        conf = parse(texts[i]);
        assert_builtin(conf);
        conf_destroy(conf);
    }
}

static void assert_builtin_pool(const struct pool *pool)
{
    assert_string_equal(pool->partition, pool->name);
    assert_null(pool->qos);
    assert_null(pool->zone);
    assert_int_equal(pool->time_min, 15);
    assert_int_equal(pool->max_time, 0);
    assert_false(pool->wake);
    assert_false(pool->fallback);
    assert_int_equal(pool->max_nodes, 0);
    assert_int_equal(pool->max_resume, 8);
    assert_true(pool->price == -1);
}

static void test_everything(void **state)
{
    struct conf *conf = parse("# a site\n"
                              "max_pending=4\n"
                              "  max_nodes =  64   # of 80\n"
                              "max_grace\t=\t900\r\n"
                              "default_pool = spot,big\n"
                              "grace = 300\n"
                              "grow_delay = 10\n"
                              "snooze = 20\n"
                              "fault_wait = 5\n"
                              "hang_wait = 1800\n"
                              "max_restarts = 2/60\n"
                              "grow = ask\n"
                              "requeue = limit\n"
                              "port_range = 30000-30015\n"
                              "heartbeat_timeout = 8\n"
                              "newcomer_timeout = 600\n"
                              "node_backoff = 0\n"
                              "drain_look = 5\n"
                              "state_dir = /scratch/%u/a#b/%j%%\n"
                              "snapshot_dir = /run/with blank\n"
                              "munge_socket = /run/munge/m.2\n"
                              "shapes = /etc/shapes.json\n"
                              "roles_dir = /etc/roles\n"
                              "reclaim_program = /sbin/notice\n"
                              "reclaim_url = https://meta/data?x=1\n"
                              "reclaim_header = Metadata-Flavor: Google  # so they say\n"
                              "reclaim_answer = TRUE\n"
                              "reclaim_advice = ignore\n"
                              "reclaim_drain = power_down\n"
                              "prices = /var/lib/prices\n"
                              "pool_backoff = 5-5\n"
                              "epilog_flush = 0\n"
                              "snapshot_keep = 60\n"
                              "\n"
                              "[pool big]\n"
                              "# a pool without keys is the partition of that name\n"
                              "  [pool\tspot]  # cheap\n"
                              "partition = cloud\n"
                              "qos = low\n"
                              "constraint = [rack1|rack2]&a100*2\n"
                              "grace = 120\n"
                              "time_min = 5\n"
                              "max_time = 240\n"
                              "fallback = yes\n"
                              "reclaim = yes\n"
                              "price = 0.35\n"
                              "max_nodes = 12\n"
                              "max_resume = 3\n"
                              "zone = us-east-2b\n"
                              "wake = yes"); /* no line break at the end */
    char names[32], cut[8];

    assert_int_equal(conf->max_pending, 4);
    assert_int_equal(conf->max_nodes, 64);
    assert_int_equal(conf->max_grace, 900);
    assert_int_equal(conf->defaults.pool_count, 2);
    assert_string_equal(conf->defaults.pools[0], "spot");
    assert_string_equal(conf->defaults.pools[1], "big");
    assert_int_equal(conf->defaults.grace, 300);
    assert_int_equal(conf->defaults.grow_delay, 10);
    assert_int_equal(conf->defaults.snooze, 20);
    assert_int_equal(conf->defaults.fault_wait, 5);
    assert_int_equal(conf->defaults.hang_wait, 1800);
    assert_int_equal(conf->defaults.restarts.restarts, 2);
    assert_int_equal(conf->defaults.restarts.seconds, 60);
    assert_int_equal(conf->defaults.grow, POLICY_GROW_ASK);
    assert_int_equal(conf->defaults.requeue, POLICY_REQUEUE_LIMIT);
    assert_int_equal(conf->port_first, 30000);
    assert_int_equal(conf->port_last, 30015);
    assert_int_equal(conf->heartbeat_timeout, 8);
    assert_int_equal(conf->newcomer_timeout, 600);
    assert_int_equal(conf->node_backoff, 0);
    assert_int_equal(conf->drain_look, 5);
    assert_int_equal(conf->reclaim.advice, CONF_ADVICE_IGNORE);
    assert_int_equal(conf->reclaim.drain, CONF_DRAIN_POWER_DOWN);
    assert_string_equal(conf->prices, "/var/lib/prices");
    assert_true(conf_has_prices(conf));
    assert_int_equal(conf->pool_backoff_first, 5);
    assert_int_equal(conf->pool_backoff_max, 5);
    assert_int_equal(conf->epilog_flush, 0);
    assert_int_equal(conf->snapshot_keep, 60);
    assert_string_equal(conf->reclaim.program, "/sbin/notice");
    assert_string_equal(conf->reclaim.url, "https://meta/data?x=1");
    assert_string_equal(conf->reclaim.header, "Metadata-Flavor: Google");
    assert_string_equal(conf->reclaim.answer, "TRUE");
    assert_string_equal(conf->state_dir, "/scratch/%u/a#b/%j%%");
    assert_string_equal(conf->snapshot_dir, "/run/with blank");
    assert_string_equal(conf->munge_socket, "/run/munge/m.2");
    assert_string_equal(conf->shapes_file, "/etc/shapes.json");
    assert_string_equal(conf->roles_dir, "/etc/roles");

    assert_int_equal(conf->pool_count, 2);
    assert_string_equal(conf_pool_names(conf, names, sizeof(names)), "big, spot");
    assert_string_equal(conf_pool_names(conf, cut, sizeof(cut)), "big, sp");
    assert_null(conf_pool(conf, "bi"));
    assert_ptr_equal(conf_pool(conf, "big"), &conf->pools[0]);
    assert_string_equal(conf->pools[0].partition, "big");
    assert_null(conf->pools[0].qos);
    assert_null(conf->pools[0].constraint);
    assert_int_equal(conf->pools[0].grace, 0);
    assert_int_equal(conf->pools[0].time_min, 15);
    assert_builtin_pool(&conf->pools[0]);
    assert_string_equal(conf->pools[1].partition, "cloud");
    assert_string_equal(conf->pools[1].qos, "low");
    assert_string_equal(conf->pools[1].constraint, "[rack1|rack2]&a100*2");
    assert_int_equal(conf->pools[1].grace, 120);
    assert_int_equal(conf->pools[1].time_min, 5);
    assert_true(conf->pools[1].wake);
    assert_int_equal(conf->pools[1].max_time, 240);
    assert_true(conf->pools[1].fallback);
    assert_true(conf->pools[1].reclaim);
    assert_near(conf->pools[1].price, 0.35, 1e-9);
    assert_int_equal(conf->pools[1].max_nodes, 12);
    assert_int_equal(conf->pools[1].max_resume, 3);
    assert_string_equal(conf->pools[1].zone, "us-east-2b");
    conf_destroy(conf);
}

static void test_derived_defaults(void **state)
{
    struct conf *conf = parse("[pool b]\n[pool a]\n");

    /* The first pool, not the first name. */
    assert_int_equal(conf->defaults.pool_count, 1);
    assert_string_equal(conf->defaults.pools[0], "b");
    conf_destroy(conf);
    /* A job that says nothing must not be over the limit. */
    conf = parse("max_grace = 90\n");
    assert_int_equal(conf->defaults.grace, 90);
    assert_int_equal(conf_check_policy(conf, &conf->defaults, NULL), 0);
    conf_destroy(conf);
    conf = parse("grace = 90\nmax_grace = 90\n");
    assert_int_equal(conf->defaults.grace, 90);
    conf_destroy(conf);
}

/* A cloud, a program or an address: of one kind each. */
static void test_reclaim(void **state)
{
    struct conf *conf = parse("reclaim = azure\nreclaim_endpoint = http://127.0.0.1:80\n");

    (void)state;
    assert_int_equal(conf->reclaim.cloud, CONF_CLOUD_AZURE);
    assert_string_equal(conf->reclaim.endpoint, "http://127.0.0.1:80");
    assert_null(conf->reclaim.program);
    assert_null(conf->reclaim.url);
    conf_destroy(conf);
    conf = parse("reclaim = /sbin/notice\n");
    assert_int_equal(conf->reclaim.cloud, CONF_CLOUD_NONE);
    assert_string_equal(conf->reclaim.program, "/sbin/notice");
    conf_destroy(conf);
    /* Switched off, the keys may stay. */
    conf = parse("reclaim = none\nreclaim_endpoint = http://a/\nreclaim_url = http://b/\n");
    assert_string_equal(conf->reclaim.url, "http://b/");
    conf_destroy(conf);
    conf = parse("reclaim = https://meta/\nreclaim_header = A: b\nreclaim_answer = TRUE\n");
    assert_string_equal(conf->reclaim.url, "https://meta/");
    assert_string_equal(conf->reclaim.answer, "TRUE");
    conf_destroy(conf);
    conf = parse("reclaim = gcp\nreclaim_advice = replace\nreclaim_drain = power_down\n");
    assert_int_equal(conf->reclaim.advice, CONF_ADVICE_REPLACE);
    assert_int_equal(conf->reclaim.drain, CONF_DRAIN_POWER_DOWN);
    conf_destroy(conf);
    conf = parse("reclaim = none\nreclaim_advice = replace\nreclaim_drain = drain\n");
    assert_int_equal(conf->reclaim.drain, CONF_DRAIN_DRAIN);
    conf_destroy(conf);
}

/* Where the site has notices of a cloud, they are about pools that are no fallback. */
static void test_pools_that_are_reclaimed(void **state)
{
    static const char pools[] = "[pool spot]\n[pool owned]\nreclaim = no\n[pool on-demand]\n"
                                "fallback = yes\n[pool odd]\nreclaim = yes\nfallback = yes\n"
                                "[pool last]\nfallback = no\n";
    static const struct {
        const char *site;
        bool reclaim[5];
    } cases[] = {
        {"", {false, false, false, true, false}},
        {"reclaim = none\n", {false, false, false, true, false}},
        {"reclaim = gcp\n", {true, false, false, true, true}},
        {"reclaim = /sbin/notice\n", {true, false, false, true, true}},
        {"reclaim_url = http://a/\n", {true, false, false, true, true}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512] = "";
        struct conf *conf = parse(text_append(text, sizeof(text), "%s%s", cases[i].site, pools));

        for (int pool = 0; pool < 5; pool++)
            assert_int_equal(conf->pools[pool].reclaim, cases[i].reclaim[pool]);
        conf_destroy(conf);
    }
}

/* As elasticrun invents pools where there is no elastic.conf. */
static void test_added_pool(void **state)
{
    struct conf *conf = conf_create();
    struct pool *pool = conf_add_pool(conf, "normal", NULL);

    (void)state;
    assert_string_equal(pool->name, "normal");
    assert_builtin_pool(pool);
    assert_ptr_equal(conf_pool(conf, "normal"), pool);
    conf_destroy(conf);
}

#define SITE_KEYS                                                                                  \
    "max_pending, max_nodes, max_grace, port_range, heartbeat_timeout, newcomer_timeout, "         \
    "node_backoff, drain_look, state_dir, snapshot_dir, munge_socket, shapes, roles_dir, "         \
    "reclaim, reclaim_endpoint, reclaim_program, "                                                 \
    "reclaim_url, "                                                                                \
    "reclaim_header, reclaim_answer, reclaim_advice, reclaim_drain, prices, pool_backoff, "        \
    "epilog_flush, snapshot_keep, grace, grow_delay, snooze, "                                     \
    "fault_wait, hang_wait, straggler, max_restarts, grow, requeue, default_pool, "                \
    "mlflow_tracking_uri"
#define POOL_KEYS                                                                                  \
    "partition, qos, constraint, grace, time_min, max_time, wake, fallback, reclaim, price, "      \
    "max_nodes, max_resume, zone"
#define PATTERN                                                                                    \
    "write an absolute path, in which %h is the user's home, %u the user, %j the job id, %c the "  \
    "cluster's "                                                                                   \
    "name and %% a percent sign"
#define PORTS                                                                                      \
    "is not a range of ports; write FIRST-LAST with 1024 <= FIRST, LAST <= 65535 and at least 16 " \
    "ports, "                                                                                      \
    "such as 23000-27999"
#define SPAN                                                                                       \
    "is not FIRST-MOST; write two numbers of seconds from 1 to 86400, the smaller one first, "     \
    "such as 60-600"
#define AMOUNT                                                                                     \
    "is not an amount from 0 to 1000000000; write a number such as 12 or 0.35, with at most 6 "    \
    "digits behind the point"
#define POOL_NAME                                                                                  \
    "write NAME or NAME,NAME without blanks, with 1 to 63 letters, digits and _ - . + in a name, " \
    "a letter, "                                                                                   \
    "digit or _ first"

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        /* Form. */
        {"\n\nmax_pending\n",
         "elastic.conf:3: 'max_pending' is neither 'key = value' nor [pool NAME]"},
        {"= 5\n", "elastic.conf:1: unknown key ''; known keys: " SITE_KEYS},
        {"max_pending: 5\n",
         "elastic.conf:1: 'max_pending: 5' is neither 'key = value' nor [pool NAME]"},
        {"max_pendin = 5\n", "elastic.conf:1: unknown key 'max_pendin'; known keys: " SITE_KEYS},
        {"Max_Pending = 5\n", "elastic.conf:1: unknown key 'Max_Pending'; known keys: " SITE_KEYS},
        {"; max_pending = 5\n",
         "elastic.conf:1: unknown key '; max_pending'; known keys: " SITE_KEYS},
        {"max_pending =\n", "elastic.conf:1: max_pending has no value; write one, or leave the "
                            "line out for the default"},
        {"max_pending = # two\n", "elastic.conf:1: max_pending has no value; write one, or leave "
                                  "the line out for the default"},
        {"grace = 5\n\ngrace = 6\n",
         "elastic.conf:3: grace is set already in line 1; leave one of them out"},
        {"[pool a]\nqos = x\nqos = x\n",
         "elastic.conf:3: qos is set already in line 2; leave one of them out"},
        {"\xff\xfe = 1\n", "elastic.conf:1: unknown key '?\?'; known keys: " SITE_KEYS},
        /* Numbers and times. */
        {"max_pending = 0\n", "elastic.conf:1: max_pending: '0' is not a number; allowed are whole "
                              "numbers from 1 to 1000"},
        {"max_pending = -1\n", "elastic.conf:1: max_pending: '-1' is not a number; allowed are "
                               "whole numbers from 1 to 1000"},
        {"max_pending = 2 3\n", "elastic.conf:1: max_pending: '2 3' is not a number; allowed are "
                                "whole numbers from 1 to 1000"},
        {"max_pending = two\n", "elastic.conf:1: max_pending: 'two' is not a number; allowed are "
                                "whole numbers from 1 to 1000"},
        {"max_nodes = 65534\n", "elastic.conf:1: max_nodes: '65534' is not a number; allowed are "
                                "whole numbers from 0 to 65533"},
        {"max_grace = 10m\n",
         "elastic.conf:1: max_grace: '10m' is not a number of seconds; allowed are whole numbers "
         "from 0 to 31536000"},
        {"heartbeat_timeout = 0\n",
         "elastic.conf:1: heartbeat_timeout: '0' is not a number of seconds; allowed are "
         "whole numbers from 1 to 3600"},
        {"heartbeat_timeout = 0.5\n",
         "elastic.conf:1: heartbeat_timeout: '0.5' is not a number of seconds; allowed "
         "are whole numbers from 1 to 3600"},
        {"epilog_flush = 3601\n",
         "elastic.conf:1: epilog_flush: '3601' is not a number of seconds; allowed are whole "
         "numbers from 0 to 3600"},
        {"grow_delay = x\n",
         "elastic.conf:1: grow_delay: 'x' is not a number of seconds; allowed are whole numbers "
         "from 0 to 31536000"},
        {"fault_wait = 18446744073709551617\n",
         "elastic.conf:1: fault_wait: '18446744073709551617' is not a number "
         "of seconds; allowed are whole numbers from 0 to 31536000"},
        {"grace = 90\n#\nmax_grace = 60\n", "elastic.conf:1: grace: 90 is larger than max_grace "
                                            "(60 in line 3); lower it or raise max_grace"},
        /* Ports. */
        {"port_range = 23000\n", "elastic.conf:1: port_range: '23000' " PORTS},
        {"port_range = 1000-2000\n", "elastic.conf:1: port_range: '1000-2000' " PORTS},
        {"port_range = 65000-65536\n", "elastic.conf:1: port_range: '65000-65536' " PORTS},
        {"port_range = 30000-30014\n", "elastic.conf:1: port_range: '30000-30014' " PORTS},
        {"port_range = 30000-29000\n", "elastic.conf:1: port_range: '30000-29000' " PORTS},
        {"port_range = 23000 - 27999\n", "elastic.conf:1: port_range: '23000 - 27999' " PORTS},
        /* Paths. */
        {"state_dir = here/%j\n",
         "elastic.conf:1: state_dir: 'here/%j' does not begin with / or %h; " PATTERN},
        {"state_dir = /state\n", "elastic.conf:1: state_dir: '/state' has no %j, so that two jobs "
                                 "would share it; " PATTERN},
        {"state_dir = /%%j\n", "elastic.conf:1: state_dir: '/%%j' has no %j, so that two jobs "
                               "would share it; " PATTERN},
        {"state_dir = /%j/%x\n",
         "elastic.conf:1: state_dir: '/%j/%x' has a % that means nothing; " PATTERN},
        {"state_dir = /%j/%\n",
         "elastic.conf:1: state_dir: '/%j/%' has a % that means nothing; " PATTERN},
        {"snapshot_dir = shm\n", "elastic.conf:1: snapshot_dir: 'shm' is not an absolute path; "
                                 "write one that begins with /"},
        {"munge_socket = ~/m\n", "elastic.conf:1: munge_socket: '~/m' is not an absolute path; "
                                 "write one that begins with /"},
        /* Notices of clouds. */
        {"reclaim = AWS\n",
         "elastic.conf:1: reclaim: 'AWS' is not allowed; write none, aws, gcp, azure, alibaba, "
         "tencent, the absolute path of a program, or http://…"},
        {"reclaim = httpd\n", "elastic.conf:1: reclaim: 'httpd' is not an address; write "
                              "http://… or https://…"},
        {"reclaim = aws\nreclaim_endpoint = localhost:80\n",
         "elastic.conf:2: reclaim_endpoint: 'localhost:80' is not an address; write http://… or "
         "https://…"},
        {"reclaim_endpoint = http://a\nreclaim = /sbin/notice\n",
         "elastic.conf:1: reclaim_endpoint: it is the address of the service of a cloud; write "
         "reclaim = aws, gcp, azure, alibaba or tencent as well"},
        {"reclaim = http://a/\nreclaim_url = http://b/\n",
         "elastic.conf:2: reclaim_url: reclaim is set already in line 1; leave one out"},
        {"reclaim_advice = yes\n",
         "elastic.conf:1: reclaim_advice: 'yes' is not allowed; write ignore or replace"},
        {"reclaim = azure\nreclaim_advice = replace\n",
         "elastic.conf:2: reclaim_advice: only aws and gcp give advice; write reclaim = aws or gcp "
         "as well, or reclaim_advice = ignore"},
        {"reclaim_advice = replace\n",
         "elastic.conf:1: reclaim_advice: only aws and gcp give advice; write reclaim = aws or gcp "
         "as well, or reclaim_advice = ignore"},
        {"reclaim_drain = yes\n",
         "elastic.conf:1: reclaim_drain: 'yes' is not allowed; write none, drain or power_down"},
        {"reclaim_drain = drain\n",
         "elastic.conf:1: reclaim_drain: the epilog asks a cloud or an address, and runs no "
         "program; write reclaim = aws, gcp, azure, alibaba, tencent or http://… as well"},
        {"reclaim = /sbin/notice\nreclaim_drain = drain\n",
         "elastic.conf:2: reclaim_drain: the epilog asks a cloud or an address, and runs no "
         "program; write reclaim = aws, gcp, azure, alibaba, tencent or http://… as well"},
        {"reclaim_header = A: b\nreclaim = aws\n",
         "elastic.conf:1: reclaim_header: reclaim is set already in line 2; leave one out"},
        /* Pools. */
        {"[queue a]\n", "elastic.conf:1: unknown section '[queue a]'; write [pool NAME]"},
        {"[pool a\n", "elastic.conf:1: unknown section '[pool a'; write [pool NAME]"},
        {"[\n", "elastic.conf:1: unknown section '['; write [pool NAME]"},
        {"[]\n", "elastic.conf:1: unknown section '[]'; write [pool NAME]"},
        {"[pool]\n", "elastic.conf:1: unknown section '[pool]'; write [pool NAME]"},
        {"[pools a]\n", "elastic.conf:1: unknown section '[pools a]'; write [pool NAME]"},
        {"[pool ]\n",
         "elastic.conf:1: a pool's name is missing; write NAME or NAME,NAME without blanks"},
        {"[pool a b]\n", "elastic.conf:1: 'a b' is not a pool's name; " POOL_NAME},
        {"[pool a,b]\n", "elastic.conf:1: 'a,b' is not a pool's name; " POOL_NAME},
        {"[pool a]\n[pool b]\n[pool a]\n",
         "elastic.conf:3: pool 'a' is there already; give each pool one section"},
        {"[pool a]\nmax_grace = 5\n",
         "elastic.conf:2: 'max_grace' is no key of a pool; move it above the first [pool "
         "NAME]. Keys of a pool: " POOL_KEYS},
        {"wake = yes\n", "elastic.conf:1: 'wake' is a key of a pool; move it under its [pool "
                         "NAME]. Keys of the site: " SITE_KEYS},
        {"[pool a]\ncost = 3\n",
         "elastic.conf:2: unknown key 'cost'; known keys of a pool: " POOL_KEYS},
        {"[pool a]\nprice = -1\n", "elastic.conf:2: price: '-1' " AMOUNT},
        {"[pool a]\nprice = 1,5\n", "elastic.conf:2: price: '1,5' " AMOUNT},
        {"[pool a]\nprice = 3 EUR\n", "elastic.conf:2: price: '3 EUR' " AMOUNT},
        {"[pool a]\nfallback = deadline\n",
         "elastic.conf:2: fallback: 'deadline' is not allowed; write yes or no"},
        {"[pool a]\nmax_resume = 0\n", "elastic.conf:2: max_resume: '0' is not a number; allowed "
                                       "are whole numbers from 1 to 65533"},
        {"[pool a]\nzone = a b\n", "elastic.conf:2: zone: 'a b' is not allowed; write it without "
                                   "blanks and commas, and no '-' first"},
        {"[pool a]\nprices = /p\n",
         "elastic.conf:2: 'prices' is no key of a pool; move it above the first [pool NAME]. Keys "
         "of a pool: " POOL_KEYS},
        {"reclaim_advice = yes\n",
         "elastic.conf:1: reclaim_advice: 'yes' is not allowed; write ignore or replace"},
        {"reclaim_drain = \"none\"\n", "elastic.conf:1: reclaim_drain: '\"none\"' is not allowed; "
                                       "write none, drain or power_down"},
        {"prices = prices.txt\n", "elastic.conf:1: prices: 'prices.txt' is not an absolute path; "
                                  "write one that begins with /"},
        {"pool_backoff = 60\n", "elastic.conf:1: pool_backoff: '60' " SPAN},
        {"pool_backoff = 600-60\n", "elastic.conf:1: pool_backoff: '600-60' " SPAN},
        {"pool_backoff = 0-60\n", "elastic.conf:1: pool_backoff: '0-60' " SPAN},
        {"pool_backoff = 60-86401\n", "elastic.conf:1: pool_backoff: '60-86401' " SPAN},
        {"[pool a]\nwake = true\n", "elastic.conf:2: wake: 'true' is not allowed; write yes or no"},
        {"[pool a]\ntime_min = 0\n",
         "elastic.conf:2: time_min: '0' is not a number of minutes; allowed are whole "
         "numbers from 1 to 525600"},
        {"[pool a]\ngrace = x\n",
         "elastic.conf:2: grace: 'x' is not a number of seconds; allowed are whole numbers "
         "from 0 to 31536000"},
        {"[pool a]\npartition = a,b\n", "elastic.conf:2: partition: 'a,b' is not allowed; write it "
                                        "without blanks and commas, and no '-' first"},
        {"[pool a]\nqos = --uid=0\n", "elastic.conf:2: qos: '--uid=0' is not allowed; write it "
                                      "without blanks and commas, and no '-' first"},
        {"[pool a]\nconstraint = a b\n", "elastic.conf:2: constraint: 'a b' is not allowed; write "
                                         "it without blanks, and no '-' first"},
        {"default_pool = a, b\n[pool a]\n",
         "elastic.conf:1: default_pool: ' b' is not a pool's name; " POOL_NAME},
        {"default_pool = a,c\n[pool a]\n[pool b]\n",
         "elastic.conf:1: default_pool: unknown pool 'c'; pools in this file: a, b"},
        {"\ndefault_pool = a\n",
         "elastic.conf:2: default_pool: unknown pool 'a'; pools in this file: none"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};
        size_t len = strlen(cases[i].text);
        char *copy = malloc(len);

        memcpy(copy, cases[i].text, len);
        if (conf_parse("elastic.conf", copy, len, &err) != NULL)
            fail_msg("accepted: %s", cases[i].text);
        assert_string_equal(err.text, cases[i].message);
        assert_null(conf_parse("elastic.conf", copy, len, NULL));
        free(copy);
    }
}

static void test_nul_and_long_lines(void **state)
{
    static const char text[] = "grace = 5\nsnooze = 1\0 7\n";
    char line[5000] = "grace = ", path[5000] = "snapshot_dir = /", name[300];
    struct error err = {""};
    struct conf *conf;

    assert_null(conf_parse("elastic.conf", text, sizeof(text) - 1, &err));
    assert_string_equal(err.text, "elastic.conf:2: a NUL byte; elastic.conf is text");

    memset(line + strlen(line), '9', 4000);
    assert_null(conf_parse("elastic.conf", line, strlen(line), &err));
    assert_one_line(err.text);
    assert_non_null(strstr(err.text, "999...' is not a number of seconds; allowed are"));
    /* Nothing is cut where it is allowed. */
    memset(path + strlen(path), 'p', 4000);
    conf = parse(path);
    assert_int_equal(strlen(conf->snapshot_dir), 4001);
    conf_destroy(conf);
    /* A long name of the file leaves room for the message. */
    memset(name, 'd', sizeof(name));
    strcpy(name + sizeof(name) - 14, "/elastic.conf");
    assert_null(conf_parse(name, "x = 1\n", 6, &err));
    assert_non_null(strstr(err.text, "d/elastic.conf:1: unknown key 'x'; known keys: " SITE_KEYS));
}

/* etc/elastic.conf changes nothing as it is. With each setting switched on it shows every key, and
 * built-in values where there are any. */
static void test_example(void **state)
{
    static const char keys[] = SITE_KEYS ", " POOL_KEYS;
    char *text = read_tree_file("etc/elastic.conf"), on[16384] = "", line[64];
    struct conf *conf = parse(text);

    assert_builtin(conf);
    conf_destroy(conf);

    for (char *at = text; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        /* "#key = value" and "#[pool NAME]" are settings, "# …" is prose. */
        if (at[0] == '#' && at[1] != ' ' && at[1] != '\n')
            text_append(on, sizeof(on), "%.*s\n", (int)strcspn(at + 1, "\n"), at + 1);
    }
    conf = parse(on);
    assert_builtin_values(conf);
    assert_int_equal(conf->pool_count, 2);
    assert_int_equal(conf->defaults.pool_count, 2);
    conf_destroy(conf);
    free(text);
    for (const char *key = keys; *key != '\0'; key += strspn(key, ", ")) {
        size_t len = strcspn(key, ",");

        line[0] = '\0';
        text_append(line, sizeof(line), "\n%.*s = ", (int)len, key);
        if (strstr(on, line) == NULL && strncmp(on, line + 1, strlen(line) - 1) != 0)
            fail_msg("etc/elastic.conf does not show %.*s", (int)len, key);
        key += len;
    }
}

static void test_check_policy(void **state)
{
    struct conf *conf = parse("max_nodes = 64\nmax_grace = 300\n[pool spare]\n[pool spot]\n");
    struct conf *open = parse("");
    struct policy policy;
    struct error err = {""};

    policy_init(&policy);
    assert_int_equal(conf_check_policy(conf, &policy, &err), 0);
    policy_set(&policy, "elastic", "2:64", NULL);
    policy_set(&policy, "grace", "300", NULL);
    policy_set(&policy, "pool", "spot,spare", NULL);
    assert_int_equal(conf_check_policy(conf, &policy, &err), 0);

    policy_set(&policy, "pool", "spot,sparse", NULL);
    assert_int_equal(conf_check_policy(conf, &policy, &err), -1);
    assert_string_equal(err.text,
                        "--elastic-pool=sparse: unknown pool; pools of this site: spare, spot");
    policy_set(&policy, "grace", "301", NULL);
    assert_int_equal(conf_check_policy(conf, &policy, &err), -1);
    assert_string_equal(
        err.text,
        "--elastic-grace=301: this site allows at most 300 seconds (max_grace in elastic.conf)");
    policy_set(&policy, "elastic", "2:66:32", NULL);
    assert_int_equal(conf_check_policy(conf, &policy, &err), -1);
    assert_string_equal(
        err.text, "--elastic=2:66:32: MAX 66 is larger than the 64 nodes that this site allows an "
                  "elastic job (max_nodes in elastic.conf)");
    /* A site without pools: a name is a partition, which Slurm knows. No limits either. */
    assert_int_equal(conf_check_policy(open, &policy, &err), 0);
    conf_destroy(conf);
    conf_destroy(open);
}

static void assert_expand(const char *pattern, const char *expected)
{
    char *text = conf_expand(pattern, "/home/ann", "ann", "12", "lab");

    assert_string_equal(text, expected);
    free(text);
}

static void test_expand(void **state)
{
    assert_expand("%h/.slurm-elastic/%c-%j", "/home/ann/.slurm-elastic/lab-12");
    assert_expand("/s/%u/%u%j", "/s/ann/ann12");
    assert_expand("/100%%h/%%%j", "/100%h/%12");
    assert_expand("/odd%x%", "/odd%x%");
    assert_expand("", "");
}

/* Files put together at random from lines and scraps: a conf that holds together, or one line with
 * name and number. */
static void test_random_files(void **state)
{
    static const char *const scraps[] = {
        "grace = 5",
        "max_grace = 9",
        "[pool a]",
        "[pool b]",
        "default_pool = a",
        "wake = no",
        "partition = p",
        "# c",
        "",
        "qos = q # c",
        "time_min = 1",
        "port_range = 2000-3000",
        "state_dir = /%j",
        "snooze = -1",
        "[pool",
        "constraint = x",
        "=",
        "\x01",
        "max_nodes = 7",
        "x = y",
        "munge_socket = /m",
        "shapes = /s",
        "grow_delay = 8",
        "fault_wait = 7",
        "epilog_flush = 6",
        "heartbeat_timeout = 5",
    };
    uint64_t random = 17;
    int accepted = 0;

    for (int round = 0; round < 40000; round++) {
        char text[400] = "";
        struct error err = {""};
        struct conf *conf;

        for (uint32_t n = random_below(&random, 7); n > 0; n--)
            text_append(text, sizeof(text), "%s%s", scraps[random_below(&random, COUNT(scraps))],
                        random_below(&random, 30) == 0 ? " " : "\n");
        if (text[0] != '\0' && random_below(&random, 3) == 0)
            text[random_below(&random, (uint32_t)strlen(text))] = (char)(random_next(&random) | 1);
        conf = conf_parse("f", text, strlen(text), &err);
        if (conf == NULL) {
            assert_one_line(err.text);
            assert_memory_equal(err.text, "f:", 2);
            assert_in_range(err.text[2], '1', '9');
            continue;
        }
        accepted++;
        assert_true(conf->defaults.pool_count > 0 || conf->pool_count == 0);
        assert_int_equal(conf_check_policy(conf, &conf->defaults, NULL), 0);
        for (int i = 0; i < conf->pool_count; i++) {
            assert_non_null(conf->pools[i].partition);
            assert_ptr_equal(conf_pool(conf, conf->pools[i].name), &conf->pools[i]);
        }
        conf_destroy(conf);
    }
    assert_in_range(accepted, 5000, 30000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_values),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_derived_defaults),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_pools_that_are_reclaimed),
        cmocka_unit_test(test_added_pool),
        cmocka_unit_test(test_reclaim),
        cmocka_unit_test(test_nul_and_long_lines),
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_check_policy),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_random_files),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
