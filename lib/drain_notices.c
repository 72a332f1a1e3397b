/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a job is told that one of its nodes has changed (drain_notices.h). */
#include "lib/drain_notices.h"

#include <stdlib.h>
#include <string.h>

static bool is_quiet(const struct drain_notice *notice, double now)
{
    return notice->told < 0 || now - notice->told >= DRAIN_NOTICES_PAUSE;
}

/* Those that need not be remembered any more. */
static void forget(struct drain_notices *notices, double now)
{
    int kept = 0;

    for (int i = 0; i < notices->count; i++)
        if (notices->list[i].due || !is_quiet(&notices->list[i], now))
            notices->list[kept++] = notices->list[i];
    notices->count = kept;
}

static struct drain_notice *find(struct drain_notices *notices, uint32_t job)
{
    for (int i = 0; i < notices->count; i++)
        if (notices->list[i].job == job)
            return &notices->list[i];
    return NULL;
}

static struct drain_notice *append(struct drain_notices *notices, uint32_t job)
{
    if (notices->count == notices->room) {
        int room = notices->room > 0 ? 2 * notices->room : 16;
        struct drain_notice *grown = realloc(notices->list, (size_t)room * sizeof(*grown));

        if (grown == NULL)
            return NULL;
        notices->list = grown;
        notices->room = room;
    }
    notices->list[notices->count] = (struct drain_notice){.job = job, .told = -1};
    return &notices->list[notices->count++];
}

void drain_notices_add(struct drain_notices *notices, uint32_t job, double now)
{
    struct drain_notice *notice = find(notices, job);

    if (notice == NULL)
        notice = append(notices, job);
    if (notice == NULL || notice->due)
        return;
    notice->due = true;
    notice->since = now;
}

uint32_t drain_notices_next(struct drain_notices *notices, double now)
{
    struct drain_notice *first = NULL;

    if (now - notices->window >= DRAIN_NOTICES_WINDOW || now < notices->window) {
        notices->window = now;
        notices->sent = 0;
        forget(notices, now);
    }
    if (notices->sent >= DRAIN_NOTICES_MOST)
        return 0;
    for (int i = 0; i < notices->count; i++) {
        struct drain_notice *notice = &notices->list[i];

        if (notice->due && is_quiet(notice, now) && (first == NULL || notice->since < first->since))
            first = notice;
    }
    if (first == NULL)
        return 0;
    first->due = false;
    first->told = now;
    notices->sent++;
    return first->job;
}

void drain_notices_clear(struct drain_notices *notices)
{
    free(notices->list);
    memset(notices, 0, sizeof(*notices));
}
