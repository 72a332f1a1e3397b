/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic fit show`, `list` and `log` (command.h, look.h). */
#include "fit/fit_show.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/logs.h"
#include "cmd/render_parts.h"
#include "cmd/terminal_text.h"
#include "fit/grant.h"
#include "fit/s3_grant.h"
#include "fit/spec.h"
#include "lib/fit_view.h"
#include "lib/json_get.h"
#include "lib/states.h"

#define NOT_BEGUN "it has not begun: fits before it go on, or no job runs the service"

int look_find(const struct home *home, int64_t *id, struct error *err)
{
    size_t count;
    int64_t *list = home_list(home, &count, err);
    bool found = false;

    if (list == NULL)
        return -1;
    if (*id == 0 && count > 0)
        *id = list[count - 1];
    for (size_t i = 0; i < count; i++)
        found = found || list[i] == *id;
    free(list);
    if (found)
        return 0;
    if (*id == 0)
        error_set(err, "the service has had no fits");
    else
        error_set(err, "there is no fit %" PRId64 "; 'selastic fit list' lists them", *id);
    return FIT_EXIT_NO_FIT;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static void add_state(json_object *to, const char *key, int64_t number)
{
    char name[STATE_NAME_SIZE];

    state_name(name, number);
    json_object_object_add(to, key, number > 0 ? json_object_new_string(name) : NULL);
}

static void add_text(json_object *to, const char *key, const char *text)
{
    json_object_object_add(to, key, json_object_new_string(text));
}

static json_object *history_json(const struct home_record *record)
{
    json_object *history = json_object_new_array();

    for (int i = 0; i < record->steps; i++) {
        json_object *one = json_object_new_object();

        add_text(one, "status", fit_status_name(record->history[i].status));
        json_object_object_add(one, "at", json_object_new_double(record->history[i].at));
        json_object_array_add(history, one);
    }
    return history;
}

static void add_record(json_object *json, const struct home_record *record)
{
    const struct fit *fit = &record->fit;

    add_text(json, "status", fit_status_name(fit->status));
    add_text(json, "action", fit_action_name(fit->action));
    json_object_object_add(json, "ending",
                           fit->cleaning ? json_object_new_string(fit_status_name(fit->ending))
                                         : NULL);
    add_text(json, "reason", fit->reason);
    add_text(json, "waits", fit->trouble[0] != '\0' ? fit->trouble : record->waits);
    add_state(json, "state", record->made ? record->state : 0);
    add_state(json, "previous", record->previous);
    json_object_object_add(json, "count", fit->counted ? json_object_new_int(fit->count) : NULL);
    json_object_object_add(json, "history", history_json(record));
}

/* A new object; NULL with err. */
static json_object *fit_json(const struct home *home, int64_t id, struct error *err)
{
    struct home_record record;
    json_object *json;
    struct spec spec;
    double until;
    bool on_s3;

    if (spec_read(home, id, &spec, err) != 0)
        return NULL;
    if (home_record_read(home, id, &record, err) != 0) {
        if (errno != ENOENT) {
            spec_clear(&spec);
            return NULL;
        }
        record = (struct home_record){.fit = fit_begin(spec.mode, &spec.limits, 0),
                                      .waits = NOT_BEGUN};
    }
    json = json_object_new_object();
    json_object_object_add(json, "fit", json_object_new_int64(id));
    add_text(json, "service", spec.service);
    add_text(json, "model", spec.model);
    add_text(json, "mode", spec.mode == FIT_MULTI ? "multi" : "single");
    on_s3 = s3_grant_is_open(home, id, (double)time(NULL), &until);
    json_object_object_add(json, "granted",
                           json_object_new_boolean(on_s3 || grant_is_open(home, id)));
    json_object_object_add(json, "lost", grant_lost(home, id));
    json_object_object_add(json, "sessionUntil", on_s3 ? json_object_new_double(until) : NULL);
    add_record(json, &record);
    json_object_object_add(json, "run", json_object_get(spec.json));
    spec_clear(&spec);
    return json;
}

/* ---- as text --------------------------------------------------------------------------------- */

static void print_pair(const char *label, const char *text)
{
    char *clean;

    if (text == NULL || text[0] == '\0')
        return;
    clean = text_clean(text, 0);
    printf("%-10s%s\n", label, clean);
    free(clean);
}

static void print_history(json_object *json)
{
    json_object *history = json_object_object_get(json, "history");

    for (size_t i = 0; i < json_object_array_length(history); i++) {
        json_object *one = json_object_array_get_idx(history, i);
        char clock[40];

        printf("%-10s%s  %s\n", i == 0 ? "History:" : "",
               text_clock(json_get_double(one, "at", 0), time(NULL), clock, sizeof(clock)),
               json_get_string(one, "status"));
    }
}

/* What could not be taken back. */
static void print_lost(json_object *json, const char *user)
{
    json_object *lost = json_object_object_get(json, "lost");

    for (size_t i = 0; lost != NULL && i < json_object_array_length(lost); i++) {
        json_object *one = json_object_array_get_idx(lost, i);
        const char *path = json_get_string(one, "path"), *why = json_get_string(one, "why");
        char text[PATH_MAX + 300];

        snprintf(text, sizeof(text), "%.4000s may be open to %.60s still: %.200s",
                 path != NULL ? path : "", user, why != NULL ? why : "");
        print_pair("Lost:", text);
    }
}

static void print_trainer(json_object *json, json_object *run)
{
    json_object *trainer = json_object_object_get(run, "trainer");
    const char *user = json_get_string(trainer, "user");
    char text[200], clock[40];

    if (user == NULL)
        return;
    snprintf(text, sizeof(text), "%.60s@%.60s", json_get_string(trainer, "service"), user);
    print_pair("Trainer:", text);
    snprintf(text, sizeof(text), "%.60s has access to the data and the new state", user);
    if (json_get_bool(json, "granted", false))
        print_pair("Granted:", text);
    print_lost(json, user);
    if (json_get_double(json, "sessionUntil", 0) > 0) {
        snprintf(
            text, sizeof(text), "its session ends at %s",
            text_clock(json_get_double(json, "sessionUntil", 0), time(NULL), clock, sizeof(clock)));
        print_pair("On S3:", text);
    }
}

static void print_fit(json_object *json)
{
    json_object *run = json_object_object_get(json, "run");
    const char *state = json_get_string(json, "state"), *ending = json_get_string(json, "ending");
    char text[512];
    int64_t id = 0;

    json_get_int(json, "fit", 0, INT64_MAX, &id);
    snprintf(text, sizeof(text), "%" PRId64 " of %.60s, model %.120s", id,
             json_get_string(json, "service"), json_get_string(json, "model"));
    print_pair("Fit:", text);
    snprintf(text, sizeof(text), "%s%s%s%s%s%s", json_get_string(json, "status"),
             strcmp(json_get_string(json, "action"), "nothing") != 0 ? " (" : "",
             strcmp(json_get_string(json, "action"), "nothing") != 0
                 ? json_get_string(json, "action")
                 : "",
             ending != NULL ? ", to end as " : "", ending != NULL ? ending : "",
             strcmp(json_get_string(json, "action"), "nothing") != 0 ? ")" : "");
    print_pair("Status:", text);
    print_pair("Reason:", json_get_string(json, "reason"));
    print_pair("Waits:", json_get_string(json, "waits"));
    if (state != NULL) {
        snprintf(text, sizeof(text), "%.400s/%s", json_get_string(run, "place"), state);
        print_pair("State:", text);
    }
    print_trainer(json, run);
    print_pair("Previous:", json_get_string(json, "previous"));
    print_pair("Data:", json_get_string(run, "trainData"));
    print_history(json);
}

int look_print(const struct fit_arguments *arguments, const struct home *home, struct error *err)
{
    json_object *json = fit_json(home, arguments->id, err);

    if (json == NULL)
        return -1;
    if (arguments->json) {
        print_json(json, false);
        return 0;
    }
    print_fit(json);
    json_object_put(json);
    return 0;
}

int fit_show(const struct fit_arguments *arguments, struct error *err)
{
    struct fit_arguments shown = *arguments;
    struct home home;
    int rc = home_open(&home, arguments->service, err);

    if (rc == 0)
        rc = look_find(&home, &shown.id, err);
    return rc != 0 ? rc : look_print(&shown, &home, err);
}

/* ---- list ------------------------------------------------------------------------------------ */

static void print_table(json_object *list)
{
    if (json_object_array_length(list) == 0) {
        puts("the service has had no fits");
        return;
    }
    static const struct table_column columns[] = {
        {"FIT", TABLE_RIGHT},  {"MODEL", TABLE_LEFT},    {"STATUS", TABLE_LEFT},
        {"STATE", TABLE_LEFT}, {"PREVIOUS", TABLE_LEFT}, {"REASON", TABLE_LEFT},
    };
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);
        const char *reason = json_get_string(one, "reason");

        render_number_cell(table, one, "fit");
        render_text_cell(table, one, "model");
        render_text_cell(table, one, "status");
        render_text_cell(table, one, "state");
        render_text_cell(table, one, "previous");
        table_cell(table,
                   reason != NULL && reason[0] != '\0' ? reason : json_get_string(one, "waits"));
    }
    table_print(table, stdout, terminal_width());
    table_destroy(table);
}

int fit_list(const struct fit_arguments *arguments, struct error *err)
{
    json_object *all, *list;
    struct home home;
    size_t count;
    int64_t *ids;

    if (arguments->guests)
        return guest_list(arguments, err);
    if (home_open(&home, arguments->service, err) != 0 ||
        (ids = home_list(&home, &count, err)) == NULL)
        return -1;
    all = json_object_new_object();
    list = json_object_new_array();
    json_object_object_add(all, "service", json_object_new_string(arguments->service));
    json_object_object_add(all, "fits", list);
    for (size_t i = 0; i < count; i++) {
        json_object *one = fit_json(&home, ids[i], err);

        if (one != NULL)
            json_object_array_add(list, one);
    }
    free(ids);
    if (arguments->json) {
        print_json(all, false);
        return 0;
    }
    print_table(list);
    json_object_put(all);
    return 0;
}

/* ---- log ------------------------------------------------------------------------------------- */

int fit_log(const struct fit_arguments *arguments, struct error *err)
{
    int64_t id = arguments->id;
    struct home home;
    char line[8192];
    FILE *log;
    int rc = home_open(&home, arguments->service, err);

    if (rc == 0)
        rc = look_find(&home, &id, err);
    if (rc != 0)
        return rc;
    log = fopen(home_path(&home, id, HOME_LOG_FILE).text, "re");
    if (log == NULL)
        return errno == ENOENT ? error_set(err, "fit %" PRId64 " has printed nothing so far", id)
                               : error_set(err, "%s", strerror(errno));
    while (fgets(line, sizeof(line), log) != NULL) {
        bool ends = strchr(line, '\n') != NULL;
        char *clean;

        line[strcspn(line, "\n")] = '\0';
        if (arguments->json) {
            logs_print_object(line, strlen(line), ends, stdout);
            continue;
        }
        clean = text_clean(line, 0);
        puts(clean);
        free(clean);
    }
    fclose(log);
    return 0;
}
