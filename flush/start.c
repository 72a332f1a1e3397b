/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting elastic-flush with the rights of a user (start.h). */
#include "flush/start.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

#include "flush/bounds.h"
#include "flush/guard.h"
#include "flush/process.h"

#define PROGRAM    "elastic-flush"
#define NAMES_MAX  20 /* seconds for the service that knows users and groups */
#define ARGV_MAX   (START_RUNS_MAX + 16)
#define KEEP_TIME  3600 /* seconds for a flush; nobody waits for it so long */
#define REMOVAL    60   /* seconds more, in which it removes what it has written */
#define BOUNDS_CPU 65   /* seconds of computing for the bounds; it stops by itself before */
#define EXIT_START 126
/* For what a user has written about snapshots and checkpoints: of a manifest a dozen bytes for
 * each. Where that is not enough for a checkpoint (8 MiB, some hundred thousand files), it counts
 * as incomplete, and the leader chooses. Snapshots are copied in pieces of 1 MiB. */
#define MEMORY_MAX ((rlim_t)64 << 20)
#define OOM_FIRST  "1000" /* oom_score_adj */

#ifndef __has_feature
#define __has_feature(name) 0
#endif

static int path_of_program(char path[PATH_MAX + sizeof(PROGRAM)])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

    while (len > 0 && path[len - 1] != '/')
        len--;
    if (len <= 0)
        return -1;
    memcpy(path + len, PROGRAM, sizeof(PROGRAM));
    return 0;
}

/* No cgroup of a job bounds the flush. The user may lower the limit of any process, and raise it of
 * none. Data, not all addresses: services of names map files of any size. */
static int bound_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
    const struct rlimit limit = {.rlim_cur = MEMORY_MAX, .rlim_max = MEMORY_MAX};

    return setrlimit(RLIMIT_DATA, &limit);
#else
    return 0; /* the sanitizer takes terabytes for what it knows of addresses */
#endif
}

/* slurmd's cgroup may have a limit, and slurmd may be kept from being killed, which children
 * inherit. What a user can make large is killed instead, and tried again later. The user cannot
 * take that back: it was set with more rights. */
static void be_killed_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, OOM_FIRST, strlen(OOM_FIRST)) < 0)
        errno = 0; /* a kernel without it kills nobody */
    if (fd >= 0)
        close(fd);
}

/* With all groups of the user, which file systems may ask for, if this node knows the user. */
static int become(const struct start *start)
{
    uid_t uid = start->runs->run.uid;
    struct passwd *entry;
    gid_t gid;

    if (geteuid() == uid)
        return 0;
    alarm(NAMES_MAX);
    entry = getpwuid(uid);
    gid = start->gid != NULL ? *start->gid : entry != NULL ? entry->pw_gid : (gid_t)65534;
    if ((entry == NULL || initgroups(entry->pw_name, gid) != 0) && setgroups(0, NULL) != 0)
        return -1;
    alarm(0);
    if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return -1;
    return getuid() == uid && geteuid() == uid ? 0 : -1;
}

static _Noreturn void run(const struct start *start, const char *path)
{
    static char *environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    char keep_time[32], max_age[32], keep[48], keep_runs[32], paths[START_RUNS_MAX][PATH_MAX];
    const char *argv[ARGV_MAX] = {PROGRAM};
    int count = 1;

    argv[count++] = start->sweep ? "--sweep" : "--remove";
    if (!start->sweep)
        argv[count++] = "--kill";
    snprintf(keep_time, sizeof(keep_time), "--keep-time=%d", KEEP_TIME);
    snprintf(max_age, sizeof(max_age), "--max-age=%d", start->age > 0 ? start->age : 1);
    snprintf(keep, sizeof(keep), "--keep-bytes=%" PRId64, start->share);
    argv[count++] = "--to-disk"; /* no cgroup of the user's counts it */
    argv[count++] = keep_time;
    argv[count++] = max_age;
    argv[count++] = keep;
    if (start->keep_runs > 0) {
        snprintf(keep_runs, sizeof(keep_runs), "--keep-runs=%d", start->keep_runs);
        argv[count++] = keep_runs;
    }
    argv[count++] = "--";
    for (int i = 0; i < start->count; i++) {
        snprintf(paths[i], PATH_MAX, "%s/%s", start->places[start->runs[i].place].path,
                 start->runs[i].name);
        argv[count++] = paths[i];
    }
    setsid();
    signal(SIGPIPE, SIG_DFL);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    /* Of what slurmd may have left open nothing is the user's. */
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    fcntl(start->slot, F_SETFD, 0);
    be_killed_first();
    if (chdir("/") == 0 && bound_memory() == 0 && become(start) == 0)
        execve(path, (char *const *)argv, environment);
    _exit(EXIT_START);
}

static bool is_kept(int fd, const struct start *start)
{
    for (int i = 0; i < PLACES_MAX; i++)
        if (fd == start->places[i].fd)
            return true;
    return fd <= STDERR_FILENO || fd == start->slot;
}

/* A sweep has the lock of its turn open: others wait for that, and not for this process. */
static void close_others(const struct start *start)
{
    int highest = start->slot > STDERR_FILENO ? start->slot : STDERR_FILENO;

    for (int i = 0; i < PLACES_MAX; i++)
        if (start->places[i].fd > highest)
            highest = start->places[i].fd;
    for (int fd = 0; fd <= highest; fd++)
        if (!is_kept(fd, start))
            close(fd);
    close_range((unsigned int)highest + 1, ~0U, 0);
}

/* slurmd kills the process group of its script when that ends. */
static void prepare_guard(const struct start *start, int output)
{
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    alarm(0); /* the limit of whoever waits for the flush */
    prctl(PR_SET_NAME, PROCESS_GUARD);
    dup2(none, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(none, STDERR_FILENO);
    close_others(start);
    openlog("slurm-elastic", 0, LOG_USER);
    if (chdir("/") != 0)
        _exit(EXIT_START);
}

static void wait_for_flush(pid_t pid)
{
    if (pid < 0) {
        printf("cannot start " PROGRAM ": %s\n", strerror(errno));
        return;
    }
    if (guard_wait(pid, KEEP_TIME + REMOVAL) == GUARD_STOPPED)
        printf("not flushed: another process of the user has stopped elastic-flush: killed; left "
               "for later\n");
}

/* Whatever it meets, it ends when it has computed for so long. */
static void keep_bounds(const struct start *start, const bool *filled)
{
    const struct rlimit limit = {.rlim_cur = BOUNDS_CPU, .rlim_max = BOUNDS_CPU};
    const struct bounds bounds = {.sweep = start->sweep,
                                  .bytes = start->share,
                                  .runs = start->keep_runs,
                                  .age = start->age,
                                  .unmounts = start->slot >= 0,
                                  .prints = start->prints};

    setrlimit(RLIMIT_CPU, &limit);
    bounds_apply(start->places, start->runs, start->count, filled, &bounds);
}

static _Noreturn void guard(const struct start *start, const char *path, int output)
{
    bool filled[START_RUNS_MAX];

    prepare_guard(start, output);
    bounds_look(start->places, start->runs, start->count, start->slot >= 0, filled);
    if (start->slot >= 0) {
        pid_t pid = fork();

        if (pid == 0)
            run(start, path);
        wait_for_flush(pid);
    }
    keep_bounds(start, filled);
    fflush(stdout);
    _exit(0);
}

pid_t start_flush(const struct start *start, int *output, struct error *err)
{
    char path[PATH_MAX + sizeof(PROGRAM)];
    int ends[2];
    pid_t pid;

    if (path_of_program(path) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        return error_set(err, "cannot start " PROGRAM ": %s", strerror(errno));
    fflush(stdout); /* else both processes have what is in it */
    pid = fork();
    if (pid == 0)
        guard(start, path, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        error_set(err, "cannot start " PROGRAM ": %s", strerror(errno));
        close(ends[0]);
        return -1;
    }
    *output = ends[0];
    return pid;
}
