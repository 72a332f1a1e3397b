/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the brain of a service with shards costs, and how well it packs: shards [ROUNDS]. Prints a
 * table of Markdown: processor time in milliseconds (median, least and most of ROUNDS, default 21),
 * then what packing and sticking come to. 10,000 models of log-normal sizes (median 0.4 GB), shards
 * of 40 GB.
 *
 * shards pack CAPACITY SIZE...: prints how many shards these models need. bench/serve compares that
 * with the optimum. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/shard_commands.h"
#include "lib/shard_plan.h"

#define MODELS   10000
#define CAPACITY 40000 /* MB */
#define MEDIAN   400
#define SHARDS   2000
#define ROUNDS   1000 /* at most */
#define UPDATES  20   /* rounds of updates, of 5 % of the models each */

enum what { ALL_AT_ONCE, ONE_MORE, PART_UPDATED, RUN_ALL, RUN_NOTHING, RECORD, WHAT_COUNT };

static const char *const names[WHAT_COUNT] = {
    [ALL_AT_ONCE] = "plan: 10,000 models into shards",
    [ONE_MORE] = "plan: one more model",
    [PART_UPDATED] = "plan: 500 models are updated",
    [RUN_ALL] = "commands: 10,000 models are new",
    [RUN_NOTHING] = "commands: nothing has happened",
    [RECORD] = "the record as a JSON text",
};

static double spent[WHAT_COUNT][ROUNDS];
static struct shard_plan_model models[MODELS + 1];
static struct shard_plan_shard shards[SHARDS];
static char model_names[MODELS + 1][16];
static uint64_t seed;

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* xorshift64* (Vigna 2016), then Box and Muller. */
static double uniform(void)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return ((double)((seed * 0x2545f4914f6cdd1dULL) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static int64_t clip(double size)
{
    return size < 1 ? 1 : size > CAPACITY ? CAPACITY : (int64_t)size;
}

static void make_models(int count)
{
    for (int i = 0; i < count; i++) {
        snprintf(model_names[i], sizeof(model_names[i]), "m%05d", i);
        models[i] = (struct shard_plan_model){.name = model_names[i],
                                              .size = clip(MEDIAN * exp(normal()))};
    }
}

static const struct shard_plan_options options = {CAPACITY, SHARDS};

/* What has been planned is so now. Returns the number of shards. */
static int settle(int count)
{
    static int64_t used[SHARDS + 1];
    int number = 0;

    memset(used, 0, sizeof(used));
    for (int i = 0; i < count; i++) {
        if (models[i].refused)
            abort();
        models[i].shard = models[i].to;
        models[i].present = models[i].size;
        used[models[i].to] += models[i].size;
    }
    for (int i = 1; i <= SHARDS; i++) {
        if (used[i] > CAPACITY)
            abort();
        if (used[i] > 0)
            shards[number++] = (struct shard_plan_shard){.number = i};
    }
    return number;
}

static void plan(int shard_count, int count)
{
    if (shard_plan(&options, shards, shard_count, models, count) != 0)
        abort();
}

static int64_t bound(int count)
{
    int64_t size = 0;

    for (int i = 0; i < count; i++)
        size += models[i].size;
    return (size + CAPACITY - 1) / CAPACITY;
}

/* Each model with that chance. */
static int update(double part)
{
    int updated = 0;

    for (int i = 0; i < MODELS; i++) {
        if (uniform() >= part)
            continue;
        models[i].size = clip((double)models[i].size * exp(0.3 * normal()));
        updated++;
    }
    return updated;
}

static void measure_plan(int round)
{
    double begun[PART_UPDATED + 2];
    int count;

    make_models(MODELS + 1);
    begun[ALL_AT_ONCE] = now_ms();
    plan(0, MODELS);
    begun[ONE_MORE] = now_ms();
    spent[ALL_AT_ONCE][round] = begun[ONE_MORE] - begun[ALL_AT_ONCE];
    count = settle(MODELS);
    begun[ONE_MORE] = now_ms();
    plan(count, MODELS + 1);
    spent[ONE_MORE][round] = now_ms() - begun[ONE_MORE];
    count = settle(MODELS + 1);
    update(0.05);
    begun[PART_UPDATED] = now_ms();
    plan(count, MODELS + 1);
    spent[PART_UPDATED][round] = now_ms() - begun[PART_UPDATED];
}

/* ---- commands -------------------------------------------------------------------------------- */

static void put(struct shard_commands *s, int i, int version, double now)
{
    char text[16];
    const struct shard_model_spec spec = {model_names[i], text, NULL, models[i].size, 0};

    snprintf(text, sizeof(text), "v%d", version);
    if (shard_commands_put(s, &spec, now, NULL) != 0)
        abort();
}

/* All is ready and routed at once, until there is nothing more to do. Returns how many rolling
 * updates there were of shards that had served before. */
static int carry_out(struct shard_commands *s, double now, bool *served)
{
    int disruptive = 0;

    for (bool more = true; more;) {
        struct shard_command_list list = {0};

        if (shard_commands_run(s, now, &list) != 0)
            abort();
        more = list.count > 0;
        for (int i = 0; i < list.count; i++) {
            const struct shard_command *c = &list.list[i];

            if (c->kind == SHARD_SET_ROUTE) {
                shard_commands_routed(s, c->epoch);
            } else if (c->kind == SHARD_UPDATE) {
                disruptive += served[c->shard];
                served[c->shard] = true;
                shard_commands_ready(s, c->shard, 1, c->epoch);
                if (shard_commands_updated(s, c->shard, c->epoch, now) != 0)
                    abort();
            }
        }
        shard_command_list_clear(&list);
    }
    return disruptive;
}

static struct shard_commands *create(double window)
{
    const struct shard_commands_options o = {CAPACITY, SHARDS, MEDIAN, window, false, 0};
    struct shard_commands *s = shard_commands_create(&o);

    if (s == NULL)
        abort();
    return s;
}

static void measure_commands(int round)
{
    static bool served[SHARDS + 1];
    struct shard_commands *s = create(0);
    struct shard_command_list list = {0};
    json_object *record;
    double begun;

    for (int i = 0; i < MODELS; i++)
        put(s, i, 1, 1);
    begun = now_ms();
    if (shard_commands_run(s, 1, &list) != 0)
        abort();
    spent[RUN_ALL][round] = now_ms() - begun;
    for (int i = 0; i < list.count; i++)
        if (list.list[i].kind == SHARD_UPDATE) {
            shard_commands_ready(s, list.list[i].shard, 1, list.list[i].epoch);
            shard_commands_updated(s, list.list[i].shard, list.list[i].epoch, 1);
        }
    shard_command_list_clear(&list);
    carry_out(s, 1, served);
    begun = now_ms();
    if (shard_commands_run(s, 2, &list) != 0 || list.count > 0)
        abort();
    spent[RUN_NOTHING][round] = now_ms() - begun;
    begun = now_ms();
    record = shard_commands_json(s);
    if (record == NULL || json_object_to_json_string_ext(record, JSON_C_TO_STRING_PLAIN) == NULL)
        abort();
    spent[RECORD][round] = now_ms() - begun;
    json_object_put(record);
    shard_commands_destroy(s);
}

/* ---- how well -------------------------------------------------------------------------------- */

enum figure { ONCE, MOVED, STICKY, ANEW, REPACKED, REPACK_MOVED, FIGURE_COUNT };

static double figures[FIGURE_COUNT][ROUNDS];

static double above(int count)
{
    return 100.0 * ((double)count / (double)bound(MODELS) - 1);
}

static int count_moved(const int *before)
{
    int moved = 0;

    for (int i = 0; i < MODELS; i++)
        moved += models[i].to != before[i];
    return moved;
}

/* The same models packed from nothing, and back. Keeps in anew where they are. Returns how many
 * that would have moved. */
static int pack_anew(int *anew)
{
    static int shard[MODELS], to[MODELS];
    int moved;

    for (int i = 0; i < MODELS; i++) {
        shard[i] = models[i].shard;
        to[i] = models[i].to;
        models[i].shard = 0;
    }
    plan(0, MODELS);
    moved = count_moved(anew);
    for (int i = 0; i < MODELS; i++) {
        anew[i] = models[i].to;
        models[i].shard = shard[i];
        models[i].to = to[i];
    }
    return moved;
}

static void measure_packing(int round)
{
    static int anew[MODELS];
    int updated = 0, moved = 0, moved_anew = 0, before, count;

    make_models(MODELS);
    plan(0, MODELS);
    count = settle(MODELS);
    figures[ONCE][round] = above(count);
    for (int i = 0; i < MODELS; i++)
        anew[i] = models[i].shard;
    for (int i = 0; i < UPDATES; i++) {
        updated += update(0.05);
        plan(count, MODELS);
        for (int m = 0; m < MODELS; m++)
            moved += models[m].to != models[m].shard;
        count = settle(MODELS);
        moved_anew += pack_anew(anew);
    }
    figures[MOVED][round] = 100.0 * moved / updated;
    figures[STICKY][round] = above(count);
    figures[ANEW][round] = 100.0 * moved_anew / updated;
    if (shard_plan_repack(&options, shards, count, models, MODELS) != 0)
        abort();
    before = 0;
    for (int i = 0; i < MODELS; i++)
        before += models[i].to != models[i].shard;
    figures[REPACK_MOVED][round] = before;
    figures[REPACKED][round] = above(settle(MODELS));
}

/* ---- what a window saves --------------------------------------------------------------------- */

#define CHANGES 100
#define EVERY   10.0 /* seconds from one change to the next */
#define PRESENT 1000 /* models before */

static const double windows[] = {0, 60, 300, 3600};

#define WINDOWS (int)(sizeof(windows) / sizeof(windows[0]))

static double updates[WINDOWS][ROUNDS], routes[WINDOWS][ROUNDS];

/* 70 updates, 20 new models, 10 removals in any order. */
static void change(struct shard_commands *s, int number, int *last, double now)
{
    double which = uniform();
    int i = (int)(uniform() * PRESENT);

    if (which < 0.7) {
        models[i].size = clip((double)models[i].size * exp(0.3 * normal()));
        put(s, i, 2 + number, now);
    } else if (which < 0.9) {
        put(s, ++*last, 1, now);
    } else {
        shard_commands_remove(s, model_names[i], now, NULL);
    }
}

static void measure_window(int window, int round)
{
    static bool served[SHARDS + 1];
    struct shard_commands *s = create(windows[window]);
    double now = 10000;
    int last = PRESENT;
    int64_t before;

    memset(served, 0, sizeof(served));
    make_models(MODELS);
    for (int i = 0; i < PRESENT; i++)
        put(s, i, 1, now);
    shard_commands_flush(s);
    carry_out(s, now, served);
    before = shard_commands_counts(s).routes;
    updates[window][round] = 0;
    for (int i = 0; i < CHANGES; i++) {
        now += EVERY;
        change(s, i, &last, now);
        updates[window][round] += carry_out(s, now, served);
    }
    shard_commands_flush(s);
    updates[window][round] += carry_out(s, now, served);
    routes[window][round] = (double)(shard_commands_counts(s).routes - before);
    shard_commands_destroy(s);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

static void print_row(const char *name, double *values, int rounds)
{
    qsort(values, (size_t)rounds, sizeof(double), compare);
    printf("| %s | %.2f | %.2f | %.2f |\n", name, values[rounds / 2], values[0],
           values[rounds - 1]);
}

static void print_all(int rounds)
{
    static const char *const texts[FIGURE_COUNT] = {
        [ONCE] = "all at once: shards above the bound, %",
        [MOVED] = "20 rounds of updates: models moved, of 100 updated",
        [STICKY] = "then: shards above the bound, %",
        [ANEW] = "packed anew each round: models moved, for 100 updated",
        [REPACKED] = "repacked at the end: shards above the bound, %",
        [REPACK_MOVED] = "… models moved by that",
    };

    printf("| what, ms | median | least | most |\n|---|---|---|---|\n");
    for (int what = 0; what < WHAT_COUNT; what++)
        print_row(names[what], spent[what], rounds);
    printf("\n| 10,000 models | median | least | most |\n|---|---|---|---|\n");
    for (int figure = 0; figure < FIGURE_COUNT; figure++)
        print_row(texts[figure], figures[figure], rounds);
    printf("\n| 100 changes, one each 10 s | median | least | most |\n|---|---|---|---|\n");
    for (int window = 0; window < WINDOWS; window++) {
        char text[80];

        snprintf(text, sizeof(text), "window of %.0f s: rolling updates", windows[window]);
        print_row(text, updates[window], rounds);
        snprintf(text, sizeof(text), "window of %.0f s: routes set", windows[window]);
        print_row(text, routes[window], rounds);
    }
}

/* ---- for bench/serve ------------------------------------------------------------------------- */

static int pack(int argc, char **argv)
{
    const struct shard_plan_options o = {atoll(argv[2]), MODELS};
    int count = argc - 3, most = 0;

    if (count > MODELS)
        return 2;
    make_models(count);
    for (int i = 0; i < count; i++)
        models[i].size = atoll(argv[3 + i]);
    if (shard_plan(&o, shards, 0, models, count) != 0)
        abort();
    for (int i = 0; i < count; i++) {
        if (models[i].refused)
            return 1;
        most = models[i].to > most ? models[i].to : most;
    }
    printf("%d\n", most);
    return 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 21;

    seed = 1;
    if (argc > 2 && strcmp(argv[1], "pack") == 0)
        return pack(argc, argv);
    if (rounds < 1 || rounds > ROUNDS) {
        fprintf(stderr, "usage: shards [ROUNDS], 1 to %d; shards pack CAPACITY SIZE...\n", ROUNDS);
        return 2;
    }
    for (int round = 0; round < rounds; round++) {
        measure_plan(round);
        measure_commands(round);
        measure_packing(round);
        for (int window = 0; window < WINDOWS; window++)
            measure_window(window, round);
    }
    print_all(rounds);
    return 0;
}
