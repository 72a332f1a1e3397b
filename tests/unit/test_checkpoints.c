/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which checkpoints count as complete (common/checkpoints.c). */
#include "tests/unit/test_root.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/checkpoints.h"
#include "common/files.h"
#include "common/mounted.h"
#include "common/stop.h"
#include "tests/unit/fuse.h"

#define MANIFEST                                                                                   \
    "{\"format\": 1, \"incarnation\": \"12.0\", \"generation\": 3, \"step\": 7, \"files\": "       \
    "{\"state\": 5, \"a/b/part\": 5}}"
#define OTHER_UID 65534

/* A checkpoint with a file two directories down, which others may reach, but not write. */
static int make_one(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/elastic-test-checkpoints-XXXXXX");
    if (mkdtemp(root) == NULL || chmod(root, 0755) != 0)
        return -1;
    for (const char *const *dir = (const char *[]){"1", "1/a", "1/a/b", NULL}; *dir != NULL; dir++)
        if (mkdir(path_of(*dir), 0700) != 0 || chmod(path_of(*dir), 0755) != 0)
            return -1;
    put("1/state", "state");
    put("1/a/b/part", "state");
    put("1/complete.json", MANIFEST);
    return 0;
}

static int remove_one(void **state)
{
    (void)state;
    return dir_remove(root, NULL);
}

static bool is_complete(void)
{
    struct snapshot_key key;
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool complete = checkpoint_is_complete(dir, "1", &key);

    close(dir);
    return complete;
}

static void test_sizes(void **state)
{
    (void)state;
    assert_true(is_complete());
    put("1/a/b/part", "stat");
    assert_false(is_complete());
    put("1/a/b/part", "state");
    assert_true(is_complete());
    assert_int_equal(unlink(path_of("1/state")), 0);
    assert_false(is_complete());
}

/* Whoever may write into a directory on the way may put another file there. */
static void test_writable_by_others(void **state)
{
    (void)state;
    assert_int_equal(chmod(path_of("1/a"), 0777), 0);
    assert_false(is_complete());
    assert_int_equal(chmod(path_of("1/a"), 0755), 0);
    assert_int_equal(chmod(path_of("1/a/b"), 0757), 0);
    assert_false(is_complete());
    /* … if he gets there. */
    assert_int_equal(chmod(path_of("1"), 0700), 0);
    assert_true(is_complete());
}

/* So it is with files, and with the checkpoint itself. */
static void test_each_is_judged(void **state)
{
    (void)state;
    for (const char *const *name =
             (const char *[]){"1", "1/a/b/part", "1/state", "1/complete.json", NULL};
         *name != NULL; name++) {
        assert_int_equal(chmod(path_of(*name), 0757), 0);
        assert_false(is_complete());
        assert_int_equal(chmod(root, 0700), 0);
        assert_true(is_complete());
        assert_int_equal(chmod(root, 0755) | chmod(path_of(*name), 0755), 0);
        assert_true(is_complete());
    }
}

/* Of a group that is not this user's own one. */
static void test_writable_by_a_group(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(path_of("1/state"), 0, OTHER_UID), 0);
    assert_int_equal(chmod(path_of("1/state"), 0664), 0);
    assert_false(is_complete());
    assert_int_equal(chmod(path_of("1/state"), 0644), 0);
    assert_true(is_complete());
}

/* What a link leads to is judged as if all could get there. */
static void test_where_a_link_leads(void **state)
{
    char was[256];

    (void)state;
    snprintf(was, sizeof(was), "%s", path_of("1/state"));
    assert_int_equal(rename(was, path_of("state")), 0);
    assert_int_equal(symlink("../state", path_of("1/state")), 0);
    assert_int_equal(chmod(path_of("1"), 0700), 0);
    assert_true(is_complete());
    assert_int_equal(chmod(path_of("state"), 0666), 0);
    assert_false(is_complete());
}

static void test_of_others(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(path_of("1/a"), OTHER_UID, OTHER_UID), 0);
    assert_false(is_complete());
    assert_int_equal(chown(path_of("1/a"), 0, 0), 0);
    assert_true(is_complete());
    assert_int_equal(chown(path_of("1/a/b/part"), OTHER_UID, OTHER_UID), 0);
    assert_false(is_complete());
}

/* A link of the user's own leads wherever he wants. */
static void test_links(void **state)
{
    char was[256];

    (void)state;
    snprintf(was, sizeof(was), "%s", path_of("1/a"));
    assert_int_equal(rename(was, path_of("1/c")), 0);
    assert_false(is_complete());
    assert_int_equal(symlink("c", path_of("1/a")), 0);
    assert_true(is_complete());
}

/* What strangers have put there says nothing. */
static void test_latest(void **state)
{
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(checkpoints_latest(dir) == INT64_MAX);
    assert_int_equal(symlinkat("00000007", dir, "latest"), 0);
    assert_true(checkpoints_latest(dir) == 7);
    assert_false(checkpoints_is_stranger(dir, "latest") || checkpoints_is_stranger(dir, "none"));
    if (geteuid() == 0) {
        assert_int_equal(fchownat(dir, "latest", OTHER_UID, OTHER_UID, AT_SYMLINK_NOFOLLOW), 0);
        assert_true(checkpoints_is_stranger(dir, "latest"));
        assert_true(checkpoints_latest(dir) == INT64_MAX);
        assert_int_equal(fchown(dir, OTHER_UID, OTHER_UID), 0); /* he may remove all anyway */
        assert_true(checkpoints_latest(dir) == 7);
        assert_int_equal(fchown(dir, 0, 0), 0);
    }
    close(dir);
}

/* A name that nothing can have counts as free: else who looks for a free one would never end. */
static void test_free_names(void **state)
{
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char longest[NAME_MAX + 2];

    (void)state;
    memset(longest, '1', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_true(checkpoints_is_free(dir, longest));
    assert_true(checkpoints_is_free(dir, "00000009"));
    assert_int_equal(symlinkat("nowhere", dir, "00000009"), 0);
    assert_false(checkpoints_is_free(dir, "00000009"));
    assert_int_equal(unlinkat(dir, "00000009", 0), 0);
    close(dir);
}

/* What they have mounted is not asked: it does not answer. */
static void test_mounted_by_others(void **state)
{
    struct snapshot_key key;
    char was[256];
    int dir, fuse;

    (void)state;
    if (!fuse_is_there())
        skip();
    dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* in the new namespace */
    for (int others = 0; others < 2; others++)
        for (const char *const *name = (const char *[]){"latest", "00000002", NULL}; *name != NULL;
             name++) {
            assert_int_equal(mkdir(path_of(*name), 0700), 0);
            fuse = fuse_mount(path_of(*name), OTHER_UID, others);
            assert_true(checkpoints_is_stranger(dir, *name));
            assert_false(checkpoints_is_free(dir, *name));
            assert_true(checkpoints_latest(dir) == INT64_MAX);
            assert_false(checkpoint_is_complete(dir, *name, &key));
            fuse_unmount(path_of(*name), fuse);
            assert_false(checkpoints_is_stranger(dir, *name));
            assert_int_equal(rmdir(path_of(*name)), 0);
            assert_true(checkpoints_is_free(dir, *name));
        }
    /* What an admin has mounted is as any. */
    snprintf(was, sizeof(was), "%s", path_of("2"));
    assert_int_equal(rename(path_of("1"), was), 0);
    assert_int_equal(mkdir(path_of("1"), 0700), 0);
    assert_int_equal(mount(was, path_of("1"), NULL, MS_BIND, NULL), 0);
    assert_false(checkpoints_is_stranger(dir, "1"));
    assert_true(is_complete());
    assert_int_equal(umount(path_of("1")), 0);
    close(dir);
}

static void test_who_has_mounted(void **state)
{
    const char *own = "36 21 0:40 / /a rw shared:1 - fuse.sshfs host: rw,user_id=1001,group_id=0\n",
               *named = "37 21 0:41 / /a rw - fuse.x ,user_id=0 rw,user_id=1002,group_id=0\n",
               *of_root = "38 21 0:42 / /user_id=7 rw - fuse /dev/fuse rw,user_id=0,group_id=0\n",
               *other = "40 21 0:43 / /data rw - nfs4 host: rw,user_id=7\n";

    (void)state;
    assert_true(mounted_by_user(own) && mounted_by_other(own, 0) && mounted_by_other(own, 100));
    assert_false(mounted_by_other(own, 1001));
    assert_true(mounted_by_user(named) && mounted_by_other(named, 1001));
    assert_false(mounted_by_user(of_root) || mounted_by_other(of_root, 1001));
    assert_false(mounted_by_user(other) || mounted_by_other(other, 1001));
}

/* Where the parts of a node are. Free with free(). */
static char *parts_of(int dir)
{
    char link[64], path[256] = "";
    int fd = checkpoints_open_parts(dir, "n1");

    assert_true(fd >= 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    assert_true(readlink(link, path, sizeof(path) - 1) > 0);
    close(fd);
    return strdup(path);
}

static void expect_parts(int dir, const char *name)
{
    char *found = parts_of(dir);

    assert_string_equal(found, path_of(name));
    free(found);
}

/* Returns the name. */
static char *expect_spare(int dir, const char *before)
{
    char *found = parts_of(dir), *name = strstr(found, ".parts-");

    assert_non_null(name);
    assert_true(snapshot_is_parts_name(strtok(name, "/")));
    if (before != NULL)
        assert_string_equal(name, before);
    name = strdup(name);
    free(found);
    return name;
}

static void test_parts(void **state)
{
    int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *spare;

    (void)state;
    expect_parts(dir, ".parts/n1");
    expect_parts(dir, ".parts/n1");
    assert_int_equal(chmod(path_of(".parts"), 0777), 0);
    spare = expect_spare(dir, NULL);
    assert_int_equal(chmod(path_of(".parts"), 0700), 0);
    expect_parts(dir, ".parts/n1");
    assert_int_equal(unlinkat(dir, ".parts/n1", AT_REMOVEDIR) | rmdir(path_of(".parts")), 0);
    assert_int_equal(symlinkat("1", dir, ".parts"), 0);
    free(expect_spare(dir, spare));
    assert_int_equal(unlinkat(dir, ".parts", 0), 0);
    put(".parts", "");
    free(expect_spare(dir, spare));
    if (geteuid() == 0) {
        assert_int_equal(unlinkat(dir, ".parts", 0), 0);
        expect_parts(dir, ".parts/n1");
        assert_int_equal(chown(path_of(".parts"), OTHER_UID, OTHER_UID), 0);
        free(expect_spare(dir, spare));
        assert_int_equal(chown(path_of(spare), OTHER_UID, OTHER_UID), 0);
        free(spare);
        spare = expect_spare(dir, NULL);
    }
    free(spare);
    close(dir);
}

/* A checkpoint may have so many files that looking at all takes too long. */
static void test_it_stops(void **state)
{
    (void)state;
    stop_watch(0);
    raise(SIGTERM);
    assert_false(is_complete());
    stop_watch(0);
    assert_true(is_complete());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_latest, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_free_names, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_mounted_by_others, make_one, remove_one),
        cmocka_unit_test(test_who_has_mounted),
        cmocka_unit_test_setup_teardown(test_parts, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_sizes, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_writable_by_others, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_each_is_judged, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_writable_by_a_group, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_where_a_link_leads, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_of_others, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_links, make_one, remove_one),
        cmocka_unit_test_setup_teardown(test_it_stops, make_one, remove_one),
    };

    return cmocka_run_group_tests_name("checkpoints", tests, NULL, NULL);
}
