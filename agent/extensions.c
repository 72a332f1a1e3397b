/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extension jobs: asked for with sbatch, watched through Slurm's eyes, given back.
 *
 * sbatch and not a library call, so that SPANK plugins, cli_filter and whatever a site has put in front of submission apply. Calls
 * into libslurm block for as long as slurmctld does and run in libuv's threads; only one of a kind is under way at a time. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/leader_internal.h"
#include "agent/paths.h"
#include "common/log.h"

#define SUBMIT_LIMIT_MS    60000 /* for sbatch, which retries while slurmctld restarts */
#define SUBMIT_BACKOFF_MAX 60.0
#define POLL_BUSY          1.0 /* seconds between looks at Slurm while something is changing */
#define POLL_IDLE          5.0
#define LINGER_LIMIT       10.0 /* a released extension that still runs is cancelled */
#define MINUTES_MIN        1    /* no extension for less */
#define LEAVE_EARLY                                                                                \
    30 /* seconds before its time limit an extension leaves in order: Slurm's KillWait would be short */

/* ---- the command ------------------------------------------------------------------------------------------------------- */

struct argv {
    char **list;
    int count;
    bool failed;
};

static void __attribute__((format(printf, 2, 3))) argv_add(struct argv *argv, const char *fmt, ...)
{
    char **grown = realloc(argv->list, ((size_t)argv->count + 2) * sizeof(*grown));
    va_list ap;

    if (grown == NULL) {
        argv->failed = true;
        return;
    }
    argv->list = grown;
    va_start(ap, fmt);
    if (vasprintf(&grown[argv->count], fmt, ap) < 0)
        grown[argv->count] = NULL, argv->failed = true;
    else
        argv->count++;
    va_end(ap);
    grown[argv->count] = NULL;
}

static void add_resources(struct argv *argv, const struct job_info *base)
{
    argv_add(argv, "--ntasks-per-node=1");
    if (base->exclusive)
        argv_add(argv, "--exclusive");
    else if (base->cpus_per_node > 0)
        argv_add(argv, "--cpus-per-task=%d", base->cpus_per_node);
    if (base->mem_per_cpu > 0)
        argv_add(argv, "--mem-per-cpu=%lluM", (unsigned long long)base->mem_per_cpu);
    else if (base->mem_per_node > 0)
        argv_add(argv, "--mem=%lluM", (unsigned long long)base->mem_per_node);
    if (base->gres_per_node != NULL)
        argv_add(argv, "--gres=%s", base->gres_per_node);
    if (base->account != NULL)
        argv_add(argv, "--account=%s", base->account);
    if (base->reservation != NULL)
        argv_add(argv, "--reservation=%s", base->reservation);
}

static void add_pool(struct argv *argv, const struct job_info *base, const struct pool *pool)
{
    argv_add(argv, "--partition=%s", pool->partition);
    if (pool->qos != NULL)
        argv_add(argv, "--qos=%s", pool->qos);
    if (base->features != NULL && pool->constraint != NULL)
        argv_add(argv, "--constraint=(%s)&(%s)", base->features, pool->constraint);
    else if (base->features != NULL || pool->constraint != NULL)
        argv_add(argv, "--constraint=%s",
                 base->features != NULL ? base->features : pool->constraint);
}

/* Never longer than the base, shortened by backfill down to the pool's time_min. */
static void add_time(struct argv *argv, const struct job_info *base, const struct pool *pool,
                     time_t now)
{
    long minutes, least = pool->time_min > 0 ? pool->time_min : 1;

    if (base->time_limit == UINT32_MAX || base->end <= now)
        return;
    minutes = (base->end - now) / 60;
    if (minutes < 1)
        minutes = 1;
    argv_add(argv, "--time=%ld", minutes);
    argv_add(argv, "--time-min=%ld", minutes < least ? minutes : least);
}

static void add_exclude(struct argv *argv, char *const *exclude)
{
    size_t len = 1;
    char *text;

    for (char *const *node = exclude; node != NULL && *node != NULL; node++)
        len += strlen(*node) + 1;
    if (len == 1 || (text = calloc(1, len)) == NULL)
        return;
    for (char *const *node = exclude; *node != NULL; node++) {
        if (text[0] != '\0')
            strcat(text, ",");
        strcat(text, *node);
    }
    argv_add(argv, "--exclude=%s", text);
    free(text);
}

char **extension_argv(const struct leader_options *options, const struct job_info *base,
                      const struct pool *pool, int nodes, double delay, time_t now,
                      char *const *exclude)
{
    struct argv argv = {0};

    argv_add(&argv, "sbatch");
    argv_add(&argv, "--parsable");
    argv_add(&argv, "--nodes=%d", nodes);
    argv_add(&argv, "--job-name=%s+", base->name != NULL ? base->name : "elastic");
    argv_add(&argv, "--comment=elastic-extension-of=%u.%u", options->job, options->restarts);
    argv_add(&argv, "--no-requeue");
    argv_add(&argv, "--no-kill");
    argv_add(&argv, "--export=ALL");
    argv_add(&argv, "--chdir=/");
    argv_add(&argv, "--output=%s/extension-%%j.log", options->state_dir);
    argv_add(&argv, "--open-mode=truncate");
    add_pool(&argv, base, pool);
    add_resources(&argv, base);
    add_time(&argv, base, pool, now);
    if (delay > 0)
        argv_add(&argv, "--begin=now+%d", (int)(delay + 0.999));
    /* A base that owns its nodes needs no list: Slurm cannot put anything else there. */
    if (!base->exclusive)
        add_exclude(&argv, exclude);
    if (getenv("ELASTIC_SPANK") != NULL) {
        argv_add(&argv, "--elastic-extend=%u", options->job);
        argv_add(&argv, "--elastic-pool=%s", pool->name);
    }
    argv_add(&argv, "%s", paths_extension_script());
    if (argv.failed) {
        strings_free(argv.list);
        return NULL;
    }
    return argv.list;
}

/* The environment of sbatch, and so of the extension: nothing of the step that we run in (it would break the extension's srun). */
static char **submit_environment(struct leader *leader)
{
    static const char *const kept[] = {
        "PATH",   "HOME", "USER",         "LOGNAME",       "SHELL",      "LANG",           "LC_ALL",
        "TMPDIR", "TZ",   "ELASTIC_CONF", "ELASTIC_DEBUG", "SLURM_CONF", "LD_LIBRARY_PATH"};
    struct argv env = {0};

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (getenv(kept[i]) != NULL)
            argv_add(&env, "%s=%s", kept[i], getenv(kept[i]));
    argv_add(&env, "ELASTIC_RUN=%s", leader->options->program);
    argv_add(&env, "ELASTIC_LEADER=%s:%d", leader->options->address, leader_port(leader));
    argv_add(&env, "ELASTIC_BASE=%u.%u", leader->options->job, leader->options->restarts);
    argv_add(&env, "ELASTIC_SLOTS=%d", leader->options->slots);
    if (env.failed) {
        strings_free(env.list);
        return NULL;
    }
    return env.list;
}

/* ---- the list ---------------------------------------------------------------------------------------------------------- */

struct extension *extensions_find(struct leader *leader, uint32_t job)
{
    for (int i = 0; i < leader->extension_count; i++)
        if (leader->extensions[i].job == job)
            return &leader->extensions[i];
    return NULL;
}

static struct extension *add(struct leader *leader, uint32_t job, int nodes,
                             enum plan_extension_state state)
{
    struct extension *grown = realloc(leader->extensions,
                                      ((size_t)leader->extension_count + 1) * sizeof(*grown));

    if (grown == NULL)
        return NULL;
    leader->extensions = grown;
    grown += leader->extension_count++;
    memset(grown, 0, sizeof(*grown));
    grown->job = job;
    grown->nodes = nodes;
    grown->state = state;
    grown->since = leader_now(leader);
    return grown;
}

static void drop(struct leader *leader, struct extension *ext)
{
    struct extension *end = leader->extensions + --leader->extension_count;

    memmove(ext, ext + 1, (size_t)(end - ext) * sizeof(*ext));
}

static void set_state(struct leader *leader, struct extension *ext, enum plan_extension_state state)
{
    if (ext->state == state)
        return;
    ext->state = state;
    ext->since = leader_now(leader);
}

const struct pool *extensions_pool(const struct leader *leader)
{
    const struct policy *policy = leader->options->policy;

    /* Pools are asked in the user's order; what a second one adds comes with mixed pools. */
    return policy->pool_count > 0 ? conf_pool(leader->options->conf, policy->pools[0]) : NULL;
}

static int live_members(const struct leader *leader, uint32_t job)
{
    int count = 0;

    for (int i = 0; i < leader->member_count; i++)
        count += leader->members[i]->job == job && leader->members[i]->link != NULL;
    return count;
}

void extensions_joined(struct leader *leader, struct leader_member *member)
{
    struct extension *ext = extensions_find(leader, member->job);

    if (ext == NULL) {
        /* Submitted, but the answer of sbatch has not reached us (yet): its first agent is faster, or slurmctld went away in between. */
        ext = add(leader, member->job, 1, PLAN_STARTING);
        if (ext == NULL)
            return;
    }
    if (ext->state == PLAN_PENDING || ext->state == PLAN_SUBMITTING)
        set_state(leader, ext, PLAN_STARTING);
    if (live_members(leader, member->job) > ext->nodes)
        ext->nodes = live_members(leader, member->job);
    if (ext->state == PLAN_STARTING && live_members(leader, member->job) == ext->nodes)
        set_state(leader, ext, PLAN_JOINED);
}

void extensions_member_gone(struct leader *leader, struct leader_member *member)
{
    struct extension *ext = extensions_find(leader, member->job);

    if (ext == NULL || member->base)
        return;
    /* Leaving, Slurm takes the whole job. Lost, the others stay (the job is submitted with --no-kill). */
    if (member->leaving || member->released || ext->nodes <= 1)
        set_state(leader, ext, PLAN_LEAVING);
    else if (ext->state != PLAN_LEAVING)
        ext->nodes--;
}

/* ---- sbatch ------------------------------------------------------------------------------------------------------------ */

struct submission {
    struct leader *leader;
    uv_process_t process;
    uv_pipe_t out, err;
    uv_timer_t limit;
    int handles; /* still to be closed */
    int ended;   /* exit and both pipes: 3 when all is in */
    int64_t status;
    char out_text[256], err_text[2048];
    size_t out_len, err_len;
    int nodes, increments;
    double begin;
    const struct pool *pool;
};

/* The last line that says something, without sbatch's own prefix. */
static void last_line(const char *text, char *buf, size_t size)
{
    const char *line = text, *end, *best = text;
    size_t len = 0;

    while (*line != '\0') {
        end = strchrnul(line, '\n');
        if (end > line) {
            best = line;
            len = (size_t)(end - line);
        }
        line = *end != '\0' ? end + 1 : end;
    }
    if (len > 15 && strncmp(best, "sbatch: error: ", 15) == 0) {
        best += 15;
        len -= 15;
    }
    snprintf(buf, size, "%.*s", (int)len, best);
}

static void submission_result(struct submission *s)
{
    struct leader *leader = s->leader;
    struct extension *ext = extensions_find(leader, 0);
    unsigned long job = strtoul(s->out_text, NULL, 10);

    leader->submission = NULL;
    if (s->status == 0 && job > 0 && job < UINT32_MAX) {
        if (extensions_find(leader, (uint32_t)job) != NULL) {
            /* Its agents have joined before. */
            if (ext != NULL)
                drop(leader, ext);
            ext = extensions_find(leader, (uint32_t)job);
            if (ext != NULL && ext->nodes < s->nodes) {
                ext->nodes = s->nodes;
                if (ext->state == PLAN_JOINED)
                    set_state(leader, ext, PLAN_STARTING);
            }
        } else if (ext != NULL) {
            ext->job = (uint32_t)job;
            set_state(leader, ext, PLAN_PENDING);
        }
        if (ext != NULL) {
            ext->pool = s->pool;
            ext->increments = s->increments;
        }
        leader->submit_error[0] = '\0';
        leader->submit_backoff = 2;
        leader->last_increments = s->increments;
        leader->last_poll = 0;
        if (leader->phase == PHASE_ENDING || leader->stopping)
            extensions_cancel(leader, (uint32_t)job, false, "the job is ending");
    } else {
        char before[sizeof(leader->submit_error)];

        if (ext != NULL)
            drop(leader, ext);
        memcpy(before, leader->submit_error, sizeof(before));
        last_line(s->err_text, leader->submit_error, sizeof(leader->submit_error));
        if (leader->submit_error[0] == '\0')
            snprintf(leader->submit_error, sizeof(leader->submit_error),
                     "sbatch ended with status %lld", (long long)s->status);
        if (strcmp(before, leader->submit_error) != 0) /* once, however often it is tried */
            log_info("job %u: an extension of %d node%s was refused: %s", leader->options->job,
                     s->nodes, s->nodes == 1 ? "" : "s", leader->submit_error);
        leader->submit_after = leader_now(leader) + leader->submit_backoff;
        leader->submit_backoff *= 2;
        if (leader->submit_backoff > SUBMIT_BACKOFF_MAX)
            leader->submit_backoff = SUBMIT_BACKOFF_MAX;
        leader->last_increments = 0;
    }
    leader_schedule(leader, 0);
    if (leader->phase == PHASE_ENDING)
        leader_handle_closed(leader);
}

static void submission_closed(uv_handle_t *handle)
{
    struct submission *s = handle->data;

    if (--s->handles == 0)
        free(s);
}

static void submission_part_ended(struct submission *s)
{
    if (++s->ended < 3)
        return;
    uv_timer_stop(&s->limit);
    submission_result(s);
    uv_close((uv_handle_t *)&s->limit, submission_closed);
    uv_close((uv_handle_t *)&s->process, submission_closed);
    uv_close((uv_handle_t *)&s->out, submission_closed);
    uv_close((uv_handle_t *)&s->err, submission_closed);
}

static void submission_exit(uv_process_t *process, int64_t status, int signal)
{
    struct submission *s = process->data;

    s->status = signal != 0 ? 128 + signal : status;
    submission_part_ended(s);
}

static void submission_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char space[4096]; /* used up before the loop goes on */

    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(space, sizeof(space));
}

static void keep(char *text, size_t *len, size_t size, const char *data, size_t count)
{
    size_t room = size - 1 - *len;

    if (count > room)
        count = room;
    memcpy(text + *len, data, count);
    *len += count;
    text[*len] = '\0';
}

static void submission_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct submission *s = stream->data;

    if (count < 0) {
        uv_read_stop(stream);
        submission_part_ended(s);
    } else if (stream == (uv_stream_t *)&s->out) {
        keep(s->out_text, &s->out_len, sizeof(s->out_text), buf->base, (size_t)count);
    } else {
        keep(s->err_text, &s->err_len, sizeof(s->err_text), buf->base, (size_t)count);
    }
}

static void submission_limit(uv_timer_t *timer)
{
    struct submission *s = timer->data;

    uv_process_kill(&s->process, SIGKILL);
}

static int submission_spawn(struct submission *s, char **argv, char **env)
{
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&s->out},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&s->err},
    };
    uv_process_options_t options = {.exit_cb = submission_exit,
                                    .file = "sbatch",
                                    .args = argv,
                                    .env = env,
                                    .cwd = "/",
                                    .stdio_count = 3,
                                    .stdio = stdio};
    int rc;

    uv_pipe_init(s->leader->loop, &s->out, 0);
    uv_pipe_init(s->leader->loop, &s->err, 0);
    uv_timer_init(s->leader->loop, &s->limit);
    s->process.data = s->out.data = s->err.data = s->limit.data = s;
    s->handles = 4;
    rc = uv_spawn(s->leader->loop, &s->process, &options);
    if (rc != 0) {
        snprintf(s->err_text, sizeof(s->err_text), "sbatch: %s", uv_strerror(rc));
        s->status = 127;
        s->ended = 2;
        submission_part_ended(s);
        return rc;
    }
    uv_timer_start(&s->limit, submission_limit, SUBMIT_LIMIT_MS, 0);
    uv_read_start((uv_stream_t *)&s->out, submission_alloc, submission_read);
    uv_read_start((uv_stream_t *)&s->err, submission_alloc, submission_read);
    return 0;
}

/* Nodes of the base and of extensions that stay. */
static char **used_nodes(struct leader *leader)
{
    char **list = calloc((size_t)leader->member_count + 1, sizeof(*list));
    int count = 0;

    for (int i = 0; list != NULL && i < leader->member_count; i++)
        if (leader->members[i]->link != NULL && !leader->members[i]->leaving)
            list[count++] = leader->members[i]->node;
    return list;
}

static bool base_ends_soon(struct leader *leader)
{
    long left = leader->base->end - time(NULL);

    if (leader->base->time_limit == UINT32_MAX || left >= MINUTES_MIN * 60)
        return false;
    snprintf(leader->submit_error, sizeof(leader->submit_error),
             "the base job's time limit is %ld s away", left > 0 ? left : 0);
    leader->submit_after = leader_now(leader) + SUBMIT_BACKOFF_MAX;
    return true;
}

void extensions_submit(struct leader *leader, int nodes, int increments, double delay)
{
    struct submission *s;
    struct extension *ext;
    char **argv, **env, **used;

    if (base_ends_soon(leader))
        return;
    s = calloc(1, sizeof(*s));
    ext = s != NULL ? add(leader, 0, nodes, PLAN_SUBMITTING) : NULL;
    if (ext == NULL) {
        free(s);
        return;
    }
    s->leader = leader;
    s->nodes = nodes;
    s->increments = increments;
    s->pool = extensions_pool(leader);
    ext->pool = s->pool;
    ext->increments = increments;
    if (delay > 0)
        ext->begin = leader_now(leader) + delay;
    leader->submission = s;
    leader->extensions_seen++;
    used = used_nodes(leader);
    argv = extension_argv(leader->options, leader->base, s->pool, nodes, delay, time(NULL), used);
    env = submit_environment(leader);
    submission_spawn(s, argv, env);
    free(used);
    strings_free(argv);
    strings_free(env);
}

/* ---- giving back ------------------------------------------------------------------------------------------------------- */

struct cancelling {
    uv_work_t work;
    struct leader *leader;
    uint32_t *jobs;
    int count;
    bool last; /* the job is ending: nothing follows */
};

static void cancel_work(uv_work_t *work)
{
    struct cancelling *c = work->data;
    struct error err;

    for (int i = 0; i < c->count; i++)
        if (slurm_client_cancel(c->jobs[i], &err) != 0)
            log_debug("cancel job %u: %s", c->jobs[i], err.text);
}

static void cancel_done(uv_work_t *work, int status)
{
    struct cancelling *c = work->data;
    struct leader *leader = c->leader;

    (void)status;
    leader->last_poll = 0;
    leader->cancelling--;
    if (c->last) {
        leader->cleaned = true;
    }
    free(c->jobs);
    free(c);
    if (leader->phase == PHASE_ENDING)
        leader_handle_closed(leader);
}

static void cancel_jobs(struct leader *leader, const uint32_t *jobs, int count, bool last)
{
    struct cancelling *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return;
    c->jobs = calloc((size_t)count + 1, sizeof(*c->jobs));
    if (c->jobs == NULL) {
        free(c);
        return;
    }
    memcpy(c->jobs, jobs, (size_t)count * sizeof(*jobs));
    c->count = count;
    c->last = last;
    c->leader = leader;
    c->work.data = c;
    leader->cancelling++;
    uv_queue_work(leader->loop, &c->work, cancel_work, cancel_done);
}

void extensions_cancel(struct leader *leader, uint32_t job, bool failed, const char *reason)
{
    struct extension *ext = extensions_find(leader, job);

    if (ext == NULL || ext->state == PLAN_LEAVING)
        return;
    log_debug("extension job %u: %s", job, reason);
    if (failed)
        leader_setback(leader);
    if (ext->state != PLAN_JOINED)
        cancel_jobs(leader, &job, 1, false);
    if (ext->state == PLAN_PENDING)
        leader->last_increments = 0;
    set_state(leader, ext, PLAN_LEAVING);
    /* Members in the world leave when it has been changed; the others now. */
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->job != job || m->base)
            continue;
        m->leaving = true;
        if (m->position < 0 || leader->world == NULL)
            leader_release(leader, m, reason);
    }
    leader_schedule(leader, 0);
}

void extensions_cancel_all(struct leader *leader)
{
    uint32_t *jobs = calloc((size_t)leader->extension_count + 1, sizeof(*jobs));
    int count = 0;

    /* Those that have joined end by themselves, with a good state in the accounting; the epilog looks after stragglers. */
    for (int i = 0; jobs != NULL && i < leader->extension_count; i++)
        if (leader->extensions[i].job != 0 && live_members(leader, leader->extensions[i].job) == 0)
            jobs[count++] = leader->extensions[i].job;
    cancel_jobs(leader, jobs, jobs != NULL ? count : 0, true);
    free(jobs);
}

/* ---- Slurm's view ------------------------------------------------------------------------------------------------------ */

struct look {
    uv_work_t work;
    struct leader *leader;
    uid_t uid;
    struct job_info *list;
    int count;
    bool ok;
    struct submission *submission_before; /* what was being submitted when the look began */
    int extensions_before;
    double began;
};

static void look_work(uv_work_t *work)
{
    struct look *look = work->data;
    struct error err = {""};

    look->ok = slurm_client_jobs(look->uid, &look->list, &look->count, &err) == 0;
    if (!look->ok)
        log_debug("Slurm: %s", err.text);
}

static bool alive(const struct job_info *info)
{
    return info != NULL && info->state != JOB_KIND_UNKNOWN && info->state != JOB_KIND_ENDED &&
           info->state != JOB_KIND_ENDING;
}

static struct job_info *look_find(struct look *look, uint32_t job)
{
    for (int i = 0; i < look->count; i++)
        if (look->list[i].id == job)
            return &look->list[i];
    return NULL;
}

/* A pending extension excludes the nodes that its siblings had when it was submitted. Once one of them has left, that would keep the job from
 * its nodes: ask anew. */
static void refresh_excludes(struct leader *leader, double left_since)
{
    if (leader->base == NULL || leader->base->exclusive)
        return;
    for (int i = 0; i < leader->extension_count; i++)
        if (leader->extensions[i].state == PLAN_PENDING && leader->extensions[i].since < left_since)
            extensions_cancel(leader, leader->extensions[i].job, false,
                              "its excluded nodes have become free");
}

/* Why Slurm has told the extension to go, in words for the history. */
static void explain_leaving(struct leader *leader, const struct extension *ext,
                            const struct job_info *info)
{
    const char *why = NULL;

    if (ext->job != leader->leaving_job || info == NULL)
        return;
    if (info->preempt_time != 0)
        why = "preempted";
    else if (strstr(info->state_name, "CANCELLED") != NULL)
        why = "cancelled";
    else if (info->end > 0 && info->end <= time(NULL) + 1)
        why = "at its time limit";
    if (why != NULL)
        snprintf(leader->next_reason, sizeof(leader->next_reason), "extension job %u %s", ext->job,
                 why);
}

/* Backfill may have shortened the extension's time limit; the base goes on for longer. */
static void leave_before_limit(struct leader *leader, struct extension *ext,
                               const struct job_info *info)
{
    time_t now = time(NULL);

    if (ext->state != PLAN_JOINED || info->time_limit == UINT32_MAX ||
        info->end > now + LEAVE_EARLY || info->end <= now ||
        (leader->base != NULL && leader->base->end < info->end + 2 * LEAVE_EARLY))
        return;
    snprintf(leader->next_reason, sizeof(leader->next_reason),
             "extension job %u is near its time limit", ext->job);
    extensions_cancel(leader, ext->job, false, "near its time limit");
}

/* What Slurm says of one extension. Returns false when it is over and forgotten. */
static bool update_extension(struct leader *leader, struct extension *ext, struct job_info *info)
{
    explain_leaving(leader, ext, info);
    if (alive(info)) {
        leave_before_limit(leader, ext, info);
        snprintf(ext->reason, sizeof(ext->reason), "%s", info->reason);
        snprintf(ext->state_name, sizeof(ext->state_name), "%s", info->state_name);
        if (ext->state == PLAN_PENDING &&
            (info->state == JOB_KIND_RUNNING || info->state == JOB_KIND_STARTING))
            set_state(leader, ext, PLAN_STARTING);
        if (ext->state == PLAN_STARTING && info->num_nodes > 0 && info->num_nodes != ext->nodes &&
            info->state == JOB_KIND_RUNNING && live_members(leader, ext->job) <= info->num_nodes) {
            ext->nodes = info->num_nodes;
            if (live_members(leader, ext->job) == ext->nodes)
                set_state(leader, ext, PLAN_JOINED);
        }
        if (ext->state == PLAN_LEAVING && live_members(leader, ext->job) == 0 &&
            leader_now(leader) - ext->since > LINGER_LIMIT) {
            cancel_jobs(leader, &ext->job, 1, false);
            ext->since = leader_now(leader);
        }
        return true;
    }
    if (live_members(leader, ext->job) > 0)
        return true; /* its agents are about to notice */
    if (ext->state == PLAN_PENDING || ext->state == PLAN_STARTING) {
        log_info("job %u: extension job %u ended before it could join (%s)", leader->options->job,
                 ext->job, info != NULL ? info->state_name : "unknown to Slurm");
        leader_setback(leader);
    }
    return false;
}

/* At the first look nothing has been submitted yet: what there is comes from an earlier incarnation, or from an earlier elasticrun of this job
 * that was killed. */
static void cancel_leftovers(struct leader *leader, struct look *look)
{
    uint32_t *jobs = calloc((size_t)look->count + 1, sizeof(*jobs));
    char marker[64];
    int count = 0;

    snprintf(marker, sizeof(marker), "elastic-extension-of=%u.", leader->options->job);
    for (int i = 0; jobs != NULL && i < look->count; i++)
        if (alive(&look->list[i]) && look->list[i].comment != NULL &&
            strncmp(look->list[i].comment, marker, strlen(marker)) == 0)
            jobs[count++] = look->list[i].id;
    if (count > 0)
        cancel_jobs(leader, jobs, count, false);
    free(jobs);
}

static void adopt(struct leader *leader, struct look *look)
{
    char marker[64];

    snprintf(marker, sizeof(marker), "elastic-extension-of=%u.%u", leader->options->job,
             leader->options->restarts);
    for (int i = 0; i < look->count; i++) {
        struct job_info *info = &look->list[i];
        struct extension *ext;

        if (!alive(info) || info->comment == NULL || strcmp(info->comment, marker) != 0 ||
            extensions_find(leader, info->id) != NULL)
            continue;
        ext = add(leader, info->id, info->num_nodes,
                  info->state == JOB_KIND_PENDING ? PLAN_PENDING : PLAN_STARTING);
        if (ext != NULL)
            ext->pool = extensions_pool(leader);
    }
}

static void look_done(uv_work_t *work, int status)
{
    struct look *look = work->data;
    struct leader *leader = look->leader;
    double left_since = -1;

    (void)status;
    leader->polling = false;
    leader->last_poll = leader_now(leader);
    if (look->ok && leader->phase != PHASE_ENDING) {
        struct job_info *base = look_find(look, leader->options->job);

        for (int i = leader->extension_count - 1; i >= 0; i--) {
            struct extension *ext = &leader->extensions[i];

            if (ext->job == 0 ||
                (look_find(look, ext->job) == NULL && ext->since > look->began - 2 * POLL_BUSY) ||
                update_extension(leader, ext, look_find(look, ext->job)))
                continue;
            if (ext->state == PLAN_LEAVING && ext->since > left_since)
                left_since = ext->since;
            drop(leader, ext);
        }
        if (left_since >= 0)
            refresh_excludes(leader, left_since);
        if (leader->base == NULL)
            cancel_leftovers(leader, look);
        else if (look->submission_before == NULL && leader->submission == NULL &&
                 look->extensions_before == leader->extensions_seen)
            adopt(leader, look);
        if (base != NULL) {
            struct job_info *copy = calloc(1, sizeof(*copy));

            if (copy != NULL) {
                /* Take over the entry: the list frees an empty one. */
                *copy = *base;
                memset(base, 0, sizeof(*base));
                job_info_free(leader->base);
                leader->base = copy;
            }
        }
        leader_schedule(leader, 0);
    }
    job_info_free_list(look->list, look->count);
    free(look);
    if (leader->phase == PHASE_ENDING)
        leader_handle_closed(leader);
}

static bool changing(const struct leader *leader)
{
    double now = leader_now(leader);

    for (int i = 0; i < leader->extension_count; i++) {
        const struct extension *ext = &leader->extensions[i];

        if (ext->state == PLAN_STARTING || ext->state == PLAN_LEAVING ||
            (ext->state == PLAN_PENDING && now - ext->since < 30))
            return true;
    }
    return leader->base == NULL;
}

void extensions_poll(struct leader *leader)
{
    struct look *look;

    if (leader->polling || leader->phase == PHASE_ENDING ||
        leader_now(leader) - leader->last_poll < (changing(leader) ? POLL_BUSY : POLL_IDLE) - 0.1)
        return;
    look = calloc(1, sizeof(*look));
    if (look == NULL)
        return;
    look->work.data = look;
    look->leader = leader;
    look->uid = getuid();
    look->submission_before = leader->submission;
    look->extensions_before = leader->extensions_seen;
    look->began = leader_now(leader);
    leader->polling = true;
    uv_queue_work(leader->loop, &look->work, look_work, look_done);
}

void extensions_free(struct leader *leader)
{
    free(leader->extensions);
}
