/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages on stderr (log.h). */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/text.h"

#define LINE_MAX_BYTES 2048

/* Every message of a process has the same name in front; a handle in each call would add
 * nothing. */
static const char *program_name = "slurm-elastic";
static bool debug_wanted;

void log_init(const char *program)
{
    const char *debug = getenv("ELASTIC_DEBUG");

    program_name = program;
    debug_wanted = debug != NULL && debug[0] != '\0';
}

/* If this fails there is no way left to report it. */
static void write_all(const char *line, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(STDERR_FILENO, line, len);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return;
        line += wrote;
        len -= (size_t)wrote;
    }
}

static void __attribute__((format(printf, 2, 0)))
write_line(const char *level, const char *fmt, va_list args)
{
    int saved = errno;
    char line[LINE_MAX_BYTES] = "";
    size_t used;

    text_append(line, sizeof(line), "%s: %s", program_name, level);
    used = strlen(line);
    vsnprintf(line + used, sizeof(line) - 1 - used, fmt, args);
    error_clean(line);
    used = strlen(line);
    line[used++] = '\n';
    write_all(line, used);
    errno = saved;
}

void log_info(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_line("", fmt, args);
    va_end(args);
}

void log_error(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_line("error: ", fmt, args);
    va_end(args);
}

void log_debug(const char *fmt, ...)
{
    va_list args;

    if (!debug_wanted)
        return;
    va_start(args, fmt);
    write_line("debug: ", fmt, args);
    va_end(args);
}
