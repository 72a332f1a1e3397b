/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic history JOB`: every generation of a job, from its leader or from its files. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "cmd/as_owner.h"
#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/history_file.h"
#include "cmd/picture.h"
#include "cmd/query.h"
#include "cmd/render.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "cmd/timeline.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/json_get.h"

#define HISTORY_FILE   "history.jsonl"
#define TIMELINE_WIDTH 80 /* without a terminal */
#define TIMELINE_ROWS  40

/* Where a job's files are, and which user they belong to. */
struct place {
    uid_t uid;
    gid_t gid;
    char *user; /* NULL: stay this user */
    char *dir;
    int fd;     /* of dir, which its user need not reach; -1: by its path */
    double end; /* Unix time of the job's end, 0: not known */
    bool over;
};

static void place_clear(struct place *place)
{
    if (place->fd >= 0)
        close(place->fd);
    free(place->user);
    free(place->dir);
}

/* The job's user: as told, as Slurm says, or oneself. */
static const struct passwd *find_owner(const struct arguments *arguments,
                                       const struct job_info *info, struct error *err)
{
    const struct passwd *owner;
    errno = 0;
    if (arguments->user != NULL) {
        owner = getpwnam(arguments->user);
        if (owner == NULL)
            error_set(err, "--user=%s: there is no such user", error_value(arguments->user).text);
        return owner;
    }
    uid_t uid = info != NULL ? info->uid : geteuid();
    owner = getpwuid(uid);
    if (owner == NULL)
        error_set(err, "uid %u has no entry in the user database, so its home directory is unknown",
                  uid);
    return owner;
}

/* The state directory as elastic.conf places it. */
static int find_place(const struct arguments *arguments, const struct site *site,
                      const struct job_info *info, struct place *place, struct error *err)
{
    char job[16];
    const struct passwd *owner = find_owner(arguments, info, err);
    if (owner == NULL)
        return -1;
    snprintf(job, sizeof(job), "%u", arguments->job_id);
    place->uid = owner->pw_uid;
    place->gid = owner->pw_gid;
    place->user = text_need(strdup(owner->pw_name));
    place->dir = conf_expand(site->conf->state_dir, owner->pw_dir, owner->pw_name, job,
                             site->cluster);
    if (place->dir == NULL)
        return error_set(err, "state_dir = %s of elastic.conf cannot be expanded",
                         error_path(site->conf->state_dir).text);
    bool ended = info != NULL && (info->state == JOB_KIND_ENDED || info->state == JOB_KIND_ENDING);
    place->over = info == NULL || ended;
    place->end = ended ? (double)info->end : 0;
    return 0;
}

/* A user's directory, in which a file may be a link: root reads there as that user, who need not
 * have an account any more. */
static void find_user(struct place *place)
{
    struct stat st;
    if (geteuid() != 0)
        return;
    place->fd = open(place->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place->fd < 0 || fstat(place->fd, &st) != 0)
        return;
    const struct passwd *owner = getpwuid(st.st_uid);
    place->uid = st.st_uid;
    place->gid = owner != NULL ? owner->pw_gid : st.st_gid;
    place->user = text_need(strdup(owner != NULL ? owner->pw_name : "another user"));
}

/* A picture is the caller's file, in the caller's directory: only the reading is the owner's. */
static char *read_as_owner(const struct place *place, const char *path, size_t *len,
                           struct error *err)
{
    struct as_owner owner;
    char opened[64];
    if (as_owner_begin(&owner, place->user, place->uid, place->gid, err) < 0)
        return NULL;
    snprintf(opened, sizeof(opened), "/proc/self/fd/%d/" HISTORY_FILE, place->fd);
    char *text = file_read(place->fd >= 0 ? opened : path, HISTORY_FILE_MAX, len, err);
    if (text == NULL && place->fd >= 0)
        error_set(err, "cannot read %s: %s", error_path(path).text, strerror(errno));
    if (as_owner_end(&owner, err) < 0) {
        free(text);
        return NULL;
    }
    return text;
}

static json_object *read_history(const struct arguments *arguments, const struct place *place,
                                 struct error *err)
{
    char *path = NULL;
    struct history_losses losses;
    size_t len = 0;
    if (asprintf(&path, "%s/" HISTORY_FILE, place->dir) < 0)
        path = NULL;
    char *text = read_as_owner(place, text_need(path), &len, err);
    json_object *history = NULL;
    if (text != NULL) {
        history = history_file_parse(arguments->job_id, text, len, &losses);
        if (losses.skipped > 0)
            log_error("%s: skipped %d %s that cannot be read", path, losses.skipped,
                      losses.skipped == 1 ? "line" : "lines");
        if (losses.left_out > 0)
            log_error("%s: left out the first %d generations: there are too many", path,
                      losses.left_out);
        if (place->end > 0)
            history_end(history, place->end);
    }
    free(text);
    free(path);
    return history;
}

/* The leader is gone or silent; `why` is the reason why it could not be asked. */
static json_object *from_files(const struct arguments *arguments, const struct site *site,
                               const struct job_info *info, const struct error *why,
                               struct place *place, struct error *err)
{
    struct error reading;
    if (find_place(arguments, site, info, place, err) < 0)
        return NULL;
    json_object *history = read_history(arguments, place, &reading);
    if (history == NULL) {
        const char *advice = strstr(why->text, QUERY_HISTORY);
        int length = advice != NULL ? (int)(advice - why->text) : 200;
        error_set(err, "%.*s, and there is no history to read (%.280s)", length, why->text,
                  reading.text);
    }
    return history;
}

static json_object *find_history(const struct arguments *arguments, struct place *place,
                                 struct error *err)
{
    struct query query = {0};
    struct error why;
    json_object *history = NULL;
    struct site *site = site_create(err);
    if (site == NULL)
        return NULL;
    enum query_result result = query_leader(site, arguments->job_id, request_new("history"), &query,
                                            &why);
    if (result == QUERY_ANSWERED && field_array(query.answer, "generations") != NULL)
        history = shape_history(arguments->job_id, query.answer);
    else if (result == QUERY_ANSWERED) {
        error_set(&why, "job %u: its elasticrun leaves the history to its file", arguments->job_id);
        history = from_files(arguments, site, query.info, &why, place, err);
    } else if (result == QUERY_REFUSED || result == QUERY_FAILED)
        *err = why;
    else
        history = from_files(arguments, site, query.info, &why, place, err);
    if (history != NULL && result == QUERY_SILENT)
        failed(&why);
    query_clear(&query);
    site_destroy(site);
    return history;
}

static void print_history(const struct arguments *arguments, json_object *history, bool over)
{
    int width = terminal_width();
    struct render_options options = {.width = width, .now = time(NULL), .over = over};
    print_text(render_history(history, &options));
    if (!arguments->timeline)
        return;
    struct timeline_options drawing = {
        .width = width ? width : TIMELINE_WIDTH,
        .max_rows = TIMELINE_ROWS,
        .end = over ? 0 : (double)options.now,
    };
    putchar('\n');
    print_text(timeline_draw(field_array(history, "generations"), &drawing));
}

static int draw(const struct arguments *arguments, json_object *history, bool over, bool html,
                struct error *err)
{
    const char *path = html ? arguments->html : arguments->svg;
    char title[64];
    struct picture_options options = {
        .title = arguments->title != NULL ? arguments->title : title,
        .end = over ? 0 : (double)time(NULL),
        .html = html,
    };
    if (path == NULL)
        return 0;
    snprintf(title, sizeof(title), "Elastic job %u", arguments->job_id);
    char *text = picture_draw(field_array(history, "generations"), &options);
    if (text == NULL)
        return error_set(err, "job %u has no generation that could be drawn", arguments->job_id);
    return write_text(path, text, err);
}

/* As the arguments say: on the terminal, or into files. The history is put. */
static int show(const struct arguments *arguments, json_object *history, bool over,
                struct error *err)
{
    bool quiet = arguments->svg != NULL || arguments->html != NULL;
    int rc = draw(arguments, history, over, false, err);
    if (rc == 0)
        rc = draw(arguments, history, over, true, err);
    if (rc == 0 && arguments->json)
        print_json(json_object_get(history), false);
    else if (rc == 0 && (!quiet || arguments->timeline))
        print_history(arguments, history, over);
    json_object_put(history);
    return rc;
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    struct place place = {.fd = -1};
    json_object *history;
    deadline_start();
    if (arguments->state_dir != NULL) {
        place.dir = text_need(strdup(arguments->state_dir));
        find_user(&place);
        place.over = true;
        history = read_history(arguments, &place, &err);
    } else {
        history = find_history(arguments, &place, &err);
    }
    int rc = history != NULL ? show(arguments, history, place.over, &err) : -1;
    place_clear(&place);
    return rc == 0 ? STATUS_OK : failed(&err);
}

const struct command history_command = {
    .name = "history",
    .summary = "show every generation of a job: time, size, reason and pause",
    .help =
        "Usage: selastic history JOB [--timeline] [--svg FILE] [--html FILE] [--title TEXT]\n"
        "                            [--user USER] [--state-dir DIR] [--json]\n"
        "\n"
        "Show every generation of an elastic job that runs or has ended: its time, its\n"
        "number of nodes, its reason, and how long training paused before it.\n"
        "\n"
        "      --timeline       draw a chart as well: one row for each node, time to the right\n"
        "      --svg FILE       write a picture: nodes over time by pool, pauses, steps a second.\n"
        "                       The table is not printed then. FILE -: on standard output\n"
        "      --html FILE      the same in a page with a table of all changes\n"
        "      --title TEXT     of the picture (default: the number of the job)\n"
        "      --user USER      the user of the job, if Slurm does not know the job any more\n"
        "                       (default: you)\n"
        "      --state-dir DIR  read the history from this state directory\n"
        "      --json           print JSON\n"
        "  -h, --help           print this text\n",
    .run = run,
};
