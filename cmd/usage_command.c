/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic usage`: what elastic jobs have used, from Slurm's accounting by sacct. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/terminal_text.h"
#include "cmd/usage_list.h"
#include "cmd/usage_marks.h"
#include "cmd/usage_picture.h"
#include "common/conf_file.h"
#include "common/log.h"
#include "common/program.h"

#define RECORDS_MAX     ((size_t)64 << 20)
#define TIMEOUT_S       60
#define SINCE           "now-30days"
#define WORDS_MAX       24
#define SEPARATOR_BYTES 16

/* So that no name of a job can look like the end of a field. */
static int make_separator(char text[2 * SEPARATOR_BYTES + 3], struct error *err)
{
    unsigned char bytes[SEPARATOR_BYTES];
    char *end = text;

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_set(err, "the kernel has no random numbers");
    end += sprintf(end, "<");
    for (int i = 0; i < SEPARATOR_BYTES; i++)
        end += sprintf(end, "%02x", bytes[i]);
    sprintf(end, ">");
    return 0;
}

/* Whose records sacct shows. Without an option it shows root those of everybody. */
static const char *user_of(const struct arguments *arguments)
{
    const struct passwd *own = getpwuid(geteuid());

    if (arguments->user != NULL)
        return arguments->user;
    if (arguments->all || arguments->account != NULL || arguments->job_id != 0 || own == NULL)
        return NULL;
    return own->pw_name;
}

static char *option(const char *name, const char *value)
{
    char *text = NULL;

    return text_need(asprintf(&text, "--%s=%s", name, value) < 0 ? NULL : text);
}

/* Without an answer of slurmctld, jobs that have ended are all there is. */
static int read_marked(const struct arguments *arguments, const char *text, const char *separator,
                       const char *user, struct usage *usage, struct error *err)
{
    const struct passwd *entry = user != NULL ? getpwnam(user) : NULL;
    struct usage_marks marks = {.count = 0};
    bool is_open = arguments->until == NULL; /* until now */
    char *all = NULL;
    int rc;

    if ((is_open || usage_needs_marks(text, separator)) &&
        usage_marks_ask(entry != NULL ? entry->pw_uid : (uid_t)-1, &marks, err) != 0)
        log_error("jobs that have not ended are not counted: %s", err->text);
    if (is_open)
        all = usage_marks_add(text, separator, &marks, arguments->account,
                              arguments->since != NULL);
    rc = usage_read(all != NULL ? all : text, separator, marks.list, marks.count, usage, err);
    free(all);
    usage_marks_clear(&marks);
    return rc;
}

static int ask(const struct arguments *arguments, struct usage *usage, struct error *err)
{
    char separator[2 * SEPARATOR_BYTES + 3], *text = NULL, *argv[WORDS_MAX];
    const char *user = user_of(arguments);
    int count = 0, options, rc;

    if (make_separator(separator, err) != 0)
        return -1;
    setenv("SLURM_TIME_FORMAT", "%s", 1);
    argv[count++] = "sacct";
    argv[count++] = "--allocations";
    argv[count++] = "--duplicates";
    argv[count++] = "--noheader";
    argv[count++] = "--parsable2";
    argv[count++] = "--truncate";
    if (user == NULL)
        argv[count++] = "--allusers";
    options = count;
    argv[count++] = option("delimiter", separator);
    argv[count++] = option("format", USAGE_FIELDS);
    argv[count++] = option("starttime", arguments->since != NULL ? arguments->since : SINCE);
    argv[count++] = option("endtime", arguments->until != NULL ? arguments->until : "now");
    if (user != NULL)
        argv[count++] = option("user", user);
    if (arguments->account != NULL)
        argv[count++] = option("accounts", arguments->account);
    argv[count] = NULL;
    rc = program_output(argv, TIMEOUT_S * 1000, RECORDS_MAX, &text, err);
    while (count > options)
        free(argv[--count]);
    if (rc == 0)
        rc = read_marked(arguments, text, separator, user, usage, err);
    free(text);
    return rc == 0 ? 0 : -1;
}

static int draw(const struct arguments *arguments, const struct usage *usage, bool html,
                struct error *err)
{
    const char *path = html ? arguments->html : arguments->svg;
    char title[64] = "Elastic jobs", *text;
    struct usage_picture_options options = {
        .title = arguments->title != NULL ? arguments->title : title,
        .html = html,
        .job = arguments->job_id,
    };

    if (path == NULL)
        return 0;
    if (arguments->job_id != 0)
        snprintf(title, sizeof(title), "Elastic job %" PRIu32, arguments->job_id);
    text = usage_picture(usage, &options);
    if (text == NULL)
        return error_set(err, "no elastic job had nodes in that time: there is nothing to draw");
    return write_text(path, text, err);
}

static void show(const struct arguments *arguments, const struct usage *usage,
                 const struct conf *conf)
{
    const struct render_options options = {.width = terminal_width(), .now = time(NULL)};
    json_object *json = usage_json(usage, conf, arguments->job_id);

    if (arguments->json) {
        print_json(json, false);
    } else {
        print_text(render_usage(json, arguments->job_id != 0, &options));
        json_object_put(json);
    }
}

static int look(const struct arguments *arguments, const struct conf *conf, struct error *err)
{
    struct usage usage = {.count = 0};
    int rc = ask(arguments, &usage, err);

    if (rc == 0 && arguments->job_id != 0 && usage_find(&usage, arguments->job_id) == NULL)
        rc = error_set(err,
                       "the accounting has no record of an elastic job %" PRIu32 " since %s; "
                       "--since looks further back",
                       arguments->job_id, arguments->since != NULL ? arguments->since : SINCE);
    if (rc == 0)
        rc = draw(arguments, &usage, false, err);
    if (rc == 0)
        rc = draw(arguments, &usage, true, err);
    if (rc == 0 && (arguments->json || (arguments->svg == NULL && arguments->html == NULL)))
        show(arguments, &usage, conf);
    usage_clear(&usage);
    return rc;
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    struct conf *conf = conf_file_load(NULL, &err);
    int rc = conf != NULL ? look(arguments, conf, &err) : -1;

    conf_destroy(conf);
    return rc == 0 ? STATUS_OK : failed(&err);
}

const struct command usage_command = {
    .name = "usage",
    .summary = "add up what elastic jobs have used, with their extensions",
    .help = "Usage: selastic usage [JOB] [--user U] [--account A] [--all] [--since T] [--until T]\n"
            "                      [--svg FILE] [--html FILE] [--title TEXT] [--json]\n"
            "\n"
            "Add up what Slurm's accounting knows of each elastic job as a whole: all its runs\n"
            "and all its extension jobs, those that run until now. Without an option: your jobs\n"
            "of the last 30 days. With JOB: a line for each pool as well. Costs are those of the\n"
            "prices in elastic.conf.\n"
            "\n"
            "  -u, --user U     jobs of this user\n"
            "  -A, --account A  jobs of this account\n"
            "      --all        jobs of all users\n"
            "      --since T    count from this time on, in the form of sacct(1): 2026-11-01,\n"
            "                   now-7days (default now-30days)\n"
            "      --until T    count until then (default now)\n"
            "      --svg FILE   write a picture: nodes of all jobs, and of each job, over time\n"
            "      --html FILE  the same in a page\n"
            "      --title T    of the picture (default \"Elastic jobs\")\n"
            "      --json       print JSON\n"
            "  -h, --help       print this text\n"
            "\n"
            "PrivateData in slurm.conf may hide the jobs of others.\n",
    .run = run,
};
