/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock of a run directory (lock.h). */
#include "flush/lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "flush/clear.h"
#include "flush/process.h"

#define AGENT_MS   2000 /* for a killed agent to disappear */
#define UNUSED_MAX 600  /* seconds in which an agent begins that has put something there */

enum lock {
    LOCK_LIVES,    /* a process of the job holds it */
    LOCK_UNKNOWN,  /* it is not known who does */
    LOCK_FLUSHED,  /* another flush does, and ends; whoever has begun that judges then */
    LOCK_STRANGER, /* somebody does who is not of the job: no agent. Any process of the user can */
    LOCK_ENDED,    /* nobody does, so it is ours now until this process ends */
    LOCK_NONE,     /* there is no lock, or something else in its place */
};

/* The kernel names the process that has taken the lock, also where another has inherited it, or has
 * got it through a socket. */
static enum lock holder(const struct stat *st, uint32_t job)
{
    FILE *locks = fopen("/proc/locks", "re");
    enum lock lock = LOCK_UNKNOWN;
    char *line = NULL;
    size_t size = 0;

    while (locks != NULL && lock != LOCK_LIVES && !stop_asked() &&
           getline(&line, &size, locks) > 0) {
        unsigned int major, minor;
        unsigned long long inode;
        int pid;

        /* 7: FLOCK  ADVISORY  WRITE 4711 00:1a:2302610 0 EOF */
        if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major, &minor, &inode) != 4 ||
            pid <= 0 || inode != st->st_ino || makedev(major, minor) != st->st_dev)
            continue;
        switch (process_job(pid, job)) {
        case PROCESS_OF_JOB:
            lock = LOCK_LIVES;
            break;
        case PROCESS_OF_OTHER:
            lock = LOCK_STRANGER;
            break;
        case PROCESS_FLUSHES:
            lock = LOCK_FLUSHED;
            break;
        case PROCESS_UNKNOWN:
        default:
            break;
        }
    }
    free(line);
    if (locks != NULL)
        fclose(locks);
    return lock;
}

/* Who holds the lock in this run directory? */
static enum lock look(int dir, const struct snapshot_run *run)
{
    struct statx named;
    struct stat st;
    int fd = entry_open_same(dir, LOCK_NAME, S_IFREG, &st, NULL);
    enum lock lock;

    if (fd < 0)
        return LOCK_NONE;
    if (st.st_uid != run->uid) {
        lock = LOCK_NONE;
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        lock = holder(&st, run->job);
    } else if (entry_look(dir, LOCK_NAME, &named) != 0) {
        /* The directory's agent may have removed the lock meanwhile, as its last act, and the next
         * agent may have made another. */
        lock = LOCK_NONE;
    } else if (named.stx_ino == st.st_ino &&
               makedev(named.stx_dev_major, named.stx_dev_minor) == st.st_dev) {
        return LOCK_ENDED;
    } else {
        lock = LOCK_UNKNOWN;
    }
    close(fd);
    return lock;
}

/* A killed agent may not be gone yet, and another process may just be checking whether it is. */
static enum lock look_for_agent(int dir, const struct snapshot_run *run, int wait_ms)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    enum lock lock = look(dir, run);

    for (int ms = 0; lock <= LOCK_UNKNOWN && ms < wait_ms && !stop_asked(); ms += 20) {
        nanosleep(&pause, NULL);
        lock = look(dir, run);
    }
    return lock;
}

/* A directory without a lock may belong to a job that is about to begin: its agent makes the lock
 * before anything else of size. A user cannot keep memory by what he puts in the place of the lock,
 * nor by a process of another job that holds it. */
bool lock_is_used(int dir, const struct snapshot_run *run, const struct lock_terms *terms)
{
    enum lock lock = look_for_agent(dir, run, terms->sweep ? 0 : AGENT_MS);

    /* A job may have another agent later. */
    if (terms->jobs != NULL && terms->sweep && process_has_job(terms->jobs, run->job))
        return true;
    if (lock == LOCK_UNKNOWN)
        return !terms->ended;
    if (lock != LOCK_NONE || !terms->sweep)
        return lock == LOCK_LIVES || lock == LOCK_FLUSHED;
    return (terms->max_age <= 0 || !clear_is_old(dir, terms->max_age)) &&
           (clear_is_empty(dir) || (terms->jobs == NULL && !clear_is_old(dir, UNUSED_MAX)));
}
