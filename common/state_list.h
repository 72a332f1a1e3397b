/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states in an open directory, as doc/internals/states.md has them: whose manifest holds, and
 * which one counts. Anything may lie there. */
#ifndef ELASTIC_COMMON_STATE_LIST_H
#define ELASTIC_COMMON_STATE_LIST_H

#include <stdint.h>

#include "lib/error.h"
#include "lib/states.h"

/* Add the states to the list, sorted. size_of() gives the bytes of a file below the directory of a
 * state, whose descriptor arg points to; -1 if there is no such file. 0, or -1 with err: out of
 * memory, not readable, or stop_asked(). The caller clears the list in both cases. */
int state_list_read(int base, int64_t (*size_of)(const char *file, void *arg),
                    struct states *states, struct error *err);
/* The number of the state that the pointer names; 0: there is no pointer, or none of ours. */
int64_t state_list_pointer(int base);

#endif
