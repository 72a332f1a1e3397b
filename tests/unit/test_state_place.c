/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States in a directory that others may rename (state/place_directory.c). */
#include "tests/unit/test_root.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "state/place.h"

#define KEEP 1

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* model/000001 to 000003, of a file each. */
static int make_states(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/elastic-test-place-XXXXXX");
    if (mkdtemp(root) == NULL || mkdir(path_of("model"), 0700) != 0)
        return -1;
    for (int i = 1; i <= 3; i++) {
        char name[64];

        snprintf(name, sizeof(name), "model/%06d", i);
        if (mkdir(path_of(name), 0700) != 0)
            return -1;
        snprintf(name, sizeof(name), "model/%06d/weights", i);
        put(name, "12345");
        snprintf(name, sizeof(name), "model/%06d/complete.json", i);
        put(name, "{\"format\": 1, \"files\": {\"weights\": 5}}");
    }
    return symlink("000003", path_of("model/current"));
}

static int remove_states(void **state)
{
    (void)state;
    return dir_remove(root, NULL);
}

static struct place *list(struct states *states)
{
    struct error err = {""};
    struct place *place = place_open(path_of("model"), NULL, &err);

    assert_non_null(place);
    assert_int_equal(place_list(place, states, &err), 0);
    assert_int_equal((int)states->count, 3);
    return place;
}

static void prune(struct place *place, struct states *states)
{
    place_prune(place, states, KEEP, 3);
    states_clear(states);
    place_close(place);
}

static void test_old_ones_go(void **state)
{
    struct states states;

    (void)state;
    prune(list(&states), &states);
    assert_false(is_there("model/000001") || is_there("model/000002"));
    assert_true(is_there("model/000003/weights"));
}

/* Whoever may write above puts a directory of this user's own in its place, by its name or by a
 * link, whose names are those of states. */
static void test_renamed_since_they_were_listed(void **state)
{
    for (int by_link = 0; by_link < 2; by_link++) {
        struct states states;
        struct place *place = list(&states);
        char model[256];

        snprintf(model, sizeof(model), "%s", path_of("model"));
        assert_int_equal(rename(model, path_of("away")), 0);
        assert_int_equal(mkdir(path_of(by_link ? "mine" : "model"), 0700), 0);
        assert_int_equal(by_link ? symlink("mine", model) : 0, 0);
        assert_int_equal(mkdir(path_of("model/000001"), 0700), 0);
        put("model/000001/thesis", "x");
        prune(place, &states);
        assert_true(is_there("model/000001/thesis"));
        assert_false(is_there("away/000001") || is_there("away/000002"));
        assert_true(is_there("away/000003/weights"));
        remove_states(NULL);
        make_states(state);
    }
}

/* A place without states may be removed, and made again. */
static void test_made_again_since_it_was_listed(void **state)
{
    struct error err = {""};
    struct states states;
    struct place *place;
    char model[256];

    (void)state;
    snprintf(model, sizeof(model), "%s", path_of("model"));
    assert_int_equal(dir_remove(model, &err), 0);
    assert_int_equal(mkdir(model, 0700), 0);
    place = place_open(model, NULL, &err);
    assert_int_equal(place_list(place, &states, &err), 0);
    assert_int_equal(rmdir(model), 0);
    assert_int_equal(place_begin(place, 1, &err), PLACE_OK);
    assert_true(is_there("model/000001.partial"));
    place_give_up(place);
    assert_false(is_there("model/000001.partial"));
    states_clear(&states);
    place_close(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_old_ones_go, make_states, remove_states),
        cmocka_unit_test_setup_teardown(test_renamed_since_they_were_listed, make_states,
                                        remove_states),
        cmocka_unit_test_setup_teardown(test_made_again_since_it_was_listed, make_states,
                                        remove_states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
