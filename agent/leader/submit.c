/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader submits an extension job (submit.h): with sbatch and not by a library call, so that
 * SPANK plugins, cli_filter and whatever a site has put in front of submission apply. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extension_argv.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/market.h"
#include "agent/leader/measures.h"
#include "agent/leader/no_wake.h"
#include "agent/leader/planning.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/submit.h"
#include "common/log.h"
#include "lib/retry.h"
#include "lib/roles.h"
#include "lib/slurm_words.h"

#define SUBMIT_LIMIT_MS 60000 /* for sbatch, which retries while slurmctld restarts */
#define PUT_OFF         60.0
#define FULL            2.0 /* then twice as long each time, up to PUT_OFF */
#define MINUTES_MIN     1   /* no extension for less */

struct submit {
    struct submission *submission; /* a running sbatch; NULL: none */
    int count;                     /* submissions so far */
    double after;                  /* no sbatch before, whatever the pool; 0: it may be */
    struct retry full;             /* what Slurm has yet makes too many nodes with more */
};

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
    int nodes, increments; /* for the world */
    int role, replicas;    /* role -1: for the world */
    const struct pool *pool;
};

/* What it is for, in words. */
static const char *describe(const struct submission *s, char *text, size_t size)
{
    if (s->role < 0)
        snprintf(text, size, "%d node%s", s->nodes, s->nodes == 1 ? "" : "s");
    else
        snprintf(text, size, "%d replica%s of %s", s->replicas, s->replicas == 1 ? "" : "s",
                 s->leader->options->roles->list[s->role].name);
    return text;
}

static void submission_result(struct submission *s)
{
    struct leader *leader = s->leader;
    struct extension *ext = extensions_find(leader, 0);
    unsigned long job = strtoul(s->out_text, NULL, 10);

    leader->submit->submission = NULL;
    if (s->status == 0 && job > 0 && job < UINT32_MAX) {
        if (extensions_find(leader, (uint32_t)job) != NULL) {
            /* Its agents have joined before. */
            if (ext != NULL)
                extensions_drop(leader, ext);
            ext = extensions_find(leader, (uint32_t)job);
            if (ext != NULL && ext->nodes < s->nodes) {
                if (ext->state == PLAN_JOINED)
                    extensions_set_state(leader, ext, PLAN_STARTING);
                extensions_count_nodes(leader, ext, s->nodes);
            }
        } else if (ext != NULL) {
            ext->job = (uint32_t)job;
            extensions_set_state(leader, ext, PLAN_PENDING);
        }
        if (ext != NULL) {
            ext->pool = s->pool;
            ext->role = s->role;
        }
        extensions_set_refusal(leader, "");
        leader->submit->after = 0;
        retry_reset(&leader->submit->full);
        job_pools_accepted(leader, s->pool);
        planning_note_increments(leader, s->increments);
        if (change_is_ending(leader->change) || change_stopping(leader->change))
            extensions_cancel(leader, (uint32_t)job, false, "the job is ending");
    } else {
        char why[256], what[80];

        if (ext != NULL)
            extensions_drop(leader, ext);
        slurm_words_refusal(s->err_text, why, sizeof(why));
        if (s->status > 128 || slurm_words_unsure(s->err_text))
            slurm_look_list(leader); /* slurmctld may have taken it all the same */
        if (why[0] == '\0')
            snprintf(why, sizeof(why), "sbatch ended with status %lld", (long long)s->status);
        allocation_growth_failed(leader, why);
        if (s->replicas > 1) /* which is how many of them a node holds is found out */
            log_debug("an extension of %s was refused: %s", describe(s, what, sizeof(what)), why);
        else if (strcmp(extensions_refusal(leader), why) != 0) /* once, however often it is tried */
            log_info("job %u: an extension of %s was refused: %s", leader->options->job,
                     describe(s, what, sizeof(what)), why);
        if (s->replicas <= 1)
            extensions_set_refusal(leader, why);
        if (slurm_words_full(s->err_text))
            leader->submit->after = leader_now(leader) +
                                    retry_failed(&leader->submit->full, leader_now(leader));
        else if (s->replicas <= 1) /* else fewer are asked for */
            job_pools_refused(leader, s->pool, why);
        planning_note_increments(leader, 0);
    }
    planning_later(leader, 0);
    leader_look_at_end(leader, 0);
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
    measures_submitted(s->leader);
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

/* No sbatch for now. why: what users are told. */
static void put_off(struct leader *leader, const char *why)
{
    extensions_set_refusal(leader, why);
    leader->submit->after = leader_now(leader) + PUT_OFF;
}

static bool base_ends_soon(struct leader *leader)
{
    const struct job_info *base = slurm_look_base(leader);
    long left = base->end - time(NULL);
    char why[80];

    if (base->time_limit == UINT32_MAX || left >= MINUTES_MIN * 60)
        return false;
    snprintf(why, sizeof(why), "the base job's time limit is %ld s away", left > 0 ? left : 0);
    put_off(leader, why);
    return true;
}

/* sbatch knows nothing of the container. The extension's workers would have the files of the node,
 * and the job two kinds of workers. */
static bool is_contained(struct leader *leader)
{
    static const char why[] =
        "elasticrun runs in a container, and an extension's would run outside of it; start the "
        "container from elasticrun: srun elasticrun CONTAINER-TOOL ... COMMAND";

    if (!leader->options->contained)
        return false;
    if (strcmp(extensions_refusal(leader), why) != 0)
        log_error("job %u cannot grow: %s", leader->options->job, why);
    put_off(leader, why);
    return true;
}

/* Its entry in the list of extensions is the one without a number. NULL: out of memory. */
static struct submission *prepare(struct leader *leader, const struct pool *pool, int nodes,
                                  int role)
{
    struct submission *s = calloc(1, sizeof(*s));
    struct extension *ext = s != NULL ? extensions_add(leader, 0, nodes, PLAN_SUBMITTING) : NULL;

    if (ext == NULL) {
        free(s);
        return NULL;
    }
    s->leader = leader;
    s->nodes = nodes;
    s->pool = ext->pool = pool;
    s->role = ext->role = role;
    return s;
}

/* anywhere: also on nodes that are left out for a while. */
static void begin(struct submission *s, struct extension_request *request, bool anywhere)
{
    struct leader *leader = s->leader;
    struct extension *ext = extensions_find(leader, 0);
    char *avoid = anywhere ? NULL : exclude_list(leader, &ext->excludes_until);
    char **argv, **env;

    request->pool = s->pool;
    request->most = job_pools_minutes(leader, s->pool);
    request->avoid = avoid = no_wake_exclude(leader, ext, avoid);
    if (request->delay > 0)
        ext->begin = leader_now(leader) + request->delay;
    argv = extension_argv(leader->options, slurm_look_base(leader), request, time(NULL));
    env = extension_environment(leader, request->role);
    leader->submit->submission = s;
    leader->submit->count++;
    submission_spawn(s, argv, env);
    free(avoid);
    strings_free(argv);
    strings_free(env);
}

void submit_extension(struct leader *leader, const struct plan_output *plan)
{
    const struct pool *pool = market_pool(leader, plan->pool);
    struct extension_request request = {.delay = plan->submit_delay};
    struct submission *s;
    char **used;

    if (is_contained(leader) || base_ends_soon(leader))
        return;
    request.nodes = no_wake_nodes(leader, pool, plan->submit, plan->anywhere);
    if (request.nodes == 0 || (s = prepare(leader, pool, request.nodes, -1)) == NULL)
        return;
    s->increments = plan->submit_increments;
    used = roster_nodes(leader);
    request.used = used;
    begin(s, &request, plan->anywhere);
    free(used);
}

void submit_replicas(struct leader *leader, const struct pool *pool, int role,
                     const struct slots_gang *gang, int replicas, int nodes, int nodes_most)
{
    struct extension_request request = {.role = &leader->options->roles->list[role],
                                        .gang = *gang,
                                        .replicas = replicas,
                                        .nodes = nodes,
                                        .nodes_most = nodes_most};
    struct submission *s;

    if (is_contained(leader) || base_ends_soon(leader) ||
        (s = prepare(leader, pool, nodes, role)) == NULL)
        return;
    s->replicas = replicas;
    begin(s, &request, false);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct submit *submit_create(void)
{
    struct submit *submit = calloc(1, sizeof(*submit));

    if (submit != NULL)
        submit->full = (struct retry){.first = FULL, .max = PUT_OFF};
    return submit;
}

void submit_destroy(struct submit *submit)
{
    free(submit);
}

bool submit_submitting(const struct leader *leader)
{
    return leader->submit->submission != NULL;
}

int submit_count(const struct leader *leader)
{
    return leader->submit->count;
}

double submit_after(const struct leader *leader)
{
    return leader->submit->after;
}
