/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What must hold at every event, seen from outside: messages, workers, Slurm. */
#include "lib/json_get.h"
#include "lib/sizes.h"
#include "tests/sim/sim.h"

#define LEFT_BEHIND (15 * SECOND)
#define MARGIN      (1 * SECOND) /* what Slurm has asked back is free so long after a step */

static struct expectation expected;
struct expectation *const invariants_expectation = &expected;

static struct {
    const struct host *leader; /* that acted last */
    int term;
    int run_to_generation;
    int64_t run_to;
} acts;

void invariants_begin(const struct expectation *expectation)
{
    expected = *expectation;
    memset(&acts, 0, sizeof(acts));
    acts.term = -1;
}

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
static void check_leader(const struct host *from, const char *type)
{
    bool begins = strcmp(type, "start") == 0 || strcmp(type, "next") == 0 ||
                  strcmp(type, "run_to") == 0;

    if (begins && from->term < acts.term)
        violation("%s, leader of term %d, sends %s after %s has led term %d", host_name(from),
                  from->term, type, host_name(acts.leader), acts.term);
    if (begins && from->term == acts.term && acts.leader != NULL && acts.leader != from)
        violation("%s and %s both lead term %d", host_name(from), host_name(acts.leader),
                  from->term);
    if (begins && from->term >= acts.term) {
        acts.term = from->term;
        acts.leader = from;
    }
}

/* All are told the same step. */
static void check_step(json_object *msg)
{
    int64_t generation = 0, step = 0;

    json_get_int(msg, "gen", 0, INT32_MAX, &generation);
    json_get_int(msg, "step", 0, INT64_MAX, &step);
    if (generation == acts.run_to_generation && step != acts.run_to)
        violation("generation %d is told to run to step %lld, and to step %lld", (int)generation,
                  (long long)acts.run_to, (long long)step);
    acts.run_to_generation = (int)generation;
    acts.run_to = step;
}

void invariants_message(const struct host *from, const struct host *to, const char *type,
                        json_object *msg)
{
    (void)to;
    note_term(from, type, msg);
    if (!is_act(type))
        return;
    check_leader(from, type);
    if (strcmp(type, "run_to") == 0)
        check_step(msg);
}

/* ---- worlds ---------------------------------------------------------------------------------- */

void invariants_entered(struct workers *set)
{
    struct job *job = set->host->job;

    /* A change was under way that did not know of it: that world makes a step first. */
    if (job->leave_due != NEVER)
        job->leave_due += training.init + 2 * training.step;
    for (const struct workers *each = set->host->node->sets; each != NULL;
         each = each->next_on_node)
        if (each != set && each->state >= SET_MEETING && each->state < SET_LEAVING)
            violation("node %s is in generation %d and in generation %d", set->host->node->name,
                      each->generation, set->generation);
}

void invariants_formed(int generation, const char *kind, int nodes, int64_t base, int64_t best,
                       bool live)
{
    int64_t lost = training.committed - base;

    trace("world %d of %d node%s begins after step %lld (%s)", generation, nodes,
          nodes == 1 ? "" : "s", (long long)base, kind);
    if (!sizes_allowed(expected.sizes, nodes))
        violation("generation %d has %d nodes, which is not an allowed size", generation, nodes);
    if (generation <= training.newest)
        violation("generation %d begins after generation %d", generation, training.newest);
    /* Who has not passed its first boundary when it is held is told to leave at once. */
    if (training.faults == 0 && lost != 0 && (lost > 1 || training.made > 1))
        violation("generation %d begins after step %lld, and step %lld had been made; nothing has "
                  "failed",
                  generation, (long long)base, (long long)training.committed);
    if (live && best >= 0 && lost > 1)
        violation("generation %d begins after step %lld, and step %lld had been made", generation,
                  (long long)base, (long long)training.committed);
    if (base < training.checkpoint && best < 0)
        violation("generation %d begins after step %lld, and a checkpoint has step %lld",
                  generation, (long long)base, (long long)training.checkpoint);
    if (lost > 0) { /* and is to be: all that had made these steps is gone */
        training.repeated += lost;
        training.committed = base;
    }
    training.newest = generation;
    training.newest_at = clock_now();
    training.made = 0;
    training.size = nodes;
    training.progress = clock_now();
}

void invariants_committed(int generation, int nodes, int64_t step)
{
    (void)nodes;
    if (generation < training.newest) {
        /* The workers of an agent that is stopped, or cut off, hear of it later. */
        if (clock_now() > training.newest_at + LEFT_BEHIND)
            violation("generation %d makes step %lld, and generation %d has begun", generation,
                      (long long)step, training.newest);
        return;
    }
    training.made++;
    if (step <= training.committed) {
        training.repeated++;
        return;
    }
    if (step != training.committed + 1)
        violation("step %lld follows step %lld", (long long)step, (long long)training.committed);
    training.committed = step;
    training.progress = clock_now();
    if (step == training.total)
        trace("the last step is made");
}

/* ---- what Slurm wants back ------------------------------------------------------------------- */

void invariants_asked_back(struct job *job)
{
    const struct workers *set = job->count > 0 ? workers_on(job->nodes[0]) : NULL;

    /* A world that has not made a step may make its first before it is changed. */
    if (training.faults > 0 || set == NULL || set->state != SET_STEPPING || set->held ||
        set->word < 1)
        return;
    for (const struct job *other = slurm_jobs(); other != NULL; other = other->next)
        if (other != job && other->state == SLURM_RUNNING && other->preempted != 0)
            return; /* the change for that one is under way */
    job->leave_due = clock_now() + training.step + MARGIN;
}

void invariants_node_free(struct job *job)
{
    uint64_t due = job->leave_due;

    if (due == NEVER || job->excused || training.faults > 0)
        return;
    if (training.longest_save_until > job->preempted)
        due = training.longest_save_until + training.leave + MARGIN;
    if (clock_now() > due)
        violation("job %u has left %.1f s after it was asked to, a step takes %.1f s", job->id,
                  (double)(clock_now() - job->preempted) / (double)SECOND,
                  (double)training.step / (double)SECOND);
}

/* ---- what has to go on, and to end ----------------------------------------------------------- */

void invariants_look(void)
{
    if (expected.base->state != SLURM_RUNNING || expected.may_wait)
        return;
    if (training.committed < training.total && clock_now() > training.progress + expected.patience)
        violation("no step has been made for %.0f s",
                  (double)(clock_now() - training.progress) / (double)SECOND);
    for (const struct host *host = host_list(); host != NULL; host = host->next)
        if (host->done && host->state == HOST_RUNNING && clock_now() > host->done_at + 30 * SECOND)
            violation("%s is through, and something of it still waits", host_name(host));
}

void invariants_end(void)
{
    const struct job *base = expected.base;

    if (base->state != SLURM_ENDED) {
        violation("the job has not ended");
        return;
    }
    if (base->code == 0 && training.committed < training.total)
        violation("the job ends well after step %lld of %lld", (long long)training.committed,
                  (long long)training.total);
    if (base->code != 0 && !expected.may_fail)
        violation("the job ends with %d", base->code);
    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next)
        if (!job->base && job->state != SLURM_ENDED)
            violation("extension job %u is left (%s)", job->id, job->state_name);
    for (const struct host *host = host_list(); host != NULL; host = host->next)
        violation("an agent on %s is left", host_name(host));
}
