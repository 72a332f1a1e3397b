/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: what is to be done now (service.h). */
#include "lib/service_private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- actions --------------------------------------------------------------------------------- */

static void clear_items(struct shard_item *items, int count)
{
    for (int i = 0; i < count; i++) {
        free(items[i].name);
        free(items[i].version);
    }
    free(items);
}

void service_actions_clear(struct service_actions *actions)
{
    for (int i = 0; i < actions->count; i++) {
        clear_items(actions->list[i].items,
                    actions->list[i].items != NULL ? actions->list[i].count : 0);
        free(actions->list[i].text);
    }
    free(actions->list);
    *actions = (struct service_actions){0};
}

/* NULL: out of memory. */
static struct service_action *act(struct service_actions *out, enum service_action_kind kind,
                                  int shard)
{
    if (out->count == out->room) {
        int room = out->room > 0 ? 2 * out->room : 16;
        struct service_action *more = realloc(out->list, (size_t)room * sizeof(*more));

        if (more == NULL)
            return NULL;
        out->list = more;
        out->room = room;
    }
    out->list[out->count] = (struct service_action){.kind = kind, .shard = shard};
    return &out->list[out->count++];
}

/* text is taken over, also if this fails. */
static int act_text(struct service_actions *out, enum service_action_kind kind, int shard,
                    char *text)
{
    struct service_action *action = text != NULL ? act(out, kind, shard) : NULL;

    if (action == NULL) {
        free(text);
        return -1;
    }
    action->text = text;
    return 0;
}

static int say(struct service_actions *out, int shard, const char *what)
{
    char *text = NULL;

    if (asprintf(&text, "shard_%d: %s", shard, what) < 0)
        text = NULL;
    return act_text(out, SERVICE_SAY, shard, text);
}

/* A run, with what it is about to do. */
struct run {
    struct service *s;
    double now;
    const struct service_replica *list;
    int count;
    struct service_actions later; /* what comes after record, lists and table */
    bool record;                  /* it is to be written */
    bool again;
};

/* ---- what there is --------------------------------------------------------------------------- */

static int64_t target_of(const struct rollout *rollout)
{
    return rollout->back ? rollout->before : rollout->version;
}

static void has_failed(struct run *run, struct service_known *known)
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

static void has_got_ready(struct run *run, const struct service_known *known)
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
static void has_not_loaded(struct run *run, const struct service_replica *before,
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
static int note_one(struct run *run, struct service_known *before,
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
static void note_gone(struct run *run, struct service_known *before)
{
    if (before->replica.state == SERVICE_STARTS && !before->ended && !before->failed &&
        before->replica.version > 0)
        has_failed(run, before);
    free((char *)(uintptr_t)before->replica.address);
}

/* Both lists are by id. */
static int note_replicas(struct run *run)
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

static void tell_ready(struct run *run)
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
static void tell_routed(struct run *run)
{
    struct service *s = run->s;
    int64_t epoch = s->epoch;

    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], run->now) && s->routers[i].epoch < epoch)
            epoch = s->routers[i].epoch;
    shard_commands_routed(s->brain, epoch);
}

/* What somebody asks for, by what routers that live have said last. */
static void tell_asked(struct run *run)
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

/* ---- the brain's commands -------------------------------------------------------------------- */

static int set_models(struct run *run, struct shard_command *command)
{
    struct service_shard *shard = service_shard_add(run->s, command->shard);

    if (shard == NULL)
        return -1;
    clear_items(shard->items, shard->count);
    shard->items = command->items;
    shard->count = command->count;
    command->items = NULL;
    command->count = 0;
    shard->epoch = command->epoch;
    shard->list_due = true;
    return 0;
}

static int64_t sessions_of(const struct run *run, const struct service_shard *shard)
{
    const struct service *s = run->s;
    int64_t sum = 0;

    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], run->now))
            sum += shard->sessions[i];
    return sum;
}

static int set_replicas(const struct run *run, struct service_shard *shard)
{
    const struct service *s = run->s;
    struct rollout *rollout = &shard->rollout;
    int replicas = service_scale_step(&shard->scale, &s->options.scale, sessions_of(run, shard),
                                      run->now);

    rollout->replicas = shard->count > 0 ? replicas : 0;
    rollout->fail_fast = s->options.fail_fast;
    rollout->in_place = s->options.in_place;
    return rollout_limits(replicas, &s->options.surge, &s->options.unavailable, &rollout->limits,
                          NULL);
}

/* Replicas follow the requests. What an update has begun goes on with as many. */
static int scale_shards(struct run *run)
{
    for (int i = 0; i < run->s->shard_count; i++) {
        struct service_shard *shard = &run->s->shards[i];
        int before = shard->rollout.replicas;
        char text[80];

        if (before == 0 || set_replicas(run, shard) != 0)
            continue;
        if (shard->rollout.replicas == before)
            continue;
        run->record = true;
        snprintf(text, sizeof(text), "%d replicas in place of %d: it has %lld requests",
                 shard->rollout.replicas, before, (long long)sessions_of(run, shard));
        if (say(&run->later, shard->number, text) != 0)
            return -1;
    }
    return 0;
}

static int drop(struct run *run, int number)
{
    struct service *s = run->s;
    struct service_shard *shard = service_shard(s, number);
    struct service_action *action = act(&run->later, SERVICE_SIZE, number);

    if (action == NULL || act(&run->later, SERVICE_DROP, number) == NULL)
        return -1;
    clear_items(shard->items, shard->count);
    memmove(shard, shard + 1, (size_t)(&s->shards[s->shard_count] - (shard + 1)) * sizeof(*shard));
    s->shard_count--;
    return 0;
}

static int updated(struct run *run, int number, int64_t version)
{
    const struct service_shard *shard = service_shard(run->s, number);
    bool gone = shard->count == 0 && shard->rollout.replicas == 0 &&
                version == shard->rollout.version;

    run->record = run->again = true;
    if (shard_commands_updated(run->s->brain, number, version, run->now) != 0)
        return -1;
    return gone ? drop(run, number) : 0;
}

static int update_shard(struct run *run, const struct shard_command *command)
{
    struct service_shard *shard = service_shard_add(run->s, command->shard);

    if (shard == NULL || set_replicas(run, shard) != 0)
        return -1;
    rollout_begin(&shard->rollout, command->epoch);
    shard->failures = 0;
    shard->pause = 0;
    shard->list_due = true;
    return shard->rollout.done ? updated(run, command->shard, command->epoch) : 0;
}

static int set_route(struct run *run, const struct shard_command *command)
{
    struct service *s = run->s;
    json_object *keys = json_object_new_object();
    int status = keys != NULL ? 0 : -1;

    if (status != 0)
        return -1;
    json_object_object_foreach (s->keys, key, value) {
        if (json_object_get_int(value) != command->shard)
            json_object_object_add(keys, key, json_object_get(value));
    }
    for (int i = 0; i < command->count; i++)
        json_object_object_add(keys, command->items[i].name, json_object_new_int(command->shard));
    json_object_put(s->keys);
    s->keys = keys;
    s->epoch = command->epoch;
    return 0;
}

static int take_commands(struct run *run)
{
    struct shard_command_list commands = {0};
    int status = shard_commands_run(run->s->brain, run->now, &commands);

    run->record = run->record || commands.count > 0;
    for (int i = 0; status == 0 && i < commands.count; i++) {
        struct shard_command *command = &commands.list[i];
        char *text = shard_command_text(command);

        status = text != NULL ? act_text(&run->later, SERVICE_SAY, command->shard, text) : -1;
        if (status == 0)
            status = command->kind == SHARD_SET_MODELS ? set_models(run, command)
                     : command->kind == SHARD_UPDATE   ? update_shard(run, command)
                                                       : set_route(run, command);
    }
    shard_command_list_clear(&commands);
    return status;
}

/* ---- rolling updates ------------------------------------------------------------------------- */

/* The replicas of a shard, as lib/rollout sees them. */
struct view {
    struct rollout_replica *list;
    int count;
    int waiting; /* they have no room, or are about to be started again */
    int stay;    /* others that do not leave */
};

static int fill_view(const struct run *run, const struct service_shard *shard, struct view *view)
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
            .version = replica->version > 0 ? replica->version : target_of(&shard->rollout),
            .ready = replica->state == SERVICE_READY,
            .leaves = replica->state == SERVICE_LEAVES || known->ended,
        };
    }
    return view->list != NULL ? 0 : -1;
}

static int size(struct run *run, int number, int count)
{
    struct service_action *action = act(&run->later, SERVICE_SIZE, number);

    if (action == NULL)
        return -1;
    action->count = count;
    return 0;
}

static int end(struct run *run, int number, int id)
{
    struct service_action *action = act(&run->later, SERVICE_END, number);

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
static int end_spent(struct run *run, const struct service_shard *shard, struct view *view)
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

static int failed(struct run *run, struct service_shard *shard, const char *what)
{
    char why[sizeof(shard->why) + 200];

    snprintf(why, sizeof(why), "%s%s%s", what, shard->why[0] != '\0' ? ": " : "", shard->why);
    run->record = run->again = true;
    if (say(&run->later, shard->number, why) != 0)
        return -1;
    return shard_commands_failed(run->s->brain, shard->number, shard->rollout.version, why,
                                 run->now);
}

static int carry_out(struct run *run, int number, const struct rollout_actions *actions,
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
            return updated(run, number, action->version);
    }
    return starts > 0 ? size(run, number, view->stay + view->waiting + starts) : 0;
}

/* There may be others than the leader before has asked for: also those that it has told to end. */
static int take_over(struct run *run, int number, const struct view *view)
{
    int ends = 0;

    for (int i = 0; i < run->s->known_count; i++)
        ends += run->s->known[i].replica.shard == number && run->s->known[i].ended;
    if (size(run, number, view->stay + view->waiting + ends) != 0)
        return -1;
    for (int i = 0; i < run->s->known_count; i++)
        if (run->s->known[i].replica.shard == number && run->s->known[i].ended &&
            end(run, number, run->s->known[i].replica.id) != 0)
            return -1;
    return 0;
}

static int roll_out(struct run *run, int number)
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
        status = size(run, number,
                      shard->rollout.replicas == 0 || view.stay > most ? view.stay : most);
    if (status == 0)
        status = carry_out(run, number, &actions, &view);
    free(actions.list);
    free(view.list);
    return status;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* The leader before may have had shards whose end it could not see to. */
static int clear_others(struct run *run)
{
    int most = run->s->options.brain.max_shards;

    for (int number = 1; number <= most && run->s->ends != NULL; number++)
        if (service_shard(run->s, number) == NULL &&
            (size(run, number, 0) != 0 || act(&run->later, SERVICE_DROP, number) == NULL))
            return -1;
    return 0;
}

static int say_list(struct service_actions *out, struct service_shard *shard)
{
    struct service_action *action = act(out, SERVICE_LIST, shard->number);

    shard->list_due = false;
    if (action == NULL)
        return -1;
    action->items = calloc((size_t)shard->count + 1, sizeof(*action->items));
    action->version = target_of(&shard->rollout);
    action->epoch = shard->epoch;
    if (action->items == NULL)
        return -1;
    for (int i = 0; i < shard->count; i++) {
        struct shard_item *item = &action->items[action->count++];

        item->name = strdup(shard->items[i].name);
        item->version = strdup(shard->items[i].version);
        if (item->name == NULL || item->version == NULL)
            return -1;
    }
    return 0;
}

/* Has a shard no replicas so far that could take the requests of another job's? */
static bool is_behind(const struct service *s, int number)
{
    const struct service_shard *shard = service_shard(s, number);

    if (shard == NULL || shard->ready == 0)
        return true;
    if (s->hold == SERVICE_HOLD_WHOLE)
        return shard->ready < shard->rollout.replicas;
    for (int i = 0; i < s->known_count; i++)
        if (s->known[i].replica.shard == number && s->known[i].replica.state == SERVICE_STARTS)
            return true;
    return false;
}

static bool is_held(struct service *s)
{
    if (s->hold == SERVICE_HOLD_NONE)
        return false;
    json_object_object_foreach (s->keys, key, number) {
        (void)key;
        if (is_behind(s, json_object_get_int(number)))
            return true;
    }
    s->hold = SERVICE_HOLD_NONE;
    return false;
}

/* Another table than the last one gets the next revision. */
static int say_table(struct run *run, struct service_actions *out)
{
    struct service *s = run->s;
    char *text;

    if (is_held(s))
        return 0;
    s->told = true;
    text = service_table_text(s, 0);
    if (text == NULL)
        return -1;
    if (s->table != NULL && strcmp(s->table, text) == 0) {
        free(text);
        return 0;
    }
    free(s->table);
    s->table = text;
    s->revision++;
    for (int i = 0; i < s->known_count; i++) {
        struct service_known *known = &s->known[i];

        if (known->replica.state == SERVICE_READY && !known->ended)
            known->drains = 0;
        else if (known->drains == 0)
            known->drains = s->revision;
    }
    return act_text(out, SERVICE_TABLE, 0, service_table_text(s, s->revision));
}

static int move(struct service_actions *from, struct service_actions *to)
{
    for (int i = 0; i < from->count; i++) {
        struct service_action *action = act(to, from->list[i].kind, from->list[i].shard);

        if (action == NULL)
            return -1;
        *action = from->list[i];
        from->list[i].text = NULL;
        from->list[i].items = NULL;
    }
    return 0;
}

int service_run(struct service *s, double now, const struct service_replica *list, int count,
                struct service_actions *out, bool *again)
{
    struct run run = {.s = s, .now = now, .list = list, .count = count, .record = s->record_due};
    int status = note_replicas(&run);

    if (s->frozen) {
        *again = false;
        return status == 0 ? say_table(&run, out) : -1;
    }
    s->record_due = false;
    if (status == 0) {
        tell_ready(&run);
        if (!service_holds(s))
            tell_routed(&run);
        tell_asked(&run);
        status = take_commands(&run);
    }
    if (status == 0)
        status = scale_shards(&run);
    for (int i = 0; status == 0 && i < s->shard_count;) {
        int number = s->shards[i].number;

        status = roll_out(&run, number);
        i += i < s->shard_count && s->shards[i].number == number; /* else it has gone */
    }
    if (status == 0 && s->first)
        status = clear_others(&run);
    if (status == 0 && run.record)
        status = act_text(out, SERVICE_RECORD, 0, service_record_text(s, now));
    for (int i = 0; status == 0 && i < s->shard_count; i++)
        if (s->shards[i].list_due)
            status = say_list(out, &s->shards[i]);
    if (status == 0)
        status = say_table(&run, out);
    if (status == 0)
        status = move(&run.later, out);
    service_actions_clear(&run.later);
    s->first = false;
    *again = run.again;
    return status;
}

static double earlier(double a, double b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

double service_deadline(const struct service *s)
{
    double at;

    if (s->frozen)
        return 0;
    at = shard_commands_deadline(s->brain);
    for (int i = 0; i < s->shard_count; i++)
        if (!s->shards[i].rollout.done || service_holds(s))
            at = earlier(at, s->shards[i].pause);
    for (int i = 0; i < s->shard_count; i++)
        at = earlier(at, service_scale_deadline(&s->shards[i].scale, &s->options.scale));
    for (int i = 0; i < s->router_count; i++)
        at = earlier(at, s->routers[i].heard + SERVICE_ROUTER_SILENT);
    return at;
}
