/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory that the tasks of a job share (shared_dir.h). */
#include "agent/member/shared_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"

char *shared_dir_path(const char *path, const char *cwd)
{
    char *result;

    if (path[0] == '/' || cwd == NULL)
        return strdup(path);
    return asprintf(&result, "%s/%s", cwd, path) >= 0 ? result : NULL;
}

int shared_dir_make(const char *path, struct error *err)
{
    struct stat st;

    if (path == NULL)
        return 0;
    if (stat(path, &st) != 0 && dir_make(path, err) != 0)
        return error_prefix(err, "shared");
    if (stat(path, &st) != 0)
        return error_set(err, "shared: %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(err, "shared: %s: is no directory", path);
    /* Whoever owns it can replace what the tasks put there, such as Dask's file of addresses. */
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return error_set(err, "shared: %s: it belongs to uid %u, who could replace what is in it",
                         path, (unsigned int)st.st_uid);
    /* … and so can whoever may write there, without a sticky bit. */
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st.st_mode & S_ISVTX) == 0)
        return error_set(err,
                         "shared: %s: other users may write there (mode %04o), who could replace "
                         "what is in it; chmod go-w, or +t, would be right",
                         path, (unsigned int)st.st_mode & 07777);
    if (access(path, W_OK | X_OK) != 0)
        return error_set(err, "shared: %s: %s", path, strerror(errno));
    return 0;
}
