/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions to the leader of a trainer (trainer_link.h).
 *
 * Which job it is, the jobs of its user say in their comment: nobody else can write that. Its
 * leader proves to be that user's by its credential. */
#include "fit/trainer_link.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/jobs.h"
#include "cmd/query.h"
#include "lib/frame.h"
#include "lib/json_get.h"

/* A frame of a guest, without what the link adds to a request. */
#define REQUEST_MOST (FRAME_GUEST_MAX - 4096)

/* A leader that is asked by a user for the first time has to look who that is (agent/leader/
 * operators.c): it refuses, and lets the user in a little later. It looks once a minute. */
#define REFUSED_FOR 90 /* seconds in which it may still let us in */

struct trainer_link {
    struct trainer_name name;
    struct site *site;
    struct query query;
    time_t refused; /* since when; 0: it is not */
    bool left;      /* it is not asked any more */
};

struct trainer_link *trainer_link_create(const struct trainer_name *name)
{
    struct trainer_link *link = calloc(1, sizeof(*link));

    if (link != NULL)
        link->name = *name;
    return link;
}

void trainer_link_destroy(struct trainer_link *link)
{
    if (link == NULL)
        return;
    query_clear(&link->query);
    site_destroy(link->site);
    free(link);
}

void trainer_link_leave(struct trainer_link *link)
{
    link->left = true;
}

/* ---- its job --------------------------------------------------------------------------------- */

static uint32_t job_of(const struct trainer_link *link, const struct job_info *list, int count,
                       uid_t uid)
{
    uint32_t job = 0, base, restarts;

    for (int i = 0; i < count; i++)
        if (list[i].uid == uid && list[i].state == JOB_KIND_RUNNING &&
            !jobs_extension_of(list[i].comment, &base, &restarts) &&
            trainer_note_names(list[i].comment, link->name.service) && list[i].id > job)
            job = list[i].id;
    return job;
}

static uint32_t find_job(const struct trainer_link *link, struct error *err)
{
    const struct passwd *entry = getpwnam(link->name.user);
    struct job_info *list = NULL;
    uint32_t job = 0;
    int count = 0, rc;

    if (entry == NULL) {
        error_set(err, "there is no user %s", link->name.user);
        return 0;
    }
    deadline_enter_slurm();
    rc = slurm_client_jobs(entry->pw_uid, &list, &count, err);
    deadline_leave();
    if (rc != 0)
        return 0;
    job = job_of(link, list, count, entry->pw_uid);
    job_info_free_list(list, count);
    if (job == 0)
        error_set(err,
                  "no job of %s runs a service %s that trains for others, or Slurm does not show "
                  "it (PrivateData)",
                  link->name.user, link->name.service);
    return job;
}

static int find(struct trainer_link *link, struct error *err)
{
    uint32_t job;

    if (link->site == NULL && (link->site = site_create(err)) == NULL)
        return -1;
    if (query_is_found(&link->query))
        return 0;
    job = find_job(link, err);
    return job != 0 && query_find_guest(link->site, job, &link->query, err) == QUERY_ANSWERED ? 0
                                                                                              : -1;
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum trainer_said not_heard(struct trainer_link *link, struct error *err)
{
    bool refused = strstr(err->text, "may not take part") != NULL;

    query_clear(&link->query);
    if (!refused)
        return TRAINER_WAITS;
    if (link->refused == 0)
        link->refused = time(NULL);
    if (time(NULL) < link->refused + REFUSED_FOR) {
        error_set(err, "%s lets this user use service %s", link->name.user, link->name.service);
        return TRAINER_WAITS;
    }
    error_set(err, "%s does not allow this user to use service %s (allow in its fit)",
              link->name.user, link->name.service);
    return TRAINER_REFUSES;
}

static enum trainer_said understand(struct trainer_link *link, json_object **answer,
                                    struct error *err)
{
    const char *type = json_get_string(link->query.answer, "t");
    const char *code = json_get_string(link->query.answer, "code");
    const char *message = json_get_string(link->query.answer, "message");

    link->refused = 0;
    if (type != NULL && strcmp(type, "fit") == 0) {
        *answer = link->query.answer;
        return TRAINER_ANSWERS;
    }
    error_set(err, "%s@%s: %s", link->name.service, link->name.user,
              message != NULL ? message : "an answer that is none");
    if (code != NULL && strcmp(code, "none") == 0)
        return TRAINER_FORGETS;
    return code != NULL && (strcmp(code, "denied") == 0 || strcmp(code, "wrong") == 0)
               ? TRAINER_REFUSES
               : TRAINER_WAITS;
}

/* Its leader would end the connection without a word. */
static bool is_too_large(json_object *request)
{
    size_t len = 0;

    json_object_to_json_string_length(request, JSON_C_TO_STRING_PLAIN, &len);
    return len > REQUEST_MOST;
}

enum trainer_said trainer_link_ask(struct trainer_link *link, json_object *request,
                                   json_object **answer, struct error *err)
{
    *answer = NULL;
    if (link->left) {
        json_object_put(request);
        error_set(err, "%s@%s is not asked any more", link->name.service, link->name.user);
        return TRAINER_REFUSES;
    }
    if (is_too_large(request)) {
        json_object_put(request);
        error_set(err, "the call is too large for a trainer of somebody else: more than %u KiB",
                  REQUEST_MOST >> 10);
        return TRAINER_REFUSES;
    }
    deadline_start();
    if (find(link, err) != 0) {
        json_object_put(request);
        return TRAINER_WAITS;
    }
    if (query_again(link->site, request, &link->query, err) != QUERY_ANSWERED)
        return not_heard(link, err);
    return understand(link, answer, err);
}
