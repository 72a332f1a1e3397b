/* SPDX-License-Identifier: GPL-2.0-or-later */
/* With which words and in which environment sbatch is asked for an extension job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/argv.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extension_argv.h"
#include "agent/leader/extensions.h"
#include "agent/leader/inherit.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader_places.h"
#include "agent/paths.h"
#include "lib/json_get.h"
#include "lib/roles.h"

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

/* Never longer than the base, and than the pool's partition lets jobs run: Slurm would refuse it,
 * or let it wait for ever. No --time-min: backfill of Slurm 22.05 would give the extension just
 * that time, however long its nodes are free. It is set later, when it is seen to be needed
 * (slurm_update.c). */
static void add_time(struct argv *argv, const struct job_info *base, uint32_t most, time_t now)
{
    long minutes = most;

    if (base->time_limit != UINT32_MAX && base->end > now && (base->end - now) / 60 < minutes)
        minutes = (base->end - now) / 60;
    if (minutes != UINT32_MAX)
        argv_add(argv, "--time=%ld", minutes < 1 ? 1 : minutes);
}

/* Nodes that are used, as a list, and nodes to stay off, as texts. Each may be NULL. */
static void add_exclude(struct argv *argv, char *const *used, const char *avoid, const char *users)
{
    size_t len = (avoid != NULL ? strlen(avoid) + 1 : 1) + (users != NULL ? strlen(users) + 1 : 0);
    char *text;

    for (char *const *node = used; node != NULL && *node != NULL; node++)
        len += strlen(*node) + 1;
    if (len == 1 || (text = calloc(1, len)) == NULL)
        return;
    if (avoid != NULL)
        strcat(text, avoid);
    for (char *const *node = used; node != NULL && *node != NULL; node++) {
        if (text[0] != '\0')
            strcat(text, ",");
        strcat(text, *node);
    }
    if (users != NULL) {
        if (text[0] != '\0')
            strcat(text, ",");
        strcat(text, users);
    }
    argv_add(argv, "--exclude=%s", text);
    free(text);
}

/* What its replicas need. Slurm chooses the nodes. */
static void add_replicas(struct argv *argv, const struct extension_request *request)
{
    const struct slots_gang *gang = &request->gang;
    int cpus = gang->size.cpus > 0 ? gang->size.cpus : 1;

    argv_add(argv, "--ntasks=%d", request->replicas * gang->tasks);
    if (request->nodes == 0 && request->nodes_most > 0)
        argv_add(argv, "--nodes=1-%d", request->nodes_most);
    if (gang->per_node > 0 && gang->tasks > gang->per_node)
        argv_add(argv, "--ntasks-per-node=%d", gang->per_node);
    argv_add(argv, "--cpus-per-task=%d", cpus);
    if (gang->size.gpus > 0)
        argv_add(argv, "--gpus-per-task=%d", gang->size.gpus);
    if (gang->size.memory > 0)
        argv_add(argv, "--mem-per-cpu=%lldM", (long long)(gang->size.memory + cpus - 1) / cpus);
}

char **extension_argv(const struct leader_options *options, const struct job_info *base,
                      const struct extension_request *request, time_t now)
{
    const struct pool *pool = request->pool;
    const struct role *role = request->role;
    struct argv argv = {0};

    argv_add(&argv, "sbatch");
    argv_add(&argv, "--parsable");
    if (request->nodes > 0)
        argv_add(&argv, "--nodes=%d", request->nodes);
    argv_add(&argv, "--job-name=%s+%s", base->name != NULL ? base->name : "elastic",
             role != NULL ? role->name : "");
    argv_add(&argv, "--comment=elastic-extension-of=%u.%u", options->job, options->restarts);
    argv_add(&argv, "--no-requeue");
    argv_add(&argv, "--no-kill");
    argv_add(&argv, "--export=ALL");
    argv_add(&argv, "--chdir=/");
    /* The script finds a place for its output. An --output that slurmd cannot open ends the job. */
    argv_add(&argv, "--output=/dev/null");
    add_pool(&argv, base, pool);
    if (role == NULL)
        argv_add(&argv, "--ntasks-per-node=1");
    else
        add_replicas(&argv, request);
    inherit_add(&argv, base, role == NULL);
    add_time(&argv, base, request->most, now);
    if (request->delay > 0)
        argv_add(&argv, "--begin=now+%d", (int)(request->delay + 0.999));
    /* A base that owns its nodes needs none of them named: Slurm cannot put anything else there. */
    add_exclude(&argv, base->exclusive ? NULL : request->used, request->avoid, base->excluded);
    if (getenv("ELASTIC_SPANK") != NULL) {
        argv_add(&argv, "--elastic-extend=%u", options->job);
        argv_add(&argv, "--elastic-pool=%s", pool->name);
    }
    argv_add(&argv, "%s", paths_of(PATHS_EXTENSION_SCRIPT));
    return argv_end(&argv);
}

/* Extension jobs that are not over: their logs are not to be removed. */
static void add_live(struct argv *env, const struct leader *leader)
{
    char text[1024] = "";
    size_t len = 0;

    for (int i = 0; i < extensions_count(leader) && len < sizeof(text) - 16; i++)
        if (extensions_at(leader, i)->job != 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", len > 0 ? " " : "",
                                    extensions_at(leader, i)->job);
    argv_add(env, "ELASTIC_EXTENSIONS=%s", text);
}

/* Another leader may be there when the extension begins: it may wait long, and its nodes boot. */
static void add_leader(struct argv *env, const struct leader *leader)
{
    json_object *successors = lease_successors(leader);
    struct leader_places places = {0};
    char *text;

    leader_places_add(&places, leader->options->address, leader_port(leader));
    for (size_t i = 0; i < json_object_array_length(successors); i++) {
        json_object *place = json_object_array_get_idx(successors, i);

        leader_places_add(&places, json_get_string(place, "address"),
                          json_object_get_int(json_object_object_get(place, "port")));
    }
    text = leader_places_text(&places);
    argv_add(env, "ELASTIC_LEADER=%s", text != NULL ? text : "");
    free(text);
}

/* Nothing of the step that we run in: it would break the extension's srun. */
char **extension_environment(struct leader *leader, const struct role *role)
{
    static const char *const kept[] = {
        "PATH",   "HOME", "USER",         "LOGNAME",       "SHELL",      "LANG",           "LC_ALL",
        "TMPDIR", "TZ",   "ELASTIC_CONF", "ELASTIC_DEBUG", "SLURM_CONF", "LD_LIBRARY_PATH"};
    struct argv env = {0};

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (getenv(kept[i]) != NULL)
            argv_add(&env, "%s=%s", kept[i], getenv(kept[i]));
    argv_add(&env, "ELASTIC_RUN=%s", leader->options->program);
    add_leader(&env, leader);
    argv_add(&env, "ELASTIC_BASE=%u.%u", leader->options->job, leader->options->restarts);
    argv_add(&env, "ELASTIC_SLOTS=%d", leader->options->slots);
    argv_add(&env, "ELASTIC_LOGS=%s", leader->options->state_dir);
    if (role != NULL)
        argv_add(&env, "ELASTIC_EXTENSION_ROLE=%s", role->name);
    add_live(&env, leader);
    if (exclude_base_lost(leader) > 0) /* job_submit/elastic counts the others against MAX */
        argv_add(&env, "ELASTIC_BASE_LEFT=%d",
                 leader->options->base_nodes - exclude_base_lost(leader));
    return argv_end(&env);
}
