/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text in a fixed buffer (text.h). */
#include "lib/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *text_append(char *buf, size_t size, const char *fmt, ...)
{
    size_t used = strnlen(buf, size);
    va_list args;

    if (used >= size)
        return buf;
    va_start(args, fmt);
    vsnprintf(buf + used, size - used, fmt, args);
    va_end(args);
    return buf;
}
