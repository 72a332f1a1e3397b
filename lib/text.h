/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Building a text piece by piece in a fixed buffer. */
#ifndef ELASTIC_LIB_TEXT_H
#define ELASTIC_LIB_TEXT_H

#include <stddef.h>

/* Append to the string in buf (size bytes, at least 1). What does not fit is left out. Returns
 * buf. */
char *text_append(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
