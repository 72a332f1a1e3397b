/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PMIx_Publish, PMIx_Lookup and PMIx_Unpublish, as questions to the leader.
 *
 * The leader keeps the published data and knows no PMIx: a value is bytes to it, as the library
 * packs them. All nodes of a job have the same library. */
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/json_get.h"
#include "lib/pieces.h"
#include "lib/publish.h"
#include "pmix/host.h"

#define TOOL_SECONDS 60 /* a waiting tool may be gone without notice */

struct directives {
    const char *range, *until;
    bool waits;
    int wait; /* number of keys to wait for, 0: all */
    int timeout;
};

/* ---- directives ------------------------------------------------------------------------------ */

/* A number that is not negative, in any of the types that programs use. */
static bool number_of(const pmix_value_t *value, int *number)
{
    int64_t wide = -1;

    if (value->type == PMIX_INT)
        wide = value->data.integer;
    else if (value->type == PMIX_INT32)
        wide = value->data.int32;
    else if (value->type == PMIX_UINT32)
        wide = value->data.uint32;
    else if (value->type == PMIX_UINT)
        wide = value->data.uint;
    if (wide < 0 || wide > INT32_MAX)
        return false;
    *number = (int)wide;
    return true;
}

static pmix_status_t read_range(const struct call *call, const pmix_value_t *value,
                                struct directives *directives)
{
    if (value->type != PMIX_DATA_RANGE)
        return PMIX_ERR_BAD_PARAM;
    switch (value->data.range) {
    case PMIX_RANGE_UNDEF:
        return PMIX_SUCCESS; /* as if there were none */
    case PMIX_RANGE_PROC_LOCAL:
        directives->range = "process";
        return PMIX_SUCCESS;
    case PMIX_RANGE_LOCAL:
        directives->range = "node";
        return PMIX_SUCCESS;
    case PMIX_RANGE_NAMESPACE:
        directives->range = "world";
        return PMIX_SUCCESS;
    case PMIX_RANGE_SESSION:
    case PMIX_RANGE_GLOBAL:
        directives->range = "job";
        return PMIX_SUCCESS;
    case PMIX_RANGE_RM:
    case PMIX_RANGE_CUSTOM:
        return PMIX_ERR_NOT_SUPPORTED;
    default:
        /* Open MPI 5.0 looks names up in a range that it leaves to chance. */
        return call->type == CALL_LOOKUP ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM;
    }
}

static pmix_status_t read_until(const pmix_value_t *value, struct directives *directives)
{
    if (value->type != PMIX_PERSIST)
        return PMIX_ERR_BAD_PARAM;
    switch (value->data.persist) {
    case PMIX_PERSIST_FIRST_READ:
        directives->until = "read";
        return PMIX_SUCCESS;
    case PMIX_PERSIST_PROC:
        directives->until = "process";
        return PMIX_SUCCESS;
    case PMIX_PERSIST_APP:
        directives->until = "world";
        return PMIX_SUCCESS;
    case PMIX_PERSIST_SESSION:
    case PMIX_PERSIST_INDEF:
        directives->until = "job";
        return PMIX_SUCCESS;
    default:
        return PMIX_ERR_BAD_PARAM;
    }
}

/* An integer by the standard; Open MPI gives a boolean. */
static pmix_status_t read_wait(const pmix_value_t *value, struct directives *directives)
{
    directives->waits = true;
    if (value->type == PMIX_BOOL)
        directives->waits = value->data.flag;
    else if (value->type != PMIX_UNDEF && !number_of(value, &directives->wait))
        return PMIX_ERR_BAD_PARAM;
    return PMIX_SUCCESS;
}

/* Is it a name of the standard? Only these begin with that prefix. */
static bool is_directive(const pmix_info_t *info)
{
    return strncmp(info->key, "pmix", 4) == 0;
}

static pmix_status_t read_directives(const struct call *call, struct directives *directives)
{
    pmix_status_t status = PMIX_SUCCESS;

    *directives = (struct directives){.range = "job", .until = "world"};
    for (size_t i = 0; status == PMIX_SUCCESS && i < call->info_count; i++) {
        const pmix_info_t *info = &call->info[i];

        if (PMIX_CHECK_KEY(info, PMIX_RANGE))
            status = read_range(call, &info->value, directives);
        else if (PMIX_CHECK_KEY(info, PMIX_PERSISTENCE))
            status = read_until(&info->value, directives);
        else if (PMIX_CHECK_KEY(info, PMIX_WAIT))
            status = read_wait(&info->value, directives);
        else if (PMIX_CHECK_KEY(info, PMIX_TIMEOUT))
            status = number_of(&info->value, &directives->timeout) ? PMIX_SUCCESS
                                                                   : PMIX_ERR_BAD_PARAM;
        /* There is only one user. */
        else if (PMIX_CHECK_KEY(info, PMIX_USERID) || PMIX_CHECK_KEY(info, PMIX_GRPID))
            continue;
        else if (is_directive(info) && PMIX_INFO_IS_REQUIRED(info))
            status = PMIX_ERR_NOT_SUPPORTED;
    }
    return status;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* A tool has no world of its own. */
static bool is_tool(const struct call *call)
{
    return host_space_by_name(call->source.nspace) == NULL;
}

static json_object *question(const struct call *call, const struct directives *directives)
{
    json_object *msg = json_object_new_object();

    if (is_tool(call))
        json_object_object_add(msg, "tool", json_object_new_boolean(true));
    else
        json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
    json_object_object_add(msg, "range", json_object_new_string(directives->range));
    return msg;
}

/* A message is UTF-8. */
static bool key_ok(const char *key)
{
    return key != NULL && key[0] != '\0' && strlen(key) <= PUBLISH_KEY_MAX && error_is_clean(key);
}

static bool add_keys(json_object *msg, char *const *keys)
{
    json_object *array = json_from_strings(keys);
    size_t count = json_object_array_length(array);

    json_object_object_add(msg, "keys", array);
    for (size_t i = 0; i < count; i++)
        if (!key_ok(keys[i]))
            return false;
    return count > 0 && count <= PUBLISH_KEYS_MAX;
}

static pmix_status_t status_of(json_object *answer)
{
    static const struct {
        const char *word;
        pmix_status_t status;
    } table[] = {
        {"duplicate", PMIX_ERR_DUPLICATE_KEY}, {"large", PMIX_ERR_OUT_OF_RESOURCE},
        {"bad", PMIX_ERR_BAD_PARAM},           {"memory", PMIX_ERR_NOMEM},
        {"nothing", PMIX_ERR_NOT_FOUND},       {"timeout", PMIX_ERR_TIMEOUT},
        {"lost", PMIX_ERR_LOST_CONNECTION},
    };
    const char *error = json_get_string(answer, "error");

    if (error == NULL)
        return PMIX_SUCCESS;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].word, error) == 0)
            return table[i].status;
    return PMIX_ERROR;
}

static void on_done(struct call *call, json_object *answer)
{
    if (call->type == CALL_PUBLISH)
        asked_end(call);
    call_answer(call, status_of(answer));
}

/* Ask the leader, or report at once what is wrong; msg is taken over. */
static void ask(struct call *call, const char *what, json_object *msg, pmix_status_t status,
                void (*done)(struct call *call, json_object *answer))
{
    const struct space *space = host_space_by_name(call->source.nspace);

    /* It would not be known how long to keep the value. */
    if (status == PMIX_SUCCESS && is_tool(call) && call->type != CALL_LOOKUP)
        status = PMIX_ERR_NOT_SUPPORTED;
    if (space == NULL)
        space = host_running_space();
    if (status == PMIX_SUCCESS && space == NULL)
        status = PMIX_ERR_NOT_FOUND;
    if (status == PMIX_SUCCESS) {
        exchange_ask(call, space, what, msg, 0, done); /* the leader minds the time */
        return;
    }
    json_object_put(msg);
    call_answer(call, status);
}

/* ---- publish --------------------------------------------------------------------------------- */

static pmix_status_t add_item(json_object *items, const pmix_info_t *info, size_t *bytes)
{
    pmix_byte_object_t packed;
    json_object *item;
    pmix_status_t status;

    if (!key_ok(info->key))
        return PMIX_ERR_BAD_PARAM;
    status = values_pack(&info->value, 1, PMIX_VALUE, &packed);
    *bytes += packed.size;
    if (status == PMIX_SUCCESS && *bytes > PUBLISH_CALL_BYTES_MAX)
        status = PMIX_ERR_OUT_OF_RESOURCE;
    if (status == PMIX_SUCCESS) {
        item = json_object_new_object();
        json_object_object_add(item, "key", json_object_new_string(info->key));
        if (piece_set(item, packed.bytes, packed.size) != 0)
            status = PMIX_ERR_NOMEM;
        json_object_array_add(items, item);
    }
    free(packed.bytes);
    return status;
}

void publish_publish(struct call *call)
{
    struct directives directives;
    pmix_status_t status = read_directives(call, &directives);
    json_object *msg = question(call, &directives), *items = json_object_new_array();
    struct space *space = host_space_by_name(call->source.nspace);
    size_t bytes = 0;

    json_object_object_add(msg, "until", json_object_new_string(directives.until));
    json_object_object_add(msg, "items", items);
    for (size_t i = 0; status == PMIX_SUCCESS && i < call->info_count; i++)
        if (!is_directive(&call->info[i]))
            status = add_item(items, &call->info[i], &bytes);
    if (status == PMIX_SUCCESS && (json_object_array_length(items) == 0 ||
                                   json_object_array_length(items) > PUBLISH_KEYS_MAX))
        status = PMIX_ERR_BAD_PARAM;
    if (status == PMIX_SUCCESS && space != NULL && !asked_begin(call, space, bytes))
        status = PMIX_ERR_OUT_OF_RESOURCE; /* a node may not have more */
    ask(call, "publish", msg, status, on_done);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static pmix_status_t read_found(json_object *item, pmix_pdata_t *found)
{
    const char *key = json_get_string(item, "key"), *world = json_get_string(item, "world");
    pmix_byte_object_t packed;
    int64_t rank;

    if (key == NULL || strlen(key) > PMIX_MAX_KEYLEN || world == NULL ||
        strlen(world) > PMIX_MAX_NSLEN || !json_get_int(item, "rank", 0, INT32_MAX, &rank) ||
        piece_data(item, &packed.bytes, &packed.size) != 0)
        return PMIX_ERR_UNPACK_FAILURE;
    PMIX_LOAD_KEY(found->key, key);
    PMIX_LOAD_PROCID(&found->proc, world, (pmix_rank_t)rank);
    return values_unpack(&packed, &found->value, 1, PMIX_VALUE);
}

/* The leader sends no more values until it has this answer. */
static void say_taken(json_object *answer)
{
    json_object *bytes = NULL, *msg;
    int64_t attempt;

    if (!json_object_object_get_ex(answer, "bytes", &bytes) ||
        !json_get_int(answer, "attempt", 0, INT32_MAX, &attempt))
        return;
    msg = host_message("ask", (int)attempt);
    json_object_object_add(msg, "what", json_object_new_string("taken"));
    json_object_object_add(msg, "bytes", json_object_get(bytes));
    host_send(msg);
}

/* Fewer values than asked for are a success. With another status the library would not hand them
 * on. In the program's array the missing ones have no value. */
static void on_found(struct call *call, json_object *answer)
{
    pmix_status_t status = status_of(answer);
    json_object *array = NULL;
    pmix_pdata_t *found = NULL;
    size_t count = 0;

    say_taken(answer);
    json_object_object_get_ex(answer, "found", &array);
    if (status == PMIX_SUCCESS && json_object_is_type(array, json_type_array))
        count = json_object_array_length(array);
    if (status == PMIX_SUCCESS && count == 0)
        status = PMIX_ERR_UNPACK_FAILURE;
    if (count > 0)
        PMIX_PDATA_CREATE(found, count);
    if (count > 0 && found == NULL)
        status = PMIX_ERR_NOMEM;
    for (size_t i = 0; status == PMIX_SUCCESS && i < count; i++)
        status = read_found(json_object_array_get_idx(array, i), &found[i]);
    if (status == PMIX_SUCCESS) {
        call_answer_found(call, status, found, count);
        return;
    }
    call_answer(call, status);
    if (found != NULL)
        PMIX_PDATA_FREE(found, count);
}

void publish_lookup(struct call *call)
{
    struct directives directives;
    pmix_status_t status = read_directives(call, &directives);
    json_object *msg = question(call, &directives);

    if (!add_keys(msg, call->keys) && status == PMIX_SUCCESS)
        status = PMIX_ERR_BAD_PARAM;
    if (directives.timeout == 0 && is_tool(call))
        directives.timeout = TOOL_SECONDS;
    if (directives.waits) {
        json_object_object_add(msg, "wait", json_object_new_int(directives.wait));
        json_object_object_add(msg, "timeout", json_object_new_int(directives.timeout));
    }
    ask(call, "lookup", msg, status, on_found);
}

/* ---- unpublish ------------------------------------------------------------------------------- */

void publish_unpublish(struct call *call)
{
    struct directives directives;
    pmix_status_t status = read_directives(call, &directives);
    json_object *msg = question(call, &directives);
    bool all = call->keys == NULL || call->keys[0] == NULL;

    json_object_object_add(msg, "all", json_object_new_boolean(all));
    if (!all && !add_keys(msg, call->keys) && status == PMIX_SUCCESS)
        status = PMIX_ERR_BAD_PARAM;
    ask(call, "unpublish", msg, status, on_done);
}
