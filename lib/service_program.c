/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: the application that its replicas are started with (service.h). */
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/service_private.h"

static bool is(const char *a, const char *b)
{
    return a != NULL && strcmp(a, b) == 0;
}

static void clear_applied(struct service *s)
{
    free(s->applied.from);
    free(s->applied.to);
    s->applied.from = s->applied.to = NULL;
}

static int set_applied(struct service *s, const char *from, const char *to)
{
    char *copies[2] = {strdup(from), strdup(to)};

    clear_applied(s);
    s->applied.from = copies[0];
    s->applied.to = copies[1];
    if (copies[0] != NULL && copies[1] != NULL)
        return 0;
    clear_applied(s);
    return -1;
}

/* Whose job file says something new since it was applied wants that, and not what was applied. */
static int read_applied(struct service *s, json_object *record)
{
    json_object *applied = json_object_object_get(record, "applied");
    const char *from = json_get_string(applied, "from"), *to = json_get_string(applied, "to");

    if (from == NULL || to == NULL || (!is(s->file, from) && !is(s->file, to)))
        return 0;
    return set_applied(s, from, to);
}

int service_begin_application(struct service *s, const char *file, json_object *record, double now)
{
    int64_t job = s->options.job;

    s->file = strdup(file);
    if (s->file == NULL || read_applied(s, record) != 0)
        return -1;
    json_get_int(record, "job", 0, UINT32_MAX, &job);
    return shard_commands_begin(s->brain, s->applied.to != NULL ? s->applied.to : s->file,
                                job != s->options.job, now);
}

int service_apply(struct service *s, const char *application, double now)
{
    if (is(s->file, application))
        clear_applied(s);
    else if (set_applied(s, s->file, application) != 0)
        return -1;
    s->record_due = true;
    return shard_commands_application(s->brain, application, now);
}

void service_add_applied(const struct service *s, json_object *record)
{
    json_object *applied;

    if (s->applied.to == NULL)
        return;
    applied = json_object_new_object();
    json_object_object_add(applied, "from", json_object_new_string(s->applied.from));
    json_object_object_add(applied, "to", json_object_new_string(s->applied.to));
    json_object_object_add(record, "applied", applied);
}

bool service_is_other(const struct service *s, const struct service_replica *replica)
{
    return replica->version > 0 &&
           replica->program != shard_commands_program(s->brain, replica->shard).since;
}

int service_updated_count(const struct service *s, const struct service_shard *shard)
{
    int count = 0;

    for (int i = 0; i < s->known_count; i++) {
        const struct service_replica *replica = &s->known[i].replica;

        count += replica->shard == shard->number && replica->state == SERVICE_READY &&
                 !s->known[i].ended && replica->version == service_target(&shard->rollout) &&
                 !service_is_other(s, replica);
    }
    return count;
}

/* How many shards have the application that there should be, of those that have models. */
void service_describe_program(const struct service *s, json_object *into)
{
    json_object *json = json_object_new_object();
    int have = 0, failed = 0, all = 0;

    for (int i = 0; i < s->shard_count; i++) {
        struct shard_program program = shard_commands_program(s->brain, s->shards[i].number);

        if (s->shards[i].count == 0 || program.application == NULL)
            continue;
        all++;
        failed += program.failed;
        have += program.reached;
    }
    json_object_object_add(json, "run", json_object_new_string(shard_commands_wanted(s->brain)));
    json_object_object_add(json, "shards", json_object_new_int(all));
    json_object_object_add(json, "have", json_object_new_int(have));
    json_object_object_add(json, "failed", json_object_new_int(failed));
    json_object_object_add(into, "program", json);
}
