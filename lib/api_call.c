/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request of the HTTP interface between its client and the leader (api_call.h). */
#include "lib/api_call.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api_view.h"
#include "lib/di_call.h"
#include "lib/json_get.h"
#include "lib/metrics.h"

#define TRIES 5 /* somebody else changes the same size each time */

enum state {
    LOOK,   /* what is there */
    CHANGE, /* the change is asked for */
    AFTER,  /* what has come of it */
};

struct api_call {
    struct api_request request;
    struct di_call *di; /* of API_DI, which is asked in place of what follows */
    enum state state;
    bool unsure; /* the change has been asked for, and nobody has heard the answer */
    int tries;
    int before, wanted; /* size of the role, of a change of it */
    int start;          /* of the replica, when it was looked at */
    bool heard;         /* of a watch: a leader has answered */
};

struct api_call *api_call_create(const struct api_request *request)
{
    struct api_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        di_request_destroy(request->di);
        return NULL;
    }
    call->request = *request;
    call->request.di = NULL;
    if (request->verb == API_REPORT || api_request_orders(request))
        call->state = CHANGE; /* nothing has to be known before */
    if (request->verb != API_DI)
        return call;
    call->di = di_call_create(request->di);
    if (call->di != NULL)
        return call;
    free(call);
    return NULL;
}

void api_call_destroy(struct api_call *call)
{
    if (call != NULL)
        di_call_destroy(call->di);
    free(call);
}

bool api_call_looks(const struct api_call *call)
{
    return call->di != NULL ? di_call_looks(call->di) : call->state != CHANGE;
}

/* ---- questions ------------------------------------------------------------------------------- */

static void add_text(json_object *object, const char *key, const char *value)
{
    json_object_object_add(object, key, json_object_new_string(value));
}

/* It can be asked again: the leader knows the id. */
static json_object *report_question(const struct api_request *request)
{
    json_object *question = json_object_new_object();

    add_text(question, "t", "report");
    add_text(question, "role", request->role);
    add_text(question, "replica", request->replica);
    add_text(question, "id", request->id);
    add_text(question, "report", request->report);
    return question;
}

static json_object *reports_question(const struct api_request *request)
{
    json_object *question = json_object_new_object();

    add_text(question, "t", "reports");
    if (request->epoch >= 0)
        json_object_object_add(question, "after", json_object_new_int(request->epoch));
    return question;
}

static json_object *model_question(const struct api_request *request)
{
    json_object *question = json_object_new_object();

    add_text(question, "t",
             request->verb == API_WITHDRAW ? "withdraw"
             : request->count > 0          ? "move"
                                           : "serve");
    if (request->model[0] != '\0')
        add_text(question, "model", request->model);
    else
        add_text(question, "key", request->key);
    if (request->count > 0)
        json_object_object_add(question, "shard", json_object_new_int(request->count));
    return question;
}

static json_object *place_question(const struct api_request *request)
{
    json_object *question = json_object_new_object();

    add_text(question, "t", "place");
    json_object_object_add(question, "shard", json_object_new_int(request->count));
    json_object_object_add(question, request->keys ? "keys" : "models",
                           json_tokener_parse(request->report));
    return question;
}

static json_object *program_question(const struct api_request *request)
{
    json_object *question = json_object_new_object();

    add_text(question, "t", "apply");
    json_object_object_add(question, "run", json_tokener_parse(request->report));
    return question;
}

json_object *api_call_question(const struct api_call *call)
{
    static const char *const types[] = {
        [API_SCALE] = "scale", [API_ADD] = "scale", [API_REMOVE] = "remove", [API_FAIL] = "fail"};
    static const char *const simple[API_FIT + 1] = {
        [API_METRICS] = "metrics", [API_SERVICES] = "shards",     [API_SHARDS] = "shards",
        [API_APPLY] = "apply",     [API_FLUSH] = "flush",         [API_REPACK] = "repack",
        [API_MODELS] = "shards",   [API_HAND_OVER] = "hand-over", [API_MODEL] = "shards",
        [API_ROUTES] = "shards",   [API_ROUTE] = "shards",
    };
    const struct api_request *request = &call->request;
    json_object *question;

    if (call->di != NULL)
        return di_call_question(call->di);
    if (request->verb == API_REPORT)
        return report_question(request);
    if (request->verb == API_REPORTS)
        return reports_question(request);
    if (request->verb == API_PLACE)
        return place_question(request);
    if (request->verb == API_PROGRAM)
        return program_question(request);
    if (request->verb == API_PUT_MODEL || request->verb == API_WITHDRAW)
        return model_question(request);
    question = json_object_new_object();
    if (simple[request->verb] != NULL) {
        add_text(question, "t", simple[request->verb]);
        return question;
    }
    if (call->state != CHANGE) {
        add_text(question, "t", "roles");
        /* All roles and replicas would be much to say again and again. */
        if (request->verb == API_WATCH && request->epoch >= 0)
            json_object_object_add(question, "known", json_object_new_int(request->epoch));
        return question;
    }
    add_text(question, "t", types[request->verb]);
    if (request->verb == API_SCALE || request->verb == API_ADD) {
        add_text(question, "role", request->role);
        json_object_object_add(question, "count", json_object_new_int(call->wanted));
        role_needs_ask(question, &request->needs);
    } else {
        add_text(question, "replica", request->replica);
    }
    if (request->verb == API_FAIL)
        add_text(question, "reason", request->reason);
    else if (request->verb != API_SCALE)
        json_object_object_add(question, "expect", json_object_new_int(call->before));
    if (request->epoch >= 0)
        json_object_object_add(question, "epoch", json_object_new_int(request->epoch));
    return question;
}

/* ---- what a look shows ----------------------------------------------------------------------- */

/* What is asked about: NULL where it is not asked about, or is not there. */
struct subject {
    json_object *role, *replica;
    int epoch;
    int runs; /* replicas of the role */
};

static enum api_step done(struct api_reply *reply, int epoch)
{
    reply->epoch = epoch;
    return API_DONE;
}

/* False: the reply says what is not there. */
static bool find(const struct api_call *call, json_object *answer, struct subject *subject,
                 struct api_reply *reply)
{
    const struct api_request *request = &call->request;
    char known[400];

    *subject = (struct subject){.epoch = api_view_epoch(answer)};
    if (request->role[0] == '\0')
        return true;
    subject->role = api_view_role(answer, request->role);
    if (subject->role == NULL) {
        api_reply_set(reply, 404, NULL, "there is no role '%s'; roles are %s",
                      error_value(request->role).text,
                      api_view_names(answer, known, sizeof(known)));
        return false;
    }
    subject->runs = api_view_running(answer, request->role);
    if (request->replica[0] == '\0')
        return true;
    subject->replica = api_view_replica(answer, request->role, request->replica);
    if (subject->replica == NULL && !(call->unsure || call->state == AFTER)) {
        api_reply_set(reply, 404, NULL, "role %s has no replica '%s'", request->role,
                      error_value(request->replica).text);
        return false;
    }
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum api_step watch(struct api_call *call, json_object *answer, const struct subject *is,
                           struct api_reply *reply)
{
    call->heard = true;
    if (call->request.epoch == is->epoch)
        return API_PAUSE;
    api_reply_set(reply, 200, api_view_all(answer), "epoch %d", is->epoch);
    return done(reply, is->epoch);
}

static enum api_step endpoints(const struct api_call *call, json_object *answer,
                               const struct subject *is, struct api_reply *reply)
{
    const char *role = call->request.role[0] != '\0' ? call->request.role : NULL;
    struct error err;
    int count;
    json_object *data = api_view_endpoints(answer, role, &count, &err);

    if (data == NULL) {
        api_reply_set(reply, 502, NULL, "%s", err.text);
        return API_DONE;
    }
    api_reply_set(reply, 200, data, "%d endpoint%s", count, count == 1 ? "" : "s");
    return done(reply, is->epoch);
}

static enum api_step read_answer(struct api_call *call, json_object *answer,
                                 const struct subject *is, struct api_reply *reply)
{
    const struct api_request *request = &call->request;

    switch (request->verb) {
    case API_WATCH:
        return watch(call, answer, is, reply);
    case API_ENDPOINTS:
        return endpoints(call, answer, is, reply);
    case API_ROLE:
        api_reply_set(reply, 200, json_object_get(is->role), "%s", api_view_text(is->role, "size"));
        break;
    case API_REPLICA:
        api_reply_set(reply, 200, json_object_get(is->replica), "%s is %s", request->replica,
                      api_view_text(is->replica, "state"));
        break;
    case API_REPLICAS:
        api_reply_set(reply, 200, api_view_replicas(answer, request->role), "%s",
                      api_view_text(is->role, "size"));
        break;
    default:
        api_reply_set(reply, 200, api_view_roles(answer), "epoch %d", is->epoch);
    }
    return done(reply, is->epoch);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* What the role has been changed to, and what of it waits. */
static void say_size(const struct api_call *call, const struct subject *is, struct api_reply *reply)
{
    const char *role = call->request.role;
    int more = call->wanted - call->before, missing = call->wanted - is->runs;
    int waits = missing < more ? missing : more;
    char what[200];

    snprintf(what, sizeof(what), "%s: %d replica%s (was %d)", role, call->wanted,
             call->wanted == 1 ? "" : "s", call->before);
    if (more == 0)
        api_reply_set(reply, 200, json_object_get(is->role), "%s: %d replica%s, as before", role,
                      call->wanted, call->wanted == 1 ? "" : "s");
    else if (more < 0)
        api_reply_set(reply, 200, json_object_get(is->role), "%s", what);
    else if (waits <= 0)
        api_reply_set(reply, 200, json_object_get(is->role), "%s: %d asked for, %d started", what,
                      more, more);
    else
        api_reply_set(reply, 200, json_object_get(is->role),
                      "%s: %d asked for, %d started, %d wait%s: %s", what, more, more - waits,
                      waits, waits == 1 ? "s" : "", api_view_text(is->role, "more"));
}

static enum api_step changed(struct api_call *call, const struct subject *is,
                             struct api_reply *reply)
{
    const struct api_request *request = &call->request;

    if (request->verb == API_FAIL)
        api_reply_set(reply, 200, json_object_get(is->replica), "%s is replaced", request->replica);
    else if (request->verb == API_REMOVE)
        api_reply_set(reply, 200, json_object_get(is->role), "%s goes; %s: %d replica%s (was %d)",
                      request->replica, request->role, call->wanted, call->wanted == 1 ? "" : "s",
                      call->before);
    else
        say_size(call, is, reply);
    return done(reply, is->epoch);
}

/* The change has been asked for, and its answer was lost. Has it been made? */
static bool was_made(const struct api_call *call, const struct subject *is)
{
    if (call->request.verb == API_FAIL)
        return is->replica == NULL || api_view_number(is->replica, "start") != call->start;
    return api_view_number(is->role, "target") == call->wanted;
}

static enum api_step conflict(struct api_reply *reply, const struct api_call *call, int now)
{
    api_reply_set(reply, 409, NULL,
                  "%s: somebody else changes its size, which is %d now; look, and try again",
                  call->request.role, now);
    return API_DONE;
}

static enum api_step look(struct api_call *call, const struct subject *is, struct api_reply *reply)
{
    const struct api_request *request = &call->request;
    int target = api_view_number(is->role, "target");

    if (call->unsure && was_made(call, is))
        return changed(call, is, reply);
    if (call->unsure && request->verb != API_FAIL && request->verb != API_SCALE &&
        target != call->before)
        return conflict(reply, call, target);
    if (request->epoch >= 0 && request->epoch != is->epoch) {
        api_reply_set(reply, 412, NULL, "the epoch is %d, not %d", is->epoch, request->epoch);
        return done(reply, is->epoch);
    }
    call->before = target;
    call->wanted = request->verb == API_SCALE    ? request->count
                   : request->verb == API_ADD    ? target + request->count
                   : request->verb == API_REMOVE ? target - 1
                                                 : target;
    call->start = api_view_number(is->replica, "start");
    call->unsure = false;
    call->state = CHANGE;
    return API_ASK;
}

/* The leader's refusal of a change. */
static enum api_step refused(struct api_call *call, json_object *answer, struct api_reply *reply)
{
    static const struct {
        const char *code;
        int status;
    } codes[] = {{"unknown", 404}, {"denied", 403}, {"epoch", 412}, {"limits", 409},
                 {"state", 409},   {"bad", 400},    {"busy", 503}};
    const char *code = json_get_string(answer, "code"),
               *message = json_get_string(answer, "message");
    int status = 500;

    if (code != NULL && strcmp(code, "changed") == 0) {
        if (++call->tries >= TRIES)
            return conflict(reply, call, call->before);
        call->state = LOOK;
        return API_ASK;
    }
    for (size_t i = 0; code != NULL && i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(code, codes[i].code) == 0)
            status = codes[i].status;
    api_reply_set(reply, status, NULL, "%s", message != NULL ? message : "the leader refuses");
    return API_DONE;
}

/* ---- reports --------------------------------------------------------------------------------- */

static enum api_step wrong_answer(struct api_reply *reply, const char *type)
{
    api_reply_set(reply, 502, NULL, "the leader has given an answer of another kind: '%s'",
                  error_value(type).text);
    return API_DONE;
}

static enum api_step reported(json_object *answer, const char *type, struct api_reply *reply)
{
    json_object *data;
    int number = api_view_number(answer, "number");

    if (type == NULL || strcmp(type, "done") != 0 || number < 1)
        return wrong_answer(reply, type);
    data = json_object_new_object();
    json_object_object_add(data, "number", json_object_new_int(number));
    api_reply_set(reply, 200, data, "report %d", number);
    return API_DONE;
}

static enum api_step show_reports(struct api_call *call, json_object *answer, const char *type,
                                  struct api_reply *reply)
{
    int count, missed = api_view_number(answer, "missed");
    json_object *data;

    if (type == NULL || strcmp(type, "reports") != 0)
        return wrong_answer(reply, type);
    call->heard = true;
    data = api_view_reports(answer, &count);
    if (count == 0 && call->request.epoch >= 0) {
        json_object_put(data);
        return API_PAUSE;
    }
    if (missed > 0)
        api_reply_set(reply, 200, data, "%d report%s; %d before them %s kept no more", count,
                      count == 1 ? "" : "s", missed, missed == 1 ? "is" : "are");
    else
        api_reply_set(reply, 200, data, "%d report%s", count, count == 1 ? "" : "s");
    return API_DONE;
}

/* ---- metrics --------------------------------------------------------------------------------- */

static enum api_step show_metrics(const struct api_call *call, json_object *answer,
                                  const char *type, struct api_reply *reply)
{
    struct metrics_job job = {.answer = answer};
    struct metrics_writer writer = {.format = call->request.format};
    char *text = NULL;
    size_t size;
    int64_t id;

    if (type == NULL || strcmp(type, "metrics") != 0 ||
        !json_get_int(answer, "job", 1, UINT32_MAX, &id))
        return wrong_answer(reply, type);
    job.id = (uint32_t)id;
    writer.out = open_memstream(&text, &size);
    if (writer.out != NULL)
        metrics_jobs(&writer, &job, 1);
    if (writer.out == NULL || fclose(writer.out) != 0) {
        free(text);
        api_reply_set(reply, 500, NULL, "out of memory");
        return API_DONE;
    }
    *reply = (struct api_reply){.status = 200, .text = text, .format = writer.format, .epoch = -1};
    return API_DONE;
}

/* ---- a service ------------------------------------------------------------------------------- */

static bool is_of_service(const struct api_request *request)
{
    return api_request_orders(request) || request->verb == API_SERVICES ||
           request->verb == API_SHARDS || request->verb == API_MODELS ||
           request->verb == API_MODEL || request->verb == API_ROUTES || request->verb == API_ROUTE;
}

static enum api_step show_model(const struct api_request *request, json_object *answer,
                                struct api_reply *reply)
{
    bool by_key = request->verb == API_ROUTE;
    const char *name = by_key ? request->key : request->model;
    json_object *model = api_view_model(answer, by_key ? "key" : "name", name);

    if (model == NULL)
        api_reply_set(reply, 404, NULL, "service %s has no model with the %s '%s'",
                      api_view_text(answer, "service"), by_key ? "key" : "name",
                      error_value(name).text);
    else
        api_reply_set(reply, 200, by_key ? api_view_route(model) : json_object_get(model),
                      "service %s, epoch %d", api_view_text(answer, "service"),
                      api_view_epoch(answer));
    return API_DONE;
}

static json_object *view_service(enum api_verb verb, json_object *answer)
{
    switch (verb) {
    case API_SERVICES:
        return api_view_services(answer);
    case API_MODELS:
        return api_view_models(answer);
    case API_ROUTES:
        return api_view_routes(answer);
    default:
        return api_view_shards(answer);
    }
}

static enum api_step show_service(const struct api_call *call, json_object *answer,
                                  const char *type, struct api_reply *reply)
{
    const struct api_request *request = &call->request;
    bool order = api_request_orders(request);

    if (type == NULL || strcmp(type, order ? "done" : "shards") != 0)
        return wrong_answer(reply, type);
    if (request->verb == API_MODEL || request->verb == API_ROUTE)
        return show_model(request, answer, reply);
    if (order)
        api_reply_set(reply, 200, NULL, "%s", api_view_text(answer, "message"));
    else
        api_reply_set(reply, 200, view_service(request->verb, answer), "service %s, epoch %d",
                      api_view_text(answer, "service"), api_view_epoch(answer));
    return API_DONE;
}

/* ---- all answers ----------------------------------------------------------------------------- */

enum api_step api_call_answered(struct api_call *call, json_object *answer, struct api_reply *reply)
{
    const char *type = json_get_string(answer, "t");
    struct subject subject;

    if (call->di != NULL)
        return di_call_answered(call->di, answer, reply);
    if (type != NULL && strcmp(type, "error") == 0)
        return refused(call, answer, reply);
    if (call->request.verb == API_REPORT)
        return reported(answer, type, reply);
    if (call->request.verb == API_REPORTS)
        return show_reports(call, answer, type, reply);
    if (call->request.verb == API_METRICS)
        return show_metrics(call, answer, type, reply);
    if (is_of_service(&call->request))
        return show_service(call, answer, type, reply);
    if (call->state == CHANGE && type != NULL && strcmp(type, "done") == 0) {
        call->state = AFTER;
        return API_ASK;
    }
    if (call->state == CHANGE || type == NULL || strcmp(type, "roles") != 0)
        return wrong_answer(reply, type);
    if (!find(call, answer, &subject, reply))
        return API_DONE;
    if (!api_request_changes(&call->request))
        return read_answer(call, answer, &subject, reply);
    return call->state == AFTER ? changed(call, &subject, reply) : look(call, &subject, reply);
}

void api_call_lost(struct api_call *call)
{
    if (call->di != NULL)
        di_call_lost(call->di);
    if (call->state != CHANGE)
        return;
    call->unsure = true;
    if (call->request.verb != API_REPORT && !api_request_orders(&call->request))
        call->state = LOOK;
}

void api_call_late(struct api_call *call, struct api_reply *reply)
{
    if (call->di != NULL)
        di_call_late(call->di, reply);
    else if (call->heard)
        api_reply_set(reply, 200, NULL, "%s",
                      call->request.verb == API_WATCH ? "nothing has changed" : "no reports");
    else if (call->state == AFTER)
        api_reply_set(reply, 200, NULL,
                      "the change has been made; no leader says what has come of it");
    else if (call->request.verb == API_REPORT)
        api_reply_set(reply, 503, NULL, "no leader answers: the report may be kept, or not");
    else if (call->state == CHANGE || call->unsure)
        api_reply_set(reply, 503, NULL,
                      "the leader has been asked, and has not answered: look whether it is done");
    else
        api_reply_set(reply, 503, NULL, "no leader of the job answers");
    if (call->heard && call->request.verb == API_WATCH)
        reply->epoch = call->request.epoch;
}
