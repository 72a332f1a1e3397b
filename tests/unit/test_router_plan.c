/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/router_plan: what haproxy is told next, case by case; then a model of haproxy with requests,
 * replicas that die and tables that change, in which every step is looked at. */
#include "lib/router_plan.h"
#include "lib/shard_commands.h"
#include "tests/unit/support.h"

#include <stdbool.h>

/* ---- cases ----------------------------------------------------------------------------------- */

/* The table of a text such as "1:a/ready,b/draining 2: | A=1 B=2": replicas of shards, then keys.
 * With one such as C=0, which goes nowhere, models are loaded on demand.
 * Replica x listens at 10.0.0.1, port 1000 + x. */
static struct route_table *table_of(const char *text)
{
    char *copy = strdup(text), *save = NULL, *routes = strchr(copy, '|');
    json_object *json = json_object_new_object(), *shards = json_object_new_array();
    json_object *list = json_object_new_array(), *by = json_object_new_object();
    json_object *asleep = json_object_new_array();
    struct error err = {""};
    struct route_table *table;

    *routes++ = '\0';
    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        json_object *shard = json_object_new_object(), *replicas = json_object_new_array();
        char name[32], *inner = NULL, *colon = strchr(word, ':');

        *colon = '\0';
        snprintf(name, sizeof(name), "shard_%s", word);
        for (char *one = strtok_r(colon + 1, ",", &inner); one != NULL;
             one = strtok_r(NULL, ",", &inner)) {
            json_object *replica = json_object_new_object();
            char *slash = strchr(one, '/');

            *slash = '\0';
            json_object_object_add(replica, "name", json_object_new_string(one));
            json_object_object_add(replica, "address", json_object_new_string("10.0.0.1"));
            json_object_object_add(replica, "port", json_object_new_int(1000 + one[0]));
            json_object_object_add(replica, "state", json_object_new_string(slash + 1));
            json_object_array_add(replicas, replica);
        }
        json_object_object_add(shard, "name", json_object_new_string(name));
        json_object_object_add(shard, "check", json_object_new_string("/ready"));
        json_object_object_add(shard, "replicas", replicas);
        json_object_array_add(shards, shard);
    }
    for (char *word = strtok_r(routes, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        json_object *route;
        char name[32], *equals = strchr(word, '=');

        *equals = '\0';
        if (equals[1] == '0') {
            json_object_array_add(asleep, json_object_new_string(word));
            continue;
        }
        route = json_object_new_object();
        snprintf(name, sizeof(name), "shard_%s", equals + 1);
        json_object_object_add(route, "key", json_object_new_string(word));
        json_object_object_add(route, "shard", json_object_new_string(name));
        json_object_array_add(list, route);
    }
    json_object_object_add(by, "json", json_object_new_string("$.model"));
    json_object_object_add(json, "service", json_object_new_string("s"));
    json_object_object_add(json, "job", json_object_new_string("1"));
    json_object_object_add(json, "term", json_object_new_int(1));
    json_object_object_add(json, "revision", json_object_new_int(1));
    json_object_object_add(json, "epoch", json_object_new_int(1));
    json_object_object_add(json, "route-by", by);
    json_object_object_add(json, "shards", shards);
    json_object_object_add(json, "routes", list);
    if (json_object_array_length(asleep) > 0)
        json_object_object_add(json, "asleep", json_object_get(asleep));
    json_object_put(asleep);
    table = route_table_read(json, &err);
    assert_string_equal(err.text, "");
    json_object_put(json);
    free(copy);
    return table;
}

/* What haproxy has, as `show stat` says it, of a text such as "1 1:a/UP/L7OK/3 2". */
static struct haproxy_stat stat_of(const char *text)
{
    char *copy = strdup(text), *save = NULL,
         answer[4096] = "# pxname,svname,scur,status,check_status,\n";
    struct haproxy_stat stat;
    struct error err = {""};

    for (char *word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
        char *colon = strchr(word, ':'), *part[4] = {0}, *inner = NULL;
        size_t length = strlen(answer);

        if (colon == NULL) {
            snprintf(answer + length, sizeof(answer) - length, "shard_%s,BACKEND,0,UP,,\n", word);
            continue;
        }
        *colon = '\0';
        for (int i = 0; i < 4; i++)
            part[i] = strtok_r(i == 0 ? colon + 1 : NULL, "/", &inner);
        snprintf(answer + length, sizeof(answer) - length, "shard_%s,%s-10.0.0.1-%d,%s,%s,%s,\n",
                 word, part[0], 1000 + part[0][0], part[3], part[1], part[2]);
    }
    assert_int_equal(haproxy_stat_read(answer, &stat, &err), 0);
    free(copy);
    return stat;
}

static void describe(const struct router_plan *plan, char *text, size_t size)
{
    static const char *const verbs[] = {"add", "enable", "check", "drain", "ready", "maint", "del"};
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < plan->count; i++) {
        const struct router_step *step = &plan->steps[i];

        length = strlen(text);
        if (step->kind == ROUTER_SERVER)
            snprintf(text + length, size - length, "%s %d/%c; ", verbs[step->verb], step->shard,
                     step->server.name[0]);
        else
            snprintf(text + length, size - length, "%s; ",
                     step->kind == ROUTER_RELOAD ? "reload"
                     : step->kind == ROUTER_SHUT ? "shut"
                                                 : "routes");
    }
    length = strlen(text);
    snprintf(text + length, size - length, "%s", plan->holds ? "holds" : "");
}

static void test_cases(void **state)
{
    static const struct {
        const char *what, *table, *stat, *map;
        bool older, outdated;
        const char *steps, *why;
    } cases[] = {
        {"nothing to do", "1:a/ready | A=1", "1 1:a/UP/L7OK/3", "A=1", false, false, "holds", ""},
        {"a new shard", "1:a/ready 2:b/ready | A=1", "1 1:a/UP/L7OK/0", "A=1", false, false,
         "reload; holds", "haproxy is reloaded"},
        {"other settings", "1:a/ready | A=1", "1 1:a/UP/L7OK/0", "A=1", false, true,
         "reload; holds", "haproxy is reloaded"},
        {"a new replica", "1:a/ready,b/ready | A=1", "1 1:a/UP/L7OK/0", "A=1", false, false,
         "add 1/b; check 1/b; drain 1/b; holds", "b-10.0.0.1-1098 waits for its first check"},
        {"it was added only", "1:a/ready,b/ready | A=1", "1 1:a/UP/L7OK/0 1:b/MAINT/INI/0", "A=1",
         false, false, "check 1/b; drain 1/b; holds", "b-10.0.0.1-1098 waits for its first check"},
        {"it is not checked yet", "1:a/ready,b/ready | A=1", "1 1:a/UP/L7OK/0 1:b/DRAIN/INI/0",
         "A=1", false, false, "holds", "b-10.0.0.1-1098 does not answer its check"},
        {"it answers", "1:a/ready,b/ready | A=1", "1 1:a/UP/L7OK/0 1:b/DRAIN/L7OK/0", "A=1", false,
         false, "ready 1/b; holds", ""},
        {"a move", "1:a/ready 2:b/ready | A=2", "1 2 1:a/UP/L7OK/4 2:b/UP/L7OK/0", "A=1", false,
         false, "routes; ", ""},
        {"… to a shard that is not ready", "1:a/ready 2:b/ready | A=2",
         "1 2 1:a/UP/L7OK/4 2:b/DRAIN/INI/0", "A=1", false, false, "",
         "key A stays in shard_1: no replica of shard_2 is ready"},
        {"… where nothing works", "1:a/ready 2:b/ready | A=2",
         "1 2 1:a/DOWN/L4CON/0 2:b/DOWN/L4CON/0", "A=1", false, false, "routes; ",
         "a-10.0.0.1-1097 does not answer its check"},
        {"… to one with a replica that leaves only", "1:a/ready 2:b/draining | A=2",
         "1 2 1:a/UP/L7OK/4 2:b/DRAIN/L7OK/2", "A=1", false, false, "",
         "key A stays in shard_1: no replica of shard_2 is ready"},
        {"older requests", "1:a/ready 2:b/ready | A=2", "1 2 1:a/UP/L7OK/4 2:b/UP/L7OK/0", "A=2",
         true, false, "", "requests that came by older routes are on their way"},
        {"a new key", "1:a/ready | A=1 B=1", "1 1:a/UP/L7OK/0", "A=1", false, false, "routes; ",
         ""},
        {"a removed key", "1:a/ready | B=1", "1 1:a/UP/L7OK/0", "A=1 B=1", false, false, "routes; ",
         ""},
        {"a drain", "1:a/draining,b/ready | A=1", "1 1:a/UP/L7OK/2 1:b/UP/L7OK/0", "A=1", false,
         false, "drain 1/a; holds", ""},
        {"… not before those have been tried that come", "1:a/draining,b/ready,c/ready | A=1",
         "1 1:a/UP/L7OK/2 1:b/UP/L7OK/0 1:c/DRAIN/INI/0", "A=1", false, false, "holds",
         "c-10.0.0.1-1099 does not answer its check"},
        {"… that are added", "1:a/draining,b/ready,c/ready | A=1", "1 1:a/UP/L7OK/2 1:b/UP/L7OK/0",
         "A=1", false, false, "add 1/c; check 1/c; drain 1/c; holds",
         "c-10.0.0.1-1099 waits for its first check"},
        {"… that serve from now on", "1:a/draining,b/ready,c/ready | A=1",
         "1 1:a/UP/L7OK/2 1:b/UP/L7OK/0 1:c/DRAIN/L7OK/0", "A=1", false, false, "ready 1/c; holds",
         "a-10.0.0.1-1097 goes on: no new replica of shard_1 is ready"},
        {"… that fail, are not waited for", "1:a/draining,b/ready,c/ready | A=1",
         "1 1:a/UP/L7OK/2 1:b/UP/L7OK/0 1:c/DRAIN/L4CON/0", "A=1", false, false, "drain 1/a; holds",
         "c-10.0.0.1-1099 does not answer its check"},
        {"the last one stays", "1:a/draining,b/ready | A=1", "1 1:a/UP/L7OK/2 1:b/DOWN/L4CON/0",
         "A=1", false, false, "holds", "b-10.0.0.1-1098 does not answer its check"},
        {"… where nobody goes there, not", "1:a/draining | ", "1 1:a/UP/L7OK/2", "", false, false,
         "drain 1/a; holds", ""},
        {"… but one that went is better than nobody", "1:a/draining,b/ready | A=1",
         "1 1:a/DRAIN/L7OK/2 1:b/DOWN/L4CON/0", "A=1", false, false, "ready 1/a; holds",
         "b-10.0.0.1-1098 does not answer its check"},
        {"it has requests", "1:a/draining,b/ready | A=1", "1 1:a/DRAIN/L7OK/2 1:b/UP/L7OK/0", "A=1",
         false, false, "holds", "a-10.0.0.1-1097 has 2 requests yet"},
        {"it has none", "1:a/draining,b/ready | A=1", "1 1:a/DRAIN/L7OK/0 1:b/UP/L7OK/0", "A=1",
         false, false, "maint 1/a; del 1/a; holds", ""},
        {"it is in maintenance", "1:b/ready | A=1", "1 1:a/MAINT/L7OK/0 1:b/UP/L7OK/0", "A=1",
         false, false, "del 1/a; holds", ""},
        {"it has died", "1:b/ready | A=1", "1 1:a/DOWN/L4CON/0 1:b/UP/L7OK/0", "A=1", false, false,
         "maint 1/a; del 1/a; holds", ""},
        {"a model that is asleep", "1:a/ready | A=1 B=0", "1 1:a/UP/L7OK/0", "A=1 B=0", false,
         false, "holds", ""},
        {"… since now", "1:a/ready | A=1 B=0", "1 1:a/UP/L7OK/0", "A=1 B=1", false, false,
         "routes; ", ""},
        {"… that is new", "1:a/ready | A=1 B=0", "1 1:a/UP/L7OK/0", "A=1", false, false, "routes; ",
         ""},
        {"it wakes", "1:a/ready | A=1 B=1 C=0", "1 1:a/UP/L7OK/0", "A=1 B=0 C=0", false, false,
         "routes; ", ""},
        {"all are asleep", " | A=0", "1", "A=0", false, false, "holds", ""},
        {"a shard that is gone", " | ", "1 1:a/UP/L7OK/0", "A=1", false, false, "routes; ",
         "a-10.0.0.1-1097 goes on: no other replica of shard_1 is ready"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char old[64], text[512];
        struct route_table *table = table_of(cases[i].table), *map;
        struct haproxy_stat stat = stat_of(cases[i].stat);
        struct router_has has = {.stat = &stat};
        struct router_plan plan;

        snprintf(old, sizeof(old), "1: 2: | %s", cases[i].map);
        map = table_of(old);
        has.routes = map->routes;
        has.route_count = map->route_count;
        has.older = cases[i].older;
        has.outdated = cases[i].outdated;
        assert_int_equal(router_plan(&has, table, &plan), 0);
        describe(&plan, text, sizeof(text));
        if (strcmp(text, cases[i].steps) != 0 || strcmp(plan.why.text, cases[i].why) != 0)
            fail_msg("%s: '%s', not '%s'; '%s', not '%s'", cases[i].what, text, cases[i].steps,
                     plan.why.text, cases[i].why);
        router_plan_clear(&plan);
        haproxy_stat_clear(&stat);
        route_table_destroy(table);
        route_table_destroy(map);
    }
}

/* Looks at one time after the other: the epoch of the table, whether its routes hold, and whether
 * older requests are there. What is true then, and what is to be shut. */
static void test_older(void **state)
{
    enum { MAX = HAPROXY_OLD_MAX, MORE = ROUTER_SHUT_MAX };
    static const struct {
        double now;
        int64_t epoch, limit;
        bool routed, older;
        int64_t is_true, overdue;
    } looks[] = {
        {1, 3, 7, true, false, 3, -1},
        /* A request that goes on and on. */
        {2, 4, 9, false, true, -1, -1},
        {10, 4, 9, true, true, -1, -1},
        {10 + MAX - 1, 4, 9, true, true, -1, -1},
        {10 + MAX, 4, 9, true, true, -1, 9},
        {11 + MAX, 4, 9, true, false, 4, -1},
        /* … and cannot be shut. Meanwhile there are further changes, again and again. */
        {1000, 5, 20, true, true, -1, -1},
        {1100, 6, 30, false, true, -1, -1},
        {1101, 6, 30, true, true, -1, -1},
        {1000 + MAX, 7, 40, true, true, -1, 20},
        {1000 + MAX + MORE - 1, 8, 50, false, true, -1, 20},
        {1000 + MAX + MORE, 8, 50, true, true, 5, -1},
        {1001 + MAX + MORE, 9, 60, true, true, -1, -1},
        {1000 + 2 * MAX + MORE, 10, 70, true, true, -1, 50},
        {1000 + 2 * (MAX + MORE), 10, 70, false, true, 8, -1},
        {1001 + 2 * (MAX + MORE), 10, 70, false, true, -1, -1},
        {3000, 10, 70, true, false, 10, -1},
        /* Older ones are in a worker of before: haproxy itself ends that. */
        {4000, 11, -1, true, true, -1, -1},
        {4000 + MAX, 11, -1, true, true, -1, -1},
        {4000 + MAX + MORE, 11, -1, true, true, 11, -1},
    };
    struct router_patience patience = {false};

    (void)state;
    for (size_t i = 0; i < COUNT(looks); i++) {
        struct router_plan plan = {.routed = looks[i].routed,
                                   .holds = looks[i].routed && !looks[i].older};
        int64_t is_true = router_patience_look(&patience, &plan, looks[i].epoch, looks[i].limit,
                                               looks[i].now);
        int64_t overdue = router_patience_overdue(&patience, looks[i].now);

        if (is_true != looks[i].is_true || overdue != looks[i].overdue)
            fail_msg("look %zu: epoch %lld is true, up to %lld overdue", i, (long long)is_true,
                     (long long)overdue);
    }
}

static void test_overdue(void **state)
{
    struct route_table *table = table_of("1:a/ready,b/ready | A=1"), *map = table_of("1: | A=1");
    struct haproxy_stat stat = stat_of("1 1:a/UP/L7OK/4");
    struct router_has has = {.stat = &stat, .older = true, .overdue = true, .routes = map->routes};
    struct router_plan plan;
    char text[512];

    (void)state;
    has.route_count = map->route_count;
    assert_int_equal(router_plan(&has, table, &plan), 0);
    describe(&plan, text, sizeof(text));
    assert_string_equal(text, "add 1/b; check 1/b; drain 1/b; shut; ");
    assert_true(plan.routed);
    router_plan_clear(&plan);
    haproxy_stat_clear(&stat);
    route_table_destroy(table);
    route_table_destroy(map);
}

/* The file of a reload: nobody in it who has not answered, but where there is nobody else. */
static void test_file(void **state)
{
    struct route_table *table = table_of("1:a/ready,b/ready 2:c/ready 3:d/draining | A=1 D=3");
    struct haproxy_stat stat = stat_of(
        "1 3 1:a/UP/L7OK/0 1:b/DRAIN/INI/0 1:e/UP/L7OK/0 3:d/UP/L7OK/1");
    struct router_has has = {.stat = &stat, .routes = table->routes};
    struct router_plan plan;

    (void)state;
    has.route_count = table->route_count;
    assert_int_equal(router_plan(&has, table, &plan), 0);
    assert_int_equal(plan.shard_count, 3);
    assert_int_equal(plan.shards[0].count, 1);
    assert_string_equal(plan.shards[0].servers[0].name, "a-10.0.0.1-1097");
    assert_string_equal(plan.shards[0].health, "/ready");
    assert_int_equal(plan.shards[1].count, 1);
    assert_string_equal(plan.shards[1].servers[0].name, "c-10.0.0.1-1099");
    assert_int_equal(plan.shards[2].count, 1); /* the last one of its key */
    assert_string_equal(plan.shards[2].servers[0].address, "10.0.0.1");
    assert_int_equal(plan.shards[2].servers[0].port, 1100);
    assert_int_equal(plan.route_count, 2);
    router_plan_clear(&plan);
    haproxy_stat_clear(&stat);

    has = (struct router_has){.stat = &stat, .cold = true};
    assert_int_equal(router_plan(&has, table, &plan), 0);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.steps[0].kind, ROUTER_RELOAD);
    assert_int_equal(plan.shards[0].count, 2); /* nobody has been asked yet */
    assert_int_equal(plan.shards[2].count, 0);
    assert_int_equal(plan.route_count, 2);
    router_plan_clear(&plan);
    route_table_destroy(table);
}

static void test_report(void **state)
{
    struct route_table *table = table_of("1:a/draining,b/ready,c/draining 2: | A=1");
    struct haproxy_stat stat = stat_of("1 2 1:a/DRAIN/L7OK/2 1:b/UP/L7OK/3 9:x/UP/L7OK/7");
    json_object *json = router_drained(table, &stat, true, false);

    (void)state;
    assert_string_equal(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN), "[\"c\"]");
    json_object_put(json);
    json = router_drained(table, &stat, true, true);
    assert_int_equal(json_object_array_length(json), 0);
    json_object_put(json);
    json = router_sessions(table, &stat);
    assert_string_equal(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN),
                        "{\"shard_1\":5,\"shard_2\":0}");
    json_object_put(json);
    haproxy_stat_clear(&stat);
    stat = stat_of("1 1:a/DRAIN/L7OK/2");
    json = router_drained(table, &stat, false, false); /* a later term has taken over */
    assert_string_equal(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN),
                        "[\"b\",\"c\"]");
    json_object_put(json);
    haproxy_stat_clear(&stat);
    route_table_destroy(table);
}

/* ---- a model --------------------------------------------------------------------------------- */

enum { SHARDS = 4, KEYS = 6, REPLICAS = 40, REQUESTS = 60 };

enum admin { ABSENT, MAINT, DRAIN, READY };

struct replica {
    int shard;
    bool listed, draining, alive; /* of the table; of the world */
    enum admin admin;             /* of haproxy */
    bool enabled, up, checked;
};

struct request {
    bool on, old; /* of a worker of before a reload */
    int key, shard, replica, stamp;
};

struct model {
    uint64_t random;
    struct replica replicas[REPLICAS];
    int replica_count;
    bool shards[SHARDS + 1], backends[SHARDS + 1];
    int routes[KEYS], map[KEYS], old_map[KEYS];
    bool old_servers[REPLICAS];
    bool old_worker;
    struct request requests[REQUESTS];
    int stamp, limit;
    int holds, reloads, moves, drains; /* how often, to know that it happens */
};

static bool serves(const struct replica *r)
{
    return r->admin == READY && r->up;
}

static bool works(const struct model *m, int key)
{
    if (m->map[key] == 0 || !m->backends[m->map[key]])
        return false;
    for (int i = 0; i < m->replica_count; i++)
        if (m->replicas[i].shard == m->map[key] && serves(&m->replicas[i]))
            return true;
    return false;
}

static void replica_name(char *name, int index)
{
    sprintf(name, "r%d-10.0.0.1-%d", index, 1000 + index);
}

static struct haproxy_stat observe(const struct model *m)
{
    char answer[REPLICAS * 80 + 400] = "# pxname,svname,scur,status,check_status,\n", name[64];
    struct haproxy_stat stat;
    struct error err = {""};

    for (int s = 1; s <= SHARDS; s++)
        if (m->backends[s])
            sprintf(answer + strlen(answer), "shard_%d,BACKEND,0,UP,,\n", s);
    for (int i = 0; i < m->replica_count; i++) {
        const struct replica *r = &m->replicas[i];
        int sessions = 0;

        if (r->admin == ABSENT)
            continue;
        for (int q = 0; q < REQUESTS; q++)
            sessions += m->requests[q].on && !m->requests[q].old && m->requests[q].replica == i;
        replica_name(name, i);
        sprintf(answer + strlen(answer), "shard_%d,%s,%d,%s,%s,\n", r->shard, name, sessions,
                r->admin == MAINT   ? "MAINT"
                : !r->up            ? "DOWN"
                : r->admin == DRAIN ? "DRAIN"
                                    : "UP",
                r->checked ? "L7OK" : "INI");
    }
    assert_int_equal(haproxy_stat_read(answer, &stat, &err), 0);
    return stat;
}

static struct route_table *table_now(const struct model *m)
{
    char text[4096] = "";
    json_object *json;
    struct route_table *table;
    struct error err = {""};

    sprintf(text, "{\"service\":\"s\",\"job\":\"1\",\"term\":1,\"revision\":1,\"epoch\":1,"
                  "\"route-by\":{\"json\":\"$.model\"},\"shards\":[");
    for (int s = 1, first = 1; s <= SHARDS; s++) {
        if (!m->shards[s])
            continue;
        sprintf(text + strlen(text), "%s{\"name\":\"shard_%d\",\"check\":\"/r\",\"replicas\":[",
                first ? "" : ",", s);
        first = 0;
        for (int i = 0, one = 1; i < m->replica_count; i++)
            if (m->replicas[i].listed && m->replicas[i].shard == s) {
                sprintf(
                    text + strlen(text),
                    "%s{\"name\":\"r%d\",\"address\":\"10.0.0.1\",\"port\":%d,\"state\":\"%s\"}",
                    one ? "" : ",", i, 1000 + i, m->replicas[i].draining ? "draining" : "ready");
                one = 0;
            }
        strcat(text, "]}");
    }
    strcat(text, "],\"routes\":[");
    for (int k = 0, first = 1; k < KEYS; k++)
        if (m->routes[k] > 0) {
            sprintf(text + strlen(text), "%s{\"key\":\"k%d\",\"shard\":\"shard_%d\"}",
                    first ? "" : ",", k, m->routes[k]);
            first = 0;
        }
    strcat(text, "]}");
    table = route_table_parse(text, strlen(text), &err);
    if (table == NULL)
        fail_msg("%s: %s", err.text, text);
    (void)json;
    return table;
}

static int below(struct model *m, int limit)
{
    return (int)random_below(&m->random, (uint32_t)limit);
}

/* A request comes to one of the workers. */
static void arrive(struct model *m)
{
    int key = below(m, KEYS), start = below(m, REPLICAS);
    bool old = m->old_worker && below(m, 4) == 0;
    int shard = old ? m->old_map[key] : m->map[key];

    for (int q = 0; q < REQUESTS; q++) {
        if (m->requests[q].on || shard == 0)
            continue;
        for (int i = 0; i < m->replica_count; i++) {
            int which = (start + i) % m->replica_count;
            const struct replica *r = &m->replicas[which];

            if (r->shard != shard || !r->alive || (old ? !m->old_servers[which] : !serves(r)))
                continue;
            m->requests[q] = (struct request){true, old, key, shard, which, ++m->stamp};
            return;
        }
        return;
    }
}

static void pass_time(struct model *m)
{
    bool old = false;

    for (int i = 0; i < m->replica_count; i++) {
        struct replica *r = &m->replicas[i];

        if (r->admin > MAINT && r->enabled && below(m, 2) == 0) {
            r->up = r->alive;
            r->checked = r->alive;
        }
    }
    for (int q = 0; q < REQUESTS; q++) {
        if (below(m, 3) == 0 || !m->replicas[m->requests[q].replica].alive)
            m->requests[q].on = false;
        old = old || (m->requests[q].on && m->requests[q].old);
    }
    if (!old && below(m, 5) == 0)
        m->old_worker = false;
    for (int i = below(m, 4); i > 0; i--)
        arrive(m);
}

static void reload(struct model *m, const struct router_plan *plan)
{
    m->reloads++;
    memcpy(m->old_map, m->map, sizeof(m->map));
    for (int i = 0; i < m->replica_count; i++) {
        struct replica *r = &m->replicas[i];

        m->old_servers[i] = serves(r);
        r->admin = ABSENT;
        r->enabled = r->checked = false;
    }
    m->old_worker = true;
    for (int q = 0; q < REQUESTS; q++)
        m->requests[q].old = true;
    memset(m->backends, 0, sizeof(m->backends));
    for (int s = 0; s < plan->shard_count; s++) {
        m->backends[plan->shards[s].number] = true;
        for (int i = 0; i < plan->shards[s].count; i++) {
            struct replica *r = &m->replicas[plan->shards[s].servers[i].port - 1000];

            r->admin = READY;
            r->enabled = r->up = true;
        }
    }
    memset(m->map, 0, sizeof(m->map));
    for (int i = 0; i < plan->route_count; i++)
        m->map[plan->routes[i].key[1] - '0'] = plan->routes[i].shard;
    m->limit = m->stamp;
}

/* False: haproxy refuses. */
static bool carry_out(struct model *m, const struct router_plan *plan,
                      const struct router_step *step)
{
    struct replica *r = &m->replicas[step->server.port > 1000 ? step->server.port - 1000 : 0];

    if (step->kind == ROUTER_RELOAD) {
        reload(m, plan);
        return true;
    }
    if (step->kind == ROUTER_ROUTES) {
        m->moves++;
        memset(m->map, 0, sizeof(m->map));
        for (int i = 0; i < plan->route_count; i++)
            m->map[plan->routes[i].key[1] - '0'] = plan->routes[i].shard;
        m->limit = m->stamp;
        return true;
    }
    assert_true(m->backends[step->shard]);
    assert_true((r->admin == ABSENT) == (step->verb == HAPROXY_ADD));
    switch (step->verb) {
    case HAPROXY_ADD:
        r->admin = MAINT;
        r->enabled = r->up = r->checked = false;
        break;
    case HAPROXY_CHECK:
        r->enabled = true;
        break;
    case HAPROXY_DRAIN:
        if (r->admin == MAINT)
            r->up = true; /* until its check fails */
        r->admin = DRAIN;
        m->drains++;
        break;
    case HAPROXY_READY:
        assert_true(r->enabled);
        r->admin = READY;
        break;
    case HAPROXY_MAINT:
        r->admin = MAINT;
        break;
    case HAPROXY_DELETE:
        assert_int_equal(r->admin, MAINT);
        for (int q = 0; q < REQUESTS; q++)
            if (m->requests[q].on && !m->requests[q].old &&
                &m->replicas[m->requests[q].replica] == r)
                return false;
        r->admin = ABSENT;
        break;
    case HAPROXY_ENABLE:
        fail();
    }
    return true;
}

static bool has_older(const struct model *m)
{
    for (int q = 0; q < REQUESTS; q++)
        if (m->requests[q].on && m->requests[q].stamp <= m->limit)
            return true;
    return m->old_worker;
}

static void check_report(struct model *m, const struct route_table *table,
                         const struct haproxy_stat *stat)
{
    json_object *drained = router_drained(table, stat, true, m->old_worker);

    for (size_t i = 0; i < json_object_array_length(drained); i++) {
        int which = atoi(json_object_get_string(json_object_array_get_idx(drained, i)) + 1);

        for (int q = 0; q < REQUESTS; q++)
            assert_false(m->requests[q].on && m->requests[q].replica == which);
        m->replicas[which].listed = false; /* the leader ends it */
        m->replicas[which].alive = false;
    }
    json_object_put(drained);
}

/* One look, and what follows. True: there was nothing to do. */
static bool drive(struct model *m, bool fails)
{
    struct route_table *table = table_now(m);
    struct haproxy_stat stat = observe(m);
    struct haproxy_route map[KEYS];
    static const char *const keys[] = {"k0", "k1", "k2", "k3", "k4", "k5"};
    struct router_has has = {.stat = &stat, .routes = map, .older = has_older(m)};
    struct router_plan plan;
    bool rest;

    for (int k = 0; k < KEYS; k++)
        if (m->map[k] > 0)
            map[has.route_count++] = (struct haproxy_route){keys[k], m->map[k]};
    assert_int_equal(router_plan(&has, table, &plan), 0);
    if (plan.holds) {
        m->holds++;
        for (int k = 0; k < KEYS; k++)
            assert_int_equal(m->map[k], m->routes[k]);
        for (int q = 0; q < REQUESTS; q++)
            assert_true(!m->requests[q].on || m->routes[m->requests[q].key] == 0 ||
                        m->requests[q].shard == m->routes[m->requests[q].key]);
    }
    check_report(m, table, &stat);
    for (int i = 0; i < plan.count; i++) {
        bool before[KEYS], done;

        if (fails && below(m, 12) == 0)
            break;
        for (int k = 0; k < KEYS; k++)
            before[k] = works(m, k);
        done = carry_out(m, &plan, &plan.steps[i]);
        for (int k = 0; k < KEYS; k++)
            if (before[k] && m->routes[k] > 0 && !works(m, k))
                fail_msg("key %d works no more after step %d", k, i);
        if (!done)
            break;
        arrive(m);
    }
    rest = plan.count == 0 && plan.why.text[0] == '\0';
    router_plan_clear(&plan);
    haproxy_stat_clear(&stat);
    route_table_destroy(table);
    return rest;
}

static int ready_in(const struct model *m, int shard)
{
    int count = 0;

    for (int i = 0; i < m->replica_count; i++)
        count += m->replicas[i].listed && !m->replicas[i].draining && m->replicas[i].alive &&
                 m->replicas[i].shard == shard;
    return count;
}

static void start_replica(struct model *m, int shard)
{
    if (m->replica_count < REPLICAS)
        m->replicas[m->replica_count++] = (struct replica){
            .shard = shard, .listed = true, .alive = true};
}

/* What a leader does, and what replicas do. */
static void happen(struct model *m)
{
    int shard = 1 + below(m, SHARDS), key = below(m, KEYS);
    struct replica *r = &m->replicas[m->replica_count > 0 ? below(m, m->replica_count) : 0];

    switch (below(m, 7)) {
    case 0:
        m->shards[shard] = true;
        start_replica(m, shard);
        break;
    case 1:
        if (r->listed && ready_in(m, r->shard) > 1)
            r->draining = true;
        break;
    case 2:
        if (below(m, 3) == 0)
            r->alive = false;
        break;
    case 3:
        if (!r->alive)
            r->listed = false; /* the leader has noticed */
        break;
    case 4:
    case 5:
        if (m->shards[shard] && ready_in(m, shard) > 0)
            m->routes[key] = shard;
        break;
    default:
        if (below(m, 4) == 0)
            m->routes[key] = 0;
        break;
    }
}

static void test_random(void **state)
{
    int holds = 0, reloads = 0, moves = 0, drains = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= RANDOM_ROUNDS(300); seed++) {
        struct model m = {.random = seed * 7919};
        int quiet = 0, rounds = 0;

        for (int round = 0; round < 120; round++) {
            if (below(&m, 2) == 0)
                happen(&m);
            pass_time(&m);
            drive(&m, true);
        }
        /* Who lives answers, and nothing changes any more: it comes to rest. */
        for (int s = 1; s <= SHARDS; s++)
            if (m.shards[s] && ready_in(&m, s) == 0) {
                m.replica_count -= m.replica_count == REPLICAS;
                start_replica(&m, s);
            }
        for (int i = 0; i < m.replica_count; i++)
            m.replicas[i].listed = m.replicas[i].listed && m.replicas[i].alive;
        while (quiet < 3 && rounds++ < 200) {
            pass_time(&m);
            quiet = drive(&m, false) ? quiet + 1 : 0;
        }
        if (quiet < 3)
            fail_msg("seed %d does not come to rest", (int)seed);
        for (int k = 0; k < KEYS; k++) {
            assert_int_equal(m.map[k], m.routes[k]);
            assert_true(m.routes[k] == 0 || works(&m, k));
        }
        holds += m.holds, reloads += m.reloads, moves += m.moves, drains += m.drains;
    }
    assert_true(holds > 1000 / 20 && reloads > 100 / 20 && moves > 1000 / 20 && drains > 1000 / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases), cmocka_unit_test(test_older),  cmocka_unit_test(test_overdue),
        cmocka_unit_test(test_file),  cmocka_unit_test(test_report), cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
