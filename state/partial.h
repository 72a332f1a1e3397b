/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 000008.partial: the directory where a state is written, until it is renamed to 000008. base is
 * the directory that it lies in, open. */
#ifndef STATE_PARTIAL_H
#define STATE_PARTIAL_H

#include <stdint.h>

#include "lib/error.h"
#include "lib/states.h"

struct partial_name {
    char text[STATE_NAME_SIZE + 16];
};

struct partial_name partial_name(int64_t number);

/* Make it, empty: open, for the caller to close. -1 with err, and errno EEXIST if it is there. */
int partial_make(int base, int64_t number, struct error *err);

/* It becomes the state. One of that name has files, and so is not replaced: -1 with err and
 * errno. */
int partial_publish(int base, int64_t number, struct error *err);

#endif
