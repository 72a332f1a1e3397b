/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which commands a service with shards can be given by now. */
#include "lib/shard_commands_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- commands -------------------------------------------------------------------------------- */

static void clear_command(struct shard_command *command)
{
    for (int i = 0; i < command->count; i++) {
        free(command->items[i].name);
        free(command->items[i].version);
    }
    free(command->items);
}

void shard_command_list_clear(struct shard_command_list *list)
{
    for (int i = 0; i < list->count; i++)
        clear_command(&list->list[i]);
    free(list->list);
    *list = (struct shard_command_list){0};
}

static struct shard_command *add(struct shard_command_list *out, enum shard_command_kind kind,
                                 int shard, int64_t epoch, int items)
{
    struct shard_command command = {.kind = kind, .shard = shard, .epoch = epoch};

    if (out->count == out->room) {
        int room = out->room > 0 ? 2 * out->room : 16;
        struct shard_command *more = realloc(out->list, (size_t)room * sizeof(*more));

        if (more == NULL)
            return NULL;
        out->list = more;
        out->room = room;
    }
    command.items = calloc((size_t)items + 1, sizeof(*command.items));
    if (command.items == NULL)
        return NULL;
    out->list[out->count] = command;
    return &out->list[out->count++];
}

static int add_item(struct shard_command *command, const char *name, const char *version)
{
    struct shard_item *item = &command->items[command->count++];

    item->name = strdup(name);
    item->version = version != NULL ? strdup(version) : NULL;
    return item->name != NULL && (version == NULL || item->version != NULL) ? 0 : -1;
}

char *shard_command_text(const struct shard_command *command)
{
    static const char *const verbs[] = {"set_models", "update_shard", "set_route"};
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    if (stream == NULL)
        return NULL;
    fprintf(stream, "%s(shard_%d", verbs[command->kind], command->shard);
    if (command->kind != SHARD_UPDATE)
        fputs(", [", stream);
    for (int i = 0; i < command->count; i++) {
        fprintf(stream, "%s%s", i > 0 ? ", " : "", command->items[i].name);
        if (command->items[i].version != NULL)
            fprintf(stream, "_%s", command->items[i].version);
    }
    fputs(command->kind != SHARD_UPDATE ? "])" : ")", stream);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* All replicas that are ready have the model, and one is ready. */
static bool can_serve(const struct shard *shard, const struct shard_model *model)
{
    const struct shard_entry *entry;

    if (shard == NULL || shard->ready < 1)
        return false;
    entry = shard_list_find(&shard->now, model);
    return entry != NULL && entry->since <= shard->done && entry->since <= shard->oldest;
}

/* Routes that the last leader has decided on are said again first, and together. False: one of them
 * would have nobody who answers. */
static bool repeat_routes(struct shard_commands *s, bool *repeats)
{
    *repeats = false;
    for (int i = 0; i < s->shard_count; i++)
        *repeats = *repeats || s->shards[i]->repeat_route;
    for (int i = 0; *repeats && i < s->count; i++) {
        struct shard *shard = shard_numbered(s, s->models[i]->routed);

        if (shard != NULL && shard->repeat_route && !s->models[i]->gone &&
            !can_serve(shard, s->models[i]))
            return false;
    }
    return true;
}

static int add_routes(struct shard_commands *s, struct shard_command_list *out, bool gains,
                      int64_t epoch)
{
    for (int i = 0; i < s->shard_count; i++) {
        struct shard *shard = s->shards[i];
        struct shard_command *command;
        int keys = 0;

        if (!shard->route_changes || shard->gains != gains)
            continue;
        for (int j = 0; j < s->count; j++)
            keys += s->keys[j]->routed == shard->number;
        command = add(out, SHARD_SET_ROUTE, shard->number, epoch, keys);
        if (command == NULL)
            return -1;
        for (int j = 0; j < s->count; j++)
            if (s->keys[j]->routed == shard->number &&
                add_item(command, s->keys[j]->key, NULL) != 0)
                return -1;
        shard->route_epoch = epoch;
        shard->repeat_route = false;
        s->counts.routes++;
    }
    return 0;
}

static void switch_route(struct shard_commands *s, struct shard_model *model, struct shard *to)
{
    struct shard *from = shard_numbered(s, model->routed);

    if (from != NULL)
        from->route_changes = true;
    if (to != NULL)
        to->route_changes = to->gains = true;
    model->routed = to != NULL ? to->number : 0;
}

static int next_routes(struct shard_commands *s, struct shard_command_list *out)
{
    bool changes = false, repeats;

    for (int i = 0; i < s->shard_count; i++)
        s->shards[i]->route_changes = s->shards[i]->gains = false;
    if (!repeat_routes(s, &repeats))
        return 0;
    for (int i = 0; i < s->count; i++) {
        struct shard_model *model = s->models[i];
        struct shard *home = shard_numbered(s, model->home);

        if (model->gone && model->routed > 0)
            switch_route(s, model, NULL);
        else if (!model->gone && model->home != model->routed && can_serve(home, model))
            switch_route(s, model, home);
    }
    for (int i = 0; i < s->shard_count; i++) {
        s->shards[i]->route_changes = s->shards[i]->route_changes || s->shards[i]->repeat_route;
        changes = changes || s->shards[i]->route_changes;
    }
    if (!changes)
        return 0;
    s->epoch++;
    return add_routes(s, out, true, s->epoch) != 0 ? -1 : add_routes(s, out, false, s->epoch);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* What a shard should have, against what it has. */
struct difference {
    struct shard_list next; /* borrows the versions */
    int added, removed, changed, leaving;
    bool application;
};

static int fill_buckets(struct shard_commands *s)
{
    struct shard_model **buckets = realloc(s->buckets, ((size_t)s->count + 1) * sizeof(*buckets));
    int place = 0;

    if (buckets == NULL)
        return -1;
    s->buckets = buckets;
    for (int i = 0; i < s->shard_count; i++)
        s->shards[i]->want_count = 0;
    for (int i = 0; i < s->count; i++) {
        struct shard *home = shard_numbered(s, s->models[i]->home);

        if (home != NULL)
            home->want_count++;
    }
    for (int i = 0; i < s->shard_count; i++) {
        s->shards[i]->want = buckets + place;
        place += s->shards[i]->want_count;
        s->shards[i]->want_count = 0;
    }
    for (int i = 0; i < s->count; i++) {
        struct shard *home = shard_numbered(s, s->models[i]->home);

        if (home != NULL)
            home->want[home->want_count++] = s->models[i];
    }
    return 0;
}

/* Requests for it may still come to the shard. */
static bool still_asked(const struct shard_commands *s, const struct shard *shard,
                        const struct shard_model *model)
{
    return model->routed == shard->number || shard->route_epoch > s->routed;
}

static void put(struct difference *d, struct shard_model *model, char *version, int64_t size,
                int64_t since)
{
    d->next.list[d->next.count++] = (struct shard_entry){model, version, size, since};
}

/* Both lists are by name. */
static void merge(const struct shard_commands *s, const struct shard *shard, struct difference *d)
{
    int have = 0, want = 0;

    while (have < shard->now.count || want < shard->want_count) {
        const struct shard_entry *e = have < shard->now.count ? &shard->now.list[have] : NULL;
        struct shard_model *model = want < shard->want_count ? shard->want[want] : NULL;
        int order = e == NULL ? 1 : model == NULL ? -1 : strcmp(e->model->name, model->name);

        if (order < 0) {
            if (still_asked(s, shard, e->model)) {
                d->leaving++;
                put(d, e->model, e->version, e->size, e->since);
            } else {
                d->removed++;
            }
        } else if (order > 0) {
            d->added++;
            put(d, model, model->planned, model->planned_size, 0);
        } else {
            d->changed += strcmp(e->version, model->planned) != 0;
            put(d, model, model->planned, model->planned_size, e->since);
        }
        have += order <= 0;
        want += order >= 0;
    }
}

static bool has_failed(const struct shard *shard, const char *application)
{
    return shard->bad_application != NULL && strcmp(shard->bad_application, application) == 0;
}

static int compare(const struct shard_commands *s, const struct shard *shard, struct difference *d)
{
    *d = (struct difference){0};
    d->next.list = calloc((size_t)(shard->now.count + shard->want_count) + 1,
                          sizeof(*d->next.list));
    if (d->next.list == NULL)
        return -1;
    merge(s, shard, d);
    d->application = strcmp(shard->application, s->application) != 0 && d->next.count > 0 &&
                     !has_failed(shard, s->application);
    return 0;
}

/* Is there anything to be done that can be done? */
static bool is_due(const struct shard_commands *s, const struct shard *shard,
                   const struct difference *d)
{
    int64_t size = shard_list_size(&d->next);

    if (shard->update != shard->done && !shard->insists)
        return false; /* one update at a time */
    if (d->added + d->removed + d->changed == 0 && !d->application)
        return false;
    return size <= s->options.capacity || size <= shard_list_size(&shard->now);
}

static bool needs_update(const struct shard_commands *s, const struct difference *d)
{
    return d->added > 0 || d->removed > 0 || d->application ||
           (d->changed > 0 && s->options.restarts);
}

static int say_list(struct shard_commands *s, const struct shard *shard,
                    struct shard_command_list *out)
{
    struct shard_command *command = add(out, SHARD_SET_MODELS, shard->number, shard->epoch,
                                        shard->now.count);

    if (command == NULL)
        return -1;
    for (int i = 0; i < shard->now.count; i++)
        if (add_item(command, shard->now.list[i].model->name, shard->now.list[i].version) != 0)
            return -1;
    s->counts.lists++;
    return 0;
}

static int say_update(struct shard_commands *s, const struct shard *shard,
                      struct shard_command_list *out)
{
    s->counts.updates++;
    s->counts.disruptive += shard->done > 0 && shard->now.count > 0;
    return add(out, SHARD_UPDATE, shard->number, shard->update, 0) != NULL ? 0 : -1;
}

/* What did not get ready is not started again by an update that has another reason, nor in a shard
 * that is new. -1: out of memory. */
static int choose_application(const struct shard_commands *s, struct shard *shard)
{
    const struct shard *other = NULL;

    for (int i = 0; shard->done == 0 && i < s->shard_count; i++)
        if (has_failed(s->shards[i], s->application) && s->shards[i]->good_application[0] != '\0')
            other = s->shards[i];
    if (has_failed(shard, s->application))
        return 0;
    if (other != NULL && shard_text_set(&shard->bad_application, s->application) != 0)
        return -1;
    shard->program = shard->update;
    return shard_text_set(&shard->application,
                          other != NULL ? other->good_application : s->application);
}

/* An update that is of the application alone shares its epoch with those of other shards. */
static int change(struct shard_commands *s, struct shard *shard, struct difference *d,
                  int64_t *application_epoch, struct shard_command_list *out)
{
    bool list = d->added + d->removed + d->changed > 0;

    if (list) {
        shard->epoch = ++s->epoch;
        for (int i = 0; i < d->next.count; i++)
            if (d->next.list[i].since == 0)
                d->next.list[i].since = shard->epoch;
        if (shard_list_copy(&shard->now, &d->next) != 0 || say_list(s, shard, out) != 0)
            return -1;
    }
    if (!needs_update(s, d))
        return shard->update == shard->done ? shard_list_copy(&shard->good, &shard->now) : 0;
    if (!list && *application_epoch == 0)
        *application_epoch = ++s->epoch;
    shard->update = list ? shard->epoch : *application_epoch;
    shard->back = shard->insists = false;
    shard->closed = shard->now.count == 0;
    if (strcmp(shard->application, s->application) != 0 && choose_application(s, shard) != 0)
        return -1;
    return say_update(s, shard, out);
}

/* A shard of which a model is about to leave waits with what else it has to do: one update then
 * does both. It waits no longer than operations do. No two shards wait for each other: a model only
 * goes to a shard that has more room than its own and itself together. */
static bool waits(const struct shard_commands *s, const struct difference *d, double now)
{
    return d->leaving > 0 && needs_update(s, d) && now < s->planned + s->options.window;
}

/* What the last leader has said, or what is so again after an update that failed. */
static int repeat(struct shard_commands *s, struct shard *shard, struct shard_command_list *out)
{
    shard->repeat = false;
    if (say_list(s, shard, out) != 0)
        return -1;
    return shard->update != shard->done || shard->back ? say_update(s, shard, out) : 0;
}

static int next_list(struct shard_commands *s, struct shard *shard, double now,
                     int64_t *application_epoch, struct shard_command_list *out)
{
    struct difference d;
    int status = 0, had = shard->now.count;
    bool due;

    if (compare(s, shard, &d) != 0)
        return -1;
    due = is_due(s, shard, &d);
    if (due && waits(s, &d, now)) {
        s->wait = s->planned + s->options.window;
        due = false;
    }
    if (due && needs_update(s, &d))
        shard->repeat = false; /* one list and one update are enough */
    if (shard->repeat)
        status = repeat(s, shard, out);
    if (due && status == 0)
        status = change(s, shard, &d, application_epoch, out);
    if (shard->now.count < had && s->refused > 0)
        shard_commands_wait(s, now); /* there is room that was not there before */
    free(d.next.list);
    return status;
}

static int next_lists(struct shard_commands *s, double now, struct shard_command_list *out)
{
    int64_t application_epoch = 0;

    if (fill_buckets(s) != 0)
        return -1;
    s->wait = 0;
    for (int i = 0; i < s->shard_count; i++)
        if (next_list(s, s->shards[i], now, &application_epoch, out) != 0)
            return -1;
    return 0;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Models that leave for others are planned for at once. */
static int plan(struct shard_commands *s, double now)
{
    int more;

    if (s->moved) {
        s->moved = false;
        return 0;
    }
    shard_commands_wake(s, now);
    do {
        bool due = s->at_once || (s->pending && now >= s->since + s->options.window);

        if (due && shard_commands_place(s, now) != 0)
            return -1;
        more = shard_commands_make_room(s, now);
    } while (more > 0);
    for (int i = 0; i < s->count; i++)
        s->models[i]->asked = false;
    return more;
}

static double earlier(double a, double b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

int shard_commands_run(struct shard_commands *s, double now, struct shard_command_list *out)
{
    if (plan(s, now) != 0)
        return -1;
    if (next_routes(s, out) != 0 || next_lists(s, now, out) != 0)
        return -1;
    shard_commands_sweep(s, now);
    return 0;
}

double shard_commands_deadline(const struct shard_commands *s)
{
    double planned = s->pending ? s->since + s->options.window : 0;

    return earlier(earlier(planned, s->wait), shard_commands_idle_at(s));
}
