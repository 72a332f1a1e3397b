/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extensions that were admitted a moment ago (admitted.h). */
#include "lib/admitted.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "elastic-admission="

/* A clock that was set back makes an entry old, too. */
static bool counts(const struct admitted_entry *entry, int64_t now)
{
    return entry->number != 0 && now >= entry->since && now - entry->since < ADMITTED_LIMIT;
}

static int compare_users(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

/* The user with the most entries. All places are taken. */
static uint32_t greediest(const struct admitted *admitted)
{
    uint32_t users[ADMITTED_MAX], found;
    int run = 0, most = 0;

    for (int i = 0; i < ADMITTED_MAX; i++)
        users[i] = admitted->entries[i].uid;
    qsort(users, ADMITTED_MAX, sizeof(*users), compare_users);
    found = users[0];
    for (int i = 0; i < ADMITTED_MAX; i++) {
        run = i > 0 && users[i] == users[i - 1] ? run + 1 : 1;
        if (run > most) {
            most = run;
            found = users[i];
        }
    }
    return found;
}

static struct admitted_entry *place_for(struct admitted *admitted, int64_t now)
{
    struct admitted_entry *oldest = NULL;
    uint32_t user;

    for (int i = 0; i < ADMITTED_MAX; i++)
        if (!counts(&admitted->entries[i], now))
            return &admitted->entries[i];
    user = greediest(admitted);
    for (int i = 0; i < ADMITTED_MAX; i++) {
        struct admitted_entry *entry = &admitted->entries[i];

        if (entry->uid == user && (oldest == NULL || entry->number < oldest->number))
            oldest = entry;
    }
    return oldest;
}

uint64_t admitted_add(struct admitted *admitted, const struct admitted_entry *extension,
                      int64_t now)
{
    struct admitted_entry *entry = place_for(admitted, now);
    uint64_t number = now > 0 && (uint64_t)now > admitted->last ? (uint64_t)now
                                                                : admitted->last + 1;

    admitted->last = number;
    *entry = *extension;
    entry->number = number;
    entry->since = now;
    return number;
}

/* Numbers are times, or later. */
static bool is_old(uint64_t number, int64_t now)
{
    return now >= ADMITTED_LIMIT && number <= (uint64_t)(now - ADMITTED_LIMIT);
}

void admitted_seen(struct admitted *admitted, uint64_t number, int64_t now)
{
    for (int i = 0; i < ADMITTED_MAX && number != 0 && !is_old(number, now); i++)
        if (admitted->entries[i].number == number)
            admitted->entries[i].number = 0;
}

static bool belongs(const struct admitted_entry *entry, uint32_t base, uint32_t restarts,
                    int64_t now)
{
    return counts(entry, now) && entry->base == base && entry->restarts == restarts;
}

int64_t admitted_nodes(const struct admitted *admitted, uint32_t base, uint32_t restarts,
                       int64_t now)
{
    int64_t nodes = 0;

    for (int i = 0; i < ADMITTED_MAX; i++)
        if (belongs(&admitted->entries[i], base, restarts, now))
            nodes += admitted->entries[i].nodes;
    return nodes;
}

int64_t admitted_pool_nodes(const struct admitted *admitted, uint32_t base, uint32_t restarts,
                            int pool, int64_t now)
{
    int64_t nodes = 0;

    for (int i = 0; i < ADMITTED_MAX; i++)
        if (belongs(&admitted->entries[i], base, restarts, now) &&
            admitted->entries[i].pool == pool)
            nodes += admitted->entries[i].nodes;
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
