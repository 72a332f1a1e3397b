/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extensions that were admitted a moment ago (admitted.h). */
#include "lib/admitted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "elastic-admission="

uint64_t admitted_add(struct admitted *admitted, uint32_t base, uint32_t restarts, int nodes,
                      int64_t now)
{
    uint64_t number = now > 0 && (uint64_t)now > admitted->last ? (uint64_t)now
                                                                : admitted->last + 1;

    admitted->last = number;
    admitted->entries[admitted->next] = (struct admitted_entry){
        .number = number, .since = now, .base = base, .restarts = restarts, .nodes = nodes};
    admitted->next = (admitted->next + 1) % ADMITTED_MAX;
    return number;
}

void admitted_seen(struct admitted *admitted, uint64_t number)
{
    for (int i = 0; i < ADMITTED_MAX && number != 0; i++)
        if (admitted->entries[i].number == number)
            admitted->entries[i].number = 0;
}

int64_t admitted_nodes(const struct admitted *admitted, uint32_t base, uint32_t restarts,
                       int64_t now)
{
    int64_t nodes = 0;

    for (int i = 0; i < ADMITTED_MAX; i++) {
        const struct admitted_entry *entry = &admitted->entries[i];

        /* A clock that was set back makes an entry old, too. */
        if (entry->number != 0 && entry->base == base && entry->restarts == restarts &&
            now >= entry->since && now - entry->since < ADMITTED_LIMIT)
            nodes += entry->nodes;
    }
    return nodes;
}

char *admitted_mark(uint64_t number, char *buf, size_t size)
{
    snprintf(buf, size, MARK "%" PRIu64, number);
    return buf;
}

uint64_t admitted_number(const char *admin_comment)
{
    const char *mark = admin_comment ? strstr(admin_comment, MARK) : NULL;

    return mark ? strtoull(mark + strlen(MARK), NULL, 10) : 0;
}
