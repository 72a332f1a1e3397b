/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admission of extensions (admission.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/admission_private.h"
#include "lib/text.h"

/* Seconds: a leader asks for a successor two minutes before the time of an extension is over, or in
 * time for its nodes to power up once and a half, and a minute. */
#define SUCCESSION      180
#define SUCCESSION_MORE 90

/* Seconds after the end of its time in which Slurm ends a job: it looks every 30 s. */
#define GRACE 60

/* Does the extension name its base by the option? If not, its comment names the base. */
static bool by_option(const struct admission_request *request)
{
    return admission_option_text(&request->env, ADMISSION_OPTION_EXTEND) != NULL;
}

/* Put before the message how the extension has named its base. Returns -1. */
static int name_option(const struct admission_request *request, const struct admission_job *base,
                       struct error *err)
{
    if (!by_option(request))
        return error_prefix(err, "--comment=%s", error_value(request->comment).text);
    if (base->id == 0)
        return error_prefix(err, "--elastic-extend");
    return error_prefix(err, "--elastic-extend=%u", base->id);
}

static int check_base_job(const struct admission_request *request, const struct admission_job *base,
                          struct admission_changes *changes, struct error *err)
{
    changes->refusal = ADMISSION_REFUSE_JOB;
    if (!base->known)
        return error_set(err, "there is no job %u; name a running elastic job", base->id);
    if (base->uid != request->uid) {
        changes->refusal = ADMISSION_REFUSE_OWNER;
        return error_set(err,
                         "job %u belongs to another user; name a running elastic job of your own",
                         base->id);
    }
    if (base->role == ADMISSION_EXTENSION)
        return error_set(err, "job %u is itself an extension, of job %u; name that one", base->id,
                         base->extends);
    if (base->role != ADMISSION_BASE && by_option(request))
        return error_set(err, "job %u is not elastic; it was submitted without --elastic",
                         base->id);
    if (base->pending)
        return error_set(err, "job %u does not run yet; it asks for more nodes itself once it runs",
                         base->id);
    if (!base->running)
        return error_set(err, "job %u has ended or is about to", base->id);
    return 0;
}

/* By this marker, the extensions of a dead base are found and cancelled. */
static int check_marker(const struct admission_request *request, const struct admission_job *base,
                        struct error *err)
{
    char marker[64];

    admission_note(base->id, base->restarts, NULL, marker, sizeof(marker));
    if (request->comment && strcmp(request->comment, marker) == 0)
        return 0;
    return error_set(err,
                     "the comment is '%s'; an extension of this run of the job needs --comment=%s",
                     error_value(request->comment ? request->comment : "").text, marker);
}

/* Slurm counts a lost node of the base for as long as the base has it. The leader of the base tells
 * which nodes it cannot use. It is believed for nodes that Slurm itself has as out of service. */
static int base_nodes(const struct admission_request *request, const struct admission_job *base)
{
    int least = base->lost < base->node_count ? base->node_count - base->lost : 0;

    if (request->base_left == ADMISSION_UNSET || request->base_left >= base->node_count)
        return base->node_count;
    return request->base_left > least ? request->base_left : least;
}

/* The pool that the extension names, else the first one of the base, else the default of the site.
 * *pool is NULL with 0 returned: there is none. */
static int find_pool(const struct conf *conf, const struct admission_env *env,
                     const struct admission_job *base, const struct pool **pool, struct error *err)
{
    const struct policy_option *pools = policy_find("pool");
    const char *name = admission_pool_of(env);
    struct policy policy;
    int rc = 0;

    *pool = NULL;
    if (conf->pool_count == 0)
        return 0;
    policy_init(&policy);
    if (!name)
        name = admission_merged_text(&base->env, pools);
    if (name)
        rc = policy_set(&policy, "pool", name, err);
    if (rc == 0 && policy.pool_count == 0)
        policy_merge(&policy, &conf->defaults);
    if (rc == 0)
        rc = conf_check_policy(conf, &policy, err);
    if (rc == 0)
        *pool = policy.pool_count > 0 ? conf_pool(conf, policy.pools[0]) : &conf->pools[0];
    policy_clear(&policy);
    return rc;
}

int admission_succession(int boot)
{
    int ahead = boot + boot / 2 + SUCCESSION_MORE;

    return ahead > SUCCESSION ? ahead : SUCCESSION;
}

bool admission_ends_soon(int64_t left, int64_t life, int succession, int64_t base_left)
{
    return left > -GRACE && left < succession && left < life / 2 &&
           (base_left == INT64_MAX || left + 60 < base_left);
}

int admission_pool(const struct conf *conf, const struct admission_env *env,
                   const struct admission_job *base)
{
    const struct pool *pool;

    if (base->role != ADMISSION_BASE || find_pool(conf, env, base, &pool, NULL) < 0 || !pool)
        return -1;
    return (int)(pool - conf->pools);
}

int admission_pool_or(const struct conf *conf, const struct admission_env *env,
                      const struct admission_job *base, int pool)
{
    return admission_pool_of(env) ? admission_pool(conf, env, base) : pool;
}

int admission_pool_noted(const struct conf *conf, const char *admin_comment)
{
    static const char word[] = " " ADMISSION_POOL_WORD;
    const char *found = strstr(admin_comment, word);

    if (!found)
        return -1;
    found += strlen(word);
    for (int i = 0; i < conf->pool_count; i++) {
        size_t len = strlen(conf->pools[i].name);

        if (strcspn(found, " ") == len && strncmp(found, conf->pools[i].name, len) == 0)
            return i;
    }
    return -1;
}

bool admission_is_fallback(const struct conf *conf, int pool)
{
    return pool >= 0 && pool < conf->pool_count && conf->pools[pool].fallback;
}

bool admission_is_replaced(const struct conf *conf, int pool)
{
    return admission_is_fallback(conf, pool) ||
           (pool >= 0 && pool < conf->pool_count && conf->pools[pool].reclaim &&
            conf->reclaim.advice == CONF_ADVICE_REPLACE);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* MAX, and so many nodes more as the extension may replace: it joins first, then the others leave.
 * Nodes of a fallback pool stand in for others that do not come. No more can be replaced than a job
 * at MAX has beside its base. The limit of the site is one for MAX: it does not count here. */
static int64_t most_nodes(const struct admission_siblings *siblings, const struct pool *pool,
                          int max, int base)
{
    int64_t most = max, beside = max > base ? max - base : 0;

    if (pool && !pool->fallback)
        most += smaller(siblings->replaced_count, beside);
    if (pool && pool->fallback)
        most += smaller(siblings->waiting_count, beside);
    return most;
}

/* The nodes that an extension asks for. */
struct extent {
    int least;    /* without these it is refused */
    int64_t most; /* it may get so many */
    bool fixed;   /* both are the same. Else Slurm decides on how many nodes its tasks are */
    bool limited; /* … but on no more than `most` */
};

int admission_most_nodes(int min_nodes, int max_nodes, int tasks)
{
    int least = min_nodes > 0 ? min_nodes : 1;

    if (max_nodes > 0)
        return max_nodes > least ? max_nodes : least;
    return tasks > least ? tasks : least;
}

/* An extension for replicas is as large as its tasks. Where Slurm does not know the roles, it is
 * known by naming its tasks only. */
static bool is_by_tasks(const struct admission_request *request, const struct admission_job *base)
{
    if (base->role == ADMISSION_BASE)
        return admission_has_roles(&base->env);
    return request->tasks != ADMISSION_UNSET && request->min_nodes == ADMISSION_UNSET &&
           request->max_nodes == ADMISSION_UNSET;
}

static int find_extent(const struct admission_request *request, const struct admission_job *base,
                       struct extent *extent, struct error *err)
{
    int low = request->min_nodes, high = request->max_nodes;

    if (is_by_tasks(request, base)) {
        *extent = (struct extent){.least = low > 0 ? low : 1,
                                  .most = admission_most_nodes(low, high, request->tasks)};
        return 0;
    }
    if (low == ADMISSION_UNSET)
        low = high != ADMISSION_UNSET ? high : 1;
    if (low < 1 || (high != ADMISSION_UNSET && high != low))
        return error_set(err, "--nodes=%d-%d; an extension needs a fixed number of nodes", low,
                         high);
    *extent = (struct extent){.least = low, .most = low, .fixed = true};
    return 0;
}

/* It gets no more than what is left. */
static void limit_extent(struct extent *extent, int64_t left)
{
    extent->limited = true;
    if (extent->most > left)
        extent->most = left;
}

static int check_max(const struct conf *conf, const struct admission_request *request,
                     const struct admission_job *base, const struct admission_siblings *siblings,
                     const struct pool *pool, struct extent *extent, struct error *err)
{
    char more[64] = "";
    int64_t most, left;
    int max;

    if (admission_max(&base->env, &max, err) < 0)
        return error_prefix(err, "job %u", base->id);
    if (max == 0 && (max = conf->max_nodes) == 0)
        return 0;
    most = most_nodes(siblings, pool, max, base->node_count);
    left = most - siblings->node_count - base_nodes(request, base);
    limit_extent(extent, left);
    if (extent->least <= left)
        return 0;
    if (most > max)
        text_append(more, sizeof(more), " (%lld until replaced nodes leave)", (long long)most);
    return error_set(err,
                     "%d more nodes are too many; job %u has %d, its extensions have or wait for "
                     "%lld, and its MAX is %d%s",
                     extent->least, base->id, base_nodes(request, base),
                     (long long)siblings->node_count, max, more);
}

static int check_pool(const struct admission_job *base, const struct admission_siblings *siblings,
                      const struct pool *pool, struct extent *extent, struct error *err)
{
    if (!pool || pool->max_nodes == 0)
        return 0;
    limit_extent(extent, pool->max_nodes - siblings->pool_count);
    if (siblings->pool_count + extent->least <= pool->max_nodes)
        return 0;
    return error_set(err,
                     "%d more nodes are too many; job %u has or waits for %lld of pool %s, and "
                     "max_nodes of this pool is %d",
                     extent->least, base->id, (long long)siblings->pool_count, pool->name,
                     pool->max_nodes);
}

/* Without a limit, an extension that is as large as its tasks is left to Slurm. Else Slurm is told
 * so: GPUs or CPUs of the whole job could take more nodes than it has tasks. Of a range of nodes
 * Slurm takes few. */
static void set_nodes(const struct extent *extent, struct admission_changes *changes)
{
    changes->counted = (int)extent->most;
    if (extent->fixed) {
        changes->min_nodes = changes->max_nodes = extent->least;
    } else if (extent->limited) {
        changes->min_nodes = extent->least;
        changes->max_nodes = (int)extent->most;
        changes->few_nodes = true;
    }
}

/* elasticrun --elastic in a job that was not submitted as elastic: only its leader has MAX. Slurm
 * knows what no MAX of the site may exceed. */
static int check_site(const struct conf *conf, const struct admission_request *request,
                      const struct admission_job *base, const struct admission_siblings *siblings,
                      struct admission_changes *changes, struct error *err)
{
    struct extent extent;
    int64_t left = (int64_t)conf->max_nodes - siblings->node_count - base_nodes(request, base);

    if (conf->max_nodes == 0)
        return 0;
    if (find_extent(request, base, &extent, err) < 0)
        return -1;
    limit_extent(&extent, left);
    if (extent.least > left)
        return error_set(err,
                         "%d more nodes are too many; job %u has %d, its extensions have or wait "
                         "for %lld, and max_nodes of the site is %d",
                         extent.least, base->id, base_nodes(request, base),
                         (long long)siblings->node_count, conf->max_nodes);
    set_nodes(&extent, changes);
    return 0;
}

/* *copy = text, unless that is NULL. */
static bool copy_text(char **copy, const char *text)
{
    return !text || (*copy = strdup(text)) != NULL;
}

/* The features of the base's nodes, and those of the pool. */
static bool join_features(char **features, const char *base, const char *pool)
{
    if (!base || !pool)
        return copy_text(features, base ? base : pool);
    if (asprintf(features, "(%s)&(%s)", base, pool) >= 0)
        return true;
    *features = NULL;
    return false;
}

/* The nodes of the base and its extensions. Where jobs share nodes, Slurm would put this extension
 * on them. */
static bool join_excluded(char **excluded, const char *own, const char *base, const char *siblings)
{
    const char *parts[] = {own, base, siblings};
    size_t size = 1;

    for (size_t i = 0; i < 3; i++)
        size += parts[i] ? strlen(parts[i]) + 1 : 0;
    *excluded = calloc(1, size);
    if (!*excluded)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (!parts[i] || !*parts[i])
            continue;
        if (**excluded)
            strcat(*excluded, ",");
        strcat(*excluded, parts[i]);
    }
    return true;
}

/* Where jobs own their nodes, Slurm itself keeps the extensions apart. A list is made only once; it
 * would exclude a node also after another extension has left that node. Replicas may be on what is
 * left of a node that the job has already. */
bool admission_needs_nodes(const struct admission_job *base)
{
    return base->role == ADMISSION_BASE && !base->whole_nodes && !admission_has_roles(&base->env);
}

static bool set_strings(const struct admission_request *request, const struct admission_job *base,
                        const struct admission_siblings *siblings, const struct pool *pool,
                        struct admission_changes *changes)
{
    const char *taken = admission_needs_nodes(base) ? siblings->nodes : NULL;
    bool roles = admission_has_roles(&base->env);

    /* Of roles: the leader names it after the role. */
    if (!roles && asprintf(&changes->name, "%s+", base->name ? base->name : "elastic") < 0) {
        changes->name = NULL;
        return false;
    }
    /* Replicas may be on what is left of a node that the job has already. */
    if (!roles && !join_excluded(&changes->excluded, request->excluded, base->nodes, taken))
        return false;
    if (!pool)
        return true;
    return copy_text(&changes->partition, pool->partition) && copy_text(&changes->qos, pool->qos) &&
           join_features(&changes->features, roles ? NULL : base->features, pool->constraint);
}

/* At most the time that the base has left, and max_time of the pool. The leader, not this function,
 * uses time_min of the pool: the backfill of Slurm 22.05 gives a job with --time-min no more than
 * that time. */
static int set_times(const struct admission_request *request, const struct admission_job *base,
                     const struct pool *pool, struct admission_changes *changes, struct error *err)
{
    int limit = request->time_limit, least = request->time_min;

    if (base->minutes_left != ADMISSION_UNLIMITED &&
        (limit == ADMISSION_UNSET || limit > base->minutes_left))
        limit = base->minutes_left;
    if (pool && pool->max_time > 0 && (limit == ADMISSION_UNSET || limit > pool->max_time))
        limit = pool->max_time;
    if (limit != ADMISSION_UNSET && limit < 1) {
        changes->refusal = ADMISSION_REFUSE_JOB;
        return error_set(err, "job %u ends within a minute", base->id);
    }
    if (limit == ADMISSION_UNSET)
        return 0; /* the default of the partition, which is not known here */
    changes->time_limit = limit;
    if (least != ADMISSION_UNSET)
        changes->time_min = least < limit ? least : limit;
    return 0;
}

static int decide_extension(const struct conf *conf, const struct admission_request *request,
                            const struct admission_job *base,
                            const struct admission_siblings *siblings,
                            struct admission_changes *changes, struct error *err)
{
    const struct pool *pool;
    struct extent extent;

    changes->refusal = ADMISSION_REFUSE_KIND;
    if (admission_check_kind(
            request, by_option(request) ? "--elastic-extend" : "--comment=" ADMISSION_MARKER, err) <
        0)
        return -1;
    changes->refusal = ADMISSION_REFUSE_VALUE;
    if (base->id == 0) {
        error_set(err, "not the id of a job; name a running elastic job");
        return name_option(request, base, err);
    }
    if (check_base_job(request, base, changes, err) < 0)
        return name_option(request, base, err);
    if (base->role != ADMISSION_BASE) {
        changes->refusal = ADMISSION_REFUSE_NODES;
        return check_site(conf, request, base, siblings, changes, err) < 0
                   ? name_option(request, base, err)
                   : 0;
    }
    if (find_pool(conf, &request->env, base, &pool, err) < 0) {
        changes->refusal = ADMISSION_REFUSE_VALUE;
        return -1;
    }
    changes->refusal = ADMISSION_REFUSE_NODES;
    if (find_extent(request, base, &extent, err) < 0 ||
        check_max(conf, request, base, siblings, pool, &extent, err) < 0 ||
        check_pool(base, siblings, pool, &extent, err) < 0)
        return name_option(request, base, err);
    changes->refusal = ADMISSION_REFUSE_VALUE;
    if (check_marker(request, base, err) < 0 || set_times(request, base, pool, changes, err) < 0)
        return name_option(request, base, err);
    set_nodes(&extent, changes);
    changes->requeue = 0;
    return set_strings(request, base, siblings, pool, changes) ? 0
                                                               : admission_no_memory(changes, err);
}

int admission_extension(const struct conf *conf, const struct admission_request *request,
                        const struct admission_job *base, const struct admission_siblings *siblings,
                        struct admission_changes *changes, struct error *err)
{
    enum admission_refusal refusal;
    int rc;

    admission_changes_init(changes);
    rc = decide_extension(conf, request, base, siblings, changes, err);
    if (rc < 0) {
        refusal = changes->refusal;
        admission_changes_clear(changes);
        changes->refusal = refusal;
    }
    return rc;
}

void admission_shorten(const struct admission_request *request, int most,
                       struct admission_changes *changes)
{
    int limit = changes->time_limit != ADMISSION_UNSET ? changes->time_limit : request->time_limit;
    int least = changes->time_min != ADMISSION_UNSET ? changes->time_min : request->time_min;

    if (most == ADMISSION_UNLIMITED || (limit != ADMISSION_UNSET && limit <= most))
        return;
    changes->time_limit = most;
    if (least > most)
        changes->time_min = most;
}
