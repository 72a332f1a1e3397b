/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: how many replicas each shard has, and their rolling updates (service.h). */
#include "lib/service_private.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how many -------------------------------------------------------------------------------- */

static int64_t sessions_of(const struct service_turn *run, const struct service_shard *shard)
{
    const struct service *s = run->s;
    int64_t sum = 0;

    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], run->now))
            sum += shard->sessions[i];
    return sum;
}

int service_set_replicas(const struct service_turn *run, struct service_shard *shard)
{
    const struct service *s = run->s;
    struct rollout *rollout = &shard->rollout;
    int replicas = service_scale_step(&shard->scale, &s->options.scale, sessions_of(run, shard),
                                      run->now);

    rollout->replicas = shard->count > 0 ? replicas : 0;
    rollout->fail_fast = s->options.fail_fast;
    rollout->in_place = s->options.in_place;
    rollout->one_first = s->options.one_first;
    return rollout_limits(replicas, &s->options.surge, &s->options.unavailable, &rollout->limits,
                          NULL);
}

/* Replicas follow the requests. What an update has begun goes on with as many. */
int service_scale_shards(struct service_turn *run)
{
    for (int i = 0; i < run->s->shard_count; i++) {
        struct service_shard *shard = &run->s->shards[i];
        int before = shard->rollout.replicas;
        char text[80];

        if (before == 0 || service_set_replicas(run, shard) != 0)
            continue;
        if (shard->rollout.replicas == before)
            continue;
        run->record = true;
        snprintf(text, sizeof(text), "%d replicas in place of %d: it has %lld requests",
                 shard->rollout.replicas, before, (long long)sessions_of(run, shard));
        if (service_say(&run->later, shard->number, text) != 0)
            return -1;
    }
    return 0;
}

static int drop(struct service_turn *run, int number)
{
    struct service *s = run->s;
    struct service_shard *shard = service_shard(s, number);
    struct service_action *action = service_act(&run->later, SERVICE_SIZE, number);

    if (action == NULL || service_act(&run->later, SERVICE_DROP, number) == NULL)
        return -1;
    service_items_clear(shard->items, shard->count);
    memmove(shard, shard + 1, (size_t)(&s->shards[s->shard_count] - (shard + 1)) * sizeof(*shard));
    s->shard_count--;
    return 0;
}

int service_updated(struct service_turn *run, int number, int64_t version)
{
    const struct service_shard *shard = service_shard(run->s, number);
    bool gone = shard->count == 0 && shard->rollout.replicas == 0 &&
                version == shard->rollout.version;

    run->record = run->again = true;
    if (shard_commands_updated(run->s->brain, number, version, run->now) != 0)
        return -1;
    return gone ? drop(run, number) : 0;
}

/* ---- rolling updates ------------------------------------------------------------------------- */

/* The replicas of a shard, as lib/rollout sees them. */
struct view {
    struct rollout_replica *list;
    int count;
    int waiting; /* they have no room, or are about to be started again */
    int stay;    /* others that do not leave */
};

static int fill_view(const struct service_turn *run, const struct service_shard *shard,
                     struct view *view)
{
    const struct service *s = run->s;

    *view = (struct view){.list = calloc((size_t)s->known_count + 1, sizeof(*view->list))};
    for (int i = 0; view->list != NULL && i < s->known_count; i++) {
        const struct service_known *known = &s->known[i];
        const struct service_replica *replica = &known->replica;

        if (replica->shard != shard->number)
            continue;
        if (replica->state == SERVICE_WAITS) {
            view->waiting += !known->ended;
            continue;
        }
        view->stay += replica->state != SERVICE_LEAVES && !known->ended;
        view->list[view->count++] = (struct rollout_replica){
            .id = replica->id,
            .version = replica->version > 0 ? replica->version : service_target(&shard->rollout),
            .ready = replica->state == SERVICE_READY,
            .leaves = replica->state == SERVICE_LEAVES || known->ended,
            .other = service_is_other(s, replica),
        };
    }
    return view->list != NULL ? 0 : -1;
}

int service_size(struct service_turn *run, int number, int count)
{
    struct service_action *action = service_act(&run->later, SERVICE_SIZE, number);

    if (action == NULL)
        return -1;
    action->count = count;
    return 0;
}

static int end(struct service_turn *run, int number, int id)
{
    struct service_action *action = service_act(&run->later, SERVICE_END, number);

    if (action == NULL)
        return -1;
    action->id = id;
    run->record = true;
    for (int i = 0; i < run->s->known_count; i++)
        if (run->s->known[i].replica.id == id)
            run->s->known[i].ended = true;
    return 0;
}

/* What nothing starts again makes room for others, as long as the shard is updated, or its replicas
 * are to take the place of another job's. */
static int end_spent(struct service_turn *run, const struct service_shard *shard, struct view *view)
{
    if (shard->rollout.done && !service_holds(run->s))
        return 0;
    for (int i = 0; i < run->s->known_count; i++) {
        const struct service_known *known = &run->s->known[i];

        if (known->replica.shard != shard->number || known->replica.state != SERVICE_WAITS ||
            !known->replica.spent || known->ended)
            continue;
        if (end(run, shard->number, known->replica.id) != 0)
            return -1;
        view->waiting--;
    }
    return 0;
}

static int failed(struct service_turn *run, struct service_shard *shard, const char *what)
{
    char why[sizeof(shard->why) + 200];

    snprintf(why, sizeof(why), "%s%s%s", what, shard->why[0] != '\0' ? ": " : "", shard->why);
    run->record = run->again = true;
    if (service_say(&run->later, shard->number, why) != 0)
        return -1;
    return shard_commands_failed(run->s->brain, shard->number, shard->rollout.version, why,
                                 run->now);
}

static int carry_out(struct service_turn *run, int number, const struct rollout_actions *actions,
                     const struct view *view)
{
    struct service_shard *shard = service_shard(run->s, number);
    int starts = 0;

    /* The brain says with which list the version before is started. */
    for (int i = 0; i < actions->count; i++)
        if (actions->list[i].kind == ROLLOUT_FAILED)
            return failed(run, shard, actions->list[i].text);
    shard->waits[0] = '\0';
    for (int i = 0; i < actions->count; i++) {
        const struct rollout_action *action = &actions->list[i];

        starts += action->kind == ROLLOUT_START;
        if (action->kind == ROLLOUT_WAIT && !shard->rollout.done)
            snprintf(shard->waits, sizeof(shard->waits), "%s", action->text);
        if (action->kind == ROLLOUT_DRAIN && end(run, number, action->id) != 0)
            return -1;
        if (action->kind == ROLLOUT_DONE)
            return service_updated(run, number, action->version);
    }
    return starts > 0 ? service_size(run, number, view->stay + view->waiting + starts) : 0;
}

/* There may be others than the leader before has asked for: also those that it has told to end. */
static int take_over(struct service_turn *run, int number, const struct view *view)
{
    int ends = 0;

    for (int i = 0; i < run->s->known_count; i++)
        ends += run->s->known[i].replica.shard == number && run->s->known[i].ended;
    if (service_size(run, number, view->stay + view->waiting + ends) != 0)
        return -1;
    for (int i = 0; i < run->s->known_count; i++)
        if (run->s->known[i].replica.shard == number && run->s->known[i].ended &&
            end(run, number, run->s->known[i].replica.id) != 0)
            return -1;
    return 0;
}

int service_roll_out(struct service_turn *run, int number)
{
    struct service_shard *shard = service_shard(run->s, number);
    struct rollout_actions actions = {0};
    struct view view;
    int status, most = shard->rollout.done ? shard->rollout.replicas : INT_MAX;

    if (shard->rollout.version == 0)
        return 0;
    status = fill_view(run, shard, &view);
    if (status == 0 && run->s->first)
        status = take_over(run, number, &view);
    if (status == 0)
        status = end_spent(run, shard, &view);
    if (status == 0)
        status = rollout_run(&shard->rollout, view.list, view.count,
                             view.waiting > 0 || run->now < shard->pause ? 0 : INT_MAX, &actions);
    /* Nobody waits for those any more that still have no room. */
    if (status == 0 && view.waiting > 0 &&
        (shard->rollout.replicas == 0 || view.stay + view.waiting > most))
        status = service_size(run, number,
                              shard->rollout.replicas == 0 || view.stay > most ? view.stay : most);
    if (status == 0)
        status = carry_out(run, number, &actions, &view);
    free(actions.list);
    free(view.list);
    return status;
}
