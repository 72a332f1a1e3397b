/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other programs of this package that selastic starts. */
#ifndef SELASTIC_LIBEXEC_H
#define SELASTIC_LIBEXEC_H

#include "lib/error.h"

/* The path of a program in libexec: beside this one, so that an installation can be moved, else
 * where it was configured. It is there until the next call. */
const char *libexec_find(const char *name);

/* Becomes that program. `called` is its name in its messages: "selastic states". Returns -1 with
 * err where it cannot be started. */
int libexec_become(const char *name, char *called, char **argv, struct error *err);

#endif
