/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of a job that have outlived it (workers.h). */
#include "flush/workers.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "lib/number.h"
#include "lib/text.h"

#define PASSES 3 /* a process that forks may have a child that was not there when we looked */

/* What is looked for in the environment of a process, entry by entry. */
struct search {
    const char *run_dir;
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

    search->found = search->found || (run_dir != NULL && strcmp(run_dir, search->run_dir) == 0);
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

/* A worker, or a process that one has started in its job. A job that a worker has submitted may
 * have inherited the names of that worker: the number of its job is another. */
static bool belongs_to_run(int process, const char *run_dir)
{
    struct search search = {.run_dir = run_dir};
    char piece[4096];
    ssize_t got;
    int fd = openat(process, "environ", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (!stop_asked() && (got = read(fd, piece, sizeof(piece))) > 0)
        look_at_piece(&search, piece, (size_t)got);
    close(fd);
    return !stop_asked() && search.found && search.job[0] != '\0' &&
           strcmp(search.job, search.world) == 0;
}

static bool kill_one(int proc, const char *name, const char *run_dir)
{
    struct stat st;
    int process, pid;
    bool found;

    if (number_parse(name, strlen(name), 1, INT_MAX, &pid) != 0 || pid == getpid())
        return false;
    process = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process < 0)
        return false;
    /* Processes of other users cannot be read. */
    found = fstat(process, &st) == 0 && st.st_uid == geteuid() && belongs_to_run(process, run_dir);
    close(process);
    return found && kill(pid, SIGKILL) == 0;
}

void workers_kill(const char *run_dir)
{
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = proc >= 0;

    for (int i = 0; i < PASSES && found && !stop_asked(); i++) {
        DIR *list = entry_list(proc);
        const char *name;

        found = false;
        while (list != NULL && !stop_asked() && (name = entry_next(list)) != NULL)
            found = kill_one(proc, name, run_dir) || found;
        if (list != NULL)
            closedir(list);
    }
    if (proc >= 0)
        close(proc);
}
