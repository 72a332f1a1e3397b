/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live mode: workers that go from world to world (workers.h).
 *
 * Each world has a page of its own. A worker that is to go on opens the page that its present page
 * names. Until the worker has opened it, both pages are looked at. */
#include "agent/workers/workers_internal.h"

#include <stdlib.h>
#include <string.h>

/* Milliseconds between two looks whether the workers have entered the next world. */
#define MOVE_MS 5

/* No worker is in a world before the world of its page any more. */
void worker_drop_previous(struct worker *w, bool unlink)
{
    while (w->previous != NULL) {
        struct previous_page *previous = w->previous;
        struct event_status status = event_read(previous->event);

        if (status.slowest > w->slowest)
            w->slowest = status.slowest;
        w->previous = previous->previous;
        if (unlink)
            event_unlink(previous->event);
        event_destroy(previous->event);
        free(previous);
    }
}

/* A worker that has opened its new page is in the new world. */
void workers_poll_move(struct workers *set)
{
    bool all = true;

    for (int i = 0; i < set->count; i++) {
        struct worker *w = &set->list[i];

        if (!w->ended && w->previous != NULL && event_read(w->event).state == EVENT_STATE_NONE)
            all = false;
        else
            worker_drop_previous(w, true);
    }
    if (!all)
        return;
    set->moving = false;
    set->ready_at = uv_now(set->loop);
    workers_poll_every(set, POLL_MS);
    set->handlers.ready(set->arg);
}

/* What a worker has said. A worker that goes to its next world writes on the new page only after it
 * has opened that page. */
static struct event_status status_of(const struct worker *w)
{
    struct event_status status = event_read(w->event);

    for (const struct previous_page *each = w->previous; each != NULL && !status.live;
         each = each->previous) {
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
    for (const struct previous_page *each = w->previous; each != NULL; each = each->previous)
        if (event_read(each->event).finished)
            return false;
    return status_of(w).live && !event_read(w->event).finished;
}

bool workers_through(const struct workers *set)
{
    for (int i = 0; i < set->count; i++) {
        const struct worker *w = &set->list[i];

        if (w->ended ? w->code != 0 || w->signal != 0 : !event_read(w->event).finished)
            return false;
    }
    return true;
}

bool workers_ask(const struct workers *set)
{
    for (int i = 0; i < set->count; i++)
        if (!set->list[i].ended && event_read(set->list[i].event).asks)
            return true;
    return false;
}

uint64_t workers_signature(const struct workers *set)
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
        struct previous_page *previous;
        struct event *event;
        char *path;

        if (asprintf(&path, "%s/%s-%d.event", set->run_dir, files, w->local_rank) < 0)
            return error_set(err, "out of memory");
        event = event_create(path, world->generation, err);
        free(path);
        if (event == NULL)
            return -1;
        previous = malloc(sizeof(*previous));
        if (previous == NULL) {
            event_unlink(event);
            event_destroy(event);
            return error_set(err, "out of memory");
        }
        /* A page that the worker has never entered stays in the chain: the worker may be about to
         * enter it. */
        *previous = (struct previous_page){w->event, w->previous};
        w->previous = previous;
        w->event = event;
    }
    workers_place(set, world, node_index, attempt);
    for (int i = 0; i < set->count; i++)
        event_set_next(set->list[i].previous->event, set->list[i].event, false);
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

        for (const struct previous_page *each = w->previous; each != NULL; each = each->previous)
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

struct event_own workers_own(const struct workers *set, int local_rank)
{
    return local_rank < set->count ? event_read_own(set->list[local_rank].event)
                                   : (struct event_own){0};
}

int64_t workers_moved(const struct workers *set)
{
    uint64_t moved = 0;

    /* The workers write what they like: the sum may wrap, and only has to change. */
    for (int i = 0; i < set->count; i++)
        moved += event_read(set->list[i].event).moved;
    return (int64_t)(moved & INT64_MAX);
}
