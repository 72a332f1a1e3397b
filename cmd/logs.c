/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which lines of a job's output are of a role or a replica (logs.h). */
#include "cmd/logs.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* Digits at the beginning of a text. */
static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* ROLE-INDEX and, of a gang, .TASK. What follows the name has to be the rest of a label. */
bool logs_match(const char *line, const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;

    if (name == NULL)
        return true;
    if (strncmp(line, name, length) != 0)
        return false;
    line += length;
    if (*line == '-' && isdigit((unsigned char)line[1])) { /* the name of a role */
        line++;
        line += digits(line);
    }
    if (*line == '.' && isdigit((unsigned char)line[1])) { /* … or of a replica */
        line++;
        line += digits(line);
    }
    return strncmp(line, ": ", 2) == 0 || strcmp(line, ":\n") == 0 || strcmp(line, ":") == 0;
}
