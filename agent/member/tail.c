/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last line on stderr (tail.h). */
#include "agent/member/tail.h"

#include <stdio.h>
#include <string.h>

#include "lib/json_get.h"

void tail_feed(struct tail *tail, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != '\n') {
            if (tail->used < TAIL_BYTES - 1)
                tail->next[tail->used++] = data[i];
            continue;
        }
        if (tail->used > 0) {
            tail->next[tail->used] = '\0';
            memcpy(tail->line, tail->next, tail->used + 1);
        }
        tail->used = 0;
    }
}

void tail_set(struct tail *tail, const char *line)
{
    snprintf(tail->line, sizeof(tail->line), "%s", line);
}

const char *tail_line(const struct tail *tail)
{
    return tail->line[0] != '\0' ? tail->line : NULL;
}

const char *tail_why(const struct tail *tail, json_object *error)
{
    const char *message = json_get_string(error, "message");

    return message != NULL ? message : tail_line(tail);
}
