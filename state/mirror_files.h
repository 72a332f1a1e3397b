/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of copies of models, and the small files that say how they are.
 *
 *     .listed         the repository has been listed once
 *     .why            it cannot be listed, for this reason: a line
 *     MODEL/000007/   a copy, MODEL/current, MODEL/model.json: as in a repository
 *     MODEL/.seen     what has been copied is what the listing said so (mirror_list.h)
 *     MODEL/.why      … cannot be copied, for this reason: a line
 *     MODEL/.gone     the repository has the model no more */
#ifndef STATE_MIRROR_FILES_H
#define STATE_MIRROR_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/states.h"

#define MIRROR_LISTED ".listed"
#define MIRROR_SEEN   ".seen"

/* Write a file of a directory with one line, or remove it (text NULL). -1 with err. */
int mirror_note(const char *dir, const char *name, const char *text, struct error *err);
bool mirror_has(const char *dir, const char *name);
/* Does the file have that line? */
bool mirror_says(const char *dir, const char *name, const char *text);

/* DIRECTORY/NAME, in a buffer of PATH_MAX bytes. -1 with err. */
int mirror_path(char *path, const char *directory, const char *name, struct error *err);

/* The bytes of all files below. */
int64_t mirror_bytes(const char *directory);

/* Call each() for all models that there are copies of, with the directory of the model; -1 with err
 * stops. */
int mirror_each(const char *directory,
                int (*each)(const char *name, const char *dir, void *arg, struct error *err),
                void *arg, struct error *err);

#endif
