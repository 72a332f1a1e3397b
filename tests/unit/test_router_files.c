/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The router's files where others may write: its directory in /tmp (router/home), and a file of its
 * table that is replaced while it is looked at (router/watch). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "router/home.h"
#include "router/watch.h"
#include "tests/unit/fuse.h"
#include "tests/unit/support.h"

/* ---- the directory --------------------------------------------------------------------------- */

/* No directory of ours, whoever has made it. */
static void take(const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fclose(file);
}

static void test_a_name_that_somebody_has_taken(void **state)
{
    enum { GUESSES = 20 };
    char service[32], first[HOME_PATH], guesses[GUESSES][HOME_PATH + 16];
    struct error err = {""};
    struct home home, found;

    (void)state;
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(service, sizeof(service), "test-%d", (int)getpid());
    assert_int_equal(home_find(&home, NULL, service, &err), 0);
    snprintf(first, sizeof(first), "%s", home.dir);
    take(first);
    for (int i = 0; i < GUESSES; i++) {
        snprintf(guesses[i], sizeof(guesses[i]), "%s.%d", first, i);
        take(guesses[i]);
    }
    assert_int_equal(home_find(&home, NULL, service, &err), 0);
    assert_string_not_equal(home.dir, first);
    assert_int_equal(home_open(&home, service, &err), 0);
    assert_int_equal(unlink(first), 0);
    for (int i = 0; i < GUESSES; i++)
        assert_int_equal(unlink(guesses[i]), 0);
    /* Its name stays, whatever becomes of the other one. */
    assert_int_equal(home_find(&found, NULL, service, &err), 0);
    assert_string_equal(found.dir, home.dir);
    assert_true(home_is_held(&found));
    home_close(&home);
    snprintf(first, sizeof(first), "%.80s/lock", home.dir);
    unlink(first);
    assert_int_equal(rmdir(home.dir), 0);
}

/* It may not answer, or say that it is ours. */
static void test_a_name_on_which_somebody_has_mounted(void **state)
{
    char service[32], first[HOME_PATH];
    struct error err = {""};
    struct home home;

    (void)state;
    if (!fuse_is_there())
        skip();
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(service, sizeof(service), "mounted-%d", (int)getpid());
    assert_int_equal(home_find(&home, NULL, service, &err), 0);
    snprintf(first, sizeof(first), "%s", home.dir);
    assert_int_equal(mkdir(first, 0700), 0);
    for (int others = 0; others < 2; others++) {
        int fuse = fuse_mount(first, 65534, others);

        assert_int_equal(home_find(&home, NULL, service, &err), 0);
        assert_string_not_equal(home.dir, first);
        assert_int_equal(home_find(&home, first, service, &err), 0);
        assert_false(home_is_held(&home));
        fuse_unmount(first, fuse);
    }
    assert_int_equal(home_find(&home, NULL, service, &err), 0);
    assert_string_equal(home.dir, first);
    assert_int_equal(rmdir(first), 0);
}

/* ---- the table ------------------------------------------------------------------------------- */

static char dir[64];
static bool replaced_next; /* while it is looked at */

static const char *in_dir(char path[96], const char *name)
{
    snprintf(path, 96, "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text, mode_t mode)
{
    char path[96];
    FILE *file = fopen(in_dir(path, name), "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

/* In the place of getuid() (tests/unit/local.mk): a look at a file asks for it. */
uid_t __real_getuid(void);
uid_t __wrap_getuid(void);

uid_t __wrap_getuid(void)
{
    char from[96], to[96];

    if (replaced_next)
        rename(in_dir(from, "other"), in_dir(to, "table"));
    replaced_next = false;
    return __real_getuid();
}

struct looks {
    struct watch *watch;
    char text[16], why[256];
};

static void on_change(const char *text, size_t length, const char *why, void *arg)
{
    struct looks *looks = arg;

    (void)length;
    snprintf(looks->text, sizeof(looks->text), "%s", text != NULL ? text : "");
    snprintf(looks->why, sizeof(looks->why), "%s", why != NULL ? why : "");
    uv_stop(uv_default_loop());
}

static void test_what_was_looked_at_is_read(void **state)
{
    struct looks looks = {0};
    uv_loop_t *loop = uv_default_loop();
    char path[96];

    (void)state;
    strcpy(dir, "/tmp/test-router-XXXXXX");
    assert_non_null(mkdtemp(dir));
    put("table", "ours", 0600);
    put("other", "not ours", 0644);
    replaced_next = true;
    looks.watch = watch_create(loop, in_dir(path, "table"), 100, true, 1, on_change, &looks);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_false(replaced_next);
    assert_string_equal(looks.text, "ours");
    /* The next look finds the other one. */
    uv_run(loop, UV_RUN_DEFAULT);
    assert_string_equal(looks.text, "");
    assert_non_null(strstr(looks.why, "may be read by others"));
    watch_destroy(looks.watch);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
    unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_that_somebody_has_taken),
        cmocka_unit_test(test_a_name_on_which_somebody_has_mounted),
        cmocka_unit_test(test_what_was_looked_at_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
