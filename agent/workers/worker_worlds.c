/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live mode: workers that go from world to world (workers.h). Each world has a page of its own; a worker that is to go on opens the one that the page before
 * names, and until it has, both are looked at. */
#include "agent/workers/workers_internal.h"

#include <stdlib.h>
#include <string.h>

#define MOVE_MS 5 /* milliseconds between looks whether they have entered the next world */

/* Nobody is in the worlds before that of its page any more. */
void worker_drop_older(struct worker *w, bool unlink)
{
    while (w->older != NULL) {
        struct older *older = w->older;
        struct event_status status = event_read(older->event);

        if (status.slowest > w->slowest)
            w->slowest = status.slowest;
        w->older = older->older;
        if (unlink)
            event_unlink(older->event);
        event_destroy(older->event);
        free(older);
    }
}

/* Who has opened its new page is in the new world. */
void workers_poll_move(struct workers *set)
{
    bool all = true;

    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        if (!w->ended && w->older != NULL && event_read(w->event).state == EVENT_STATE_NONE)
            all = false;
        else
            worker_drop_older(w, true);
    }
    if (!all)
        return;
    set->moving = false;
    set->ready_at = uv_now(set->loop);
    workers_poll_every(set, POLL_MS);
    set->handlers.ready(set->arg);
}

/* What one has said of itself: one that goes to its next world says it there only when it has opened that page. */
static struct event_status status_of(const struct worker *w)
{
    struct event_status status = event_read(w->event);

    for (const struct older *each = w->older; each != NULL && !status.live; each = each->older) {
        struct event_status before = event_read(each->event);

        status.live = before.live;
        status.signature = before.signature;
    }
    return status;
}

bool workers_live(const struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->list[i].ended || !status_of(&set->list[i]).live)
            return false;
    return true;
}

bool workers_said_live(const struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        if (!set->list[i].ended && !status_of(&set->list[i]).live)
            return false;
    return true;
}

bool worker_is_early(const struct worker *w)
{
    for (const struct older *each = w->older; each != NULL; each = each->older)
        if (event_read(each->event).finished)
            return false;
    return status_of(w).live && !event_read(w->event).finished;
}

bool workers_ask(const struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        if (!set->list[i].ended && event_read(set->list[i].event).asks)
            return true;
    return false;
}

uint64_t workers_shape(const struct workers *set)
{
    uint64_t signature = status_of(&set->list[0]).signature;

    for (int i = 1; i < set->count; i++)
        if (status_of(&set->list[i]).signature != signature)
            return 0;
    return signature <= INT64_MAX ? signature : 0;
}

void workers_place(struct workers *set, const struct world *world, int node_index, int attempt)
{
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        w->rank = world_first_rank(world, node_index) + i;
        event_set_world(w->event, &(struct event_world){.generation = world->generation,
                                                        .rank = w->rank,
                                                        .size = world_size(world),
                                                        .local_rank = i,
                                                        .local_size = set->count,
                                                        .nodes = world->node_count,
                                                        .attempt = attempt,
                                                        .patience_ms = set->patience_ms});
    }
}

int workers_move(struct workers *set, const struct world *world, int node_index, int attempt,
                 const char *files, struct error *err)
{
    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];
        struct older *older;
        struct event *event;
        char *path;

        if (asprintf(&path, "%s/%s-%d.event", set->run_dir, files, w->local_rank) < 0)
            return error_set(err, "out of memory");
        event = event_create(path, world->generation, err);
        free(path);
        if (event == NULL)
            return -1;
        older = malloc(sizeof(*older));
        if (older == NULL) {
            event_unlink(event);
            event_destroy(event);
            return error_set(err, "out of memory");
        }
        /* One that it has never entered stays in the chain: it may be about to. */
        *older = (struct older){w->event, w->older};
        w->older = older;
        w->event = event;
    }
    workers_place(set, world, node_index, attempt);
    for (int i = 0; i < set->count; i++)
        event_set_next(set->list[i].older->event, set->list[i].event, false);
    set->moving = true;
    set->torn = false;
    set->begun = set->stepping = false;
    workers_poll_every(set, MOVE_MS);
    return 0;
}

void workers_dismiss(struct workers *set, bool save)
{
    set->torn = false;
    for (int i = 0; i < set->count; i++)
        event_set_next(set->list[i].event, NULL, save && i == 0);
}

void workers_tear(struct workers *set, const char *reason)
{
    set->torn = true;
    for (int i = 0; i < set->count; i++) {
        const struct worker *w = &set->list[i];

        for (const struct older *each = w->older; each != NULL; each = each->older)
            event_tear(each->event, reason);
        event_tear(w->event, reason);
    }
}

uint32_t workers_slowest(const struct workers *set)
{
    uint32_t slowest = 0;

    for (int i = 0; i < set->count; i++) {
        const struct worker *w = &set->list[i];
        struct event_status status = event_read(w->event);

        if (w->slowest > slowest)
            slowest = w->slowest;
        if (status.slowest > slowest)
            slowest = status.slowest;
    }
    return slowest;
}
