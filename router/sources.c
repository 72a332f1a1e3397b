/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the table of routes comes from (sources.h). */
#include "router/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "lib/router_plan.h"
#include "router/leader.h"
#include "router/watch.h"

#define TABLE_MS  100
#define PLACE_MS  1000
#define LEADERS   2     /* one that goes, one that comes */
#define LOST_MS   60000 /* a leader that is silent for so long does not count */
#define AWAY_MS   30000 /* … for so long is away: it answers each 20 s */
#define PATH_SIZE 4096

struct sources {
    uv_loop_t *loop;
    struct sources_options options;
    struct watch *table_file, *place_file;
    struct leader *leaders[LEADERS]; /* the latest one is the first; NULL: none */
    struct route_table *table;       /* the one that counts; NULL: none */
    uint32_t ended;                  /* the job that has ended last; 0: it has not */
    bool from_file;
    /* The file cannot be used; "": it can. */
    char table_why[256], place_why[256];
    char words[512];
};

#define WHY_SIZE sizeof(((struct sources *)0)->table_why)

static void complain(char *said, const char *why)
{
    if (strcmp(said, why) == 0)
        return;
    snprintf(said, WHY_SIZE, "%s", why);
    log_error("%s", why);
}

static void count_from_now_on(struct sources *sources, struct route_table *table, bool from_file)
{
    sources->from_file = from_file;
    if (table == sources->table)
        return;
    route_table_destroy(sources->table);
    sources->table = route_table_share(table);
    sources->options.table_changed(table, sources->options.arg);
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* One with --table counts as it is. That of a service does until a leader has answered. */
static void on_table_file(const char *text, size_t length, const char *why, void *arg)
{
    struct sources *sources = arg;
    struct route_table *table;
    struct error err = {""};

    if (text == NULL) {
        if (sources->options.table != NULL)
            complain(sources->table_why, why);
        return;
    }
    table = route_table_parse(text, length, &err);
    if (table != NULL && strcmp(table->service, sources->options.service) != 0) {
        error_set(&err, "it is of service %s", table->service);
        route_table_destroy(table);
        table = NULL;
    }
    if (table == NULL) {
        error_prefix(&err, "the table of routes");
        complain(sources->table_why, err.text);
        return;
    }
    sources->table_why[0] = '\0';
    if (sources->table == NULL || sources->from_file)
        count_from_now_on(sources, table, true);
    route_table_destroy(table);
}

/* ---- leaders --------------------------------------------------------------------------------- */

static bool counts(const struct sources *sources, const struct leader *leader)
{
    return leader != NULL && leader_table(leader) != NULL &&
           uv_now(sources->loop) < leader_heard(leader) + LOST_MS;
}

/* The highest term of a leader who answers. If none does, what there is stays. */
void sources_choose(struct sources *sources)
{
    struct leader *best = NULL;

    for (int i = 0; i < LEADERS; i++)
        if (counts(sources, sources->leaders[i]) &&
            (best == NULL || leader_table(sources->leaders[i])->term > leader_table(best)->term))
            best = sources->leaders[i];
    if (best != NULL)
        count_from_now_on(sources, leader_table(best), false);
}

static void on_heard(void *arg)
{
    sources_choose(arg);
}

static void new_leader(struct sources *sources, struct leader_place *place)
{
    const struct leader_options options = {.service = sources->options.service,
                                           .id = sources->options.id,
                                           .conf = sources->options.conf,
                                           .heard = on_heard,
                                           .arg = sources};
    const struct leader_place *first = sources->leaders[0] != NULL ? leader_at(sources->leaders[0])
                                                                   : NULL;

    log_info("the leader is job %u, term %lld", place->job, (long long)place->term);
    if (first != NULL && first->job == place->job) {
        leader_destroy(sources->leaders[0]); /* the same job, elsewhere or another start of it */
    } else {
        leader_destroy(sources->leaders[1]);
        sources->leaders[1] = sources->leaders[0];
    }
    sources->leaders[0] = leader_create(sources->loop, &options, place);
}

/* Its replicas are gone. What there is stays until another job has the service. A job that had it
 * before does not count any more. */
static void end_leader(struct sources *sources, const struct leader_place *place)
{
    if (sources->ended != place->job)
        log_info("job %u has ended", place->job);
    sources->ended = place->job;
    for (int i = 0; i < LEADERS; i++)
        if (sources->leaders[i] != NULL && (leader_at(sources->leaders[i])->job == place->job ||
                                            leader_at(sources->leaders[i])->term < place->term)) {
            leader_destroy(sources->leaders[i]);
            sources->leaders[i] = NULL;
        }
}

static void on_place_file(const char *text, size_t length, const char *why, void *arg)
{
    struct sources *sources = arg;
    struct leader_place place;
    struct error err = {""};

    if (text == NULL) {
        error_set(&err, "does a job run the service? %s", why);
        complain(sources->place_why, err.text);
        return;
    }
    if (leader_place_read(text, length, &place, &err) != 0) {
        error_prefix(&err, "leader.json");
        complain(sources->place_why, err.text);
        return;
    }
    sources->place_why[0] = '\0';
    if (place.ended) {
        end_leader(sources, &place);
        leader_place_clear(&place);
        return;
    }
    sources->ended = 0;
    if (sources->leaders[0] != NULL && leader_place_same(leader_at(sources->leaders[0]), &place))
        leader_place_clear(&place);
    else
        new_leader(sources, &place);
}

/* ---- reports --------------------------------------------------------------------------------- */

static void tell(struct sources *sources, struct leader *leader, const struct driver_view *view)
{
    struct route_table *own = leader_table(leader);
    bool current = view->table != NULL && own != NULL && own->term == view->table->term;
    json_object *report;

    if (own == NULL)
        return;
    report = json_object_new_object();
    json_object_object_add(report, "t", json_object_new_string("routed"));
    json_object_object_add(report, "router", json_object_new_string(sources->options.id));
    json_object_object_add(report, "service", json_object_new_string(own->service));
    json_object_object_add(report, "term", json_object_new_int64(own->term));
    json_object_object_add(report, "revision", json_object_new_int64(own->revision));
    json_object_object_add(report, "epoch", json_object_new_int64(current ? view->confirmed : -1));
    json_object_object_add(report, "drained",
                           router_drained(own, view->stat, current, view->leaving));
    json_object_object_add(report, "sessions", router_sessions(own, view->stat));
    if (view->asked != NULL)
        json_object_object_add(report, "asked", json_object_get(view->asked));
    if (view->asked != NULL && view->asked_more)
        json_object_object_add(report, "asked-more", json_object_new_boolean(true));
    leader_tell(leader, report);
}

void sources_report(struct sources *sources, const struct driver_view *view)
{
    for (int i = 0; i < LEADERS; i++)
        if (sources->leaders[i] != NULL)
            tell(sources, sources->leaders[i], view);
}

const char *sources_words(struct sources *sources)
{
    const struct leader *leader = sources->leaders[0];
    char *words = sources->words;
    size_t size = sizeof(sources->words);

    if (sources->table_why[0] != '\0')
        snprintf(words, size, "%s", sources->table_why);
    else if (sources->place_why[0] != '\0')
        snprintf(words, size, "%s", sources->place_why);
    else if (sources->options.table != NULL)
        snprintf(words, size, "%.200s", sources->options.table);
    else if (sources->ended != 0)
        snprintf(words, size, "job %u has ended, and no other job has this service yet",
                 sources->ended);
    else if (leader == NULL)
        snprintf(words, size, "no job has this service yet");
    else if (leader_refusal(leader)[0] != '\0')
        snprintf(words, size, "job %u: %s", leader_at(leader)->job, leader_refusal(leader));
    else if (leader_heard(leader) == 0 || uv_now(sources->loop) > leader_heard(leader) + AWAY_MS)
        snprintf(words, size, "job %u does not answer", leader_at(leader)->job);
    else
        snprintf(words, size, "job %u answers", leader_at(leader)->job);
    return words;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct sources *sources_create(uv_loop_t *loop, const struct sources_options *options)
{
    struct sources *sources = calloc(1, sizeof(*sources));
    char path[PATH_SIZE];

    if (sources == NULL)
        return NULL;
    sources->loop = loop;
    sources->options = *options;
    if (options->table != NULL) {
        sources->table_file = watch_create(loop, options->table, ROUTE_TABLE_TEXT_MAX, false,
                                           TABLE_MS, on_table_file, sources);
        return sources;
    }
    snprintf(path, sizeof(path), "%.4000s/routes.json", options->directory);
    sources->table_file = watch_create(loop, path, ROUTE_TABLE_TEXT_MAX, false, PLACE_MS,
                                       on_table_file, sources);
    snprintf(path, sizeof(path), "%.4000s/leader.json", options->directory);
    sources->place_file = watch_create(loop, path, LEADER_PLACE_TEXT_MAX, false, PLACE_MS,
                                       on_place_file, sources);
    return sources;
}

void sources_destroy(struct sources *sources)
{
    if (sources == NULL)
        return;
    watch_destroy(sources->table_file);
    watch_destroy(sources->place_file);
    for (int i = 0; i < LEADERS; i++)
        leader_destroy(sources->leaders[i]);
    route_table_destroy(sources->table);
    free(sources);
}
