/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admission of elastic jobs, and what users may change of them (admission.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/admission_private.h"

void admission_changes_init(struct admission_changes *changes)
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
        .counted = ADMISSION_UNSET,
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
    admission_changes_init(changes);
}

int admission_no_memory(struct admission_changes *changes, struct error *err)
{
    changes->refusal = ADMISSION_REFUSE_SITE;
    return error_set(err, "out of memory");
}

int admission_check_kind(const struct admission_request *request, const char *option,
                         struct error *err)
{
    if (request->array)
        return error_set(
            err, "%s does not work with --array; submit the tasks of the array as jobs", option);
    if (request->heterogeneous)
        return error_set(err, "%s does not work with heterogeneous jobs; submit one job", option);
    return 0;
}

/* ---- base jobs ------------------------------------------------------------------------------- */

/* The text of an option in a job's environment; NULL: the job says nothing. */
static const char *value_text(const struct admission_env *env, const struct policy_option *option)
{
    const char *text;

    if (option->option == NULL)
        return NULL;
    if (option->kind == POLICY_KIND_SIZES)
        return admission_sizes_text(env);
    text = admission_merged_text(env, option);
    return text ? text : admission_option_text(env, option->option);
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

/* By it `selastic list` knows what kind of a job it is, also when it is pending. NULL: out of
 * memory. */
static char *mark_of(const struct policy *policy, const struct roles *roles)
{
    const char *group = roles ? roles->group : NULL;
    char sizes[SIZES_TEXT_MAX] = "roles", *mark = NULL;

    if (!roles)
        sizes_format(&policy->sizes, sizes, sizeof(sizes));
    if (asprintf(&mark, ADMISSION_BASE_MARK "%s%s%s", sizes, group ? " group=" : "",
                 group ? group : "") < 0)
        return NULL;
    return mark;
}

/* The base of a job with roles is as large as the user says to Slurm. */
static int set_base(const struct admission_request *request, const struct policy *policy,
                    const struct roles *roles, struct admission_changes *changes, struct error *err)
{
    if (!roles) {
        changes->min_nodes = changes->max_nodes = policy->sizes.min;
        multiply_tasks(request, policy->sizes.min, changes);
    }
    if ((!request->admin_comment || request->admin_comment[0] == '\0') &&
        !(changes->admin_comment = mark_of(policy, roles)))
        return admission_no_memory(changes, err);
    changes->kill_on_node_fail = 0;
    /* Otherwise JobRequeue of slurm.conf holds. */
    if (request->requeue == ADMISSION_UNSET && policy->requeue > 0)
        changes->requeue = 1;
    return 0;
}

/* of_roles: another one, without "warning: ", or empty. */
static int set_warning(const struct conf *conf, const struct admission_request *request,
                       const struct policy *policy, const struct error *of_roles,
                       struct admission_changes *changes, struct error *err)
{
    struct error warnings;

    conf_warn_policy(conf, policy, request->partitions, request->features, &warnings);
    if (of_roles->text[0] != '\0')
        error_set(&warnings, "%s%s%s", warnings.text,
                  warnings.text[0] != '\0' ? "; " : "warning: ", of_roles->text);
    if (warnings.text[0] != '\0' && (changes->warning = strdup(warnings.text)) == NULL)
        return admission_no_memory(changes, err);
    return 0;
}

/* *roles stays NULL where the job has sizes. */
static int read_base(const struct conf *conf, const struct admission_request *request,
                     struct policy *policy, struct roles **roles, struct error *err)
{
    policy->now = request->now;
    if (read_policy(&request->env, policy, err) < 0 || policy_keep_together(policy, err) < 0 ||
        conf_check_policy(conf, policy, err) < 0 ||
        policy_check_deadline(policy, request->now, err) < 0)
        return -1;
    if (!admission_has_roles(&request->env))
        return 0;
    if (policy->sizes.min > 0)
        return error_set(err, "--elastic does not go together with --elastic-roles: the job file "
                              "says how many replicas there are; leave one of them out");
    *roles = admission_roles(conf, &request->env, err);
    return *roles ? 0 : -1;
}

static int decide_base(const struct conf *conf, const struct admission_request *request,
                       const struct policy *policy, const struct roles *roles,
                       struct admission_changes *changes, struct error *err)
{
    struct error warning = {""};

    changes->refusal = ADMISSION_REFUSE_KIND;
    if (admission_check_kind(request, roles ? "--elastic-roles" : "--elastic", err) < 0)
        return -1;
    if (admission_is_marked(request->comment))
        return error_set(err, "the comment '%s' is that of an extension job; choose another one",
                         error_value(request->comment).text);
    changes->refusal = ADMISSION_REFUSE_NODES;
    if (roles ? admission_check_roles(request, roles, &warning, err) < 0
              : check_base_nodes(request, &policy->sizes, err) < 0)
        return -1;
    if (set_warning(conf, request, policy, &warning, changes, err) < 0 ||
        set_base(request, policy, roles, changes, err) < 0) {
        free(changes->warning);
        return -1;
    }
    return 0;
}

int admission_base(const struct conf *conf, const struct admission_request *request,
                   struct admission_changes *changes, struct error *err)
{
    struct roles *roles = NULL;
    struct policy policy;
    int rc;

    admission_changes_init(changes);
    policy_init(&policy);
    rc = read_base(conf, request, &policy, &roles, err);
    if (rc == 0)
        rc = decide_base(conf, request, &policy, roles, changes, err);
    roles_destroy(roles);
    policy_clear(&policy);
    return rc;
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
    if (update->roles && update->pending)
        return false;
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
        if (resizes(update) || update->needs || update->placement || update->comment)
            return error_set(
                err, "the nodes, tasks, resources, partition, QOS, constraint and comment of an "
                     "extension cannot be changed; use selastic resize on its base job");
        if (update->longer)
            return error_set(err, "the time limit of an extension cannot be raised: it follows "
                                  "from its pool's max_time and the end of its base job");
        return 0;
    }
    /* MAX is checked when an extension is submitted. */
    if (admission_is_marked(update->comment))
        return error_set(err, "a job becomes an extension only when it is submitted; choose "
                              "another comment");
    if (update->role == ADMISSION_BASE && update->roles && resizes(update))
        return error_set(err,
                         "the base of a job with roles keeps its %d nodes; use selastic scale, "
                         "which changes its replicas",
                         update->min);
    if (update->role == ADMISSION_BASE && resizes(update))
        return error_set(
            err,
            "the base of an elastic job keeps its MIN of %d nodes; use selastic resize, which "
            "changes its extensions",
            update->min);
    return 0;
}
