/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program prints, with a time limit. For commands: it blocks until then. */
#ifndef ELASTIC_PROGRAM_H
#define ELASTIC_PROGRAM_H

#include <stddef.h>

#include "lib/error.h"

/* Run a program (of PATH) without input, in the directory /. *out is what it has written to stdout,
 * a new string, at most max bytes. Returns its exit status. With another status than 0, err is the
 * last line that it has written to stderr. -1 with err, and *out NULL: it could not be started, was
 * killed, or took longer. What takes longer gets SIGTERM, and SIGKILL 3 s later. */
int program_output(char *const *argv, int timeout_ms, size_t max, char **out, struct error *err);

#endif
