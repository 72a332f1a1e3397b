/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the other parts of this installation are (paths.h). */
#include "agent/paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *paths_program(void)
{
    static char path[PATH_MAX];
    ssize_t len;

    if (path[0] == '\0') {
        len = readlink("/proc/self/exe", path, sizeof(path) - 1);
        path[len > 0 ? len : 0] = '\0';
    }
    return path;
}

/* The first of the candidates that can be read (R_OK) or executed (X_OK); the last candidate if
 * none can. Candidates are absolute, or relative to the program's directory. */
static const char *find(char *buf, const char *const *candidates, int mode)
{
    const char *program = paths_program();
    const char *slash = strrchr(program, '/');
    int dir = slash != NULL ? (int)(slash - program) : 0;

    if (buf[0] != '\0')
        return buf;
    for (const char *const *c = candidates; *c != NULL; c++) {
        if ((*c)[0] == '/')
            snprintf(buf, PATH_MAX, "%s", *c);
        else
            snprintf(buf, PATH_MAX, "%.*s/%s", dir, program, *c);
        if (access(buf, mode) == 0)
            break;
    }
    return buf;
}

/* Of a file in libexec. */
#define PART(name, mode)                                                                           \
    {                                                                                              \
        {"../libexec/slurm-elastic/" name, PKGLIBEXECDIR "/" name, NULL}, mode                     \
    }

const char *paths_of(enum paths_part part)
{
    static char paths[PATHS_PARTS][PATH_MAX];
    static const struct {
        const char *candidates[3];
        int mode;
    } parts[PATHS_PARTS] = {
        [PATHS_EXTENSION_SCRIPT] = PART("extension.sh", R_OK),
        [PATHS_SUCCESSOR_SCRIPT] = PART("successor.sh", X_OK),
        [PATHS_FLUSH] = PART("elastic-flush", X_OK),
        [PATHS_NODE_FAIL] = PART("elastic-node-fail", X_OK),
        [PATHS_PMIX] = PART("elasticrun-pmix", X_OK),
        [PATHS_HTTP] = PART("elasticrun-http", X_OK),
        [PATHS_MLFLOW] = PART("elastic-mlflow", X_OK),
        [PATHS_FIT] = PART("elastic-fit", X_OK),
        [PATHS_ROUTER] = PART("elastic-router", X_OK),
        [PATHS_STATE] = PART("elastic-state", X_OK),
    };

    return find(paths[part], parts[part].candidates, parts[part].mode);
}

const char *paths_library(void)
{
    static char path[PATH_MAX], real[PATH_MAX];
    static const char *const candidates[] = {"../lib/libelastic.so.0", LIBDIR "/libelastic.so.0",
                                             NULL};

    /* The next release has another file there, with a number of its own. */
    if (realpath(find(path, candidates, R_OK), real) == NULL)
        strcpy(real, path); /* the worker says that it is not there */
    return real;
}

const char *paths_shield(void)
{
    static char path[PATH_MAX], real[PATH_MAX];
    static const char *const candidates[] = {"../lib/libelastic/libelastic-shield.so",
                                             LIBDIR "/libelastic/libelastic-shield.so", NULL};

    return realpath(find(path, candidates, R_OK), real);
}

const char *paths_python(void)
{
    static char path[PATH_MAX], real[PATH_MAX];
    static const char *const candidates[] = {"../share/slurm-elastic/python", PKGDATADIR "/python",
                                             NULL};

    return realpath(find(path, candidates, R_OK), real);
}
