/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events from the leader to processes of a world.
 *
 * Whoever sends an event names its receivers: by any other range the library delivers it to the processes of every world here. It is kept from
 * handlers that take just anything: Open MPI's own ends the program. Who registers later still hears of it, for two minutes; that is how a process hears what
 * its predecessor, in the world before, has asked for. */
#include <string.h>

#include "common/log.h"
#include "lib/json_get.h"
#include "pmix/host.h"

#define INFOS_MAX 8

static pmix_status_t code_of(const char *what)
{
    return strcmp(what, "done") == 0 ? PMIX_DVM_IS_READY : PMIX_ERR_DVM_MOD;
}

static void add_text(pmix_info_t *info, size_t *count, const char *key, const char *text)
{
    if (text != NULL && text[0] != '\0')
        PMIX_INFO_LOAD(&info[(*count)++], key, text, PMIX_STRING);
}

/* How a request has ended, for the process that is now of the rank that asked. */
static void on_event(const struct space *space, json_object *msg)
{
    const char *what = json_get_string(msg, "what");
    int64_t rank, nodes;
    pmix_info_t *info;
    pmix_proc_t to, from;
    size_t count = 0;

    if (what == NULL || !json_get_int(msg, "rank", 0, INT32_MAX, &rank))
        return;
    PMIX_INFO_CREATE(info, INFOS_MAX);
    PMIX_LOAD_PROCID(&to, space->name, (pmix_rank_t)rank);
    PMIX_LOAD_PROCID(&from, "elasticrun", PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&info[count++], PMIX_EVENT_CUSTOM_RANGE, &to, PMIX_PROC);
    PMIX_INFO_LOAD(&info[count++], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    add_text(info, &count, PMIX_ALLOC_ID, json_get_string(msg, "id"));
    add_text(info, &count, PMIX_ALLOC_REQ_ID, json_get_string(msg, "label"));
    add_text(info, &count, PMIX_QUERY_ALLOC_STATUS, json_get_string(msg, "reason"));
    if (json_get_int(msg, "nodes", 0, INT32_MAX, &nodes)) {
        uint32_t value = (uint32_t)nodes;

        PMIX_INFO_LOAD(&info[count++], PMIX_NUM_NODES, &value, PMIX_UINT32);
    }
    if (PMIx_Notify_event(code_of(what), &from, PMIX_RANGE_CUSTOM, info, count, NULL, NULL) !=
        PMIX_SUCCESS)
        log_debug("an event could not be delivered");
    PMIX_INFO_FREE(info, INFOS_MAX);
}

static void send_to_all(const struct space *space, pmix_status_t code, const char *reason,
                        uint32_t seconds)
{
    pmix_info_t *info;
    pmix_proc_t to, from;
    size_t count = 0;

    PMIX_INFO_CREATE(info, INFOS_MAX);
    PMIX_LOAD_PROCID(&to, space->name, PMIX_RANK_WILDCARD);
    PMIX_LOAD_PROCID(&from, "elasticrun", PMIX_RANK_UNDEF);
    PMIX_INFO_LOAD(&info[count++], PMIX_EVENT_CUSTOM_RANGE, &to, PMIX_PROC);
    PMIX_INFO_LOAD(&info[count++], PMIX_EVENT_NON_DEFAULT, NULL, PMIX_BOOL);
    if (seconds > 0)
        PMIX_INFO_LOAD(&info[count++], PMIX_TIME_REMAINING, &seconds, PMIX_UINT32);
    add_text(info, &count, PMIX_QUERY_ALLOC_STATUS, reason);
    if (PMIx_Notify_event(code, &from, PMIX_RANGE_CUSTOM, info, count, NULL, NULL) != PMIX_SUCCESS)
        log_debug("an event could not be delivered");
    PMIX_INFO_FREE(info, INFOS_MAX);
}

void events_checkpoint(const struct space *space)
{
    send_to_all(space, PMIX_JCTRL_CHECKPOINT, NULL, 0);
}

/* A change of the world is under way, and these processes end with it. */
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
