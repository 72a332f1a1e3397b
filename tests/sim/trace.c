/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What happened, in lines that a person can read, and the first invariant that does not hold. */
#include <stdarg.h>

#include "tests/sim/sim.h"

bool trace_on;
static char broken[512];

void trace_begin(void)
{
    broken[0] = '\0';
}

void trace_line(const char *fmt, ...)
{
    va_list ap;

    printf("# %9.3f  ", (double)(clock_now() - 1000 * SECOND) / (double)SECOND);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void violation(const char *fmt, ...)
{
    va_list ap;
    int used;

    if (broken[0] != '\0')
        return;
    used = snprintf(broken, sizeof(broken),
                    "at %.3f s: ", (double)(clock_now() - 1000 * SECOND) / (double)SECOND);
    va_start(ap, fmt);
    vsnprintf(broken + used, sizeof(broken) - (size_t)used, fmt, ap);
    va_end(ap);
    trace("VIOLATION %s", broken);
}

const char *violation_text(void)
{
    return broken;
}

void sim_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: the simulator itself is wrong: %s\n", file, line, what);
    abort();
}
