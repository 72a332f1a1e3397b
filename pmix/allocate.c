/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation requests: PMIx's keys on one side, questions to the leader on the other
 * (doc/user/mpi.md).
 *
 * Keys that the library adds by itself (user and group of the client) are ignored. A request with
 * any other key that has no meaning here is refused: a program that names a node, an image or a
 * share means it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/json_get.h"
#include "pmix/host.h"

#define ANSWER_SECONDS 30 /* the leader answers at once */
#define REFUSALS       32 /* refusals that are remembered */
#define NAME_BYTES     1000
#define NAMES_BYTES    65536

/* Why the latest requests with a name were refused. libelastic asks for that, since the library
 * hands on no text. */
static struct {
    char label[64];
    char text[256];
} refusals[REFUSALS];
static size_t refusal_count;

struct wish {
    json_object *msg;
    pmix_status_t status; /* PMIX_SUCCESS: all has been understood */
    bool more_time;       /* a time without nodes */
};

static uint64_t number_in(const pmix_value_t *value, bool *good)
{
    *good = true;
    switch (value->type) {
    case PMIX_UINT64:
        return value->data.uint64;
    case PMIX_UINT32:
        return value->data.uint32;
    case PMIX_SIZE:
        return value->data.size;
    case PMIX_INT:
        *good = value->data.integer >= 0;
        return *good ? (uint64_t)value->data.integer : 0;
    default:
        *good = false;
        return 0;
    }
}

static void take_number(struct wish *wish, const char *name, const pmix_value_t *value)
{
    bool good;
    uint64_t number = number_in(value, &good);

    if (!good || number > INT32_MAX)
        wish->status = PMIX_ERR_BAD_PARAM;
    else
        json_object_object_add(wish->msg, name, json_object_new_int64((int64_t)number));
}

/* A message is UTF-8, and of a limited length: another one would end the connection with the
 * agent. */
static bool is_text(const pmix_value_t *value, size_t most)
{
    return value->type == PMIX_STRING && value->data.string != NULL &&
           value->data.string[0] != '\0' && strlen(value->data.string) <= most &&
           error_is_clean(value->data.string);
}

static void take_text(struct wish *wish, const char *name, const pmix_value_t *value)
{
    if (!is_text(value, NAME_BYTES))
        wish->status = PMIX_ERR_BAD_PARAM;
    else
        json_object_object_add(wish->msg, name, json_object_new_string(value->data.string));
}

/* "n5,n6", or as PMIx writes lists of nodes. */
static void take_names(struct wish *wish, const pmix_value_t *value)
{
    json_object *names = json_object_new_array();
    char *copy, *rest, *name;

    json_object_object_add(wish->msg, "names", names);
    if (!is_text(value, NAMES_BYTES) || (copy = rest = strdup(value->data.string)) == NULL) {
        wish->status = PMIX_ERR_BAD_PARAM;
        return;
    }
    while ((name = strsep(&rest, ",")) != NULL)
        json_object_array_add(names, json_object_new_string(name));
    free(copy);
}

static void take(struct wish *wish, const pmix_info_t *info, bool release)
{
    const pmix_value_t *value = &info->value;

    if (PMIX_CHECK_KEY(info, PMIX_ALLOC_NUM_NODES))
        take_number(wish, "nodes", value);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_REQ_ID))
        take_text(wish, "label", value);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_ID))
        take_text(wish, "of", value);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_QUEUE) && !release)
        take_text(wish, "pool", value);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_NODE_LIST) && release)
        take_names(wish, value);
    else if (PMIX_CHECK_KEY(info, PMIX_TIMEOUT))
        take_number(wish, "timeout", value);
    else if (PMIX_CHECK_KEY(info, PMIX_ALLOC_TIME))
        wish->more_time = true;
    else if (!PMIX_CHECK_KEY(info, PMIX_USERID) && !PMIX_CHECK_KEY(info, PMIX_GRPID))
        wish->status = PMIX_ERR_NOT_SUPPORTED;
}

static pmix_status_t status_of(const char *error)
{
    static const struct {
        const char *word;
        pmix_status_t status;
    } table[] = {{"bad", PMIX_ERR_BAD_PARAM},
                 {"not available", PMIX_ERR_NOT_AVAILABLE},
                 {"not found", PMIX_ERR_NOT_FOUND}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(error, table[i].word) == 0)
            return table[i].status;
    return PMIX_ERROR;
}

static void remember(const struct call *call, const char *text)
{
    for (size_t i = 0; i < call->info_count; i++) {
        const pmix_info_t *info = &call->info[i];
        size_t at = refusal_count % REFUSALS;

        if (!PMIX_CHECK_KEY(info, PMIX_ALLOC_REQ_ID) || info->value.type != PMIX_STRING)
            continue;
        snprintf(refusals[at].label, sizeof(refusals[at].label), "%s", info->value.data.string);
        snprintf(refusals[at].text, sizeof(refusals[at].text), "%s", text);
        refusal_count++;
        return;
    }
}

const char *allocate_refusal(const char *label)
{
    for (size_t i = refusal_count; i > 0 && i + REFUSALS > refusal_count; i--)
        if (strcmp(refusals[(i - 1) % REFUSALS].label, label) == 0)
            return refusals[(i - 1) % REFUSALS].text;
    return NULL;
}

/* Accepted, with the request's id; or refused, with the reason as text. */
static void on_answer(struct call *call, json_object *answer)
{
    const char *error = json_get_string(answer, "error");
    const char *id = json_get_string(answer, "request");
    const char *reason = json_get_string(answer, "reason");
    pmix_info_t *info;

    PMIX_INFO_CREATE(info, 1);
    if (error != NULL) {
        remember(call, reason != NULL ? reason : error);
        PMIX_INFO_LOAD(&info[0], PMIX_QUERY_ALLOC_STATUS, reason != NULL ? reason : error,
                       PMIX_STRING);
        call_answer_info(call, status_of(error), info, 1);
    } else if (id != NULL) {
        PMIX_INFO_LOAD(&info[0], PMIX_ALLOC_ID, id, PMIX_STRING);
        call_answer_info(call, PMIX_SUCCESS, info, 1);
    } else {
        call_answer(call, PMIX_SUCCESS);
    }
    PMIX_INFO_FREE(info, 1);
}

void allocate(struct call *call)
{
    static const struct {
        pmix_alloc_directive_t directive;
        const char *word;
    } table[] = {{PMIX_ALLOC_EXTEND, "extend"},
                 {PMIX_ALLOC_RELEASE, "release"},
                 {PMIX_ALLOC_REQ_CANCEL, "cancel"}};
    struct space *space = host_space_by_name(call->source.nspace);
    struct wish wish = {.msg = json_object_new_object()};
    const char *word = NULL;

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].directive == call->directive)
            word = table[i].word;
    for (size_t i = 0; word != NULL && i < call->info_count; i++)
        take(&wish, &call->info[i], call->directive == PMIX_ALLOC_RELEASE);
    /* NEW: there is one world at a time. REAQUIRE: no nodes are lent. Time alone: Slurm does not
     * give users more of it. */
    if (word == NULL || wish.more_time)
        wish.status = PMIX_ERR_NOT_SUPPORTED;
    if (space == NULL)
        space = host_running_space(); /* a tool asks */
    else
        json_object_object_add(wish.msg, "rank", json_object_new_int64(call->source.rank));
    if (wish.status == PMIX_SUCCESS && space == NULL)
        wish.status = PMIX_ERR_NOT_AVAILABLE;
    if (wish.status != PMIX_SUCCESS) {
        json_object_put(wish.msg);
        call_answer(call, wish.status);
        return;
    }
    json_object_object_add(wish.msg, "directive", json_object_new_string(word));
    exchange_ask(call, space, "allocate", wish.msg, ANSWER_SECONDS, on_answer);
}
