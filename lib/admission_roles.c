/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admission of bases with roles (admission.h). */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "lib/admission_private.h"
#include "lib/json_text.h"
#include "lib/roles_base.h"
#include "lib/roles_site.h"

/* The client has read a job file, and this is what it has sent. A client can send anything. */
static struct roles *read_roles(const struct admission_env *env, struct error *err)
{
    const char *text = admission_env_get(env, ROLES_VARIABLE);
    struct roles *roles = NULL;
    json_object *tree;
    int most;

    if (!text || strlen(text) > ROLES_TEXT_MAX) {
        error_set(err,
                  "%s has %zu bytes; spank_elastic.so writes the job file there, with at "
                  "most %d",
                  ROLES_VARIABLE, text ? strlen(text) : 0, ROLES_TEXT_MAX);
        return NULL;
    }
    if (admission_max(env, &most, err) < 0)
        return NULL;
    if ((tree = json_text_parse(text, strlen(text), err)) == NULL ||
        (roles = roles_create(tree, NULL, NULL, err)) == NULL) {
        error_prefix(err, "%s", ROLES_VARIABLE);
    } else if (roles->max_nodes != most) {
        error_set(err, "%s is %d, and max-nodes of %s is %d; both have to be the same",
                  ROLES_NODES_VARIABLE, most, ROLES_VARIABLE, roles->max_nodes);
        roles_destroy(roles);
        roles = NULL;
    }
    json_object_put(tree);
    return roles;
}

struct roles *admission_roles(const struct conf *conf, const struct admission_env *env,
                              struct error *err)
{
    struct roles *roles = read_roles(env, err);

    if (roles && roles_check_site(roles, conf, err) == 0)
        return roles;
    roles_destroy(roles);
    error_prefix(err, "--elastic-roles");
    return NULL;
}

/* ---- what the base holds --------------------------------------------------------------------- */

/* The most nodes that the base can have; INT_MAX: not known. */
static int most_nodes(const struct admission_request *request)
{
    if (request->max_nodes > 0)
        return request->max_nodes;
    return request->partition_nodes > 0 ? request->partition_nodes : INT_MAX;
}

static int check_sum(const struct admission_request *request, int64_t need, int64_t of_node,
                     const char *unit, struct error *err)
{
    int nodes = most_nodes(request);

    if (of_node < 1 || (need - 1) / of_node < nodes)
        return 0;
    return error_set(err,
                     "the replicas that the job guarantees need %" PRId64 " %s, and its base can "
                     "have %d %s of %s with at most %" PRId64 " each; guarantee fewer, or ask for "
                     "more nodes (--nodes)",
                     need, unit, nodes, nodes == 1 ? "node" : "nodes",
                     error_value(request->partitions).text, of_node);
}

/* Nobody knows here how many GPUs nodes have. */
static int check_nodes(const struct admission_request *request, const struct roles *roles,
                       const struct roles_need *need, struct error *err)
{
    struct slots_size node = request->partition_node;

    if (node.cpus < 1)
        return 0;
    node.gpus = INT_MAX;
    if (node.memory < 1)
        node.memory = INT64_MAX;
    for (int i = 0; i < roles->count; i++) {
        const struct role *role = &roles->list[i];

        if (role->min > 0 && role->base == NULL &&
            role_check_node(role, &node, error_value(request->partitions).text, err) < 0)
            return -1;
    }
    return check_sum(request, need->cpus, node.cpus, "CPUs", err) < 0 ||
                   check_sum(request, need->memory, node.memory, "MiB of memory", err) < 0
               ? -1
               : 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* The CPUs that the job asks for; it may get more. */
static int64_t asked_cpus(const struct admission_request *request)
{
    int nodes = larger(request->min_nodes, 1);
    int64_t tasks = (int64_t)nodes * larger(request->tasks_per_node, 1);

    if (request->tasks > tasks)
        tasks = request->tasks;
    tasks *= larger(request->cpus_per_task, 1);
    return request->min_cpus > tasks ? request->min_cpus : tasks;
}

int admission_check_roles(const struct admission_request *request, const struct roles *roles,
                          struct error *warnings, struct error *err)
{
    int64_t asked = asked_cpus(request);
    struct roles_need need;

    warnings->text[0] = '\0';
    roles_need_of_base(roles, &need);
    if (check_nodes(request, roles, &need, err) < 0)
        return error_prefix(err, "--elastic-roles");
    if (!request->whole_nodes && asked < need.cpus)
        error_set(warnings,
                  "the job asks for %" PRId64
                  " %s, and the replicas that it guarantees need %" PRId64
                  ": some of them may wait for ever; `selastic plan FILE --partition=P` prints "
                  "options that are enough",
                  asked, asked == 1 ? "CPU" : "CPUs", need.cpus);
    return 0;
}
