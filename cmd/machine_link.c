/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast devices are connected, from sysfs (machine_find.h).
 *
 * hwloc's own number is that of the moment, when an idle GPU saves power, and only root can read
 * it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/machine_find.h"

#define PATH_BYTES    512
#define GENERATION_3  8.0 /* GT/s: from here on 128 of 130 bits are data, before 8 of 10 */
#define PORTS_MAX     64
#define RATE_MAX_GBIT 100000

/* The number at the beginning of the file, 0 if there is none. */
static double read_number(const char *directory, const char *name)
{
    char path[PATH_BYTES], text[64] = "";
    FILE *file;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, name) >= sizeof(path))
        return 0;
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    /* Even reading fails for a network interface that is down. */
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    fclose(file);
    return strtod(text, NULL);
}

static bool device_directory(char *path, size_t size, const char *sysfs, const char *bus,
                             const char *below)
{
    return (size_t)snprintf(path, size, "%s/bus/pci/devices/%s%s", sysfs, bus, below) < size;
}

int machine_pci_link(const char *sysfs, const char *bus, bool fastest)
{
    char directory[PATH_BYTES];
    double width, speed;

    if (!device_directory(directory, sizeof(directory), sysfs, bus, ""))
        return 0;
    width = read_number(directory, "current_link_width");
    speed = read_number(directory, fastest ? "max_link_speed" : "current_link_speed");
    if (!(width >= 1 && width <= 64 && speed > 0 && speed <= 1024))
        return 0;
    return (int)(width * speed * (speed < GENERATION_3 ? 0.8 : 128.0 / 130) * 1000 / 8 + 0.5);
}

/* The best value in the entries of a directory: each entry is a directory with that file in it. */
static double best_in(const char *directory, const char *file)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    double best = 0;

    for (int i = 0; dir != NULL && i < PORTS_MAX && (entry = readdir(dir)) != NULL; i++) {
        char path[PATH_BYTES];
        double number;

        if (entry->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >= sizeof(path))
            continue;
        number = read_number(path, file);
        if (number > best)
            best = number;
    }
    if (dir != NULL)
        closedir(dir);
    return best;
}

/* infiniband/mlx5_0/ports/1/rate: "200 Gb/sec (4X HDR)" */
static double best_port(const char *directory)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    double best = 0;

    for (int i = 0; dir != NULL && i < PORTS_MAX && (entry = readdir(dir)) != NULL; i++) {
        char path[PATH_BYTES];
        double rate;

        if (entry->d_name[0] == '.' || (size_t)snprintf(path, sizeof(path), "%s/%s/ports",
                                                        directory, entry->d_name) >= sizeof(path))
            continue;
        rate = best_in(path, "rate");
        if (rate > best)
            best = rate;
    }
    if (dir != NULL)
        closedir(dir);
    return best;
}

int machine_port_rate(const char *sysfs, const char *bus)
{
    char directory[PATH_BYTES];
    double mbit = 0, gbit = 0;

    if (device_directory(directory, sizeof(directory), sysfs, bus, "/net"))
        mbit = best_in(directory, "speed");
    if (device_directory(directory, sizeof(directory), sysfs, bus, "/infiniband"))
        gbit = best_port(directory);
    if (!(gbit > 0 && gbit <= RATE_MAX_GBIT))
        gbit = 0;
    if (!(mbit > 0 && mbit <= RATE_MAX_GBIT * 1000.0))
        mbit = 0;
    return (int)(gbit * 1000 > mbit ? gbit * 1000 : mbit);
}
