/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of a router on its machine (home.h). */
#include "router/home.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/entry.h"
#include "common/files.h"
#include "common/mounted.h"
#include "lib/haproxy_text.h"

/* haproxy makes a socket as PATH.PID.tmp first, in 108 bytes. */
#define DIR_MAX 72
/* Where another user has made the usual name in /tmp before us: one that nobody guesses. */
#define USUAL_NAME "/tmp/elastic-router-%u-%s"
#define OTHER_NAME "/tmp/elastic-router-%u.%08" PRIx32 "-%s"
#define OTHERS     "/tmp/elastic-router-%u.%s-%s" /* as a pattern */
#define LETTERS    "????????"

static void join(char path[HOME_PATH], const char *dir, const char *name)
{
    snprintf(path, HOME_PATH, "%.*s/%s", DIR_MAX, dir, name);
}

/* Where everybody may make files, somebody else may have made that directory, and what is in it. */
static bool is_own(const char *dir)
{
    struct stat st;
    int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is = fd >= 0 && !mounted_by_stranger(fd) && fstat(fd, &st) == 0 && st.st_uid == geteuid();

    if (fd >= 0)
        close(fd);
    return is;
}

/* Of the directories with an unusual name the one that is ours, if there is one. */
static bool find_other(char *dir, size_t size, const char *service)
{
    char pattern[PATH_MAX];
    glob_t names = {0};
    bool found = false;

    snprintf(pattern, sizeof(pattern), OTHERS, (unsigned)getuid(), LETTERS, service);
    if (glob(pattern, 0, NULL, &names) != 0)
        return false;
    for (size_t i = 0; i < names.gl_pathc && !found; i++) {
        found = is_own(names.gl_pathv[i]);
        if (found)
            snprintf(dir, size, "%s", names.gl_pathv[i]);
    }
    globfree(&names);
    return found;
}

/* The one that is ours already; else the usual one, if nobody has made it. A new name is not of a
 * directory yet. */
static void temporary_dir(char *dir, size_t size, const char *service)
{
    struct statx st;
    bool unused;

    snprintf(dir, size, USUAL_NAME, (unsigned)getuid(), service);
    unused = entry_look(AT_FDCWD, dir, &st) != 0 && errno == ENOENT;
    if (!is_own(dir) && !find_other(dir, size, service) && !unused)
        snprintf(dir, size, OTHER_NAME, (unsigned)getuid(), randombytes_random(), service);
}

static void usual_dir(char *dir, size_t size, const char *service)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (runtime != NULL && haproxy_path_ok(runtime) && access(runtime, W_OK) == 0)
        snprintf(dir, size, "%s/elastic-router-%s", runtime, service);
    else
        temporary_dir(dir, size, service);
}

int home_find(struct home *home, const char *dir, const char *service, struct error *err)
{
    char usual[PATH_MAX];

    *home = (struct home){.lock = -1};
    if (dir == NULL) {
        usual_dir(usual, sizeof(usual), service);
        dir = usual;
    }
    if (!haproxy_path_ok(dir) || strlen(dir) > DIR_MAX)
        return error_set(err,
                         "%s: the router's directory has to be a path of at most %d letters, "
                         "digits and /._-; choose one with --run-dir",
                         error_path(dir).text, DIR_MAX);
    snprintf(home->dir, sizeof(home->dir), "%s", dir);
    join(home->config, dir, "haproxy.cfg");
    join(home->map, dir, "routes.map");
    join(home->tokens, dir, "tokens");
    join(home->socket, dir, "haproxy.sock");
    join(home->master, dir, "master.sock");
    join(home->status, dir, "status.json");
    join(home->process, dir, "process");
    return 0;
}

/* -1 with errno. */
static int try_lock(const struct home *home, int flags)
{
    char path[HOME_PATH];
    int fd, saved;

    join(path, home->dir, "lock");
    fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int home_open(struct home *home, const char *service, struct error *err)
{
    if (dir_make(home->dir, err) != 0)
        return error_prefix(err, "the router's directory (--run-dir chooses another one)");
    if (chmod(home->dir, 0700) != 0)
        return error_set(err, "%s: %s", home->dir, strerror(errno));
    home->lock = try_lock(home, O_CREAT);
    if (home->lock >= 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return error_set(err, "a router of service %s runs on this machine already (%s)", service,
                         home->dir);
    return error_set(err, "%s/lock: %s", home->dir, strerror(errno));
}

bool home_is_held(const struct home *home)
{
    int fd = -1;

    if (!is_own(home->dir))
        return false;
    fd = try_lock(home, 0);
    if (fd >= 0)
        close(fd);
    return fd < 0 && errno == EWOULDBLOCK;
}

void home_clear(const struct home *home)
{
    unlink(home->config);
    unlink(home->map);
    unlink(home->tokens);
    unlink(home->socket);
    unlink(home->master);
    unlink(home->status);
    unlink(home->process);
}

void home_close(struct home *home)
{
    if (home->lock >= 0)
        close(home->lock);
    home->lock = -1;
}
