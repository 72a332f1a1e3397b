/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The status machine of a fit (fit.h). */
#include "lib/fit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "lib/json_get.h"
#include "lib/json_text.h"

#define SINGLE (1U << FIT_SINGLE)
#define MULTI  (1U << FIT_MULTI)
#define BOTH   (SINGLE | MULTI)

/* ---- the tables ------------------------------------------------------------------------------ */

enum limit { LIMIT_INITIAL, LIMIT_START, LIMIT_FIT, LIMIT_TARGET };

/* What a fit does, in this order; rows of the other mode are left out. A row is over when its
 * action is done. Rows with the same limit have one deadline together. */
static const struct step {
    unsigned modes;
    enum fit_status status;
    enum fit_action action;
    enum limit limit;
} path[] = {
    {BOTH, FIT_INITIAL, FIT_DO_PREPARE, LIMIT_INITIAL},
    {SINGLE, FIT_WAIT_FOR_START, FIT_DO_DEDICATE, LIMIT_START},
    {SINGLE, FIT_WAIT_FOR_START, FIT_DO_STAGE, LIMIT_START},
    {MULTI, FIT_WAIT_FOR_TRAINING_CONTAINER, FIT_DO_ENSURE, LIMIT_START},
    {MULTI, FIT_WAIT_FOR_TRAINING_CONTAINER, FIT_DO_STAGE, LIMIT_START},
    {MULTI, FIT_WAIT_FOR_TRAINING_CONTAINER, FIT_DO_GRANT, LIMIT_START},
    {BOTH, FIT_WAIT_FOR_FIT, FIT_DO_FIT, LIMIT_FIT},
    {BOTH, FIT_WAIT_FOR_FIT, FIT_DO_COMPLETE, LIMIT_FIT},
    {SINGLE, FIT_WAIT_FOR_FIT, FIT_DO_END_REPLICA, LIMIT_TARGET},
    {SINGLE, FIT_WAIT_FOR_FIT, FIT_DO_COUNT, LIMIT_TARGET},
    {SINGLE, FIT_WAIT_FOR_FIT, FIT_DO_POINT, LIMIT_TARGET},
    {SINGLE, FIT_WAIT_FOR_FIT, FIT_DO_REPLACE, LIMIT_TARGET},
    {MULTI, FIT_WAIT_FOR_TARGET_CONTAINER, FIT_DO_COUNT, LIMIT_TARGET},
    {MULTI, FIT_WAIT_FOR_TARGET_CONTAINER, FIT_DO_POINT, LIMIT_TARGET},
    {MULTI, FIT_WAIT_FOR_TARGET_CONTAINER, FIT_DO_REPLACE, LIMIT_TARGET},
};
#define STEPS ((int)(sizeof(path) / sizeof(*path)))

#define FIELD(name) offsetof(struct fit, name)

/* What there may be as soon as an action begins. */
static const struct {
    enum fit_action action;
    size_t field;
} makes[] = {
    {FIT_DO_PREPARE, FIELD(partial)},  {FIT_DO_DEDICATE, FIELD(dedicated)},
    {FIT_DO_GRANT, FIELD(granted)},    {FIT_DO_POINT, FIELD(pointed)},
    {FIT_DO_REPLACE, FIELD(replaced)},
};

/* What there is not any more when an action is done. The new state lies where it will stay; with
 * the last replica the new one counts. */
static const struct {
    enum fit_action action;
    size_t field;
} ends[] = {
    {FIT_DO_END_REPLICA, FIELD(dedicated)},
    {FIT_DO_POINT, FIELD(partial)},
    {FIT_DO_REPLACE, FIELD(pointed)},
    {FIT_DO_REPLACE, FIELD(replaced)},
};

/* The clean-up: an action for all that may be there, in this order. First nobody else has access;
 * then those who ask get answers. They do not wait for access that cannot be taken back. */
static const struct {
    enum fit_action action;
    size_t field;
} cleanup[] = {
    {FIT_DO_REVOKE, FIELD(granted)},        {FIT_DO_POINT_BACK, FIELD(pointed)},
    {FIT_DO_RESTORE, FIELD(replaced)},      {FIT_DO_DISCARD, FIELD(partial)},
    {FIT_DO_END_REPLICA, FIELD(dedicated)},
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const status_names[FIT_STATUSES] = {
    [FIT_INITIAL] = "INITIAL",
    [FIT_WAIT_FOR_START] = "WAIT_FOR_START",
    [FIT_WAIT_FOR_TRAINING_CONTAINER] = "WAIT_FOR_TRAINING_CONTAINER",
    [FIT_WAIT_FOR_FIT] = "WAIT_FOR_FIT",
    [FIT_WAIT_FOR_TARGET_CONTAINER] = "WAIT_FOR_TARGET_CONTAINER",
    [FIT_SUCCESS] = "SUCCESS",
    [FIT_FAILED] = "FAILED",
    [FIT_CANCELLED] = "CANCELLED",
};

static const char *const action_names[FIT_ACTIONS] = {
    [FIT_DO_NOTHING] = "nothing",
    [FIT_DO_PREPARE] = "prepare",
    [FIT_DO_DEDICATE] = "dedicate",
    [FIT_DO_ENSURE] = "ensure",
    [FIT_DO_STAGE] = "stage",
    [FIT_DO_GRANT] = "grant",
    [FIT_DO_FIT] = "fit",
    [FIT_DO_COMPLETE] = "complete",
    [FIT_DO_COUNT] = "count",
    [FIT_DO_POINT] = "point",
    [FIT_DO_REPLACE] = "replace",
    [FIT_DO_REVOKE] = "revoke",
    [FIT_DO_POINT_BACK] = "point-back",
    [FIT_DO_RESTORE] = "restore",
    [FIT_DO_DISCARD] = "discard",
    [FIT_DO_END_REPLICA] = "end-replica",
};

static bool *field_of(struct fit *fit, size_t offset)
{
    return (bool *)((char *)fit + offset);
}

/* ---- the way --------------------------------------------------------------------------------- */

static double limit_of(const struct fit *fit, enum limit limit)
{
    const double limits[] = {[LIMIT_INITIAL] = FIT_INITIAL_LIMIT,
                             [LIMIT_START] = fit->limits.start,
                             [LIMIT_FIT] = fit->limits.fit,
                             [LIMIT_TARGET] = fit->limits.target};

    return limits[limit];
}

/* Where in the path the fit is; -1: nowhere. */
static int position(const struct fit *fit)
{
    for (int i = 0; i < STEPS; i++)
        if ((path[i].modes & 1U << fit->mode) != 0 && path[i].status == fit->status &&
            path[i].action == fit->action)
            return i;
    return -1;
}

static void begin_action(struct fit *fit, enum fit_action action)
{
    fit->action = action;
    fit->tries = 0;
    fit->trouble[0] = '\0';
    for (size_t i = 0; i < COUNT(makes); i++)
        if (makes[i].action == action)
            *field_of(fit, makes[i].field) = true;
}

static void begin_status(struct fit *fit, enum fit_status status, double now)
{
    if (fit->status != status)
        fit->since = now;
    fit->status = status;
}

static void clean(struct fit *fit, double now)
{
    for (size_t i = 0; i < COUNT(cleanup); i++)
        if (*field_of(fit, cleanup[i].field)) {
            begin_action(fit, cleanup[i].action);
            return;
        }
    begin_action(fit, FIT_DO_NOTHING);
    begin_status(fit, fit->ending, now);
    fit->cleaning = false;
}

static void end(struct fit *fit, enum fit_status ending, const char *reason, double now)
{
    fit->ending = ending;
    fit->cleaning = true;
    fit->ended = now;
    fit->deadline = 0;
    snprintf(fit->reason, sizeof(fit->reason), "%s", reason);
    error_clean(fit->reason);
    clean(fit, now);
}

static void go_on(struct fit *fit, int from, double now)
{
    int next = from + 1;

    while (next < STEPS && (path[next].modes & 1U << fit->mode) == 0)
        next++;
    if (next == STEPS) {
        end(fit, FIT_SUCCESS, "", now);
        return;
    }
    begin_status(fit, path[next].status, now);
    if (path[next].limit != path[from].limit)
        fit->deadline = now + limit_of(fit, path[next].limit);
    begin_action(fit, path[next].action);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void action_done(struct fit *fit, int count, double now)
{
    int from = position(fit);

    for (size_t i = 0; i < COUNT(ends); i++)
        if (ends[i].action == fit->action)
            *field_of(fit, ends[i].field) = false;
    if (fit->action == FIT_DO_COUNT) {
        fit->counted = true;
        fit->count = count > 0 ? count : 0;
    }
    for (size_t i = 0; fit->cleaning && i < COUNT(cleanup); i++)
        if (cleanup[i].action == fit->action)
            *field_of(fit, cleanup[i].field) = false;
    if (fit->cleaning)
        clean(fit, now);
    else
        go_on(fit, from, now);
}

static void action_failed(struct fit *fit, const char *reason, double now)
{
    if (!fit->cleaning) {
        end(fit, FIT_FAILED, reason, now);
        return;
    }
    if (fit->action == FIT_DO_REVOKE && (fit->pointed || fit->replaced)) {
        begin_action(fit, fit->pointed ? FIT_DO_POINT_BACK : FIT_DO_RESTORE);
        return;
    }
    fit->tries += fit->tries < INT_MAX;
    snprintf(fit->trouble, sizeof(fit->trouble), "%s", reason);
    error_clean(fit->trouble);
}

static bool out_of_time(struct fit *fit, double now)
{
    char reason[FIT_REASON_MAX];

    if (fit->cleaning || fit_is_over(fit) || now < fit->deadline)
        return false;
    snprintf(reason, sizeof(reason), "%s: not done in time, after %.0f s (%s)",
             status_names[fit->status], limit_of(fit, path[position(fit)].limit),
             action_names[fit->action]);
    end(fit, FIT_FAILED, reason, now);
    return true;
}

bool fit_tell(struct fit *fit, const struct fit_fact *fact, double now)
{
    const char *reason = fact->reason != NULL ? fact->reason : "no reason is known";
    bool about = fact->action == fit->action && fit->action != FIT_DO_NOTHING;

    switch (fact->kind) {
    case FIT_FACT_DONE:
        if (about)
            action_done(fit, fact->count, now);
        return about;
    case FIT_FACT_FAILED:
        if (about)
            action_failed(fit, reason, now);
        return about;
    case FIT_FACT_CANCEL:
        if (fit->cleaning || fit_is_over(fit))
            return false;
        end(fit, FIT_CANCELLED, reason, now);
        return true;
    case FIT_FACT_TIME:
    case FIT_FACT_KINDS:
    default:
        return out_of_time(fit, now);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

struct fit fit_begin(enum fit_mode mode, const struct fit_limits *limits, double now)
{
    struct fit fit = {.mode = mode, .limits = *limits, .since = now};

    fit.deadline = now + FIT_INITIAL_LIMIT;
    begin_action(&fit, FIT_DO_PREPARE);
    return fit;
}

bool fit_is_over(const struct fit *fit)
{
    return fit->status >= FIT_SUCCESS;
}

int fit_target(const struct fit *fit)
{
    return fit->count > 0 ? fit->count : 1;
}

const char *fit_status_name(enum fit_status status)
{
    return status_names[status];
}

const char *fit_action_name(enum fit_action action)
{
    return action_names[action];
}

/* ---- the record ------------------------------------------------------------------------------ */

static const struct {
    const char *key;
    size_t field;
} flags[] = {
    {"cleaning", FIELD(cleaning)},   {"granted", FIELD(granted)}, {"partial", FIELD(partial)},
    {"dedicated", FIELD(dedicated)}, {"pointed", FIELD(pointed)}, {"replaced", FIELD(replaced)},
    {"counted", FIELD(counted)},
};

static const struct {
    const char *key;
    size_t field;
} times[] = {
    {"since", FIELD(since)},
    {"deadline", FIELD(deadline)},
    {"limit_start", FIELD(limits.start)},
    {"limit_fit", FIELD(limits.fit)},
    {"limit_target", FIELD(limits.target)},
};

static void add_text(json_object *root, const char *key, const char *text)
{
    json_object_object_add(root, key, json_object_new_string(text));
}

char *fit_record_text(const struct fit *fit)
{
    json_object *root = json_object_new_object();
    char *text;

    add_text(root, "mode", fit->mode == FIT_SINGLE ? "single" : "multi");
    add_text(root, "status", status_names[fit->status]);
    add_text(root, "action", action_names[fit->action]);
    if (fit->cleaning)
        add_text(root, "ending", status_names[fit->ending]);
    for (size_t i = 0; i < COUNT(flags); i++)
        json_object_object_add(
            root, flags[i].key,
            json_object_new_boolean(*(const bool *)((const char *)fit + flags[i].field)));
    for (size_t i = 0; i < COUNT(times); i++)
        json_object_object_add(
            root, times[i].key,
            json_object_new_double(*(const double *)((const char *)fit + times[i].field)));
    json_object_object_add(root, "ended", json_object_new_double(fit->ended));
    json_object_object_add(root, "count", json_object_new_int(fit->count));
    json_object_object_add(root, "tries", json_object_new_int(fit->tries));
    add_text(root, "reason", fit->reason);
    add_text(root, "trouble", fit->trouble);
    text = strdup(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN));
    json_object_put(root);
    return text;
}

/* -1: it is none of the names. */
static int find_name(json_object *root, const char *key, const char *const *names, int count)
{
    const char *name = json_get_string(root, key);

    for (int i = 0; name != NULL && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static bool read_names(json_object *root, struct fit *fit)
{
    static const char *const modes[] = {[FIT_SINGLE] = "single", [FIT_MULTI] = "multi"};
    int mode = find_name(root, "mode", modes, COUNT(modes));
    int status = find_name(root, "status", status_names, FIT_STATUSES);
    int action = find_name(root, "action", action_names, FIT_ACTIONS);
    int ending = find_name(root, "ending", status_names, FIT_STATUSES);

    if (mode < 0 || status < 0 || action < 0)
        return false;
    fit->mode = (enum fit_mode)mode;
    fit->status = (enum fit_status)status;
    fit->action = (enum fit_action)action;
    fit->ending = ending < 0 ? FIT_INITIAL : (enum fit_status)ending;
    return true;
}

static bool read_text(json_object *root, const char *key, char text[FIT_REASON_MAX])
{
    const char *value = json_get_string(root, key);

    if (value == NULL || strlen(value) >= FIT_REASON_MAX)
        return false;
    memcpy(text, value, strlen(value) + 1);
    error_clean(text);
    return true;
}

static bool read_numbers(json_object *root, struct fit *fit)
{
    int64_t count, tries;

    for (size_t i = 0; i < COUNT(times); i++) {
        double *field = (double *)((char *)fit + times[i].field);

        *field = json_get_double(root, times[i].key, -1);
        if (!(*field >= 0 && *field < 1e15))
            return false;
    }
    fit->ended = json_get_double(root, "ended", 0);
    if (!(fit->ended >= 0 && fit->ended < 1e15))
        return false;
    for (size_t i = 0; i < COUNT(flags); i++)
        *field_of(fit, flags[i].field) = json_get_bool(root, flags[i].key, false);
    if (!json_get_int(root, "count", 0, INT_MAX, &count) ||
        !json_get_int(root, "tries", 0, INT_MAX, &tries))
        return false;
    fit->count = (int)count;
    fit->tries = (int)tries;
    return true;
}

/* Could fit_tell() have come here? */
static bool is_possible(struct fit *fit)
{
    bool open = false, own = false;

    for (size_t i = 0; i < COUNT(cleanup); i++) {
        open = open || *field_of(fit, cleanup[i].field);
        own = own || (cleanup[i].action == fit->action && *field_of(fit, cleanup[i].field));
    }
    for (size_t i = 0; i < COUNT(makes); i++)
        if (makes[i].action == fit->action && !*field_of(fit, makes[i].field))
            return false;
    if ((fit->granted && fit->mode != FIT_MULTI) || (fit->dedicated && fit->mode != FIT_SINGLE) ||
        ((fit->pointed || fit->replaced) && !fit->counted))
        return false;
    if (fit_is_over(fit))
        return !fit->cleaning && !open && fit->action == FIT_DO_NOTHING;
    if (fit->cleaning)
        return own && fit->ending >= FIT_SUCCESS &&
               (fit->ending != FIT_SUCCESS || fit->action == FIT_DO_REVOKE);
    return position(fit) >= 0 && fit->deadline > 0;
}

int fit_record_parse(const char *text, size_t len, struct fit *fit, struct error *err)
{
    json_object *root = json_text_parse(text, len, err);
    bool good;

    *fit = (struct fit){0};
    if (root == NULL)
        return -1;
    good = read_names(root, fit) && read_numbers(root, fit) &&
           read_text(root, "reason", fit->reason) && read_text(root, "trouble", fit->trouble) &&
           is_possible(fit);
    json_object_put(root);
    return good ? 0 : error_set(err, "this is no record of a fit");
}
