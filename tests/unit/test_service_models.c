/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/service: models of a repository that are too many, and models that somebody asks for. */
#include "lib/service.h"
#include "tests/unit/support.h"

#include <stdbool.h>

#define MOST SHARD_COMMANDS_MODELS_MAX

static char names[MOST + 3][16];
static struct service_model models[MOST + 3];

static struct service *service_from(double idle, json_object *record)
{
    const struct service_options options = {
        .brain = {.capacity = MOST, .max_shards = 1, .default_size = 1, .idle = idle},
        .scale = {.least = 1, .most = 1},
        .surge = {50, true},
        .unavailable = {50, true},
        .job = 1,
        .name = "adapters",
        .application = "a",
    };
    struct error err = {""};
    struct service *s = service_create(&options, record, NULL, 1000, &err);

    assert_string_equal(err.text, "");
    return s;
}

static struct service *service_of(double idle)
{
    return service_from(idle, NULL);
}

static void name_models(void)
{
    for (int i = 0; i < MOST + 3; i++) {
        snprintf(names[i], sizeof(names[i]), "m%06d", i);
        models[i] = (struct service_model){names[i], "v1", NULL, 1, 0, NULL};
    }
}

static void say(struct service *s, int first, int count)
{
    assert_int_equal(service_models(s, models + first, count, 1000), 0);
}

/* The only line of what is refused; "": there is none. */
static void refusal(const struct service *s, char *line, size_t size)
{
    json_object *all = json_object_new_object(), *list = NULL, *one;

    service_describe(s, 1000, all);
    assert_true(json_object_object_get_ex(all, "refused", &list));
    assert_true(json_object_array_length(list) <= 1);
    one = json_object_array_get_idx(list, 0);
    line[0] = '\0';
    if (one != NULL)
        snprintf(line, size, "%s: %s", json_object_get_string(json_object_object_get(one, "name")),
                 json_object_get_string(json_object_object_get(one, "why")));
    json_object_put(all);
}

static void test_too_many(void **state)
{
    struct service *s = service_of(0);
    struct shard_commands *brain = service_brain(s);
    char line[300];

    (void)state;
    name_models();
    say(s, 3, MOST);
    refusal(s, line, sizeof(line));
    assert_string_equal(line, "");
    /* Three more, which come first by name: those that there were stay, and one is updated. */
    models[7].version = "v2";
    say(s, 0, MOST + 3);
    assert_int_equal(service_left_out(s), 3);
    refusal(s, line, sizeof(line));
    assert_string_equal(line, "m000000: a service has at most 100000 models: this one and 2 others "
                              "are left out, all the rest goes on");
    assert_int_equal(shard_commands_count(brain), MOST);
    assert_string_equal(shard_commands_named(brain, "m000007").version, "v2");
    assert_string_equal(shard_commands_named(brain, "m100002").version, "v1");
    assert_null(shard_commands_named(brain, "m000000").name);
    /* Three fewer, and there is room for all. */
    say(s, 0, MOST);
    shard_commands_flush(brain);
    {
        struct shard_command_list list = {0};

        assert_int_equal(shard_commands_run(brain, 1000, &list), 0);
        shard_command_list_clear(&list);
    }
    say(s, 0, MOST);
    assert_int_equal(service_left_out(s), 0);
    refusal(s, line, sizeof(line));
    assert_string_equal(line, "");
    assert_string_equal(shard_commands_named(brain, "m000000").version, "v1");
    service_destroy(s);
}

static void ask(struct service *s, const char *router, const char *key, bool all)
{
    json_object *keys = json_object_new_array();

    json_object_array_add(keys, json_object_new_string(key));
    service_asked(s, router, keys, all);
    json_object_put(keys);
}

/* Which of the two models is wanted, after a run at that time. */
static void run(struct service *s, double now, bool first, bool second)
{
    struct service_actions actions = {0};
    bool again = true;

    while (again) {
        assert_int_equal(service_run(s, now, NULL, 0, &actions, &again), 0);
        service_actions_clear(&actions);
    }
    assert_int_equal(!shard_commands_named(service_brain(s), "m000000").asleep, first);
    assert_int_equal(!shard_commands_named(service_brain(s), "m000001").asleep, second);
}

/* Who asks is known by routers that live, and only by them. */
static void test_asked(void **state)
{
    struct service *s = service_of(1000);

    (void)state;
    name_models();
    say(s, 0, 2);
    run(s, 1000, false, false);
    ask(s, "nobody", "m000000", false); /* no such router */
    run(s, 1001, false, false);
    assert_true(service_routed(s, "r", 0, -1, NULL, 1002));
    ask(s, "r", "m000000", false);
    run(s, 1003, true, false);
    /* More than it says: that is no word about models that are asleep. */
    ask(s, "r", "m000000", true);
    run(s, 1004, true, false);
    /* It is silent for too long: what it has said last does not count any more. */
    ask(s, "r", "m000001", false);
    run(s, 1002 + SERVICE_ROUTER_SILENT, true, false);
    assert_true(service_routed(s, "r", 0, -1, NULL, 1100));
    ask(s, "r", "no such key", false);
    run(s, 1101, true, false);
    ask(s, "r", "m000001", false);
    run(s, 1102, true, true);
    service_destroy(s);
}

/* What the next leader reads; NULL: nothing was written. */
static json_object *record_of(struct service *s)
{
    struct service_actions actions = {0};
    json_object *record = NULL;
    bool again = true;

    while (again) {
        assert_int_equal(service_run(s, 1000, NULL, 0, &actions, &again), 0);
        for (int i = 0; i < actions.count; i++)
            if (actions.list[i].kind == SERVICE_RECORD) {
                json_object_put(record);
                record = json_tokener_parse(actions.list[i].text);
            }
        service_actions_clear(&actions);
    }
    return record;
}

static struct service *next_leader(struct service *s)
{
    json_object *record = record_of(s);
    struct service *next = service_from(0, record);

    assert_non_null(record);
    json_object_put(record);
    service_destroy(s);
    return next;
}

/* It stays until the shard's commands have been carried out. */
static bool is_to_be_served(struct service *s, const char *name)
{
    struct shard_model_view view = shard_commands_named(service_brain(s), name);

    return view.name != NULL && !view.removed;
}

/* A model that a user has withdrawn stays so for the next leaders, until a user wants it, or the
 * repository does not have it any more. */
static void test_withdrawn(void **state)
{
    struct service *s = service_of(0);
    struct error err = {""};
    char line[300];

    (void)state;
    name_models();
    models[0].key = "tenant/a";
    say(s, 0, 2);
    json_object_put(record_of(s));
    assert_null(service_model(s, "m000009", NULL, &err));
    assert_string_equal(err.text, "there is no model 'm000009'");
    assert_null(service_model(s, NULL, "m000000", &err));
    assert_string_equal(err.text, "there is no model with the key 'm000000'");
    assert_null(service_model(s, "../x", NULL, &err));
    assert_null(service_model(s, NULL, NULL, &err));
    assert_string_equal(service_model(s, NULL, "tenant/a", &err), "m000000");
    assert_int_equal(service_withdraw(s, "m000000", 1000), 0);
    assert_int_equal(service_withdraw(s, "m000000", 1000), 0);
    s = next_leader(s);
    say(s, 0, 2);
    refusal(s, line, sizeof(line));
    assert_string_equal(line, "m000000: it has been withdrawn: `selastic serve` serves it");
    json_object_put(record_of(s));
    assert_false(is_to_be_served(s, "m000000"));
    assert_true(is_to_be_served(s, "m000001"));
    assert_string_equal(service_model(s, NULL, "tenant/a", &err), "m000000");
    service_serve(s, "m000000");
    say(s, 0, 2);
    refusal(s, line, sizeof(line));
    assert_string_equal(line, "");
    assert_true(is_to_be_served(s, "m000000"));
    /* Of a model that was removed meanwhile nothing is known. */
    assert_int_equal(service_withdraw(s, "m000001", 1000), 0);
    say(s, 0, 1);
    s = next_leader(s);
    say(s, 0, 2);
    assert_true(is_to_be_served(s, "m000001"));
    models[0].key = NULL;
    service_destroy(s);
}

/* What is on a shard's list, and what is to come there. */
static void test_used(void **state)
{
    struct service *s = service_of(0);
    char *used;

    (void)state;
    name_models();
    say(s, 0, 1);
    json_object_put(record_of(s));
    models[0].version = "v2";
    say(s, 0, 2);
    used = service_used(s);
    assert_non_null(strstr(used, "m000000/v1\n"));
    assert_non_null(strstr(used, "m000000/v2\n"));
    assert_non_null(strstr(used, "m000001/v1\n"));
    free(used);
    service_destroy(s);
}

static void measure(struct service *s, const char *text)
{
    json_object *sizes = json_tokener_parse(text);

    service_measured(s, sizes, 1000);
    json_object_put(sizes);
}

static int64_t size_of(struct service *s, const char *name)
{
    return shard_commands_named(service_brain(s), name).size;
}

/* A shard gets a whole list: what is not in it is withdrawn, and the same once more is nothing. */
static void test_place(void **state)
{
    char *both[] = {names[0], names[1], NULL}, *other[] = {names[2], NULL};
    struct service *s = service_of(0);
    struct error err = {""};
    int changes = -1;

    (void)state;
    name_models();
    say(s, 0, 3);
    assert_int_equal(service_place(s, 1, both, 1000, &changes, &err), -1);
    assert_string_equal(err.text, "there is no shard_1");
    json_object_put(record_of(s));
    assert_int_equal(service_place(s, 1, other, 1000, &changes, &err), 0);
    assert_int_equal(changes, 2);
    assert_true(is_to_be_served(s, names[2]));
    assert_false(is_to_be_served(s, names[0]) || is_to_be_served(s, names[1]));
    s = next_leader(s);
    say(s, 0, 3);
    assert_int_equal(service_place(s, 1, other, 1000, &changes, &err), 0);
    assert_int_equal(changes, 0);
    assert_int_equal(service_place(s, 1, both, 1000, &changes, &err), -1);
    assert_true(is_to_be_served(s, names[2]));
    service_destroy(s);
}

/* What servers say takes the place of what files let expect: the largest, of the version that there
 * should be. What the repository says comes before it. */
static void test_measured(void **state)
{
    struct service *s = service_of(0);

    (void)state;
    name_models();
    models[0].given = 0;
    models[0].files = 10;
    say(s, 0, 2);
    assert_int_equal(size_of(s, "m000000"), 12);
    measure(s, "{\"m000000\": {\"version\": \"v1\", \"bytes\": 7}, \"../x\": {}}");
    assert_int_equal(size_of(s, "m000000"), 7);
    measure(s, "{\"m000000\": {\"version\": \"v1\", \"bytes\": 6}}");
    assert_int_equal(size_of(s, "m000000"), 7);
    measure(s, "{\"m000000\": {\"version\": \"v0\", \"bytes\": 60}}");
    measure(s, "{\"m000000\": {\"version\": \"v1\", \"bytes\": -1}}");
    measure(s, "[1]");
    assert_int_equal(size_of(s, "m000000"), 7);
    say(s, 0, 2); /* another look at the repository */
    measure(s, "{\"m000000\": {\"version\": \"v1\", \"bytes\": 9}}");
    assert_int_equal(size_of(s, "m000000"), 9);
    measure(s, "{\"m000001\": {\"version\": \"v1\", \"bytes\": 9}}");
    assert_int_equal(size_of(s, "m000001"), 1);
    models[0].given = 5;
    say(s, 0, 2);
    assert_int_equal(size_of(s, "m000000"), 5);
    measure(s, "{\"m000000\": {\"version\": \"v1\", \"bytes\": 11}}");
    assert_int_equal(size_of(s, "m000000"), 5);
    service_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_many),  cmocka_unit_test(test_asked),
        cmocka_unit_test(test_withdrawn), cmocka_unit_test(test_used),
        cmocka_unit_test(test_measured),  cmocka_unit_test(test_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
