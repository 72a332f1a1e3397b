/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock of a run directory (lock.h). */
#include "flush/lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "flush/process.h"

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

enum lock lock_look(int dir, const struct snapshot_run *run)
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
    } else if (statx(dir, LOCK_NAME, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                     STATX_INO, &named) != 0) {
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
