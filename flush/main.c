/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-flush: makes the newest complete snapshot of a run directory durable.
 *
 * It writes the snapshot into the job's checkpoint directory. The epilog and others start it when a
 * run has ended, as the job's user. All that it reads was written by that user's programs, and they
 * also name the directory that it writes into. So it must do nothing that these programs could not
 * do. What they wrote is read by a process for each directory (attempt.h): whatever that meets,
 * this one goes on, judges what may stay, and removes the rest. Nobody waits for it longer than the
 * caller wants. Therefore it has a session of its own, which outlives the process group of a
 * script. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/entry.h"
#include "common/monotonic.h"
#include "common/stop.h"
#include "common/untraced.h"
#include "flush/attempt.h"
#include "flush/clear.h"
#include "flush/keep.h"
#include "flush/lock.h"
#include "lib/number.h"

#define SECONDS_MAX  86400
#define AGE_MAX      (100 * 86400)
#define RUNS_MAX     1000
#define REMOVE_LIMIT 10 /* seconds for the removal, when the time of its directory is over */

struct options {
    char **run_dirs;
    int run_dir_count;
    int64_t limit; /* bytes; 0: none */
    struct keep keep;
    int seconds; /* for all; 0: no limit */
    bool remove, sweep, kill, background, to_disk;
};

/* A run directory, while it is flushed. */
struct work {
    char *path;
    int fd;
    struct snapshot_run run;
    struct error line; /* what is said in the end */
    bool stuck;        /* its process cannot even be killed */
};

static const char help[] =
    "Usage: elastic-flush [OPTION]... RUN_DIR...\n"
    "\n"
    "Copies the newest complete snapshot of a run directory (elastic-UID-JOB.RESTARTS-NODE) to\n"
    "CHECKPOINT/.flushed-JOB.RESTARTS.GENERATION.STEP-NODE, unless the checkpoint directory of the "
    "job\n"
    "has a state that is as new or newer. Run it as the job's user, when nobody writes any more.\n"
    "RUN_DIR stays as it is, unless an option says otherwise. Several are done in this order.\n"
    "\n"
    "  --limit=BYTES        take no snapshot of more bytes than this (default: any)\n"
    "  --keep-time=SECONDS  stop after this time, and remove what was written (default: none).\n"
    "                       RUN_DIRs share it\n"
    "  --remove             remove RUN_DIR after status 0, or if no snapshot in it can be used;\n"
    "                       do nothing while its agent lives\n"
    "  --sweep              the same, but do nothing either if it has never had an agent\n"
    "  --kill               with --remove: kill processes that have it as ELASTIC_RUN_DIR before,\n"
    "                       unless they are of another job than ELASTIC_JOB_ID\n"
    "  --max-age=SECONDS    with these: also after an error, and if it has never had an agent, if\n"
    "                       it was not used for so long\n"
    "  --keep-bytes=BYTES   with these: after an error keep the snapshot alone, and of all "
    "RUN_DIRs\n"
    "                       no more bytes than this (default: any)\n"
    "  --keep-runs=NUMBER   with these: after an error keep no more RUN_DIRs than this (default: "
    "any)\n"
    "  --to-disk            write nothing where files stay in memory, or into what a user has "
    "mounted\n"
    "  --background         return at once; the work is done by a process of its own\n"
    "  --help               print this\n"
    "\n"
    "Exit status: 0 flushed, or there is nothing to flush (one line for each RUN_DIR says which);\n"
    "1 an error; 2 wrong usage; 3 out of time. With several it is that of the last error.\n";

/* ---- options --------------------------------------------------------------------------------- */

static int parse_bytes(const char *text, int64_t min, int64_t *bytes)
{
    char *end;

    errno = 0;
    *bytes = strtoll(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *bytes >= min ? 0 : -1;
}

static int parse_option(int option, struct options *options, struct error *err)
{
    switch (option) {
    case 'l':
        if (parse_bytes(optarg, 1, &options->limit) == 0)
            return 0;
        return error_set(err, "--limit=%s: must be a number of bytes, at least 1",
                         error_value(optarg).text);
    case 'y':
        if (parse_bytes(optarg, 0, &options->keep.bytes) == 0)
            return 0;
        return error_set(err, "--keep-bytes=%s: must be a number of bytes",
                         error_value(optarg).text);
    case 'k':
        if (number_parse(optarg, strlen(optarg), 1, SECONDS_MAX, &options->seconds) == 0)
            return 0;
        return error_set(err, "--keep-time=%s: must be 1 to %d seconds", error_value(optarg).text,
                         SECONDS_MAX);
    case 'a':
        if (number_parse(optarg, strlen(optarg), 1, AGE_MAX, &options->keep.max_age) == 0)
            return 0;
        return error_set(err, "--max-age=%s: must be 1 to %d seconds", error_value(optarg).text,
                         AGE_MAX);
    case 'n':
        if (number_parse(optarg, strlen(optarg), 0, RUNS_MAX, &options->keep.runs) == 0)
            return 0;
        return error_set(err, "--keep-runs=%s: must be 0 to %d", error_value(optarg).text,
                         RUNS_MAX);
    case 's':
        options->sweep = options->remove = true;
        return 0;
    case 'r':
        options->remove = true;
        return 0;
    case 'e':
        options->kill = true;
        return 0;
    case 'b':
        options->background = true;
        return 0;
    case 'd':
        options->to_disk = true;
        return 0;
    default:
        return error_set(err, "unknown option, or one without its value; see elastic-flush --help");
    }
}

static int parse_options(int argc, char **argv, struct options *options, struct error *err)
{
    static const struct option known[] = {
        {"limit", required_argument, NULL, 'l'},
        {"keep-time", required_argument, NULL, 'k'},
        {"keep-bytes", required_argument, NULL, 'y'},
        {"keep-runs", required_argument, NULL, 'n'},
        {"max-age", required_argument, NULL, 'a'},
        {"remove", no_argument, NULL, 'r'},
        {"sweep", no_argument, NULL, 's'},
        {"kill", no_argument, NULL, 'e'},
        {"background", no_argument, NULL, 'b'},
        {"to-disk", no_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            exit(STATUS_OK);
        }
        if (parse_option(option, options, err) != 0)
            return -1;
    }
    if (argc - optind < 1)
        return error_set(err, "a run directory is needed; see elastic-flush --help");
    options->run_dirs = argv + optind;
    options->run_dir_count = argc - optind;
    return 0;
}

/* Set run from the directory's name. A slash at the end is removed: it would make open() follow a
 * link. */
static int parse_run_dir(char *path, struct snapshot_run *run, struct error *err)
{
    size_t len = strlen(path);
    const char *slash;

    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    slash = strrchr(path, '/');
    return snapshot_run_parse(slash != NULL ? slash + 1 : path, run, err);
}

/* ---- the run directory ----------------------------------------------------------------------- */

static int check_owner(const char *path, uid_t owner, const struct snapshot_run *run,
                       struct error *err)
{
    if (owner != geteuid())
        return error_set(err, "%s belongs to uid %u: run this as that user, not as uid %u",
                         error_path(path).text, (unsigned int)owner, (unsigned int)geteuid());
    if (owner != run->uid)
        return error_set(err, "%s belongs to uid %u, not to that of its name",
                         error_path(path).text, (unsigned int)owner);
    return 0;
}

/* Where others may write any of them gives a directory of this user that name, if he can move it:
 * one in which this user has let others write, with all that he has below. Agents make it with mode
 * 0700. */
static int check_mode(const char *path, const struct stat *st, const struct stat *above,
                      struct error *err)
{
    if ((above->st_mode & 022) == 0 || (st->st_mode & 077) == 0)
        return 0;
    return error_set(err, "%s has mode %o where others may write: it is no run directory",
                     error_path(path).text, (unsigned int)st->st_mode & 07777);
}

/* The directory in which it lies. -1 with errno. */
static int open_above(char *path, struct stat *st)
{
    char *slash = strrchr(path, '/'), was = slash != NULL ? slash[1] : '\0';
    int fd;

    if (slash != NULL)
        slash[1] = '\0';
    fd = open(slash != NULL ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (slash != NULL)
        slash[1] = was;
    if (fd < 0 || fstat(fd, st) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Not what a user has mounted there. */
static int open_same(char *path, struct stat *st, struct stat *above)
{
    const char *slash = strrchr(path, '/');
    int fd, reason, dir = open_above(path, above);

    if (dir < 0)
        return -1;
    fd = entry_open_same(dir, slash != NULL ? slash + 1 : path, S_IFDIR, st, NULL);
    reason = errno;
    close(dir);
    errno = reason;
    return fd;
}

static int open_run_dir(char *path, const struct snapshot_run *run, struct error *err)
{
    struct stat st, above;
    int fd = open_same(path, &st, &above);

    if (fd < 0)
        return error_set(err, "cannot open %s: %s", error_path(path).text, strerror(errno));
    if (check_owner(path, st.st_uid, run, err) == 0 && check_mode(path, &st, &above, err) == 0)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* ---- and then -------------------------------------------------------------------------------- */

/* The time for it is what the attempt has left, and some seconds in any case. A directory that root
 * has made stays, empty. */
static void remove_if_done(struct options *options, struct work *work, struct told *told,
                           int64_t until)
{
    struct error err = {""};
    int left = (int)(until - monotonic_s());

    if (stop_asked())
        return;
    stop_watch(until == 0 ? 0 : left > REMOVE_LIMIT ? left : REMOVE_LIMIT);
    if (told->status != STATUS_OK && !told->lost) {
        if (keep_may_stay(&options->keep, work->fd, told, &err))
            return;
        error_set(&told->line, "%s; %s", told->line.text, err.text);
    }
    if (clear_directory(work->fd, NULL, &err) != 0) {
        error_set(&told->line, "not removed: %s; %s", told->line.text, err.text);
        told->status = STATUS_ERROR;
    } else {
        rmdir(work->path);
    }
}

static int flush_open(struct options *options, struct work *work, int seconds)
{
    const struct attempt attempt = {.path = work->path,
                                    .dir = work->fd,
                                    .run = &work->run,
                                    .limit = options->limit,
                                    .seconds = seconds,
                                    .kill = options->kill,
                                    .to_disk = options->to_disk};
    int64_t until = seconds > 0 ? monotonic_s() + seconds : 0;
    struct told told;

    attempt_flush(&attempt, &told);
    work->stuck = told.stuck;
    if (options->remove)
        remove_if_done(options, work, &told, until);
    work->line = told.line;
    return told.status;
}

/* Is that an error of the moment? What cannot be opened for it may be in use, and may have a
 * snapshot. */
static bool passes(int reason)
{
    return reason == ENOMEM || reason == EMFILE || reason == ENFILE || reason == EINTR ||
           reason == EAGAIN;
}

static int flush(struct options *options, struct work *work, int seconds)
{
    const struct lock_terms terms = {
        .ended = options->kill, .sweep = options->sweep, .max_age = options->keep.max_age};
    int status = STATUS_OK;

    work->fd = open_run_dir(work->path, &work->run, &work->line);
    if (work->fd < 0) {
        /* Any file type but a directory. */
        if (options->remove && !passes(errno) && unlink(work->path) != 0 && errno != ENOENT)
            error_prefix(&work->line, "not removed");
        return STATUS_ERROR;
    }
    if (options->remove && lock_is_used(work->fd, &work->run, &terms))
        error_set(&work->line, "nothing to flush: it is in use");
    else
        status = flush_open(options, work, seconds);
    close(work->fd);
    return status;
}

/* Signals that only repeat the result of a failed call: a file larger than allowed, a reader of our
 * line that has gone. */
static void prepare_process(void)
{
    umask(077);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    /* Fails where a shell with job control has made a process group for this process; that group
     * serves, too. */
    setsid();
}

static void print(int status, const struct error *line)
{
    if (status == STATUS_OK)
        printf("%s\n", line->text);
    else
        fprintf(stderr, "elastic-flush: %s\n", line->text);
    fflush(stdout);
}

/* The same part of what is left for each: one that takes all of its time takes none of others. */
static int share_of_time(const struct options *options, int index, int64_t until)
{
    int64_t share = (until - monotonic_s()) / (options->run_dir_count - index);

    if (options->seconds == 0)
        return 0;
    return share > 1 ? (int)share : 1;
}

static int flush_all(struct options *options)
{
    int64_t until = monotonic_s() + options->seconds;
    bool stuck = false; /* one such process is enough */
    int status = STATUS_OK;

    for (int i = 0; i < options->run_dir_count; i++) {
        struct work work = {.path = options->run_dirs[i]};
        int one = stuck ? STATUS_TIME : STATUS_ERROR;

        stop_watch(0); /* the alarm of the last removal is forgotten */
        if (stuck)
            error_set(&work.line, "not flushed: another one waits for a file system: left for "
                                  "later");
        else if (parse_run_dir(options->run_dirs[i], &work.run, &work.line) == 0)
            one = flush(options, &work, share_of_time(options, i, until));
        stuck = stuck || work.stuck;
        print(one, &work.line);
        status = one != STATUS_OK ? one : status;
        if (stop_asked() && stop_asked() != SIGALRM)
            break;
    }
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {.keep = {.bytes = -1, .runs = -1}};
    struct snapshot_run run;
    struct error line = {""};
    int rc;

    untraced_begin();
    rc = parse_options(argc, argv, &options, &line);
    for (int i = 0; rc == 0 && i < options.run_dir_count; i++)
        rc = parse_run_dir(options.run_dirs[i], &run, &line);
    if (rc != 0) {
        print(STATUS_USAGE, &line);
        return STATUS_USAGE;
    }
    if (options.background && fork() > 0)
        return STATUS_OK;
    prepare_process();
    if (sodium_init() >= 0)
        return flush_all(&options);
    error_set(&line, "libsodium cannot be used");
    print(STATUS_ERROR, &line);
    return STATUS_ERROR;
}
