/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How processes ask Slurm: common/slurm_client.h, the queue of such calls, and the programs that
 * are started. */
#include <signal.h>

#include "common/slurm_client.h"
#include "common/slurm_queue.h"
#include "lib/admission.h"
#include "lib/names.h"
#include "lib/text.h"
#include "tests/sim/sim.h"

#define TIMEOUT   (10 * SECOND) /* MessageTimeout */
#define ASKED_MAX 4096

/* ---- calls ----------------------------------------------------------------------------------- */

/* When slurmctld was asked something; for what by lists, of nodes, partitions or a user's jobs. */
static struct {
    uint64_t at;
    bool list;
} asked[ASKED_MAX];
static unsigned asked_count;

static void note_question(bool list)
{
    asked[asked_count % ASKED_MAX].at = clock_now();
    asked[asked_count++ % ASKED_MAX].list = list;
}

int slurm_questions(uint64_t since, bool lists)
{
    int count = 0;

    for (unsigned i = asked_count; i > 0 && asked_count - i < ASKED_MAX; i--) {
        if (asked[(i - 1) % ASKED_MAX].at < since)
            break;
        count += !lists || asked[(i - 1) % ASKED_MAX].list;
    }
    return count;
}

static bool fails(struct error *err)
{
    if (!host_now->failing && slurm_answers(host_now->node))
        return false;
    error_set(err, "Unable to contact slurm controller (connect failure)");
    return true;
}

static bool question(bool list, struct error *err)
{
    note_question(list);
    return fails(err);
}

static enum job_state_kind kind_of(const struct job *job)
{
    static const enum job_state_kind kinds[] = {[SLURM_PENDING] = JOB_KIND_PENDING,
                                                [SLURM_RUNNING] = JOB_KIND_RUNNING,
                                                [SLURM_ENDING] = JOB_KIND_ENDING,
                                                [SLURM_ENDED] = JOB_KIND_ENDED};

    return job->booting ? JOB_KIND_BOOTING : kinds[job->state];
}

static time_t unix_of(uint64_t when)
{
    return time(NULL) + ((time_t)(when / SECOND) - (time_t)(clock_now() / SECOND));
}

static void fill(const struct job *job, struct job_info *info)
{
    memset(info, 0, sizeof(*info));
    info->id = job->id;
    info->restarts = job->restarts;
    info->uid = 1000;
    info->state = kind_of(job);
    snprintf(info->state_name, sizeof(info->state_name), "%s",
             job->state == SLURM_ENDING ? "COMPLETING" : job->state_name);
    info->base_state = job->state_name;
    snprintf(info->reason, sizeof(info->reason), "%s",
             job->state == SLURM_PENDING && cloud_held(job->partition) != NULL
                 ? cloud_held(job->partition)
             : job->state == SLURM_PENDING            ? "Resources"
             : strcmp(job->state_name, "FAILED") == 0 ? "NonZeroExitCode"
                                                      : "None");
    info->name = strdup("train");
    info->partition = strdup(job->partition);
    info->comment = job->comment != NULL ? strdup(job->comment) : NULL;
    info->nodes = job->count > 0 ? strdup(job->nodes[0]->name) : NULL;
    info->num_nodes = job->wanted;
    info->billing = -1;
    info->cpus_per_node = 4;
    info->exclusive = true;
    info->submit = unix_of(job->submitted);
    info->start = unix_of(job->started);
    info->end = unix_of(job->state == SLURM_ENDED ? job->ended_at : job->ends);
    info->preempt_time = job->preempted != 0 ? unix_of(job->preempted) : 0;
    info->time_limit = job->limit > 0 ? (uint32_t)(job->limit / (60 * SECOND)) : 24 * 60;
    info->time_min = (uint32_t)(job->least_limit / (60 * SECOND));
}

int slurm_client_job(uint32_t id, struct job_info **info, struct error *err)
{
    struct job *job = slurm_job(id);

    *info = NULL;
    if (question(false, err))
        return -1;
    if (job == NULL)
        return 0;
    *info = calloc(1, sizeof(**info));
    MUST(*info != NULL);
    fill(job, *info);
    return 0;
}

int slurm_client_jobs(uid_t uid, struct job_info **list, int *count, struct error *err)
{
    (void)uid;
    *list = NULL;
    *count = 0;
    if (question(true, err))
        return -1;
    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next)
        *count += job->id != 0;
    *list = calloc((size_t)*count + 1, sizeof(**list));
    MUST(*list != NULL);
    *count = 0;
    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next)
        if (job->id != 0)
            fill(job, &(*list)[(*count)++]);
    return 0;
}

int64_t slurm_client_calls(void)
{
    return 0;
}

int slurm_client_cancel(uint32_t id, struct error *err)
{
    struct job *job = slurm_job(id);

    if (question(false, err)) {
        if (job != NULL)
            job->excused = true; /* the epilog of its base looks after it */
        return -1;
    }
    if (job != NULL)
        slurm_cancel(job);
    return 0;
}

int slurm_client_requeue(uint32_t id, struct error *err)
{
    struct job *job = slurm_job(id);

    if (question(false, err))
        return -1;
    if (job != NULL)
        slurm_requeue(job);
    return 0;
}

int slurm_client_complete(uint32_t id, int code, struct error *err)
{
    struct job *job = slurm_job(id);

    if (question(false, err))
        return -1;
    trace("%-5s tells Slurm that job %u has ended with %d", host_name(host_now), id, code);
    if (job != NULL && job->state == SLURM_RUNNING)
        slurm_complete(job, code);
    return 0;
}

static void find_unwell(char *const *nodes, bool *unwell)
{
    for (int i = 0; nodes[i] != NULL; i++) {
        const struct node *node = node_named(nodes[i]);

        unwell[i] = node != NULL && (node->drained || node->down);
    }
}

int slurm_client_node_reason(const char *nodes, char *text, size_t size)
{
    (void)nodes;
    if (size > 0)
        text[0] = '\0';
    return 1;
}

int slurm_client_unwell(char *const *nodes, bool *unwell, struct error *err)
{
    for (int i = 0; nodes[i] != NULL; i++)
        if (question(false, err))
            return -1;
    find_unwell(nodes, unwell);
    return 0;
}

int slurm_client_unwell_since(char *const *nodes, bool *unwell, time_t *as_of, bool *changed,
                              struct error *err)
{
    if (question(true, err))
        return -1;
    *as_of = time(NULL);
    *changed = true;
    find_unwell(nodes, unwell);
    return 0;
}

int slurm_client_set_time_min(uint32_t id, uint32_t minutes, struct error *err)
{
    struct job *job = slurm_job(id);

    if (question(false, err))
        return -1;
    if (job == NULL)
        return 0;
    trace("%-5s lets job %u start for %u minutes", host_name(host_now), id, minutes);
    job->least_limit = minutes * 60 * SECOND;
    slurm_try_soon();
    return 0;
}

int slurm_client_is_operator(uid_t uid, bool *is_operator, struct error *err)
{
    (void)uid;
    (void)err;
    *is_operator = false;
    return 0;
}

int slurm_client_cancel_extensions(uint32_t base, uint32_t restarts, uid_t uid, struct error *err)
{
    int count = 0;

    (void)uid;
    if (question(true, err))
        return -1;
    for (struct job *job = slurm_jobs(); job != NULL; job = job->next)
        if (job->of != NULL && job->of->id == base && job->of_restarts == restarts &&
            job->state < SLURM_ENDING) {
            slurm_cancel(job);
            count++;
        }
    return count;
}

int slurm_client_limits(const char *partition, struct slurm_limits *limits, struct error *err)
{
    *limits = (struct slurm_limits){.minutes = UINT32_MAX,
                                    .boot_seconds = SLURM_RESUME_TIMEOUT,
                                    .billing = cloud_billing(partition)};
    if (cloud_boots(partition))
        limits->suspend_seconds = CLOUD_SUSPEND;
    return question(true, err) ? -1 : 0;
}

int slurm_client_power(const char *partition, bool obeyed, struct slurm_power *power,
                       struct error *err)
{
    int up = 0, asleep = 0;

    power->up = power->asleep = NULL;
    power->saves = slurm_saves_power(partition) && !(obeyed && slurm_places());
    if (!power->saves) /* the configuration is known */
        return fails(err) ? -1 : 0;
    if (question(true, err))
        return -1;
    power->up = calloc((size_t)node_count() + 1, sizeof(char *));
    power->asleep = calloc((size_t)node_count() + 1, sizeof(char *));
    MUST(power->up != NULL && power->asleep != NULL);
    for (int i = 0; i < node_count(); i++) {
        char *name;

        if (!cloud_serves(node_at(i), partition))
            continue;
        name = strdup(node_at(i)->name);
        if (node_at(i)->asleep)
            power->asleep[asleep++] = name;
        else
            power->up[up++] = name;
    }
    return 0;
}

int slurm_client_stay_off(uint32_t id, char *const *nodes, char *const *no_longer,
                          struct error *err)
{
    struct job *job = slurm_job(id);
    char **now, **kept, **then;

    if (question(false, err))
        return -1;
    if (job == NULL || job->state != SLURM_PENDING)
        return 0;
    now = slurm_client_expand(job->excluded != NULL ? job->excluded : "");
    kept = names_without(now, no_longer);
    then = names_with(kept, nodes);
    free(job->excluded);
    job->excluded = slurm_client_compress(then, (int)strings_count(then));
    trace("%-5s has job %u stay off %s", host_name(host_now), id, job->excluded);
    strings_free(now);
    strings_free(kept);
    strings_free(then);
    slurm_try_soon();
    return 0;
}

int slurm_client_idle_nodes(const char *partition, bool planned, struct error *err)
{
    (void)planned;
    return question(true, err) ? -1 : slurm_idle(partition);
}

/* ---- the queue of calls ---------------------------------------------------------------------- */

static void start_first(struct host *host, uint64_t since);

struct slurm_work {
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
    struct slurm_work *next;
};

struct call {
    struct host *host;
    uint64_t since;
};

static void answer(void *arg)
{
    struct host *host = arg;
    struct slurm_work *item = host->queue, copy = *item;

    host->queue = item->next;
    host->asking = false;
    if (host->queue != NULL)
        start_first(host, clock_now());
    free(item);
    copy.done(copy.arg);
}

static void ask(void *arg)
{
    struct call *call = arg;
    struct host *host = call->host;
    struct slurm_work *item = host->queue;

    if (!slurm_answers(host->node) && clock_now() < call->since + TIMEOUT) {
        clock_in(SECOND, host, ask, call);
        return;
    }
    free(call);
    host->failing = !slurm_answers(host->node);
    item->work(item->arg);
    host->failing = false;
    /* The process may have ended with what it has asked for. */
    if (host->state == HOST_RUNNING || host->state == HOST_STOPPED)
        clock_in(chance_between(MS, 20 * MS), host, answer, host);
}

static void start_first(struct host *host, uint64_t since)
{
    struct call *call = malloc(sizeof(*call));

    MUST(call != NULL);
    *call = (struct call){host, since};
    host->asking = true;
    clock_in(chance_between(MS, 30 * MS), host, ask, call);
}

static void append(uv_loop_t *loop, struct slurm_work *item)
{
    struct host *host = host_of_loop(loop);
    struct slurm_work **end = (struct slurm_work **)&host->queue;

    while (*end != NULL)
        end = &(*end)->next;
    *end = item;
    if (!host->asking)
        start_first(host, clock_now());
}

static struct slurm_work *item_create(void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct slurm_work *item = calloc(1, sizeof(*item));

    MUST(item != NULL);
    *item = (struct slurm_work){.work = work, .done = done, .arg = arg};
    return item;
}

int slurm_ask(uv_loop_t *loop, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    append(loop, item_create(work, done, arg));
    return 0;
}

struct later {
    uv_loop_t *loop;
    struct slurm_work *item;
};

static void append_now(void *arg)
{
    struct later *later = arg, copy = *later;

    free(later);
    append(copy.loop, copy.item);
}

int slurm_ask_after(uv_loop_t *loop, uint64_t ms, void (*work)(void *arg), void (*done)(void *arg),
                    void *arg)
{
    struct later *later = malloc(sizeof(*later));

    MUST(later != NULL);
    *later = (struct later){loop, item_create(work, done, arg)};
    clock_in(ms * MS, host_of_loop(loop), append_now, later);
    return 0;
}

/* Calls that wait look again by themselves. */
void slurm_answer_changed(void)
{
}

/* ---- programs -------------------------------------------------------------------------------- */

struct child {
    uv_process_t *process;
    uv_stream_t *out, *err;
    struct host *host;
    bool ended;
    /* of sbatch */
    int nodes, base_left;
    uint64_t delay, since, limit;
    uint32_t restarts;
    char *partition, *exclude, *leader, *comment;
    struct job *base;
    /* how it ends */
    char text[256];
    bool refused;
    int status, signal;
};

#define CHILD(process) ((process)->u.reserved[1])

static void give(uv_stream_t *stream, const char *text)
{
    uv_buf_t buf;

    if (stream == NULL || stream->read_cb == NULL)
        return;
    if (text[0] != '\0') {
        stream->alloc_cb((uv_handle_t *)stream, 65536, &buf);
        MUST(buf.len >= strlen(text));
        memcpy(buf.base, text, strlen(text));
        stream->read_cb(stream, (ssize_t)strlen(text), &buf);
    }
    buf = uv_buf_init(NULL, 0);
    stream->read_cb(stream, UV_EOF, &buf);
}

static void give_out(void *arg)
{
    struct child *child = arg;

    give(child->out, child->refused ? "" : child->text);
}

static void give_err(void *arg)
{
    struct child *child = arg;

    give(child->err, child->refused ? child->text : "");
}

static void give_exit(void *arg)
{
    struct child *child = arg;

    child->process->exit_cb(child->process, child->status, child->signal);
}

static void end_child(struct child *child)
{
    if (child->ended)
        return;
    child->ended = true;
    clock_in(chance_between(0, 5 * MS), child->host, give_out, child);
    clock_in(chance_between(0, 5 * MS), child->host, give_err, child);
    clock_in(chance_between(0, 5 * MS), child->host, give_exit, child);
}

/* Slurm refuses a job that could not even start if all nodes were free. */
static bool has_nodes(const struct child *child)
{
    char **excluded = slurm_client_expand(child->exclude != NULL ? child->exclude : "");
    char **all = calloc((size_t)node_count() + 1, sizeof(char *));
    int left, count = 0;

    MUST(excluded != NULL && all != NULL);
    for (int i = 0; i < node_count(); i++)
        if (cloud_serves(node_at(i), child->partition))
            all[count++] = node_at(i)->name;
    left = names_count_without(all, excluded);
    free(all);
    strings_free(excluded);
    return left >= child->nodes;
}

/* The leader is believed for nodes that Slurm has out of service. */
static int base_nodes(const struct child *child)
{
    const struct job *base = child->base;
    int least = 0;

    for (int i = 0; i < base->count; i++)
        least += !base->nodes[i]->down && !base->nodes[i]->drained;
    if (child->base_left <= 0 || child->base_left >= base->count)
        return base->count;
    return child->base_left > least ? child->base_left : least;
}

/* As job_submit/elastic counts: what leaves soon does not count, nodes that may be replaced leave
 * when another one has joined, and nodes of a fallback pool stand in for those that do not come. */
static bool is_admitted(const struct child *child)
{
    const struct job *base = child->base;
    int count = base_nodes(child);
    int most = base->training->policy->sizes.max;

    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next) {
        if (job->of != base || job->of_restarts != base->restarts || job->preempted != 0)
            continue;
        if ((job->state == SLURM_PENDING || job->put_back) &&
            !(cloud_is_fallback(child->partition) && !cloud_is_fallback(job->partition)))
            count += job->wanted;
        if (job->state != SLURM_RUNNING ||
            (job->ends <
                 clock_now() + (uint64_t)admission_succession(SLURM_RESUME_TIMEOUT) * SECOND &&
             job->ends < base->ends))
            continue;
        count += job->count;
        most += cloud_replaces(child->partition, job->partition) ? job->count : 0;
    }
    return count + child->nodes <= most;
}

static void refuse(struct child *child, const char *why)
{
    child->refused = true;
    child->status = 1;
    snprintf(child->text, sizeof(child->text), "sbatch: error: Batch job submission failed: %s\n",
             why);
}

static void sbatch(void *arg)
{
    struct child *child = arg;

    if (child->ended)
        return;
    if (!slurm_answers(child->host->node)) { /* it tries again and again */
        clock_in(SECOND, NULL, sbatch, child);
        return;
    }
    if (slurm_refuses || child->base == NULL || child->base->state != SLURM_RUNNING ||
        child->base->restarts != child->restarts) {
        refuse(child, "refused");
    } else if (setup_now->admission && !is_admitted(child)) {
        refuse(child, "1 more nodes are too many; job 12 has its MAX");
    } else if (cloud_refusal(child->partition) != NULL) {
        refuse(child, cloud_refusal(child->partition));
    } else if (!has_nodes(child)) {
        refuse(child, "Requested node configuration is not available");
    } else {
        struct job *job = slurm_submit(&(struct slurm_request){.base = child->base,
                                                               .nodes = child->nodes,
                                                               .partition = child->partition,
                                                               .exclude = child->exclude,
                                                               .leader = child->leader,
                                                               .comment = child->comment,
                                                               .begins = clock_now() + child->delay,
                                                               .limit = child->limit});

        snprintf(child->text, sizeof(child->text), "%u\n", job->id);
    }
    end_child(child);
}

static const char *value_of(char *const *list, const char *name)
{
    for (; list != NULL && *list != NULL; list++)
        if (strncmp(*list, name, strlen(name)) == 0)
            return *list + strlen(name);
    return NULL;
}

static void begin_sbatch(struct child *child, const uv_process_options_t *options)
{
    const char *nodes = value_of(options->args, "--nodes="),
               *begin = value_of(options->args, "--begin=now+"),
               *partition = value_of(options->args, "--partition="),
               *exclude = value_of(options->args, "--exclude="),
               *limit = value_of(options->args, "--time="),
               *comment = value_of(options->args, "--comment="),
               *left = value_of(options->env, "ELASTIC_BASE_LEFT="),
               *leader = value_of(options->env, "ELASTIC_LEADER=");

    MUST(nodes != NULL && partition != NULL && comment != NULL && leader != NULL);
    child->partition = strdup(partition);
    child->nodes = atoi(nodes);
    child->base_left = left != NULL ? atoi(left) : 0;
    child->delay = begin != NULL ? (uint64_t)atoi(begin) * SECOND : 0;
    child->exclude = exclude != NULL ? strdup(exclude) : NULL;
    child->leader = strdup(leader);
    child->comment = strdup(comment);
    child->limit = limit != NULL ? (uint64_t)atoi(limit) * 60 * SECOND : 0;
    child->base = slurm_job((uint32_t)atoi(strchr(comment, '=') + 1));
    child->restarts = (uint32_t)atoi(strchr(comment, '.') + 1);
    clock_in(chance_between(20 * MS, 400 * MS), NULL, sbatch, child);
}

static void node_fail(void *arg)
{
    struct child *child = arg;
    struct job *job = child->host->job;

    if (!job->srun || !network_reaches(child->host->node, job->nodes[0]))
        child->status = 1;
    else
        slurm_told(job, child->exclude);
    end_child(child);
}

int uv_spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options)
{
    struct child *child = calloc(1, sizeof(*child));

    MUST(child != NULL);
    process->loop = loop;
    process->type = UV_PROCESS;
    process->flags = 0;
    process->exit_cb = options->exit_cb;
    process->pid = 1;
    CHILD(process) = child;
    child->process = process;
    child->host = host_of_loop(loop);
    if (strcmp(options->file, "sbatch") == 0) {
        child->out = options->stdio[1].data.stream;
        child->err = options->stdio[2].data.stream;
        begin_sbatch(child, options);
        return 0;
    }
    if (strcmp(options->file, "elastic-node-fail") == 0) {
        child->exclude = strdup(options->args[5]);
        trace("%-5s tells srun that %s is lost", host_name(child->host), child->exclude);
        clock_in(chance_between(5 * MS, 50 * MS), NULL, node_fail, child);
        return 0;
    }
    return UV_ENOENT;
}

int uv_process_kill(uv_process_t *process, int number)
{
    struct child *child = CHILD(process);

    child->signal = number;
    end_child(child);
    return 0;
}
