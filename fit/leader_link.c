/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to the leader of the service (service.h). */
#include "fit/leader_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "lib/json_get.h"
#include "lib/roles.h"
#include "lib/trainer_note.h"

struct service_link {
    uint32_t job;
    struct site *site;
    struct query query;
};

struct service_link *service_link_create(uint32_t job)
{
    struct service_link *link = calloc(1, sizeof(*link));

    if (link != NULL)
        link->job = job;
    return link;
}

void service_link_destroy(struct service_link *link)
{
    if (link == NULL)
        return;
    query_clear(&link->query);
    site_destroy(link->site);
    free(link);
}

/* Slurm is asked once where the job is; later questions go to the leader alone. */
static int find(struct service_link *link, struct error *err)
{
    if (link->site == NULL)
        link->site = site_create(err);
    if (link->site == NULL)
        return -1;
    if (query_is_found(&link->query))
        return 0;
    return query_find(link->site, link->job, &link->query, err) == QUERY_ANSWERED ? 0 : -1;
}

/* Borrowed until the next question. NULL with err. */
static json_object *ask(struct service_link *link, json_object *request, const char *type,
                        struct error *err)
{
    const char *got, *message;

    deadline_start();
    if (find(link, err) != 0) {
        json_object_put(request);
        return NULL;
    }
    if (query_again(link->site, request, &link->query, err) != QUERY_ANSWERED)
        return NULL;
    got = json_get_string(link->query.answer, "t");
    message = json_get_string(link->query.answer, "message");
    if (got != NULL && strcmp(got, type) == 0)
        return link->query.answer;
    error_set(err, "%s", message != NULL ? message : "the leader gave an answer that is none");
    return NULL;
}

/* ---- a model --------------------------------------------------------------------------------- */

static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text != NULL ? text : "");
}

/* The object of that name in a list; NULL: there is none. */
static json_object *named(json_object *answer, const char *list, const char *key, const char *name)
{
    json_object *all = json_object_object_get(answer, list);

    for (size_t i = 0;
         json_object_is_type(all, json_type_array) && i < json_object_array_length(all); i++) {
        json_object *one = json_object_array_get_idx(all, i);
        const char *its = json_object_is_type(one, json_type_object) ? json_get_string(one, key)
                                                                     : NULL;

        if (its != NULL && strcmp(its, name) == 0)
            return one;
    }
    return NULL;
}

int service_look(struct service_link *link, const char *model, struct service_look *look,
                 struct error *err)
{
    json_object *answer = ask(link, request_new("shards"), "shards", err), *one, *shard;
    int64_t number = 0, ready = 0, wanted = 0;
    char name[32];

    *look = (struct service_look){0};
    if (answer == NULL)
        return -1;
    one = named(answer, "refused", "name", model);
    if (one != NULL)
        copy(look->refused, sizeof(look->refused), json_get_string(one, "why"));
    one = named(answer, "models", "name", model);
    look->known = one != NULL;
    if (one == NULL)
        return 0;
    copy(look->version, sizeof(look->version), json_get_string(one, "version"));
    copy(look->has, sizeof(look->has), json_get_string(one, "has"));
    copy(look->why, sizeof(look->why), json_get_string(one, "why"));
    look->routed = json_get_int(one, "routed", 1, INT32_MAX, &number);
    if (!look->routed && !json_get_int(one, "shard", 1, INT32_MAX, &number))
        return 0;
    snprintf(name, sizeof(name), "shard_%d", (int)number);
    shard = named(answer, "shards", "name", name);
    if (shard == NULL)
        return 0;
    json_get_int(shard, "ready", 0, INT32_MAX, &ready);
    json_get_int(shard, "replicas", 0, INT32_MAX, &wanted);
    look->ready = (int)ready;
    look->wanted = (int)wanted;
    copy(name, sizeof(name), json_get_string(shard, "update"));
    look->updating = strcmp(name, "done") != 0;
    return 0;
}

int service_flush(struct service_link *link, struct error *err)
{
    return ask(link, request_new("flush"), "done", err) != NULL ? 0 : -1;
}

/* ---- the replica that trains ----------------------------------------------------------------- */

static int scale(struct service_link *link, const char *role, int wanted, struct error *err)
{
    json_object *request = request_new("scale");

    json_object_object_add(request, "role", json_object_new_string(role));
    json_object_object_add(request, "count", json_object_new_int(wanted));
    return ask(link, request, "done", err) != NULL ? 0 : -1;
}

static void read_replicas(json_object *answer, const char *name, struct service_trainer *trainer)
{
    json_object *all = json_object_object_get(answer, "replicas");

    for (size_t i = 0;
         json_object_is_type(all, json_type_array) && i < json_object_array_length(all); i++) {
        json_object *one = json_object_array_get_idx(all, i);
        const char *role = json_get_string(one, "role"), *state = json_get_string(one, "state");

        if (role == NULL || strcmp(role, name) != 0)
            continue;
        trainer->there++;
        trainer->ready = trainer->ready || (state != NULL && strcmp(state, "ready") == 0);
    }
}

static void read_world(json_object *role, struct service_trainer *trainer)
{
    int64_t nodes = 0, status = 0;

    json_get_int(role, "ready", 0, INT32_MAX, &nodes);
    trainer->there = json_get_bool(role, "over", false) ? 0 : 1;
    trainer->ready = nodes > 0;
    trainer->ended = json_get_int(role, "ended", 0, 255, &status);
    trainer->status = (int)status;
}

int service_train(struct service_link *link, const char *name, int wanted,
                  struct service_trainer *trainer, struct error *err)
{
    json_object *answer = ask(link, request_new("roles"), "roles", err), *role;
    const char *kind;
    int64_t target = -1;

    *trainer = (struct service_trainer){0};
    if (answer == NULL)
        return -1;
    role = named(answer, "roles", "name", name);
    if (role == NULL)
        return error_set(err, "job %u has no role %s", link->job, error_value(name).text);
    json_get_int(role, "target", 0, INT32_MAX, &target);
    kind = json_get_string(role, "kind");
    if (kind != NULL && strcmp(kind, "world") == 0) {
        read_world(role, trainer);
        target = json_get_bool(role, "wanted", false) ? 1 : 0;
    } else {
        read_replicas(answer, name, trainer);
    }
    copy(trainer->why, sizeof(trainer->why), json_get_string(role, "more"));
    return target == wanted ? 0 : scale(link, name, wanted, err);
}

/* ---- the comment ----------------------------------------------------------------------------- */

int service_note(struct service_link *link, const char *service, const char *payer,
                 struct error *err)
{
    struct job_info *info = NULL;
    char *runner = user_name(geteuid()), *note = NULL;
    int rc;

    deadline_start();
    deadline_enter_slurm();
    rc = slurm_client_job(link->job, &info, err);
    if (rc == 0 && info != NULL)
        note = trainer_note(info->comment, service, payer, runner);
    if (rc == 0 && note == NULL)
        rc = error_set(err, "job %u: its comment cannot be written", link->job);
    if (rc == 0 && (info->comment == NULL || strcmp(info->comment, note) != 0))
        rc = slurm_client_set_comment(link->job, note, err);
    deadline_leave();
    job_info_free(info);
    free(note);
    free(runner);
    return rc;
}
