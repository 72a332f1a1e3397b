/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/shard_commands with lib/rollout, and around them shards, replicas and a router as they would
 * be: late, failing, restarted. After each event every request that could come has an answer. A
 * leader that dies between any two commands has a successor that comes to the same end. */
#include "lib/rollout.h"
#include "lib/shard_commands.h"
#include "tests/unit/support.h"

#include <stdbool.h>

#define HISTORIES RANDOM_ROUNDS(300)
#define MODELS    10
#define SHARDS    4
#define CAPACITY  10
#define REPLICAS  32 /* of a shard, with those that are about to go */
#define TABLES    64 /* of routes that the router has not confirmed */

struct own_replica {
    int id;
    int64_t version;
    bool models[MODELS]; /* that it has loaded */
    bool ready, leaves, bad;
    double due; /* when it is ready, has failed, or is gone */
};

struct own_shard {
    bool there;
    int list[MODELS]; /* versions; 0: not in the list */
    struct rollout rollout;
    struct own_replica replicas[REPLICAS];
    int count;
};

struct table {
    int64_t epoch;
    int to[MODELS];
    double from, confirmed; /* when it takes effect, and when the last request of before ends */
    bool holds;
};

struct sim {
    uint64_t seed;
    struct shard_commands_options options;
    struct shard_commands *s;
    json_object *record; /* as written */
    double now;
    struct own_shard shards[SHARDS + 1];
    int said[MODELS];  /* the routes that were last said */
    int route[MODELS]; /* and those that hold */
    struct table tables[TABLES];
    int table_count;
    int64_t confirmed;
    int version[MODELS]; /* the latest; 0: none. */
    bool bad[MODELS];    /* it never gets ready */
    bool asks[MODELS];   /* somebody asks for it */
    int replicas, last_id, carried, cut;
    bool calm, even; /* nothing fails; nothing is by chance */
    int room;
};

static int roll(struct sim *m, int sides)
{
    return m->even ? 0 : (int)random_below(&m->seed, (uint32_t)sides);
}

static int size_of(int model, int version)
{
    return 1 + (model * 5 + version * 7) % 6;
}

static int ready_of(const struct own_shard *shard)
{
    int ready = 0;

    for (int i = 0; i < shard->count; i++)
        ready += shard->replicas[i].ready && !shard->replicas[i].leaves;
    return ready;
}

/* ---- what must hold -------------------------------------------------------------------------- */

static void check_route(const struct sim *m, int model, int number, bool now)
{
    const struct own_shard *shard = &m->shards[number];

    if (number == 0)
        return;
    assert_true(!now || (shard->there && ready_of(shard) > 0));
    for (int i = 0; i < shard->count; i++)
        if (shard->replicas[i].ready && !shard->replicas[i].leaves)
            assert_true(shard->replicas[i].models[model]);
}

/* Each request has somebody who answers it, also one that came by the routes of before. */
static void check(const struct sim *m)
{
    for (int model = 0; model < MODELS; model++) {
        check_route(m, model, m->route[model], true);
        for (int i = 0; i < m->table_count; i++)
            if (m->tables[i].holds)
                check_route(m, model, m->tables[i].to[model], false);
    }
}

/* ---- carrying out ---------------------------------------------------------------------------- */

static int number_in(const char *name)
{
    return atoi(name + 1);
}

static void set_models(struct sim *m, const struct shard_command *command)
{
    struct own_shard *shard = &m->shards[command->shard];
    int size = 0;

    shard->there = true;
    memset(shard->list, 0, sizeof(shard->list));
    for (int i = 0; i < command->count; i++) {
        int model = number_in(command->items[i].name);

        shard->list[model] = number_in(command->items[i].version);
        size += size_of(model, shard->list[model]);
    }
    assert_true(size <= CAPACITY);
    /* A program that reads the list by itself may drop at once what it does not name. */
    for (int i = 0; i < shard->count; i++)
        for (int model = 0; model < MODELS; model++)
            shard->replicas[i].models[model] &= shard->list[model] > 0;
}

static void say_updated(struct sim *m, int number, int64_t version)
{
    struct own_shard *shard = &m->shards[number];

    assert_int_equal(shard_commands_updated(m->s, number, version, m->now), 0);
    if (shard->count == 0 && shard->rollout.replicas == 0 && version == shard->rollout.version)
        *shard = (struct own_shard){0};
}

static void update_shard(struct sim *m, const struct shard_command *command)
{
    struct own_shard *shard = &m->shards[command->shard];
    struct rollout *r = &shard->rollout;
    bool empty = true;

    for (int model = 0; model < MODELS; model++)
        empty = empty && shard->list[model] == 0;
    r->replicas = empty ? 0 : m->replicas;
    r->limits = (struct rollout_limits){(m->replicas + 1) / 2, m->replicas / 2};
    if (r->limits.unavailable >= m->replicas)
        r->limits.unavailable = m->replicas - 1;
    r->fail_fast = 2;
    rollout_begin(r, command->epoch);
    if (r->done) /* it is so already */
        say_updated(m, command->shard, command->epoch);
}

static void set_route(struct sim *m, const struct shard_command *command)
{
    for (int model = 0; model < MODELS; model++)
        if (m->said[model] == command->shard)
            m->said[model] = 0;
    for (int i = 0; i < command->count; i++)
        m->said[number_in(command->items[i].name)] = command->shard;
}

/* All routes of an epoch at once, some time later. */
static void say_routes(struct sim *m, int64_t epoch)
{
    struct table *table = &m->tables[m->table_count];
    double after = m->table_count > 0 ? table[-1].from : m->now;

    assert_true(m->table_count < TABLES);
    m->table_count++;
    *table = (struct table){.epoch = epoch, .from = after + 0.1 + roll(m, 3)};
    table->confirmed = table->from + 0.1 + roll(m, 3);
    memcpy(table->to, m->said, sizeof(table->to));
}

static void crash(struct sim *m)
{
    struct error err = {""};

    shard_commands_destroy(m->s);
    m->s = shard_commands_read(&m->options, m->record, &err);
    assert_string_equal(err.text, "");
    /* What the router had not taken over may be lost. */
    while (m->table_count > 0 && !m->tables[m->table_count - 1].holds && roll(m, 2) == 0)
        m->table_count--;
    memcpy(m->said,
           m->table_count > 0 && !m->tables[m->table_count - 1].holds
               ? m->tables[m->table_count - 1].to
               : m->route,
           sizeof(m->said));
    shard_commands_routed(m->s, m->confirmed);
}

static void keep_record(struct sim *m)
{
    json_object_put(m->record);
    m->record = shard_commands_json(m->s);
}

static void say_ready(struct sim *m)
{
    for (int number = 1; number <= SHARDS; number++) {
        const struct own_shard *shard = &m->shards[number];
        int64_t oldest = INT64_MAX;

        for (int i = 0; i < shard->count; i++)
            if (shard->replicas[i].ready && !shard->replicas[i].leaves &&
                shard->replicas[i].version < oldest)
                oldest = shard->replicas[i].version;
        shard_commands_ready(m->s, number, ready_of(shard), oldest);
    }
}

static void say_asked(struct sim *m)
{
    char key[8];

    for (int model = 0; model < MODELS; model++)
        if (m->asks[model]) {
            snprintf(key, sizeof(key), "k%d", model);
            shard_commands_asked(m->s, key);
        }
}

/* False: the leader has died on the way. */
static bool carry_out(struct sim *m, const struct shard_command_list *list)
{
    int64_t epoch = 0; /* of routes that are being said */

    for (int i = 0; i < list->count; i++) {
        const struct shard_command *command = &list->list[i];

        if (m->carried++ == m->cut || (!m->calm && roll(m, 40) == 0)) {
            crash(m);
            return false;
        }
        if (command->kind == SHARD_SET_MODELS)
            set_models(m, command);
        else if (command->kind == SHARD_UPDATE)
            update_shard(m, command);
        else
            set_route(m, command);
        if (command->kind != SHARD_SET_ROUTE)
            continue;
        epoch = command->epoch;
        if (i + 1 == list->count || list->list[i + 1].kind != SHARD_SET_ROUTE ||
            list->list[i + 1].epoch != epoch)
            say_routes(m, epoch);
    }
    return true;
}

static void run(struct sim *m)
{
    bool done = false;

    while (!done) {
        struct shard_command_list list = {0};

        say_ready(m);
        say_asked(m);
        assert_int_equal(shard_commands_run(m->s, m->now, &list), 0);
        keep_record(m);
        done = list.count == 0;
        carry_out(m, &list);
        shard_command_list_clear(&list);
        check(m);
    }
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void start_replica(struct sim *m, struct own_shard *shard, int64_t version)
{
    struct own_replica *replica = &shard->replicas[shard->count];

    assert_true(shard->count < REPLICAS);
    shard->count++;
    *replica = (struct own_replica){.id = ++m->last_id, .version = version};
    replica->due = m->now + 0.5 + roll(m, 8);
    replica->bad = !m->calm && roll(m, 8) == 0;
    for (int model = 0; model < MODELS; model++) {
        replica->models[model] = shard->list[model] > 0;
        replica->bad = replica->bad || (shard->list[model] > 0 && m->bad[model] &&
                                        shard->list[model] == m->version[model]);
    }
}

static void take_actions(struct sim *m, int number, const struct rollout_actions *actions)
{
    struct own_shard *shard = &m->shards[number];

    for (int i = 0; i < actions->count; i++) {
        const struct rollout_action *action = &actions->list[i];

        switch (action->kind) {
        case ROLLOUT_START:
            start_replica(m, shard, action->version);
            break;
        case ROLLOUT_DRAIN:
            for (int r = 0; r < shard->count; r++)
                if (shard->replicas[r].id == action->id) {
                    shard->replicas[r].leaves = true;
                    shard->replicas[r].due = m->now + 0.5 + roll(m, 4);
                }
            break;
        case ROLLOUT_FAILED:
            assert_int_equal(
                shard_commands_failed(m->s, number, shard->rollout.version, action->text, m->now),
                0);
            run(m);
            break;
        case ROLLOUT_DONE:
            say_updated(m, number, action->version);
            break;
        case ROLLOUT_WAIT:
            break;
        }
    }
}

static void roll_out(struct sim *m, int number)
{
    struct own_shard *shard = &m->shards[number];
    struct rollout_replica list[REPLICAS];
    struct rollout_actions actions = {0};

    if (!shard->there || shard->rollout.version == 0)
        return;
    for (int i = 0; i < shard->count; i++) {
        const struct own_replica *r = &shard->replicas[i];

        list[i] = (struct rollout_replica){r->id, r->version, r->ready, r->leaves, false};
    }
    assert_int_equal(rollout_run(&shard->rollout, list, shard->count, m->room, &actions), 0);
    take_actions(m, number, &actions);
    free(actions.list);
}

static void pass_replicas(struct sim *m, struct own_shard *shard)
{
    for (int i = shard->count - 1; i >= 0; i--) {
        struct own_replica *replica = &shard->replicas[i];

        if (replica->due > m->now || (replica->ready && !replica->leaves))
            continue;
        if (!replica->leaves && !replica->bad) {
            replica->ready = true;
            rollout_ready(&shard->rollout, replica->version);
            continue;
        }
        if (!replica->leaves)
            rollout_failed(&shard->rollout, replica->version);
        *replica = shard->replicas[--shard->count];
    }
}

static void pass_routes(struct sim *m)
{
    for (int i = 0; i < m->table_count; i++) {
        struct table *table = &m->tables[i];
        int before[MODELS];

        if (table->holds || table->from > m->now)
            continue;
        memcpy(before, m->route, sizeof(before));
        memcpy(m->route, table->to, sizeof(m->route));
        memcpy(table->to, before, sizeof(before)); /* requests of before are on their way */
        table->holds = true;
    }
    while (m->table_count > 0 && m->tables[0].holds && m->tables[0].confirmed <= m->now) {
        m->confirmed = m->tables[0].epoch;
        shard_commands_routed(m->s, m->confirmed);
        memmove(m->tables, m->tables + 1, (size_t)--m->table_count * sizeof(m->tables[0]));
    }
}

static void pass(struct sim *m, double seconds)
{
    m->now += seconds;
    pass_routes(m);
    check(m);
    for (int number = 1; number <= SHARDS; number++) {
        pass_replicas(m, &m->shards[number]);
        check(m);
        roll_out(m, number);
        check(m);
    }
    run(m);
}

static void put(struct sim *m, int model, bool bad)
{
    char name[8], key[8], version[8];
    struct shard_model_spec spec = {name, version, key, size_of(model, m->version[model] + 1), 0};

    m->version[model]++;
    m->bad[model] = bad;
    snprintf(name, sizeof(name), "m%d", model);
    snprintf(key, sizeof(key), "k%d", model);
    snprintf(version, sizeof(version), "v%d", m->version[model]);
    assert_int_equal(shard_commands_put(m->s, &spec, m->now, NULL), 0);
    keep_record(m);
}

static void take_away(struct sim *m, int model)
{
    char name[8];

    snprintf(name, sizeof(name), "m%d", model);
    shard_commands_remove(m->s, name, m->now, NULL);
    keep_record(m);
}

/* A program that changes a version in place does not tell whether it could: that is no update. */
static bool is_in_a_list(const struct sim *m, int model)
{
    for (int number = 1; number <= SHARDS; number++)
        if (m->shards[number].list[model] > 0)
            return true;
    return false;
}

/* Not the last one: nobody could help that. */
static void kill_one(struct sim *m)
{
    struct own_shard *shard = &m->shards[1 + roll(m, SHARDS)];
    int i = shard->count > 0 ? roll(m, shard->count) : 0;

    if (shard->count == 0 || (shard->replicas[i].ready && ready_of(shard) < 2))
        return;
    if (!shard->replicas[i].ready && !shard->replicas[i].leaves)
        rollout_failed(&shard->rollout, shard->replicas[i].version);
    shard->replicas[i] = shard->replicas[--shard->count];
}

static void disturb(struct sim *m)
{
    int model = roll(m, MODELS);
    char text[8];

    switch (roll(m, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        put(m, model, !is_in_a_list(m, model) && roll(m, 5) == 0);
        break;
    case 4:
        take_away(m, model);
        break;
    case 5:
        if (roll(m, 3) > 0)
            break;
        snprintf(text, sizeof(text), "a%d", roll(m, 100));
        assert_int_equal(shard_commands_application(m->s, text, m->now), 0);
        break;
    case 6:
        shard_commands_flush(m->s);
        break;
    case 7:
        shard_commands_repack(m->s);
        break;
    case 8:
        m->room = roll(m, 3);
        break;
    case 9:
    case 10:
        kill_one(m);
        break;
    case 11:
        crash(m);
        break;
    case 12:
    case 13:
        m->asks[model] = !m->asks[model];
        break;
    default:
        break;
    }
    check(m);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* As a text: what each shard has, where requests go, and why not. */
static char *describe(const struct sim *m)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (int number = 1; number <= SHARDS; number++) {
        fprintf(out, "shard_%d:", number);
        for (int model = 0; model < MODELS; model++)
            if (m->shards[number].list[model] > 0)
                fprintf(out, " m%d_v%d", model, m->shards[number].list[model]);
        fprintf(out, ", %d ready\n", ready_of(&m->shards[number]));
    }
    for (int i = 0; i < shard_commands_count(m->s); i++) {
        struct shard_model_view view = shard_commands_at(m->s, i);

        fprintf(out, "%s: shard_%d, routed to shard_%d. %s\n", view.name, view.shard,
                m->route[number_in(view.key)], view.why);
    }
    fclose(out);
    return text;
}

static void check_end(struct sim *m)
{
    int inside = 0, listed = 0;

    assert_int_equal(m->table_count, 0);
    for (int i = 0; i < shard_commands_count(m->s); i++) {
        struct shard_model_view view = shard_commands_at(m->s, i);

        assert_int_equal(view.routed, view.shard);
        assert_int_equal(m->route[number_in(view.key)], view.shard);
        if (view.asleep) {
            assert_true(m->options.idle > 0 && !m->asks[number_in(view.key)] && view.shard == 0);
        } else if (view.why[0] == '\0') {
            assert_true(view.shard > 0);
            assert_string_equal(view.has, view.version);
        } else {
            assert_non_null(strstr(view.why, "no shard has so much room"));
        }
        inside += view.shard > 0;
    }
    for (int number = 1; number <= SHARDS; number++) {
        const struct own_shard *shard = &m->shards[number];
        int models = 0;

        for (int model = 0; model < MODELS; model++)
            models += shard->list[model] > 0;
        listed += models;
        assert_int_equal(shard->count, models > 0 ? m->replicas : 0);
        assert_int_equal(ready_of(shard), shard->count);
    }
    assert_int_equal(listed, inside);
}

static void begin(struct sim *m, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    m->seed = seed * 2654435761u + 1;
    m->cut = -1;
    m->now = 1000;
    m->room = 40;
    m->replicas = 1 + (int)(seed % 4);
    m->options = (struct shard_commands_options){
        CAPACITY, SHARDS, 1, seed % 3 == 0 ? 0 : 20, seed % 5 == 0, seed % 2 == 0 ? 15 : 0};
    m->s = shard_commands_create(&m->options);
    keep_record(m);
}

static void end(struct sim *m)
{
    shard_commands_destroy(m->s);
    json_object_put(m->record);
}

static void settle(struct sim *m)
{
    for (int i = 0; i < 150; i++)
        pass(m, 1);
}

/* Nobody asks for anything, and all shards go. Then somebody asks for one model. */
static void sleep_and_wake(struct sim *m)
{
    if (m->options.idle <= 0)
        return;
    memset(m->asks, 0, sizeof(m->asks));
    settle(m);
    check_end(m);
    for (int number = 1; number <= SHARDS; number++)
        assert_int_equal(m->shards[number].count, 0);
    m->asks[number_in(shard_commands_count(m->s) > 0 ? shard_commands_at(m->s, 0).key : "k0")] =
        true;
    settle(m);
    check_end(m);
    if (shard_commands_count(m->s) > 0)
        assert_true(shard_commands_at(m->s, 0).routed > 0);
}

static void test_random(void **state)
{
    (void)state;
    for (int history = 1; history <= HISTORIES; history++) {
        struct sim m;

        begin(&m, (uint64_t)history);
        for (int event = 0; event < 150; event++) {
            disturb(&m);
            pass(&m, 0.1 * roll(&m, 30));
        }
        m.calm = true;
        m.room = 40;
        for (int model = 0; model < MODELS; model++)
            if (m.bad[model])
                take_away(&m, model);
        settle(&m);
        shard_commands_flush(m.s);
        settle(&m);
        check_end(&m);
        sleep_and_wake(&m);
        end(&m);
    }
}

/* ---- cut at every point ---------------------------------------------------------------------- */

/* New shards, updates, a move, a model that never gets ready, another application, removals, a
 * shard that goes: each when what was before is at its end. */
static char *play(int cut, int *carried)
{
    struct sim m;
    char *text;

    begin(&m, 2);
    m.calm = m.even = true;
    m.cut = cut;
    memset(m.asks, true, sizeof(m.asks));
    for (int model = 0; model < 6; model++)
        put(&m, model, false);
    settle(&m);
    for (int round = 0; round < 3; round++) {
        for (int model = round; model < 6; model += 2)
            put(&m, model, false);
        settle(&m);
    }
    put(&m, 7, true);
    settle(&m);
    assert_int_equal(shard_commands_application(m.s, "another", m.now), 0);
    keep_record(&m);
    take_away(&m, 1);
    put(&m, 8, false);
    settle(&m);
    take_away(&m, 7);
    take_away(&m, 0);
    take_away(&m, 2);
    settle(&m);
    text = describe(&m);
    check_end(&m);
    *carried = m.carried;
    end(&m);
    return text;
}

static void test_cut(void **state)
{
    int commands, carried;
    char *whole = play(-1, &commands);

    (void)state;
    assert_true(commands > 30);
    for (int cut = 0; cut < commands; cut++) {
        char *text = play(cut, &carried);

        if (strcmp(text, whole) != 0)
            fail_msg("cut before command %d:\n%sinstead of\n%s", cut, text, whole);
        free(text);
    }
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
