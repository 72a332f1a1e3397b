/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The texts of a service's files (service_text.h). */
#include "agent/leader/service_text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/service_shell.h"
#include "agent/leader/slurm_look.h"
#include "common/service_dir.h"
#include "common/slurm_client.h"
#include "lib/json_text.h"
#include "lib/route_by.h"

static char *text_of(json_object *json, int flags)
{
    char *text = strdup(
        json_object_to_json_string_ext(json, flags | JSON_C_TO_STRING_NOSLASHESCAPE));

    json_object_put(json);
    return text;
}

static void add_number(json_object *json, const char *key, int64_t number)
{
    json_object_object_add(json, key, json_object_new_int64(number));
}

/* What another job has to know of this one (lib/service_handover.h). */
static void add_handover(const struct leader *leader, json_object *json)
{
    const struct leader_service *own = leader->of_roles.service;
    const struct job_info *base = slurm_look_base(leader);
    const struct service_next *next = &own->next_job;

    json_object_object_add(json, "serves", json_object_new_boolean(own->table != NULL));
    if (base != NULL && base->time_limit != UINT32_MAX && base->end > 0)
        add_number(json, "end", base->end);
    if (next->handover.successor > 0)
        add_number(json, "submitted", next->handover.successor);
    /* Not before all that has been begun is done. */
    if (next->handover.state == HANDOVER_OFFERS && !own->running)
        add_number(json, "successor", next->handover.successor);
    if (own->service != NULL && service_holds(own->service)) {
        add_number(json, "of", next->old);
        add_number(json, "old-end", (int64_t)next->old_end);
    }
}

char *service_text_leader(struct leader *leader, int64_t term, bool ended)
{
    const struct leader_options *o = leader->options;
    json_object *json = json_object_new_object(), *addresses = json_object_new_array();

    json_object_object_add(json, "service", json_object_new_string(o->roles->service));
    add_number(json, "job", o->job);
    add_number(json, "restarts", o->restarts);
    add_number(json, "term", term);
    json_object_object_add(json, "node", json_object_new_string(o->node));
    json_object_array_add(addresses, json_object_new_string(o->address));
    json_object_object_add(json, "addresses", addresses);
    json_object_object_add(json, "state-dir", json_object_new_string(o->state_dir));
    add_number(json, "port", leader_port(leader));
    add_number(json, "time", (int64_t)unix_now());
    json_object_object_add(json, "ended", json_object_new_boolean(ended));
    add_handover(leader, json);
    return text_of(json, JSON_C_TO_STRING_PLAIN);
}

json_object *service_text_handover(const struct leader *leader)
{
    const struct leader_service *own = leader->of_roles.service;
    const struct service_next *next = &own->next_job;
    bool holds = service_holds(own->service);
    json_object *json = json_object_new_object();

    json_object_object_add(
        json, "state",
        json_object_new_string(holds ? "holds" : service_handover_word(next->handover.state)));
    if (holds || next->handover.successor > 0)
        add_number(json, "job", holds ? next->old : next->handover.successor);
    return json;
}

char *service_text_next(const struct leader *leader, uint32_t of)
{
    json_object *json = json_object_new_object();

    add_number(json, "job", leader->options->job);
    add_number(json, "of", of);
    return text_of(json, JSON_C_TO_STRING_PLAIN);
}

const char *service_text_models(int shard, char *name, size_t size)
{
    snprintf(name, size, SERVICE_MODELS_DIR "/shard_%d.json", shard);
    return name;
}

char *service_text_list(const char *repository, const struct service_action *action)
{
    json_object *json = json_object_new_object(), *models = json_object_new_array();
    char path[PATH_MAX + 600];

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
    return text_of(json, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}

/* As its router says, which need not be one of the job. */
static json_object *route_by(const struct roles *roles)
{
    int router = roles_router(roles);
    const char *what = "$.model";
    json_object *said = json_object_new_object();
    enum haproxy_key by = HAPROXY_JSON;
    char pattern[PATH_MAX];

    if (router >= 0 && roles->list[router].router.by != NULL)
        route_by_parse(roles->list[router].router.by, &by, &what);
    if (by == HAPROXY_PATH) {
        snprintf(pattern, sizeof(pattern), "^%s([^/]+)", what);
        what = pattern;
    }
    json_object_object_add(said, route_by_word(by), json_object_new_string(what));
    return said;
}

char *service_text_table(const struct roles *roles, const struct role *role, uint32_t job,
                         int64_t term, const char *said)
{
    json_object *table = json_text_parse(said, strlen(said), NULL), *shards = NULL;
    char number[16];

    snprintf(number, sizeof(number), "%u", job);
    json_object_object_add(table, "job", json_object_new_string(number));
    json_object_object_add(table, "term", json_object_new_int64(term));
    json_object_object_add(table, "route-by", route_by(roles));
    json_object_object_get_ex(table, "shards", &shards);
    for (size_t i = 0; i < json_object_array_length(shards); i++)
        if (role->ready.how == ROLE_PROBE_HTTP)
            json_object_object_add(json_object_array_get_idx(shards, i), "check",
                                   json_object_new_string(role->ready.what));
    return text_of(table, JSON_C_TO_STRING_PLAIN);
}
