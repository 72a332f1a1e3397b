/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Services and their shards (services.h). */
#include "cmd/services.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/render_parts.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "common/service_dir.h"
#include "lib/json_get.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- services -------------------------------------------------------------------------------- */

/* What a job that has not been heard for a while is. */
static const char *state_of(json_object *leader, double now)
{
    if (leader == NULL)
        return "unused";
    if (json_get_bool(leader, "ended", false))
        return "ended";
    return now - field_double(leader, "time") < SERVICE_SILENT ? "running" : "silent";
}

json_object *shape_service(const char *name, json_object *leader)
{
    json_object *service = text_need(json_object_new_object());
    int64_t job = 0;

    json_object_object_add(service, "service", json_from_string(name));
    if (!json_get_int(leader, "job", 1, INT32_MAX, &job))
        leader = NULL;
    json_object_object_add(service, "state",
                           json_from_string(state_of(leader, (double)time(NULL))));
    json_object_object_add(service, "job", leader != NULL ? json_object_new_int64(job) : NULL);
    json_object_object_add(service, "term",
                           leader != NULL ? json_object_new_int64(field_int(leader, "term", 0))
                                          : NULL);
    json_object_object_add(service, "node", json_from_string(json_get_string(leader, "node")));
    json_object_object_add(service, "heard",
                           leader != NULL ? json_object_new_int64(field_int(leader, "time", 0))
                                          : NULL);
    return service;
}

char *render_services(json_object *services, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"SERVICE", TABLE_LEFT}, {"STATE", TABLE_LEFT}, {"JOB", TABLE_RIGHT},
        {"TERM", TABLE_RIGHT},   {"NODE", TABLE_LEFT},  {"HEARD", TABLE_LEFT},
    };
    json_object *list = field_array(services, "services");
    struct table *table = table_create(columns, COUNT(columns));
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));

    for (size_t i = 0; i < field_count(services, "services"); i++) {
        json_object *service = json_object_array_get_idx(list, i);
        char clock[40];

        render_text_cell(table, service, "service");
        render_text_cell(table, service, "state");
        render_number_cell(table, service, "job");
        render_number_cell(table, service, "term");
        render_text_cell(table, service, "node");
        table_cell(table, text_clock((double)field_int(service, "heard", 0), options->now, clock,
                                     sizeof(clock)));
    }
    table_print(table, out, options->width);
    table_destroy(table);
    fclose(out);
    return text_need(text);
}

/* ---- shards ---------------------------------------------------------------------------------- */

struct key {
    const char *name;
    bool text;
};

static const struct key model_keys[] = {
    {"name", true},    {"key", true},   {"version", true}, {"has", true}, {"shard", false},
    {"routed", false}, {"size", false}, {"why", true},     {NULL, false},
};
static const struct key shard_keys[] = {
    {"name", true},   {"models", false},   {"version", false}, {"ready", false},
    {"bytes", false}, {"capacity", false}, {"update", true},   {"replicas", false},
    {"waits", true},  {"updated", false},  {"program", false}, {NULL, false},
};
static const struct key program_keys[] = {
    {"run", true}, {"shards", false}, {"have", false}, {"failed", false}, {NULL, false},
};
static const struct key handover_keys[] = {{"state", true}, {"job", false}, {NULL, false}};
static const struct key count_keys[] = {
    {"operations", false}, {"lists", false},  {"updates", false},
    {"disruptive", false}, {"routes", false}, {NULL, false},
};
static const struct key refused_keys[] = {{"name", true}, {"why", true}, {NULL, false}};
static const struct key router_keys[] = {{"name", true}, {"epoch", false}, {NULL, false}};
static const struct key all_keys[] = {
    {"job", false},      {"service", true}, {"term", false},      {"epoch", false},
    {"revision", false}, {"dir", true},     {"repository", true}, {NULL, false},
};

static void copy_keys(json_object *to, json_object *from, const struct key *keys)
{
    for (; keys->name != NULL; keys++)
        json_object_object_add(to, keys->name,
                               keys->text ? json_from_string(json_get_string(from, keys->name))
                                          : json_object_new_int64(field_int(from, keys->name, 0)));
}

static json_object *copy_list(json_object *answer, const char *name, const struct key *keys)
{
    json_object *copy = text_need(json_object_new_array()), *list = field_array(answer, name);

    for (size_t i = 0; i < field_count(answer, name); i++) {
        json_object *one = text_need(json_object_new_object());

        copy_keys(one, json_object_array_get_idx(list, i), keys);
        json_object_array_add(copy, one);
    }
    return copy;
}

/* If there is such an object. */
static void copy_object(json_object *to, json_object *answer, const char *name,
                        const struct key *keys)
{
    json_object *object = NULL, *copy;

    if (!json_object_object_get_ex(answer, name, &object) ||
        !json_object_is_type(object, json_type_object))
        return;
    copy = text_need(json_object_new_object());
    copy_keys(copy, object, keys);
    json_object_object_add(to, name, copy);
}

json_object *shape_shards(json_object *answer)
{
    json_object *shards = text_need(json_object_new_object());

    copy_keys(shards, answer, all_keys);
    copy_object(shards, answer, "handover", handover_keys);
    copy_object(shards, answer, "counts", count_keys);
    copy_object(shards, answer, "program", program_keys);
    json_object_object_add(shards, "shards", copy_list(answer, "shards", shard_keys));
    json_object_object_add(shards, "models", copy_list(answer, "models", model_keys));
    json_object_object_add(shards, "refused", copy_list(answer, "refused", refused_keys));
    json_object_object_add(shards, "routers", copy_list(answer, "routers", router_keys));
    return shards;
}

static void print_rows(struct table *table, FILE *out, int width)
{
    table_print(table, out, width);
    table_destroy(table);
}

static void put_shards(FILE *out, json_object *shards, int width)
{
    static const struct table_column columns[] = {
        {"SHARD", TABLE_LEFT},    {"READY", TABLE_RIGHT}, {"MODELS", TABLE_RIGHT},
        {"VERSION", TABLE_RIGHT}, {"UPDATE", TABLE_LEFT}, {"WAITS", TABLE_LEFT},
    };
    json_object *list = field_array(shards, "shards");
    struct table *table = table_create(columns, COUNT(columns));

    for (size_t i = 0; i < field_count(shards, "shards"); i++) {
        json_object *shard = json_object_array_get_idx(list, i);
        const char *update = json_get_string(shard, "update");
        char ready[64], updated[96];

        snprintf(ready, sizeof(ready), "%" PRId64 "/%" PRId64, field_int(shard, "ready", 0),
                 field_int(shard, "replicas", 0));
        render_text_cell(table, shard, "name");
        table_cell(table, ready);
        render_number_cell(table, shard, "models");
        render_number_cell(table, shard, "version");
        if (update != NULL && strcmp(update, "done") != 0)
            snprintf(updated, sizeof(updated), "%.20s, %" PRId64 "/%" PRId64, update,
                     field_int(shard, "updated", 0), field_int(shard, "replicas", 0));
        else
            snprintf(updated, sizeof(updated), "%s", update != NULL ? "done" : "");
        table_cell(table, updated);
        render_text_cell(table, shard, "waits");
    }
    print_rows(table, out, width);
}

static void shard_cell(struct table *table, json_object *model, const char *key)
{
    char text[32];
    int64_t shard = field_int(model, key, 0);

    snprintf(text, sizeof(text), "shard_%" PRId64, shard);
    table_cell(table, shard > 0 ? text : NULL);
}

static void put_models(FILE *out, json_object *shards, int width)
{
    static const struct table_column columns[] = {
        {"MODEL", TABLE_LEFT}, {"VERSION", TABLE_LEFT}, {"HAS", TABLE_LEFT}, {"IN", TABLE_LEFT},
        {"KEY", TABLE_LEFT},   {"ROUTED", TABLE_LEFT},  {"WHY", TABLE_LEFT},
    };
    json_object *models = field_array(shards, "models"), *refused = field_array(shards, "refused");
    struct table *table = table_create(columns, COUNT(columns));

    for (size_t i = 0; i < field_count(shards, "models"); i++) {
        json_object *model = json_object_array_get_idx(models, i);

        render_text_cell(table, model, "name");
        render_text_cell(table, model, "version");
        render_text_cell(table, model, "has");
        shard_cell(table, model, "shard");
        render_text_cell(table, model, "key");
        shard_cell(table, model, "routed");
        render_text_cell(table, model, "why");
    }
    print_rows(table, out, width);
    for (size_t i = 0; i < field_count(shards, "refused"); i++) {
        json_object *one = json_object_array_get_idx(refused, i);
        char *name = text_clean(json_get_string(one, "name"), 0);
        char *why = text_clean(json_get_string(one, "why"), 0);

        fprintf(out, "%sRefused: %s: %s\n", i == 0 ? "\n" : "", name, why);
        free(name);
        free(why);
    }
}

/* One line, as long as something of it is under way. */
static void put_handover(FILE *out, json_object *shards)
{
    static const struct {
        const char *state, *before, *after;
    } lines[] = {
        {"awaits", "", " is to go on with it, and is not ready for that yet"},
        {"offers", "", " is about to go on with it"},
        {"holds", "This job holds its table until its replicas are ready: ", " serves"},
    };
    json_object *handover = NULL;
    const char *state;

    if (!json_object_object_get_ex(shards, "handover", &handover))
        return;
    state = json_get_string(handover, "state");
    for (size_t i = 0; state != NULL && i < COUNT(lines); i++)
        if (strcmp(state, lines[i].state) == 0)
            fprintf(out, "%s%s %" PRId64 "%s.\n\n", lines[i].before,
                    lines[i].before[0] != '\0' ? "job" : "Job", field_int(handover, "job", 0),
                    lines[i].after);
}

/* One line, as long as not all shards have the program that there should be. */
static void put_program(FILE *out, json_object *shards)
{
    json_object *program = NULL;
    int64_t all, have, failed;

    if (!json_object_object_get_ex(shards, "program", &program))
        return;
    all = field_int(program, "shards", 0);
    have = field_int(program, "have", 0);
    failed = field_int(program, "failed", 0);
    if (have < all)
        fprintf(out, "Another program: %" PRId64 " of %" PRId64 " shards have it", have, all);
    if (failed > 0)
        fprintf(out, "; %" PRId64 " did not get ready with it: selastic flush tries it again",
                failed);
    if (have < all)
        fputs(".\n\n", out);
}

/* What the leader has been told, and what came of it. One of before this line says nothing. */
static void put_counts(FILE *out, json_object *shards)
{
    json_object *counts = NULL;

    if (json_object_object_get_ex(shards, "counts", &counts))
        fprintf(out,
                "\nSince its leader began: %" PRId64 " operations, %" PRId64 " lists, %" PRId64
                " updates (%" PRId64 " disruptive), %" PRId64 " changes of routes\n",
                field_int(counts, "operations", 0), field_int(counts, "lists", 0),
                field_int(counts, "updates", 0), field_int(counts, "disruptive", 0),
                field_int(counts, "routes", 0));
}

char *render_shards(json_object *shards, const struct render_options *options)
{
    char *text = NULL, *name = text_clean(json_get_string(shards, "service"), 0);
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));

    fprintf(out,
            "Service %s, job %" PRId64 ", term %" PRId64 ", epoch %" PRId64 ", %zu router%s\n\n",
            name, field_int(shards, "job", 0), field_int(shards, "term", 0),
            field_int(shards, "epoch", 0), field_count(shards, "routers"),
            field_count(shards, "routers") == 1 ? "" : "s");
    put_handover(out, shards);
    put_program(out, shards);
    put_shards(out, shards, options->width);
    fputc('\n', out);
    put_models(out, shards, options->width);
    put_counts(out, shards);
    free(name);
    fclose(out);
    return text_need(text);
}
