/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-flush: makes the newest complete snapshot of a run directory durable.
 *
 * It writes the snapshot into the job's checkpoint directory. The epilog and others start it when a
 * run has ended, as the job's user. All that it reads was written by that user's programs, and they
 * also name the directory that it writes into. So it must do nothing that these programs could not
 * do, and nobody waits for it longer than the caller wants. Therefore it has a session of its own,
 * which outlives the process group of a script. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "flush/buffer.h"
#include "flush/clear.h"
#include "common/entry.h"
#include "common/stop.h"
#include "common/untraced.h"
#include "flush/lock.h"
#include "flush/said.h"
#include "flush/target.h"
#include "flush/workers.h"
#include "lib/number.h"

enum { STATUS_OK = 0, STATUS_ERROR = 1, STATUS_USAGE = 2, STATUS_TIME = 3 };

#define SECONDS_MAX  86400
#define AGE_MAX      (100 * 86400)
#define RUNS_MAX     1000
#define REMOVE_LIMIT 10 /* seconds for the removal, when all other limits are over */

struct options {
    char **run_dirs;
    int run_dir_count;
    int64_t limit;      /* bytes; 0: none */
    int64_t keep_bytes; /* that may still be kept; -1: no limit */
    int keep_runs;      /* directories that may; -1: no limit */
    int seconds;        /* 0: no limit */
    int max_age;        /* seconds; 0: for ever */
    bool remove, sweep, kill, background, to_disk;
};

/* A run directory, while it is flushed. */
struct work {
    char *path;
    int fd;
    struct snapshot_run run;
    struct buffer buffers[BUFFERS];
    int count; /* buffers */
    bool to_disk;
    /* What could not be flushed and may be flushed later; NULL: nothing */
    const struct buffer *failed;
    struct error line; /* what is said in the end */
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
    "  --keep-time=SECONDS  stop after this time, and remove what was written (default: no limit)\n"
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
        if (parse_bytes(optarg, 0, &options->keep_bytes) == 0)
            return 0;
        return error_set(err, "--keep-bytes=%s: must be a number of bytes",
                         error_value(optarg).text);
    case 'k':
        if (number_parse(optarg, strlen(optarg), 1, SECONDS_MAX, &options->seconds) == 0)
            return 0;
        return error_set(err, "--keep-time=%s: must be 1 to %d seconds", error_value(optarg).text,
                         SECONDS_MAX);
    case 'a':
        if (number_parse(optarg, strlen(optarg), 1, AGE_MAX, &options->max_age) == 0)
            return 0;
        return error_set(err, "--max-age=%s: must be 1 to %d seconds", error_value(optarg).text,
                         AGE_MAX);
    case 'n':
        if (number_parse(optarg, strlen(optarg), 0, RUNS_MAX, &options->keep_runs) == 0)
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

/* Not what a user has mounted there. */
static int open_same(char *path, struct stat *st)
{
    char *slash = strrchr(path, '/');
    int fd, reason, above;

    if (slash == NULL)
        return entry_open_same(AT_FDCWD, path, S_IFDIR, st, NULL);
    *slash = '\0';
    above = open(slash != path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
    if (above < 0)
        return -1;
    fd = entry_open_same(above, slash + 1, S_IFDIR, st, NULL);
    reason = errno;
    close(above);
    errno = reason;
    return fd;
}

static int open_run_dir(char *path, const struct snapshot_run *run, struct error *err)
{
    struct stat st;
    int fd = open_same(path, &st);

    if (fd < 0)
        return error_set(err, "cannot open %s: %s", error_path(path).text, strerror(errno));
    if (check_owner(path, st.st_uid, run, err) == 0)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* Wait for another flush of the same directory, so that this one finds its result. Where the file
 * system has no such locks, both write. */
static void wait_for_others(int fd)
{
    while (!stop_asked() && flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ;
}

/* ---- flushing -------------------------------------------------------------------------------- */

static enum flush_result copy_files(const struct buffer *buffer, struct target *target,
                                    struct error *err)
{
    const struct snapshot *snapshot = buffer->snapshot;
    enum flush_result result = FLUSH_DONE;

    for (int i = 0; result == FLUSH_DONE && i < snapshot->count; i++) {
        int fd = buffer_open_file(buffer, &snapshot->files[i], err);

        if (fd < 0)
            return FLUSH_TORN;
        result = target_add(target, fd, &snapshot->files[i], err);
        close(fd);
    }
    return result;
}

/* For FLUSH_DONE err says what was done, for any other result why. */
static enum flush_result flush_buffer(const struct buffer *buffer, const struct work *work,
                                      struct error *err)
{
    const struct snapshot *snapshot = buffer->snapshot;
    const char *name = NULL;
    struct target *target = target_open(snapshot->checkpoint, &snapshot->key, work->run.node,
                                        work->to_disk, err);
    enum flush_result result = FLUSH_FAILED;

    if (target != NULL)
        result = target_begin(target, err);
    if (result == FLUSH_DONE)
        result = copy_files(buffer, target, err);
    if (result == FLUSH_DONE)
        result = target_publish(target, snapshot, &name, err);
    if (result == FLUSH_DONE)
        error_set(err, "%" PRId64 " bytes in %s/%s", snapshot->bytes,
                  error_path(target_path(target)).text, name);
    target_close(target);
    return result;
}

/* Compose the line "flushed: snapshot/1 of 12.0, generation 3, step 1234: WHY; TORN". TORN is about
 * the buffers that were looked at before. */
static void say(struct error *line, const char *what, const struct buffer *buffer,
                const char *reason, const struct error *torn)
{
    const struct snapshot_key *key = &buffer->snapshot->key;

    error_set(line, "%s: snapshot/%d of %u.%u, generation %d, step %" PRId64 ": %s%s%s", what,
              buffer->index, key->job, key->restarts, key->generation, key->step, reason,
              torn->text[0] != '\0' ? "; not used: " : "", torn->text);
}

static int out_of_time(int seconds, struct error *line)
{
    int number = stop_asked();

    if (number == SIGALRM) {
        error_set(line, "out of time after %d s; nothing was flushed", seconds);
        return STATUS_TIME;
    }
    error_set(line, "ended by signal %d; nothing was flushed", number);
    return STATUS_ERROR;
}

/* Returns the exit status. */
static int flush_newest(struct work *work, struct error *torn, bool *lost)
{
    for (int i = 0; i < work->count && !stop_asked(); i++) {
        const struct buffer *buffer = &work->buffers[i];
        struct error err = {""};

        switch (flush_buffer(buffer, work, &err)) {
        case FLUSH_DONE:
            say(&work->line, "flushed", buffer, err.text, torn);
            return STATUS_OK;
        case FLUSH_COVERED:
            say(&work->line, "dropped", buffer, err.text, torn);
            return STATUS_OK;
        case FLUSH_TORN:
            buffer_add_reason(torn, buffer->index, err.text);
            work->failed = i + 1 < work->count ? buffer + 1 : NULL;
            break;
        case FLUSH_STOPPED:
            return STATUS_ERROR;
        case FLUSH_FAILED:
        default:
            say(&work->line, "not flushed", buffer, err.text, torn);
            return STATUS_ERROR;
        }
    }
    if (stop_asked())
        return STATUS_ERROR;
    if (torn->text[0] != '\0') {
        error_set(&work->line, "no snapshot can be used: %s", torn->text);
        *lost = true;
        return STATUS_ERROR;
    }
    error_set(&work->line, "nothing to flush: there is no complete snapshot");
    return STATUS_OK;
}

/* ---- and then -------------------------------------------------------------------------------- */

static bool is_old(int dir, const struct options *options)
{
    return options->max_age > 0 && clear_is_old(dir, options->max_age);
}

static int make_lock(int dir, struct error *err)
{
    int lock = openat(dir, LOCK_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC, 0600);

    if (lock < 0)
        return error_set(err, LOCK_NAME ": %s", strerror(errno));
    close(lock);
    return 0;
}

static int keep_in(int parent, const char *name, const char *const *keep, struct error *err)
{
    struct stat st;
    int rc, dir = entry_open_own_same(parent, name, S_IFDIR, &st, err);

    if (dir < 0)
        return -1;
    rc = clear_directory(dir, keep, err);
    close(dir);
    return rc;
}

/* What a user has put beside it would be in memory for as long as the snapshot, and count for
 * nobody. The lock stays, or is made: without one a sweep takes the directory for that of a job
 * which begins, and counts it for nobody. */
static int keep_snapshot_alone(const struct work *work, struct error *err)
{
    const char index[] = {(char)('0' + work->failed->index), '\0'};
    const char *const top[] = {LOCK_NAME, "snapshot", NULL}, *const buffer[] = {index, NULL};
    const char *files[SNAPSHOT_FILES_MAX + 2] = {SNAPSHOT_MANIFEST};
    int lock;

    for (int i = 0; i < work->failed->snapshot->count; i++)
        files[i + 1] = work->failed->snapshot->files[i].name;
    lock = openat(work->fd, LOCK_NAME, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (lock >= 0) {
        if (ftruncate(lock, 0) != 0)
            error_set(err, LOCK_NAME ": %s", strerror(errno));
        close(lock);
    }
    return clear_directory(work->fd, lock >= 0 ? top : top + 1, err) != 0 ||
                   (lock < 0 && make_lock(work->fd, err) != 0) ||
                   keep_in(work->fd, "snapshot", buffer, err) != 0 ||
                   clear_directory(work->failed->dir, files, err) != 0
               ? -1
               : 0;
}

/* May what could not be flushed stay? If so, it counts. */
static bool may_stay(struct options *options, const struct work *work, struct error *why)
{
    int64_t bytes;

    if (is_old(work->fd, options)) {
        error_set(why, "given up after %d s", options->max_age);
        return false;
    }
    if (options->keep_runs == 0) {
        error_set(why, "given up: no more directories may be kept in memory for this user");
        return false;
    }
    options->keep_runs -= options->keep_runs > 0;
    if (options->keep_bytes < 0)
        return true;
    /* Another process of the user may have held up the flush until its time was over. */
    if (work->failed == NULL) {
        error_set(why, "given up: there is no complete snapshot");
        return false;
    }
    bytes = buffer_memory(work->failed);
    if (bytes > options->keep_bytes) {
        error_set(why, "given up: %" PRId64 " bytes more may be kept in memory for this user",
                  options->keep_bytes);
        return false;
    }
    if (keep_snapshot_alone(work, why) != 0) {
        error_prefix(why, "given up");
        return false;
    }
    options->keep_bytes -= bytes;
    return true;
}

/* A directory that root has made stays, empty. */
static void remove_if_done(struct options *options, struct work *work, bool lost, int *status)
{
    struct error err = {""};

    if (*status != STATUS_OK && !lost) {
        if (*status == STATUS_TIME)
            stop_watch(REMOVE_LIMIT);
        else if (stop_asked())
            return;
        if (may_stay(options, work, &err))
            return;
        error_set(&work->line, "%s; %s", work->line.text, err.text);
    }
    if (clear_directory(work->fd, NULL, &err) != 0) {
        error_set(&work->line, SAID_NOT_REMOVED ": %s; %s", work->line.text, err.text);
        *status = STATUS_ERROR;
    } else {
        rmdir(work->path);
    }
}

static int flush_open(struct options *options, struct work *work)
{
    struct error torn = {""};
    bool lost = false;
    int status;

    if (options->kill)
        workers_kill(work->path);
    wait_for_others(work->fd);
    work->count = buffers_open(work->fd, options->limit, work->buffers, &torn);
    work->failed = work->count > 0 ? &work->buffers[0] : NULL;
    status = flush_newest(work, &torn, &lost);
    if (status != STATUS_OK && stop_asked())
        status = out_of_time(options->seconds, &work->line);
    if (options->remove)
        remove_if_done(options, work, lost, &status);
    buffers_close(work->buffers, work->count);
    return status;
}

/* Is that an error of the moment? What cannot be opened for it may be in use, and may have a
 * snapshot. */
static bool passes(int reason)
{
    return reason == ENOMEM || reason == EMFILE || reason == ENFILE || reason == EINTR ||
           reason == EAGAIN;
}

static int flush(struct options *options, struct work *work)
{
    const struct lock_terms terms = {
        .ended = options->kill, .sweep = options->sweep, .max_age = options->max_age};
    int status = STATUS_OK;

    work->fd = open_run_dir(work->path, &work->run, &work->line);
    if (work->fd < 0) {
        /* Any file type but a directory. */
        if (options->remove && !passes(errno) && unlink(work->path) != 0 && errno != ENOENT)
            error_prefix(&work->line, SAID_UNSEEN);
        return STATUS_ERROR;
    }
    if (options->remove && lock_is_used(work->fd, &work->run, &terms))
        error_set(&work->line, SAID_IN_USE);
    else
        status = flush_open(options, work);
    close(work->fd);
    return status;
}

/* Signals that only repeat the result of a failed call: a file larger than allowed, a reader of our
 * line that has gone. */
static void prepare_process(int seconds)
{
    umask(077);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    /* Fails where a shell with job control has made a process group for this process; that group
     * serves, too. */
    setsid();
    stop_watch(seconds);
}

static void print(int status, const struct error *line)
{
    if (status == STATUS_OK)
        printf("%s\n", line->text);
    else
        fprintf(stderr, SAID_ERROR "%s\n", line->text);
    fflush(stdout);
}

static int flush_all(struct options *options)
{
    int status = STATUS_OK;

    for (int i = 0; i < options->run_dir_count; i++) {
        struct work work = {.path = options->run_dirs[i], .to_disk = options->to_disk};
        int one = STATUS_ERROR;

        if (parse_run_dir(options->run_dirs[i], &work.run, &work.line) == 0)
            one = flush(options, &work);
        print(one, &work.line);
        status = one != STATUS_OK ? one : status;
        if (one == STATUS_TIME || stop_asked())
            break;
    }
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {.keep_bytes = -1, .keep_runs = -1};
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
    prepare_process(options.seconds);
    if (sodium_init() >= 0)
        return flush_all(&options);
    error_set(&line, "libsodium cannot be used");
    print(STATUS_ERROR, &line);
    return STATUS_ERROR;
}
