/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes that are left out, and failures that count (lib/recovery.h).
 *
 * A node is left out for a while when it was lost or when workers have failed there again and
 * again, and for as long as Slurm takes it out of service. The world goes on without such nodes if
 * that makes an allowed size. An extension on such a node goes back, and new extensions exclude it.
 * A node of the base stays in the job, unused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/recovery.h"
#include "lib/sizes.h"
#include "lib/text.h"

#define SAVE_AT    0.5 /* of the time that a node has left; the rest is for workers to save in */
#define LEFT_LEAST 1.0 /* seconds, for what has no time left: 0 is not known */

struct exclude {
    struct recovery *recovery;
    /* Nodes that a cloud takes, in whose place no others have been asked for yet. */
    int taken;
    /* That nobody announces the end of nodes, or gives advice, has been said. */
    bool silence_said[2];
};

static bool is_there(const struct leader_member *m)
{
    return m->link != NULL && !change_is_left(m->part) && !m->part->released;
}

static bool is_suspect(const struct leader *leader, const struct leader_member *m)
{
    return m->unwell || m->part->reclaimed ||
           recovery_avoids(leader->exclude->recovery, m->part->node, leader_now(leader)) > 0;
}

/* Is there an allowed size without all of them? */
static bool enough_without(const struct leader *leader)
{
    int left = 0;

    for (int i = 0; i < roster_count(leader); i++)
        left += is_there(roster_at(leader, i)) && !is_suspect(leader, roster_at(leader, i));
    return sizes_floor(&leader->options->policy->sizes, left) > 0;
}

/* A job that cannot do without a node that is taken trains on there, since another may come in
 * time, but saves before. Live workers on other nodes have the state. */
static bool has_to_go(const struct leader *leader, const struct leader_member *m)
{
    return m->goes_by > 0 && leader_now(leader) >= m->goes_by && !m->part->live;
}

bool exclude_member(const struct leader *leader, const struct leader_member *m)
{
    return is_suspect(leader, m) && (enough_without(leader) || has_to_go(leader, m));
}

/* Slow nodes of the base cannot be given back, and Slurm has them in service: MAX counts them. */
static bool is_counted(const struct leader *leader, const struct leader_member *m)
{
    return (m->slow && !m->unwell && !m->part->reclaimed) || !exclude_member(leader, m);
}

/* Of so many nodes of the base. */
static int lost_of(const struct leader *leader, int nodes, bool world)
{
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        nodes -= m->part->base && m->link != NULL && !change_is_left(m->part) &&
                 !(world && m->part->apart) && is_counted(leader, m);
    }
    return nodes > 0 ? nodes : 0;
}

int exclude_base_lost(const struct leader *leader)
{
    return change_has_begun(leader->change) || lease_term(leader) > 0
               ? lost_of(leader, leader->options->base_nodes, false)
               : 0;
}

int exclude_world_lost(const struct leader *leader)
{
    return change_generation(leader->change) > 0 || lease_term(leader) > 0
               ? lost_of(leader, leader->options->world_nodes, true)
               : 0;
}

void exclude_describe(const struct leader *leader, char *text, size_t size)
{
    const char *node;

    text[0] = '\0';
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (is_there(m) && (m->unwell || m->part->reclaimed))
            text_append(text, size, "%s%s (%s)", text[0] != '\0' ? ", " : "", m->part->node,
                        m->part->reclaimed ? "about to be taken away" : "drained or down");
    }
    for (int k = 0; (node = recovery_suspect(leader->exclude->recovery, k)) != NULL; k++) {
        double left = recovery_avoids(leader->exclude->recovery, node, leader_now(leader));

        if (isinf(left))
            text_append(text, size, "%s%s (slow)", text[0] != '\0' ? ", " : "", node);
        else if (left > 0)
            text_append(text, size, "%s%s (for %.0f s)", text[0] != '\0' ? ", " : "", node, left);
    }
}

static void give_back(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        if (!m->part->base && is_there(m) && m->part->place < 0 && !change_is_on_its_way(m->part) &&
            exclude_member(leader, m))
            post_fact(leader,
                      (struct change_fact){
                          .kind = m->part->busy ? CHANGE_FACT_LEAVING : CHANGE_FACT_RELEASED,
                          .member = m->id,
                          .notice = CHANGE_UNNEEDED,
                          .text = m->part->reclaimed ? "the node is about to be taken away"
                                  : m->slow          ? "its workers are slower than all others"
                                  : m->unwell        ? "Slurm takes the node out of service"
                                              : "workers have failed there again and again"});
    }
}

/* Extensions that were to stay off a node that is good again, and still wait: ask anew. */
static void forgive(struct leader *leader)
{
    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        if (ext->state == PLAN_PENDING && ext->excludes_until > 0 &&
            leader_now(leader) >= ext->excludes_until)
            extensions_cancel(leader, ext->job, false,
                              "a node that it was to stay off may be used again");
    }
}

void exclude_watch(struct leader *leader)
{
    double next = recovery_next(leader->exclude->recovery, leader_now(leader));

    if (next > 0)
        planning_later(leader, next);
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->goes_by > leader_now(leader))
            planning_later(leader, roster_at(leader, i)->goes_by - leader_now(leader));
    forgive(leader);
    give_back(leader);
}

static void note_unwell(struct leader *leader, struct leader_member *m, bool unwell)
{
    if (m->unwell == unwell)
        return;
    m->unwell = unwell;
    log_info("job %u: %s is %s by Slurm", leader->options->job, m->part->node,
             unwell ? "taken out of service" : "back in service");
    if (unwell && m->part->place >= 0 && is_there(m))
        post_reason(leader, "%s is drained or down", m->part->node);
}

void exclude_unwell(struct leader *leader, char *const *nodes, const bool *unwell)
{
    int next = 0;

    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        int k = next;

        while (nodes[k] != NULL && strcmp(nodes[k], m->part->node) != 0)
            k++;
        if (nodes[k] == NULL)
            continue; /* it was not asked for */
        next = k + 1;
        note_unwell(leader, m, unwell[k]);
    }
}

void exclude_noticed(struct leader *leader, struct leader_member *m, json_object *msg)
{
    (void)msg;
    if (m->noticed == 0)
        m->noticed = leader_now(leader);
}

/* Nodes that go with this one: all of its extension, which goes back as a whole. */
static int nodes_with(struct leader *leader, const struct leader_member *m)
{
    const struct extension *ext = extensions_find(leader, m->part->job);

    if (m->part->base || ext == NULL)
        return 1;
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->part->job == m->part->job &&
            roster_at(leader, i)->part->reclaimed)
            return 0;
    return ext->nodes;
}

void exclude_reclaimed(struct leader *leader, struct leader_member *m, json_object *msg)
{
    double left = json_get_double(msg, "left", -1);
    char when[32] = "";

    if (m->part->reclaimed)
        return;
    exclude_lost(leader, m); /* do not come back to it */
    if (left >= 0)
        snprintf(when, sizeof(when), " in %.0f s", left);
    log_info("job %u: %s is about to be taken away%s", leader->options->job, m->part->node, when);
    leader->exclude->taken += nodes_with(leader, m);
    if (leader->options->policy->reclaim == POLICY_RECLAIM_SHRINK)
        planning_setback(leader); /* growth waits, as after any other extension that is taken */
    if (left > 0)
        m->goes_by = leader_now(leader) + left * SAVE_AT;
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_RECLAIMED,
                                           .member = m->id,
                                           .grace = left > LEFT_LEAST ? left
                                                    : left >= 0       ? LEFT_LEAST
                                                                      : 0});
}

void exclude_advised(struct leader *leader, struct leader_member *m, json_object *msg)
{
    (void)msg;
    if (m->advised)
        return;
    m->advised = true;
    log_info("job %u: its cloud advises to replace %s", leader->options->job, m->part->node);
    planning_later(leader, 0);
}

void exclude_describe_advised(const struct leader *leader, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (roster_is_advised(m))
            text_append(text, size, "%s%s", text[0] != '\0' ? ", " : "", m->part->node);
    }
}

void exclude_silence(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const char *why = json_get_string(msg, "why");
    bool *said = &leader->exclude->silence_said[json_get_bool(msg, "advice", false)];

    if (why == NULL || *said)
        return;
    *said = true;
    log_info("job %u: %s: %.300s", leader->options->job, m->part->node, why);
}

int exclude_taken(const struct leader *leader)
{
    return leader->exclude->taken;
}

void exclude_replaced(struct leader *leader, int nodes)
{
    leader->exclude->taken -= nodes < leader->exclude->taken ? nodes : leader->exclude->taken;
}

/* ---- faults ---------------------------------------------------------------------------------- */

void exclude_node(struct leader *leader, const char *node)
{
    recovery_lost(leader->exclude->recovery, node, leader_now(leader));
}

void exclude_slow(struct leader *leader, struct leader_member *m)
{
    recovery_shun(leader->exclude->recovery, m->part->node, leader_now(leader));
    m->slow = true;
    if (!m->part->base)
        leader->exclude->taken += nodes_with(leader, m);
    if (m->part->place >= 0)
        post_reason(leader, "%s is slower than the other nodes", m->part->node);
    planning_later(leader, 0);
}

void exclude_lost(struct leader *leader, const struct leader_member *m)
{
    exclude_node(leader, m->part->node);
}

char *exclude_list(const struct leader *leader, double *until)
{
    double next = recovery_next(leader->exclude->recovery, leader_now(leader));

    char *list = recovery_excluded(leader->exclude->recovery, leader_now(leader));

    *until = next > 0 ? leader_now(leader) + next : list != NULL && list[0] != '\0' ? INFINITY : 0;
    return list;
}

struct recovery *exclude_recovery(const struct leader *leader)
{
    return leader->exclude->recovery;
}

int exclude_counted(const struct leader *leader)
{
    return recovery_counted(leader->exclude->recovery, leader_now(leader));
}

void exclude_inherit(struct leader *leader, int counted)
{
    recovery_inherit(leader->exclude->recovery, counted, leader_now(leader));
}

/* ---- life ------------------------------------------------------------------------------------ */

struct exclude *exclude_create(const struct leader_options *options)
{
    struct exclude *exclude = calloc(1, sizeof(*exclude));

    if (exclude == NULL)
        return NULL;
    exclude->recovery = recovery_create(&options->policy->restarts, options->conf->node_backoff);
    if (exclude->recovery == NULL) {
        free(exclude);
        return NULL;
    }
    return exclude;
}

void exclude_destroy(struct exclude *exclude)
{
    if (exclude == NULL)
        return;
    recovery_destroy(exclude->recovery);
    free(exclude);
}
