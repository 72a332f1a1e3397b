/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic exporter`: the metrics of all elastic jobs of a site, for Prometheus.
 *
 * elastic-exporter serves them. Every few seconds it runs `selastic exporter --once`, which asks
 * Slurm and the leaders, prints, and ends. So a hanging slurmctld, and libslurm's way to end the
 * process, cost a look, and not the exporter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/libexec.h"
#include "cmd/survey.h"
#include "cmd/terminal_text.h"
#include "common/log.h"
#include "common/monotonic.h"
#include "lib/metrics.h"

#define OPTION_SIZE 128
#define PATH_SIZE   4096
#define TEXT_MAX    ((size_t)30 << 20) /* of all jobs: elastic-exporter takes a little more */

/* ---- one look -------------------------------------------------------------------------------- */

static int nodes_of(const struct base_job *job)
{
    return job->info->num_nodes + job->extension_nodes;
}

/* The jobs with most nodes first; of equal ones the older. */
static int by_nodes(const void *a, const void *b)
{
    const struct base_job *x = a, *y = b;
    if (nodes_of(x) != nodes_of(y))
        return nodes_of(x) > nodes_of(y) ? -1 : 1;
    return x->info->id < y->info->id ? -1 : x->info->id > y->info->id;
}

/* Count all, and move those that run to the front. Returns their number. */
static int sum_up(struct base_job *bases, int count, struct metrics_site *all)
{
    int running = 0;
    for (int i = 0; i < count && bases[i].sure; i++) {
        all->extensions += bases[i].running;
        all->extensions_pending += bases[i].pending;
        all->extension_nodes += bases[i].extension_nodes;
        if (bases[i].info->state != JOB_KIND_RUNNING) {
            all->pending += bases[i].info->state == JOB_KIND_PENDING;
            continue;
        }
        all->base_nodes += bases[i].info->num_nodes;
        bases[running++] = bases[i];
    }
    all->running = running;
    qsort(bases, (size_t)running, sizeof(*bases), by_nodes);
    return running;
}

static void print_metrics(const struct survey_row *rows, int count, struct metrics_site *all)
{
    struct metrics_job *jobs = text_need(calloc((size_t)count + 1, sizeof(*jobs)));
    struct metrics_writer writer = {.out = stdout, .format = METRICS_PROMETHEUS};
    int answered = 0, shown;
    for (int i = 0; i < count; i++) {
        if (rows[i].answer == NULL)
            continue;
        jobs[answered++] = (struct metrics_job){.id = rows[i].job.info->id,
                                                .user = user_name(rows[i].job.info->uid),
                                                .answer = rows[i].answer};
    }
    char *text = text_need(metrics_jobs_text(jobs, answered, TEXT_MAX, &shown));
    all->shown = shown;
    all->silent = count - shown;
    fputs(text, stdout);
    free(text);
    metrics_site(&writer, all);
    metrics_end(&writer);
    for (int i = 0; i < answered; i++)
        free((char *)(uintptr_t)jobs[i].user);
    free(jobs);
}

/* As SlurmUser, root or an operator: leaders answer these for all jobs. Others see their own. */
static bool may_ask_all(const struct site *site)
{
    bool is_operator = false;
    return site_may_ask(site, (uid_t)-1) ||
           (slurm_client_is_operator(geteuid(), &is_operator, NULL) == 0 && is_operator);
}

static int look(struct site *site, int most, long long began, struct error *err)
{
    struct job_info *list = NULL;
    struct metrics_site all = {0};
    int count = 0, found = 0;
    deadline_enter_slurm();
    bool everybody = may_ask_all(site);
    int rc = slurm_client_jobs(everybody ? (uid_t)-1 : geteuid(), &list, &count, err);
    deadline_leave();
    if (rc != 0)
        return rc;
    struct base_job *bases = jobs_find_bases(list, count, &found);
    int running = sum_up(bases, found, &all), asked = running < most ? running : most;
    struct survey_row *rows = text_need(calloc((size_t)asked + 1, sizeof(*rows)));
    all.left_out = running - asked;
    deadline_enter_slurm();
    for (int i = 0; i < asked; i++) {
        rows[i].job = bases[i];
        survey_prepare(&rows[i], site);
    }
    deadline_leave();
    rc = survey_run(site, rows, asked, "metrics", "metrics", err);
    all.seconds = (double)(monotonic_ms() - began) / 1000;
    if (rc == 0)
        print_metrics(rows, asked, &all);
    survey_clear(rows, asked);
    free(rows);
    free(bases);
    job_info_free_list(list, count);
    return rc;
}

static enum exit_status once(const struct arguments *arguments)
{
    struct error err = {""};
    long long began = monotonic_ms();
    deadline_start_for(arguments->timeout * 1000, STATUS_FAILED);
    struct site *site = site_create(&err);
    int rc = site != NULL ? look(site, arguments->jobs, began, &err) : -1;
    site_destroy(site);
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        rc = error_set(&err, "standard output: %s", strerror(errno));
    return rc == 0 ? STATUS_OK : failed(&err);
}

/* ---- the exporter ---------------------------------------------------------------------------- */

static enum exit_status serve(const struct arguments *arguments)
{
    const char *program = libexec_find("elastic-exporter");
    char self[PATH_SIZE] = "", port[OPTION_SIZE], jobs[OPTION_SIZE], interval[OPTION_SIZE],
         timeout[OPTION_SIZE], address[OPTION_SIZE];
    char *argv[] = {"elastic-exporter", self, port, address, jobs, interval, timeout, NULL};
    struct error err;
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        error_set(&err, "/proc/self/exe: %s", strerror(errno));
    snprintf(port, sizeof(port), "%d", arguments->port);
    snprintf(address, sizeof(address), "%s", arguments->address);
    snprintf(jobs, sizeof(jobs), "%d", arguments->jobs);
    snprintf(interval, sizeof(interval), "%d", arguments->interval);
    snprintf(timeout, sizeof(timeout), "%d", arguments->timeout);
    if (self[0] != '\0') {
        execv(program, argv);
        error_set(&err, "%s: %s; slurm-elastic has it if it is built with libmicrohttpd", program,
                  strerror(errno));
    }
    return failed(&err);
}

static enum exit_status run(const struct arguments *arguments)
{
    return arguments->once ? once(arguments) : serve(arguments);
}

const struct command exporter_command = {
    .name = "exporter",
    .summary = "serve the metrics of all elastic jobs for Prometheus",
    .help = "Usage: selastic exporter [--address=A] [--port=N] [--jobs=N] [--interval=S]\n"
            "                         [--timeout=S] [--once]\n"
            "\n"
            "Serve the metrics of all elastic jobs of the site at http://ADDRESS:PORT/metrics.\n"
            "Run it once, as SlurmUser or as an operator of Slurm. Another user sees only the\n"
            "own jobs.\n"
            "\n"
            "      --address=A   listen at this address; default: 127.0.0.1\n"
            "      --port=N      listen at this port, 1024 to 65535; default: 9842\n"
            "      --jobs=N      ask the leaders of the N largest jobs, 1 to 1000; default: 50\n"
            "      --interval=S  look every S seconds, 2 to 3600; default: 15\n"
            "      --timeout=S   end a look that takes longer, 1 to 600; default: 10\n"
            "      --once        print the metrics, and end\n"
            "  -h, --help        print this text\n",
    .run = run,
};
