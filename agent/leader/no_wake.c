/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extensions that must not make Slurm power nodes up (no_wake.h).
 *
 * Where Slurm's plugin does not see to that, they exclude the nodes that are powered down. Such a
 * node can still be powered down between the answer of Slurm and the start of the extension: then
 * the extension is cancelled. */
#include "agent/leader/no_wake.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "agent/leader/power_look.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "lib/names.h"
#include "lib/sleepers.h"
#include "lib/text.h"

/* Nodes that the job has, or that its user excludes. NULL: out of memory. */
static char **other_nodes(struct leader *leader)
{
    const struct job_info *base = slurm_look_base(leader);
    char **users = slurm_client_expand(base != NULL && base->excluded != NULL ? base->excluded
                                                                              : "");
    char **own = roster_nodes(leader), **all = NULL;

    if (own != NULL && users != NULL)
        all = names_with(own, users);
    free(own);
    strings_free(users);
    return all;
}

/* Nodes that are left out for a while. NULL: out of memory. */
static char **avoided(struct leader *leader)
{
    double until;
    char *text = exclude_list(leader, &until);
    char **names = text != NULL ? slurm_client_expand(text) : NULL;

    free(text);
    return names;
}

/* What the job has, and what is on its way. */
static int count_nodes(struct leader *leader)
{
    int count = leader->options->base_nodes - exclude_base_lost(leader);

    for (int i = 0; i < extensions_count(leader); i++)
        if (extensions_at(leader, i)->state != PLAN_LEAVING)
            count += extensions_at(leader, i)->nodes;
    return count;
}

/* Nodes of the pool that are on their way. */
static int count_coming(const struct leader *leader, const struct pool *pool)
{
    int count = 0;

    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        if (ext->pool == pool && ext->state < PLAN_JOINED)
            count += ext->nodes - extensions_members(leader, ext->job);
    }
    return count;
}

int no_wake_nodes(struct leader *leader, const struct pool *pool, int nodes, bool anywhere)
{
    struct sleepers_pool *own = slurm_look_sleepers(leader, pool);
    double now = leader_now(leader);
    bool held = own->again > now;
    char **others, **avoid, **all = NULL;

    if (job_pools_wakes(leader, pool))
        return nodes;
    others = other_nodes(leader);
    avoid = anywhere ? NULL : avoided(leader);
    if (others != NULL)
        all = names_with(others, avoid);
    nodes = all == NULL ? 0
                        : sleepers_limit(own,
                                         &(struct sleepers_request){
                                             .name = pool->name,
                                             .nodes = nodes,
                                             .have = count_nodes(leader),
                                             .coming = count_coming(leader, pool),
                                             .sizes = &leader->options->policy->sizes,
                                             .others = all,
                                         },
                                         now);
    strings_free(others);
    strings_free(avoid);
    strings_free(all);
    if (nodes == 0 && own->again > now) /* another pool is asked at once */
        planning_later(leader, !held && job_pools_count(leader) > 1 ? 0 : own->again - now);
    return nodes;
}

char *no_wake_exclude(struct leader *leader, struct extension *ext, char *avoid)
{
    char **others, *asleep, *text;

    if (ext->pool == NULL || job_pools_wakes(leader, ext->pool))
        return avoid;
    others = other_nodes(leader);
    strings_free(ext->asleep);
    ext->asleep = names_without(slurm_look_sleepers(leader, ext->pool)->asleep, others);
    strings_free(others);
    if (strings_count(ext->asleep) == 0)
        return avoid;
    asleep = slurm_client_compress(ext->asleep, (int)strings_count(ext->asleep));
    if (avoid == NULL || avoid[0] == '\0' || asleep == NULL) {
        free(avoid);
        return asleep;
    }
    if (asprintf(&text, "%s,%s", avoid, asleep) < 0)
        text = NULL;
    free(avoid);
    free(asleep);
    return text;
}

const char *no_wake_why(const struct leader *leader, const struct pool *pool)
{
    const char *why = slurm_look_sleepers(leader, pool)->why;

    return why[0] != '\0' && !job_pools_wakes(leader, pool) ? why : NULL;
}

double no_wake_until(const struct leader *leader, const struct pool *pool)
{
    return job_pools_wakes(leader, pool) ? 0 : slurm_look_sleepers(leader, pool)->again;
}

/* Nodes may also boot for other reasons, where Slurm powers none down. */
bool no_wake_forbids(struct leader *leader, const struct extension *ext)
{
    struct sleepers_pool *pool;

    if (ext->pool == NULL || job_pools_wakes(leader, ext->pool))
        return false;
    pool = slurm_look_sleepers(leader, ext->pool);
    if (pool->seen == 0 && pool->wanted == 0)
        pool->wanted = leader_now(leader);
    return pool->state == SLEEPERS_LISTED;
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool is_watched(const struct leader *leader, const struct extension *ext)
{
    return ext->state == PLAN_PENDING && ext->pool != NULL && !job_pools_wakes(leader, ext->pool);
}

/* The first look of a leader has this question, too: the first extension need not wait for it. */
static bool is_first(const struct leader *leader, const struct pool *pool)
{
    return slurm_look_base(leader) == NULL && !job_pools_wakes(leader, pool) &&
           slurm_look_sleepers(leader, pool)->seen == 0;
}

/* The pool that an extension waits for; else the one with pending extensions that was asked for
 * first. */
static const struct pool *pool_to_ask(const struct leader *leader, bool *wanted)
{
    const struct conf *conf = leader->options->conf;
    const struct pool *oldest = NULL;

    *wanted = true;
    for (int i = 0; i < job_pools_count(leader); i++)
        if (is_first(leader, job_pools_at(leader, i)->pool))
            return job_pools_at(leader, i)->pool;
    for (int i = 0; i < conf->pool_count; i++) {
        const struct sleepers_pool *own = slurm_look_sleepers(leader, &conf->pools[i]);

        if (own->wanted > own->seen)
            return &conf->pools[i];
    }
    *wanted = false;
    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);
        const struct sleepers_pool *own = is_watched(leader, ext)
                                              ? slurm_look_sleepers(leader, ext->pool)
                                              : NULL;

        if (own != NULL && own->state != SLEEPERS_NONE &&
            (oldest == NULL || own->seen < slurm_look_sleepers(leader, oldest)->seen))
            oldest = ext->pool;
    }
    return oldest;
}

void no_wake_describe(const struct leader *leader, struct look_input *in)
{
    bool wanted;
    const struct pool *pool = pool_to_ask(leader, &wanted);

    if (pool == NULL)
        return;
    in->power_wanted = wanted ? leader_now(leader) : 0;
    in->power_pending = !wanted;
    in->power_looked = slurm_look_sleepers(leader, pool)->seen;
}

struct power_look *no_wake_question(struct leader *leader)
{
    bool wanted;
    const struct pool *pool = pool_to_ask(leader, &wanted);
    struct power_look *look = pool != NULL ? power_look_create(pool, extensions_count(leader))
                                           : NULL;

    if (look == NULL)
        return NULL;
    look->power.as_of = slurm_look_sleepers(leader, pool)->as_of;
    look->others = other_nodes(leader);
    look->avoid = avoided(leader);
    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        if (is_watched(leader, ext) && ext->pool == pool)
            look->pending[look->count++] = (struct power_pending){
                .job = ext->job,
                .nodes = ext->nodes,
                .asleep = names_without(ext->asleep, NULL),
                .avoids = ext->excludes_until > 0};
    }
    return look;
}

void no_wake_answered(struct leader *leader, struct power_look *look)
{
    for (int i = 0; i < look->count; i++) {
        struct power_pending *pending = &look->pending[i];
        struct extension *ext = extensions_find(leader, pending->job);

        if (ext == NULL || ext->state != PLAN_PENDING)
            continue;
        if (pending->too_few) {
            extensions_cancel(leader, ext->job, false,
                              "too few of its nodes are powered up, and its pool has wake=no");
            continue;
        }
        strings_free(ext->asleep);
        ext->asleep = pending->asleep;
        pending->asleep = NULL;
    }
}
