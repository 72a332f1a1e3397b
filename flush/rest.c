/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rights of its user could not remove (rest.h). */
#include "flush/rest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"
#include "flush/clear.h"
#include "flush/lock.h"
#include "flush/slot.h"

#define LIMIT 60 /* seconds; the next sweep goes on with what is left then */

static int remove_below(int dir, const struct snapshot_run *run, const struct lock_terms *terms,
                        struct error *err)
{
    if (lock_is_used(dir, run, terms))
        return error_set(err, "it is in use");
    if (terms->unread && !clear_is_old(dir, terms->max_age))
        return error_set(err, "its flush was killed: left for later");
    return clear_as_root(dir, err);
}

static int remove_one(const struct place *place, const struct place_run *run,
                      const struct lock_terms *terms, struct error *err)
{
    struct stat st;
    int rc, dir;

    if (geteuid() != 0 || !place->alone)
        return error_set(err, "only root can, where the place is the top of a tmpfs");
    place_uncover(place, run->name);
    dir = entry_open_same(place->fd, run->name, S_IFDIR, &st, err);
    if (dir < 0)
        return errno == ENOENT ? 0 : -1;
    rc = remove_below(dir, &run->run, terms, err);
    close(dir);
    place_remove(place, run->name);
    return rc;
}

static void say(bool prints, int priority, const char *path, const char *name, const char *what)
{
    if (prints)
        printf("%s/%s: %s\n", error_path(path).text, name, what);
    else
        syslog(LOG_USER | priority, "%s/%s: %s", error_path(path).text, name, what);
}

static void remove_all(const struct place places[PLACES_MAX], const struct place_run *runs,
                       int count, const struct lock_terms *terms, bool prints)
{
    struct error err;

    stop_watch(LIMIT);
    for (int i = 0; i < count && !stop_asked(); i++) {
        const char *path = places[runs[i].place].path;

        if (remove_one(&places[runs[i].place], &runs[i], &terms[i], &err) == 0) {
            say(prints, LOG_NOTICE, path, runs[i].name, "removed by root");
        } else {
            error_prefix(&err, "not removed by root");
            say(prints, LOG_WARNING, path, runs[i].name, err.text);
        }
    }
    fflush(stdout);
}

static bool is_kept(int fd, int slot, const struct place places[PLACES_MAX])
{
    for (int i = 0; i < PLACES_MAX; i++)
        if (fd == places[i].fd)
            return true;
    return fd <= STDERR_FILENO || fd == slot;
}

/* A sweep has the lock of its turn open: others wait for that, and not for this process. */
static void close_others(int slot, const struct place places[PLACES_MAX])
{
    int highest = slot;

    for (int i = 0; i < PLACES_MAX; i++)
        if (places[i].fd > highest)
            highest = places[i].fd;
    for (int fd = 0; fd <= highest; fd++)
        if (!is_kept(fd, slot, places))
            close(fd);
    close_range((unsigned int)highest + 1, ~0U, 0);
}

/* slurmd kills the process group of its script when that ends. Whatever this process meets, it ends
 * when it has computed for so long. */
static _Noreturn void work(const struct place places[PLACES_MAX], const struct place_run *runs,
                           int count, const struct lock_terms *terms, int output, int slot)
{
    const struct rlimit limit = {.rlim_cur = LIMIT, .rlim_max = LIMIT + 5};
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    setrlimit(RLIMIT_CPU, &limit);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, "elastic-rest");
    dup2(none, STDIN_FILENO);
    dup2(output >= 0 ? output : none, STDOUT_FILENO);
    dup2(none, STDERR_FILENO);
    close_others(slot, places);
    openlog("slurm-elastic", 0, LOG_USER);
    remove_all(places, runs, count, terms, output >= 0);
    _exit(0);
}

int rest_remove(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
                const struct lock_terms *terms, int *output, struct error *err)
{
    int ends[2] = {-1, -1}, slot;
    pid_t pid;

    slot = slot_take_user(place_first(places), &runs->run, SLOT_USER_REST, err);
    if (slot < 0)
        return errno == EAGAIN ? error_set(err, "what the user has left is being removed already")
                               : -1;
    if (output != NULL && pipe2(ends, O_CLOEXEC) != 0) {
        close(slot);
        return error_set(err, "pipe: %s", strerror(errno));
    }
    fflush(stdout); /* else both processes have what is in it */
    pid = fork();
    if (pid == 0)
        work(places, runs, count, terms, ends[1], slot);
    if (pid < 0)
        error_set(err, "fork: %s", strerror(errno));
    close(slot);
    if (ends[1] >= 0)
        close(ends[1]);
    if (output != NULL && pid > 0)
        *output = ends[0];
    else if (ends[0] >= 0)
        close(ends[0]);
    return pid > 0 ? 0 : -1;
}
