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

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/jobs.h"
#include "cmd/query.h"
#include "cmd/render.h"
#include "cmd/shape.h"
#include "cmd/survey.h"
#include "cmd/terminal_text.h"
#include "common/log.h"
#include "lib/json_get.h"

#define PROBES_MAX 64 /* jobs that may not be elastic that are asked, at most */

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

static bool is_of(json_object *entry, const char *group)
{
    const char *own = json_get_string(entry, "group");

    return group == NULL || (own != NULL && strcmp(own, group) == 0);
}

/* The rows that turned out to be elastic jobs, of that group; NULL: of any. */
static json_object *make_list(const struct survey_row *rows, int count, const char *group)
{
    json_object *list = text_need(json_object_new_object());
    json_object *jobs = text_need(json_object_new_array());
    for (int i = 0; i < count; i++) {
        const struct survey_row *row = &rows[i];
        if (row->answer == NULL && !row->job.sure)
            continue;
        json_object *state = row->answer != NULL ? shape_state(row->answer) : NULL;
        char *user = user_name(row->job.info->uid);
        json_object *entry = jobs_entry(&row->job, user, state, row->why);
        if (is_of(entry, group))
            json_object_array_add(jobs, entry);
        else
            json_object_put(entry);
        free(user);
        json_object_put(state);
    }
    json_object_object_add(list, "jobs", jobs);
    return list;
}

static json_object *survey_jobs(struct site *site, const char *group, const struct job_info *jobs,
                                int count, struct error *err)
{
    json_object *list = NULL;
    int found = 0;
    struct base_job *bases = jobs_find_bases(jobs, count, &found);
    found = count_rows(bases, found);
    struct survey_row *rows = text_need(calloc((size_t)found + 1, sizeof(*rows)));
    deadline_enter_slurm();
    for (int i = 0; i < found; i++) {
        rows[i].job = bases[i];
        /* Only leaders that would answer this user. */
        if (site_may_ask(site, bases[i].info->uid))
            survey_prepare(&rows[i], site);
    }
    deadline_leave();
    if (survey_run(site, rows, found, "show", "state", err) == 0)
        list = make_list(rows, found, group);
    survey_clear(rows, found);
    free(rows);
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
