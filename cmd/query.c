/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a job id to the answer of its leader (query.h). */
#include "cmd/query.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/ask.h"
#include "cmd/deadline.h"
#include "cmd/jobs.h"
#include "cmd/terminal_text.h"
#include "common/conf_file.h"
#include "common/release_own.h"
#include "lib/json_get.h"

#define ONE_BY_ONE 4 /* nodes; for more Slurm is asked for all at once */

char *user_name(uid_t uid)
{
    char *name = NULL;
    struct passwd *entry = getpwuid(uid);
    if (entry != NULL)
        return text_need(strdup(entry->pw_name));
    if (asprintf(&name, "uid %u", uid) < 0)
        name = NULL;
    return text_need(name);
}

struct site *site_create(struct error *err)
{
    struct site *site = text_need(calloc(1, sizeof(*site)));
    site->conf = conf_file_load(NULL, err);
    if (site->conf == NULL) {
        site_destroy(site);
        return NULL;
    }
    deadline_enter_slurm();
    int result = slurm_client_site(&site->slurm_user, &site->cluster, err);
    deadline_leave();
    if (result < 0) {
        site_destroy(site);
        return NULL;
    }
    return site;
}

void site_destroy(struct site *site)
{
    if (site == NULL)
        return;
    conf_destroy(site->conf);
    slurm_addresses_destroy(site->addresses);
    free(site->cluster);
    free(site);
}

bool site_may_ask(const struct site *site, uid_t uid)
{
    uid_t self = geteuid();
    return self == uid || self == 0 || self == site->slurm_user;
}

char **node_addresses(struct site *site, const char *nodes, int max)
{
    char **names = nodes != NULL ? slurm_client_expand(nodes) : NULL;
    char **addresses = text_need(calloc((size_t)max + 1, sizeof(char *)));
    int count = 0;
    while (names != NULL && names[count] != NULL && count < max)
        count++;
    if (site->addresses == NULL && site->asked + count > ONE_BY_ONE)
        site->addresses = slurm_client_addresses(NULL);
    if (site->addresses == NULL)
        site->asked += count;
    for (int i = 0; i < count; i++)
        addresses[i] = text_need(site->addresses != NULL
                                     ? slurm_addresses_find(site->addresses, names[i])
                                     : slurm_client_node_address(names[i]));
    strings_free(names);
    return addresses;
}

/* Why a job that is not running has no leader. */
static enum query_result refuse_state(const struct job_info *info, struct error *err)
{
    switch (info->state) {
    case JOB_KIND_RUNNING:
        break;
    case JOB_KIND_PENDING:
        error_set(err, "job %u has not started yet (%s, %s)", info->id, info->state_name,
                  info->reason[0] ? info->reason : "no reason given");
        return QUERY_NOT_THERE;
    case JOB_KIND_BOOTING:
    case JOB_KIND_STARTING:
        error_set(err, "job %u is just starting (%s); try again when it runs", info->id,
                  info->state_name);
        return QUERY_NOT_THERE;
    case JOB_KIND_SUSPENDED:
        error_set(err, "job %u is suspended, and so is its elasticrun", info->id);
        return QUERY_NOT_THERE;
    case JOB_KIND_UNKNOWN:
    case JOB_KIND_ENDING:
    case JOB_KIND_ENDED:
        error_set(err, "job %u has ended (%s)" QUERY_HISTORY "%u' shows what it did", info->id,
                  info->state_name, info->id);
        return QUERY_NOT_THERE;
    }
    return QUERY_ANSWERED;
}

/* The leader asks Slurm the same, but has to be asked twice (agent/leader/operators.c). */
static bool is_operator(void)
{
    bool operator= false;
    return slurm_client_is_operator(geteuid(), &operator, NULL) == 0 && operator;
}

/* QUERY_ANSWERED when there is nothing against asking. */
static enum query_result may_ask(const struct site *site, const struct job_info *info, bool guest,
                                 struct error *err)
{
    uint32_t base, restarts;
    if (!guest && !site_may_ask(site, info->uid) && !is_operator()) {
        char *owner = user_name(info->uid);
        error_set(err, "not permitted: job %u belongs to %s", info->id, owner);
        free(owner);
        return QUERY_REFUSED;
    }
    if (jobs_extension_of(info->comment, &base, &restarts)) {
        error_set(err, "job %u is an extension of job %u: name that one", info->id, base);
        return QUERY_REFUSED;
    }
    return refuse_state(info, err);
}

struct reply {
    json_object *answer;
    char why[512];
};

static void on_done(json_object *answer, const char *why, void *arg)
{
    struct reply *reply = arg;
    reply->answer = json_object_get(answer);
    snprintf(reply->why, sizeof(reply->why), "%s", why != NULL ? why : "");
}

char *query_state_dir(const struct site *site, const struct job_info *info)
{
    const struct passwd *owner = getpwuid(info->uid);
    char job[16];
    snprintf(job, sizeof(job), "%u", info->id);
    return owner != NULL ? conf_expand(site->conf->state_dir, owner->pw_dir, owner->pw_name, job,
                                       site->cluster)
                         : NULL;
}

static enum query_result ask(const struct site *site, json_object *request, struct query *query,
                             struct error *err)
{
    const struct job_info *info = query->info;
    struct reply reply = {0};
    char *state_dir = query_state_dir(site, info);
    struct ask_options options = {
        .job_id = info->id,
        .restarts = info->restarts,
        .uid = info->uid,
        .addresses = query->addresses,
        .conf = site->conf,
        .state_dir = state_dir,
        .request = request,
        .timeout_ms = deadline_left(),
    };
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) {
        error_set(err, "cannot create an event loop");
        free(state_dir);
        return QUERY_FAILED;
    }
    deadline_enter_threads();
    int started = ask_leader(&loop, &options, on_done, &reply, err);
    if (started == 0)
        uv_run(&loop, UV_RUN_DEFAULT);
    deadline_leave();
    uv_loop_close(&loop);
    free(state_dir);
    if (started < 0)
        return QUERY_SILENT;
    if (reply.answer == NULL) {
        error_set(err,
                  "job %u runs, but no elasticrun answers in it: %.300s; its script starts one by "
                  "'srun elasticrun ...'",
                  info->id, reply.why);
        return QUERY_SILENT;
    }
    query->answer = reply.answer;
    return QUERY_ANSWERED;
}

static enum query_result find(struct site *site, uint32_t job_id, bool guest, struct query *query,
                              struct error *err)
{
    enum query_result result = QUERY_FAILED;
    query_clear(query);
    deadline_enter_slurm();
    if (slurm_client_job(job_id, &query->info, err) == 0)
        result = query->info != NULL ? may_ask(site, query->info, guest, err) : QUERY_UNKNOWN;
    if (result == QUERY_ANSWERED)
        query->addresses = node_addresses(site, query->info->nodes, ASK_NODES_MAX);
    deadline_leave();
    if (result == QUERY_UNKNOWN)
        error_set(err,
                  "Slurm knows no job %u (any more)" QUERY_HISTORY "%u' may still have its history",
                  job_id, job_id);
    return result;
}

enum query_result query_find(struct site *site, uint32_t job_id, struct query *query,
                             struct error *err)
{
    return find(site, job_id, false, query, err);
}

enum query_result query_find_guest(struct site *site, uint32_t job_id, struct query *query,
                                   struct error *err)
{
    return find(site, job_id, true, query, err);
}

bool query_is_found(const struct query *query)
{
    return query->addresses != NULL;
}

enum query_result query_again(struct site *site, json_object *request, struct query *query,
                              struct error *err)
{
    json_object_put(query->answer);
    query->answer = NULL;
    enum query_result result = ask(site, request, query, err);
    json_object_put(request);
    return result;
}

enum query_result query_leader(struct site *site, uint32_t job_id, json_object *request,
                               struct query *query, struct error *err)
{
    *query = (struct query){0};
    enum query_result result = query_find(site, job_id, query, err);
    if (result == QUERY_ANSWERED)
        return query_again(site, request, query, err);
    json_object_put(request);
    return result;
}

void query_clear(struct query *query)
{
    job_info_free(query->info);
    strings_free(query->addresses);
    json_object_put(query->answer);
    *query = (struct query){0};
}

/* A leader that does not know the question, or an answer that is none, may be of another release.
 * What else a leader refuses it refuses whatever its release. */
static void add_release(json_object *answer, const char *message, struct error *err)
{
    struct release leader;
    char text[sizeof(err->text)];
    release_read(answer, &leader);
    if (strcmp(leader.name, release_own()->name) == 0 ||
        (message != NULL && strncmp(message, "unknown request", strlen("unknown request")) != 0))
        return;
    snprintf(text, sizeof(text), "%s", err->text);
    error_set(err, "%s (release %s leads the job, this selastic is of release %s)", text,
              leader.name, release_own()->name);
}

json_object *query_answer(uint32_t job_id, json_object *request, const char *type,
                          struct error *err)
{
    struct query query;
    json_object *answer = NULL;
    struct site *site = site_create(err);
    if (site == NULL) {
        json_object_put(request);
        return NULL;
    }
    if (query_leader(site, job_id, request, &query, err) == QUERY_ANSWERED) {
        const char *got = json_get_string(query.answer, "t");
        const char *message = json_get_string(query.answer, "message");
        if (got != NULL && strcmp(got, type) == 0)
            answer = json_object_get(query.answer);
        else if (got != NULL && strcmp(got, "error") == 0 && message != NULL)
            error_set(err, "%s", message);
        else
            error_set(
                err, "job %u: its elasticrun gave an answer that this selastic does not know: '%s'",
                job_id, error_value(got).text);
        if (answer == NULL)
            add_release(query.answer, message, err);
    }
    query_clear(&query);
    site_destroy(site);
    return answer;
}
