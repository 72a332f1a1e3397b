/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: what has become of its replicas, and what routers say (service.h). */
#include "lib/service_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t service_target(const struct rollout *rollout)
{
    return rollout->back ? rollout->before : rollout->version;
}

static void has_failed(struct service_turn *run, struct service_known *known)
{
    struct service_shard *shard = service_shard(run->s, known->replica.shard);
    double pause = SERVICE_PAUSE_FIRST;

    known->failed = true;
    if (shard == NULL)
        return;
    rollout_failed(&shard->rollout, known->replica.version);
    for (int i = 0; i < shard->failures && pause < SERVICE_PAUSE_MOST; i++)
        pause *= 2;
    shard->failures++;
    shard->pause = run->now + (pause < SERVICE_PAUSE_MOST ? pause : SERVICE_PAUSE_MOST);
}

static void has_got_ready(struct service_turn *run, const struct service_known *known)
{
    struct service_shard *shard = service_shard(run->s, known->replica.shard);

    if (shard == NULL)
        return;
    rollout_ready(&shard->rollout, known->replica.version);
    shard->why[0] = '\0';
    shard->failures = 0;
    shard->pause = 0;
}

/* In place. Those of a version that is not wanted any more do not count. */
static void has_not_loaded(struct service_turn *run, const struct service_replica *before,
                           const struct service_replica *now)
{
    struct service_shard *shard = service_shard(run->s, now->shard);

    if (shard == NULL)
        return;
    for (int i = before->failures; i < now->failures; i++)
        rollout_failed(&shard->rollout, now->tried);
    snprintf(shard->why, sizeof(shard->why), "%s", now->why != NULL ? now->why : "");
}

static int keep_address(struct service_known *known, const char *address)
{
    char *copy = address != NULL ? strdup(address) : NULL;

    if (address != NULL && copy == NULL)
        return -1;
    free((char *)(uintptr_t)known->replica.address);
    known->replica.address = copy;
    return 0;
}

/* The leader before has told it so, or was about to. */
static bool is_to_end(const struct service *s, int start)
{
    for (int i = 0; i < s->end_count; i++)
        if (s->ends[i] == start)
            return true;
    return false;
}

/* What has become of a replica. before: as it was, which is to be updated. */
static int note_one(struct service_turn *run, struct service_known *before,
                    const struct service_replica *now)
{
    const char *address = before->replica.address;
    bool started = before->replica.state == SERVICE_STARTS, same = true;
    int64_t version = now->version;

    if (before->replica.start != now->start) {
        before->served = before->failed = false;
        before->ended = run->s->first && now->state != SERVICE_LEAVES &&
                        is_to_end(run->s, now->start);
        before->drained = 0;
        before->replica.failures = 0;
        same = false;
        before->drains = 0;
    }
    /* That of a start that has failed is not said any more. */
    if (now->version == 0 && now->start == before->replica.start && now->state == SERVICE_WAITS)
        version = before->replica.version;
    if (now->failures > before->replica.failures)
        has_not_loaded(run, &before->replica, now);
    same = same && before->replica.version == version;
    before->replica = *now;
    before->replica.address = address;
    before->replica.why = NULL; /* it does not outlive this run */
    before->replica.version = version;
    if (now->failed && !before->failed)
        has_failed(run, before);
    if (now->state == SERVICE_READY && (started || !same))
        has_got_ready(run, before);
    /* What leaves when it is seen first may have been in the table of the leader before. */
    before->served = before->served || now->state == SERVICE_READY ||
                     (now->state == SERVICE_LEAVES && !started && now->port > 0);
    return keep_address(before, now->address);
}

/* It has ended by itself before it was ready. */
static void note_gone(struct service_turn *run, struct service_known *before)
{
    if (before->replica.state == SERVICE_STARTS && !before->ended && !before->failed &&
        before->replica.version > 0)
        has_failed(run, before);
    free((char *)(uintptr_t)before->replica.address);
}

/* Both lists are by id. */
int service_note_replicas(struct service_turn *run)
{
    struct service *s = run->s;
    struct service_known *next = calloc((size_t)run->count + 1, sizeof(*next));
    int old = 0, status = next != NULL ? 0 : -1;

    for (int i = 0; status == 0 && i < run->count; i++) {
        for (; old < s->known_count && s->known[old].replica.id < run->list[i].id; old++)
            note_gone(run, &s->known[old]);
        if (old < s->known_count && s->known[old].replica.id == run->list[i].id)
            next[i] = s->known[old++];
        else
            next[i].replica = (struct service_replica){.shard = run->list[i].shard};
        status = note_one(run, &next[i], &run->list[i]);
    }
    if (status != 0) {
        free(next);
        return -1;
    }
    for (; old < s->known_count; old++)
        note_gone(run, &s->known[old]);
    free(s->known);
    s->known = next;
    s->known_count = run->count;
    return 0;
}

static void tell_ready(struct service_turn *run)
{
    struct service *s = run->s;

    for (int i = 0; i < s->shard_count; i++) {
        struct service_shard *shard = &s->shards[i];
        int64_t oldest = INT64_MAX;

        shard->ready = shard->total = 0;
        for (int k = 0; k < s->known_count; k++) {
            const struct service_replica *replica = &s->known[k].replica;

            if (replica->shard != shard->number)
                continue;
            shard->total += replica->state != SERVICE_LEAVES;
            if (replica->state != SERVICE_READY || s->known[k].ended)
                continue;
            shard->ready++;
            oldest = replica->version < oldest ? replica->version : oldest;
        }
        shard_commands_ready(s->brain, shard->number, shard->ready, oldest);
    }
}

/* The lowest epoch of all routers. Without one nobody asks by older routes. */
static void tell_routed(struct service_turn *run)
{
    struct service *s = run->s;
    int64_t epoch = s->epoch;

    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], run->now) && s->routers[i].epoch < epoch)
            epoch = s->routers[i].epoch;
    shard_commands_routed(s->brain, epoch);
}

/* What somebody asks for, by what routers that live have said last. */
static void tell_asked(struct service_turn *run)
{
    struct service *s = run->s;

    for (int i = 0; i < s->router_count; i++) {
        const struct service_router *router = &s->routers[i];
        size_t count = router->asked != NULL ? json_object_array_length(router->asked) : 0;

        if (!service_router_lives(s, router, run->now))
            continue;
        for (size_t k = 0; k < count; k++)
            shard_commands_asked(
                s->brain, json_object_get_string(json_object_array_get_idx(router->asked, k)));
        if (router->asked_all)
            shard_commands_asked_all(s->brain);
    }
}

void service_tell(struct service_turn *run)
{
    tell_ready(run);
    if (!service_holds(run->s))
        tell_routed(run);
    tell_asked(run);
}
