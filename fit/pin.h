/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which file or directory it was: whoever may rename in a directory above can put another one of
 * the same user to its place. */
#ifndef FIT_PIN_H
#define FIT_PIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <json-c/json.h>

#define PIN_BOOT_SIZE 68

struct pin {
    int64_t inode; /* 0: not known, and so it is any */
    int64_t device;
    char boot[PIN_BOOT_SIZE]; /* as long as which the device's number holds; "": it never does */
};

/* Data, which may be one file. Its number comes back when it is gone. Nodes of different versions
 * look at it, so nothing here is of one node. */
struct pin_data {
    int64_t inode; /* 0: not known */
    int64_t born;  /* in whole seconds; 0: the file system does not say */
};

struct pin_data pin_data_of(int fd, const struct stat *st);
/* What is not known may be anything. */
bool pin_data_is(const struct pin_data *before, const struct pin_data *now);

struct pin pin_of(const struct stat *st);
bool pin_is(const struct pin *pin, const struct stat *st);
/* For dir_remove_so(): a directory, and the one of the pin. */
bool pin_is_dir(const struct stat *st, const void *pin);

/* Keys of an object: {"inode", "device", "boot"}. */
void pin_add(json_object *to, const struct pin *pin);
struct pin pin_read(json_object *from);

#endif
