/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states in tests/unit/selastic are such as a leader tells: lib/plan gives their reasons, and
 * lib/policy their policy. */
#include "lib/json_get.h"
#include "lib/plan.h"
#include "lib/policy.h"
#include "tests/unit/support.h"

#define NOW      1700000150.0
#define LIST_MAX 16

static const struct plan_pool any_pool = {.name = "elastic", .room = SIZES_NODES_MAX};

static const char *const states[] = {"state-growing.json", "state-shrunk.json"};

static json_object *read_sample(const char *name)
{
    char path[256], *text;
    json_object *sample;

    snprintf(path, sizeof(path), "tests/unit/selastic/%s", name);
    text = read_tree_file(path);
    sample = json_tokener_parse(text);
    free(text);
    if (sample == NULL)
        fail_msg("%s is no JSON", path);
    return sample;
}

static int number(json_object *object, const char *key)
{
    int64_t value;

    if (!json_get_int(object, key, INT32_MIN, INT32_MAX, &value))
        fail_msg("no %s", key);
    return (int)value;
}

static json_object *list_of(json_object *object, const char *key)
{
    json_object *list = json_object_object_get(object, key);

    assert_in_range(json_object_array_length(list), 1, LIST_MAX);
    return list;
}

static enum plan_extension_state state_of(json_object *extension)
{
    static const char *const names[] = {[PLAN_PENDING] = "pending",
                                        [PLAN_BOOTING] = "booting",
                                        [PLAN_STARTING] = "starting",
                                        [PLAN_JOINED] = "joined"};

    for (int i = PLAN_PENDING; i <= PLAN_JOINED; i++)
        if (strcmp(json_get_string(extension, "state"), names[i]) == 0)
            return i;
    fail_msg("no state of an extension: %s", json_get_string(extension, "state"));
    return PLAN_LEAVING;
}

/* What the leader of a job in that state plans. */
static void plan_of(json_object *state, struct plan_output *out)
{
    json_object *extensions = list_of(state, "extensions"), *members = list_of(state, "members");
    struct plan_extension extension[LIST_MAX] = {0};
    struct plan_member member[LIST_MAX] = {0};
    struct sizes sizes;
    struct plan_input in = {.now = NOW,
                            .sizes = &sizes,
                            .target = number(state, "target"),
                            .setbacks.last = -1,
                            .stands_since = -1,
                            .pools = &any_pool,
                            .pool_count = 1,
                            .members = member,
                            .extensions = extension};

    assert_int_equal(sizes_parse(json_get_string(state, "sizes"), &sizes, NULL), 0);
    for (; in.member_count < (int)json_object_array_length(members); in.member_count++) {
        json_object *said = json_object_array_get_idx(members, (size_t)in.member_count);
        bool base = number(said, "job") == number(state, "job");

        assert_string_equal(json_get_string(said, "role"), base ? "base" : "extension");
        in.base_nodes += base;
        member[in.member_count] = (struct plan_member){
            .id = in.member_count + 1,
            .job = (uint32_t)number(said, "job"),
            .base = base,
            .usable = true,
            .has_state = true,
            .position = number(said, "first_rank") < 0 ? -1 : in.member_count};
    }
    for (; in.extension_count < (int)json_object_array_length(extensions); in.extension_count++) {
        json_object *said = json_object_array_get_idx(extensions, (size_t)in.extension_count);

        extension[in.extension_count] = (struct plan_extension){
            .job = (uint32_t)number(said, "job"),
            .nodes = number(said, "nodes"),
            .state = state_of(said),
            .since = json_get_double(said, "since", NOW),
            .begin = json_get_double(said, "begin", 0),
            .pool = json_get_string(said, "pool"),
            .reason = json_get_string(said, "reason")};
    }
    assert_int_equal(plan_decide(&in, out), 0);
}

static void check_reasons(json_object *state)
{
    struct plan_output plan;

    plan_of(state, &plan);
    assert_string_equal(json_get_string(state, "why_size"), plan.why_size);
    assert_string_equal(json_get_string(state, "why_not_more"), plan.why_not_more);
    plan_clear(&plan);
}

/* A leader's policy has a value for each option. */
static void check_policy(json_object *state)
{
    json_object *said = json_object_object_get(state, "policy"), *again;
    const char *text = json_object_to_json_string(said);
    struct error err = {""};
    struct policy policy;

    policy_init(&policy);
    if (policy_parse_json(&policy, text, strlen(text), &err) != 0)
        fail_msg("%s", err.text);
    policy_defaults(&policy);
    again = policy_to_json(&policy);
    assert_string_equal(text, json_object_to_json_string(again));
    json_object_put(again);
    policy_clear(&policy);
}

static void test_states(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(states); i++) {
        json_object *state = read_sample(states[i]);

        check_reasons(state);
        check_policy(state);
        json_object_put(state);
    }
}

/* The reason of a job that runs is its leader's. */
static void test_list(void **unused)
{
    static const struct plan_extension extension = {
        .job = 19, .nodes = 2, .state = PLAN_PENDING, .pool = "elastic", .reason = "Resources"};
    json_object *list = read_sample("list.json"), *job;
    struct plan_member member[6] = {0};
    struct sizes sizes;
    struct plan_input in = {.sizes = &sizes,
                            .base_nodes = 6,
                            .target = 8,
                            .setbacks.last = -1,
                            .stands_since = -1,
                            .pools = &any_pool,
                            .pool_count = 1,
                            .members = member,
                            .member_count = COUNT(member),
                            .extensions = &extension,
                            .extension_count = 1};
    struct plan_output plan;

    (void)unused;
    for (int i = 0; i < in.member_count; i++)
        member[i] = (struct plan_member){
            .id = i + 1, .job = 7, .base = true, .usable = true, .position = i};
    job = json_object_array_get_idx(list_of(list, "jobs"), 0);
    assert_int_equal(sizes_parse(json_get_string(job, "sizes"), &sizes, NULL), 0);
    assert_int_equal(plan_decide(&in, &plan), 0);
    assert_string_equal(json_get_string(job, "why"), plan.why_not_more);
    plan_clear(&plan);
    json_object_put(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_list),
    };

    return cmocka_run_group_tests_name("selastic_samples", tests, NULL, NULL);
}
