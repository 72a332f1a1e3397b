/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: what a router reads. Lines that begin with a letter and a colon are answers of
 * haproxy and files: "s:" show stat, "m:" show map, "p:" show proc, "e:" show sess, "l:"
 * leader.json, "t:" tokens; the rest is a table of routes. What is accepted makes a plan that can
 * be said to haproxy. */
#include "tests/fuzz/fuzz.h"

#include "lib/haproxy_answers.h"
#include "lib/leader_place.h"
#include "lib/route_table.h"
#include "lib/route_tokens.h"
#include "lib/router_plan.h"
#include "lib/text.h"

#define KINDS "smpelt"

/* The lines of each kind, one text each; the last one is the table. */
struct texts {
    char *of[sizeof(KINDS)];
};

static void split(const char *text, struct texts *texts)
{
    size_t size = strlen(text) + 2;

    for (size_t i = 0; i < sizeof(KINDS); i++)
        MUST((texts->of[i] = calloc(1, size)) != NULL);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        const char *kind = length > 1 && text[1] == ':' ? strchr(KINDS, text[0]) : NULL;
        char *to = texts->of[kind != NULL ? (size_t)(kind - KINDS) : sizeof(KINDS) - 1];

        strncat(to, kind != NULL ? text + 2 : text, length - (kind != NULL ? 2 : 0));
        strcat(to, "\n");
        text += length + (text[length] == '\n');
    }
}

static void check_table(const struct route_table *table)
{
    json_object *json = route_table_json(table);
    struct error err = {""};
    struct route_table *again = route_table_read(json, &err);

    MUST(again != NULL && again->route_count == table->route_count);
    MUST(!route_table_follows(again, table) && route_table_follows(again, NULL));
    for (int i = 0; i < table->shard_count; i++)
        for (int k = 0; k < table->shards[i].count; k++) {
            char name[ROUTE_SERVER_NAME], address[ROUTE_ADDRESS];
            int port;

            route_server_name(&table->shards[i].replicas[k], name);
            MUST(route_server_address(name, address, &port));
            MUST(port == table->shards[i].replicas[k].port);
        }
    route_table_destroy(again);
    json_object_put(json);
}

static void check_steps(const struct router_plan *plan, const struct haproxy_config *config)
{
    for (int i = 0; i < plan->count; i++) {
        const struct router_step *step = &plan->steps[i];
        struct error err = {""};
        char *text;

        if (step->kind != ROUTER_SERVER)
            continue;
        text = haproxy_server_command(step->verb, config, step->shard, &step->server, &err);
        MUST(text != NULL && strchr(text, '\n') == text + strlen(text) - 1);
        free(text);
    }
}

/* Whatever haproxy has, and whatever the table says. */
static void check_plan(const struct route_table *table, const struct haproxy_stat *stat,
                       struct haproxy_route *routes, int route_count)
{
    const struct haproxy_config config = {"127.0.0.1:80", "/a", "/b", table->by,
                                          table->what,    "/c", NULL, table->on_demand};
    struct router_has has = {.stat = stat, .routes = routes, .route_count = route_count};
    struct error err = {""};
    struct router_plan plan;
    char *text;

    for (int cold = 0; cold < 2; cold++) {
        has.cold = cold > 0;
        MUST(router_plan(&has, table, &plan) == 0);
        MUST(strchr(plan.why.text, '\n') == NULL);
        text = haproxy_config_text(&config, plan.shards, plan.shard_count, &err);
        MUST(text != NULL);
        free(text);
        text = haproxy_map_text(plan.routes, plan.route_count, &err);
        MUST(text != NULL);
        free(text);
        check_steps(&plan, &config);
        router_plan_clear(&plan);
    }
    json_object_put(router_drained(table, stat, true, false));
    json_object_put(router_sessions(table, stat));
}

static void check_others(const struct texts *texts)
{
    struct haproxy_workers workers;
    struct haproxy_streams streams;
    struct leader_place place;
    struct error err = {""};
    char *digests, *shut;
    int count;

    if (haproxy_workers_read(texts->of[2], &workers, &err) == 0)
        MUST(workers.master > 0 && workers.worker >= 0 && workers.old >= 0);
    MUST(haproxy_worker_read(texts->of[2]) >= 0);
    if (haproxy_streams_read(texts->of[3], 5, &streams, &err) == 0)
        MUST(streams.latest >= 0 && streams.older >= 0);
    shut = haproxy_shut_command(texts->of[3], 5, &count, &err);
    if (shut != NULL)
        MUST(count <= streams.older && strchr(shut, '\n') == shut + strlen(shut) - 1);
    free(shut);
    if (leader_place_read(texts->of[4], strlen(texts->of[4]), &place, &err) == 0) {
        MUST(place.addresses[0] != NULL && leader_place_same(&place, &place));
        leader_place_clear(&place);
    }
    digests = route_tokens_digests(texts->of[5], strlen(texts->of[5]), &count, &err);
    if (digests != NULL)
        MUST(strlen(digests) == 65 * (size_t)count);
    free(digests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct texts texts;
    struct haproxy_stat stat = {0};
    struct haproxy_route *routes = NULL;
    struct route_table *table;
    struct error err = {""};
    int count = 0;

    split(text, &texts);
    check_others(&texts);
    haproxy_stat_read(texts.of[0], &stat, &err);
    haproxy_map_read(texts.of[1], &routes, &count, &err);
    err.text[0] = '\0';
    table = route_table_parse(texts.of[6], strlen(texts.of[6]), &err);
    if (table != NULL) {
        check_table(table);
        check_plan(table, &stat, routes, count);
    } else {
        fuzz_check_refusal(&err);
    }
    route_table_destroy(table);
    haproxy_routes_free(routes, count);
    haproxy_stat_clear(&stat);
    for (size_t i = 0; i < sizeof(KINDS); i++)
        free(texts.of[i]);
    free(text);
    return 0;
}
