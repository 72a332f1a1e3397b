/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm: jobs, nodes, signals, and the srun of each job. */
#include <signal.h>

#include "tests/sim/sim.h"

#define BASE_ID    12
#define KILL_WAIT  (30 * SECOND)
#define LOOK       (30 * SECOND)  /* between two looks at time limits */
#define REQUEUED   (121 * SECOND) /* until it may start again: cred_expire */
#define YOUNG      (20 * SECOND)  /* … which Slurm does not do so early */
#define LAUNCH     (10 * SECOND)  /* until Slurm knows that it cannot launch a job */
#define UNNOTICED  (420 * SECOND) /* … that the node does not answer */
#define NO_LIMIT   (24 * 3600 * SECOND)
#define PRIORITIES 2

static struct job *jobs;
static struct slurm_options options;
static bool is_down, pass_due;
static int woken;
static uint64_t reserved_from; /* no job may last beyond */
bool slurm_refuses, slurm_breaks, slurm_loses;

static void schedule(uint64_t delay);

void slurm_begin(const struct slurm_options *wanted)
{
    jobs = NULL;
    options = *wanted;
    is_down = pass_due = slurm_refuses = slurm_breaks = slurm_loses = false;
    reserved_from = NEVER;
    woken = 0;
    for (int i = 0; i < options.asleep; i++)
        node_at(node_count() - 1 - i)->asleep = true;
}

int slurm_woken(void)
{
    return woken;
}

bool slurm_saves_power(const char *partition)
{
    return cloud_pools() > 0 ? cloud_saves_power(partition) : options.asleep > 0;
}

bool slurm_places(void)
{
    return options.placed > 0;
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
    job->partition = strdup(base ? "batch" : "elastic");
    job->submitted = clock_now();
    job->leave_due = NEVER;
    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    return job;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void end_in_order(struct job *job, const char *why);

static void limit_over(void *arg)
{
    struct job *job = arg;

    if (job->state != SLURM_RUNNING || job->preempted != 0 || clock_now() < job->ends)
        return;
    if (is_down) {
        clock_in(LOOK, NULL, limit_over, job);
        return;
    }
    end_in_order(job, "TIMEOUT");
}

void slurm_limit(struct job *job, uint64_t limit)
{
    job->limit = limit;
    if (job->state != SLURM_RUNNING || job->preempted != 0)
        return;
    job->ends = job->started + (limit > 0 ? limit : NO_LIMIT);
    clock_at(job->ends + chance_between(0, LOOK), NULL, limit_over, job);
}

static void begin_reservation(void *arg)
{
    const uint64_t *time = arg;

    for (int i = 0; i < node_count(); i++)
        if (node_at(i)->job == NULL)
            node_at(i)->taken_until = clock_now() + *time;
    reserved_from = NEVER;
    schedule(*time);
}

void slurm_reserve(uint64_t from, uint64_t time)
{
    static uint64_t how_long;

    how_long = time;
    reserved_from = from;
    clock_at(from, NULL, begin_reservation, &how_long);
}

/* Backfill gives a job as much of its time as there is, if that is enough for it. */
static bool fits_in_time(struct job *job)
{
    uint64_t room = reserved_from - clock_now(), limit = job->limit > 0 ? job->limit : NO_LIMIT;

    if (reserved_from == NEVER || limit <= room)
        return true;
    if (job->least_limit == 0 || job->least_limit > room)
        return false;
    job->limit = room;
    return true;
}

/* ---- a job begins ---------------------------------------------------------------------------- */

static void end_job(struct job *job, const char *state_name);
static void start_over(struct job *job);

static void start_tasks(struct job *job)
{
    for (int i = 0; i < job->count; i++) {
        job->handovers[i].starts = 1;
        host_start(job->nodes[i], job, i, job->base ? &job->handovers[i] : NULL);
    }
}

/* Slurm forgets the grace time of a job that is preempted meanwhile. */
static void booted(void *arg)
{
    struct job *job = arg;

    if (!job->booting)
        return;
    job->booting = false;
    job->preempted = 0;
    trace("slurm job %u: its nodes are up", job->id);
    job->state_name = "RUNNING";
    job->started = clock_now();
    slurm_limit(job, job->limit);
    start_tasks(job);
}

static void boot_fails(void *arg)
{
    struct job *job = arg;

    if (!job->booting)
        return;
    for (int i = 0; i < job->count && cloud_pools() > 0; i++)
        cloud_failed(job->nodes[i]);
    end_job(job, "NODE_FAIL");
}

static void boot(struct job *job, uint64_t time)
{
    job->booting = true;
    job->state_name = "CONFIGURING";
    if (time <= SLURM_RESUME_TIMEOUT * SECOND)
        clock_in(time, NULL, booted, job);
    else
        clock_in(cloud_gives_up(job), NULL, boot_fails, job);
}

/* The last node decides. */
static uint64_t time_to_boot(const struct job *job)
{
    uint64_t up_at = clock_now();

    for (int i = 0; i < job->count; i++)
        if (job->nodes[i]->up_at > up_at)
            up_at = job->nodes[i]->up_at;
    return up_at - clock_now();
}

/* How long its nodes have to power up. */
static uint64_t power_up(struct job *job)
{
    int count = 0;

    for (int i = 0; i < job->count; i++) {
        count += job->nodes[i]->asleep;
        if (job->nodes[i]->asleep && job->nodes[i]->pool >= 0)
            cloud_power_up(job->nodes[i]);
        job->nodes[i]->asleep = false;
    }
    woken += count;
    if (count > 0)
        trace("slurm job %u powers up %d node%s", job->id, count, count == 1 ? "" : "s");
    if (job->base)
        return 0;
    if (cloud_pools() > 0)
        return time_to_boot(job);
    return options.asleep == 0 || count > 0 ? options.boot_time : 0;
}

int slurm_booting(const struct training *training, int pool)
{
    int count = 0;

    for (const struct job *job = jobs; job != NULL; job = job->next)
        for (int i = 0; i < job->count; i++)
            count += job->training == training && job->state == SLURM_RUNNING && job->booting &&
                     job->preempted == 0 && job->nodes[i]->pool == pool &&
                     job->nodes[i]->up_at > clock_now();
    return count;
}

static void node_is_down(void *arg)
{
    struct job *job = arg;

    if (!job->put_back) {
        end_job(job, job->state_name);
        return;
    }
    job->put_back = false;
    start_over(job);
}

static void launch_fails(void *arg)
{
    struct job *job = arg;

    if (job->state != SLURM_RUNNING)
        return;
    trace("slurm job %u could not be launched", job->id);
    job->state = SLURM_ENDING;
    job->state_name = "PENDING";
    job->put_back = true;
    clock_in(UNNOTICED, NULL, node_is_down, job);
}

static void start_job(struct job *job, struct node **nodes)
{
    uint64_t boot_time;

    job->nodes = nodes;
    job->count = job->wanted;
    job->over = calloc((size_t)job->count, sizeof(*job->over));
    job->handovers = calloc((size_t)job->count, sizeof(*job->handovers));
    MUST(job->over != NULL && job->handovers != NULL);
    job->state = SLURM_RUNNING;
    job->state_name = "RUNNING";
    job->started = clock_now();
    slurm_limit(job, job->limit);
    job->srun = true;
    if (job->base)
        job->training->progress = clock_now();
    trace("slurm job %u.%u starts on %d node%s from %s", job->id, job->restarts, job->count,
          job->count == 1 ? "" : "s", nodes[0]->name);
    for (int i = 0; i < job->count; i++)
        nodes[i]->job = job;
    if (!job->base && slurm_breaks) {
        end_job(job, "FAILED");
        return;
    }
    if (!job->base && slurm_loses) {
        clock_in(LAUNCH, NULL, launch_fails, job);
        return;
    }
    invariants_job_starts(job);
    boot_time = power_up(job);
    if (boot_time > 0)
        boot(job, boot_time);
    else
        start_tasks(job);
}

struct job *slurm_base(struct training *training, int wanted, int first_node)
{
    struct job *job = add_job(true, wanted);
    struct node **nodes;

    job->training = training;
    training->base = job;
    if (first_node < 0) {
        schedule(0);
        return job;
    }
    nodes = calloc((size_t)wanted, sizeof(struct node *));
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
    return node->job == NULL && cloud_serves(node, job->partition) && reaches(node) &&
           !node->drained && !node->down && !node->frozen && node->taken_until <= clock_now() &&
           !is_named(job->excluded, node->name);
}

static bool is_victim(const struct job *job, const struct job *other)
{
    if (other->base || other->state != SLURM_RUNNING || other->priority >= job->priority ||
        !cloud_serves(other->nodes[0], job->partition))
        return false;
    for (int i = 0; i < other->count; i++)
        if (is_named(job->excluded, other->nodes[i]->name))
            return false;
    return true;
}

/* So many nodes are missing: extensions of jobs with less priority are preempted, the newest ones
 * first, if that is enough. */
static void make_room(const struct job *job, int missing)
{
    int found = 0, leaving = 0;

    for (const struct job *other = jobs; other != NULL; other = other->next) {
        found += is_victim(job, other) ? other->count : 0;
        leaving += is_victim(job, other) && other->preempted != 0 ? other->count : 0;
    }
    while (found >= missing && leaving < missing) {
        struct job *newest = NULL;

        for (struct job *other = jobs; other != NULL; other = other->next)
            if (is_victim(job, other) && other->preempted == 0)
                newest = other;
        slurm_preempt(newest, 0);
        leaving += newest->count;
    }
}

static void try_start(struct job *job)
{
    struct node **nodes = calloc((size_t)job->wanted, sizeof(struct node *));
    int found = 0;

    MUST(nodes != NULL);
    for (int asleep = 0; asleep <= !(options.placed && !job->base); asleep++)
        for (int i = 0; i < node_count() && found < job->wanted; i++)
            if (node_at(i)->asleep == asleep && is_free(node_at(i), job))
                nodes[found++] = node_at(i);
    if (found == job->wanted && fits_in_time(job)) {
        start_job(job, nodes);
        return;
    }
    free(nodes);
    if (found < job->wanted && job->priority > 0)
        make_room(job, job->wanted - found);
}

static void pass(void *arg)
{
    (void)arg;
    pass_due = false;
    if (is_down) {
        schedule(SECOND);
        return;
    }
    for (int priority = PRIORITIES - 1; priority >= 0; priority--)
        for (struct job *job = jobs; job != NULL; job = job->next) {
            if (job->priority != priority || job->state != SLURM_PENDING)
                continue;
            if (job->begins <= clock_now() && cloud_held(job->partition) == NULL)
                try_start(job);
            else if (job->begins <= clock_now())
                continue;
            else
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

struct job *slurm_submit(const struct slurm_request *request)
{
    struct job *job = add_job(false, request->nodes), *base = request->base;

    job->of = base;
    job->of_restarts = base->restarts;
    job->training = base->training;
    job->priority = base->priority;
    job->limit = request->limit;
    job->excluded = request->exclude;
    job->leader = request->leader;
    job->comment = request->comment;
    job->begins = request->begins;
    free(job->partition);
    job->partition = request->partition;
    trace("slurm job %u: an extension of %d node%s is submitted to %s", job->id, job->wanted,
          job->wanted == 1 ? "" : "s", job->partition);
    schedule(job->begins > clock_now() ? job->begins - clock_now() : 0);
    return job;
}

int slurm_idle(const char *partition)
{
    const struct job nobody = {.partition = (char *)partition};
    int count = 0;

    for (int i = 0; i < node_count(); i++)
        count += !node_at(i)->asleep && is_free(node_at(i), &nobody);
    return count;
}

void slurm_try_soon(void)
{
    schedule(0);
}

/* ---- a job ends ------------------------------------------------------------------------------ */

static void free_node(struct job *job, struct node *node)
{
    if (node->job != job)
        return;
    node->job = NULL;
    cloud_freed(node, job->training);
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
    for (struct job *job = jobs; job != NULL; job = job->next) {
        if (job->of != arg)
            continue;
        if (job->excused)
            slurm_cancel(job);
    }
    if (is_down)
        clock_in(SECOND, NULL, epilog, arg);
}

static void free_nodes(struct job *job)
{
    kill_tasks(job);
    invariants_node_free(job);
    if (job->base)
        clock_in(chance_between(100 * MS, 2 * SECOND), NULL, epilog, job);
    for (int i = 0; i < job->count; i++)
        free_node(job, job->nodes[i]);
    job->srun = false;
}

/* The same job, and nothing of what it was. */
static void start_over(struct job *job)
{
    trace("slurm job %u.%u goes back into the queue", job->id, job->restarts);
    free_nodes(job);
    job->restarts++;
    if (job->base)
        training_begin_incarnation(job->training);
    job->state = SLURM_PENDING;
    job->state_name = "PENDING";
    job->count = job->code = 0;
    job->requeues = job->excused = false;
    job->begins = clock_now() + REQUEUED;
    schedule(REQUEUED);
    schedule(0);
}

static void end_job(struct job *job, const char *state_name)
{
    if (job->state == SLURM_ENDED)
        return;
    if (job->requeues) {
        start_over(job);
        return;
    }
    job->booting = false;
    job->state = SLURM_ENDED;
    job->state_name = state_name;
    job->ended_at = clock_now();
    trace("slurm job %u ends: %s, %d", job->id, state_name, job->code);
    free_nodes(job);
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
    if (!job->srun && job->state == SLURM_RUNNING) /* nobody is there who waits for its tasks */
        return;
    /* Nobody can say how a job has ended whose srun is cut off. */
    end_job(job, job->preempted != 0          ? "PREEMPTED"
                 : !reaches(job->nodes[0])    ? "NODE_FAIL"
                 : job->state == SLURM_ENDING ? job->why
                 : job->code == 0             ? "COMPLETED"
                                              : "FAILED");
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
        if (host->job == job && host->restarts == job->restarts && reaches(host->node))
            clock_in(chance_between(20 * MS, 200 * MS), NULL, deliver, host);
}

static void grace_over(void *arg)
{
    struct job *job = arg;

    if (is_down) { /* nobody ends it, and nobody who has missed the signal can ask */
        job->excused = true;
        clock_in(SECOND, NULL, grace_over, job);
        return;
    }
    if (job->state == SLURM_RUNNING && job->preempted != 0 && !job->booting) {
        if (!job->excused && !job->training->hung)
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

    if (job->state == SLURM_ENDING && clock_now() >= job->killed_at)
        end_job(job, job->why);
}

static void end_in_order(struct job *job, const char *why)
{
    trace("slurm job %u is told to end: %s", job->id, why);
    job->state = SLURM_ENDING;
    job->state_name = job->why = why;
    signal_tasks(job);
    for (struct host *host = host_list(), *next; host != NULL; host = next) {
        next = host->next;
        if (host->job == job && host->agent == NULL && options.slow == SLOW_SRUN)
            host_end(host, false); /* its batch script ends at once */
    }
    job->killed_at = clock_now() + KILL_WAIT;
    clock_at(job->killed_at, NULL, kill_wait_over, job);
}

void slurm_cancel(struct job *job)
{
    if (is_down)
        return;
    if (job->put_back) {
        job->put_back = false;
        job->state_name = "CANCELLED";
    }
    if (job->state == SLURM_PENDING) {
        job->count = 0;
        end_job(job, "CANCELLED");
    }
    if (job->state != SLURM_RUNNING)
        return;
    job->excused = true;
    if (job->booting)
        end_job(job, job->preempted != 0 ? "PREEMPTED" : "CANCELLED");
    else
        end_in_order(job, "CANCELLED");
}

void slurm_requeue(struct job *job)
{
    if (is_down || job->state != SLURM_RUNNING)
        return;
    job->requeues = true;
    end_in_order(job, "REQUEUED");
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
    for (struct job *job = jobs; job != NULL; job = job->next) {
        bool left = false;

        if (job->state != SLURM_RUNNING && job->state != SLURM_ENDING)
            continue;
        task_over(job, node, 0);
        for (int i = 0; i < job->count; i++)
            left = left || !job->nodes[i]->down;
        job->requeues = job->requeues || (!left && job->base);
        if (!left)
            end_job(job, "NODE_FAIL");
    }
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

static void lose_batch_script(struct job *job)
{
    if (!job->base)
        end_job(job, "NODE_FAIL");
    else if (clock_now() > job->started + YOUNG)
        slurm_requeue(job);
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
            if (job->nodes[0] == node) /* its batch script is gone */
                lose_batch_script(job);
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
