/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that is left, from /proc and cgroup files (memory.h). */
#include "common/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Names of the same files in the two versions of cgroups. */
struct hierarchy {
    const char *mount, *limit, *usage, *cache;
};

static const struct hierarchy v2 = {"", "memory.max", "memory.current", "inactive_file"};
static const struct hierarchy v1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                    "total_inactive_file"};

/* The number that is the whole contents of a file. False when there is none: "max", or no such
 * file. */
static bool read_number(const char *path, uint64_t *value)
{
    FILE *file = fopen(path, "re");
    bool ok;

    if (file == NULL)
        return false;
    ok = fscanf(file, "%" SCNu64, value) == 1;
    fclose(file);
    return ok;
}

/* The number behind a name in lines of "name number"; 0 when the name is missing. */
static uint64_t read_named(const char *path, const char *name)
{
    FILE *file = fopen(path, "re");
    char line[256], found[64];
    uint64_t value = 0, number;

    if (file == NULL)
        return 0;
    while (value == 0 && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "%63[^ :]%*[ :]%" SCNu64, found, &number) == 2 && strcmp(found, name) == 0)
            value = number;
    fclose(file);
    return value;
}

static uint64_t left_in(const char *directory, const struct hierarchy *names)
{
    char path[PATH_MAX + 64];
    uint64_t limit, usage, cache;

    snprintf(path, sizeof(path), "%s/%s", directory, names->limit);
    if (!read_number(path, &limit))
        return UINT64_MAX;
    snprintf(path, sizeof(path), "%s/%s", directory, names->usage);
    if (!read_number(path, &usage))
        return UINT64_MAX;
    snprintf(path, sizeof(path), "%s/memory.stat", directory);
    cache = read_named(path, names->cache);
    usage -= cache < usage ? cache : usage;
    return usage < limit ? limit - usage : 0;
}

/* The group itself and all groups above it: each limit counts for all groups below. */
static uint64_t left_along(const char *root, const char *group, const struct hierarchy *names)
{
    char directory[PATH_MAX];
    size_t top;
    uint64_t least = UINT64_MAX;
    int len = snprintf(directory, sizeof(directory), "%s/sys/fs/cgroup%s", root, names->mount);

    if (len < 0 || (size_t)len + strlen(group) >= sizeof(directory))
        return UINT64_MAX;
    top = (size_t)len;
    strcpy(directory + top, group);
    while (strlen(directory) >= top) {
        uint64_t left = left_in(directory, names);
        char *slash = strrchr(directory, '/');

        least = left < least ? left : least;
        *slash = '\0';
    }
    return least;
}

static uint64_t left_in_groups(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    uint64_t least = UINT64_MAX;
    FILE *file;

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    /* Lines "0::/group" of version 2, "7:memory:/group" of version 1. */
    while (fgets(line, sizeof(line), file) != NULL) {
        char *group = strstr(line, ":/");
        uint64_t left = UINT64_MAX;

        if (group == NULL)
            continue;
        group[strcspn(group, "\n")] = '\0';
        *group++ = '\0';
        if (strcmp(line, "0:") == 0)
            left = left_along(root, group, &v2);
        else if (strstr(line, ":memory") != NULL)
            left = left_along(root, group, &v1);
        least = left < least ? left : least;
    }
    fclose(file);
    return least;
}

uint64_t memory_available(const char *root)
{
    char path[PATH_MAX];
    uint64_t node, groups = left_in_groups(root);

    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    node = read_named(path, "MemAvailable") * 1024;
    return node > 0 && node < groups ? node : groups;
}
