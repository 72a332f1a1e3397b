/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extension jobs for replicas of roles (role_requests.h).
 *
 * The list of extensions is compared with what lib/reconcile knows of it: so it makes no difference
 * whether sbatch, Slurm or an agent is the first to say something. */
#include "agent/leader/role_requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/scancel.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/submit.h"

#define UNKNOWN_AFTER 10.0 /* seconds in which an extension in the queue is known to be ours */
#define PASS_AFTER    30.0 /* seconds in the queue of a pool, if the role has another one */

/* An extension that lib/reconcile knows of. */
struct known {
    uint32_t job;
    int nodes; /* as it has been told last; 0: not granted so far */
};

/* What a role asks for in one of its forms. */
struct wish {
    int replicas; /* 0: nothing */
    struct slots_gang gang;
    bool safe;
    bool anyhow; /* its gang does not fit on one node */
};

struct role_requests {
    struct wish (*wishes)[RECONCILE_FORMS]; /* of each role */
    int count;
    int submitting; /* the role for which sbatch runs, or could not be run; -1: none */
    int form;       /* … and its form */
    struct wish submitted;
    struct known *known;
    int known_count;
    char text[160]; /* of the latest fact */
};

/* ---- actions --------------------------------------------------------------------------------- */

void role_requests_do(struct leader *leader, struct role_requests *own,
                      const struct reconcile_action *action, const struct slots_gang *gang)
{
    struct wish *wish = action->kind == RECONCILE_ASK ? &own->wishes[action->role][action->form]
                                                      : NULL;

    if (wish != NULL) {
        wish->replicas = action->count;
        wish->safe = action->safe;
        wish->anyhow = wish->anyhow && slots_equal(&wish->gang, gang);
        wish->gang = *gang;
    } else if (action->kind == RECONCILE_WITHDRAW) {
        extensions_cancel(leader, action->job, false, "fewer replicas are asked for, or none");
    } else {
        extensions_cancel(leader, action->job, false, action->text);
    }
}

/* ---- facts ----------------------------------------------------------------------------------- */

static struct known *find(const struct role_requests *own, uint32_t job)
{
    for (int i = 0; i < own->known_count; i++)
        if (own->known[i].job == job)
            return &own->known[i];
    return NULL;
}

/* A number of sbatch, or one from before a takeover. */
static bool next_requested(struct leader *leader, struct role_requests *own,
                           struct reconcile_fact *fact)
{
    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);
        struct known *grown;

        if (ext->role < 0 || ext->job == 0 || ext->state == PLAN_LEAVING ||
            find(own, ext->job) != NULL)
            continue;
        grown = realloc(own->known, ((size_t)own->known_count + 1) * sizeof(*grown));
        if (grown == NULL)
            return false;
        own->known = grown;
        grown[own->known_count++] = (struct known){.job = ext->job};
        *fact = (struct reconcile_fact){
            .kind = RECONCILE_REQUESTED, .role = ext->role, .job = ext->job};
        if (own->submitting == ext->role) {
            own->submitting = -1;
            fact->form = own->form;
        }
        return true;
    }
    return false;
}

/* Its nodes are there; how many they are may become clear later. */
static bool next_granted(struct leader *leader, struct role_requests *own,
                         struct reconcile_fact *fact)
{
    for (int i = 0; i < own->known_count; i++) {
        struct known *known = &own->known[i];
        const struct extension *ext = extensions_find(leader, known->job);
        int nodes;

        if (ext == NULL || ext->state < PLAN_BOOTING || ext->state == PLAN_LEAVING)
            continue;
        nodes = ext->nodes > 0 ? ext->nodes : extensions_members(leader, ext->job);
        if (nodes == 0)
            nodes = 1;
        if (nodes == known->nodes)
            continue;
        known->nodes = nodes;
        *fact = (struct reconcile_fact){
            .kind = RECONCILE_GRANTED, .job = known->job, .count = nodes};
        return true;
    }
    return false;
}

static bool next_over(struct leader *leader, struct role_requests *own, struct reconcile_fact *fact)
{
    for (int i = 0; i < own->known_count; i++) {
        struct known known = own->known[i];
        const char *failure = extensions_failure(leader);

        if (extensions_find(leader, known.job) != NULL)
            continue;
        if (failure != NULL)
            snprintf(own->text, sizeof(own->text), "%s", failure);
        else
            snprintf(own->text, sizeof(own->text), "extension job %u is over", known.job);
        own->known[i] = own->known[--own->known_count];
        *fact = (struct reconcile_fact){
            .kind = RECONCILE_DENIED, .job = known.job, .text = own->text};
        return true;
    }
    return false;
}

/* A gang that may be on several nodes is asked for on one of them first: what is on several nodes
 * is lost with each of them. */
static bool fits_nowhere(const struct role_requests *own)
{
    const struct slots_gang *gang = &own->submitted.gang;

    return own->submitted.replicas == 1 && !own->submitted.anyhow && gang->per_node == 0 &&
           gang->tasks > 1;
}

/* Each extension is on one node, if it can be: Slurm preempts whole jobs. */
static int nodes_for(const struct wish *wish)
{
    const struct slots_gang *gang = &wish->gang;

    if (gang->per_node > 0)
        return (gang->tasks + gang->per_node - 1) / gang->per_node;
    return wish->anyhow ? 0 : 1;
}

/* sbatch has refused it, or it cannot even be asked. */
static bool next_refused(struct leader *leader, struct role_requests *own,
                         struct reconcile_fact *fact)
{
    if (own->submitting < 0 || submit_submitting(leader))
        return false;
    if (fits_nowhere(own)) {
        own->wishes[own->submitting][own->form] = own->submitted;
        own->wishes[own->submitting][own->form].anyhow = true;
        own->submitting = -1;
        return false;
    }
    snprintf(own->text, sizeof(own->text), "%s", extensions_refusal(leader));
    *fact = (struct reconcile_fact){
        .kind = RECONCILE_REFUSED, .role = own->submitting, .form = own->form, .text = own->text};
    own->submitting = -1;
    return true;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* May the role, for such replicas, use that pool of the job's? */
static bool is_for(const struct leader *leader, const struct role *role, bool safe,
                   const struct pool *pool)
{
    const struct policy *policy = leader->options->policy;

    if (safe)
        return strcmp(role->base, pool->name) == 0;
    for (char *const *name = role->pools; name != NULL && *name != NULL; name++)
        if (strcmp(*name, pool->name) == 0)
            return true;
    for (int i = 0; role->pools == NULL && i < policy->pool_count; i++)
        if (strcmp(policy->pools[i], pool->name) == 0)
            return true;
    return false;
}

bool role_requests_possible(const struct leader *leader, int role)
{
    const struct role *of = &leader->options->roles->list[role];

    for (int i = 0; i < job_pools_count(leader) && !of->leads; i++)
        if ((of->base != NULL && is_for(leader, of, true, job_pools_at(leader, i)->pool)) ||
            is_for(leader, of, false, job_pools_at(leader, i)->pool))
            return true;
    return false;
}

/* The nodes of the job's extensions in the pool; NULL: in all. */
static int nodes_of(const struct leader *leader, const struct pool *pool)
{
    int nodes = 0;

    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        if ((pool == NULL || ext->pool == pool) && ext->state != PLAN_LEAVING)
            nodes += ext->nodes > 0 ? ext->nodes : 1;
    }
    return nodes;
}

/* Its place among those of the role: in the order of the file, or of the job. */
static int place_of(const struct role *role, bool safe, const struct pool *pool, int place)
{
    for (int i = 0; !safe && role->pools != NULL && role->pools[i] != NULL; i++)
        if (strcmp(role->pools[i], pool->name) == 0)
            return i;
    return place;
}

/* The first pool of the role, but for `passed`, that may be asked now. NULL: none may, before
 * *after; 0: there is none. */
static const struct pool *choose_pool(struct leader *leader, const struct role *role, bool safe,
                                      const struct pool *passed, double *after)
{
    const struct pool *best = NULL;
    int best_place = 0;

    *after = 0;
    for (int i = 0; i < job_pools_count(leader); i++) {
        const struct job_pool *own = job_pools_at(leader, i);
        int place = place_of(role, safe, own->pool, i);
        double until = job_pools_pause_until(own);

        if (own->pool == passed || !is_for(leader, role, safe, own->pool))
            continue;
        if (own->pool->max_nodes > 0 && nodes_of(leader, own->pool) >= own->pool->max_nodes)
            until = leader_now(leader) + PASS_AFTER; /* some may go */
        if (until > leader_now(leader)) {
            *after = *after == 0 || until < *after ? until : *after;
        } else if (best == NULL || place < best_place) {
            best = own->pool;
            best_place = place;
        }
    }
    return best;
}

/* Another pool that may be asked instead of the one in which the extension waits. */
static const struct pool *other_pool(struct leader *leader, const struct extension *ext)
{
    const struct role *role = &leader->options->roles->list[ext->role];
    double after;

    if (ext->pool == NULL || (role->base != NULL && strcmp(role->base, ext->pool->name) == 0))
        return NULL;
    return choose_pool(leader, role, false, ext->pool, &after);
}

static bool next_passed(struct leader *leader, struct role_requests *own,
                        struct reconcile_fact *fact)
{
    for (int i = 0; i < own->known_count; i++) {
        const struct extension *ext = extensions_find(leader, own->known[i].job);

        if (ext == NULL || ext->state != PLAN_PENDING ||
            leader_now(leader) - ext->since < PASS_AFTER || other_pool(leader, ext) == NULL)
            continue;
        snprintf(own->text, sizeof(own->text), "extension job %u waits: %s", ext->job, ext->reason);
        job_pools_failed(leader, ext->pool, own->text);
        *fact = (struct reconcile_fact){.kind = RECONCILE_PASSED, .job = ext->job};
        extensions_cancel(leader, ext->job, false, "another pool is asked");
        return true;
    }
    return false;
}

bool role_requests_next(struct leader *leader, struct role_requests *own,
                        struct reconcile_fact *fact)
{
    return next_requested(leader, own, fact) || next_granted(leader, own, fact) ||
           next_over(leader, own, fact) || next_refused(leader, own, fact) ||
           next_passed(leader, own, fact);
}

/* ---- sbatch ---------------------------------------------------------------------------------- */

static double earlier(double a, double b)
{
    return a == 0 || b < a ? b : a;
}

/* Nodes that the job may still get; 0: any number. */
static int nodes_left(const struct leader *leader)
{
    int left = leader->options->roles->max_nodes;

    if (left == 0)
        return 0;
    left -= leader->options->base_nodes + nodes_of(leader, NULL);
    return left > 0 ? left : 1; /* whoever has asked has counted, too */
}

/* False: no pool may be asked before *after; 0: now something is to be told. */
static bool submit(struct leader *leader, struct role_requests *own, int role, int form,
                   double *after)
{
    struct wish *wish = &own->wishes[role][form];
    const struct pool *pool = choose_pool(leader, &leader->options->roles->list[role], wish->safe,
                                          NULL, after);

    if (pool == NULL && *after > 0)
        return false;
    own->submitting = role;
    own->form = form;
    own->submitted = *wish;
    if (pool != NULL)
        submit_replicas(leader, pool, role, &wish->gang, wish->replicas, nodes_for(wish),
                        nodes_left(leader));
    else
        extensions_set_refusal(leader, "the job has no pool that its extensions could come from");
    wish->replicas = 0;
    return submit_submitting(leader);
}

/* Of an extension in the queue sbatch has said that it was refused, or did not say anything. One
 * without a role may be the world's, as long as that may grow. */
static bool is_nobodys(const struct leader *leader, const struct extension *ext)
{
    bool world = leader->options->world_nodes > 0 && change_phase(leader->change) != CHANGE_RESTING;

    return !world && ext->role < 0 && ext->job != 0 && ext->state == PLAN_PENDING &&
           !submit_submitting(leader) && leader_now(leader) - ext->since > UNKNOWN_AFTER;
}

/* Agents that do not join may never do so. Returns when to look again; 0: never. */
static double cancel_late(struct leader *leader)
{
    double next = 0;

    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        if (is_nobodys(leader, ext))
            extensions_cancel(leader, ext->job, false, "nobody has asked for it");
        if (ext->state != PLAN_STARTING)
            continue;
        if (leader_now(leader) < ext->since + PLAN_JOIN_LIMIT) {
            next = earlier(next, ext->since + PLAN_JOIN_LIMIT);
            continue;
        }
        extensions_never_joined(leader, ext);
        extensions_cancel(leader, ext->job, true, "its agents have not joined in time");
    }
    return next;
}

/* When one that waits is to be passed on. */
static double pass_at(struct leader *leader)
{
    double next = 0;

    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        if (ext->role >= 0 && ext->state == PLAN_PENDING && other_pool(leader, ext) != NULL)
            next = earlier(next, ext->since + PASS_AFTER);
    }
    return next;
}

double role_requests_submit(struct leader *leader, struct role_requests *own)
{
    double next = cancel_late(leader), pass = pass_at(leader), now = leader_now(leader), after;

    if (pass > 0)
        next = earlier(next, pass);
    for (int i = 0; i < own->count * RECONCILE_FORMS; i++) {
        int role = i / RECONCILE_FORMS, form = i % RECONCILE_FORMS;

        if (own->wishes[role][form].replicas == 0)
            continue;
        /* Each of these ends with a plan, and so with another call. */
        if (slurm_look_base(leader) == NULL || scancel_busy(leader) || own->submitting >= 0 ||
            submit_submitting(leader))
            return next;
        if (now < submit_after(leader))
            return earlier(next, submit_after(leader));
        if (submit(leader, own, role, form, &after))
            return next;
        next = earlier(next, after > 0 ? after : now);
    }
    return next;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct role_requests *role_requests_create(const struct roles *roles)
{
    struct role_requests *own = calloc(1, sizeof(*own));

    if (own == NULL)
        return NULL;
    own->submitting = -1;
    own->count = roles->count;
    own->wishes = calloc((size_t)roles->count, sizeof(*own->wishes));
    if (own->wishes == NULL) {
        free(own);
        return NULL;
    }
    return own;
}

void role_requests_destroy(struct role_requests *own)
{
    if (own == NULL)
        return;
    free(own->wishes);
    free(own->known);
    free(own);
}
