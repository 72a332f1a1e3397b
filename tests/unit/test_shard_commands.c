/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/shard_commands: what is refused, and the golden cases in tests/unit/serve. Each of those is a
 * text: lines say what happens, and the lines with '>' behind each what the brain answers. */
#include "lib/shard_commands.h"
#include "tests/unit/support.h"

#include <inttypes.h>
#include <math.h>

#define SHARDS 32

/* ---- golden cases ---------------------------------------------------------------------------- */

struct play {
    struct shard_commands_options options;
    struct shard_commands *s;
    double now;
    int64_t update[SHARDS], route; /* the latest epochs that were heard of */
    FILE *out;
};

static void run(struct play *p)
{
    struct shard_command_list list = {0};

    assert_int_equal(shard_commands_run(p->s, p->now, &list), 0);
    for (int i = 0; i < list.count; i++) {
        const struct shard_command *command = &list.list[i];
        char *text = shard_command_text(command);

        assert_true(command->shard < SHARDS);
        if (command->kind == SHARD_UPDATE)
            p->update[command->shard] = command->epoch;
        if (command->kind == SHARD_SET_ROUTE)
            p->route = command->epoch;
        fprintf(p->out, "> %" PRId64 " %s\n", command->epoch, text);
        free(text);
    }
    shard_command_list_clear(&list);
    assert_int_equal(shard_commands_run(p->s, p->now, &list), 0);
    assert_int_equal(list.count, 0);
    shard_command_list_clear(&list);
}

static void show(struct play *p)
{
    for (int i = 0; i < shard_commands_count(p->s); i++) {
        struct shard_model_view view = shard_commands_at(p->s, i);

        fprintf(p->out, "> %s %s: %s in shard_%d, routed to shard_%d", view.name, view.version,
                view.has != NULL ? view.has : "nothing", view.shard, view.routed);
        fprintf(p->out, "%s%s%s\n", view.asleep ? ", asleep" : "", view.why[0] != '\0' ? ": " : "",
                view.why);
    }
    fprintf(p->out, "> %d shards, %" PRId64 " updates, %" PRId64 " routes\n",
            shard_commands_shards(p->s), shard_commands_counts(p->s).updates,
            shard_commands_counts(p->s).routes);
}

/* A leader dies, and another one reads what it has written. */
static void restart(struct play *p)
{
    json_object *record = shard_commands_json(p->s), *again;
    struct error err = {""};

    shard_commands_destroy(p->s);
    p->s = shard_commands_read(&p->options, record, &err);
    assert_string_equal(err.text, "");
    again = shard_commands_json(p->s);
    assert_string_equal(json_object_to_json_string(record), json_object_to_json_string(again));
    json_object_put(again);
    json_object_put(record);
}

static void operate(struct play *p, const char *verb, char *const *word)
{
    struct error err = {""};
    int status = 0;

    if (strcmp(verb, "put") == 0) {
        const struct shard_model_spec spec = {word[0], word[1], word[3], atoll(word[2]), 0};

        status = shard_commands_put(p->s, &spec, p->now, &err);
    } else if (strcmp(verb, "remove") == 0) {
        status = shard_commands_remove(p->s, word[0], p->now, &err);
    } else if (strcmp(verb, "application") == 0) {
        status = shard_commands_application(p->s, word[0], p->now);
    } else if (strcmp(verb, "measured") == 0) {
        shard_commands_measured(p->s, word[0], word[1], atoll(word[2]), p->now);
    } else if (strcmp(verb, "flush") == 0) {
        shard_commands_flush(p->s);
    } else if (strcmp(verb, "move") == 0) {
        status = shard_commands_move(p->s, word[0], atoi(word[1]), &err);
    } else if (strcmp(verb, "place") == 0) { /* SHARD MODEL… */
        status = shard_commands_move_all(p->s, word + 1, atoi(word[0]), &err);
    } else if (strcmp(verb, "repack") == 0) {
        shard_commands_repack(p->s);
    } else {
        fail_msg("unknown word %s", verb);
    }
    if (status != 0)
        fprintf(p->out, "> %s\n", err.text);
}

static bool is_word(const char *word, const char *wanted)
{
    return word != NULL && strcmp(word, wanted) == 0;
}

static double idle_of(const char *word)
{
    return word != NULL && strncmp(word, "idle=", 5) == 0 ? atof(word + 5) : 0;
}

static void begin(struct play *p, char *const *word)
{
    shard_commands_destroy(p->s);
    p->options = (struct shard_commands_options){.capacity = atoll(word[0]),
                                                 .max_shards = atoi(word[1]),
                                                 .default_size = 1,
                                                 .window = atof(word[2]),
                                                 .restarts = is_word(word[3], "restarts"),
                                                 .idle = idle_of(word[3])};
    p->s = shard_commands_create(&p->options);
    assert_non_null(p->s);
}

static void show_programs(struct play *p)
{
    for (int shard = 1; shard <= shard_commands_shards(p->s); shard++) {
        struct shard_program program = shard_commands_program(p->s, shard);

        fprintf(p->out, "> shard_%d: %s since %lld%s%s\n", shard, program.application,
                (long long)program.since, program.reached ? ", reached" : "",
                program.failed ? ", the other one has failed" : "");
    }
}

static void step(struct play *p, const char *verb, char *const *word)
{
    int shard = word[0] != NULL ? atoi(word[0]) % SHARDS : 0;

    if (strcmp(verb, "options") == 0) {
        begin(p, word);
        return;
    }
    if (strcmp(verb, "after") == 0) {
        p->now += atof(word[0]);
    } else if (strcmp(verb, "window") == 0) {
        assert_true(shard_commands_deadline(p->s) > 0);
        p->now = fmax(p->now, shard_commands_deadline(p->s));
    } else if (strcmp(verb, "ready") == 0) { /* all replicas have the latest version */
        shard_commands_ready(p->s, shard, 2, p->update[shard]);
        assert_int_equal(shard_commands_updated(p->s, shard, p->update[shard], p->now), 0);
    } else if (strcmp(verb, "none-ready") == 0) {
        shard_commands_ready(p->s, shard, 0, 0);
    } else if (strcmp(verb, "failed") == 0) {
        assert_int_equal(shard_commands_failed(p->s, shard, p->update[shard], word[1], p->now), 0);
    } else if (strcmp(verb, "routed") == 0) {
        shard_commands_routed(p->s, p->route);
    } else if (strcmp(verb, "asked") == 0) {
        for (int i = 0; word[i] != NULL; i++)
            shard_commands_asked(p->s, word[i]);
    } else if (strcmp(verb, "restart") == 0) {
        restart(p);
    } else if (strcmp(verb, "begin") == 0 || strcmp(verb, "begin-anew") == 0) {
        bool anew = strcmp(verb, "begin-anew") == 0;

        assert_int_equal(shard_commands_begin(p->s, word[0], anew, p->now), 0);
    } else if (strcmp(verb, "programs") == 0) {
        show_programs(p);
    } else if (strcmp(verb, "show") == 0) {
        show(p);
    } else {
        operate(p, verb, word);
        return; /* it waits for others */
    }
    run(p);
}

static void play_line(struct play *p, char *line)
{
    char *word[8] = {NULL}, *rest = line;
    int count = 0;

    for (char *next; count < 7 && (next = strsep(&rest, " ")) != NULL;)
        word[count++] = next;
    if (line[0] != '\0' && line[0] != '#')
        step(p, word[0], word + 1);
}

static void play(const char *name)
{
    char path[256], *text, *got = NULL, *rest;
    size_t size;
    struct play p = {.now = 1000};

    snprintf(path, sizeof(path), "tests/unit/serve/%s.txt", name);
    text = read_tree_file(path);
    p.out = open_memstream(&got, &size);
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && rest != NULL;) {
        if (line[0] == '>')
            continue;
        fprintf(p.out, "%s\n", line);
        play_line(&p, line);
    }
    fclose(p.out);
    free(text);
    text = read_tree_file(path);
    if (strcmp(text, got) != 0)
        fail_msg("%s: what comes out is\n%s", path, got);
    free(text);
    free(got);
    shard_commands_destroy(p.s);
}

static void test_golden(void **state)
{
    static const char *const names[] = {
        "1-first",  "2-update-and-add", "3-version", "4-move",       "5-remove",    "6-application",
        "7-last",   "8-nothing",        "across",    "failed",       "flush",       "full",
        "leaves",   "measured",         "merge",     "mixed",        "not-ready",   "repack",
        "replaced", "takeover",         "on-demand", "move-by-hand", "application", "place-by-hand",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        play(names[i]);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    static const struct {
        const char *name, *version, *key;
        int64_t size;
        const char *want; /* a part of the message; NULL: it is accepted */
    } cases[] = {
        {"a", "v1", "tenant_a", 5, NULL},
        {"a", "v2", NULL, 5, "has the key 'tenant_a', not 'a'"},
        {"b", "v1", "tenant_a", 5, "is the one of model a"},
        {"b", "v1", NULL, 11, "b v1 needs 11 bytes, and a shard has 10"},
        {"b", "v1", "meta-llama/Llama-3:ft", 10, NULL},
        {"../b", "v1", NULL, 5, "is no name of a model"},
        {"b/c", "v1", NULL, 5, "is no name of a model"},
        {"b\nc", "v1", NULL, 5, "is no name of a model"},
        {"b\"", "v1", NULL, 5, "is no name of a model"},
        {"b c", "v1", NULL, 5, "is no name of a model"},
        {"", "v1", NULL, 5, "is no name of a model"},
        {NULL, "v1", NULL, 5, "is no name of a model"},
        {".b", "v1", NULL, 5, "is no name of a model"},
        {"\xc3\xa4", "v1", NULL, 5, "is no name of a model"},
        {"c", "../v1", NULL, 5, "is no version of c"},
        {"c", NULL, NULL, 5, "is no version of c"},
        {"c", "v1", "x/../y", 5, "is no key of c"},
        {"c", "v1", "x//y", 5, "is no key of c"},
        {"c", "v1", "x y", 5, "is no key of c"},
        {"c", "v1", "x;y", 5, "is no key of c"},
        {"c", "v1", "x#y", 5, "is no key of c"},
        {"c", "v1", "x\\y", 5, "is no key of c"},
        {"c", "v1", "/x", 5, "is no key of c"},
    };
    const struct shard_commands_options options = {10, 4, 1, 60, false, 0};
    struct shard_commands *s = shard_commands_create(&options);
    struct error err;
    char name[SHARD_NAME_MAX + 2];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct shard_model_spec spec = {cases[i].name, cases[i].version, cases[i].key,
                                              cases[i].size, 0};

        err.text[0] = '\0';
        assert_int_equal(shard_commands_put(s, &spec, 1, &err), cases[i].want == NULL ? 0 : -1);
        if (cases[i].want == NULL)
            continue;
        assert_one_line(err.text);
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("'%s', expected '%s'", err.text, cases[i].want);
    }
    assert_int_equal(shard_commands_count(s), 2);
    memset(name, 'x', sizeof(name));
    name[SHARD_NAME_MAX + 1] = '\0';
    assert_false(shard_name_ok(name));
    name[SHARD_NAME_MAX] = '\0';
    assert_true(shard_name_ok(name));
    assert_int_equal(shard_commands_remove(s, "nobody", 1, &err), -1);
    assert_string_equal(err.text, "there is no model 'nobody'");
    assert_int_equal(shard_commands_remove(s, "a", 1, &err), 0);
    assert_int_equal(shard_commands_remove(s, "a", 1, &err), -1);
    shard_commands_destroy(s);
}

/* ---- one window, many operations ------------------------------------------------------------- */

static void test_window(void **state)
{
    const struct shard_commands_options options = {1000, 4, 1, 300, false, 0};
    struct shard_commands *s = shard_commands_create(&options);
    struct shard_command_list list = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        char name[8], version[8];
        const struct shard_model_spec spec = {name, version, NULL, 5, 0};

        snprintf(name, sizeof(name), "m%d", i % 60);
        snprintf(version, sizeof(version), "v%d", 1 + i / 60);
        assert_int_equal(shard_commands_put(s, &spec, 100 + i, NULL), 0);
        assert_int_equal(shard_commands_run(s, 100 + i, &list), 0);
        assert_int_equal(list.count, 0);
        assert_near(shard_commands_deadline(s), 400, 1e-9); /* the first waits no longer */
    }
    assert_int_equal(shard_commands_counts(s).operations, 100);
    assert_int_equal(shard_commands_run(s, 400, &list), 0);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.list[0].kind, SHARD_SET_MODELS);
    assert_int_equal(list.list[0].count, 60);
    assert_int_equal(list.list[1].kind, SHARD_UPDATE);
    shard_commands_ready(s, 1, 1, list.list[1].epoch);
    assert_int_equal(shard_commands_updated(s, 1, list.list[1].epoch, 401), 0);
    assert_int_equal(shard_commands_run(s, 401, &list), 0);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.list[2].kind, SHARD_SET_ROUTE);
    assert_int_equal(list.list[2].count, 60);
    assert_near(shard_commands_deadline(s), 0, 1e-9);
    shard_command_list_clear(&list);
    shard_commands_destroy(s);
}

/* ---- what a window saves --------------------------------------------------------------------- */

#define PRESENT 200
#define CHANGES 100
#define EVERY   10 /* seconds from one change to the next */

/* All is ready and routed at once, until there is nothing more to do. */
static void carry_out(struct shard_commands *s, double now)
{
    for (bool more = true; more;) {
        struct shard_command_list list = {0};

        assert_int_equal(shard_commands_run(s, now, &list), 0);
        more = list.count > 0;
        for (int i = 0; i < list.count; i++) {
            const struct shard_command *c = &list.list[i];

            if (c->kind == SHARD_SET_ROUTE)
                shard_commands_routed(s, c->epoch);
            if (c->kind != SHARD_UPDATE)
                continue;
            shard_commands_ready(s, c->shard, 1, c->epoch);
            assert_int_equal(shard_commands_updated(s, c->shard, c->epoch, now), 0);
        }
        shard_command_list_clear(&list);
    }
}

static void put_random(struct shard_commands *s, int model, int version, uint64_t *seed, double now)
{
    char name[8], text[8];
    const struct shard_model_spec spec = {name, text, NULL, 5 + random_below(seed, 30), 0};

    snprintf(name, sizeof(name), "m%d", model);
    snprintf(text, sizeof(text), "v%d", version);
    assert_int_equal(shard_commands_put(s, &spec, now, NULL), 0);
}

static struct shard_commands_counts less(struct shard_commands_counts a,
                                         struct shard_commands_counts b)
{
    return (struct shard_commands_counts){a.operations - b.operations, a.lists - b.lists,
                                          a.updates - b.updates, a.routes - b.routes,
                                          a.disruptive - b.disruptive};
}

/* What CHANGES updates and new models come to, which come one by one: three and one in four. */
static struct shard_commands_counts cost_with(double window)
{
    const struct shard_commands_options options = {500, 100, 1, window, false, 0};
    struct shard_commands *s = shard_commands_create(&options);
    struct shard_commands_counts before, after;
    uint64_t seed = 3;
    double now = 1000;

    for (int i = 0; i < PRESENT; i++)
        put_random(s, i, 1, &seed, now);
    shard_commands_flush(s);
    carry_out(s, now);
    before = shard_commands_counts(s);
    assert_int_equal(before.disruptive, 0); /* nobody has been served yet */
    for (int i = 0; i < CHANGES; i++) {
        put_random(s, i % 4 > 0 ? (int)random_below(&seed, PRESENT) : PRESENT + i, 2 + i, &seed,
                   now += EVERY);
        carry_out(s, now);
    }
    shard_commands_flush(s);
    carry_out(s, now);
    after = shard_commands_counts(s);
    shard_commands_destroy(s);
    return less(after, before);
}

/* The longer the window, the fewer updates of shards that serve, and changes of routes. */
static void test_window_saves(void **state)
{
    static const double windows[] = {0, 60, 300, 3600};
    struct shard_commands_counts none = cost_with(0), last = none;

    (void)state;
    assert_true(none.disruptive > CHANGES / 4);
    for (size_t i = 0; i < COUNT(windows); i++) {
        struct shard_commands_counts cost = cost_with(windows[i]);

        print_message("# window %g s: %d updates of shards that serve, %d changes of routes\n",
                      windows[i], (int)cost.disruptive, (int)cost.routes);
        assert_int_equal(cost.operations, CHANGES);
        assert_true(cost.disruptive <= cost.updates && cost.updates <= cost.lists);
        assert_true(cost.disruptive <= last.disruptive && cost.routes <= last.routes);
        last = cost;
    }
    assert_true(cost_with(300).disruptive <= none.disruptive * 2 / 3);
    assert_true(last.disruptive <= none.disruptive / 3 && last.routes <= none.routes / 2);
}

/* Facts about what there is not, or not any more. */
static void test_stale_facts(void **state)
{
    const struct shard_commands_options options = {10, 4, 1, 0, false, 0};
    const struct shard_model_spec spec = {"a", "v1", NULL, 5, 0};
    struct shard_commands *s = shard_commands_create(&options);
    struct shard_command_list list = {0};

    (void)state;
    shard_commands_ready(s, 3, 1, 1);
    shard_commands_routed(s, 99);
    assert_int_equal(shard_commands_updated(s, 1, 1, 1), 0);
    assert_int_equal(shard_commands_failed(s, 1, 1, NULL, 1), 0);
    assert_int_equal(shard_commands_put(s, &spec, 1, NULL), 0);
    assert_int_equal(shard_commands_run(s, 1, &list), 0);
    assert_int_equal(list.count, 2);
    shard_commands_ready(s, 1, 1, 99);
    assert_int_equal(shard_commands_updated(s, 1, 99, 1), 0); /* of no update */
    assert_int_equal(shard_commands_run(s, 2, &list), 0);
    assert_int_equal(list.count, 2);
    assert_int_equal(shard_commands_updated(s, 1, list.list[1].epoch, 1), 0);
    assert_int_equal(shard_commands_failed(s, 1, list.list[1].epoch, "late", 1), 0);
    assert_int_equal(shard_commands_run(s, 2, &list), 0);
    assert_int_equal(list.count, 3);
    shard_command_list_clear(&list);
    shard_commands_destroy(s);
}

/* A route needs a replica that is ready, and none may be that has not got the list. */
static void test_nobody_ready(void **state)
{
    const struct shard_commands_options options = {10, 4, 1, 0, false, 0};
    const struct shard_model_spec spec = {"a", "v1", NULL, 5, 0};
    struct shard_commands *s = shard_commands_create(&options);
    struct shard_command_list list = {0};

    (void)state;
    assert_int_equal(shard_commands_put(s, &spec, 1, NULL), 0);
    assert_int_equal(shard_commands_run(s, 1, &list), 0);
    assert_int_equal(shard_commands_updated(s, 1, list.list[1].epoch, 1), 0);
    assert_int_equal(shard_commands_run(s, 2, &list), 0);
    assert_int_equal(list.count, 2);
    shard_commands_ready(s, 1, 2, list.list[1].epoch - 1);
    assert_int_equal(shard_commands_run(s, 3, &list), 0);
    assert_int_equal(list.count, 2);
    shard_commands_ready(s, 1, 1, list.list[1].epoch);
    assert_int_equal(shard_commands_run(s, 4, &list), 0);
    assert_int_equal(list.count, 3);
    shard_command_list_clear(&list);
    shard_commands_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_window),       cmocka_unit_test(test_stale_facts),
        cmocka_unit_test(test_nobody_ready), cmocka_unit_test(test_window_saves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
