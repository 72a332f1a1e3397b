/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What must hold at every event, seen from outside: messages, workers, Slurm. */
#include "lib/json_get.h"
#include "lib/ledger.h"
#include "lib/sizes.h"
#include "lib/wake.h"
#include "tests/sim/sim.h"

#define LEFT_BEHIND (15 * SECOND)
#define MARGIN      (1 * SECOND) /* what Slurm has asked back is free so long after a step */

/* ---- who leads ------------------------------------------------------------------------------- */

static bool is_act(const char *type)
{
    static const char *const acting[] = {"start", "run_to", "next", "prepare", "hold", "torn"};

    for (size_t i = 0; i < sizeof(acting) / sizeof(acting[0]); i++)
        if (strcmp(type, acting[i]) == 0)
            return true;
    return false;
}

static void note_term(const struct host *from, const char *type, json_object *msg)
{
    int64_t term;

    if ((strcmp(type, "welcome") == 0 || strcmp(type, "successors") == 0) &&
        json_get_int(msg, "term", 0, INT32_MAX, &term))
        ((struct host *)from)->term = (int)term;
}

/* "start" and "next" begin a world: nobody does so when a later term has begun one. */
static void check_leader(struct training *t, const struct host *from, const char *type)
{
    bool begins = strcmp(type, "start") == 0 || strcmp(type, "next") == 0 ||
                  strcmp(type, "run_to") == 0;

    if (begins && from->term < t->acts.term)
        violation("%s, leader of term %d, sends %s after %s has led term %d", host_name(from),
                  from->term, type, host_name(t->acts.leader), t->acts.term);
    if (begins && from->term == t->acts.term && t->acts.leader != NULL && t->acts.leader != from)
        violation("%s and %s both lead term %d", host_name(from), host_name(t->acts.leader),
                  from->term);
    if (begins && from->term >= t->acts.term) {
        t->acts.term = from->term;
        t->acts.leader = from;
    }
}

/* All are told the same step. */
static void check_step(struct training *t, json_object *msg)
{
    int64_t generation = 0, step = 0;

    json_get_int(msg, "gen", 0, INT32_MAX, &generation);
    json_get_int(msg, "step", 0, INT64_MAX, &step);
    if (generation == t->acts.run_to_generation && step != t->acts.run_to)
        violation("generation %d is told to run to step %lld, and to step %lld", (int)generation,
                  (long long)t->acts.run_to, (long long)step);
    t->acts.run_to_generation = (int)generation;
    t->acts.run_to = step;
}

/* Of an incarnation that has ended since? */
static bool is_former(const struct host *host)
{
    return host->restarts_of_base != host->job->training->base->restarts;
}

void invariants_message(const struct host *from, const struct host *to, const char *type,
                        json_object *msg)
{
    struct training *t = from->job->training;

    if (to->job->training != t)
        violation("%s of job %u sends %s to %s of job %u", host_name(from), from->job->id, type,
                  host_name(to), to->job->id);
    note_term(from, type, msg);
    if (!is_act(type) || is_former(from))
        return;
    check_leader(t, from, type);
    if (strcmp(type, "run_to") == 0)
        check_step(t, msg);
}

/* ---- worlds ---------------------------------------------------------------------------------- */

/* No node works for two jobs, however late one of them leaves it, and none is told twice to start
 * the same workers. */
void invariants_started(struct workers *set)
{
    set->training->started++;
    for (const struct workers *each = set->host->node->sets; each != NULL;
         each = each->next_on_node)
        if (each->training != set->training && each->state != SET_ENDED)
            violation("node %s has workers of job %u, and starts some of job %u",
                      set->host->node->name, each->host->job->id, set->host->job->id);
    for (const struct workers *each = set->host->node->sets; each != NULL;
         each = each->next_on_node)
        if (each != set && each->host == set->host && each->attempt == set->attempt &&
            each->generation == set->generation && each->state != SET_ENDED)
            violation("%s starts workers of generation %d twice", host_name(set->host),
                      set->generation);
}

void invariants_entered(struct workers *set)
{
    struct job *job = set->host->job;
    const struct node *node = set->host->node;

    /* A change was under way that did not know of it: that world makes a step first. */
    if (job->leave_due != NEVER)
        job->leave_due += set->training->init + 2 * set->training->step;
    for (const struct workers *each = node->sets; each != NULL; each = each->next_on_node)
        if (each != set && each->state >= SET_MEETING && each->state < SET_LEAVING)
            violation("node %s is in generation %d of job %u and in generation %d of job %u",
                      node->name, each->generation, each->host->job->id, set->generation, job->id);
    if (node->job != NULL && node->job != job)
        violation("node %s is in generation %d of job %u, and Slurm has given it to job %u",
                  node->name, set->generation, job->id, node->job->id);
}

static int place_of(const struct node *node, struct workers **members, int nodes)
{
    for (int i = 0; i < nodes; i++)
        if (members[i]->host->node == node)
            return i;
    return -1;
}

/* A world is made of whole units. One of the world before whose workers have all lived on stays
 * one, in its order, or leaves. */
void invariants_units(struct training *t, struct workers **members, int nodes)
{
    int unit = t->policy->replica;

    if (nodes % unit != 0)
        violation("a world of %d nodes, and a unit has %d", nodes, unit);
    for (int first = 0; t->places != NULL && unit > 1 && first < t->placed; first += unit) {
        int place = place_of(t->places[first], members, nodes), there = 0, together = 0;

        for (int i = 0; i < unit; i++) {
            int now = place_of(t->places[first + i], members, nodes);

            there += now >= 0 && members[now]->have >= 0;
            together += now >= 0 && place >= 0 && now == place + i;
        }
        if (there == unit && (together < unit || place % unit != 0))
            violation("the unit of %s is torn", t->places[first]->name);
    }
    t->places = calloc((size_t)nodes, sizeof(struct node *));
    MUST(t->places != NULL);
    for (int i = 0; i < nodes; i++)
        t->places[i] = members[i]->host->node;
    t->placed = nodes;
}

void invariants_formed(struct training *t, int generation, const char *kind, int nodes,
                       int64_t base, int64_t best)
{
    int64_t lost = t->committed - base;

    trace("job %u: world %d of %d node%s begins after step %lld (%s)", t->base->id, generation,
          nodes, nodes == 1 ? "" : "s", (long long)base, kind);
    if (!sizes_allowed(&t->policy->sizes, nodes))
        violation("generation %d has %d nodes, which is not an allowed size", generation, nodes);
    /* A node that stood still hears later that its world is over. */
    if (generation < t->newest && t->faults > 0 && clock_now() <= t->newest_at + LEFT_BEHIND)
        return;
    if (generation <= t->newest)
        violation("generation %d begins after generation %d", generation, t->newest);
    /* Who has not passed its first boundary when it is held is told to leave at once. */
    if (t->faults == 0 && t->committed < t->total && lost != 0 && (lost > 1 || t->made > 1))
        violation("generation %d begins after step %lld, and step %lld had been made; nothing has "
                  "failed",
                  generation, (long long)base, (long long)t->committed);
    /* All that have a newer state may be lost, if each of them has had a fault. */
    if (t->live && best >= 0 && lost > 1 && t->faults <= t->size)
        violation("generation %d begins after step %lld, and step %lld had been made", generation,
                  (long long)base, (long long)t->committed);
    if (base < t->checkpoint && best < 0)
        violation("generation %d begins after step %lld, and a checkpoint has step %lld",
                  generation, (long long)base, (long long)t->checkpoint);
    if (lost > 0) { /* and is to be: all that had made these steps is gone */
        t->repeated += lost;
        t->committed = base;
    }
    t->newest = generation;
    t->newest_at = clock_now();
    t->made = 0;
    t->size = nodes;
    if (nodes < t->least)
        t->least = nodes;
    snprintf(t->worlds + strlen(t->worlds), sizeof(t->worlds) - strlen(t->worlds), "%s%d",
             t->worlds[0] != '\0' ? "," : "", nodes);
    t->progress = clock_now();
}

void invariants_committed(struct training *t, uint32_t restarts, int generation, int64_t step)
{
    if (generation < t->newest || restarts < t->base->restarts) {
        /* The workers of an agent that is stopped, or cut off, hear of it later. */
        if (clock_now() > t->newest_at + LEFT_BEHIND)
            violation("generation %d makes step %lld, and generation %d has begun", generation,
                      (long long)step, t->newest);
        return;
    }
    t->made++;
    if (step <= t->committed) {
        t->repeated++;
        return;
    }
    if (step != t->committed + 1)
        violation("step %lld follows step %lld", (long long)step, (long long)t->committed);
    t->committed = step;
    t->progress = clock_now();
    if (step == t->total)
        trace("job %u: the last step is made", t->base->id);
}

/* ---- what Slurm wants back ------------------------------------------------------------------- */

void invariants_asked_back(struct job *job)
{
    const struct workers *set = job->count > 0 ? workers_on(job->nodes[0]) : NULL;

    /* A world that has not made a step may make its first before it is changed. */
    if (job->training->faults > 0 || set == NULL || set->state != SET_STEPPING || set->held ||
        set->word < 1)
        return;
    for (const struct job *other = slurm_jobs(); other != NULL; other = other->next)
        if (other != job && other->training == job->training && other->state == SLURM_RUNNING &&
            other->preempted != 0)
            return; /* the change for that one is under way */
    job->leave_due = clock_now() + job->training->step + MARGIN;
}

void invariants_node_free(struct job *job)
{
    const struct training *t = job->training;
    uint64_t due = job->leave_due;

    if (due == NEVER || job->excused || t->faults > 0)
        return;
    if (t->longest_save_until > job->preempted)
        due = t->longest_save_until + t->leave + MARGIN;
    if (clock_now() > due)
        violation("job %u has left %.1f s after it was asked to, a step takes %.1f s", job->id,
                  (double)(clock_now() - job->preempted) / (double)SECOND,
                  (double)t->step / (double)SECOND);
}

/* ---- pools ----------------------------------------------------------------------------------- */

#define OVER_BUDGET 0.05          /* by what the leader hears of a moment later */
#define RACE        (40 * SECOND) /* until a leader has heard that a node was powered down */

static int count_asleep(const struct job *job, bool lately)
{
    int count = 0;

    for (int i = 0; i < job->count; i++)
        count += job->nodes[i]->asleep && (lately || clock_now() > job->nodes[i]->since + RACE ||
                                           job->submitted > job->nodes[i]->since + SECOND);
    return count;
}

/* Nodes of a pool that the job has, and that nobody has asked back. The successor of one whose time
 * is limited comes before its end. */
static int count_nodes(const struct job *job, int pool)
{
    int count = 0;

    for (const struct job *other = slurm_jobs(); other != NULL; other = other->next)
        for (int i = 0; i < other->count; i++)
            count += other->of == job->of && other->state == SLURM_RUNNING && other->limit == 0 &&
                     other->preempted == 0 && other->nodes[i]->pool == pool &&
                     other->nodes[i]->up && other->nodes[i]->island == 0 &&
                     !other->nodes[i]->noticed;
    return count;
}

void invariants_job_starts(const struct job *job)
{
    const struct pool *pool = job->base ? NULL : conf_pool(setup_conf, job->partition);
    int number = job->nodes[0]->pool, asleep = count_asleep(job, true), booting;

    if (cloud_pools() == 0 || pool == NULL)
        return;
    booting = slurm_booting(job->training, number) + asleep;
    if (!wake_allowed(pool, job->training->policy->wake) && count_asleep(job, false) > 0)
        violation("job %u powers up nodes of pool %s", job->id, pool->name);
    if (asleep > 0 && booting > pool->max_resume)
        violation("%d nodes of pool %s power up for job %u", booting, pool->name, job->of->id);
    /* Slurm has nodes that are lost for the job for longer. */
    if (job->training->faults == 0 && pool->max_nodes > 0 &&
        count_nodes(job, number) > pool->max_nodes)
        violation("job %u has %d nodes of pool %s", job->of->id, count_nodes(job, number),
                  pool->name);
}

void invariants_cost(struct training *t)
{
    struct ledger ledger = {0};
    const struct ledger_run run = {.job = t->base->id};
    struct error err = {""};
    double cost;

    if (ledger_parse(&ledger, t->ledger, strlen(t->ledger), &run, 0, 0, true, &err) != 0)
        violation("pools.json: %s", err.text);
    cost = spending_cost(&ledger.spending);
    if (cost < t->told - 1e-9)
        violation("job %u has cost %g, and %g before", t->base->id, cost, t->told);
    t->told = cost;
}

static void check_budget(const struct training *t)
{
    double budget = t->policy->budget;

    if (budget > 0 && t->cost > (1 + OVER_BUDGET) * budget)
        violation("job %u has cost %g, and its budget is %g", t->base->id, t->cost, budget);
}

/* ---- what has to go on, and to end ----------------------------------------------------------- */

static void look_at(const struct training *t)
{
    if (t->base != NULL && t->base->state == SLURM_RUNNING && !t->may_wait &&
        t->committed < t->total && clock_now() > t->progress + t->patience)
        violation("job %u: no step has been made for %.0f s", t->base->id,
                  (double)(clock_now() - t->progress) / (double)SECOND);
}

void invariants_look(void)
{
    for (int i = 0; i < training_count; i++)
        look_at(&trainings[i]);
    for (const struct host *host = host_list(); host != NULL; host = host->next)
        if (host->done && host->state == HOST_RUNNING && !host->job->training->may_wait &&
            clock_now() > host->done_at + 30 * SECOND)
            violation("%s is through, and something of it still waits", host_name(host));
}

static void look_at_end(const struct training *t)
{
    const struct job *base = t->base;

    if (base == NULL || base->state != SLURM_ENDED) {
        violation("job %u has not ended", base != NULL ? base->id : 0);
        return;
    }
    check_budget(t);
    if (base->code == 0 && t->committed < t->total && strcmp(base->state_name, "COMPLETED") == 0)
        violation("job %u ends well after step %lld of %lld", base->id, (long long)t->committed,
                  (long long)t->total);
    if (t->faults == 0 && t->aware && strcmp(base->state_name, "COMPLETED") != 0 && !t->may_fail &&
        t->committed < t->total && t->checkpoint < t->committed &&
        (t->committed - t->checkpoint > 1 || t->made > 1))
        violation("job %u ends after step %lld, and a checkpoint has step %lld", base->id,
                  (long long)t->committed, (long long)t->checkpoint);
    if (base->code != 0 && !t->may_fail && strcmp(base->state_name, "FAILED") == 0)
        violation("job %u ends with %d", base->id, base->code);
}

void invariants_end(void)
{
    for (int i = 0; i < training_count; i++)
        look_at_end(&trainings[i]);
    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next)
        if (!job->base && job->state != SLURM_ENDED)
            violation("extension job %u is left (%s)", job->id, job->state_name);
    for (const struct host *host = host_list(); host != NULL; host = host->next)
        violation("an agent on %s is left", host_name(host));
}
