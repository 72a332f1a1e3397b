/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of a job that have outlived it (workers.h). */
#include "flush/workers.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/stop.h"
#include "flush/process.h"

#define PASSES 3 /* a process that forks may have a child that was not there when we looked */

struct search {
    const char *run_dir;
    bool killed;
};

static void kill_one(void *arg, pid_t pid, int process)
{
    struct search *search = arg;
    struct stat st;

    /* Processes of other users cannot be read. */
    if (pid != getpid() && fstat(process, &st) == 0 && st.st_uid == geteuid() &&
        process_is_of_run(process, search->run_dir) && kill(pid, SIGKILL) == 0)
        search->killed = true;
}

void workers_kill(const char *run_dir)
{
    struct search search = {.run_dir = run_dir, .killed = true};

    for (int i = 0; i < PASSES && search.killed && !stop_asked(); i++) {
        search.killed = false;
        process_each(kill_one, &search);
    }
}
