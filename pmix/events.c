/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events from the leader to processes of a world.
 *
 * An event names its receivers: with any other range the library would deliver it to the processes
 * of every world here. It is kept from handlers that take all events: Open MPI's own handler ends
 * the program. A process that registers later still gets the event, for two minutes. That is how a
 * process hears of requests that its predecessor, in the world before, has made. */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "lib/json_get.h"
#include "lib/pieces.h"
#include "pmix/host.h"

#define INFOS_MAX       8
#define EVENT_INFOS_MAX 64
#define EVENT_BYTES_MAX 65536
#define EVENT_BURST     500 /* events of a node that may be sent to other nodes at once */
#define EVENT_RATE      100 /* events of a node that may be sent each second */

static pmix_status_t code_of(const char *what)
{
    return strcmp(what, "done") == 0 ? PMIX_DVM_IS_READY : PMIX_ERR_DVM_MOD;
}

static void add_text(pmix_info_t *info, size_t *count, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        PMIX_INFO_LOAD(&info[(*count)++], key, text, PMIX_STRING);
}

/* Begin an event of the leader for a process, or for all (PMIX_RANK_WILDCARD). There is room for
 * INFOS_MAX infos. */
static pmix_info_t *begin_event(const struct space *space, pmix_rank_t rank, size_t *count)
{
    pmix_info_t *info;
    pmix_proc_t to;

    PMIX_INFO_CREATE(info, INFOS_MAX);
    PMIX_LOAD_PROCID(&to, space->name, rank);
    *count = 0;
    PMIX_INFO_LOAD(&info[(*count)++], PMIX_EVENT_CUSTOM_RANGE, &to, PMIX_PROC);
    PMIX_INFO_LOAD(&info[(*count)++], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    return info;
}

/* Send the event that has been begun, and free it. */
static void send_event(pmix_status_t code, pmix_info_t *info, size_t count)
{
    pmix_proc_t from;

    PMIX_LOAD_PROCID(&from, "elasticrun", PMIX_RANK_UNDEF);
    if (PMIx_Notify_event(code, &from, PMIX_RANGE_CUSTOM, info, count, NULL, NULL) != PMIX_SUCCESS)
        log_debug("an event could not be delivered");
    PMIX_INFO_FREE(info, INFOS_MAX);
}

/* The end of a request, for the process that now has the rank that asked. */
static void on_event(const struct space *space, json_object *msg)
{
    const char *what = json_get_string(msg, "what");
    int64_t rank, nodes;
    pmix_info_t *info;
    size_t count;

    if (what == NULL || !json_get_int(msg, "rank", 0, INT32_MAX, &rank))
        return;
    info = begin_event(space, (pmix_rank_t)rank, &count);
    add_text(info, &count, PMIX_ALLOC_ID, json_get_string(msg, "id"));
    add_text(info, &count, PMIX_ALLOC_REQ_ID, json_get_string(msg, "label"));
    add_text(info, &count, PMIX_QUERY_ALLOC_STATUS, json_get_string(msg, "reason"));
    if (json_get_int(msg, "nodes", 0, INT32_MAX, &nodes)) {
        uint32_t value = (uint32_t)nodes;

        PMIX_INFO_LOAD(&info[count++], PMIX_NUM_NODES, &value, PMIX_UINT32);
    }
    send_event(code_of(what), info, count);
}

/* ---- from process to process ----------------------------------------------------------------- */

/* The library has told the processes of this node; the leader reaches the others. A program that
 * sends many events must not fill the connections that everything else needs: after a burst there
 * is a limit for each second. */
static bool may_relay(void)
{
    static double tokens = EVENT_BURST, last;
    double now = (double)uv_now(&host.loop) / 1000;

    tokens += (now - last) * EVENT_RATE;
    if (tokens > EVENT_BURST)
        tokens = EVENT_BURST;
    last = now;
    if (tokens < 1)
        return false;
    tokens--;
    return true;
}

void events_relay(const struct call *call)
{
    struct space *space = host_space_by_name(call->source.nspace);
    pmix_byte_object_t packed = {0};

    if (space == NULL || call->range == PMIX_RANGE_RM || call->range == PMIX_RANGE_LOCAL ||
        call->range == PMIX_RANGE_PROC_LOCAL)
        return;
    if (!may_relay() || call->info_count > EVENT_INFOS_MAX ||
        values_pack(call->info, (int32_t)call->info_count, PMIX_INFO, &packed) != PMIX_SUCCESS ||
        packed.size > EVENT_BYTES_MAX) {
        log_debug("rank %u: an event stays on its node", call->source.rank);
        free(packed.bytes);
        return;
    }
    for (int i = 0; i < space->world->node_count; i++) {
        json_object *msg;

        if (i == space->index)
            continue;
        msg = host_message("relay", space->attempt);
        json_object_object_add(msg, "to", json_object_new_int(i));
        json_object_object_add(msg, "what", json_object_new_string("notify"));
        json_object_object_add(msg, "id", json_object_new_int(0));
        json_object_object_add(msg, "code", json_object_new_int(call->status));
        json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
        json_object_object_add(msg, "count", json_object_new_int((int)call->info_count));
        if (piece_set(msg, packed.bytes, packed.size) == 0)
            host_send(msg);
        else
            json_object_put(msg);
    }
    free(packed.bytes);
}

static pmix_info_t *unpack(json_object *msg, int64_t count)
{
    pmix_byte_object_t packed;
    pmix_info_t *info;

    if (piece_data(msg, &packed.bytes, &packed.size) != 0)
        return NULL;
    PMIX_INFO_CREATE(info, (size_t)count + 1); /* and its receivers */
    if (values_unpack(&packed, info, (int32_t)count, PMIX_INFO) == PMIX_SUCCESS)
        return info;
    PMIX_INFO_FREE(info, (size_t)count + 1);
    return NULL;
}

/* The receivers are the named processes; else all processes of this world, and of no other world
 * here. */
void events_relayed(const struct space *space, json_object *msg)
{
    int64_t code, rank, count;
    pmix_info_t *info;
    pmix_proc_t source, all;
    bool named = false;

    if (!json_get_int(msg, "code", INT32_MIN, INT32_MAX, &code) ||
        !json_get_int(msg, "rank", 0, INT32_MAX, &rank) ||
        !json_get_int(msg, "count", 0, EVENT_INFOS_MAX, &count) ||
        (info = unpack(msg, count)) == NULL)
        return;
    PMIX_LOAD_PROCID(&source, space->name, (pmix_rank_t)rank);
    PMIX_LOAD_PROCID(&all, space->name, PMIX_RANK_WILDCARD);
    for (int64_t i = 0; i < count; i++)
        named = named || PMIX_CHECK_KEY(&info[i], PMIX_EVENT_CUSTOM_RANGE);
    if (!named)
        PMIX_INFO_LOAD(&info[count], PMIX_EVENT_CUSTOM_RANGE, &all, PMIX_PROC);
    PMIx_Notify_event((pmix_status_t)code, &source, PMIX_RANGE_CUSTOM, info, (size_t)count + !named,
                      NULL, NULL);
    PMIX_INFO_FREE(info, (size_t)count + 1);
}

/* ---- from the leader ------------------------------------------------------------------------- */

static void send_to_all(const struct space *space, pmix_status_t code, const char *reason,
                        uint32_t seconds)
{
    size_t count;
    pmix_info_t *info = begin_event(space, PMIX_RANK_WILDCARD, &count);

    if (seconds > 0)
        PMIX_INFO_LOAD(&info[count++], PMIX_TIME_REMAINING, &seconds, PMIX_UINT32);
    add_text(info, &count, PMIX_QUERY_ALLOC_STATUS, reason);
    send_event(code, info, count);
}

void events_checkpoint(const struct space *space)
{
    send_to_all(space, PMIX_JCTRL_CHECKPOINT, NULL, 0);
}

/* A change of the world is under way, and these processes end in it. */
static void on_alert(const struct space *space, json_object *msg)
{
    const char *kind = json_get_string(msg, "kind"), *reason = json_get_string(msg, "reason");
    double seconds = json_get_double(msg, "seconds", 0);
    uint32_t whole = seconds > 1 && seconds < UINT32_MAX ? (uint32_t)seconds : 1;

    if (kind != NULL && strcmp(kind, "grow") != 0)
        send_to_all(space, PMIX_JCTRL_PREEMPT_ALERT, reason, whole);
    send_to_all(space, PMIX_JCTRL_CHECKPOINT, reason, whole);
}

bool events_on_message(const char *type, json_object *msg)
{
    int64_t attempt;
    struct space *space;

    if (strcmp(type, "event") != 0 && strcmp(type, "alert") != 0)
        return false;
    if (!json_get_int(msg, "attempt", 0, INT32_MAX, &attempt) ||
        (space = host_space((int)attempt)) == NULL)
        return true;
    if (strcmp(type, "event") == 0)
        on_event(space, msg);
    else
        on_alert(space, msg);
    return true;
}
