/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding out that this process runs in a container (container.h). */
#include "agent/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"

#define MOUNTINFO_MAX (16 * 1024 * 1024) /* bytes */
#define STAT_MAX      4096
#define ANCESTORS_MAX 32

/* The words "MAJOR:MINOR ROOT" of the last mount at "/", which hides those before it. 0: none. */
static size_t root_mount(const char *mountinfo, const char **words)
{
    size_t len = 0;

    for (const char *line = mountinfo; *line != '\0';
         line += strcspn(line, "\n"), line += *line != 0) {
        int begin = 0, end = 0, after = 0;

        if (sscanf(line, "%*d %*d %n%*s %*s%n /%n", &begin, &end, &after) == 0 && after > 0 &&
            line[after] == ' ') {
            *words = line + begin;
            len = (size_t)(end - begin);
        }
    }
    return len;
}

bool container_same_root(const char *one, const char *other)
{
    const char *first = NULL, *second = NULL;
    size_t len = root_mount(one, &first), other_len = root_mount(other, &second);

    if (len == 0 || other_len == 0)
        return true;
    return len == other_len && memcmp(first, second, len) == 0;
}

static char *read_of(int pid, const char *name, size_t max)
{
    char path[64];
    size_t len;

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    return file_read(path, max, &len, NULL);
}

/* "PID (NAME) STATE PARENT …". The name may have any character. */
static int parent_of(int pid, bool *is_stepd)
{
    char *text = read_of(pid, "stat", STAT_MAX);
    const char *name = text != NULL ? strchr(text, '(') : NULL;
    const char *end = text != NULL ? strrchr(text, ')') : NULL;
    int parent = 0;

    *is_stepd = name != NULL && strncmp(name, "(slurmstepd", 11) == 0;
    if (end == NULL || sscanf(end, ") %*c %d", &parent) != 1)
        parent = 0;
    free(text);
    return parent;
}

bool container_is_entered(void)
{
    int pid = getppid();
    bool is_stepd = false, entered = false;
    char *own, *its;

    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
        int parent = parent_of(pid, &is_stepd);

        if (is_stepd)
            break;
        pid = parent;
    }
    if (!is_stepd)
        return false;
    own = read_of(getpid(), "mountinfo", MOUNTINFO_MAX);
    its = read_of(pid, "mountinfo", MOUNTINFO_MAX);
    entered = own != NULL && its != NULL && !container_same_root(own, its);
    free(own);
    free(its);
    return entered;
}
