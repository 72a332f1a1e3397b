/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last line on stderr (tail.h). */
#include "agent/member/tail.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/json_get.h"

/* "FILE:LINE: CATEGORY: TEXT", as Python's module warnings writes it. */
static bool is_warning(const char *line)
{
    const char *end = strstr(line, "Warning: "), *start = end;

    if (end == NULL)
        return false;
    while (start > line && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
        start--;
    return start - line >= 3 && start[-1] == ' ' && start[-2] == ':' &&
           isdigit((unsigned char)start[-3]);
}

static void take_line(struct tail *tail)
{
    tail->next[tail->used] = '\0';
    if (tail->warned && strncmp(tail->next, "  ", 2) == 0) {
        tail->warned = false; /* the source of the line */
        return;
    }
    tail->warned = is_warning(tail->next);
    if (!tail->warned)
        memcpy(tail->line, tail->next, tail->used + 1);
}

void tail_feed(struct tail *tail, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != '\n') {
            if (tail->used < TAIL_BYTES - 1)
                tail->next[tail->used++] = data[i];
            continue;
        }
        if (tail->used > 0)
            take_line(tail);
        tail->used = 0;
    }
}

void tail_set(struct tail *tail, const char *line)
{
    snprintf(tail->line, sizeof(tail->line), "%s", line);
    tail->known = true;
}

const char *tail_line(const struct tail *tail)
{
    return tail->line[0] != '\0' ? tail->line : NULL;
}

const char *tail_why(const struct tail *tail, json_object *error, int signal)
{
    const char *message = json_get_string(error, "message");

    if (message != NULL)
        return message;
    return signal != SIGKILL || tail->known ? tail_line(tail) : NULL;
}
