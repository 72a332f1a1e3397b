/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request of a client of DI-orchestrator v1alpha1 (di_call.h).
 *
 * A request may be several changes: two sizes, or some failed replicas. Each is made once, whatever
 * becomes of leaders meanwhile. */
#include "lib/di_call.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api_view.h"
#include "lib/di_view.h"
#include "lib/json_get.h"
#include "lib/roles.h"
#include "lib/text.h"

#define TRIES 5 /* somebody else changes the same size each time */
#define MIB   1048576.0
#define MOST  1e12 /* more than the leader takes */

static const char coordinator[] = "coordinator", aggregator[] = "aggregator";
static const char *const roles[DI_KINDS] = {"collector", "learner"};

/* A change that the leader is asked for. */
struct change {
    const char *name;        /* of the role, of FAIL of the replica */
    int count;               /* of ADD and REMOVE: so many more or fewer */
    int before, wanted;      /* sizes of the role */
    struct role_needs needs; /* of those that are more */
    int start;               /* of the replica, when it was looked at */
};

enum state {
    LOOK,   /* what is there */
    CHANGE, /* changes[next] is asked for */
    AFTER,  /* what has come of it */
};

struct di_call {
    struct di_request *request;
    enum state state;
    struct change *changes; /* NULL: not yet known */
    int count, next;
    bool unsure; /* changes[next] has been asked for, and nobody has heard the answer */
    int tries;
    char refusal[300]; /* of the failure of changes[next] */
    char note[300];    /* what the success does not do; "": nothing */
};

struct di_call *di_call_create(struct di_request *request)
{
    struct di_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        di_request_destroy(request);
        return NULL;
    }
    call->request = request;
    return call;
}

void di_call_destroy(struct di_call *call)
{
    if (call == NULL)
        return;
    di_request_destroy(call->request);
    free(call->changes);
    free(call);
}

bool di_call_looks(const struct di_call *call)
{
    return call->state != CHANGE;
}

json_object *di_call_question(const struct di_call *call)
{
    json_object *question = json_object_new_object();
    const struct change *change;

    if (call->state != CHANGE) {
        json_object_object_add(question, "t", json_object_new_string("roles"));
        return question;
    }
    change = &call->changes[call->next];
    if (call->request->verb == DI_FAIL) {
        json_object_object_add(question, "t", json_object_new_string("fail"));
        json_object_object_add(question, "replica", json_object_new_string(change->name));
        json_object_object_add(question, "reason",
                               json_object_new_string("its coordinator says that it has failed"));
        return question;
    }
    json_object_object_add(question, "t", json_object_new_string("scale"));
    json_object_object_add(question, "role", json_object_new_string(change->name));
    json_object_object_add(question, "count", json_object_new_int(change->wanted));
    json_object_object_add(question, "expect", json_object_new_int(change->before));
    role_needs_ask(question, &change->needs);
    return question;
}

/* ---- replies --------------------------------------------------------------------------------- */

static enum api_step refuse(struct api_reply *reply, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As the others, but for its code. */
static enum api_step refuse(struct api_reply *reply, int status, const char *fmt, ...)
{
    char text[900];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    api_reply_set(reply, status, NULL, "%s", text);
    json_object_object_add(reply->body, "code", json_object_new_int(1));
    return API_DONE;
}

static enum api_step succeed(const struct di_call *call, json_object *data, int epoch,
                             struct api_reply *reply)
{
    static const char *const verbs[] = {
        [DI_LIST] = "get", [DI_ADD] = "create", [DI_REMOVE] = "delete", [DI_FAIL] = "recreate"};

    api_reply_set(reply, 200, data, "successfully %s replicas%s%s", verbs[call->request->verb],
                  call->note[0] != '\0' ? ": " : "", call->note);
    reply->epoch = epoch;
    return API_DONE;
}

static void note(struct di_call *call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct di_call *call, const char *fmt, ...)
{
    char text[160];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text_append(call->note, sizeof(call->note), "%s%s", call->note[0] != '\0' ? "; " : "", text);
}

/* ---- what a look shows ----------------------------------------------------------------------- */

/* The replicas of the job as its coordinator, or one of its aggregators, sees them. NULL with
 * reply. */
static json_object *list_all(json_object *answer, const char *namespace, const char *name,
                             struct api_reply *reply)
{
    struct error err;
    json_object *list = di_view_list(answer, namespace, name, &err);

    if (list == NULL)
        refuse(reply, 500, "%s", err.text);
    return list;
}

/* Without a coordinator: an array of what each of them sees. */
static enum api_step list_coordinators(const struct di_call *call, json_object *answer,
                                       const char *job, struct api_reply *reply)
{
    json_object *all = json_object_new_array(),
                *replicas = json_object_object_get(answer, "replicas");
    const char *namespace = call->request->namespace;
    size_t count = json_object_is_type(replicas, json_type_array)
                       ? json_object_array_length(replicas)
                       : 0;

    for (size_t i = 0; i < count && (namespace[0] == '\0' || strcmp(namespace, job) == 0); i++) {
        json_object *one = json_object_array_get_idx(replicas, i), *list;

        if (strcmp(api_view_text(one, "role"), coordinator) != 0)
            continue;
        list = list_all(answer, job, api_view_text(one, "name"), reply);
        if (list == NULL) {
            json_object_put(all);
            return API_DONE;
        }
        json_object_array_add(all, list);
    }
    return succeed(call, all, api_view_epoch(answer), reply);
}

/* An aggregator says as a coordinator which of its learners have failed. */
static bool is_here(const struct di_call *call, json_object *answer, const char *job)
{
    const struct di_request *request = call->request;

    return strcmp(request->namespace, job) == 0 &&
           (api_view_replica(answer, coordinator, request->coordinator) != NULL ||
            (request->verb == DI_FAIL &&
             api_view_replica(answer, aggregator, request->coordinator) != NULL));
}

static enum api_step no_coordinator(const struct di_call *call, struct api_reply *reply)
{
    return refuse(reply, 404, "there is no coordinator '%s' in namespace '%s'",
                  error_value(call->request->coordinator).text,
                  error_value(call->request->namespace).text);
}

static enum api_step show(const struct di_call *call, json_object *answer, const char *job,
                          struct api_reply *reply)
{
    const struct di_request *request = call->request;
    const char *name;
    json_object *list;

    /* The namespace has to be named with a name in it. */
    if (request->namespace[0] != '\0' && request->name[0] != '\0')
        return succeed(call, NULL, api_view_epoch(answer), reply);
    name = request->coordinator[0] != '\0' ? request->coordinator : request->aggregator;
    if (request->namespace[0] == '\0' || name[0] == '\0')
        return list_coordinators(call, answer, job, reply);
    if (name == request->aggregator && (strcmp(request->namespace, job) != 0 ||
                                        api_view_replica(answer, aggregator, name) == NULL))
        return refuse(reply, 404, "there is no aggregator '%s' in namespace '%s'",
                      error_value(name).text, error_value(request->namespace).text);
    if (name == request->coordinator && !is_here(call, answer, job))
        return no_coordinator(call, reply);
    list = list_all(answer, job, name, reply);
    return list != NULL ? succeed(call, list, api_view_epoch(answer), reply) : API_DONE;
}

/* ---- what is to be changed ------------------------------------------------------------------- */

/* What each of so many tasks needs, in whole numbers. 0: nothing is said. */
static int64_t share(struct di_call *call, enum di_kind kind, const char *what, double said,
                     int tasks)
{
    double each = ceil(said / tasks - 1e-9);

    if (said <= 0)
        return -1;
    if (each > MOST)
        each = MOST;
    if (fabs(each * tasks - said) > 1e-6)
        note(call, "%s of a %s: %g, not %g", what, roles[kind], each * tasks, said);
    return (int64_t)each;
}

/* Learners with more than one GPU are gangs with an aggregator. */
static bool is_pair(const struct di_call *call, enum di_kind kind)
{
    return kind == DI_LEARNERS && call->request->verb == DI_ADD &&
           call->request->sizes[kind].gpus > 1;
}

/* -1 with reply: they cannot be. */
static int check_pair(const struct di_call *call, json_object *answer, enum di_kind kind,
                      struct api_reply *reply)
{
    double gpus = call->request->sizes[kind].gpus;

    if (!is_pair(call, kind))
        return 0;
    if (gpus > ROLES_TASKS_MAX)
        refuse(reply, 409, "%g GPUs of a learner: up to %d are allowed", gpus, ROLES_TASKS_MAX);
    else if (api_view_role(answer, aggregator) == NULL)
        refuse(reply, 409,
               "a learner with more than one GPU needs a role 'aggregator', of the job file or of "
               "the site's template");
    else
        return 0;
    return -1;
}

/* What the new replicas of a role need. */
static void set_needs(struct di_call *call, struct change *change, json_object *answer,
                      enum di_kind kind)
{
    const struct di_size *said = &call->request->sizes[kind];
    int tasks = api_view_number(api_view_role(answer, change->name), "tasks");

    if (is_pair(call, kind)) {
        tasks = (int)ceil(said->gpus);
        change->needs.processes = tasks;
    } else {
        if (tasks < 1)
            tasks = 1;
        change->needs.gpus = share(call, kind, "gpus", said->gpus, tasks);
    }
    change->needs.cpus = share(call, kind, "cpus", said->cpus, tasks);
    change->needs.memory = share(call, kind, "MiB of memory", said->memory / MIB, tasks);
}

/* The size that a role is to have. -1 with reply: it cannot. */
static int set_wanted(const struct di_call *call, struct change *change, json_object *answer,
                      struct api_reply *reply)
{
    json_object *role = api_view_role(answer, change->name);
    int min = api_view_number(role, "min"), max = api_view_number(role, "max");
    int owned = api_view_number(role, "owned"), plain;

    if (role == NULL) {
        refuse(reply, 404, "the job file has no role '%s'", change->name);
        return -1;
    }
    change->before = api_view_number(role, "target");
    if (call->request->verb == DI_REMOVE) {
        /* Aggregators go only if there is nobody else. */
        plain = change->before - owned;
        if (owned > 0 && plain > 0 && change->count > plain)
            change->count = plain;
        change->wanted = change->before > min + change->count ? change->before - change->count
                         : change->before > min               ? min
                                                              : change->before;
        return 0;
    }
    change->wanted = change->before + change->count;
    if (change->wanted <= max)
        return 0;
    refuse(reply, 409, "%d replicas of %s: allowed are %d to %d", change->wanted, change->name, min,
           max);
    return -1;
}

static int plan_sizes(struct di_call *call, json_object *answer, struct api_reply *reply)
{
    const struct di_request *request = call->request;
    int asked = 0, removed = 0;

    for (int i = 0; i < DI_KINDS; i++) {
        struct change *change = &call->changes[call->count];

        if (request->replicas[i] == 0)
            continue;
        *change = (struct change){
            .name = roles[i], .count = request->replicas[i], .needs = ROLE_NEEDS_NONE};
        if (check_pair(call, answer, i, reply) != 0 || set_wanted(call, change, answer, reply) != 0)
            return -1;
        asked += change->count;
        removed += change->before - change->wanted;
        if (request->verb == DI_ADD)
            set_needs(call, change, answer, i);
        else if (change->count < request->replicas[i])
            note(call, "%d of %d, as aggregators go last", change->before - change->wanted,
                 request->replicas[i]);
        else if (change->before - change->wanted < change->count)
            note(call, "%d of %d, as %d of %s are guaranteed", change->before - change->wanted,
                 change->count, api_view_number(api_view_role(answer, roles[i]), "min"), roles[i]);
        if (change->wanted != change->before)
            call->count++;
    }
    if (request->verb == DI_ADD || asked == 0 || removed > 0)
        return 0;
    refuse(reply, 409, "no replica can be deleted: %s", call->note);
    return -1;
}

/* The replica of that name; NULL: there is none, or it is of another role. */
static json_object *find(json_object *answer, const char *name)
{
    json_object *replica = NULL;

    for (int i = 0; i < DI_KINDS && replica == NULL; i++)
        replica = api_view_replica(answer, roles[i], name);
    return replica != NULL ? replica : api_view_replica(answer, aggregator, name);
}

static bool runs(json_object *replica)
{
    const char *state = api_view_text(replica, "state");

    return strcmp(state, "ready") == 0 || strcmp(state, "starting") == 0;
}

static bool is_planned(const struct di_call *call, const char *name)
{
    for (int i = 0; i < call->count; i++)
        if (strcmp(call->changes[i].name, name) == 0)
            return true;
    return false;
}

static int plan_failures(struct di_call *call, json_object *answer, struct api_reply *reply)
{
    char **names = call->request->names;

    for (int i = 0; names != NULL && names[i] != NULL; i++) {
        json_object *replica;

        names[i][strcspn(names[i], ".")] = '\0'; /* a task of it */
        replica = find(answer, names[i]);

        if (replica == NULL) {
            refuse(reply, 404, "there is no collector or learner '%s'", error_value(names[i]).text);
            return -1;
        }
        /* One that does not run is being replaced already, or goes. */
        if (runs(replica) && !is_planned(call, names[i]))
            call->changes[call->count++] = (struct change){
                .name = names[i], .start = api_view_number(replica, "start")};
    }
    return 0;
}

/* What is to be done, once nothing speaks against it. */
static int plan(struct di_call *call, json_object *answer, struct api_reply *reply)
{
    size_t most = call->request->verb != DI_FAIL ? DI_KINDS
                  : call->request->names == NULL ? 0
                                                 : strings_count(call->request->names);
    int rc;

    call->note[0] = '\0';
    call->changes = calloc(most + 1, sizeof(*call->changes));
    if (call->changes == NULL) {
        refuse(reply, 500, "out of memory");
        return -1;
    }
    rc = call->request->verb == DI_FAIL ? plan_failures(call, answer, reply)
                                        : plan_sizes(call, answer, reply);
    return rc;
}

/* ---- changes --------------------------------------------------------------------------------- */

static bool is_replaced(const struct change *change, json_object *answer)
{
    json_object *replica = find(answer, change->name);

    return replica == NULL || !runs(replica) || api_view_number(replica, "start") != change->start;
}

/* A look in the middle of changes: has changes[next], of which something is not known, been made?
 * If not, it is asked for anew. */
static enum api_step resume(struct di_call *call, json_object *answer, struct api_reply *reply)
{
    struct change *change = &call->changes[call->next];
    int target = api_view_number(api_view_role(answer, change->name), "target");

    if (call->request->verb == DI_FAIL) {
        if (is_replaced(change, answer))
            call->next++;
        else if (call->refusal[0] != '\0')
            return refuse(reply, 409, "%s", call->refusal);
    } else if (call->unsure && target == change->wanted) {
        call->next++;
    } else if (call->unsure && target != change->before) {
        return refuse(reply, 409, "%s: somebody else changes its size, which is %d now",
                      change->name, target);
    } else if (set_wanted(call, change, answer, reply) != 0) {
        return API_DONE;
    } else if (change->wanted == change->before) {
        call->next++;
    }
    call->unsure = false;
    call->refusal[0] = '\0';
    call->state = call->next < call->count ? CHANGE : AFTER;
    return API_ASK;
}

static enum api_step look(struct di_call *call, json_object *answer, const char *job,
                          struct api_reply *reply)
{
    json_object *list;

    if (call->changes != NULL && call->state == LOOK)
        return resume(call, answer, reply);
    if (!is_here(call, answer, job))
        return call->state == AFTER ? succeed(call, NULL, api_view_epoch(answer), reply)
                                    : no_coordinator(call, reply);
    if (call->changes == NULL) {
        if (plan(call, answer, reply) != 0)
            return API_DONE;
        call->state = call->count > 0 ? CHANGE : AFTER;
        if (call->count > 0)
            return API_ASK;
    }
    list = list_all(answer, job, call->request->coordinator, reply);
    return list != NULL ? succeed(call, list, api_view_epoch(answer), reply) : API_DONE;
}

static const char *message_of(json_object *answer)
{
    const char *message = api_view_text(answer, "message");

    return message[0] != '\0' ? message : "the leader refuses";
}

/* The leader's refusal of changes[next]. */
static enum api_step refused(struct di_call *call, json_object *answer, struct api_reply *reply)
{
    static const struct {
        const char *code;
        int status;
    } codes[] = {{"unknown", 404}, {"limits", 409}, {"state", 409}};
    const char *code = api_view_text(answer, "code"), *message = message_of(answer);

    if (strcmp(code, "changed") == 0) {
        if (++call->tries >= TRIES)
            return refuse(reply, 409, "%s: somebody else changes its size",
                          call->changes[call->next].name);
        call->state = LOOK;
        return API_ASK;
    }
    /* Has it ended in the meantime? */
    if (call->request->verb == DI_FAIL) {
        snprintf(call->refusal, sizeof(call->refusal), "%s", message);
        call->state = LOOK;
        return API_ASK;
    }
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(code, codes[i].code) == 0)
            return refuse(reply, codes[i].status, "%s", message);
    return refuse(reply, 500, "%s", message);
}

/* ---- all answers ----------------------------------------------------------------------------- */

enum api_step di_call_answered(struct di_call *call, json_object *answer, struct api_reply *reply)
{
    const struct di_request *request = call->request;
    const char *type = api_view_text(answer, "t");
    char job[24];

    if (call->state == CHANGE) {
        if (strcmp(type, "error") == 0)
            return refused(call, answer, reply);
        if (strcmp(type, "done") != 0)
            return refuse(reply, 500, "the leader has given an answer of another kind: '%s'",
                          error_value(type).text);
        call->next++;
        call->state = call->next < call->count ? CHANGE : AFTER;
        return API_ASK;
    }
    if (strcmp(type, "error") == 0)
        return refuse(reply, 500, "%s", message_of(answer));
    if (strcmp(type, "roles") != 0)
        return refuse(reply, 500, "the leader has given an answer of another kind: '%s'",
                      error_value(type).text);
    if (json_object_object_get(answer, "di_engine") == NULL) {
        api_reply_set(reply, 404, NULL, "there is no '%s'", request->path);
        return API_DONE;
    }
    if (request->verb == DI_REFUSED)
        return refuse(reply, request->status, "%s", request->message);
    /* A new leader may not know yet what runs on other nodes. */
    if (!json_get_bool(json_object_object_get(answer, "di_engine"), "settled", false))
        return API_PAUSE;
    snprintf(job, sizeof(job), "%d", api_view_number(answer, "job"));
    return request->verb == DI_LIST ? show(call, answer, job, reply)
                                    : look(call, answer, job, reply);
}

void di_call_lost(struct di_call *call)
{
    if (call->state == CHANGE) {
        call->state = LOOK;
        call->unsure = true;
    }
}

void di_call_late(const struct di_call *call, struct api_reply *reply)
{
    if (call->state == AFTER)
        succeed(call, NULL, -1, reply);
    else if (call->changes != NULL)
        refuse(reply, 503, "the leader has been asked, and has not answered");
    else
        refuse(reply, 503, "no leader of the job answers");
}
