/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The texts of a service's files (service_text.h). */
#include "agent/leader/service_text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "common/service_dir.h"
#include "lib/json_text.h"

char *service_text_leader(struct leader *leader, int64_t term, bool ended)
{
    const struct leader_options *o = leader->options;
    json_object *json = json_object_new_object(), *addresses = json_object_new_array();
    char *text;

    json_object_object_add(json, "service", json_object_new_string(o->roles->service));
    json_object_object_add(json, "job", json_object_new_int64(o->job));
    json_object_object_add(json, "restarts", json_object_new_int64(o->restarts));
    json_object_object_add(json, "term", json_object_new_int64(term));
    json_object_object_add(json, "node", json_object_new_string(o->node));
    json_object_array_add(addresses, json_object_new_string(o->address));
    json_object_object_add(json, "addresses", addresses);
    json_object_object_add(json, "state-dir", json_object_new_string(o->state_dir));
    json_object_object_add(json, "port", json_object_new_int(leader_port(leader)));
    json_object_object_add(json, "time", json_object_new_int64((int64_t)unix_now()));
    json_object_object_add(json, "ended", json_object_new_boolean(ended));
    text = strdup(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(json);
    return text;
}

const char *service_text_models(int shard, char *name, size_t size)
{
    snprintf(name, size, SERVICE_MODELS_DIR "/shard_%d.json", shard);
    return name;
}

char *service_text_list(const char *repository, const struct service_action *action)
{
    json_object *json = json_object_new_object(), *models = json_object_new_array();
    char path[PATH_MAX + 600], *text;

    snprintf(path, sizeof(path), "shard_%d", action->shard);
    json_object_object_add(json, "shard", json_object_new_string(path));
    json_object_object_add(json, "epoch", json_object_new_int64(action->epoch));
    json_object_object_add(json, "update", json_object_new_int64(action->version));
    for (int i = 0; i < action->count; i++) {
        json_object *model = json_object_new_object();

        snprintf(path, sizeof(path), "%s/%s/%s", repository, action->items[i].name,
                 action->items[i].version);
        json_object_object_add(model, "name", json_object_new_string(action->items[i].name));
        json_object_object_add(model, "version", json_object_new_string(action->items[i].version));
        json_object_object_add(model, "path", json_object_new_string(path));
        json_object_array_add(models, model);
    }
    json_object_object_add(json, "models", models);
    text = strdup(json_object_to_json_string_ext(
        json, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(json);
    return text;
}

char *service_text_table(const struct role *role, uint32_t job, int64_t term, const char *said)
{
    json_object *table = json_text_parse(said, strlen(said), NULL);
    json_object *by = json_object_new_object(), *shards = NULL;
    char number[16], *text;

    snprintf(number, sizeof(number), "%u", job);
    json_object_object_add(table, "job", json_object_new_string(number));
    json_object_object_add(table, "term", json_object_new_int64(term));
    json_object_object_add(by, "json", json_object_new_string("$.model"));
    json_object_object_add(table, "route-by", by);
    json_object_object_get_ex(table, "shards", &shards);
    for (size_t i = 0; i < json_object_array_length(shards); i++)
        if (role->ready.how == ROLE_PROBE_HTTP)
            json_object_object_add(json_object_array_get_idx(shards, i), "check",
                                   json_object_new_string(role->ready.what));
    text = strdup(json_object_to_json_string_ext(table, JSON_C_TO_STRING_PLAIN |
                                                            JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(table);
    return text;
}
