/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To which job a process belongs (process.h). */
#include "flush/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "lib/text.h"

#define CGROUPS_MAX 65536   /* bytes of /proc/PID/cgroup */
#define CGROUP_JOB  "/job_" /* and a number: a directory that Slurm makes */
#define OPEN_FLAGS  (O_RDONLY | O_CLOEXEC)

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

/* 0, or -1: it cannot be read. */
static int look_at_environment(int process, struct search *search)
{
    char piece[4096];
    ssize_t got = 0;
    int fd = openat(process, "environ", OPEN_FLAGS);

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

    return look_at_environment(process, &search) == 0 && search.found && search.job[0] != '\0' &&
           strcmp(search.job, search.world) == 0;
}

/* The number in the first "/job_NUMBER" that is the name of a directory: the job, and not what the
 * job has made below. 0: there is none. */
static unsigned long job_in(const char *cgroups)
{
    for (const char *at = cgroups; (at = strstr(at, CGROUP_JOB)) != NULL;) {
        char *end = NULL;
        unsigned long job;

        at += strlen(CGROUP_JOB);
        job = *at >= '1' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (job > 0 && (*end == '/' || *end == '\n' || *end == '\0'))
            return job;
    }
    return 0;
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

static enum process_job of_process(int process, uint32_t job)
{
    int fd = openat(process, "cgroup", OPEN_FLAGS);
    size_t len;
    char *text = fd >= 0 ? entry_text(fd, CGROUPS_MAX, &len, NULL) : NULL;
    unsigned long number = text != NULL ? job_in(text) : 0;

    free(text);
    if (fd >= 0)
        close(fd);
    if (number > 0)
        return number == job ? PROCESS_OF_JOB : PROCESS_OF_OTHER;
    return by_environment(process, job);
}

enum process_job process_job(pid_t pid, uint32_t job)
{
    enum process_job result;
    char path[32];
    int process;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    process = open(path, O_DIRECTORY | OPEN_FLAGS);
    if (process < 0)
        return errno == ENOENT ? PROCESS_OF_OTHER : PROCESS_UNKNOWN;
    result = of_process(process, job);
    close(process);
    return result;
}
