/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: what is to be done now (service.h). */
#include "lib/service_private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* ---- actions --------------------------------------------------------------------------------- */

void service_items_clear(struct shard_item *items, int count)
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
        service_items_clear(actions->list[i].items,
                            actions->list[i].items != NULL ? actions->list[i].count : 0);
        free(actions->list[i].text);
    }
    free(actions->list);
    *actions = (struct service_actions){0};
}

/* NULL: out of memory. */
struct service_action *service_act(struct service_actions *out, enum service_action_kind kind,
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
int service_act_text(struct service_actions *out, enum service_action_kind kind, int shard,
                     char *text)
{
    struct service_action *action = text != NULL ? service_act(out, kind, shard) : NULL;

    if (action == NULL) {
        free(text);
        return -1;
    }
    action->text = text;
    return 0;
}

int service_say(struct service_actions *out, int shard, const char *what)
{
    char *text = NULL;

    if (asprintf(&text, "shard_%d: %s", shard, what) < 0)
        text = NULL;
    return service_act_text(out, SERVICE_SAY, shard, text);
}

/* ---- the brain's commands -------------------------------------------------------------------- */

static int set_models(struct service_turn *run, struct shard_command *command)
{
    struct service_shard *shard = service_shard_add(run->s, command->shard);

    if (shard == NULL)
        return -1;
    service_items_clear(shard->items, shard->count);
    shard->items = command->items;
    shard->count = command->count;
    command->items = NULL;
    command->count = 0;
    shard->epoch = command->epoch;
    shard->list_due = true;
    return 0;
}

static int update_shard(struct service_turn *run, const struct shard_command *command)
{
    struct service_shard *shard = service_shard_add(run->s, command->shard);

    if (shard == NULL || service_set_replicas(run, shard) != 0)
        return -1;
    rollout_begin(&shard->rollout, command->epoch);
    shard->failures = 0;
    shard->pause = 0;
    shard->list_due = true;
    return shard->rollout.done ? service_updated(run, command->shard, command->epoch) : 0;
}

static int set_route(struct service_turn *run, const struct shard_command *command)
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

static int take_commands(struct service_turn *run)
{
    struct shard_command_list commands = {0};
    int status = shard_commands_run(run->s->brain, run->now, &commands);

    run->record = run->record || commands.count > 0;
    for (int i = 0; status == 0 && i < commands.count; i++) {
        struct shard_command *command = &commands.list[i];
        char *text = shard_command_text(command);

        status = text != NULL ? service_act_text(&run->later, SERVICE_SAY, command->shard, text)
                              : -1;
        if (status == 0)
            status = command->kind == SHARD_SET_MODELS ? set_models(run, command)
                     : command->kind == SHARD_UPDATE   ? update_shard(run, command)
                                                       : set_route(run, command);
    }
    shard_command_list_clear(&commands);
    return status;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* The leader before may have had shards whose end it could not see to. */
static int clear_others(struct service_turn *run)
{
    int most = run->s->options.brain.max_shards;

    for (int number = 1; number <= most && run->s->ends != NULL; number++)
        if (service_shard(run->s, number) == NULL &&
            (service_size(run, number, 0) != 0 ||
             service_act(&run->later, SERVICE_DROP, number) == NULL))
            return -1;
    return 0;
}

static int say_list(const struct service *s, struct service_actions *out,
                    struct service_shard *shard)
{
    struct shard_program program = shard_commands_program(s->brain, shard->number);
    struct service_action *action = service_act(out, SERVICE_LIST, shard->number);

    shard->list_due = false;
    if (action == NULL)
        return -1;
    action->items = calloc((size_t)shard->count + 1, sizeof(*action->items));
    action->version = service_target(&shard->rollout);
    action->epoch = shard->epoch;
    action->program = program.since;
    action->text = program.application != NULL ? strdup(program.application) : NULL;
    if (action->items == NULL || (program.application != NULL && action->text == NULL))
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
static int say_table(struct service_turn *run, struct service_actions *out)
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
    return service_act_text(out, SERVICE_TABLE, 0, service_table_text(s, s->revision));
}

static int move(struct service_actions *from, struct service_actions *to)
{
    for (int i = 0; i < from->count; i++) {
        struct service_action *action = service_act(to, from->list[i].kind, from->list[i].shard);

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
    struct service_turn run = {
        .s = s, .now = now, .list = list, .count = count, .record = s->record_due};
    int status = service_note_replicas(&run);

    if (s->frozen || s->stops) {
        *again = false;
        return status == 0 ? say_table(&run, out) : -1;
    }
    s->record_due = false;
    if (status == 0) {
        service_tell(&run);
        status = take_commands(&run);
    }
    if (status == 0)
        status = service_scale_shards(&run);
    for (int i = 0; status == 0 && i < s->shard_count;) {
        int number = s->shards[i].number;

        status = service_roll_out(&run, number);
        i += i < s->shard_count && s->shards[i].number == number; /* else it has gone */
    }
    if (status == 0 && s->first)
        status = clear_others(&run);
    if (status == 0 && run.record)
        status = service_act_text(out, SERVICE_RECORD, 0, service_record_text(s, now));
    for (int i = 0; status == 0 && i < s->shard_count; i++)
        if (s->shards[i].list_due)
            status = say_list(s, out, &s->shards[i]);
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

static double changes_deadline(const struct service *s, double now)
{
    double at = shard_commands_deadline(s->brain);

    for (int i = 0; i < s->shard_count; i++)
        if (s->shards[i].pause > now && (!s->shards[i].rollout.done || service_holds(s)))
            at = earlier(at, s->shards[i].pause);
    for (int i = 0; i < s->shard_count; i++)
        at = earlier(at, service_scale_deadline(&s->shards[i].scale, &s->options.scale));
    return at;
}

double service_deadline(const struct service *s, double now)
{
    double at = s->stops ? 0 : changes_deadline(s, now);

    if (s->frozen)
        return 0;
    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], now))
            at = earlier(at, s->routers[i].heard + SERVICE_ROUTER_SILENT);
    return at;
}
