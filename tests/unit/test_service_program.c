/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/service: another program for its shards, which users apply: what leaders and jobs that come
 * later start. test_service_random has the replicas. */
#include "lib/json_text.h"
#include "lib/service.h"
#include "tests/unit/support.h"

#include <stdbool.h>

static struct service *lead(uint32_t job, const char *file, json_object *record)
{
    const struct service_options options = {
        .brain = {.capacity = 10, .max_shards = 1, .default_size = 1},
        .scale = {.least = 1, .most = 1},
        .surge = {50, true},
        .unavailable = {50, true},
        .fail_fast = 1,
        .job = job,
        .name = "adapters",
        .application = file,
    };
    const struct service_model model = {"m", "v1", NULL, 1, 0, NULL};
    struct error err = {""};
    struct service *s = service_create(&options, record, NULL, 1000, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(service_models(s, &model, 1, 1000), 0);
    return s;
}

/* What the only shard is started with from then on; "": that has not been said. record: what is
 * written, if anything. */
struct said {
    char program[16];
    int64_t number, version;
    json_object *record;
};

static struct said run(struct service *s, enum service_replica_state state, int64_t version,
                       int64_t program)
{
    const struct service_replica replica = {.shard = 1,
                                            .id = 1,
                                            .start = state == SERVICE_WAITS ? 0 : 1,
                                            .state = state,
                                            .version = version,
                                            .program = program,
                                            .address = "10.0.0.1",
                                            .port = 8000};
    struct service_actions actions = {0};
    struct said said = {"", 0, 0, NULL};
    bool again = true;

    while (again) {
        assert_int_equal(service_run(s, 1000, &replica, state != SERVICE_WAITS, &actions, &again),
                         0);
        for (int i = 0; i < actions.count; i++) {
            const struct service_action *action = &actions.list[i];

            if (action->kind == SERVICE_LIST) {
                snprintf(said.program, sizeof(said.program), "%s", action->text);
                said.number = action->program;
                said.version = action->version;
            } else if (action->kind == SERVICE_RECORD) {
                json_object_put(said.record);
                said.record = json_text_parse(action->text, strlen(action->text), NULL);
            }
        }
        service_actions_clear(&actions);
    }
    return said;
}

/* Another leader, of that job, whose file says that. It takes the record. */
static struct service *next(struct service *s, uint32_t job, const char *file, json_object *record)
{
    struct service *other = lead(job, file, record);

    service_destroy(s);
    json_object_put(record);
    return other;
}

/* A service whose shard has "a", in job 1. */
static struct service *begin(struct said *said)
{
    struct service *s = lead(1, "a", NULL);
    struct said first = run(s, SERVICE_WAITS, 0, 0);

    assert_string_equal(first.program, "a");
    *said = run(s, SERVICE_READY, first.version, first.number);
    json_object_put(first.record);
    said->number = first.number;
    said->version = first.version;
    return s;
}

/* The order is written before anything follows from it, and another leader does the rest. */
static void test_takeover(void **state)
{
    struct said had, said;
    struct service *s = begin(&had);

    (void)state;
    json_object_put(had.record);
    assert_int_equal(service_apply(s, "b", 1000), 0);
    said = run(s, SERVICE_READY, had.version, had.number);
    assert_string_equal(said.program, "b");
    assert_true(said.number > had.number && said.version > had.version);
    had = said;
    s = next(s, 1, "a", said.record);
    said = run(s, SERVICE_READY, 1, 1);
    assert_string_equal(said.program, "b");
    assert_int_equal(said.number, had.number);
    assert_int_equal(said.version, had.version);
    json_object_put(said.record);
    service_destroy(s);
}

/* What was applied holds in other jobs, too, but for one whose file says something new. */
static void test_jobs(void **state)
{
    static const struct {
        uint32_t job;
        const char *file, *want;
    } cases[] = {
        {2, "a", "b"}, {2, "b", "b"}, {2, "c", "c"}, {1, "a", "b"}, {1, "b", "b"}, {1, "c", "c"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct said had, said;
        struct service *s = begin(&had);

        json_object_put(had.record);
        assert_int_equal(service_apply(s, "b", 1000), 0);
        said = run(s, SERVICE_READY, had.version, had.number);
        s = next(s, cases[i].job, cases[i].file, said.record);
        assert_string_equal(shard_commands_wanted(service_brain(s)), cases[i].want);
        /* The job after that, with the file of the first one. */
        said = run(s, SERVICE_WAITS, 0, 0);
        assert_non_null(said.record);
        s = next(s, 3, "a", said.record);
        assert_string_equal(shard_commands_wanted(service_brain(s)),
                            strcmp(cases[i].want, "b") == 0 ? "b" : "a");
        service_destroy(s);
    }
}

/* Whoever applies what the job file says wants the job file again. */
static void test_back_to_file(void **state)
{
    struct said had, said;
    struct service *s = begin(&had);

    (void)state;
    json_object_put(had.record);
    assert_int_equal(service_apply(s, "b", 1000), 0);
    json_object_put(run(s, SERVICE_READY, had.version, had.number).record);
    assert_int_equal(service_apply(s, "a", 1000), 0);
    said = run(s, SERVICE_READY, had.version, had.number);
    assert_null(json_object_object_get(said.record, "applied"));
    s = next(s, 2, "c", said.record);
    assert_string_equal(shard_commands_wanted(service_brain(s)), "c");
    service_destroy(s);
}

/* It is not there again in the next job, nor in that of another leader. */
static void test_failed(void **state)
{
    struct said had, said;
    struct service *s = begin(&had);

    (void)state;
    json_object_put(had.record);
    assert_int_equal(service_apply(s, "b", 1000), 0);
    said = run(s, SERVICE_READY, had.version, had.number);
    json_object_put(said.record);
    said = run(s, SERVICE_STARTS, said.version, said.number);
    json_object_put(said.record);
    said = run(s, SERVICE_WAITS, 0, 0); /* it has ended */
    assert_string_equal(said.program, "a");
    assert_int_equal(said.number, had.number);
    assert_int_equal(said.version, had.version);
    for (uint32_t job = 1; job <= 2; job++) {
        s = next(s, job, "a", said.record);
        said = run(s, SERVICE_WAITS, 0, 0);
        assert_string_equal(said.program, "a");
        assert_true(shard_commands_program(service_brain(s), 1).failed);
    }
    json_object_put(said.record);
    assert_int_equal(service_apply(s, "b", 1000), 0); /* once more */
    said = run(s, SERVICE_READY, had.version, had.number);
    assert_string_equal(said.program, "b");
    json_object_put(said.record);
    service_destroy(s);
}

/* A record that is torn here is as if nothing had been applied. */
static void test_torn(void **state)
{
    static const char *const torn[] = {"1", "{}", "{\"from\": \"a\"}",
                                       "{\"from\": 1, \"to\": \"b\"}",
                                       "{\"from\": \"x\", \"to\": \"b\"}"};

    (void)state;
    for (size_t i = 0; i < COUNT(torn); i++) {
        struct said had;
        struct service *s = begin(&had);

        json_object_object_add(had.record, "applied",
                               json_text_parse(torn[i], strlen(torn[i]), NULL));
        s = next(s, 1, "a", had.record);
        assert_string_equal(shard_commands_wanted(service_brain(s)), "a");
        service_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takeover),     cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_back_to_file), cmocka_unit_test(test_failed),
        cmocka_unit_test(test_torn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
