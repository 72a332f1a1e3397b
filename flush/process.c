/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To which job a process belongs (process.h). */
#include "flush/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "lib/number.h"
#include "lib/text.h"

#define TEXT_MAX    65536 /* bytes of /proc/PID/cgroup, and …/status */
#define CGROUPS     "/sys/fs/cgroup"
#define CGROUP_JOB  "/job_" /* and a number: a directory that Slurm makes */
#define OPEN_FLAGS  (O_RDONLY | O_CLOEXEC)
#define PARENTS_MAX 16
#define STEP_TITLE  "slurmstepd: ["
/* Of /proc/PID/status, in which the name of a program has no end of a line. */
#define ALL_UIDS_ROOT "\nUid:\t0\t0\t0\t0\n"
#define REAL_UID_ROOT "\nUid:\t0\t"

/* What is looked for in the environment of a process, entry by entry. */
struct search {
    const char *run_dir;       /* NULL: any */
    bool found;                /* it has that ELASTIC_RUN_DIR */
    char world[32], job[32];   /* ELASTIC_JOB_ID, SLURM_JOB_ID; "": not there */
    char entry[PATH_MAX + 32]; /* that is being read; its end may be missing */
    size_t len;
};

static void keep(char kept[32], const char *value)
{
    if (value != NULL && strlen(value) < 32)
        strcpy(kept, value);
}

static void look_at_entry(struct search *search)
{
    const char *run_dir = assignment_value(search->entry, "ELASTIC_RUN_DIR");

    search->found = search->found || (run_dir != NULL && search->run_dir != NULL &&
                                      strcmp(run_dir, search->run_dir) == 0);
    keep(search->world, assignment_value(search->entry, "ELASTIC_JOB_ID"));
    keep(search->job, assignment_value(search->entry, "SLURM_JOB_ID"));
}

static void look_at_piece(struct search *search, const char *piece, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (search->len < sizeof(search->entry) - 1)
            search->entry[search->len++] = piece[i];
        if (piece[i] == '\0') {
            search->entry[search->len] = '\0';
            look_at_entry(search);
            search->len = 0;
        }
    }
}

/* A new string, or NULL. */
static char *text_of(int process, const char *name)
{
    int fd = openat(process, name, OPEN_FLAGS);
    size_t len;
    char *text = fd >= 0 ? entry_text(fd, TEXT_MAX, &len, NULL) : NULL;

    if (fd >= 0)
        close(fd);
    return text;
}

/* A user's process may have its environment in memory that comes from a file system of the user's,
 * which never answers. Root reads that of root's processes only. */
static bool may_read(int process)
{
    char *status = geteuid() == 0 ? text_of(process, "status") : NULL;
    bool may = geteuid() != 0 || (status != NULL && strstr(status, ALL_UIDS_ROOT) != NULL);

    free(status);
    return may;
}

/* Of a process that may be read. 0, or -1: it cannot be. */
static int look_at_environment(int process, struct search *search)
{
    char piece[4096];
    ssize_t got = 0;
    int fd;

    fd = openat(process, "environ", OPEN_FLAGS);
    if (fd < 0)
        return -1;
    while (!stop_asked() && (got = read(fd, piece, sizeof(piece))) > 0)
        look_at_piece(search, piece, (size_t)got);
    close(fd);
    return got < 0 || stop_asked() ? -1 : 0;
}

/* A job that a worker has submitted may have inherited the names of that worker: the number of its
 * job is another. */
bool process_is_of_run(int process, const char *run_dir)
{
    struct search search = {.run_dir = run_dir};

    return may_read(process) && look_at_environment(process, &search) == 0 && search.found &&
           search.job[0] != '\0' && strcmp(search.job, search.world) == 0;
}

/* Is that directory not root's? A user makes what he likes below a cgroup that is his. Where it is
 * not found its name counts: cgroups may be mounted elsewhere. */
static bool is_users(const char *controllers, const char *path, int len)
{
    const bool v2 = controllers[0] == '\0';
    const char *const below[] = {v2 ? "" : controllers, v2 ? "unified" : NULL};
    const int flags = AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC; /* a user may have mounted something */
    struct statx st;

    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]) && below[i] != NULL; i++) {
        char name[PATH_MAX];

        if (snprintf(name, sizeof(name), CGROUPS "/%s%.*s", below[i], len, path) >=
            (int)sizeof(name))
            return true;
        if (statx(AT_FDCWD, name, flags, STATX_UID, &st) == 0)
            return st.stx_uid != 0;
        if (errno != ENOENT && errno != ENOTDIR)
            return true;
    }
    return false;
}

/* The number in a "/job_NUMBER" of a path that is a directory of root's: the job, and not what the
 * job has made below. A Slurm may run in a job of another one, so it is `wanted` if one of them is.
 * 0: there is none. */
static unsigned long job_in_path(const char *controllers, const char *path, uint32_t wanted)
{
    unsigned long first = 0;

    for (const char *at = path; (at = strstr(at, CGROUP_JOB)) != NULL;) {
        char *end = NULL;
        unsigned long job;

        at += strlen(CGROUP_JOB);
        job = *at >= '1' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (job > 0 && (*end == '/' || *end == '\0') &&
            !is_users(controllers, path, (int)(end - path))) {
            if (job == wanted)
                return job;
            first = first > 0 ? first : job;
        }
    }
    return first;
}

/* The lines are NUMBER:CONTROLLERS:PATH. Changes the text. */
static unsigned long job_in(char *cgroups, uint32_t wanted)
{
    unsigned long job = 0;
    char *line;

    while (job == 0 && (line = strsep(&cgroups, "\n")) != NULL) {
        const char *controllers;

        strsep(&line, ":");
        controllers = strsep(&line, ":");
        if (line == NULL)
            continue;
        if (strncmp(controllers, "name=", 5) == 0)
            controllers += 5;
        job = job_in_path(controllers, line, wanted);
    }
    return job;
}

static enum process_job by_environment(int process, uint32_t job)
{
    struct search search = {.run_dir = NULL};
    char number[32];

    if (look_at_environment(process, &search) != 0)
        return errno == ENOENT || errno == ESRCH ? PROCESS_OF_OTHER : PROCESS_UNKNOWN;
    snprintf(number, sizeof(number), "%" PRIu32, job);
    return strcmp(search.job, number) == 0 ? PROCESS_OF_JOB : PROCESS_OF_OTHER;
}

void process_each(void (*found)(void *arg, pid_t pid, int process), void *arg)
{
    int proc = open("/proc", OPEN_FLAGS | O_DIRECTORY);
    DIR *list = proc >= 0 ? entry_list(proc) : NULL;
    const char *name;

    while (list != NULL && !stop_asked() && (name = entry_next(list)) != NULL) {
        int pid, process;

        if (number_parse(name, strlen(name), 1, INT_MAX, &pid) != 0)
            continue;
        process = openat(proc, name, O_DIRECTORY | OPEN_FLAGS);
        if (process < 0)
            continue; /* it has ended */
        found(arg, pid, process);
        close(process);
    }
    if (list != NULL)
        closedir(list);
    if (proc >= 0)
        close(proc);
}

/* ---- by root --------------------------------------------------------------------------------- */

/* Root, as a program that was started by a user is not, whatever rights it has. */
static bool is_of_root(const char *status)
{
    return strstr(status, REAL_UID_ROOT) != NULL;
}

static bool has_name(const char *status, const char *name)
{
    const size_t len = strlen(name);

    return strncmp(status, "Name:\t", 6) == 0 && strncmp(status + 6, name, len) == 0 &&
           status[6 + len] == '\n';
}

static int open_process(pid_t pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return open(path, O_DIRECTORY | OPEN_FLAGS);
}

/* A new string, or NULL. */
static char *status_of(pid_t pid)
{
    int process = open_process(pid);
    char *status = process >= 0 ? text_of(process, "status") : NULL;

    if (process >= 0)
        close(process);
    return status;
}

/* Has a guard that still lives started it? Not this process: what that has left behind hangs. */
static bool is_of_guard(int process)
{
    char *status = text_of(process, "status");
    bool is = false;

    for (int i = 0; i < PARENTS_MAX && status != NULL && !is; i++) {
        const char *parent = strstr(status, "\nPPid:\t");
        pid_t pid = parent != NULL ? (pid_t)strtol(parent + strlen("\nPPid:\t"), NULL, 10) : 0;

        free(status);
        status = pid > 1 && pid != getpid() ? status_of(pid) : NULL;
        is = status != NULL && is_of_root(status) && has_name(status, PROCESS_GUARD);
    }
    free(status);
    return is;
}

/* By the title that Slurm gives it: "slurmstepd: [71.0]", "slurmstepd: [71.batch]". 0: it is no
 * step. */
static uint32_t job_of_step(int process)
{
    char *status = text_of(process, "status"), *title = NULL, *end = NULL;
    unsigned long job = 0;

    if (status != NULL && is_of_root(status) && has_name(status, "slurmstepd"))
        title = text_of(process, "cmdline");
    if (title != NULL && strncmp(title, STEP_TITLE, strlen(STEP_TITLE)) == 0)
        job = strtoul(title + strlen(STEP_TITLE), &end, 10);
    if (end == NULL || *end != '.')
        job = 0;
    free(title);
    free(status);
    return job <= UINT32_MAX ? (uint32_t)job : 0;
}

static void add_job(void *arg, pid_t pid, int process)
{
    struct process_jobs *jobs = arg;
    uint32_t job = job_of_step(process);

    (void)pid;
    if (job > 0 && !process_has_job(jobs, job) && jobs->count < PROCESS_JOBS_MAX)
        jobs->jobs[jobs->count++] = job;
}

void process_jobs(struct process_jobs *jobs)
{
    jobs->count = 0;
    process_each(add_job, jobs);
}

bool process_has_job(const struct process_jobs *jobs, uint32_t job)
{
    for (int i = 0; i < jobs->count; i++)
        if (jobs->jobs[i] == job)
            return true;
    return false;
}

/* What a process of a user says of itself counts for nothing. */
static enum process_job by_node(uint32_t job)
{
    struct process_jobs jobs;

    process_jobs(&jobs);
    return process_has_job(&jobs, job) ? PROCESS_OF_JOB : PROCESS_OF_OTHER;
}

static enum process_job of_process(int process, uint32_t job)
{
    char *text = text_of(process, "cgroup");
    unsigned long number = text != NULL ? job_in(text, job) : 0;
    bool may = may_read(process);

    free(text);
    /* Of a prolog that Slurm runs in the job (RunInJob) it has the job's cgroup. */
    if (!may && is_of_guard(process))
        return PROCESS_FLUSHES;
    if (number > 0)
        return number == job ? PROCESS_OF_JOB : PROCESS_OF_OTHER;
    return may ? by_environment(process, job) : by_node(job);
}

enum process_job process_job(pid_t pid, uint32_t job)
{
    int process = open_process(pid);
    enum process_job result;

    if (process < 0)
        return errno == ENOENT ? PROCESS_OF_OTHER : PROCESS_UNKNOWN;
    result = of_process(process, job);
    close(process);
    return result;
}
