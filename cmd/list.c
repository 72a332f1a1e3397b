/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic list`: the elastic jobs that run or wait.
 *
 * Slurm knows which jobs are elastic only if admission has marked them or an extension names them.
 * Of other running jobs it is tried whether a leader answers, for a moment only, and many jobs at a
 * time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/ask.h"
#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/jobs.h"
#include "cmd/query.h"
#include "cmd/render.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "common/log.h"
#include "lib/json_get.h"

#define SURE_MS    2000 /* for a job that surely is elastic */
#define PROBE_MS   300  /* for a job that may not be elastic */
#define PROBES_MAX 64   /* such jobs that are asked, at most */
#define AT_A_TIME  32   /* questions under way */

/* A line of the list. */
struct row {
    struct base_job job;
    char **addresses; /* NULL: not asked */
    char *state_dir;  /* NULL: not known, or not of interest */
    json_object *state;
    char *why;
    struct survey *survey;
};

struct survey {
    uv_loop_t loop;
    const struct site *site;
    const char *group; /* only jobs of it; NULL: all */
    struct row *rows;
    int count;
    int next;   /* row to be asked next */
    int asking; /* questions under way */
    json_object *request;
};

/* A row's leader is asked if the job runs and its leader would answer this user. */
static void prepare_row(struct row *row, struct site *site, struct survey *survey)
{
    const struct job_info *info = row->job.info;
    row->survey = survey;
    if (info->state == JOB_KIND_RUNNING && site_may_ask(site, info->uid))
        row->addresses = node_addresses(site, info->nodes, row->job.sure ? ASK_NODES_MAX : 1);
    /* Not of the others: each look takes one of few threads, for long if a home directory hangs. */
    if (row->addresses != NULL && row->job.sure)
        row->state_dir = query_state_dir(site, info);
}

/* The number of bases that get a row. Jobs that only could be elastic are last, newest first. */
static int count_rows(const struct base_job *bases, int found)
{
    int sure = 0;
    while (sure < found && bases[sure].sure)
        sure++;
    if (found - sure <= PROBES_MAX)
        return found;
    log_info("of %d running jobs that are not marked as elastic only the newest %d were asked",
             found - sure, PROBES_MAX);
    return sure + PROBES_MAX;
}

static void survey_continue(struct survey *survey);

static void on_done(json_object *answer, const char *why, void *arg)
{
    struct row *row = arg;
    const char *type = json_get_string(answer, "t");
    if (type != NULL && strcmp(type, "state") == 0)
        row->state = shape_state(answer);
    else
        row->why = text_need(
            strdup(why != NULL ? "no elasticrun answers" : "elasticrun gives no answer"));
    row->survey->asking--;
    survey_continue(row->survey);
}

static void ask_row(struct survey *survey, struct row *row)
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
    if (ask_leader(&survey->loop, &options, on_done, row, NULL) == 0)
        survey->asking++;
}

static void survey_continue(struct survey *survey)
{
    while (survey->next < survey->count && survey->asking < AT_A_TIME) {
        struct row *row = &survey->rows[survey->next++];
        if (row->addresses == NULL || row->addresses[0] == NULL)
            continue;
        if (deadline_over())
            row->why = text_need(strdup("not asked: time is up"));
        else
            ask_row(survey, row);
    }
}

static int survey_run(struct survey *survey, struct error *err)
{
    if (uv_loop_init(&survey->loop) != 0)
        return error_set(err, "cannot create an event loop");
    survey->request = request_new("show");
    survey_continue(survey);
    uv_run(&survey->loop, UV_RUN_DEFAULT);
    uv_loop_close(&survey->loop);
    json_object_put(survey->request);
    return 0;
}

static bool is_of(json_object *entry, const char *group)
{
    const char *own = json_get_string(entry, "group");

    return group == NULL || (own != NULL && strcmp(own, group) == 0);
}

/* The rows that turned out to be elastic jobs, of that group. */
static json_object *make_list(const struct survey *survey)
{
    json_object *list = text_need(json_object_new_object());
    json_object *jobs = text_need(json_object_new_array());
    for (int i = 0; i < survey->count; i++) {
        const struct row *row = &survey->rows[i];
        if (row->state == NULL && !row->job.sure)
            continue;
        char *user = user_name(row->job.info->uid);
        json_object *entry = jobs_entry(&row->job, user, row->state, row->why);
        if (is_of(entry, survey->group))
            json_object_array_add(jobs, entry);
        else
            json_object_put(entry);
        free(user);
    }
    json_object_object_add(list, "jobs", jobs);
    return list;
}

static void rows_free(struct row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        strings_free(rows[i].addresses);
        free(rows[i].state_dir);
        json_object_put(rows[i].state);
        free(rows[i].why);
    }
    free(rows);
}

static json_object *survey_jobs(struct site *site, const char *group, const struct job_info *jobs,
                                int count, struct error *err)
{
    struct survey survey = {.site = site, .group = group};
    json_object *list = NULL;
    int found = 0;
    struct base_job *bases = jobs_find_bases(jobs, count, &found);
    survey.count = count_rows(bases, found);
    survey.rows = text_need(calloc((size_t)survey.count + 1, sizeof(*survey.rows)));
    deadline_enter_slurm();
    for (int i = 0; i < survey.count; i++) {
        survey.rows[i].job = bases[i];
        prepare_row(&survey.rows[i], site, &survey);
    }
    deadline_leave();
    if (survey_run(&survey, err) == 0)
        list = make_list(&survey);
    rows_free(survey.rows, survey.count);
    free(bases);
    return list;
}

static json_object *find_list(const struct arguments *arguments, struct error *err)
{
    struct job_info *jobs = NULL;
    json_object *list = NULL;
    int count = 0;
    struct site *site = site_create(err);
    if (site == NULL)
        return NULL;
    deadline_enter_slurm();
    int result = slurm_client_jobs(arguments->all ? (uid_t)-1 : geteuid(), &jobs, &count, err);
    deadline_leave();
    if (result == 0)
        list = survey_jobs(site, arguments->group, jobs, count, err);
    job_info_free_list(jobs, count);
    site_destroy(site);
    return list;
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    deadline_start();
    json_object *list = find_list(arguments, &err);
    if (list == NULL)
        return failed(&err);
    if (arguments->json) {
        print_json(list, false);
        return STATUS_OK;
    }
    struct render_options options = {.width = terminal_width(), .now = time(NULL)};
    print_text(render_list(list, &options));
    json_object_put(list);
    return STATUS_OK;
}

const struct command list_command = {
    .name = "list",
    .summary = "list the elastic jobs that run or are pending",
    .help = "Usage: selastic list [--all] [--group=NAME] [--json]\n"
            "\n"
            "List your elastic jobs that run or are pending. Extension jobs have no lines of\n"
            "their own: column PENDING counts those that are pending.\n"
            "\n"
            "      --all         list the jobs of all users; for jobs of other users, only what\n"
            "                    Slurm knows is shown, unless you are root or SlurmUser\n"
            "      --group=NAME  only jobs whose job file names this group\n"
            "      --json        print JSON\n"
            "  -h, --help        print this text\n",
    .run = run,
};
