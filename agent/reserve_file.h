/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Room that a run directory keeps for the pages of the worlds to come: the memory that it lies in may be filled by others, and a world needs but a page for each
 * worker. */
#ifndef ELASTIC_AGENT_RESERVE_FILE_H
#define ELASTIC_AGENT_RESERVE_FILE_H

#include <stdbool.h>

#include "lib/error.h"

/* Keep some in this directory, in a file. -1: there is none, with the reason in err. */
int reserve_file_make(const char *directory, struct error *err);

/* The file system of the directory of `path` is full: give it back so many bytes. False: none are left, or none were kept. */
bool reserve_file_give(const char *path, int bytes);

/* Keep as many as at first again, if there is room. */
void reserve_file_refill(const char *path);

#endif
