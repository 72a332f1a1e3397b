/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which file or directory it was (pin.h). */
#include "fit/pin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "common/files.h"
#include "lib/json_get.h"

#define BOOT_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_MAX  64

/* The numbers of devices hold for a node, as long as it runs; those of network file systems change
 * with each mount. */
static char *boot_of(const struct stat *st)
{
    return major(st->st_dev) != 0 ? file_read(BOOT_FILE, BOOT_MAX, NULL, NULL) : NULL;
}

struct pin pin_of(const struct stat *st)
{
    struct pin pin = {.inode = (int64_t)st->st_ino};
    char *boot = boot_of(st);

    if (boot != NULL) {
        pin.device = (int64_t)st->st_dev;
        snprintf(pin.boot, sizeof(pin.boot), "%s", boot);
    }
    free(boot);
    return pin;
}

bool pin_is(const struct pin *pin, const struct stat *st)
{
    char *boot;
    bool same;

    if (pin->inode != 0 && pin->inode != (int64_t)st->st_ino)
        return false;
    boot = pin->boot[0] != '\0' ? boot_of(st) : NULL;
    same = boot == NULL || strcmp(boot, pin->boot) != 0 || pin->device == (int64_t)st->st_dev;
    free(boot);
    return same;
}

bool pin_is_dir(const struct stat *st, const void *pin)
{
    return S_ISDIR(st->st_mode) && pin_is(pin, st);
}

struct pin_data pin_data_of(int fd, const struct stat *st)
{
    struct pin_data data = {.inode = (int64_t)st->st_ino};
    struct statx more;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 && (more.stx_mask & STATX_BTIME) != 0)
        data.born = more.stx_btime.tv_sec;
    return data;
}

bool pin_data_is(const struct pin_data *before, const struct pin_data *now)
{
    return before->inode == 0 ||
           (before->inode == now->inode &&
            (before->born == 0 || now->born == 0 || before->born == now->born));
}

void pin_add(json_object *to, const struct pin *pin)
{
    json_object_object_add(to, "inode", json_object_new_int64(pin->inode));
    if (pin->boot[0] == '\0')
        return;
    json_object_object_add(to, "device", json_object_new_int64(pin->device));
    json_object_object_add(to, "boot", json_object_new_string(pin->boot));
}

struct pin pin_read(json_object *from)
{
    const char *boot = json_get_string(from, "boot");
    struct pin pin = {0};

    json_get_int(from, "inode", INT64_MIN, INT64_MAX, &pin.inode);
    if (boot != NULL && json_get_int(from, "device", INT64_MIN, INT64_MAX, &pin.device))
        snprintf(pin.boot, sizeof(pin.boot), "%s", boot);
    return pin;
}
