/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users and routers ask about the service (control_service.h). */
#include "agent/leader/control_service.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/leader/control.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_service.h"
#include "agent/leader/route_waiters.h"
#include "agent/leader/service_next.h"
#include "agent/leader/new_program.h"
#include "lib/json_get.h"
#include "lib/pieces.h"
#include "lib/roles.h"
#include "lib/service.h"
#include "lib/shard_plan.h"
#include "lib/text.h"

static void refuse_as(struct leader *leader, struct link *link, const char *code, const char *why)
{
    json_object *answer = control_answer("error", "%s", why);

    json_object_object_add(answer, "code", json_object_new_string(code));
    control_say(link, answer, control_leads(leader));
}

static void refuse(struct leader *leader, struct link *link, const char *why)
{
    refuse_as(leader, link, "state", why);
}

static bool may_ask(struct leader *leader, struct link *link,
                    int (*ready)(const struct leader *leader, struct error *err))
{
    struct error err;

    if (!control_may_change(leader, link))
        return false;
    if (ready(leader, &err) == 0)
        return true;
    refuse(leader, link, err.text);
    return false;
}

static bool is_ready(struct leader *leader, struct link *link)
{
    return may_ask(leader, link, leader_service_ready);
}

static bool has_routes(struct leader *leader, struct link *link)
{
    return may_ask(leader, link, leader_service_routes);
}

void control_shards(struct leader *leader, struct link *link, json_object *msg)
{
    json_object *said;

    (void)msg;
    if (!is_ready(leader, link))
        return;
    said = leader_message("shards", -1);
    json_object_object_add(said, "job", json_object_new_int64(leader->options->job));
    leader_service_describe(leader, said);
    control_say(link, said, true);
}

/* An operator of Slurm controls a job, but runs no programs as its user. */
static bool may_run_programs(const struct link *link)
{
    uid_t uid = link_peer_uid(link);

    return uid == geteuid() || uid == 0;
}

/* Another program for its shards: that of a job file, or else a command. */
static void apply_program(struct leader *leader, struct link *link, const char *roles,
                          json_object *run)
{
    struct error err = {""};
    bool same = false;

    if ((roles != NULL ? new_program_apply(leader, roles, &same, &err)
                       : new_program_run(leader, run, &same, &err)) != 0) {
        refuse_as(leader, link, "limits", err.text);
        return;
    }
    control_say(link,
                control_answer("done", "job %u: service %s %s", leader->options->job,
                               leader->options->roles->service,
                               same ? "has that program already"
                                    : "replaces its replicas by ones with that program; selastic "
                                      "shard says how far it is"),
                true);
}

void control_apply(struct leader *leader, struct link *link, json_object *msg)
{
    const char *roles = json_get_string(msg, "roles");
    json_object *run = json_object_object_get(msg, "run");

    if (!is_ready(leader, link))
        return;
    if (roles != NULL || run != NULL) {
        if (may_run_programs(link))
            apply_program(leader, link, roles, run);
        else
            refuse_as(leader, link, "denied",
                      "not permitted: a program is given by the user of the job, or by root");
        return;
    }
    leader_service_apply(leader);
    control_say(link,
                control_answer("done", "job %u: service %s looks at its repository",
                               leader->options->job, leader->options->roles->service),
                true);
}

static void hurry(struct leader *leader, struct link *link, bool repack)
{
    if (!is_ready(leader, link))
        return;
    leader_service_flush(leader, repack);
    control_say(link,
                control_answer("done", "job %u: service %s %s", leader->options->job,
                               leader->options->roles->service,
                               repack ? "moves models so that it needs fewer shards"
                                      : "does at once what waits, and tries again what has failed"),
                true);
}

void control_flush(struct leader *leader, struct link *link, json_object *msg)
{
    (void)msg;
    hurry(leader, link, false);
}

void control_repack(struct leader *leader, struct link *link, json_object *msg)
{
    (void)msg;
    hurry(leader, link, true);
}

/* The model that is asked about. NULL: it has been refused. */
static const char *model_of(struct leader *leader, struct link *link, json_object *msg)
{
    struct error err;
    const char *model;

    if (!is_ready(leader, link))
        return NULL;
    model = leader_service_model(leader, json_get_string(msg, "model"), json_get_string(msg, "key"),
                                 &err);
    if (model == NULL)
        refuse_as(leader, link, "unknown", err.text);
    return model;
}

void control_move(struct leader *leader, struct link *link, json_object *msg)
{
    const char *model = model_of(leader, link, msg);
    struct error err = {""};
    int64_t shard;

    if (model == NULL)
        return;
    if (!json_get_int(msg, "shard", 1, SHARD_PLAN_SHARDS_MAX, &shard)) {
        refuse(leader, link, "move needs shard, a number from 1");
        return;
    }
    if (leader_service_move(leader, model, (int)shard, &err) != 0) {
        refuse(leader, link, err.text);
        return;
    }
    control_say(link,
                control_answer("done", "job %u: model %s moves to shard_%d", leader->options->job,
                               model, (int)shard),
                true);
}

/* The names of models that are said by their keys: a new array. NULL with err. */
static char **names_of(struct leader *leader, char **keys, struct error *err)
{
    char **names = calloc(strings_count(keys) + 1, sizeof(*names));

    for (int i = 0; names != NULL && keys[i] != NULL; i++) {
        const char *name = leader_service_model(leader, NULL, keys[i], err);

        names[i] = name != NULL ? strdup(name) : NULL;
        if (names[i] != NULL)
            continue;
        strings_free(names);
        return NULL;
    }
    return names;
}

/* "models", or "keys". NULL with err. */
static char **models_of(struct leader *leader, json_object *msg, struct error *err)
{
    char **models = json_get_strings(msg, "models", SHARD_COMMANDS_MODELS_MAX);
    char **keys = json_get_strings(msg, "keys", SHARD_COMMANDS_MODELS_MAX);

    if (models == NULL && keys == NULL)
        error_set(err, "place needs a list of names: models or keys");
    if (models == NULL && keys != NULL)
        models = names_of(leader, keys, err);
    strings_free(keys);
    return models;
}

void control_place(struct leader *leader, struct link *link, json_object *msg)
{
    struct error err = {""};
    int64_t shard = 0;
    int changes = 0, rc;
    char **models;

    if (!is_ready(leader, link))
        return;
    models = models_of(leader, msg, &err);
    if (models != NULL && !json_get_int(msg, "shard", 1, SHARD_PLAN_SHARDS_MAX, &shard))
        error_set(&err, "place needs shard, a number from 1");
    rc = shard > 0 ? leader_service_place(leader, (int)shard, models, &changes, &err) : -1;
    strings_free(models);
    if (rc != 0)
        refuse(leader, link, err.text);
    else if (changes == 0)
        control_say(link,
                    control_answer("done", "job %u: shard_%d has these models, and no others",
                                   leader->options->job, (int)shard),
                    true);
    else
        control_say(link,
                    control_answer("done", "job %u: %d model%s to shard_%d, or leave%s it",
                                   leader->options->job, changes,
                                   changes == 1 ? " comes" : "s come", (int)shard,
                                   changes == 1 ? "s" : ""),
                    true);
}

void control_withdraw(struct leader *leader, struct link *link, json_object *msg)
{
    const char *model = model_of(leader, link, msg);
    struct error err = {""};

    if (model == NULL)
        return;
    if (leader_service_withdraw(leader, model, &err) != 0) {
        refuse(leader, link, err.text);
        return;
    }
    control_say(link,
                control_answer(
                    "done", "job %u: model %s is withdrawn: first its route goes, then the model",
                    leader->options->job, model),
                true);
}

void control_serve(struct leader *leader, struct link *link, json_object *msg)
{
    const char *model = model_of(leader, link, msg);

    if (model == NULL)
        return;
    control_say(link,
                control_answer("done", "job %u: model %s is served", leader->options->job, model),
                true);
    leader_service_serve(leader, model); /* its name is gone then */
}

void control_hand_over(struct leader *leader, struct link *link, json_object *msg)
{
    struct error err;

    (void)msg;
    if (!is_ready(leader, link))
        return;
    if (service_next_ask(leader, &err) != 0) {
        refuse(leader, link, err.text);
        return;
    }
    control_say(link,
                control_answer("done",
                               "job %u: the next job of service %s is submitted; selastic shard "
                               "says how far it is",
                               leader->options->job, leader->options->roles->service),
                true);
}

/* NULL: it has none, or one that is none. */
static const char *router_of(json_object *msg)
{
    const char *router = json_get_string(msg, "router");

    return router != NULL && router[0] != '\0' && strlen(router) < SERVICE_ROUTER_NAME ? router
                                                                                       : NULL;
}

/* A table that is too large for a message. The router asks for the next piece. */
static void say_piece(struct leader *leader, struct link *link, size_t piece)
{
    int64_t revision;
    const char *text = leader_service_table(leader, &revision);
    size_t size = strlen(text), from = piece * PIECE_BYTES;
    size_t len = from < size ? size - from : 0;
    json_object *said = leader_message("routes", -1);

    len = len < PIECE_BYTES ? len : PIECE_BYTES;
    json_object_object_add(said, "revision", json_object_new_int64(revision));
    json_object_object_add(said, "piece", json_object_new_int64((int64_t)piece));
    json_object_object_add(said, "last", json_object_new_boolean(from + len >= size));
    if (piece_set(said, text + (len > 0 ? from : 0), len) != 0) {
        json_object_put(said);
        refuse(leader, link, "out of memory");
        return;
    }
    control_say(link, said, control_leads(leader));
}

static void say_table(struct leader *leader, struct link *link, json_object *table)
{
    json_object *said;
    int64_t revision;
    const char *text = leader_service_table(leader, &revision);

    if (table != NULL && text != NULL && strlen(text) > PIECE_BYTES) {
        say_piece(leader, link, 0);
        return;
    }

    if (table == NULL) {
        refuse(leader, link, "the service has no table of routes yet");
        return;
    }
    said = leader_message("routes", -1);
    json_object_object_add(said, "table", json_object_get(table));
    control_say(link, said, control_leads(leader));
}

/* A router that says its name is waited for from now on. Who does not only looks. */
void control_routes(struct leader *leader, struct link *link, json_object *msg)
{
    const char *router = router_of(msg);
    int64_t after = -1, piece, revision;

    if (!has_routes(leader, link))
        return;
    if (json_get_int(msg, "piece", 1, INT32_MAX, &piece) &&
        leader_service_table(leader, &revision) != NULL) {
        bool same = json_get_int(msg, "revision", 0, INT64_MAX, &after) && after == revision;

        say_piece(leader, link, same ? (size_t)piece : 0);
        return;
    }
    json_get_int(msg, "after", -1, INT64_MAX, &after);
    if (router != NULL && !leader_service_routed(leader, router, 0, -1, NULL))
        refuse(leader, link, "the service has too many routers");
    else if (!route_waiters_add(leader, link, after, say_table))
        refuse(leader, link, "too many routers wait for routes");
}

void control_routed(struct leader *leader, struct link *link, json_object *msg)
{
    const char *router = router_of(msg);
    int64_t epoch, revision = -1;

    if (!has_routes(leader, link))
        return;
    if (router == NULL || !json_get_int(msg, "epoch", -1, INT64_MAX, &epoch)) {
        refuse(leader, link, "routed needs router, a name of up to 63 bytes, and epoch");
        return;
    }
    json_get_int(msg, "revision", 0, INT64_MAX, &revision);
    if (leader_service_routed(leader, router, epoch, revision, msg))
        control_say(link, control_answer("done", "heard"), true);
    else
        refuse(leader, link, "the service has too many routers");
}
