/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directory of a member on its node (run_dir.h). */
#include "agent/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/paths.h"
#include "agent/reserve_file.h"
#include "common/entry.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/snapshot.h"

#define PATH_SIZE 512
#define LOCK_SIZE (PATH_SIZE + sizeof(LOCK_NAME) + 1)
#define ROOTS     2

/* A root of the user's own, in RUN_DIR_FALLBACK; mkdtemp() makes the rest of its name. */
#define OWN_ROOT  "elastic-%u."
#define OWN_TRIES 3

/* The agent holds a lock on this file for as long as it lives. A process that can take the lock
 * knows that the agent has died. */
#define LOCK_NAME "agent.lock"

#define BACKGROUND_LIMIT 3600 /* seconds for a flush that nobody waits for */

/* A process that checks whether the agent of a directory has died holds the lock for a moment. */
#define LOCK_TRIES 40
#define LOCK_PAUSE 50000 /* microseconds */

static const char *root_of(const struct conf *conf, int index)
{
    return index == 0 ? conf->snapshot_dir : RUN_DIR_FALLBACK;
}

/* -1: the path does not fit. */
static int path_of(char *path, const char *root, uint32_t job, uint32_t restarts, const char *node)
{
    int len = snprintf(path, PATH_SIZE, "%s/elastic-%u-%u.%u-%s", root, (unsigned)getuid(), job,
                       restarts, node);

    return len < 0 || len >= PATH_SIZE ? -1 : 0;
}

/* What another user has mounted there may say that it is anybody's. And where others may write one
 * of them may have moved there what this user has let them write into. */
static bool is_own_directory(const char *path)
{
    char above[PATH_SIZE + 32];
    struct statx st, parent;

    snprintf(above, sizeof(above), "%.*s.", (int)(strrchr(path, '/') + 1 - path), path);
    return entry_look(AT_FDCWD, path, &st) == 0 && entry_look(AT_FDCWD, above, &parent) == 0 &&
           S_ISDIR(st.stx_mode) && st.stx_uid == getuid() &&
           st.stx_dev_major == parent.stx_dev_major && st.stx_dev_minor == parent.stx_dev_minor &&
           ((parent.stx_mode & 022) == 0 || (st.stx_mode & 077) == 0);
}

/* By anything but a directory of this user's: another user may have linked a file of this one's
 * there. It may not even be possible to look at it. */
static bool is_taken(const char *path)
{
    struct statx st;

    return (entry_look(AT_FDCWD, path, &st) == 0 || errno != ENOENT) && !is_own_directory(path);
}

int run_dir_find(char *path, size_t size, const struct conf *conf, uint32_t job, uint32_t restarts,
                 const char *node)
{
    char found[PATH_SIZE];

    for (int i = 0; i < ROOTS; i++)
        if (path_of(found, root_of(conf, i), job, restarts, node) == 0 && is_own_directory(found) &&
            (size_t)snprintf(path, size, "%s", found) < size)
            return 0;
    return -1;
}

/* ---- what others have left ------------------------------------------------------------------- */

/* Flush and remove a directory whose agent has died. With seconds > 0, wait for that. Its output is
 * the output of the job. 0: done, or not needed. */
static int flush(const char *path, const struct conf *conf, int seconds)
{
    int status = -1;
    char keep[32], age[32];
    const char *argv[] = {paths_of(PATHS_FLUSH), "--sweep", keep, age, path, "--background", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int rc;

    if (seconds > 0)
        argv[5] = NULL;
    snprintf(keep, sizeof(keep), "--keep-time=%d", seconds > 0 ? seconds : BACKGROUND_LIMIT);
    snprintf(age, sizeof(age), "--max-age=%d", conf->snapshot_keep);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    rc = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        log_error("cannot start %s: %s", argv[0], strerror(rc));
    else
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    return status == 0 ? 0 : -1;
}

/* Has an agent used the directory, and died? A directory that no agent has used may be one of an
 * agent that is about to start. */
static bool is_left(const char *dir)
{
    char path[LOCK_SIZE];
    int fd;
    bool left;

    snprintf(path, sizeof(path), "%s/%s", dir, LOCK_NAME);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    left = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return left;
}

/* The next name; NULL: there is none, or the start of a job has waited for enough of them. */
static struct dirent *next_name(DIR *dir, const char *root, int *seen)
{
    struct dirent *entry = dir != NULL ? readdir(dir) : NULL;

    if (entry == NULL || ++*seen <= RUN_DIR_NAMES_MAX)
        return entry;
    log_debug("%s has more than %d names: what killed agents have left is looked for no further",
              root, RUN_DIR_NAMES_MAX);
    return NULL;
}

/* Flush what killed agents of this user have left on this node. */
static void sweep_root(const char *root, const struct conf *conf, uint32_t job, const char *node)
{
    DIR *dir = opendir(root); /* only root may where the prolog has made it */
    struct dirent *entry;
    int seen = 0;

    while ((entry = next_name(dir, root, &seen)) != NULL) {
        struct snapshot_run run;
        char path[PATH_SIZE];

        if (snapshot_run_parse(entry->d_name, &run, NULL) != 0 || run.uid != getuid() ||
            strcmp(run.node, node) != 0 ||
            snprintf(path, sizeof(path), "%s/%s", root, entry->d_name) >= (int)sizeof(path) ||
            !is_own_directory(path) || !is_left(path))
            continue;
        flush(path, conf, run.job != job ? 0 : conf->epilog_flush > 0 ? conf->epilog_flush : 1);
    }
    if (dir != NULL)
        closedir(dir);
}

static void sweep(const char *root, const struct conf *conf, uint32_t job, const char *node)
{
    char prefix[PATH_SIZE], path[PATH_SIZE];
    DIR *dir = opendir(root);
    struct dirent *entry;
    int seen = 0;

    sweep_root(root, conf, job, node);
    snprintf(prefix, sizeof(prefix), OWN_ROOT, (unsigned)getuid());
    while ((entry = next_name(dir, root, &seen)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
            snprintf(path, sizeof(path), "%s/%s", root, entry->d_name) >= (int)sizeof(path) ||
            !is_own_directory(path))
            continue;
        sweep_root(path, conf, job, node);
        rmdir(path);
    }
    if (dir != NULL)
        closedir(dir);
}

/* ---- one's own ------------------------------------------------------------------------------- */

static void lock_path(char path[LOCK_SIZE], const char *dir)
{
    snprintf(path, LOCK_SIZE, "%s/%s", dir, LOCK_NAME);
}

static int make(const char *root, const char *path, const struct conf *conf, struct error *err)
{
    char name[LOCK_SIZE];
    struct stat st;

    if (stat(root, &st) != 0 && errno == ENOENT)
        return error_set(err, "there is no %s", root);
    if (is_taken(path))
        return error_set(err, "%s is no directory of this user's", error_path(path).text);
    if (is_own_directory(path) && is_left(path)) {
        /* The directory is of this run of the job, from an elasticrun in an earlier step. If it was
         * flushed it is gone, with its lock. */
        lock_path(name, path);
        if (flush(path, conf, conf->epilog_flush > 0 ? conf->epilog_flush : 1) != 0 ||
            lstat(name, &st) == 0)
            return error_set(err, "%s holds a snapshot that could not be saved",
                             error_path(path).text);
    }
    if (dir_make(path, err) != 0)
        return -1;
    if (is_taken(path)) /* just now */
        return error_set(err, "%s is no directory of this user's", error_path(path).text);
    if (reserve_file_make(path, err) == 0)
        return 0;
    rmdir(path); /* a directory that root has made stays, empty */
    return -1;
}

/* Make a file that is locked before it has its name, so that no process takes it for the lock of a
 * dead agent. */
static int make_lock(const char *name)
{
    char temporary[LOCK_SIZE + 16];
    int fd;

    snprintf(temporary, sizeof(temporary), "%s-%d", name, (int)getpid());
    unlink(temporary);
    fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || link(temporary, name) != 0) {
        int reason = errno;

        close(fd);
        fd = -1;
        errno = reason;
    }
    unlink(temporary);
    return fd;
}

/* Take the lock of an earlier agent. A process that has cleared the directory meanwhile has removed
 * the lock's name. */
static int take_lock(const char *name)
{
    struct stat st, named;
    int fd = open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && lstat(name, &named) == 0 &&
        st.st_ino == named.st_ino && st.st_dev == named.st_dev)
        return fd;
    close(fd);
    return -1;
}

static int lock(const char *path, struct error *err)
{
    char name[LOCK_SIZE];
    int fd = -1;

    lock_path(name, path);
    for (int i = 0; fd < 0 && i < LOCK_TRIES; i++) {
        if (i > 0)
            usleep(LOCK_PAUSE);
        fd = make_lock(name);
        if (fd < 0 && errno != EEXIST)
            return error_set(err, "%s: %s", error_path(name).text, strerror(errno));
        if (fd < 0)
            fd = take_lock(name);
    }
    /* The descriptor stays open: the lock is held until this process ends. */
    if (fd >= 0)
        return 0;
    return error_set(err, "%s: another elasticrun of this job runs on this node", path);
}

/* Another user has taken the name before us: he keeps no job from its directory. The epilog does
 * not look there; the next elasticrun of this user does. */
static char *make_in_own_root(const struct conf *conf, uint32_t job, uint32_t restarts,
                              const char *node, struct error *err)
{
    char root[PATH_SIZE], path[PATH_SIZE];

    /* While it is empty, another elasticrun may take it for one that is left, and remove it. */
    for (int i = 0; i < OWN_TRIES; i++) {
        snprintf(root, sizeof(root), RUN_DIR_FALLBACK "/" OWN_ROOT "XXXXXX", (unsigned)getuid());
        if (mkdtemp(root) == NULL) {
            error_set(err, "%s: %s", root, strerror(errno));
            return NULL;
        }
        if (path_of(path, root, job, restarts, node) == 0 && make(root, path, conf, err) == 0)
            return lock(path, err) == 0 ? strdup(path) : NULL;
        rmdir(root);
    }
    return NULL;
}

char *run_dir_make(const struct conf *conf, uint32_t job, uint32_t restarts, const char *node,
                   struct error *err)
{
    char path[PATH_SIZE];

    for (int i = 0; i < ROOTS; i++) {
        const char *root = root_of(conf, i);

        if (path_of(path, root, job, restarts, node) != 0) {
            error_set(err, "snapshot_dir '%s' is too long", error_path(root).text);
            return NULL;
        }
        sweep(root, conf, job, node);
        if (make(root, path, conf, err) == 0)
            return lock(path, err) == 0 ? strdup(path) : NULL;
        log_debug("%s: %s", node, err->text);
    }
    return is_taken(path) ? make_in_own_root(conf, job, restarts, node, err) : NULL;
}

/* Only if it is empty. */
static void remove_own_root(const char *path)
{
    char prefix[PATH_SIZE], root[PATH_SIZE];

    snprintf(prefix, sizeof(prefix), RUN_DIR_FALLBACK "/" OWN_ROOT, (unsigned)getuid());
    snprintf(root, sizeof(root), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (strncmp(root, prefix, strlen(prefix)) == 0)
        rmdir(root);
}

void run_dir_leave(const char *path, bool needless)
{
    char snapshot[PATH_SIZE + 16];

    if (path == NULL)
        return;
    snprintf(snapshot, sizeof(snapshot), "%s/snapshot", path);
    /* A directory that root has made stays, empty. */
    if (needless || !is_own_directory(snapshot)) {
        dir_remove(path, NULL);
        remove_own_root(path);
    }
}

/* A socket's address has at most 107 bytes, and the path of a directory may be longer: so the
 * socket is reached through a descriptor of the directory. */
static int bind_in(int fd, const char *dir, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), rc;

    if (dir_fd < 0)
        return -1;
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
    unlink(address.sun_path);
    /* The socket's file gets the mode that its descriptor has now. */
    rc = fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0;
    close(dir_fd);
    return rc != 0 ? -1 : 0;
}

int run_dir_socket(const char *path, const char *name, struct error *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && bind_in(fd, path, name) == 0)
        return fd;
    error_set(err, "%s/%s: %s", error_path(path).text, name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}
