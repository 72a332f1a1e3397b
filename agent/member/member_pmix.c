/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The node's PMIx server between workers and leader (member_internal.h).
 *
 * Workers can be started when the server knows their namespace and has said what their environment
 * needs. That takes a millisecond, or seconds if the server is in trouble. Meanwhile the leader's
 * messages wait in their order. */
#include <stdlib.h>
#include <string.h>

#include "agent/member/member_internal.h"
#include "agent/paths.h"
#include "common/log.h"
#include "lib/json_get.h"

static void on_space(int attempt, json_object *env, const char *reason, void *arg)
{
    struct member *m = arg;
    json_object *waiting = m->pmix.waiting;

    if (attempt != m->pmix.asked)
        return;
    if (env == NULL) {
        json_object *msg = member_message("no_pmix");

        /* Reported once, and not by every node: most programs never miss PMIx. If a program misses
         * it, the leader reports that. */
        if (m->options->base && m->options->nodeid == 0 && !m->pmix.missed)
            log_info("%s: workers start without PMIx: %s", m->options->node, reason);
        else
            log_debug("%s: workers start without PMIx: %s", m->options->node, reason);
        m->pmix.missed = true;
        json_object_object_add(msg, "attempt", json_object_new_int(attempt));
        json_object_object_add(msg, "reason", json_object_new_string(reason));
        member_send(m, msg);
    }
    json_object_put(m->pmix.space);
    m->pmix.space = json_object_get(env);
    m->pmix.space_of = attempt;
    m->pmix.asked = 0;
    m->pmix.waiting = NULL;
    for (size_t i = 0; i < json_object_array_length(waiting); i++) {
        json_object *msg = json_object_array_get_idx(waiting, i);

        if (!member_pmix_waits(m, json_get_string(msg, "t"), msg))
            member_handle(m, msg);
    }
    json_object_put(waiting);
}

static void on_send(json_object *msg, void *arg)
{
    member_send(arg, msg);
}

/* The library lets the worker go on, and a program may expect that PMIx_Abort ends it. */
static void on_abort(int attempt, int rank, int status, const char *message, void *arg)
{
    struct member *m = arg;

    log_info("rank %d: PMIx_Abort with status %d%s%s", rank, status, message[0] != '\0' ? ": " : "",
             message);
    if (m->group != NULL && m->group->started == attempt)
        workers_abort(m->group->workers, rank, status);
}

static void on_joined(int attempt, int rank, void *arg)
{
    struct member *m = arg;

    if (m->group != NULL && m->group->started == attempt)
        workers_joined(m->group->workers, rank);
}

static void on_declare(int attempt, int rank, bool by_event, int signal, void *arg)
{
    struct member *m = arg;
    struct group *group = m->group != NULL && m->group->started == attempt ? m->group : m->next;

    double seconds = 0;

    if (group != NULL && group->started == attempt)
        seconds = workers_declare(group->workers, rank, by_event, signal);
    /* The other workers have been told while this worker was still starting; it has got a signal
     * that it may ignore. */
    if (seconds > 0 && group == m->group)
        member_pmix_alert(m, m->stop.kind, m->stop.reason, seconds);
}

static void on_complete(int attempt, int rank, void *arg)
{
    struct member *m = arg;

    /* Only if the worker was asked to save, by an event of PMIx or on its page: a program may save
     * at any time, and go on. */
    if (m->group != NULL && m->group->started == attempt &&
        (m->pmix.alerted == attempt || workers_told(m->group->workers, rank)))
        workers_complete(m->group->workers, rank);
}

void member_pmix_alert(struct member *m, const char *kind, const char *reason, double seconds)
{
    if (m->pmix.server == NULL)
        return;
    m->pmix.alerted = m->group->started;
    pmix_alert(m->pmix.server, m->pmix.alerted, kind, reason, seconds);
}

static bool on_log(int attempt, int rank, int fd, const char *text, size_t len, void *arg)
{
    struct member *m = arg;

    if (m->group != NULL && m->group->started == attempt)
        return group_log(m->group, rank, fd, text, len);
    return m->next != NULL && m->next->started == attempt &&
           group_log(m->next, rank, fd, text, len);
}

static void on_control(int attempt, json_object *msg, void *arg)
{
    member_job_control(arg, attempt, msg);
}

static const struct pmix_handlers handlers = {.space = on_space,
                                              .send = on_send,
                                              .abort = on_abort,
                                              .joined = on_joined,
                                              .declare = on_declare,
                                              .complete = on_complete,
                                              .log = on_log,
                                              .control = on_control};

void member_pmix_begin(struct member *m)
{
    struct pmix_options options = {
        .program = paths_of(PATHS_PMIX),
        .node = m->options->node,
        .nodeid = m->options->nodeid,
        .job = m->incarnation,
        .run_dir = m->run_dir,
    };

    m->pmix.server = pmix_create(m->loop, &options, &handlers, m);
    if (m->pmix.server != NULL)
        m->open_handles++;
}

static bool keep(struct member *m, json_object *msg)
{
    json_object_array_add(m->pmix.waiting, json_object_get(msg));
    return true;
}

static bool ask(struct member *m, json_object *msg)
{
    struct error err = {""};
    struct world *world = world_from_json(msg, &err);
    char **cpus = NULL;
    int64_t attempt, index;

    if (world == NULL || !json_get_int(msg, "attempt", 1, INT32_MAX, &attempt) ||
        !json_get_int(msg, "node_index", 0, world->node_count - 1, &index) ||
        attempt == m->pmix.space_of) {
        world_destroy(world);
        return false; /* known already, or wrong, which is said elsewhere */
    }
    if (m->options->bind)
        cpus = workers_cpus(world->nodes[index].slots, environ);
    m->pmix.asked = (int)attempt;
    m->pmix.waiting = json_object_new_array();
    keep(m, msg);
    pmix_world(m->pmix.server, world, (int)index, (int)attempt, m->job.cwd, cpus);
    strings_free(cpus);
    world_destroy(world);
    return true;
}

bool member_pmix_waits(struct member *m, const char *type, json_object *msg)
{
    if (m->pmix.server == NULL || type == NULL || m->ending)
        return false;
    if (strcmp(type, "finish") == 0 || strcmp(type, "release") == 0)
        return false; /* whatever else there was to do */
    if (m->pmix.asked != 0)
        return keep(m, msg);
    /* Live workers go from world to world; a namespace does not. */
    return (strcmp(type, "start") == 0 || strcmp(type, "prepare") == 0) &&
           !json_get_bool(msg, "live", false) && ask(m, msg);
}

char ***member_pmix_environment(struct member *m, int attempt)
{
    /* NULL: the workers start without PMIx. */
    bool known = m->pmix.space_of == attempt && json_object_is_type(m->pmix.space, json_type_array);
    size_t count = known ? json_object_array_length(m->pmix.space) : 0;
    char ***added = count > 0 ? calloc(count + 1, sizeof(*added)) : NULL;

    for (size_t i = 0; added != NULL && i < count; i++) {
        json_object *list = json_object_array_get_idx(m->pmix.space, i);
        size_t len = json_object_array_length(list);

        added[i] = calloc(len + 1, sizeof(**added));
        for (size_t k = 0; added[i] != NULL && k < len; k++)
            added[i][k] = strdup(json_object_get_string(json_object_array_get_idx(list, k)));
    }
    return added;
}

void member_pmix_free(char ***added)
{
    for (char ***each = added; each != NULL && *each != NULL; each++)
        strings_free(*each);
    free(added);
}

void member_pmix_gone(struct member *m, int attempt)
{
    member_job_control_gone(m, attempt);
    if (m->pmix.server != NULL)
        pmix_world_gone(m->pmix.server, attempt);
}

void member_pmix_forget(struct member *m)
{
    m->pmix.asked = 0;
    json_object_put(m->pmix.waiting);
    m->pmix.waiting = NULL;
}

void member_pmix_end(struct member *m)
{
    struct pmix *pmix = m->pmix.server;

    m->pmix.server = NULL;
    member_job_control_gone(m, -1);
    m->pmix.asked = 0;
    json_object_put(m->pmix.waiting);
    m->pmix.waiting = NULL;
    json_object_put(m->pmix.space);
    m->pmix.space = NULL;
    if (pmix != NULL)
        pmix_destroy(pmix, member_piece_gone, m);
}
