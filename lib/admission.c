/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admission of elastic jobs and extensions (admission.h). */
#include "lib/admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"
#include "lib/text.h"

/* Seconds: a leader asks for a successor two minutes before the time of an extension is over, or in
 * time for its nodes to power up once and a half, and a minute. */
#define SUCCESSION      180
#define SUCCESSION_MORE 90

#define OPTION_EXTEND "elastic-extend"

/* The value where entry is NAME=VALUE, else NULL. */
static const char *entry_value(const char *entry, const char *name)
{
    size_t len = strlen(name);

    if (strncmp(entry, "SPANK_", 6) == 0)
        entry += 6;
    return strncmp(entry, name, len) == 0 && entry[len] == '=' ? entry + len + 1 : NULL;
}

const char *admission_env_get(const struct admission_env *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++) {
        const char *value = env->entries[i] ? entry_value(env->entries[i], name) : NULL;
        if (value)
            return value;
    }
    return NULL;
}

/* The value that the user gave to an option of spank_elastic.so, NULL if there is none. */
static const char *option_text(const struct admission_env *env, const char *option)
{
    char variable[128];

    return admission_env_get(env, policy_option_variable(option, variable, sizeof(variable)));
}

/* The value that the client has merged from all layers, NULL if there is none. */
static const char *merged_text(const struct admission_env *env, const struct policy_option *option)
{
    return admission_env_get(env, option->environment);
}

/* The option first: where the client did not merge its policy, there is nothing else. */
static const char *sizes_text(const struct admission_env *env)
{
    const struct policy_option *sizes = policy_find("elastic");
    const char *text = option_text(env, sizes->option);

    return text ? text : merged_text(env, sizes);
}

int admission_check_env(const struct admission_env *env, struct error *err)
{
    size_t all = 0, longest = 0;

    for (size_t i = 0; i < env->count; i++) {
        size_t len = env->entries[i] != NULL ? strlen(env->entries[i]) + 1 : 0;

        all += len;
        longest = len > longest ? len : longest;
    }
    if (longest <= ADMISSION_ENV_ENTRY && all <= ADMISSION_ENV_ALL)
        return 0;
    return error_set(err,
                     "the options of SPANK plugins have %zu bytes in all and %zu in one; no prolog "
                     "could run with more than %zu and %zu",
                     all, longest, ADMISSION_ENV_ALL, ADMISSION_ENV_ENTRY);
}

enum admission_role admission_role(const struct admission_env *env)
{
    if (option_text(env, OPTION_EXTEND))
        return ADMISSION_EXTENSION;
    return sizes_text(env) ? ADMISSION_BASE : ADMISSION_RIGID;
}

uint32_t admission_base_of(const struct admission_env *env)
{
    const char *text = option_text(env, OPTION_EXTEND);
    int id;

    if (!text || number_parse(text, strlen(text), 1, INT32_MAX, &id) < 0)
        return 0;
    return (uint32_t)id;
}

const char *admission_pool_of(const struct admission_env *env)
{
    return option_text(env, policy_find("pool")->option);
}

int admission_sizes(const struct admission_env *env, struct sizes *sizes, struct error *err)
{
    struct policy policy;
    const char *text = sizes_text(env);
    int rc;

    if (!text)
        return error_set(err, "not an elastic job; submit it with --elastic=MIN:MAX");
    policy_init(&policy);
    rc = policy_set(&policy, "elastic", text, err);
    if (rc == 0)
        *sizes = policy.sizes;
    policy_clear(&policy);
    return rc;
}

static void changes_init(struct admission_changes *changes)
{
    *changes = (struct admission_changes){
        .refusal = ADMISSION_REFUSE_VALUE,
        .min_nodes = ADMISSION_UNSET,
        .max_nodes = ADMISSION_UNSET,
        .tasks = ADMISSION_UNSET,
        .min_cpus = ADMISSION_UNSET,
        .kill_on_node_fail = ADMISSION_UNSET,
        .requeue = ADMISSION_UNSET,
        .time_limit = ADMISSION_UNSET,
        .time_min = ADMISSION_UNSET,
    };
}

void admission_changes_clear(struct admission_changes *changes)
{
    free(changes->admin_comment);
    free(changes->name);
    free(changes->partition);
    free(changes->qos);
    free(changes->features);
    free(changes->excluded);
    free(changes->warning);
    changes_init(changes);
}

static int no_memory(struct admission_changes *changes, struct error *err)
{
    changes->refusal = ADMISSION_REFUSE_SITE;
    return error_set(err, "out of memory");
}

/* ---- base jobs ------------------------------------------------------------------------------- */

/* The text of an option in a job's environment; NULL: the job says nothing. */
static const char *value_text(const struct admission_env *env, const struct policy_option *option)
{
    const char *text;

    if (option->option == NULL)
        return NULL;
    if (option->kind == POLICY_KIND_SIZES)
        return sizes_text(env);
    text = merged_text(env, option);
    return text ? text : option_text(env, option->option);
}

/* The client has checked these values, but a client can say anything. */
static int read_policy(const struct admission_env *env, struct policy *policy, struct error *err)
{
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        const char *text = value_text(env, option);

        if (text && policy_set(policy, option->option, text, err) < 0)
            return -1;
    }
    return 0;
}

static int check_nodes(const struct admission_request *request, const struct sizes *sizes,
                       struct error *err)
{
    int low = request->min_nodes, high = request->max_nodes;

    if (low == ADMISSION_UNSET && high == ADMISSION_UNSET)
        return 0;
    if (low == ADMISSION_UNSET)
        low = high;
    if (high == ADMISSION_UNSET)
        high = low;
    if (low == sizes->min && high == sizes->min)
        return 0;
    if (low == high)
        return error_set(
            err,
            "--nodes=%d contradicts the MIN of %d nodes of --elastic; an elastic job starts on "
            "MIN nodes: leave --nodes out, or make them equal",
            low, sizes->min);
    return error_set(
        err,
        "--nodes=%d-%d contradicts the MIN of %d nodes of --elastic; an elastic job starts on "
        "MIN nodes: leave --nodes out, or make it %d",
        low, high, sizes->min, sizes->min);
}

static int check_base_nodes(const struct admission_request *request, const struct sizes *sizes,
                            struct error *err)
{
    if (check_nodes(request, sizes, err) < 0)
        return -1;
    if (request->partition_nodes != ADMISSION_UNSET && sizes->min > request->partition_nodes)
        return error_set(
            err,
            "the MIN of %d nodes of --elastic can never be had: partition %s lets a job have at "
            "most %d",
            sizes->min, error_value(request->partition_name).text, request->partition_nodes);
    if (request->tasks != ADMISSION_UNSET && request->tasks < sizes->min &&
        request->tasks != request->tasks_per_node)
        return error_set(
            err,
            "--ntasks=%d is less than the MIN of %d nodes of --elastic; there must be a task on "
            "each node: leave --ntasks out, or use --ntasks-per-node",
            request->tasks, sizes->min);
    return 0;
}

static int check_kind(const struct admission_request *request, const char *option,
                      struct error *err)
{
    if (request->array)
        return error_set(
            err, "%s does not work with --array; submit the tasks of the array as jobs", option);
    if (request->heterogeneous)
        return error_set(err, "%s does not work with heterogeneous jobs; submit one job", option);
    return 0;
}

/* Without --nodes, the clients of Slurm turn --ntasks-per-node=T into --ntasks=T, as for a job of
 * one node. */
static void multiply_tasks(const struct admission_request *request, int nodes,
                           struct admission_changes *changes)
{
    if (request->min_nodes != ADMISSION_UNSET || request->tasks_per_node == ADMISSION_UNSET ||
        request->tasks != request->tasks_per_node || request->tasks > INT32_MAX / nodes)
        return;
    changes->tasks = request->tasks * nodes;
    if (request->min_cpus != ADMISSION_UNSET && request->min_cpus <= INT32_MAX / nodes)
        changes->min_cpus = request->min_cpus * nodes;
}

static int set_base(const struct admission_request *request, const struct policy *policy,
                    struct admission_changes *changes, struct error *err)
{
    const struct sizes *sizes = &policy->sizes;
    char text[SIZES_TEXT_MAX];

    if ((!request->admin_comment || request->admin_comment[0] == '\0') &&
        asprintf(&changes->admin_comment, "elastic=%s", sizes_format(sizes, text, sizeof(text))) <
            0) {
        changes->admin_comment = NULL;
        return no_memory(changes, err);
    }
    changes->min_nodes = changes->max_nodes = sizes->min;
    multiply_tasks(request, sizes->min, changes);
    changes->kill_on_node_fail = 0;
    /* Otherwise JobRequeue of slurm.conf holds. */
    if (request->requeue == ADMISSION_UNSET && policy->requeue > 0)
        changes->requeue = 1;
    return 0;
}

static int set_warning(const struct conf *conf, const struct admission_request *request,
                       const struct policy *policy, struct admission_changes *changes,
                       struct error *err)
{
    struct error warnings;

    conf_warn_policy(conf, policy, request->partitions, request->features, &warnings);
    if (warnings.text[0] != '\0' && (changes->warning = strdup(warnings.text)) == NULL)
        return no_memory(changes, err);
    return 0;
}

static int decide_base(const struct conf *conf, const struct admission_request *request,
                       struct policy *policy, struct admission_changes *changes, struct error *err)
{
    policy->now = request->now;
    if (read_policy(&request->env, policy, err) < 0 || conf_check_policy(conf, policy, err) < 0 ||
        policy_check_deadline(policy, request->now, err) < 0)
        return -1;
    changes->refusal = ADMISSION_REFUSE_KIND;
    if (check_kind(request, "--elastic", err) < 0)
        return -1;
    if (admission_is_marked(request->comment))
        return error_set(err, "the comment '%s' is that of an extension job; choose another one",
                         error_value(request->comment).text);
    changes->refusal = ADMISSION_REFUSE_NODES;
    if (check_base_nodes(request, &policy->sizes, err) < 0)
        return -1;
    if (set_warning(conf, request, policy, changes, err) < 0 ||
        set_base(request, policy, changes, err) < 0) {
        free(changes->warning);
        return -1;
    }
    return 0;
}

int admission_base(const struct conf *conf, const struct admission_request *request,
                   struct admission_changes *changes, struct error *err)
{
    struct policy policy;
    int rc;

    changes_init(changes);
    policy_init(&policy);
    rc = decide_base(conf, request, &policy, changes, err);
    policy_clear(&policy);
    return rc;
}

/* ---- extensions ------------------------------------------------------------------------------ */

#define MARKER "elastic-extension-of="

bool admission_is_marked(const char *comment)
{
    return comment && strncmp(comment, MARKER, strlen(MARKER)) == 0;
}

uint32_t admission_marked_base(const char *comment)
{
    const char *id = admission_is_marked(comment) ? comment + strlen(MARKER) : "";
    int number;

    if (number_parse(id, strcspn(id, "."), 1, INT32_MAX, &number) < 0)
        return 0;
    return (uint32_t)number;
}

enum admission_role admission_role_of_job(const struct admission_env *env, const char *comment)
{
    enum admission_role role = admission_role(env);

    return role == ADMISSION_RIGID && admission_is_marked(comment) ? ADMISSION_EXTENSION : role;
}

uint32_t admission_merged_into(const char *dependency)
{
    const char *id = dependency ? strcasestr(dependency, "expand:") : NULL;

    return id ? (uint32_t)strtoul(id + strlen("expand:"), NULL, 10) : 0;
}

/* Does the extension name its base by the option? If not, its comment names the base. */
static bool by_option(const struct admission_request *request)
{
    return option_text(&request->env, OPTION_EXTEND) != NULL;
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

    snprintf(marker, sizeof(marker), "elastic-extension-of=%u.%u", base->id, base->restarts);
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
        name = merged_text(&base->env, pools);
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

int admission_pool(const struct conf *conf, const struct admission_env *env,
                   const struct admission_job *base)
{
    const struct pool *pool;

    if (base->role != ADMISSION_BASE || find_pool(conf, env, base, &pool, NULL) < 0 || !pool)
        return -1;
    return (int)(pool - conf->pools);
}

bool admission_is_fallback(const struct conf *conf, const struct admission_env *env,
                           const struct admission_job *base)
{
    const struct pool *pool;

    return find_pool(conf, env, base, &pool, NULL) == 0 && pool && pool->fallback;
}

bool admission_is_replaced(const struct conf *conf, const struct admission_env *env,
                           const struct admission_job *base)
{
    const struct pool *pool;

    return find_pool(conf, env, base, &pool, NULL) == 0 && pool &&
           (pool->fallback || (pool->reclaim && conf->reclaim.advice == CONF_ADVICE_REPLACE));
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

static int check_fixed(const struct admission_request *request, int *nodes, struct error *err)
{
    int low = request->min_nodes, high = request->max_nodes;

    *nodes = low != ADMISSION_UNSET ? low : high != ADMISSION_UNSET ? high : 1;
    if (*nodes < 1 || (high != ADMISSION_UNSET && high != *nodes))
        return error_set(err, "--nodes=%d-%d; an extension needs a fixed number of nodes", *nodes,
                         high);
    return 0;
}

static int check_max(const struct admission_request *request, const struct admission_job *base,
                     const struct admission_siblings *siblings, const struct pool *pool, int nodes,
                     struct error *err)
{
    struct sizes sizes;
    char more[64] = "";
    int64_t most;

    if (admission_sizes(&base->env, &sizes, err) < 0)
        return error_prefix(err, "job %u", base->id);
    most = most_nodes(siblings, pool, sizes.max, base->node_count);
    if (siblings->node_count + base_nodes(request, base) + nodes <= most)
        return 0;
    if (most > sizes.max)
        text_append(more, sizeof(more), " (%lld until replaced nodes leave)", (long long)most);
    return error_set(err,
                     "%d more nodes are too many; job %u has %d, its extensions have or wait for "
                     "%lld, and its MAX is %d%s",
                     nodes, base->id, base_nodes(request, base), (long long)siblings->node_count,
                     sizes.max, more);
}

static int check_pool(const struct admission_job *base, const struct admission_siblings *siblings,
                      const struct pool *pool, int nodes, struct error *err)
{
    if (!pool || pool->max_nodes == 0 || siblings->pool_count + nodes <= pool->max_nodes)
        return 0;
    return error_set(err,
                     "%d more nodes are too many; job %u has or waits for %lld of pool %s, and "
                     "max_nodes of this pool is %d",
                     nodes, base->id, (long long)siblings->pool_count, pool->name, pool->max_nodes);
}

/* elasticrun --elastic in a job that was not submitted as elastic: only its leader has MAX. Slurm
 * knows what no MAX of the site may exceed. */
static int check_site(const struct conf *conf, const struct admission_request *request,
                      const struct admission_job *base, const struct admission_siblings *siblings,
                      struct admission_changes *changes, struct error *err)
{
    int nodes;

    if (conf->max_nodes == 0)
        return 0;
    if (check_fixed(request, &nodes, err) < 0)
        return -1;
    if (siblings->node_count + base_nodes(request, base) + nodes > conf->max_nodes)
        return error_set(err,
                         "%d more nodes are too many; job %u has %d, its extensions have or wait "
                         "for %lld, and max_nodes of the site is %d",
                         nodes, base->id, base_nodes(request, base),
                         (long long)siblings->node_count, conf->max_nodes);
    changes->min_nodes = changes->max_nodes = nodes;
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

static bool set_strings(const struct admission_request *request, const struct admission_job *base,
                        const struct admission_siblings *siblings, const struct pool *pool,
                        struct admission_changes *changes)
{
    /* Where jobs own their nodes, Slurm itself keeps the extensions apart. A list is made only
     * once; it would exclude a node also after another extension has left that node. */
    const char *taken = base->whole_nodes ? NULL : siblings->nodes;

    if (asprintf(&changes->name, "%s+", base->name ? base->name : "elastic") < 0) {
        changes->name = NULL;
        return false;
    }
    if (!join_excluded(&changes->excluded, request->excluded, base->nodes, taken))
        return false;
    if (!pool)
        return true;
    return copy_text(&changes->partition, pool->partition) && copy_text(&changes->qos, pool->qos) &&
           join_features(&changes->features, base->features, pool->constraint);
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
    int nodes;

    changes->refusal = ADMISSION_REFUSE_KIND;
    if (check_kind(request, by_option(request) ? "--elastic-extend" : "--comment=" MARKER, err) < 0)
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
    if (check_fixed(request, &nodes, err) < 0 ||
        check_max(request, base, siblings, pool, nodes, err) < 0 ||
        check_pool(base, siblings, pool, nodes, err) < 0)
        return name_option(request, base, err);
    changes->refusal = ADMISSION_REFUSE_VALUE;
    if (check_marker(request, base, err) < 0 || set_times(request, base, pool, changes, err) < 0)
        return name_option(request, base, err);
    changes->min_nodes = changes->max_nodes = nodes;
    changes->requeue = 0;
    return set_strings(request, base, siblings, pool, changes) ? 0 : no_memory(changes, err);
}

int admission_extension(const struct conf *conf, const struct admission_request *request,
                        const struct admission_job *base, const struct admission_siblings *siblings,
                        struct admission_changes *changes, struct error *err)
{
    enum admission_refusal refusal;
    int rc;

    changes_init(changes);
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

/* ---- updates --------------------------------------------------------------------------------- */

static bool differs(int nodes, int min)
{
    return nodes != ADMISSION_UNSET && nodes != min;
}

/* Each of the numbers counts for itself: Slurm takes them all. A base that waits may name some of
 * its nodes, one that runs would keep no others. */
static bool resizes(const struct admission_update *update)
{
    if (update->role == ADMISSION_EXTENSION)
        return update->min_nodes != ADMISSION_UNSET || update->max_nodes != ADMISSION_UNSET ||
               update->listed != ADMISSION_UNSET;
    return differs(update->min_nodes, update->min) || differs(update->max_nodes, update->min) ||
           (update->pending ? update->listed > update->min : differs(update->listed, update->min));
}

int admission_update(const struct admission_update *update, struct error *err)
{
    if (update->merges)
        return error_set(err,
                         "no other job can be merged into an elastic job; use selastic resize");
    if (update->role == ADMISSION_EXTENSION) {
        if (resizes(update) || update->placement || update->comment)
            return error_set(
                err, "the nodes, partition, QOS, constraint and comment of an extension cannot be "
                     "changed; use selastic resize on its base job");
        return 0;
    }
    /* MAX is checked when an extension is submitted. */
    if (admission_is_marked(update->comment))
        return error_set(err, "a job becomes an extension only when it is submitted; choose "
                              "another comment");
    if (update->role == ADMISSION_BASE && resizes(update))
        return error_set(
            err,
            "the base of an elastic job keeps its MIN of %d nodes; use selastic resize, which "
            "changes its extensions",
            update->min);
    return 0;
}
