/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fit/grant: what a trainer of another user can open, and that it is closed again. */
#include <acl/libacl.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/files.h"
#include "fit/acl.h"
#include "fit/grant.h"
#include "lib/json_get.h"
#include "tests/unit/fit_fixture.h"

#define OTHER 1U /* daemon */
#define THIRD "2"

/* ---- a fit ----------------------------------------------------------------------------------- */

static struct home own_home;
static char data_path[128], write_path[128], tree[128];

static int make_grants(void **state)
{
    int64_t id;

    (void)state;
    if (!make_dir() || chmod(dir, 0711) != 0 || setenv("HOME", dir, 1) != 0 ||
        home_open(&own_home, "s", NULL) != 0)
        return -1;
    put("data", "d");
    snprintf(data_path, sizeof(data_path), "%s", at("data"));
    snprintf(write_path, sizeof(write_path), "%s", at("models/m/000001.partial/" GRANT_INCOMING));
    *strrchr(write_path, '/') = '\0';
    if (dir_make(write_path, NULL) != 0)
        return -1;
    write_path[strlen(write_path)] = '/';
    if (mkdir(write_path, 0700) != 0)
        return -1;
    return home_add(&own_home, json_object_new_object(), &id, NULL);
}

static int remove_grants(void **state)
{
    (void)state;
    remove_dir();
    return 0;
}

static struct grant_order an_order(void)
{
    return (struct grant_order){.user = "other",
                                .uid = OTHER,
                                .read = {{.path = data_path}},
                                .write = write_path,
                                .job = 7,
                                .restarts = 1,
                                .cluster = "one",
                                .until = 1000};
}

/* … whose data is a directory, with that one in it. */
static struct grant_order an_order_of_tree(const char *below)
{
    struct grant_order order = an_order();

    snprintf(tree, sizeof(tree), "%s", at("tree"));
    assert_int_equal(dir_make(at(below), NULL), 0);
    order.read[0].path = tree;
    return order;
}

static void give(const struct grant_order *order)
{
    struct error err = {""};

    if (grant_give(&own_home, 1, order, &err) != 0)
        fail_msg("%s", err.text);
}

static bool is_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool has = false;

    assert_true(fd >= 0);
    assert_int_equal(acl_has_user(fd, path, OTHER, &has, NULL), 0);
    close(fd);
    return has;
}

/* So many grants are open no more when that run has ended. */
static int revoked(uint32_t job, uint32_t restarts, const char *cluster, double now)
{
    const struct grant_run run = {.job = job, .restarts = restarts, .cluster = cluster};
    int count;

    assert_int_equal(grant_revoke_all(job != 0 ? &run : NULL, now, &count, NULL), 0);
    return count;
}

static size_t count_lost(void)
{
    json_object *lost = grant_lost(&own_home, 1);
    size_t count = lost != NULL ? json_object_array_length(lost) : 0;

    for (size_t i = 0; i < count; i++) {
        assert_non_null(json_get_string(json_object_array_get_idx(lost, i), "path"));
        assert_non_null(json_get_string(json_object_array_get_idx(lost, i), "why"));
    }
    json_object_put(lost);
    return count;
}

static void set_acl(const char *path, acl_type_t type, const char *text)
{
    acl_t acl = acl_from_text(text);

    assert_non_null(acl);
    assert_int_equal(acl_set_file(path, type, acl), 0);
    acl_free(acl);
}

/* "probe" is looked at: is the place of the result open by then? */
static int probes;
static bool probe_open;
/* What has that name cannot be looked at, for that reason. */
static int unseen;
int __real_fstatat(int fd, const char *name, struct stat *st, int flags);
int __wrap_fstatat(int fd, const char *name, struct stat *st, int flags);

int __wrap_fstatat(int fd, const char *name, struct stat *st, int flags)
{
    if (strcmp(name, "probe") == 0) {
        probes++;
        probe_open = is_open(write_path);
    }
    if (unseen == 0 || strcmp(name, "mounted") != 0)
        return __real_fstatat(fd, name, st, flags);
    errno = unseen;
    return -1;
}

/* The ACL of that file cannot be changed, for that reason. */
static int refusal;
static ino_t refusing;
int __real_acl_set_fd(int fd, acl_t acl);
int __wrap_acl_set_fd(int fd, acl_t acl);

int __wrap_acl_set_fd(int fd, acl_t acl)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    if (refusal == 0 || st.st_ino != refusing)
        return __real_acl_set_fd(fd, acl);
    errno = refusal;
    return -1;
}

static void refuse(const char *path, int reason)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    refusing = st.st_ino;
    refusal = reason;
}

/* Jobs of two clusters have the same number, and the same home. */
static void test_whose_grant(void **state)
{
    struct grant_order order = an_order();

    (void)state;
    give(&order);
    assert_true(is_open(data_path) && is_open(write_path));
    assert_int_equal(revoked(8, 9, "One", 10), 0);
    assert_int_equal(revoked(7, 0, "One", 10), 0);
    assert_int_equal(revoked(7, 1, "two", 10), 0);
    assert_true(is_open(data_path));
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(is_open(data_path) || is_open(write_path) || grant_is_open(&own_home, 1));
    give(&order);
    assert_int_equal(revoked(7, 1, NULL, 10), 1);
    order.cluster = NULL; /* as grants of before */
    give(&order);
    assert_int_equal(revoked(7, 1, "two", 10), 1);
}

static void test_expired_grant(void **state)
{
    const struct grant_order order = an_order();

    (void)state;
    give(&order);
    assert_int_equal(revoked(0, 0, NULL, 999), 0);
    assert_true(is_open(data_path));
    assert_int_equal(revoked(0, 0, NULL, 1001), 1);
    assert_false(is_open(data_path) || is_open(write_path));
}

/* Somebody who may rename there has put another file of this user in its place. */
static void test_another_file(void **state)
{
    struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    assert_int_equal(grant_check(data_path, &order.read[0].data, &err), 0);
    give(&order);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    /* It may have got the number of the inode that is gone. Not each file system says when. */
    if (order.read[0].data.born != 0) {
        order.read[0].data.born--;
        expect_error(grant_give(&own_home, 1, &order, &err), &err,
                     "another one than when the fit was started");
        assert_false(is_open(data_path));
        order.read[0].data.born++;
        assert_int_equal(truncate(data_path, 1), 0); /* by its owner */
        give(&order);
        assert_int_equal(revoked(7, 1, "One", 10), 1);
    }
    put("secret", "s");
    assert_int_equal(rename(at("secret"), data_path), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err,
                 "another one than when the fit was started");
    assert_false(is_open(data_path));
    /* … or a link to a directory of this user. */
    assert_int_equal(dir_make(at("private"), NULL), 0);
    put("private/data", "s");
    assert_int_equal(symlink("private", at("way")), 0);
    order.read[0].data.inode = 0;
    order.read[0].path = at("way/data");
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "there is a link in it");
    assert_false(is_open(at("private/data")));
    /* That keeps no fit from its end. */
    order.read[0].path = data_path;
    give(&order);
    assert_int_equal(rename(data_path, at("moved")), 0);
    assert_int_equal(symlink("private/data", data_path), 0);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
}

static struct pin pin_at(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return pin_of(&st);
}

/* The state before, and the place of the result, are the ones that they were: somebody who may
 * rename above them has put another file or directory of this user there. */
static void test_another_state(void **state)
{
    struct grant_order order = an_order();
    struct error err = {""};
    struct pin before, made = pin_at(write_path);
    char previous[128];

    (void)state;
    snprintf(previous, sizeof(previous), "%s", at("before"));
    assert_int_equal(mkdir(previous, 0700), 0);
    put("before/weights", "w");
    before = pin_at(previous);
    order.read[0].path = previous;
    order.read[0].pin = &before;
    order.made = &made;
    give(&order);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    /* A directory, and a file even if nothing is known of it. */
    assert_int_equal(rename(previous, at("moved")), 0);
    assert_int_equal(mkdir(previous, 0700), 0);
    put("before/secret", "s");
    expect_error(grant_give(&own_home, 1, &order, &err), &err,
                 "another one than when the fit was started");
    assert_false(is_open(previous) || is_open(at("before/secret")));
    order.read[0].path = data_path;
    before = (struct pin){0};
    expect_error(grant_give(&own_home, 1, &order, &err), &err,
                 "another one than when the fit was started");
    assert_false(is_open(data_path));
    order.read[0].path = NULL;
    assert_int_equal(rename(write_path, at("made")), 0);
    assert_int_equal(rename(previous, write_path), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "another one than the fit has made");
    assert_false(is_open(write_path) || grant_is_open(&own_home, 1));
}

/* Nobody could pass the repository: what others may read in it was closed by that alone. */
static void test_repository(void **state)
{
    const struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    assert_int_equal(mkdir(at("models/other"), 0755), 0);
    assert_int_equal(chmod(at("models/other"), 0755), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "models/other: others may open it");
    assert_false(is_open(data_path) || grant_is_open(&own_home, 1));
    assert_int_equal(chmod(at("models/other"), 0750), 0);
    give(&order);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
}

/* Whoever may write below data must not keep access from being taken back. */
static void test_what_comes_meanwhile(void **state)
{
    const struct grant_order order = an_order_of_tree("tree");
    char deep[PATH_MAX];

    (void)state;
    put("tree/file", "d");
    snprintf(deep, sizeof(deep), "%s", tree);
    give(&order);
    assert_true(is_open(at("tree/file")));
    for (int i = 0; i < 40; i++) {
        strcat(deep, "/a");
        assert_int_equal(mkdir(deep, 0700), 0);
    }
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(is_open(at("tree/file")) || is_open(tree));
}

/* … nor by a path that is longer than any. */
static void test_long_paths(void **state)
{
    const struct grant_order order = an_order_of_tree("tree");
    char name[201];
    struct error err = {""};
    int fd, below;

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    put("tree/file", "d");
    give(&order);
    fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 24; i++) {
        assert_int_equal(mkdirat(fd, name, 0700), 0);
        below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(fd);
        fd = below;
    }
    close(fd);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(is_open(at("tree/file")) || is_open(tree));
    assert_int_equal(count_lost(), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "too long");
    assert_false(is_open(tree));
}

/* Somebody has mounted there what only that one may look at, or what is not there any more. */
static void test_unseen(void **state)
{
    static const int reasons[] = {EACCES, ENOTCONN};
    const struct grant_order order = an_order_of_tree("tree/mounted");
    struct error err = {""};

    (void)state;
    put("tree/file", "d");
    put("tree/mounted/file", "d");
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++) {
        give(&order);
        assert_true(is_open(at("tree/mounted/file")));
        unseen = reasons[i];
        assert_int_equal(revoked(7, 1, "One", 10), 1);
        assert_false(is_open(at("tree/file")) || is_open(tree));
        assert_false(grant_is_open(&own_home, 1));
        assert_int_equal(count_lost(), 1);
        expect_error(grant_give(&own_home, 1, &order, &err), &err, "tree/mounted: ");
        assert_int_equal(revoked(0, 0, NULL, 10), 0); /* it is as before */
        assert_int_equal(count_lost(), 1);
        unseen = 0;
        assert_int_equal(revoked(0, 0, NULL, 10), 0);
        assert_false(is_open(at("tree/mounted/file")));
        assert_int_equal(count_lost(), 0);
    }
}

/* A name need not be UTF-8: what it names is tried again as well. */
static void test_unseen_bytes(void **state)
{
    const struct grant_order order = an_order_of_tree("tree/m\xff\xfe/mounted");

    (void)state;
    put("tree/m\xff\xfe/mounted/file", "d");
    give(&order);
    unseen = EACCES;
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_true(is_open(at("tree/m\xff\xfe/mounted/file")));
    unseen = 0;
    assert_int_equal(count_lost(), 1);
    assert_int_equal(revoked(0, 0, NULL, 10), 0);
    assert_false(is_open(at("tree/m\xff\xfe/mounted/file")));
    assert_int_equal(count_lost(), 0);
}

/* Of an immutable file, and of the place of the new state while its file system is read-only. */
static void test_refused(void **state)
{
    const struct grant_order order = an_order_of_tree("tree");

    (void)state;
    put("tree/file", "d");
    put("tree/other", "d");
    for (int i = 0; i < 2; i++) {
        give(&order);
        refuse(i == 0 ? at("tree/file") : write_path, i == 0 ? EPERM : EROFS);
        assert_int_equal(revoked(7, 1, "One", 10), 1);
        assert_false(grant_is_open(&own_home, 1));
        assert_false(is_open(at("tree/other")) || is_open(tree));
        assert_int_equal(is_open(at("tree/file")), i == 0);
        assert_int_equal(is_open(write_path), i == 1);
        assert_int_equal(count_lost(), 1);
        assert_int_equal(revoked(0, 0, NULL, 10), 0); /* it is as before */
        assert_int_equal(count_lost(), 1);
        refusal = 0;
        assert_int_equal(revoked(0, 0, NULL, 10), 0);
        assert_false(is_open(at("tree/file")) || is_open(write_path));
        assert_int_equal(count_lost(), 0);
    }
}

/* A file that cannot be changed, in a tree with a directory that cannot be looked at: both are
 * lost, each once. */
static void test_refused_and_unseen(void **state)
{
    const struct grant_order order = an_order_of_tree("tree/sub/mounted");

    (void)state;
    put("tree/file", "d");
    give(&order);
    unseen = EACCES;
    refuse(at("tree/file"), EPERM);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_lost(), 2);
        assert_int_equal(revoked(0, 0, NULL, 10), 0);
    }
    unseen = refusal = 0;
    assert_int_equal(revoked(0, 0, NULL, 10), 0);
    assert_false(is_open(at("tree/file")) || is_open(at("tree/sub/mounted")));
    assert_int_equal(count_lost(), 0);
}

/* A directory has so many names more, of files that are gone again. */
static int more_names;
const char *__real_entry_next(DIR *list);
const char *__wrap_entry_next(DIR *list);

const char *__wrap_entry_next(DIR *list)
{
    return more_names > 0 && more_names-- > 0 ? "gone" : __real_entry_next(list);
}

/* Others make directories below the data without an end: nobody looks into them. Until all of the
 * data has been looked at, the way and the place of the result are closed. */
static void test_endless(void **state)
{
    const struct grant_order order = an_order_of_tree("tree/below");
    struct error err = {""};

    (void)state;
    put("tree/below/probe", "d");
    probes = 0;
    assert_int_equal(grant_give(&own_home, 1, &order, &err), 0);
    assert_true(probes > 0 && is_open(write_path) && is_open(at("tree/below/probe")));
    probes = 0;
    probe_open = true;
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    assert_true(probes > 0 && !probe_open);
    more_names = 199990;
    assert_int_equal(grant_give(&own_home, 1, &order, &err), 0);
    more_names = 300000;
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    assert_int_equal(more_names, 0);
    assert_false(is_open(at("tree/below/probe")));
    more_names = 200001;
    expect_error(grant_give(&own_home, 1, &order, &err), &err,
                 "more than 200000 files and directories");
    more_names = 0;
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(at("tree/below"), OTHER, (gid_t)-1), 0);
    probes = 0;
    assert_int_equal(grant_give(&own_home, 1, &order, &err), 0);
    assert_false(is_open(at("tree/below/probe")));
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    assert_int_equal(probes, 0);
}

/* Whoever may write to the data moves a file there that nobody but this user can read. */
static void test_moved_there(void **state)
{
    const char *const error = "they may have moved it there";
    const struct grant_order order = an_order_of_tree("tree/below");
    struct error err = {""};

    (void)state;
    put("tree/below/file", "d");
    assert_int_equal(grant_give(&own_home, 1, &order, &err), 0);
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    assert_int_equal(chmod(tree, 0770), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err, error);
    assert_false(is_open(at("tree/below/file")) || grant_is_open(&own_home, 1));
    assert_int_equal(chmod(at("tree/below/file"), 0640), 0);
    /* All could read it, and nobody could get there. */
    assert_int_equal(chmod(at("tree/below/file"), 0644), 0);
    assert_int_equal(chmod(at("tree/below"), 0700), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "cannot enter this directory");
    assert_false(is_open(at("tree/below")) || is_open(at("tree/below/file")));
    assert_int_equal(chmod(at("tree/below"), 0750), 0);
    give(&order);
    /* … after access was given, and it is given once more. */
    put("tree/secret", "s");
    expect_error(grant_give(&own_home, 1, &order, &err), &err, error);
    assert_false(is_open(at("tree/secret")));
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    assert_int_equal(unlink(at("tree/secret")), 0);
    give(&order);
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
}

/* Others may write by the mode, or by a name in the ACL; and a group is not each group. */
static void test_who_may_move(void **state)
{
    static const struct {
        const char *above;
        mode_t file;
        bool gives;
    } rows[] = {
        {"u::rwx,g::r-x,o::r-x", 0600, true},
        {"u::rwx,g::r-x,o::rwx", 0640, false},
        {"u::rwx,g::r-x,o::rwx", 0644, true},
        {"u::rwx,u:" THIRD ":rwx,g::r-x,m::rwx,o::---", 0640, false},
        {"u::rwx,u:" THIRD ":rwx,g::r-x,m::r-x,o::---", 0600, true},
        {"u::rwx,u:" THIRD ":r-x,g::r-x,m::rwx,o::---", 0600, false},
        {"u::rwx,u:" THIRD ":r-x,g::rwx,m::rwx,o::---", 0640, true},
    };
    const struct grant_order order = an_order_of_tree("tree");
    struct error err = {""};

    (void)state;
    put("tree/file", "d");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        set_acl(tree, ACL_TYPE_ACCESS, rows[i].above);
        assert_int_equal(chmod(at("tree/file"), rows[i].file), 0);
        if ((grant_give(&own_home, 1, &order, &err) == 0) != rows[i].gives)
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    }
    /* The group of the file is another one than that of the directory. */
    set_acl(tree, ACL_TYPE_ACCESS, "u::rwx,g::rwx,o::---");
    if (geteuid() == 0) {
        assert_int_equal(chown(at("tree/file"), (uid_t)-1, 7), 0);
        expect_error(grant_give(&own_home, 1, &order, &err), &err, "they may have moved it there");
    }
}

/* A directory above the data, the data, and a file in it. */
struct above {
    mode_t mode;
    uid_t owner;     /* 0: this user */
    const char *acl; /* instead of the mode */
    mode_t tree, file;
    bool gives;
};

static void check_above(const struct above *row, const char *above, const char *file)
{
    const char *const error = "others may write to a directory above, and cannot ";
    struct grant_order order = an_order();
    struct error err = {""};

    set_acl(above, ACL_TYPE_ACCESS, "u::rwx,g::---,o::---");
    assert_int_equal(chmod(above, row->mode), 0);
    if (row->acl != NULL)
        set_acl(above, ACL_TYPE_ACCESS, row->acl);
    if (row->owner != 0)
        assert_int_equal(chown(above, row->owner, (gid_t)-1), 0);
    assert_int_equal(chmod(tree, row->tree) | chmod(file, row->file), 0);
    order.read[0].path = tree;
    if (row->gives)
        give(&order);
    else
        expect_error(grant_give(&own_home, 1, &order, &err), &err, error);
    assert_int_equal(is_open(tree), row->gives && (row->tree & S_IROTH) == 0);
    assert_int_equal(is_open(file), row->gives && (row->file & S_IROTH) == 0);
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    set_acl(above, ACL_TYPE_ACCESS, "u::rwx,g::r-x,o::r-x");
    assert_int_equal(chmod(above, 0755) | chown(above, geteuid(), (gid_t)-1), 0);
}

/* Whoever may rename in a directory above the data moves another directory of this user to its
 * place, which nobody but this user can read. */
static void test_moved_above(void **state)
{
    static const struct above rows[] = {
        {0755, 0, NULL, 0700, 0600, true},
        {0775, 0, NULL, 0700, 0600, false},
        {0775, 0, NULL, 0750, 0600, false},
        {0775, 0, NULL, 0750, 0640, true},
        {0777, 0, NULL, 0750, 0640, false},
        {0777, 0, NULL, 0755, 0644, true},
        {01777, 0, NULL, 0700, 0600, true},
        {0755, 0, "u::rwx,u:1:rwx,g::r-x,m::rwx,o::r-x", 0750, 0640, false}, /* the trainer's */
        {0755, 0, "u::rwx,u:1:r-x,g::r-x,m::r-x,o::r-x", 0700, 0600, true},
        {0755, OTHER, NULL, 0750, 0640, false},
        {01755, OTHER, NULL, 0750, 0640, false},
        {0755, OTHER, NULL, 0755, 0644, true},
    };
    char near[128], far[128], file[128];

    (void)state;
    assert_int_equal(dir_make(at("project/sub/tree"), NULL), 0);
    snprintf(far, sizeof(far), "%s", at("project"));
    snprintf(near, sizeof(near), "%s", at("project/sub"));
    snprintf(tree, sizeof(tree), "%s", at("project/sub/tree"));
    snprintf(file, sizeof(file), "%s", at("project/sub/tree/file"));
    put("project/sub/tree/file", "d");
    assert_int_equal(chmod(far, 0755) | chmod(near, 0755), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (rows[i].owner != 0 && geteuid() != 0)
            continue;
        check_above(&rows[i], far, file);
        check_above(&rows[i], near, file);
    }
}

/* … or a file. The state before is the fit's choice, by its pin. */
static void test_file_moved_above(void **state)
{
    struct grant_order order = an_order();
    struct error err = {""};
    struct pin before;

    (void)state;
    assert_int_equal(dir_make(at("project/before"), NULL), 0);
    put("project/data", "d");
    put("project/before/weights", "w");
    assert_int_equal(chmod(at("project"), 0775), 0);
    order.read[0].path = at("project/data");
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "cannot read this file");
    assert_false(is_open(at("project/data")));
    assert_int_equal(chmod(at("project/data"), 0640), 0);
    order.read[0].path = at("project/data");
    give(&order);
    assert_true(is_open(at("project/data")));
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    order.read[0].path = at("project/before");
    before = pin_at(order.read[0].path);
    order.read[0].pin = &before;
    give(&order);
    assert_true(is_open(at("project/before/weights")));
}

/* Data below a directory that nobody passes, and no place of a result among files. */
static void test_no_result_here(void **state)
{
    struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    assert_int_equal(dir_make(at("private"), NULL), 0);
    assert_int_equal(chmod(at("private"), 0700), 0);
    put("private/data", "d");
    order.read[0].path = at("private/data");
    order.write = NULL;
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "others cannot pass this directory");
}

/* ---- what is there meanwhile ----------------------------------------------------------------- */

/* The entry of the trainer that another file has is none of the grant's. */
static void test_another_one_meanwhile(void **state)
{
    const struct grant_order order = an_order();
    struct error err = {""};
    int fd;

    (void)state;
    give(&order);
    put("mine", "m");
    assert_int_equal(rename(at("mine"), data_path), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err,
                 "another one than when access was given");
    assert_false(is_open(data_path));
    fd = open(data_path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(acl_let(fd, data_path, OTHER, ACL_R, &err), 0);
    close(fd);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_true(is_open(data_path));
    assert_false(is_open(write_path) || grant_is_open(&own_home, 1));
    assert_int_equal(count_lost(), 1);
}

/* It may be back later: then it is closed, whoever comes. */
static void test_moved_away(void **state)
{
    const struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    give(&order);
    assert_int_equal(rename(data_path, at("moved")), 0);
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    assert_true(is_open(at("moved")) && !is_open(write_path));
    assert_false(grant_is_open(&own_home, 1));
    assert_int_equal(count_lost(), 1);
    assert_int_equal(revoked(0, 0, NULL, 10), 0); /* it is not there yet */
    assert_int_equal(count_lost(), 1);
    assert_int_equal(rename(at("moved"), data_path), 0);
    assert_int_equal(revoked(0, 0, NULL, 10), 0); /* nothing was open by then */
    assert_false(is_open(data_path));
    assert_int_equal(count_lost(), 0);
    assert_false(home_has(&own_home, 1, HOME_GRANT_FILE));
}

/* What is lost of one attempt is no reason to close the next one. */
static void test_lost_and_given(void **state)
{
    struct grant_order order = an_order();

    (void)state;
    give(&order);
    assert_int_equal(rename(data_path, at("moved")), 0);
    assert_int_equal(grant_revoke(&own_home, 1, 0, NULL), 0);
    put("data", "d");
    give(&order);
    assert_int_equal(revoked(0, 0, NULL, 10), 0);
    assert_true(is_open(data_path) && is_open(write_path));
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(is_open(data_path));
    assert_int_equal(count_lost(), 1);
}

/* The clean-up of a fit removes its place: nothing of that is lost. */
static void test_place_removed(void **state)
{
    const struct grant_order order = an_order();

    (void)state;
    give(&order);
    assert_int_equal(dir_remove(at("models/m"), NULL), 0);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_int_equal(count_lost(), 0);
}

static void test_no_grant(void **state)
{
    const struct grant_order order = an_order();
    struct home_path path = home_path(&own_home, 1, HOME_GRANT_FILE);

    (void)state;
    assert_int_equal(file_replace(path.text, "{", 1, 0600, NULL), 0);
    assert_true(grant_is_open(&own_home, 1));
    assert_int_equal(grant_revoke(&own_home, 1, 0, NULL), 0);
    assert_false(grant_is_open(&own_home, 1));
    assert_int_equal(count_lost(), 1);
    assert_true(home_has(&own_home, 1, HOME_GRANT_BROKEN));
    give(&order);
    assert_int_equal(file_replace(path.text, "{\"paths\": 3}", 12, 0600, NULL), 0);
    assert_int_equal(revoked(0, 0, NULL, 10), 0);
    assert_int_equal(count_lost(), 1);
}

/* ---- ACLs that are there --------------------------------------------------------------------- */

static bool acl_says(const char *path, acl_type_t type, const char *entry)
{
    acl_t acl = acl_get_file(path, type);
    char *text = acl_to_any_text(acl, NULL, ',', TEXT_NUMERIC_IDS);
    bool says;

    says = text != NULL && strstr(text, entry) != NULL;
    acl_free(text);
    acl_free(acl);
    return says;
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

/* An entry without effect would have one if the mask were wider. */
static void test_sleeping_entries(void **state)
{
    const struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    set_acl(data_path, ACL_TYPE_ACCESS, "u::rw-,u:" THIRD ":rw-,g::---,m::---,o::---");
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "the mask of its ACL");
    assert_true(acl_says(data_path, ACL_TYPE_ACCESS, "mask::---"));
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
    assert_true(acl_says(data_path, ACL_TYPE_ACCESS, "user:" THIRD ":rw-"));
    assert_true(acl_says(data_path, ACL_TYPE_ACCESS, "mask::---"));
}

static void test_group(void **state)
{
    static const struct {
        const char *before;
        mode_t after;
    } rows[] = {
        {"u::rw-,g::---,o::---", 0600},
        {"u::rw-,g::r--,o::---", 0640},
        {"u::rw-,g::rw-,m::r--,o::---", 0640}, /* the mask goes with the last name */
        {"u::rw-,u:" THIRD ":r--,g::---,m::r--,o::---", 0640},
    };
    const struct grant_order order = an_order();

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        set_acl(data_path, ACL_TYPE_ACCESS, rows[i].before);
        give(&order);
        assert_true(is_open(data_path));
        assert_int_equal(grant_revoke(&own_home, 1, 0, NULL), 0);
        assert_int_equal(mode_of(data_path), rows[i].after);
        assert_false(is_open(data_path));
    }
}

/* What the trainer could not reach, as it could not pass the repository. */
static void test_unreached_entries(void **state)
{
    const struct grant_order order = an_order();
    const struct passwd *entry = getpwuid(OTHER);
    struct error err = {""};
    char text[64];

    (void)state;
    assert_int_equal(mkdir(at("models/other"), 0700), 0);
    set_acl(at("models/other"), ACL_TYPE_ACCESS, "u::rwx,u:1:r-x,g::---,m::r-x,o::---");
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "its ACL lets other in");
    if (entry != NULL) {
        snprintf(text, sizeof(text), "u::rwx,g::---,g:%u:r-x,m::r-x,o::---", entry->pw_gid);
        set_acl(at("models/other"), ACL_TYPE_ACCESS, text);
        expect_error(grant_give(&own_home, 1, &order, &err), &err, "its ACL lets other in");
    }
    assert_false(grant_is_open(&own_home, 1) || is_open(data_path));
    set_acl(at("models/other"), ACL_TYPE_ACCESS, "u::rwx,u:1:r-x,g::---,m::---,o::---");
    give(&order);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
}

/* The place of the result is for two, whatever the directory above says. */
static void test_inherited_entries(void **state)
{
    const struct grant_order order = an_order();

    (void)state;
    set_acl(at("models/m/000001.partial"), ACL_TYPE_DEFAULT,
            "u::rwx,u:" THIRD ":rwx,g::r-x,m::rwx,o::r-x");
    assert_int_equal(rmdir(write_path), 0);
    assert_int_equal(mkdir(write_path, 0700), 0);
    give(&order);
    assert_true(is_open(write_path));
    assert_false(acl_says(write_path, ACL_TYPE_ACCESS, "user:" THIRD ":"));
    assert_false(acl_says(write_path, ACL_TYPE_DEFAULT, "user:" THIRD ":"));
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(acl_says(write_path, ACL_TYPE_DEFAULT, "user:"));
    assert_false(acl_says(write_path, ACL_TYPE_ACCESS, "mask:"));
}

/* What is made below data later is none of the grant's. */
static void test_default_entries(void **state)
{
    const struct grant_order order = an_order_of_tree("tree");

    (void)state;
    set_acl(tree, ACL_TYPE_DEFAULT, "u::rwx,u:1:r-x,u:" THIRD ":rwx,g::---,m::rwx,o::---");
    give(&order);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(is_open(tree));
    assert_true(acl_says(tree, ACL_TYPE_DEFAULT, "user:1:r-x"));
    assert_true(acl_says(tree, ACL_TYPE_DEFAULT, "user:" THIRD ":rwx"));
}

/* The top opens last: who can open it finds all of it open. */
static void test_top_last(void **state)
{
    const struct grant_order order = an_order_of_tree("tree");
    struct error err = {""};

    (void)state;
    put("tree/file", "d");
    set_acl(at("tree/file"), ACL_TYPE_ACCESS, "u::rw-,g::---,m::---,o::---");
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "the mask of its ACL");
    assert_false(is_open(tree));
    assert_int_equal(grant_revoke(&own_home, 1, 0, &err), 0);
}

/* ---- who gives, and takes -------------------------------------------------------------------- */

static void test_later_runner(void **state)
{
    struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    order.claim = 2;
    give(&order);
    expect_error(grant_revoke(&own_home, 1, 1, &err), &err, "another process runs the fits");
    assert_true(is_open(data_path));
    assert_int_equal(grant_revoke(&own_home, 1, 2, &err), 0);
    assert_false(is_open(data_path));
}

/* A process that gives access is waited for by one that takes it back. */
static void test_one_at_a_time(void **state)
{
    const struct grant_order order = an_order();
    const struct timespec pause = {.tv_nsec = 200000000L};
    int ready[2], status;
    char byte;
    pid_t child;

    (void)state;
    give(&order);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        int fd = open(at(".slurm-elastic/services/.grants"), O_RDWR | O_CLOEXEC);

        if (fd < 0 || flock(fd, LOCK_EX) != 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        nanosleep(&pause, NULL);
        _exit(is_open(data_path) && mkdir(at("waited"), 0700) == 0 ? 0 : 1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_int_equal(access(at("waited"), F_OK), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ready[0]);
}

/* Fits of two services in one repository: the first to end leaves the way of the other one. */
static void test_shared_way(void **state)
{
    struct grant_order order = an_order();
    struct home other;
    char way[128], second[128];
    int64_t id;

    (void)state;
    snprintf(way, sizeof(way), "%s", at("models"));
    snprintf(second, sizeof(second), "%s", at("models/n/000001.partial/" GRANT_INCOMING));
    assert_int_equal(dir_make(second, NULL), 0);
    assert_int_equal(home_open(&other, "t", NULL), 0);
    assert_int_equal(home_add(&other, json_object_new_object(), &id, NULL), 0);
    give(&order);
    order.read[0].path = NULL;
    order.write = second;
    assert_int_equal(grant_give(&other, id, &order, NULL), 0);
    assert_int_equal(grant_revoke(&own_home, 1, 0, NULL), 0);
    assert_true(is_open(way) && is_open(second) && !is_open(write_path));
    assert_int_equal(grant_revoke(&other, id, 0, NULL), 0);
    assert_false(is_open(way) || is_open(second));
}

#define WITH_GRANTS(test) cmocka_unit_test_setup_teardown(test, make_grants, remove_grants)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GRANTS(test_whose_grant),        WITH_GRANTS(test_expired_grant),
        WITH_GRANTS(test_another_file),       WITH_GRANTS(test_another_state),
        WITH_GRANTS(test_repository),         WITH_GRANTS(test_what_comes_meanwhile),
        WITH_GRANTS(test_long_paths),         WITH_GRANTS(test_unseen),
        WITH_GRANTS(test_unseen_bytes),       WITH_GRANTS(test_refused),
        WITH_GRANTS(test_refused_and_unseen), WITH_GRANTS(test_endless),
        WITH_GRANTS(test_moved_there),        WITH_GRANTS(test_who_may_move),
        WITH_GRANTS(test_moved_above),        WITH_GRANTS(test_file_moved_above),
        WITH_GRANTS(test_no_result_here),     WITH_GRANTS(test_another_one_meanwhile),
        WITH_GRANTS(test_moved_away),         WITH_GRANTS(test_lost_and_given),
        WITH_GRANTS(test_place_removed),      WITH_GRANTS(test_no_grant),
        WITH_GRANTS(test_sleeping_entries),   WITH_GRANTS(test_group),
        WITH_GRANTS(test_unreached_entries),  WITH_GRANTS(test_inherited_entries),
        WITH_GRANTS(test_default_entries),    WITH_GRANTS(test_top_last),
        WITH_GRANTS(test_later_runner),       WITH_GRANTS(test_one_at_a_time),
        WITH_GRANTS(test_shared_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
