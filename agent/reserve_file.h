/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Room that a run directory keeps for the pages of coming worlds.
 *
 * Other users may fill the memory that the run directory is in, and a world needs only one page for
 * each worker. */
#ifndef ELASTIC_AGENT_RESERVE_FILE_H
#define ELASTIC_AGENT_RESERVE_FILE_H

#include <stdbool.h>

#include "lib/error.h"

/* Keep some room in this directory, in a file. -1: no room is kept, with the reason in err. */
int reserve_file_make(const char *directory, struct error *err);

/* The file system of the directory of `path` is full: give that many bytes of the room back to it.
 * False: no room is left, or none was kept. */
bool reserve_file_give(const char *path, int bytes);

/* Keep as much room as at first again, if the file system has it. */
void reserve_file_refill(const char *path);

#endif
