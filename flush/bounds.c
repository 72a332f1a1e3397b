/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of what jobs have left a user keeps on this node (bounds.h). */
#include "flush/bounds.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "flush/clear.h"
#include "flush/lock.h"
#include "flush/process.h"

#define LIMIT       60    /* seconds; the next sweep goes on with what is left then */
#define ENTRIES_MAX 10000 /* in a run directory */
#define DEPTH_MAX   16
#define ENDED       "trusted.slurm-elastic.ended" /* seconds since 1970 */
/* Beyond the files and directories of a snapshot each entry counts as a page: what the kernel keeps
 * of it is in no block. */
#define ENTRIES_FREE 80

/* What is in a run directory. */
struct content {
    uid_t uid; /* of its user */
    int64_t bytes;
    int entries;
};

static int add_all(struct content *content, int dir, int depth, struct error *why);

static int add_directory(struct content *content, int dir, const char *name, int depth,
                         struct error *why)
{
    struct stat st;
    int rc, fd;

    if (depth >= DEPTH_MAX)
        return error_set(why, "it has directories %d deep", DEPTH_MAX);
    fd = entry_open_same(dir, name, S_IFDIR, &st, why);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    rc = add_all(content, fd, depth + 1, why);
    close(fd);
    return rc;
}

/* ACLs, and what users name user.*: tmpfs keeps them in no block. That of a directory may have 128
 * KiB. What the system sets is small. */
static int64_t attributes_of(int fd)
{
    char path[32], names[XATTR_LIST_MAX];
    int64_t sum = 0;
    ssize_t len;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    len = listxattr(path, names, sizeof(names));
    for (const char *at = names; len > 0 && at < names + len; at += strlen(at) + 1) {
        ssize_t bytes = getxattr(path, at, NULL, 0);

        if (bytes > 0 && strncmp(at, "trusted.", 8) != 0 && strncmp(at, "security.", 9) != 0)
            sum += bytes;
    }
    return sum;
}

static int add_found(struct content *content, int fd, const char *name, struct stat *st,
                     struct error *why)
{
    if (fstat(fd, st) != 0)
        return error_set(why, "%s", strerror(errno));
    if (st->st_uid != content->uid)
        return error_set(why, "%s belongs to uid %u", error_value(name).text,
                         (unsigned int)st->st_uid);
    content->bytes += (int64_t)st->st_blocks * 512 + attributes_of(fd);
    if (++content->entries > ENTRIES_FREE)
        content->bytes += sysconf(_SC_PAGESIZE);
    if (content->entries > ENTRIES_MAX)
        return error_set(why, "it has more than %d files", ENTRIES_MAX);
    return 0;
}

/* No file system that is mounted there is asked. */
static int add(struct content *content, int dir, const char *name, int depth, struct error *why)
{
    int rc, fd = entry_find_same(dir, name);
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno == EXDEV)
        return error_set(why, "something is mounted on %s", error_value(name).text);
    if (fd < 0)
        return error_set(why, "%s: %s", error_value(name).text, strerror(errno));
    rc = add_found(content, fd, name, &st, why);
    close(fd);
    return rc == 0 && S_ISDIR(st.st_mode) ? add_directory(content, dir, name, depth, why) : rc;
}

static int add_all(struct content *content, int dir, int depth, struct error *why)
{
    DIR *list = entry_list(dir);
    const char *name;
    int rc = 0;

    if (list == NULL)
        return error_set(why, "%s", strerror(errno));
    while (rc == 0 && !stop_asked() && (name = entry_next(list)) != NULL)
        rc = add(content, dir, name, depth, why);
    closedir(list);
    return rc;
}

/* What the user's rights remove and count. -1 with why: there is something else. */
static int measure(int dir, const struct snapshot_run *run, int64_t *bytes, struct error *why)
{
    struct content content = {.uid = run->uid};
    struct stat st;

    if (fstat(dir, &st) != 0)
        return error_set(why, "%s", strerror(errno));
    if (st.st_uid != run->uid)
        return error_set(why, "it belongs to uid %u", (unsigned int)st.st_uid);
    content.bytes = attributes_of(dir);
    if (add_all(&content, dir, 0, why) != 0)
        return -1;
    *bytes = content.bytes;
    return 0;
}

/* A process of the user renews what the kernel knows of use, by chmod for one. So root notes when
 * it has first seen that the job has ended, where a user can neither read nor write. */
static bool is_old(int dir, int seconds)
{
    int64_t now = time(NULL), since;

    if (fgetxattr(dir, ENDED, &since, sizeof(since)) != (ssize_t)sizeof(since)) {
        since = now;
        if (fsetxattr(dir, ENDED, &since, sizeof(since), 0) != 0)
            errno = 0; /* a file system without them */
    }
    return clear_is_old(dir, seconds) || now - since > seconds;
}

/* What is left of the bounds becomes less by what stays. */
static bool may_stay(struct bounds *left, int dir, const struct snapshot_run *run,
                     struct error *why)
{
    int64_t bytes = 0;

    if (is_old(dir, left->age)) {
        error_set(why, "it is older than %d s", left->age);
        return false;
    }
    if (left->runs == 0) {
        error_set(why, "no more directories may be kept in memory for this user");
        return false;
    }
    if (measure(dir, run, &bytes, why) != 0)
        return false;
    if (bytes > left->bytes) {
        error_set(why,
                  "it has %" PRId64 " bytes, and %" PRId64
                  " more may be kept in memory for this user",
                  bytes, left->bytes);
        return false;
    }
    left->bytes -= bytes;
    left->runs--;
    return true;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void say(const struct bounds *bounds, const struct place *place, const char *name,
                const char *what, const char *why)
{
    const struct error_value where = error_path(place->path);

    /* Nobody may read it any more. */
    if (bounds->prints && printf("%s/%s: %s: %s\n", where.text, name, what, why) > 0 &&
        fflush(stdout) == 0)
        return;
    syslog(LOG_USER | LOG_NOTICE, "%s/%s: %s: %s", where.text, name, what, why);
}

/* ---- a run directory ------------------------------------------------------------------------- */

static void remove_as_root(const struct bounds *bounds, const struct place *place,
                           const struct place_run *run, int dir, const struct error *why)
{
    struct error err = {""};

    if (clear_as_root(dir, bounds->unmounts, &err) == 0) {
        say(bounds, place, run->name, "removed by root", why->text);
        return;
    }
    error_prefix(&err, "%s", why->text);
    say(bounds, place, run->name, "not removed by root", err.text);
}

static void apply(struct bounds *left, const struct place *place, const struct place_run *run,
                  int dir, bool filled, const struct lock_terms *terms)
{
    struct error why = {""};

    if (!(filled && clear_is_empty(dir)) && lock_is_used(dir, &run->run, terms))
        return;
    if (place->alone && !clear_is_empty(dir) && !may_stay(left, dir, &run->run, &why))
        remove_as_root(left, place, run, dir, &why);
    place_remove(place, run->name); /* which says itself whether it is empty */
}

static int open_run(const struct place *place, const struct place_run *run, bool unmounts)
{
    struct stat st;

    if (unmounts)
        place_uncover(place, run->name);
    return entry_open_same(place->fd, run->name, S_IFDIR, &st, NULL);
}

void bounds_begin_anew(const struct place *place, const char *name)
{
    struct stat st;
    int dir = place->alone ? entry_open_same(place->fd, name, S_IFDIR, &st, NULL) : -1;

    if (dir < 0)
        return;
    if (fremovexattr(dir, ENDED) != 0)
        errno = 0; /* there is none, as a rule */
    close(dir);
}

void bounds_look(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
                 bool unmounts, bool *filled)
{
    for (int i = 0; i < count; i++) {
        int dir = open_run(&places[runs[i].place], &runs[i], unmounts);

        filled[i] = dir >= 0 && !clear_is_empty(dir);
        if (dir >= 0)
            close(dir);
    }
}

void bounds_apply(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
                  const bool *filled, const struct bounds *bounds)
{
    struct bounds left = *bounds;
    struct process_jobs jobs;
    struct lock_terms terms = {.ended = !bounds->sweep, .sweep = bounds->sweep, .jobs = &jobs};

    stop_watch(LIMIT);
    left.runs = bounds->runs > 0 ? bounds->runs : INT_MAX;
    left.age = terms.max_age = bounds->age > 0 ? bounds->age : 1;
    jobs.count = 0;
    if (bounds->sweep) /* before the directories: a job that begins has nothing in its one yet */
        process_jobs(&jobs);
    for (int i = 0; i < count && !stop_asked(); i++) {
        const struct place *place = &places[runs[i].place];
        int dir = open_run(place, &runs[i], bounds->unmounts);

        if (dir < 0)
            continue;
        apply(&left, place, &runs[i], dir, filled[i], &terms);
        close(dir);
    }
}
