/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growing list of words (argv.h). */
#include "agent/leader/argv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/text.h"

void argv_add(struct argv *argv, const char *fmt, ...)
{
    char **grown = realloc(argv->list, ((size_t)argv->count + 2) * sizeof(*grown));
    va_list ap;

    if (grown == NULL) {
        argv->failed = true;
        return;
    }
    argv->list = grown;
    va_start(ap, fmt);
    if (vasprintf(&grown[argv->count], fmt, ap) < 0)
        grown[argv->count] = NULL, argv->failed = true;
    else
        argv->count++;
    va_end(ap);
    grown[argv->count] = NULL;
}

char **argv_end(struct argv *argv)
{
    if (!argv->failed)
        return argv->list;
    strings_free(argv->list);
    return NULL;
}
