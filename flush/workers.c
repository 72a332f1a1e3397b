/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of a job that have outlived it (workers.h). */
#include "flush/workers.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "lib/number.h"

#define NAME   "ELASTIC_RUN_DIR="
#define PASSES 3 /* a process that forks may have a child that was not there when we looked */

/* Does text, which comes piece by piece, contain the wanted string on its own, up to a NUL? */
struct search {
    const char *wanted;
    size_t matched;
    bool skips; /* up to the next NUL */
};

static bool find(struct search *search, const char *piece, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!search->skips && piece[i] == search->wanted[search->matched]) {
            if (piece[i] == '\0')
                return true;
            search->matched++;
        } else {
            search->skips = piece[i] != '\0';
            search->matched = 0;
        }
    }
    return false;
}

static bool has_environment(int process, const char *wanted)
{
    struct search search = {.wanted = wanted};
    char piece[4096];
    ssize_t got;
    bool found = false;
    int fd = openat(process, "environ", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (!found && !stop_asked() && (got = read(fd, piece, sizeof(piece))) > 0)
        found = find(&search, piece, (size_t)got);
    close(fd);
    return found;
}

static bool kill_one(int proc, const char *name, const char *wanted)
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
    found = fstat(process, &st) == 0 && st.st_uid == geteuid() && has_environment(process, wanted);
    close(process);
    return found && kill(pid, SIGKILL) == 0;
}

void workers_kill(const char *run_dir)
{
    char wanted[PATH_MAX + sizeof(NAME)];
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = proc >= 0;

    snprintf(wanted, sizeof(wanted), NAME "%s", run_dir);
    for (int i = 0; i < PASSES && found && !stop_asked(); i++) {
        DIR *list = entry_list(proc);
        const char *name;

        found = false;
        while (list != NULL && !stop_asked() && (name = entry_next(list)) != NULL)
            found = kill_one(proc, name, wanted) || found;
        if (list != NULL)
            closedir(list);
    }
    if (proc >= 0)
        close(proc);
}
