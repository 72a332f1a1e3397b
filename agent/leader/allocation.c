/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many nodes the job is to have (allocation.h): between the questions of the programs' PMIx
 * servers and lib/requests, which decides which request is carried out when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "agent/leader/pmix_world.h"
#include "agent/leader/post.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/requests.h"

#define BEGIN_LIMIT 30.0 /* seconds for all nodes' workers to attach or to initialise PMIx */

struct allocation {
    struct requests *requests; /* of programs */
    int target;        /* nodes that users ask for; what programs ask for counts before it */
    int carried_out;   /* the number of the last request that has begun */
    char refused[256]; /* why the last one was */
};

/* ---- the job as it is ------------------------------------------------------------------------ */

/* Nodes of members that are there, and "" for each node of an extension that Slurm has not ended
 * yet. NULL: out of memory. */
static char **held_nodes(const struct leader *leader)
{
    int count = roster_count(leader), at = 0;
    char **nodes;

    for (int i = 0; i < extensions_count(leader); i++)
        count += extensions_at(leader, i)->nodes;
    nodes = calloc((size_t)count + 1, sizeof(*nodes));
    for (int i = 0; nodes != NULL && i < roster_count(leader); i++)
        if (roster_at(leader, i)->link != NULL)
            nodes[at++] = roster_at(leader, i)->part->node;
    for (int i = 0; nodes != NULL && i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);
        int missing = ext->state == PLAN_LEAVING ? ext->nodes : 0;

        for (int k = 0; k < roster_count(leader); k++)
            missing -= roster_at(leader, k)->part->job == ext->job &&
                       roster_at(leader, k)->link != NULL;
        for (; missing > 0 && at < count; missing--)
            nodes[at++] = "";
    }
    return nodes;
}

static bool is_starting(const struct change_member *part)
{
    return part->place >= 0 && !part->begun && part->state == CHANGE_IN_WORLD;
}

/* Is the world there, on all its nodes? One of which nothing is heard is, after a while. */
static bool has_begun(const struct leader *leader)
{
    if (leader_now(leader) - change_ready_at(leader->change) > BEGIN_LIMIT)
        return true;
    for (int i = 0; i < roster_count(leader); i++)
        if (is_starting(roster_at(leader, i)->part))
            return false;
    return true;
}

static struct request_situation situation(const struct leader *leader, char **held)
{
    return (struct request_situation){
        .sizes = &leader->options->policy->sizes,
        .base_nodes = leader->options->world_nodes,
        .size = change_world(leader->change) != NULL ? change_world(leader->change)->node_count : 0,
        .settled = change_phase(leader->change) == CHANGE_RUNNING && has_begun(leader),
        .held = held,
        .deaf = job_pools_count(leader) == 0
                    ? "this job has no pool that its extensions could come from"
                    : NULL,
    };
}

int allocation_target(const struct leader *leader)
{
    const struct request *current = requests_current(leader->allocation->requests);

    if (current == NULL)
        return leader->allocation->target;
    if (current->kind == REQUEST_EXTEND)
        return current->goal > leader->allocation->target ? current->goal
                                                          : leader->allocation->target;
    return current->goal < leader->allocation->target ? current->goal : leader->allocation->target;
}

/* ---- carrying out ---------------------------------------------------------------------------- */

static void release_named(struct leader *leader, const struct request *request)
{
    for (char **name = request->nodes; name != NULL && *name != NULL; name++)
        for (int i = 0; i < roster_count(leader); i++) {
            struct leader_member *m = roster_at(leader, i);

            if (m->part->base || change_is_left(m->part) || m->link == NULL ||
                strcmp(m->part->node, *name) != 0)
                continue;
            post_reason(leader, "%s released by the program", *name);
            extensions_cancel(leader, m->part->job, false, "released by the program");
            break; /* the list of members may have changed */
        }
}

static void request_id(const struct leader *leader, int number, char *text, size_t size)
{
    snprintf(text, size, "%u.%u.%d", leader->options->job, leader->options->restarts, number);
}

/* Who asked may be of an earlier world: its successor of the same rank hears of it. */
static void tell(struct leader *leader, const struct request *request)
{
    static const char *const words[] = {
        [REQUEST_DONE] = "done", [REQUEST_FAILED] = "failed", [REQUEST_CANCELLED] = "cancelled"};
    int rank = request->rank < world_size(change_world(leader->change)) ? request->rank : 0;
    struct pmix_world pmix_world = {.leader = leader, .relay = &leader->relay};
    struct leader_member *m;
    json_object *msg;
    char id[48];

    request_id(leader, request->number, id, sizeof(id));
    log_info("job %u: request %s of rank %d for %d node%s %s: %s%s%s", leader->options->job, id,
             request->rank, request->change, request->change == 1 ? "" : "s",
             request->kind == REQUEST_EXTEND ? "more" : "less", words[request->state],
             request->why[0] != '\0' ? ": " : "", request->why);
    if (request->rank < 0)
        return; /* a tool, which may be gone */
    m = pmix_world_member(&pmix_world, world_node_of(change_world(leader->change), rank));
    if (m == NULL)
        return;
    msg = pmix_world_message(&pmix_world, "event");
    json_object_object_add(msg, "what", json_object_new_string(words[request->state]));
    json_object_object_add(msg, "rank", json_object_new_int(rank));
    json_object_object_add(msg, "id", json_object_new_string(id));
    json_object_object_add(msg, "label", json_object_new_string(request->label));
    json_object_object_add(msg, "reason", json_object_new_string(request->why));
    json_object_object_add(msg, "nodes",
                           json_object_new_int(change_world(leader->change)->node_count));
    leader_send(m, msg);
}

static void tell_ended(struct leader *leader)
{
    struct request *ended;

    while ((ended = requests_ended(leader->allocation->requests)) != NULL) {
        if (ended->state == REQUEST_DONE &&
            (ended->kind == REQUEST_RELEASE || ended->goal > leader->allocation->target))
            leader->allocation->target = ended->goal;
        tell(leader, ended);
        request_free(ended);
    }
}

void allocation_update(struct leader *leader)
{
    struct request_situation now;
    const struct request *current;
    double next;
    char **held;

    if (requests_empty(leader->allocation->requests))
        return; /* as for most jobs, always */
    held = held_nodes(leader);
    now = situation(leader, held);
    next = held != NULL ? requests_update(leader->allocation->requests, &now, leader_now(leader))
                        : 0;
    free(held);
    current = requests_current(leader->allocation->requests);
    if (current != NULL && current->number != leader->allocation->carried_out) {
        leader->allocation->carried_out = current->number;
        post_reason(leader, "%d node%s %s, as the program asked", current->change,
                    current->change == 1 ? "" : "s",
                    current->kind == REQUEST_EXTEND ? "more" : "less");
    }
    if (next > 0)
        planning_later(leader, next - leader_now(leader));
    if (current != NULL && current->nodes != NULL)
        release_named(leader, current);
    /* Told when there is a world that can hear it. */
    if (change_phase(leader->change) == CHANGE_RUNNING && !has_begun(leader))
        planning_later(leader, BEGIN_LIMIT);
    if (change_phase(leader->change) == CHANGE_RUNNING && has_begun(leader))
        tell_ended(leader);
}

void allocation_stop(struct leader *leader)
{
    requests_fail_all(leader->allocation->requests, "the job is ending");
    allocation_update(leader);
    /* The workers are about to be told to save: they can still hear it. */
    if (change_world(leader->change) != NULL)
        tell_ended(leader);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The nodes must be whole extension jobs: those are what Slurm takes back. */
static int check_names(const struct leader *leader, char *const *names, struct error *err)
{
    for (; *names != NULL; names++) {
        const struct leader_member *m = NULL;

        for (int i = 0; i < roster_count(leader); i++)
            if (roster_at(leader, i)->link != NULL &&
                strcmp(roster_at(leader, i)->part->node, *names) == 0)
                m = roster_at(leader, i);
        if (m == NULL || change_is_left(m->part)) {
            error_set(err, "%s is not a node of this job", error_value(*names).text);
            return REQUEST_NOT_FOUND;
        }
        if (m->part->base) {
            error_set(err, "%s belongs to the base job, which keeps its nodes", *names);
            return REQUEST_BAD;
        }
    }
    return 0;
}

static int check_whole_jobs(const struct leader *leader, char *const *names, struct error *err)
{
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);
        bool named = false, shares = false;

        for (char *const *name = names; *name != NULL; name++)
            named = named || strcmp(*name, m->part->node) == 0;
        for (int k = 0; k < roster_count(leader) && !named; k++)
            for (char *const *name = names; *name != NULL; name++)
                shares = shares || (roster_at(leader, k)->part->job == m->part->job &&
                                    strcmp(*name, roster_at(leader, k)->part->node) == 0);
        if (!shares || m->part->base)
            continue;
        error_set(err,
                  "%s is of the same extension job (%u): name it as well, or release by number",
                  m->part->node, m->part->job);
        return REQUEST_BAD;
    }
    return 0;
}

/* The leader chooses the pool: a program that names one shall not get nodes of another one. */
static int check_pool(const struct leader *leader, const char *name, struct error *err)
{
    const int count = job_pools_count(leader);
    const char *only = count > 0 ? job_pools_at(leader, 0)->pool->name : "nowhere";

    if (name == NULL || (count == 1 && strcmp(only, name) == 0))
        return 0;
    error_set(err, "pool %s: extensions of this job come from %s", error_value(name).text,
              count > 1 ? "several pools, of which the leader chooses" : only);
    return REQUEST_NOT_AVAILABLE;
}

/* "12.0.3", as it was given out. 0: it is none of this job's. */
static int number_of(const struct leader *leader, const char *id)
{
    uint32_t job, restarts;
    int number, end = 0;

    if (id == NULL || sscanf(id, "%u.%u.%d%n", &job, &restarts, &number, &end) != 3 ||
        id[end] != '\0' || job != leader->options->job || restarts != leader->options->restarts ||
        number < 1)
        return 0;
    return number;
}

/* What an earlier request has brought. */
static int read_grant(struct leader *leader, const char *id, struct request_wish *wish,
                      struct error *err)
{
    if (id == NULL || wish->nodes > 0)
        return 0;
    wish->nodes = requests_take_grant(leader->allocation->requests, number_of(leader, id));
    if (wish->nodes > 0)
        return 0;
    error_set(err, "'%s' is no request of this job that has brought nodes", error_value(id).text);
    return REQUEST_NOT_FOUND;
}

static int ask_release(struct leader *leader, const struct request_situation *now,
                       struct request_wish *wish, struct error *err)
{
    int rc = wish->names != NULL ? check_names(leader, wish->names, err) : 0;

    if (rc == 0 && wish->names != NULL)
        rc = check_whole_jobs(leader, wish->names, err);
    return rc != 0 ? rc : requests_release(leader->allocation->requests, now, wish, err);
}

static int ask_cancel(struct leader *leader, json_object *msg, const char *label, struct error *err)
{
    const char *id = json_get_string(msg, "of");
    int number = number_of(leader, id);

    if (id != NULL && number == 0) {
        error_set(err, "'%s' is no request of this job", error_value(id).text);
        return REQUEST_NOT_FOUND;
    }
    return requests_cancel(leader->allocation->requests, number, label, err);
}

static int carry(struct leader *leader, json_object *msg, struct error *err)
{
    const char *what = json_get_string(msg, "directive"), *label = json_get_string(msg, "label");
    char **held = held_nodes(leader), **names = json_get_strings(msg, "names", REQUEST_NODES_MAX);
    struct request_situation now = situation(leader, held);
    struct request_wish wish = {.label = label, .names = names, .rank = -1};
    double timeout = json_get_double(msg, "timeout", 0);
    int64_t nodes = 0, rank = -1;
    int rc = REQUEST_BAD, nodes_named = 0;

    json_get_int(msg, "nodes", 0, SIZES_NODES_MAX, &nodes);
    json_get_int(msg, "rank", 0, INT32_MAX, &rank);
    while (names != NULL && names[nodes_named] != NULL)
        nodes_named++;
    wish.nodes = nodes_named > 0 ? nodes_named : (int)nodes;
    wish.rank = (int)rank;
    wish.expires = timeout > 0 ? leader_now(leader) + timeout : 0;
    if (change_is_ending(leader->change) || change_stopping(leader->change) || held == NULL) {
        error_set(err, "the job is ending");
        rc = REQUEST_NOT_AVAILABLE;
    } else if (json_object_object_get_ex(msg, "names", NULL) && nodes_named == 0) {
        /* Not just any nodes then. */
        error_set(err, "a list of nodes: must be 1 to %d names", REQUEST_NODES_MAX);
    } else if (what != NULL && strcmp(what, "extend") == 0) {
        rc = check_pool(leader, json_get_string(msg, "pool"), err);
        if (rc == 0)
            rc = requests_extend(leader->allocation->requests, &now, &wish, err);
    } else if (what != NULL && strcmp(what, "release") == 0) {
        rc = read_grant(leader, json_get_string(msg, "of"), &wish, err);
        if (rc == 0)
            rc = ask_release(leader, &now, &wish, err);
    } else if (what != NULL && strcmp(what, "cancel") == 0) {
        rc = ask_cancel(leader, msg, label, err);
    } else {
        error_set(err, "an allocation request that cannot be understood");
    }
    free(held);
    strings_free(names);
    return rc;
}

void allocation_on_question(const struct pmix_world *pmix_world, struct leader_member *m,
                            json_object *msg)
{
    static const char *const refusals[] = {"bad", "not available", "not found"};
    struct leader *leader = pmix_world->leader;
    json_object *answer = json_object_new_object();
    struct error err = {""};
    int rc = carry(leader, msg, &err);
    char id[48];

    if (rc < 0) {
        /* The program gets no more than a code: PMIx 4.2 drops the text. So the log has the text,
         * once, however often the program asks. */
        if (strcmp(leader->allocation->refused, err.text) != 0)
            log_info("job %u: an allocation request was refused: %s", leader->options->job,
                     err.text);
        snprintf(leader->allocation->refused, sizeof(leader->allocation->refused), "%s", err.text);
        json_object_object_add(answer, "error", json_object_new_string(refusals[-rc - 1]));
        json_object_object_add(answer, "reason", json_object_new_string(err.text));
    } else if (rc > 0) {
        request_id(leader, rc, id, sizeof(id));
        json_object_object_add(answer, "request", json_object_new_string(id));
        /* A program that asks wants them now, and is at work. */
        planning_forget_setback(leader);
        if (!pmix_world->next)
            post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_AT_WORK, .member = m->id});
    }
    pmix_world_answer(pmix_world, m, msg, answer);
    planning_later(leader, 0);
}

void allocation_growth_failed(struct leader *leader, const char *why)
{
    requests_growth_failed(leader->allocation->requests, why);
}

/* ---- the size that users ask for ------------------------------------------------------------- */

int allocation_user_target(const struct leader *leader)
{
    return leader->allocation->target;
}

void allocation_set_user_target(struct leader *leader, int nodes)
{
    leader->allocation->target = nodes;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct allocation *allocation_create(const struct leader_options *options)
{
    struct allocation *allocation = calloc(1, sizeof(*allocation));

    if (allocation == NULL)
        return NULL;
    allocation->requests = requests_create();
    if (allocation->requests == NULL) {
        free(allocation);
        return NULL;
    }
    /* By itself to MAX, or from where it is when somebody asks. */
    allocation->target = options->policy->grow == POLICY_GROW_ASK ? options->world_nodes
                                                                  : options->policy->sizes.max;
    return allocation;
}

void allocation_destroy(struct allocation *allocation)
{
    if (allocation == NULL)
        return;
    requests_destroy(allocation->requests);
    free(allocation);
}
