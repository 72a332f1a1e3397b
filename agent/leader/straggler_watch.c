/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workers that are slower than the others (straggler_watch.h).
 *
 * A worker that is found is told of once its node has said what may be the cause, or has not for a
 * while. With --elastic-straggler=replace its node is left out of this job for good, and another
 * one is asked for. A node of the base cannot be given back: at MAX none takes its place. If the
 * same rank is slow again on another node, it is the work of this rank that takes longer: no
 * further node is replaced. */
#include "agent/leader/straggler_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/exclude.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/straggler.h"

#define HEALTH_WAIT 5.0 /* seconds for a node to say what the cause is */
#define SUSPECTS    16  /* that are told of at once; more are no exception */
#define REPLACED    4   /* nodes that a leader gives back for being slow */
#define WORD_BYTES  16
#define TEXT_BYTES  128

struct suspect {
    int rank;
    char node[WORLD_NAME_MAX + 1];
    double factor, since; /* on the leader's clock */
    char cause[WORD_BYTES], why[TEXT_BYTES];
    bool heard, told;
};

struct straggler_watch {
    struct straggler *detector;
    int generation; /* that the detector knows; 0: none */
    struct suspect suspects[SUSPECTS];
    int count;
    /* Replaced so far; the ranks that they had. */
    int replaced, ranks[REPLACED];
};

struct straggler_watch *straggler_watch_create(void)
{
    struct straggler_watch *watch = calloc(1, sizeof(*watch));

    if (watch != NULL && (watch->detector = straggler_create()) == NULL) {
        free(watch);
        return NULL;
    }
    return watch;
}

void straggler_watch_destroy(struct straggler_watch *watch)
{
    if (watch == NULL)
        return;
    straggler_destroy(watch->detector);
    free(watch);
}

static bool is_watched(const struct leader *leader)
{
    return leader->options->policy->straggler != POLICY_STRAGGLER_OFF &&
           change_phase(leader->change) == CHANGE_RUNNING && change_all_stepping(leader->change) &&
           change_world(leader->change) != NULL;
}

/* The detector knows the present world. */
static bool follow_world(struct leader *leader)
{
    struct straggler_watch *watch = leader->watches.straggler;
    const struct world *world = change_world(leader->change);

    if (watch->generation == world->generation)
        return true;
    watch->count = 0;
    watch->generation = 0;
    if (straggler_world(watch->detector, world_size(world), leader_now(leader)) != 0)
        return false;
    watch->generation = world->generation;
    return true;
}

/* ---- what members say ------------------------------------------------------------------------ */

void straggler_watch_beat(struct leader *leader, struct leader_member *m, json_object *beat)
{
    json_object *own = NULL;
    int64_t gen;
    int first;

    if (!is_watched(leader) || m->part->place < 0 ||
        !json_get_int(beat, "gen", 1, INT32_MAX, &gen) ||
        gen != change_generation(leader->change) || !json_object_object_get_ex(beat, "own", &own) ||
        !json_object_is_type(own, json_type_array) ||
        json_object_array_length(own) != 2 * (size_t)m->part->slots || !follow_world(leader))
        return;
    first = world_first_rank(change_world(leader->change), m->part->place);
    for (int i = 0; i < m->part->slots; i++) {
        int64_t steps = json_object_get_int64(json_object_array_get_idx(own, 2 * (size_t)i)),
                us = json_object_get_int64(json_object_array_get_idx(own, 2 * (size_t)i + 1));

        if (steps >= 0 && us >= 0)
            straggler_heard(leader->watches.straggler->detector, first + i, (uint64_t)steps,
                            (double)us / 1e6);
    }
}

/* A word of lib/node_health.h goes into labels of metrics: nothing else does. */
static const char *cause_of(const char *said)
{
    static const char *const words[] = {"throttled", "memory", "network", "io", "cpu"};

    for (size_t i = 0; said != NULL && i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], said) == 0)
            return words[i];
    return "unknown";
}

void straggler_watch_health(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct straggler_watch *watch = leader->watches.straggler;
    const char *why = json_get_string(msg, "why");

    for (int i = 0; i < watch->count; i++) {
        struct suspect *s = &watch->suspects[i];

        if (s->told || strcmp(s->node, m->part->node) != 0)
            continue;
        snprintf(s->cause, sizeof(s->cause), "%s", cause_of(json_get_string(msg, "cause")));
        snprintf(s->why, sizeof(s->why), "%s", why != NULL ? why : "");
        error_clean(s->why);
        s->heard = true;
    }
}

/* ---- findings -------------------------------------------------------------------------------- */

static struct leader_member *member_of_rank(const struct leader *leader, int rank)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        int first;

        if (m->part->place < 0)
            continue;
        first = world_first_rank(change_world(leader->change), m->part->place);
        if (rank >= first && rank < first + m->part->slots)
            return m;
    }
    return NULL;
}

static const struct suspect *known(const struct suspect *list, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (list[i].rank == rank)
            return &list[i];
    return NULL;
}

static void say_well(const struct leader *leader, const struct suspect *s)
{
    if (s->told && known(leader->watches.straggler->suspects, leader->watches.straggler->count,
                         s->rank) == NULL)
        log_info("job %u: rank %d on %s is as fast as the others again", leader->options->job,
                 s->rank, s->node);
}

/* Other ranks are slow than before. */
static void take_findings(struct leader *leader)
{
    struct straggler_watch *watch = leader->watches.straggler;
    struct suspect before[SUSPECTS];
    const struct straggler_finding *found;
    int count = watch->count;

    memcpy(before, watch->suspects, sizeof(before));
    watch->count = 0;
    for (int k = 0;
         watch->count < SUSPECTS && (found = straggler_found(watch->detector, k)) != NULL; k++) {
        const struct suspect *same = known(before, count, found->rank);
        struct leader_member *m = member_of_rank(leader, found->rank);
        struct suspect *s = &watch->suspects[watch->count];

        if (m == NULL)
            continue;
        watch->count++;
        if (same != NULL) {
            *s = *same;
            continue;
        }
        *s = (struct suspect){.rank = found->rank, .since = found->since, .cause = "unknown"};
        snprintf(s->node, sizeof(s->node), "%s", m->part->node);
        leader_send(m, leader_message("health", -1));
    }
    for (int i = 0; i < count; i++)
        say_well(leader, &before[i]);
}

static bool was_replaced(const struct straggler_watch *watch, int rank)
{
    for (int i = 0; i < watch->replaced; i++)
        if (watch->ranks[i] == rank)
            return true;
    return false;
}

/* What is done about it, in words. */
static const char *decide(struct leader *leader, const struct suspect *s)
{
    struct straggler_watch *watch = leader->watches.straggler;
    struct leader_member *m = member_of_rank(leader, s->rank);

    if (leader->options->policy->straggler != POLICY_STRAGGLER_REPLACE || m == NULL)
        return "";
    if (m->slow)
        return ""; /* of another rank on it */
    if (was_replaced(watch, s->rank))
        return "; this rank was slow on another node, too: its node stays";
    if (watch->replaced == REPLACED)
        return "; enough nodes have been replaced: it stays";
    watch->ranks[watch->replaced++] = s->rank;
    exclude_slow(leader, m);
    if (!m->part->base)
        return "; another node takes its place";
    return exclude_member(leader, m) ? "; its node, of the base, is left out"
                                     : "; the job cannot do without its node for now";
}

static void tell(struct leader *leader, struct suspect *s)
{
    char text[2 * TEXT_BYTES + WORLD_NAME_MAX + 64];

    s->told = true;
    snprintf(text, sizeof(text), "rank %d on %s needs %.1f times as long for a step as the others",
             s->rank, s->node, s->factor);
    if (s->why[0] != '\0')
        snprintf(text + strlen(text), sizeof(text) - strlen(text), ": %s", s->why);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", decide(leader, s));
    log_info("job %u: %s", leader->options->job, text);
    report_straggler(leader, text);
}

void straggler_watch(struct leader *leader)
{
    struct straggler_watch *watch = leader->watches.straggler;
    const struct straggler_finding *found;
    double now = leader_now(leader);

    if (!is_watched(leader) || watch->generation != change_generation(leader->change))
        return;
    if (straggler_look(watch->detector, now))
        take_findings(leader);
    for (int k = 0; (found = straggler_found(watch->detector, k)) != NULL; k++)
        for (int i = 0; i < watch->count; i++)
            if (watch->suspects[i].rank == found->rank)
                watch->suspects[i].factor = found->factor;
    for (int i = 0; i < watch->count; i++) {
        struct suspect *s = &watch->suspects[i];

        if (!s->told && (s->heard || now - s->since >= HEALTH_WAIT))
            tell(leader, s);
    }
}

json_object *straggler_watch_json(const struct leader *leader)
{
    const struct straggler_watch *watch = leader->watches.straggler;
    json_object *array = json_object_new_array();

    if (!is_watched(leader) || watch->generation != change_generation(leader->change))
        return array; /* of a world that is over */
    for (int i = 0; i < watch->count; i++) {
        const struct suspect *s = &watch->suspects[i];
        json_object *obj = json_object_new_object();

        json_object_object_add(obj, "rank", json_object_new_int(s->rank));
        json_object_object_add(obj, "node", json_object_new_string(s->node));
        json_object_object_add(obj, "factor", json_object_new_double(s->factor));
        json_object_object_add(obj, "cause", json_object_new_string(s->cause));
        json_object_object_add(obj, "why", json_object_new_string(s->why));
        json_object_object_add(obj, "since", json_object_new_double(leader_unix(leader, s->since)));
        json_object_array_add(array, obj);
    }
    return array;
}
