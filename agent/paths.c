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

const char *paths_extension_script(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/extension.sh",
                                             PKGLIBEXECDIR "/extension.sh", NULL};

    return find(path, candidates, R_OK);
}

const char *paths_successor_script(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/successor.sh",
                                             PKGLIBEXECDIR "/successor.sh", NULL};

    return find(path, candidates, X_OK);
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

const char *paths_flush(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/elastic-flush",
                                             PKGLIBEXECDIR "/elastic-flush", NULL};

    return find(path, candidates, X_OK);
}

const char *paths_node_fail(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/elastic-node-fail",
                                             PKGLIBEXECDIR "/elastic-node-fail", NULL};

    return find(path, candidates, X_OK);
}

const char *paths_pmix(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/elasticrun-pmix",
                                             PKGLIBEXECDIR "/elasticrun-pmix", NULL};

    return find(path, candidates, X_OK);
}

const char *paths_mlflow(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/elastic-mlflow",
                                             PKGLIBEXECDIR "/elastic-mlflow", NULL};

    return find(path, candidates, X_OK);
}

const char *paths_http(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/elasticrun-http",
                                             PKGLIBEXECDIR "/elasticrun-http", NULL};

    return find(path, candidates, X_OK);
}

const char *paths_fit(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/elastic-fit",
                                             PKGLIBEXECDIR "/elastic-fit", NULL};

    return find(path, candidates, X_OK);
}

const char *paths_router(void)
{
    static char path[PATH_MAX];
    static const char *const candidates[] = {"../libexec/slurm-elastic/elastic-router",
                                             PKGLIBEXECDIR "/elastic-router", NULL};

    return find(path, candidates, X_OK);
}
