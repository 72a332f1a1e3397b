/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where other programs are (libexec.h). */
#include "cmd/libexec.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *libexec_find(const char *name)
{
    static char path[PATH_MAX], found[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(found, sizeof(found), "%.4000s/../libexec/slurm-elastic/%.64s", path, name);
    if (access(found, X_OK) != 0)
        snprintf(found, sizeof(found), PKGLIBEXECDIR "/%.64s", name);
    return found;
}

int libexec_become(const char *name, char *called, char **argv, struct error *err)
{
    const char *program = libexec_find(name);
    argv[0] = called;
    execv(program, argv);
    return error_set(err, "%s: %s", program, strerror(errno));
}
