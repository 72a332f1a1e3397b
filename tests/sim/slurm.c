/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm: jobs, nodes, signals, and the srun of each job. */
#include <signal.h>

#include "tests/sim/sim.h"

#define BASE_ID   12
#define KILL_WAIT (30 * SECOND)

static struct job *jobs;
static struct slurm_options options;
static bool is_down, pass_due;
bool slurm_refuses;

static void schedule(uint64_t delay);

void slurm_begin(const struct slurm_options *wanted)
{
    jobs = NULL;
    options = *wanted;
    is_down = pass_due = slurm_refuses = false;
}

struct job *slurm_jobs(void)
{
    return jobs;
}

struct job *slurm_job(uint32_t id)
{
    for (struct job *job = jobs; job != NULL; job = job->next)
        if (job->id == id)
            return job;
    return NULL;
}

bool slurm_answers(const struct node *from)
{
    return !is_down && from->up && from->island == 0;
}

static bool reaches(const struct node *node)
{
    return node->up && node->island == 0;
}

static struct job *add_job(bool base, int wanted)
{
    static uint32_t last;
    struct job *job = calloc(1, sizeof(*job)), **end = &jobs;

    MUST(job != NULL);
    last = jobs != NULL ? last + 1 : BASE_ID;
    job->id = last;
    job->base = base;
    job->wanted = wanted;
    job->state_name = "PENDING";
    job->submitted = clock_now();
    job->leave_due = NEVER;
    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    return job;
}

/* ---- a job begins ---------------------------------------------------------------------------- */

static void start_job(struct job *job, struct node **nodes)
{
    job->nodes = nodes;
    job->count = job->wanted;
    job->over = calloc((size_t)job->count, sizeof(*job->over));
    job->handovers = calloc((size_t)job->count, sizeof(*job->handovers));
    MUST(job->over != NULL && job->handovers != NULL);
    job->state = SLURM_RUNNING;
    job->state_name = "RUNNING";
    job->started = clock_now();
    job->ends = clock_now() + 3600 * SECOND * 24;
    job->srun = true;
    trace("slurm job %u starts on %d node%s from %s", job->id, job->count,
          job->count == 1 ? "" : "s", nodes[0]->name);
    for (int i = 0; i < job->count; i++) {
        nodes[i]->job = job;
        job->handovers[i].starts = 1;
        host_start(nodes[i], job, i, job->base ? &job->handovers[i] : NULL);
    }
}

struct job *slurm_base(int wanted, int first_node)
{
    struct job *job = add_job(true, wanted);
    struct node **nodes = calloc((size_t)wanted, sizeof(struct node *));

    MUST(nodes != NULL);
    for (int i = 0; i < wanted; i++)
        MUST((nodes[i] = node_at(first_node + i)) != NULL);
    start_job(job, nodes);
    return job;
}

static bool is_named(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; at != NULL && (at = strstr(at, name)) != NULL; at += len)
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

static bool is_free(const struct node *node, const struct job *job)
{
    return node->job == NULL && reaches(node) && !node->drained && !node->down && !node->frozen &&
           node->taken_until <= clock_now() && !is_named(job->excluded, node->name);
}

static void try_start(struct job *job)
{
    struct node **nodes = calloc((size_t)job->wanted, sizeof(struct node *));
    int found = 0;

    MUST(nodes != NULL);
    for (int i = 0; i < node_count() && found < job->wanted; i++)
        if (is_free(node_at(i), job))
            nodes[found++] = node_at(i);
    if (found == job->wanted)
        start_job(job, nodes);
    else
        free(nodes);
}

static void pass(void *arg)
{
    (void)arg;
    pass_due = false;
    if (is_down) {
        schedule(SECOND);
        return;
    }
    for (struct job *job = jobs; job != NULL; job = job->next) {
        if (job->state == SLURM_PENDING && job->begins <= clock_now())
            try_start(job);
        if (job->state == SLURM_PENDING && job->begins > clock_now())
            schedule(job->begins - clock_now());
    }
}

static void pass_later(void *arg)
{
    (void)arg;
    schedule(0);
}

static void schedule(uint64_t delay)
{
    if (delay > SECOND) {
        clock_in(delay, NULL, pass_later, NULL);
    } else if (!pass_due) {
        pass_due = true;
        clock_in(delay + chance_between(50 * MS, 500 * MS), NULL, pass, NULL);
    }
}

struct job *slurm_submit(struct job *base, int wanted, const char *exclude, const char *leader,
                         const char *comment, uint64_t begins)
{
    struct job *job = add_job(false, wanted);

    job->of = base;
    job->excluded = exclude != NULL ? strdup(exclude) : NULL;
    job->leader = strdup(leader);
    job->comment = strdup(comment);
    job->begins = begins;
    trace("slurm job %u: an extension of %d node%s is submitted", job->id, wanted,
          wanted == 1 ? "" : "s");
    schedule(begins > clock_now() ? begins - clock_now() : 0);
    return job;
}

/* ---- a job ends ------------------------------------------------------------------------------ */

static void free_node(struct job *job, struct node *node)
{
    if (node->job != job)
        return;
    node->job = NULL;
    if (job->rival > 0)
        node->taken_until = clock_now() + job->rival;
}

/* Where slurmd is reached. Elsewhere it does so later. */
static void kill_tasks(struct job *job)
{
    for (struct host *host = host_list(), *next; host != NULL; host = next) {
        next = host->next;
        if (host->job == job && reaches(host->node)) {
            host->code = 128 + SIGKILL;
            host_end(host, false);
        }
    }
}

/* The base's epilog looks after stragglers: extensions that something has happened to. */
static void epilog(void *arg)
{
    for (struct job *job = jobs; job != NULL; job = job->next)
        if (job->of == arg && job->excused)
            slurm_cancel(job);
}

static void end_job(struct job *job, const char *state_name)
{
    if (job->state == SLURM_ENDED)
        return;
    job->state = SLURM_ENDED;
    job->state_name = state_name;
    job->ended_at = clock_now();
    job->srun = false;
    trace("slurm job %u ends: %s, %d", job->id, state_name, job->code);
    kill_tasks(job);
    invariants_node_free(job);
    if (job->base)
        clock_in(chance_between(100 * MS, 2 * SECOND), NULL, epilog, job);
    for (int i = 0; i < job->count; i++)
        free_node(job, job->nodes[i]);
    schedule(job->rival > 0 ? job->rival : 0);
    schedule(0);
}

static void end_if_over(void *arg)
{
    struct job *job = arg;

    if (job->state != SLURM_RUNNING && job->state != SLURM_ENDING)
        return;
    for (int i = 0; i < job->count; i++)
        if (!job->over[i])
            return;
    if (!job->srun) /* nobody is there who waits for its tasks */
        return;
    end_job(job, job->preempted != 0 ? "PREEMPTED" : job->code == 0 ? "COMPLETED" : "FAILED");
}

static void task_over(struct job *job, const struct node *node, int code)
{
    for (int i = 0; i < job->count; i++)
        if (job->nodes[i] == node && !job->over[i]) {
            job->over[i] = true;
            if (code > job->code)
                job->code = code;
        }
    clock_in(chance_between(10 * MS, 100 * MS), NULL, end_if_over, job);
}

void slurm_host_ended(struct host *host)
{
    struct job *job = host->job;
    const struct node *node = host->node;

    if (job->state == SLURM_ENDED || !node->up || host->restarts != job->restarts)
        return;
    if (job->base && host->handover == NULL)
        return; /* it is started again */
    task_over(job, node, host->code);
}

void slurm_told(struct job *job, const char *names)
{
    for (int i = 0; i < job->count; i++)
        if (is_named(names, job->nodes[i]->name))
            task_over(job, job->nodes[i], 0);
}

void slurm_complete(struct job *job, int code)
{
    job->code = code;
    end_job(job, code == 0 ? "COMPLETED" : "FAILED");
}

/* ---- signals --------------------------------------------------------------------------------- */

static void deliver(void *arg)
{
    host_signal(arg);
}

static void signal_tasks(struct job *job)
{
    for (struct host *host = host_list(); host != NULL; host = host->next)
        if (host->job == job && reaches(host->node))
            clock_in(chance_between(20 * MS, 200 * MS), NULL, deliver, host);
}

static void grace_over(void *arg)
{
    struct job *job = arg;

    if (job->state == SLURM_RUNNING) {
        if (!job->excused)
            violation("job %u was still there when its grace time was over", job->id);
        end_job(job, "PREEMPTED");
    }
}

void slurm_preempt(struct job *job, uint64_t for_how_long)
{
    if (job->state != SLURM_RUNNING || job->preempted != 0 || is_down)
        return;
    trace("slurm job %u is preempted", job->id);
    job->preempted = clock_now();
    job->ends = clock_now() + (uint64_t)options.grace * SECOND;
    job->rival = for_how_long;
    signal_tasks(job);
    invariants_asked_back(job);
    clock_at(job->ends, NULL, grace_over, job);
}

static void kill_wait_over(void *arg)
{
    struct job *job = arg;

    if (job->state == SLURM_ENDING)
        end_job(job, "CANCELLED");
}

void slurm_cancel(struct job *job)
{
    if (is_down)
        return;
    if (job->state == SLURM_PENDING) {
        job->count = 0;
        end_job(job, "CANCELLED");
    }
    if (job->state != SLURM_RUNNING)
        return;
    trace("slurm job %u is cancelled", job->id);
    job->state = SLURM_ENDING;
    job->state_name = "CANCELLED";
    job->excused = true;
    signal_tasks(job);
    clock_in(KILL_WAIT, NULL, kill_wait_over, job);
}

void slurm_forget(struct job *job)
{
    if (job->state == SLURM_ENDED)
        job->id = 0;
}

/* ---- nodes and the controller ---------------------------------------------------------------- */

static void set_down(void *arg)
{
    struct node *node = arg;

    if (reaches(node) || node->down)
        return;
    trace("slurm node %s is down", node->name);
    node->down = true;
    for (struct job *job = jobs; job != NULL; job = job->next)
        if (job->state == SLURM_RUNNING || job->state == SLURM_ENDING)
            task_over(job, node, 0);
}

/* slurmd finds tasks of jobs that have ended meanwhile. */
static void kill_left_over(struct node *node)
{
    for (struct host *host = node->hosts, *next; host != NULL; host = next) {
        next = host->next_on_node;
        if (host->job->state == SLURM_ENDED || host->restarts != host->job->restarts)
            host_end(host, false);
    }
}

static void came_back(struct node *node)
{
    bool was_down = node->down;

    node->down = false;
    kill_left_over(node);
    for (struct job *job = jobs; job != NULL; job = job->next) {
        bool has = false;

        for (const struct host *host = node->hosts; host != NULL; host = host->next_on_node)
            has = has || host->job == job;
        if (!has && !was_down && job->state == SLURM_RUNNING && node->job == job) {
            task_over(job, node, 0);
            if (!job->base && job->nodes[0] == node)
                end_job(job, "NODE_FAIL"); /* its batch script is gone */
        }
        if (!has && node->job == job && job->state == SLURM_ENDED)
            free_node(job, node);
    }
    schedule(0);
}

void slurm_node_changed(struct node *node)
{
    if (reaches(node))
        came_back(node);
    else
        clock_in((uint64_t)options.down_after * SECOND, NULL, set_down, node);
    for (struct job *job = jobs; job != NULL; job = job->next) {
        if (job->state == SLURM_RUNNING && !node->up && job->nodes[0] == node)
            job->srun = false;
        if (node->job == job)
            job->excused = true;
    }
}

void slurm_down(bool down)
{
    if (down == is_down)
        return;
    trace("slurm controller %s", down ? "is down" : "is back");
    is_down = down;
    if (!down)
        slurm_answer_changed();
}
