/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program asks for (requests.h). */
#include "lib/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

struct requests {
    /* In the order in which they came; ended requests stay until they are taken. */
    struct request *list[REQUESTS_MAX];
    int count;
    int numbers; /* given so far */
    struct {
        int number, nodes;
    } grants[REQUEST_GRANTS]; /* the latest, in a ring */
    int grant_count;
};

struct requests *requests_create(void)
{
    return calloc(1, sizeof(struct requests));
}

void request_free(struct request *request)
{
    if (request == NULL)
        return;
    strings_free(request->nodes);
    free(request);
}

void requests_destroy(struct requests *requests)
{
    if (requests == NULL)
        return;
    for (int i = 0; i < requests->count; i++)
        request_free(requests->list[i]);
    free(requests);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The size of the job when all accepted requests are done. */
static int size_to_come(const struct requests *requests, const struct request_situation *now)
{
    int size = now->size > 0 ? now->size : now->base_nodes;

    for (int i = 0; i < requests->count; i++) {
        const struct request *each = requests->list[i];

        if (each->state != REQUEST_PENDING)
            continue;
        if (each->goal > 0)
            size = each->goal;
        else
            size += each->kind == REQUEST_EXTEND ? each->change : -each->change;
    }
    return size;
}

static const struct request *find_label(const struct requests *requests, const char *label)
{
    for (int i = 0; label != NULL && i < requests->count; i++)
        if (requests->list[i]->state == REQUEST_PENDING &&
            strcmp(requests->list[i]->label, label) == 0)
            return requests->list[i];
    return NULL;
}

static int check_wish(const struct requests *requests, const struct request_wish *wish,
                      struct error *err)
{
    if (wish->nodes < 1 || wish->nodes > SIZES_NODES_MAX) {
        error_set(err, "%d nodes: must be 1 to %d", wish->nodes, SIZES_NODES_MAX);
        return REQUEST_BAD;
    }
    if (wish->label != NULL &&
        (wish->label[0] == '\0' || strlen(wish->label) >= REQUEST_LABEL_MAX)) {
        error_set(err, "request id '%s': must be 1 to %d bytes", error_value(wish->label).text,
                  REQUEST_LABEL_MAX - 1);
        return REQUEST_BAD;
    }
    if (find_label(requests, wish->label) != NULL) {
        error_set(err, "request id '%s' is that of another request", wish->label);
        return REQUEST_BAD;
    }
    if (requests->count == REQUESTS_MAX) {
        error_set(err, "%d requests have not ended: no more", REQUESTS_MAX);
        return REQUEST_NOT_AVAILABLE;
    }
    return 0;
}

static int accept(struct requests *requests, enum request_kind kind,
                  const struct request_wish *wish, struct error *err)
{
    struct request *request = calloc(1, sizeof(*request));

    if (request == NULL ||
        (wish->names != NULL && (request->nodes = strings_copy(wish->names)) == NULL)) {
        request_free(request);
        error_set(err, "out of memory");
        return REQUEST_NOT_AVAILABLE;
    }
    request->number = ++requests->numbers;
    request->kind = kind;
    request->rank = wish->rank;
    request->change = wish->nodes;
    request->expires = wish->expires;
    snprintf(request->label, sizeof(request->label), "%s", wish->label != NULL ? wish->label : "");
    requests->list[requests->count++] = request;
    return request->number;
}

int requests_extend(struct requests *requests, const struct request_situation *now,
                    const struct request_wish *wish, struct error *err)
{
    int rc = check_wish(requests, wish, err), size = size_to_come(requests, now), next;
    char text[SIZES_TEXT_MAX];

    if (rc != 0)
        return rc;
    sizes_format(now->sizes, text, sizeof(text));
    if (size + wish->nodes > now->sizes->max) {
        error_set(err, "%d more nodes would make %d: the job may have %s", wish->nodes,
                  size + wish->nodes, text);
        return REQUEST_BAD;
    }
    if (!sizes_allowed(now->sizes, size + wish->nodes)) {
        next = sizes_next(now->sizes, size);
        error_set(err, "%d more nodes would make %d: allowed are %s; ask for %d", wish->nodes,
                  size + wish->nodes, text, next - size);
        return REQUEST_BAD;
    }
    if (now->deaf != NULL) {
        error_set(err, "%s", now->deaf);
        return REQUEST_NOT_AVAILABLE;
    }
    return accept(requests, REQUEST_EXTEND, wish, err);
}

static bool named_twice(const struct request_wish *wish)
{
    for (int i = 0; wish->names != NULL && i < wish->nodes; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(wish->names[i], wish->names[k]) == 0)
                return true;
    return false;
}

int requests_release(struct requests *requests, const struct request_situation *now,
                     const struct request_wish *wish, struct error *err)
{
    int rc = check_wish(requests, wish, err), size = size_to_come(requests, now);
    char text[SIZES_TEXT_MAX];

    if (rc != 0)
        return rc;
    sizes_format(now->sizes, text, sizeof(text));
    if (wish->names != NULL && wish->nodes > REQUEST_NODES_MAX) {
        error_set(err, "%d names: at most %d in one request", wish->nodes, REQUEST_NODES_MAX);
        return REQUEST_BAD;
    }
    if (named_twice(wish)) {
        error_set(err, "a node is named twice");
        return REQUEST_BAD;
    }
    if (size - wish->nodes < now->base_nodes) {
        error_set(err, "%d nodes less would leave %d: the base job itself has %d", wish->nodes,
                  size - wish->nodes, now->base_nodes);
        return REQUEST_BAD;
    }
    if (!sizes_allowed(now->sizes, size - wish->nodes)) {
        error_set(err, "%d nodes less would leave %d: allowed are %s", wish->nodes,
                  size - wish->nodes, text);
        return REQUEST_BAD;
    }
    return accept(requests, REQUEST_RELEASE, wish, err);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void end(struct request *request, enum request_state state, const char *why)
{
    request->state = state;
    snprintf(request->why, sizeof(request->why), "%s", why);
}

int requests_cancel(struct requests *requests, int number, const char *label, struct error *err)
{
    const struct request *named = number == 0 ? find_label(requests, label) : NULL;

    for (int i = 0; i < requests->count; i++) {
        struct request *request = requests->list[i];

        if (request->state != REQUEST_PENDING ||
            (number != 0 ? request->number != number : request != named))
            continue;
        end(request, REQUEST_CANCELLED, "");
        return 0;
    }
    error_set(err, "no request %s waits to be carried out",
              number != 0 ? "of that id" : error_value(label).text);
    return REQUEST_NOT_FOUND;
}

void requests_growth_failed(struct requests *requests, const char *why)
{
    for (int i = 0; i < requests->count; i++)
        if (requests->list[i]->state == REQUEST_PENDING && requests->list[i]->goal > 0 &&
            requests->list[i]->kind == REQUEST_EXTEND)
            end(requests->list[i], REQUEST_FAILED, why);
}

void requests_fail_all(struct requests *requests, const char *why)
{
    for (int i = 0; i < requests->count; i++)
        if (requests->list[i]->state == REQUEST_PENDING)
            end(requests->list[i], REQUEST_FAILED, why);
}

/* ---- carrying out ---------------------------------------------------------------------------- */

static bool any_held(char *const *nodes, char *const *held)
{
    for (; nodes != NULL && *nodes != NULL; nodes++)
        for (char *const *each = held; each != NULL && *each != NULL; each++)
            if (strcmp(*nodes, *each) == 0)
                return true;
    return false;
}

static int held_count(const struct request_situation *now)
{
    return (int)strings_count(now->held);
}

static void remember(struct requests *requests, const struct request *request)
{
    int at = requests->grant_count++ % REQUEST_GRANTS;

    requests->grants[at].number = request->number;
    requests->grants[at].nodes = request->change;
}

int requests_take_grant(struct requests *requests, int number)
{
    for (int i = 0; i < REQUEST_GRANTS; i++)
        if (requests->grants[i].number == number && number > 0) {
            requests->grants[i].number = 0;
            return requests->grants[i].nodes;
        }
    return 0;
}

static bool is_done(const struct request *request, const struct request_situation *now)
{
    if (!now->settled || now->size == 0)
        return false;
    if (request->kind == REQUEST_EXTEND)
        return now->size >= request->goal;
    return now->size <= request->goal && held_count(now) <= request->goal &&
           !any_held(request->nodes, now->held);
}

bool requests_empty(const struct requests *requests)
{
    return requests->count == 0;
}

const struct request *requests_current(const struct requests *requests)
{
    const struct request *current = NULL;

    for (int i = 0; i < requests->count; i++)
        if (requests->list[i]->state == REQUEST_PENDING && requests->list[i]->goal > 0)
            current = requests->list[i];
    return current;
}

/* Set the goal of a request: the size to which it leads from `from` nodes. -1: that size is not
 * possible, or not any more; the reason is in err. */
static int begin(struct request *request, const struct request_situation *now, int from,
                 struct error *err)
{
    int goal = from + (request->kind == REQUEST_EXTEND ? request->change : -request->change);
    char text[SIZES_TEXT_MAX];

    if (goal < now->base_nodes)
        return error_set(err, "of the %d nodes that there are, %d are the base job's", from,
                         now->base_nodes);
    if (!sizes_allowed(now->sizes, goal))
        return error_set(err,
                         "from the %d nodes that there are it would lead to %d: allowed are %s",
                         from, goal, sizes_format(now->sizes, text, sizeof(text)));
    request->goal = goal;
    return 0;
}

/* Begin the next request. With a request to grow, begin all requests to grow that follow it. */
static void begin_next(struct requests *requests, const struct request_situation *now)
{
    const struct request *current = requests_current(requests);

    for (int i = 0; now->size > 0 && i < requests->count; i++) {
        struct request *each = requests->list[i];
        struct error err = {""};

        if (each->state != REQUEST_PENDING || each->goal > 0)
            continue;
        if (current != NULL && (current->kind != REQUEST_EXTEND || each->kind != REQUEST_EXTEND))
            return;
        if (begin(each, now, current != NULL ? current->goal : now->size, &err) == 0)
            current = each;
        else
            end(each, REQUEST_FAILED, err.text);
    }
}

double requests_update(struct requests *requests, const struct request_situation *now, double time)
{
    double next = 0;

    for (int i = 0; i < requests->count; i++) {
        struct request *each = requests->list[i];

        if (each->state != REQUEST_PENDING)
            continue;
        if (each->goal > 0 && is_done(each, now)) {
            end(each, REQUEST_DONE, "");
            if (each->kind == REQUEST_EXTEND)
                remember(requests, each);
        } else if (each->expires > 0 && time >= each->expires) {
            end(each, REQUEST_FAILED, "its time is over");
        }
    }
    begin_next(requests, now);
    for (int i = 0; i < requests->count; i++)
        if (requests->list[i]->state == REQUEST_PENDING && requests->list[i]->expires > 0 &&
            (next == 0 || requests->list[i]->expires < next))
            next = requests->list[i]->expires;
    return next;
}

struct request *requests_ended(struct requests *requests)
{
    for (int i = 0; i < requests->count; i++) {
        struct request *request = requests->list[i];

        if (request->state == REQUEST_PENDING)
            continue;
        memmove(&requests->list[i], &requests->list[i + 1],
                (size_t)(requests->count - i - 1) * sizeof(request));
        requests->count--;
        return request;
    }
    return NULL;
}
