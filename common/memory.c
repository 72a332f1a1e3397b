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
    const char *mount, *limit, *usage, *cache, *events;
};

static const struct hierarchy v2 = {"", "memory.max", "memory.current", "inactive_file",
                                    "memory.events"};
static const struct hierarchy v1 = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                    "total_inactive_file", "memory.oom_control"};

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

static void note_left(const char *root, const char *group, const struct hierarchy *names,
                      uint64_t *least)
{
    uint64_t left = left_along(root, group, names);

    *least = left < *least ? left : *least;
}

static void add_kills(const char *root, const char *group, const struct hierarchy *names,
                      uint64_t *kills)
{
    char path[2 * PATH_MAX];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup%s%s/%s", root, names->mount, group,
             names->events);
    *kills += read_named(path, "oom_kill");
}

/* Visits the memory cgroups of this process. */
static void visit_groups(const char *root, uint64_t *result,
                         void (*visit)(const char *root, const char *group,
                                       const struct hierarchy *names, uint64_t *result))
{
    char path[PATH_MAX], line[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    /* Lines "0::/group" of version 2, "7:memory:/group" of version 1. */
    while (fgets(line, sizeof(line), file) != NULL) {
        char *group = strstr(line, ":/");

        if (group == NULL)
            continue;
        group[strcspn(group, "\n")] = '\0';
        *group++ = '\0';
        if (strcmp(line, "0:") == 0)
            visit(root, group, &v2, result);
        else if (strstr(line, ":memory") != NULL)
            visit(root, group, &v1, result);
    }
    fclose(file);
}

uint64_t memory_oom_kills(const char *root)
{
    uint64_t kills = 0;

    visit_groups(root, &kills, add_kills);
    return kills;
}

uint64_t memory_available(const char *root)
{
    char path[PATH_MAX];
    uint64_t node, groups = UINT64_MAX;

    visit_groups(root, &groups, note_left);
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    node = read_named(path, "MemAvailable") * 1024;
    return node > 0 && node < groups ? node : groups;
}
