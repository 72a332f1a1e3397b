/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The grants of all fits (grant_list.h). */
#include "fit/grant_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/service_dir.h"
#include "fit/grant.h"
#include "lib/json_get.h"

#define LOCK_FILE  ".grants"
#define LOCK_TRIES 100 /* … */
#define LOCK_NS    50000000L

/* ---- one at a time --------------------------------------------------------------------------- */

static int failed(const char *path, struct error *err)
{
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

/* Some file systems have no locks: there it goes on without. */
static bool is_locked(int fd)
{
    const struct timespec pause = {.tv_nsec = LOCK_NS};

    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

int grant_lock(struct error *err)
{
    char all[PATH_MAX], path[PATH_MAX + 16];
    int fd;

    if (service_dir_all(all, sizeof(all), err) != 0 || dir_make(all, err) != 0)
        return -1;
    snprintf(path, sizeof(path), "%s/" LOCK_FILE, all);
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(path, err);
    if (is_locked(fd))
        return fd;
    close(fd);
    error_set(err, "another process gives access to a trainer, or takes it back");
    errno = EAGAIN;
    return -1;
}

/* ---- all ------------------------------------------------------------------------------------- */

struct visit {
    int (*each)(const struct home *home, int64_t id, void *arg, struct error *err);
    void *arg;
};

static int visit_service(const struct home *home, const struct visit *visit, struct error *err)
{
    size_t fits;
    int64_t *list = home_list(home, &fits, err);
    int rc = list != NULL ? 0 : -1;

    for (size_t i = 0; list != NULL && i < fits; i++)
        if (home_has(home, list[i], HOME_GRANT_FILE) &&
            visit->each(home, list[i], visit->arg, err) != 0)
            rc = -1;
    free(list);
    return rc;
}

int grant_each(int (*each)(const struct home *home, int64_t id, void *arg, struct error *err),
               void *arg, struct error *err)
{
    const struct visit visit = {.each = each, .arg = arg};
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *list;
    int rc = 0;

    if (service_dir_all(path, sizeof(path), err) != 0)
        return -1;
    list = opendir(path);
    if (list == NULL)
        return errno == ENOENT ? 0 : failed(path, err);
    while ((entry = readdir(list)) != NULL) {
        struct home home;

        if (entry->d_name[0] == '.' || home_open(&home, entry->d_name, err) != 0)
            continue;
        if (visit_service(&home, &visit, err) != 0)
            rc = -1;
    }
    closedir(list);
    return rc;
}

/* ---- one path -------------------------------------------------------------------------------- */

struct held {
    const char *path;
    uid_t uid;
    const struct home *home;
    int64_t id;
    bool found;
};

static int look(const struct home *home, int64_t id, void *arg, struct error *err)
{
    struct held *held = arg;
    json_object *grant, *paths;
    int64_t uid = -1;

    (void)err;
    if (held->found || (id == held->id && strcmp(home->dir, held->home->dir) == 0))
        return 0;
    grant = home_read(home, id, HOME_GRANT_FILE, NULL);
    paths = json_object_object_get(grant, "paths");
    if (json_object_is_type(paths, json_type_array) &&
        json_get_int(grant, "uid", 0, UINT32_MAX, &uid) && (uid_t)uid == held->uid)
        for (size_t i = 0; i < json_object_array_length(paths); i++) {
            const char *its = json_get_string(json_object_array_get_idx(paths, i), "path");

            held->found = held->found || (its != NULL && strcmp(its, held->path) == 0);
        }
    json_object_put(grant);
    return 0;
}

bool grant_is_held(const char *path, uid_t uid, const struct home *home, int64_t id)
{
    struct held held = {.path = path, .uid = uid, .home = home, .id = id};
    struct error err;

    grant_each(look, &held, &err);
    return held.found;
}
