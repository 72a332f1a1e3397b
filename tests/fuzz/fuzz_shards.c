/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the record of a service with shards, amounts of a rolling update, and answers of
 * haproxy. A record that is accepted goes on, comes to rest, has no request without a shard that
 * has its model, and can be written and read again. */
#include "tests/fuzz/fuzz.h"

#include "lib/haproxy_text.h"
#include "lib/json_text.h"
#include "lib/rollout.h"
#include "lib/shard_commands.h"
#include "lib/shard_plan.h"

#define ROUNDS 40

static const struct shard_commands_options options = {
    .capacity = 100, .max_shards = 8, .default_size = 10, .window = 60};

static void check_same(const struct shard_commands *s)
{
    json_object *record = shard_commands_json(s), *again;
    struct shard_commands *copy;
    struct error err = {""};

    MUST(record != NULL);
    copy = shard_commands_read(&options, record, &err);
    MUST(copy != NULL);
    again = shard_commands_json(copy);
    MUST(strcmp(json_object_to_json_string(record), json_object_to_json_string(again)) == 0);
    json_object_put(again);
    json_object_put(record);
    shard_commands_destroy(copy);
}

/* Each command is carried out at once. */
static void obey(struct shard_commands *s, const struct shard_command *command, double now)
{
    char *text = shard_command_text(command);

    MUST(text != NULL && strchr(text, '\n') == NULL);
    free(text);
    if (command->kind == SHARD_UPDATE) {
        shard_commands_ready(s, command->shard, 1, command->epoch);
        MUST(shard_commands_updated(s, command->shard, command->epoch, now) == 0);
    } else if (command->kind == SHARD_SET_ROUTE) {
        shard_commands_routed(s, command->epoch);
    }
}

static void go_on(struct shard_commands *s)
{
    const struct shard_model_spec spec = {"another", "v1", NULL, 20, 0};
    double now = 1000;

    shard_commands_put(s, &spec, now, NULL);
    shard_commands_flush(s);
    for (int shard = 1; shard <= SHARD_PLAN_SHARDS_MAX; shard++)
        shard_commands_ready(s, shard, 1, INT64_MAX);
    for (int round = 0; round < ROUNDS; round++, now += 100) {
        struct shard_command_list list = {0};

        MUST(shard_commands_run(s, now, &list) == 0);
        for (int i = 0; i < list.count; i++)
            obey(s, &list.list[i], now);
        shard_command_list_clear(&list);
    }
    for (int i = 0; i < shard_commands_count(s); i++) {
        struct shard_model_view view = shard_commands_at(s, i);

        MUST(view.routed == 0 || view.shard > 0);
        MUST(view.routed != view.shard || view.shard == 0 || view.has != NULL);
        MUST(strchr(view.why, '\n') == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct rollout_amount amount = {0, false};
    struct error err = {""};
    json_object *record = json_text_parse(text, size, &err);
    struct shard_commands *s = NULL;

    if (rollout_amount_parse(text, size, &amount) == 0)
        MUST(amount.value >= 0 && amount.value <= (amount.percent ? 100 : ROLLOUT_REPLICAS_MAX));
    MUST(haproxy_version_of(text) >= -1 && haproxy_entries_of(text, "/run/routes.map") >= -1);
    if (record != NULL)
        s = shard_commands_read(&options, record, &err);
    if (s != NULL) {
        check_same(s);
        go_on(s);
        check_same(s);
    } else {
        fuzz_check_refusal(&err);
    }
    shard_commands_destroy(s);
    json_object_put(record);
    free(text);
    return 0;
}
