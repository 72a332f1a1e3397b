/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of this node (health.h). */
#include "agent/member/health.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define FILES_MAX 1024 /* more processors and devices are not looked at */

static const char *read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, size - 1) : -1;

    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void add_files(const char *root, const char *pattern, int64_t *sum)
{
    char path[PATH_MAX], text[64];
    glob_t files;

    snprintf(path, sizeof(path), "%s%s", root, pattern);
    if (glob(path, GLOB_NOSORT, NULL, &files) != 0)
        return;
    for (size_t i = 0; i < files.gl_pathc && i < FILES_MAX; i++)
        node_health_add(sum, read_file(files.gl_pathv[i], text, sizeof(text)));
    globfree(&files);
}

static double pressure(const char *root, const char *what)
{
    char path[PATH_MAX], text[256];

    snprintf(path, sizeof(path), "%s/proc/pressure/%s", root, what);
    return node_health_pressure(read_file(path, text, sizeof(text)));
}

void health_read(const char *root, struct node_health *health)
{
    *health = (struct node_health)NODE_HEALTH_NONE;
    add_files(root, "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count",
              &health->throttled);
    add_files(root, "/sys/class/net/*/statistics/rx_errors", &health->net_errors);
    add_files(root, "/sys/class/net/*/statistics/tx_errors", &health->net_errors);
    health->cpu = pressure(root, "cpu");
    health->memory = pressure(root, "memory");
    health->io = pressure(root, "io");
}
