/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the nodes' PMIx servers have to say to each other goes through the leader: collectives, and
 * questions from one node to another (doc/internals/pmix.md). Each world has its own relay, also a
 * world whose workers have been started early. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/pmix_query.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/pmix_world.h"
#include "agent/leader/post.h"
#include "agent/leader/roster.h"
#include "agent/leader/world_store.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/pieces.h"

/* All goes to each node, and a connection in which much more waits than this is given up. */
#define COLLECTIVE_MAX ((size_t)24 << 20)

int pmix_relay_begin(struct leader *leader, struct pmix_relay *relay, const struct world *world,
                     int attempt)
{
    relay->gather = gather_create(world->node_count);
    relay->unread = calloc((size_t)world->node_count, sizeof(*relay->unread));
    relay->attempt = attempt;
    relay->generation = world->generation;
    relay->node_count = world->node_count;
    snprintf(relay->name, sizeof(relay->name), "%u.%u.%d.%d", leader->options->job,
             leader->options->restarts, world->generation, attempt);
    if (relay->gather != NULL && relay->unread != NULL && world_store_begin(leader, relay) == 0)
        return 0;
    pmix_relay_end(leader, relay);
    return -1;
}

void pmix_relay_end(struct leader *leader, struct pmix_relay *relay)
{
    world_store_end(leader, relay);
    pmix_publish_relay_gone(leader, relay);
    gather_destroy(relay->gather);
    free(relay->unread);
    *relay = (struct pmix_relay){0};
}

/* ---- collectives ----------------------------------------------------------------------------- */

struct audience {
    const struct pmix_world *pmix_world;
    const int *nodes;
    int count;
};

static void send_to_audience(json_object *piece, void *arg)
{
    const struct audience *audience = arg;

    for (int i = 0; i < audience->count; i++) {
        struct leader_member *m = pmix_world_member(audience->pmix_world, audience->nodes[i]);

        if (m != NULL)
            leader_send(m, json_object_get(piece));
    }
    json_object_put(piece);
}

/* Tell all nodes that take part, and forget the collective. Without data: error is "lost" or
 * "refused", or status is PMIx's. */
static void finish(const struct pmix_world *pmix_world, const char *key, const char *data,
                   size_t len, const char *error, int64_t status)
{
    struct audience audience = {.pmix_world = pmix_world};
    json_object *msg = pmix_world_message(pmix_world, "gathered");

    audience.nodes = gather_nodes(pmix_world->relay->gather, key, &audience.count);
    json_object_object_add(msg, "key", json_object_new_string(key));
    if (error != NULL)
        json_object_object_add(msg, "error", json_object_new_string(error));
    if (status != 0)
        json_object_object_add(msg, "status", json_object_new_int64(status));
    if (pieces_send(msg, data, len, send_to_audience, &audience) != 0)
        log_error("job %u: a collective of %zu bytes: out of memory",
                  pmix_world->leader->options->job, len);
    gather_remove(pmix_world->relay->gather, key);
}

/* All have given their parts: everybody gets all of them, one after the other. */
static void complete(const struct pmix_world *pmix_world, const char *key)
{
    const struct gather *gather = pmix_world->relay->gather;
    int count;
    const int *nodes = gather_nodes(gather, key, &count);
    size_t total = 0, len, at = 0;
    char *data;

    for (int i = 0; i < count; i++) {
        gather_part(gather, key, nodes[i], &len);
        total += len;
    }
    data = total <= COLLECTIVE_MAX ? malloc(total + 1) : NULL;
    if (data == NULL) {
        log_error("job %u: a collective of %zu bytes is refused: at most %zu MiB",
                  pmix_world->leader->options->job, total, COLLECTIVE_MAX >> 20);
        finish(pmix_world, key, NULL, 0, "refused", 0);
        return;
    }
    for (int i = 0; i < count; i++) {
        const void *part = gather_part(gather, key, nodes[i], &len);

        if (len > 0)
            memcpy(data + at, part, len);
        at += len;
    }
    finish(pmix_world, key, data, total, NULL, 0);
    free(data);
}

/* The array of numbers under "nodes", NULL: it is something else. */
static int *read_nodes(json_object *msg, int max, int *count)
{
    json_object *array = NULL;
    int *nodes;

    json_object_object_get_ex(msg, "nodes", &array);
    if (!json_object_is_type(array, json_type_array) || json_object_array_length(array) == 0 ||
        json_object_array_length(array) > (size_t)max)
        return NULL;
    *count = (int)json_object_array_length(array);
    nodes = calloc((size_t)*count, sizeof(*nodes));
    for (int i = 0; nodes != NULL && i < *count; i++)
        nodes[i] = json_object_get_int(json_object_array_get_idx(array, (size_t)i));
    return nodes;
}

/* Processes wait for each other, and those of one node cannot come. Their program will not notice
 * by itself. */
static void begin_anew(const struct pmix_world *pmix_world, const struct leader_member *m)
{
    struct leader *leader = pmix_world->leader;

    if (pmix_world->next) {
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_UNPREPARED,
                                               .member = m->id,
                                               .attempt = pmix_world->relay->attempt,
                                               .text = pmix_world->relay->without});
    } else {
        post_fail(leader, pmix_world->relay->without);
    }
}

/* That node's workers have started without PMIx. Most programs never miss it. */
void pmix_relay_no_pmix(const struct pmix_world *pmix_world, struct leader_member *m,
                        json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");

    snprintf(pmix_world->relay->without, sizeof(pmix_world->relay->without),
             "node %s has no PMIx: %s", m->part->node, reason != NULL ? reason : "unknown");
    if (gather_with(pmix_world->relay->gather, pmix_world_place(pmix_world, m)) != NULL)
        begin_anew(pmix_world, m);
}

void pmix_relay_gather(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *msg)
{
    const char *key = json_get_string(msg, "key");
    struct error err = {"nodes or data that cannot be understood"};
    enum gather_result result = GATHER_REFUSED;
    int count = 0;
    int *nodes = read_nodes(msg, pmix_world->relay->node_count, &count);
    char *data = NULL;
    size_t len = 0;

    if (key != NULL && nodes != NULL && piece_data(msg, &data, &len) == 0)
        result = gather_add(pmix_world->relay->gather, key, nodes, count,
                            pmix_world_place(pmix_world, m), data, len,
                            json_get_bool(msg, "last", true), &err);
    free(data);
    free(nodes);
    if (result == GATHER_WAITING && pmix_world->relay->without[0] != '\0') {
        begin_anew(pmix_world, m);
    } else if (result == GATHER_COMPLETE) {
        complete(pmix_world, key);
    } else if (result == GATHER_REFUSED && key != NULL) {
        json_object *answer = pmix_world_message(pmix_world, "gathered");

        log_debug("job %u: node %s: collective %s: %s", pmix_world->leader->options->job,
                  m->part->node, key, err.text);
        json_object_object_add(answer, "key", json_object_new_string(key));
        json_object_object_add(answer, "error", json_object_new_string("refused"));
        leader_send(m, answer);
    }
}

/* One of the nodes gives up, as a rule because of its program's own time limit. */
void pmix_relay_ungather(const struct pmix_world *pmix_world, struct leader_member *m,
                         json_object *msg)
{
    const char *key = json_get_string(msg, "key");
    int64_t status;

    /* Only who takes part, and has come. */
    if (key != NULL && json_get_int(msg, "status", INT32_MIN, -1, &status) &&
        gather_has_given(pmix_world->relay->gather, key, pmix_world_place(pmix_world, m)))
        finish(pmix_world, key, NULL, 0, NULL, status);
}

/* ---- from one node to another ---------------------------------------------------------------- */

void pmix_relay_relay(const struct pmix_world *pmix_world, struct leader_member *m,
                      json_object *msg)
{
    struct leader_member *to = NULL;
    int64_t place = -1;

    if (json_get_int(msg, "to", 0, pmix_world->relay->node_count - 1, &place))
        to = pmix_world_member(pmix_world, (int)place);
    if (to != NULL && to->link != NULL) {
        json_object_object_add(msg, "from", json_object_new_int(pmix_world_place(pmix_world, m)));
        leader_send(to, json_object_get(msg));
        return;
    }
    /* Back to who asks: nobody else will answer. */
    json_object_object_add(msg, "error", json_object_new_string("lost"));
    json_object_object_add(msg, "what", json_object_new_string("lost"));
    json_object_object_add(msg, "from", json_object_new_int64(place));
    leader_send(m, json_object_get(msg));
}

/* ---- questions to the leader ----------------------------------------------------------------- */

void pmix_relay_ask(const struct pmix_world *pmix_world, struct leader_member *m, json_object *msg)
{
    static const struct {
        const char *what;
        void (*handle)(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *msg);
    } table[] = {
        {"allocate", allocation_on_question}, {"state", pmix_query_answer},
        {"publish", pmix_publish_on_publish}, {"lookup", pmix_publish_on_lookup},
        {"taken", pmix_publish_on_taken},     {"unpublish", pmix_publish_on_unpublish},
    };
    const char *what = json_get_string(msg, "what");
    json_object *answer;

    for (size_t i = 0; what != NULL && i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(what, table[i].what) == 0) {
            table[i].handle(pmix_world, m, msg);
            return;
        }
    answer = json_object_new_object();
    json_object_object_add(answer, "error", json_object_new_string("unknown"));
    pmix_world_answer(pmix_world, m, msg, answer);
}

/* ---- which world ----------------------------------------------------------------------------- */

bool pmix_relay_find(struct leader *leader, const struct leader_member *m, json_object *msg,
                     struct pmix_world *pmix_world)
{
    int64_t attempt;

    *pmix_world = (struct pmix_world){.leader = leader};
    if (!json_get_int(msg, "attempt", 1, INT32_MAX, &attempt))
        return false;
    pmix_world->next = attempt == leader->next_relay.attempt;
    pmix_world->relay = pmix_world->next ? &leader->next_relay : &leader->relay;
    return attempt == pmix_world->relay->attempt && pmix_world_place(pmix_world, m) >= 0;
}

/* ---- members that are gone ------------------------------------------------------------------- */

static void fail_all(struct pmix_world *pmix_world, const struct leader_member *m)
{
    const char *key;
    char *copy;

    if (pmix_world->relay->gather == NULL || pmix_world_place(pmix_world, m) < 0)
        return;
    while ((key = gather_with(pmix_world->relay->gather, pmix_world_place(pmix_world, m))) !=
           NULL) {
        copy = strdup(key);
        if (copy == NULL)
            return;
        finish(pmix_world, copy, NULL, 0, "lost", 0);
        free(copy);
    }
}

void pmix_relay_member_gone(struct leader *leader, const struct leader_member *m)
{
    struct pmix_world now = {.leader = leader, .relay = &leader->relay};
    struct pmix_world next = {.leader = leader, .relay = &leader->next_relay, .next = true};

    fail_all(&now, m);
    fail_all(&next, m);
    pmix_publish_member_gone(leader, m);
    world_store_member_gone(leader, m);
}
