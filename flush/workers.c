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
#include "flush/process.h"
#include "lib/number.h"

#define PASSES 3 /* a process that forks may have a child that was not there when we looked */

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
    found = fstat(process, &st) == 0 && st.st_uid == geteuid() &&
            process_is_of_run(process, run_dir);
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
