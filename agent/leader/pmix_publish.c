/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What processes have published for each other, kept by the leader (lib/publish.h), also longer
 * than their world where the program wants that. The owner of data is the world and the member that
 * sends it, not what the message says. A lookup that waits is answered when enough has been
 * published, or when its time is over. It is not answered when its member or its world goes: the
 * process that asked is gone, too. */
#include "lib/publish.h"

#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/pmix_world.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/pieces.h"

#define TIMEOUT_MAX INT32_MAX /* seconds */
/* Bytes on their way to a node; far below what ends a link. */
#define UNREAD_MAX ((size_t)16 << 20)
#define UNREAD_MIN 4096 /* in one answer: less does not count */

/* One that waits, if only for its turn. */
struct lookup {
    struct leader *leader;
    int attempt;
    struct leader_member *member;
    json_object *question;
    double until; /* 0: for ever */
    struct lookup *next;
};

struct pmix_publish {
    struct publish *published; /* NULL: nothing yet */
    struct lookup *waiting;    /* lookups, in no order */
    uv_timer_t timer;          /* the next of these has waited long enough */
};

/* ---- messages -------------------------------------------------------------------------------- */

static int word_of(json_object *msg, const char *name, const char *const *words, int count)
{
    const char *word = json_get_string(msg, name);

    for (int i = 0; word != NULL && i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return -1;
}

static int range_of(json_object *msg)
{
    static const char *const words[] = {[PUBLISH_PROCESS] = "process",
                                        [PUBLISH_NODE] = "node",
                                        [PUBLISH_WORLD] = "world",
                                        [PUBLISH_JOB] = "job"};

    return word_of(msg, "range", words, 4);
}

static int until_of(json_object *msg)
{
    static const char *const words[] = {[PUBLISH_UNTIL_READ] = "read",
                                        [PUBLISH_UNTIL_PROCESS] = "process",
                                        [PUBLISH_UNTIL_WORLD] = "world",
                                        [PUBLISH_UNTIL_JOB] = "job"};

    return word_of(msg, "until", words, 4);
}

/* The process that asks. False: the member has none of that rank. */
static bool process_of(const struct pmix_world *pmix_world, const struct leader_member *m,
                       json_object *msg, struct publish_process *process)
{
    const struct world *world = pmix_world->next ? change_next(pmix_world->leader->change)->world
                                                 : change_world(pmix_world->leader->change);
    int place = pmix_world_place(pmix_world, m), first;
    int64_t rank;

    if (world == NULL || place >= world->node_count)
        return false;
    first = world_first_rank(world, place);
    if (!json_get_int(msg, "rank", first, first + world->nodes[place].slots - 1, &rank))
        return false;
    *process = (struct publish_process){pmix_world->relay->name, (int)rank, m->id};
    return true;
}

/* A process, or a tool on the member's node. */
static bool asker_of(const struct pmix_world *pmix_world, const struct leader_member *m,
                     json_object *msg, struct publish_process *asker)
{
    if (!json_get_bool(msg, "tool", false))
        return process_of(pmix_world, m, msg, asker);
    *asker = (struct publish_process){pmix_world->relay->name, PUBLISH_TOOL, m->id};
    return true;
}

/* Its keys are new (strings_free), NULL: there are none. */
static bool question_of(const struct pmix_world *pmix_world, const struct leader_member *m,
                        json_object *msg, struct publish_question *question, char ***keys)
{
    int range = range_of(msg);

    *keys = NULL;
    *question = (struct publish_question){.range = (enum publish_range)range};
    if (range < 0 || !asker_of(pmix_world, m, msg, &question->asker))
        return false;
    *keys = json_get_strings(msg, "keys", PUBLISH_KEYS_MAX);
    while (*keys != NULL && (*keys)[question->count] != NULL)
        question->count++;
    question->keys = (const char *const *)*keys;
    return true;
}

/* NULL: it has been done. */
static json_object *error_answer(const char *error)
{
    json_object *answer = json_object_new_object();

    if (error != NULL)
        json_object_object_add(answer, "error", json_object_new_string(error));
    return answer;
}

static void answer_with(const struct pmix_world *pmix_world, struct leader_member *m,
                        json_object *msg, const char *error)
{
    pmix_world_answer(pmix_world, m, msg, error_answer(error));
}

static const char *word_for(enum publish_result result)
{
    switch (result) {
    case PUBLISH_LARGE:
        return "large";
    case PUBLISH_DUPLICATE:
        return "duplicate";
    case PUBLISH_BAD:
        return "bad";
    case PUBLISH_NO_MEMORY:
        return "memory";
    default:
        return NULL;
    }
}

static struct publish *store(struct leader *leader)
{
    if (leader->pmix_publish->published == NULL)
        leader->pmix_publish->published = publish_create();
    return leader->pmix_publish->published;
}

/* ---- lookups that wait ----------------------------------------------------------------------- */

static void lookup_free(struct lookup *lookup)
{
    struct lookup **at = &lookup->leader->pmix_publish->waiting;

    while (*at != lookup)
        at = &(*at)->next;
    *at = lookup->next;
    json_object_put(lookup->question);
    free(lookup);
}

static struct pmix_world pmix_world_of(const struct lookup *lookup)
{
    struct leader *leader = lookup->leader;
    bool next = leader->relay.attempt != lookup->attempt;

    return (struct pmix_world){leader, next ? &leader->next_relay : &leader->relay, next};
}

static void on_time(uv_timer_t *timer);

static void set_timer(struct leader *leader)
{
    double now = leader_now(leader), first = -1; /* < 0: never */

    for (const struct lookup *l = leader->pmix_publish->waiting; l != NULL; l = l->next) {
        if (l->until > 0 && (first < 0 || l->until < first))
            first = l->until;
    }
    if (uv_is_closing((uv_handle_t *)&leader->pmix_publish->timer))
        return;
    if (first < 0)
        uv_timer_stop(&leader->pmix_publish->timer);
    else
        uv_timer_start(&leader->pmix_publish->timer, on_time,
                       first > now ? (uint64_t)((first - now) * 1000) + 1 : 0, 0);
}

struct found {
    json_object *array;
    size_t bytes;
};

static void add_found(const struct publish_process *owner, const struct publish_datum *datum,
                      void *arg)
{
    json_object *item = json_object_new_object();
    struct found *found = arg;

    json_object_object_add(item, "key", json_object_new_string(datum->key));
    json_object_object_add(item, "world", json_object_new_string(owner->world));
    json_object_object_add(item, "rank", json_object_new_int(owner->rank));
    piece_set(item, datum->data, datum->len);
    json_object_array_add(found->array, item);
    found->bytes += datum->len;
}

/* NULL: its member has no place in that world any more. */
static size_t *unread_of(const struct lookup *lookup)
{
    struct pmix_world pmix_world = pmix_world_of(lookup);
    int place = pmix_world_place(&pmix_world, lookup->member);

    return place >= 0 && place < pmix_world.relay->node_count ? &pmix_world.relay->unread[place]
                                                              : NULL;
}

/* All that there is of what is asked for. */
static json_object *find(const struct lookup *lookup, const struct publish_question *question)
{
    struct found found = {.array = json_object_new_array()};
    json_object *answer = json_object_new_object();
    int count = publish_read(lookup->leader->pmix_publish->published, question, add_found, &found);

    if (count <= 0) {
        json_object_put(found.array);
        json_object_object_add(answer, "error",
                               json_object_new_string(count < 0 ? "large" : "nothing"));
        return answer;
    }
    json_object_object_add(answer, "found", found.array);
    if (found.bytes >= UNREAD_MIN && unread_of(lookup) != NULL) {
        json_object_object_add(answer, "bytes", json_object_new_int64((int64_t)found.bytes));
        *unread_of(lookup) += found.bytes;
    }
    return answer;
}

/* Answer it; sending may cost us the member, and with it its other lookups. */
static void answer_lookup(struct lookup *lookup, json_object *answer)
{
    struct pmix_world pmix_world = pmix_world_of(lookup);
    struct leader_member *m = lookup->member;
    json_object *question = json_object_get(lookup->question);

    publish_unwait(pmix_world.leader->pmix_publish->published, lookup);
    lookup_free(lookup);
    pmix_world_answer(&pmix_world, m, question, answer);
    json_object_put(question);
}

static bool has_room(void *cookie)
{
    const size_t *unread = unread_of(cookie);

    return unread == NULL || *unread < UNREAD_MAX;
}

static void answer_ready(struct leader *leader)
{
    struct publish_question question;
    struct lookup *lookup;

    while ((lookup = publish_ready(leader->pmix_publish->published, has_room, &question)) != NULL)
        answer_lookup(lookup, find(lookup, &question));
    set_timer(leader);
}

static struct lookup *find_late(const struct leader *leader)
{
    struct lookup *l = leader->pmix_publish->waiting;

    while (l != NULL && (l->until <= 0 || l->until > leader_now(leader)))
        l = l->next;
    return l;
}

static void on_time(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    struct lookup *late;

    while ((late = find_late(leader)) != NULL)
        answer_lookup(late, error_answer("timeout"));
    set_timer(leader);
}

static enum publish_result wait_for(const struct pmix_world *pmix_world, struct leader_member *m,
                                    json_object *msg, const struct publish_question *question,
                                    int needed)
{
    struct leader *leader = pmix_world->leader;
    struct lookup *lookup = calloc(1, sizeof(*lookup));
    enum publish_result result;
    int64_t seconds = 0;

    if (lookup == NULL)
        return PUBLISH_NO_MEMORY;
    json_get_int(msg, "timeout", 0, TIMEOUT_MAX, &seconds);
    *lookup = (struct lookup){
        .leader = leader,
        .attempt = pmix_world->relay->attempt,
        .member = m,
        .question = json_object_get(msg),
        .until = seconds > 0 ? leader_now(leader) + (double)seconds : 0,
        .next = leader->pmix_publish->waiting,
    };
    leader->pmix_publish->waiting = lookup;
    result = publish_wait(leader->pmix_publish->published, question, needed, lookup, NULL);
    if (result != PUBLISH_DONE)
        lookup_free(lookup);
    return result;
}

/* ---- questions ------------------------------------------------------------------------------- */

static void free_data(struct publish_datum *data, char **bytes, int count)
{
    for (int i = 0; bytes != NULL && i < count; i++)
        free(bytes[i]);
    free(bytes);
    free(data);
}

/* "data": [{key, data}…]. */
static enum publish_result put(const struct pmix_world *pmix_world, struct leader_member *m,
                               json_object *msg)
{
    json_object *array = NULL;
    int range = range_of(msg), until = until_of(msg), count, good = 0;
    struct publish_process owner;
    struct publish_datum *data;
    struct error err = {""};
    enum publish_result result = PUBLISH_BAD;
    char **bytes;

    json_object_object_get_ex(msg, "items", &array);
    if (range < 0 || until < 0 || !process_of(pmix_world, m, msg, &owner) ||
        !json_object_is_type(array, json_type_array) ||
        json_object_array_length(array) > PUBLISH_KEYS_MAX)
        return PUBLISH_BAD;
    count = (int)json_object_array_length(array);
    data = calloc((size_t)count + 1, sizeof(*data));
    bytes = calloc((size_t)count + 1, sizeof(*bytes));
    while (data != NULL && bytes != NULL && good < count) {
        json_object *item = json_object_array_get_idx(array, (size_t)good);

        data[good].key = json_get_string(item, "key");
        if (piece_data(item, &bytes[good], &data[good].len) != 0)
            break;
        data[good].data = bytes[good];
        good++;
    }
    if (data == NULL || bytes == NULL)
        result = PUBLISH_NO_MEMORY;
    else if (good == count)
        result = publish_put(pmix_world->leader->pmix_publish->published, &owner,
                             (enum publish_range)range, (enum publish_until)until, data, count,
                             &err);
    if (err.text[0] != '\0')
        log_debug("job %u: rank %d: publish: %s", pmix_world->leader->options->job, owner.rank,
                  err.text);
    free_data(data, bytes, count);
    return result;
}

void pmix_publish_on_publish(const struct pmix_world *pmix_world, struct leader_member *m,
                             json_object *msg)
{
    struct leader *leader = pmix_world->leader;
    enum publish_result result = store(leader) != NULL ? put(pmix_world, m, msg)
                                                       : PUBLISH_NO_MEMORY;

    answer_with(pmix_world, m, msg, word_for(result));
    if (result == PUBLISH_DONE)
        answer_ready(leader);
}

void pmix_publish_on_lookup(const struct pmix_world *pmix_world, struct leader_member *m,
                            json_object *msg)
{
    struct publish_question question;
    enum publish_result result = PUBLISH_BAD;
    int64_t needed = 0;
    bool waits = json_get_int(msg, "wait", 0, PUBLISH_KEYS_MAX, &needed);
    char **keys = NULL;

    if (store(pmix_world->leader) == NULL)
        result = PUBLISH_NO_MEMORY;
    else if (question_of(pmix_world, m, msg, &question, &keys))
        result = wait_for(pmix_world, m, msg, &question,
                          waits && needed == 0 ? PUBLISH_ALL : (int)needed);
    strings_free(keys);
    if (result == PUBLISH_DONE)
        answer_ready(pmix_world->leader);
    else
        answer_with(pmix_world, m, msg, word_for(result));
}

/* A node has read what it was answered. */
void pmix_publish_on_taken(const struct pmix_world *pmix_world, struct leader_member *m,
                           json_object *msg)
{
    size_t *unread = &pmix_world->relay->unread[pmix_world_place(pmix_world, m)];
    int64_t bytes;

    if (!json_get_int(msg, "bytes", 0, (int64_t)*unread, &bytes))
        return;
    *unread -= (size_t)bytes;
    if (pmix_world->leader->pmix_publish->published != NULL)
        answer_ready(pmix_world->leader);
}

void pmix_publish_on_unpublish(const struct pmix_world *pmix_world, struct leader_member *m,
                               json_object *msg)
{
    struct publish_question question;
    char **keys;
    const char *error = "bad";

    if (store(pmix_world->leader) != NULL && question_of(pmix_world, m, msg, &question, &keys)) {
        bool all = json_get_bool(msg, "all", false);

        if (all == (question.count == 0))
            error = publish_remove(pmix_world->leader->pmix_publish->published, &question) > 0 ||
                            all
                        ? NULL
                        : "nothing";
        strings_free(keys);
    }
    answer_with(pmix_world, m, msg, error);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void drop(void *cookie)
{
    lookup_free(cookie);
}

void pmix_publish_rank_gone(struct leader *leader, int rank)
{
    struct publish_process process = {.world = leader->relay.name, .rank = rank};

    if (leader->pmix_publish->published != NULL)
        publish_process_gone(leader->pmix_publish->published, &process, drop);
}

void pmix_publish_relay_gone(struct leader *leader, const struct pmix_relay *relay)
{
    if (leader->pmix_publish->published != NULL)
        publish_world_gone(leader->pmix_publish->published, relay->name, drop);
}

void pmix_publish_member_gone(struct leader *leader, const struct leader_member *m)
{
    if (leader->pmix_publish->published != NULL)
        publish_node_gone(leader->pmix_publish->published, m->id, drop);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct pmix_publish *pmix_publish_create(void)
{
    return calloc(1, sizeof(struct pmix_publish));
}

void pmix_publish_open(struct leader *leader)
{
    leader_timer_init(leader, &leader->pmix_publish->timer);
}

void pmix_publish_close(struct leader *leader)
{
    leader_timer_close(&leader->pmix_publish->timer);
}

void pmix_publish_destroy(struct pmix_publish *publish)
{
    if (publish == NULL)
        return;
    while (publish->waiting != NULL)
        lookup_free(publish->waiting);
    publish_destroy(publish->published);
    free(publish);
}
