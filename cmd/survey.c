/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question to the leaders of many jobs (survey.h). */
#include "cmd/survey.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/ask.h"
#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/survey_plan.h"

#define SURE_MS   2000 /* for a job that surely is elastic */
#define PROBE_MS  300  /* for a job that may not be elastic */
#define TOO_LARGE "what this user's jobs answer is too large"

struct survey {
    uv_loop_t loop;
    const struct site *site;
    struct survey_row *rows;
    struct survey_plan *plan;
    json_object *request;
    const char *type;
};

void survey_prepare(struct survey_row *row, struct site *site)
{
    const struct job_info *info = row->job.info;
    if (info->state != JOB_KIND_RUNNING)
        return;
    row->addresses = node_addresses(site, info->nodes, row->job.sure ? ASK_NODES_MAX : 1);
    /* Not of the others: each look takes one of few threads, for long if a home directory hangs. */
    if (row->job.sure)
        row->state_dir = query_state_dir(site, info);
}

static void survey_continue(struct survey *survey);

static void on_done(json_object *answer, const char *why, void *arg)
{
    struct survey_row *row = arg;
    struct survey *survey = row->survey;
    const char *type = json_get_string(answer, "t");
    if (!survey_plan_done(survey->plan, (int)(row - survey->rows), answer))
        row->why = TOO_LARGE;
    else if (type != NULL && strcmp(type, survey->type) == 0)
        row->answer = json_object_get(answer);
    else
        row->why = why != NULL ? "no elasticrun answers" : "elasticrun gives no answer";
    survey_continue(survey);
}

static int ask_row(struct survey *survey, struct survey_row *row)
{
    int left = deadline_left();
    int patience = row->job.sure ? SURE_MS : PROBE_MS;
    struct ask_options options = {
        .job_id = row->job.info->id,
        .restarts = row->job.info->restarts,
        .uid = row->job.info->uid,
        .addresses = row->addresses,
        .conf = survey->site->conf,
        .state_dir = row->state_dir,
        .request = survey->request,
        .timeout_ms = left < patience ? left : patience,
    };
    return ask_leader(&survey->loop, &options, on_done, row, NULL);
}

static void survey_continue(struct survey *survey)
{
    bool refused = false;
    for (int i; (i = survey_plan_next(survey->plan, &refused)) >= 0;) {
        struct survey_row *row = &survey->rows[i];
        bool exists = row->addresses != NULL && row->addresses[0] != NULL;
        if (exists && refused)
            row->why = TOO_LARGE;
        else if (exists && deadline_over())
            row->why = "not asked: time is up";
        else if (exists && ask_row(survey, row) == 0)
            continue;
        survey_plan_done(survey->plan, i, NULL);
    }
}

static struct survey_plan *plan_for(const struct survey_row *rows, int count)
{
    uid_t *users = text_need(calloc((size_t)count + 1, sizeof(*users)));
    for (int i = 0; i < count; i++)
        users[i] = rows[i].job.info->uid;
    struct survey_plan *plan = text_need(survey_plan_create(users, count, geteuid()));
    free(users);
    return plan;
}

int survey_run(const struct site *site, struct survey_row *rows, int count, const char *request,
               const char *type, struct error *err)
{
    struct survey survey = {.site = site, .rows = rows, .type = type};
    if (uv_loop_init(&survey.loop) != 0)
        return error_set(err, "cannot create an event loop");
    for (int i = 0; i < count; i++)
        rows[i].survey = &survey;
    survey.plan = plan_for(rows, count);
    survey.request = request_new(request);
    survey_continue(&survey);
    uv_run(&survey.loop, UV_RUN_DEFAULT);
    uv_loop_close(&survey.loop);
    json_object_put(survey.request);
    survey_plan_destroy(survey.plan);
    return 0;
}

void survey_clear(struct survey_row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        strings_free(rows[i].addresses);
        free(rows[i].state_dir);
        json_object_put(rows[i].answer);
    }
}
