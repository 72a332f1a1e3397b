/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Directories that a job file names, when another user has made them before: `shared`, and the
 * copies of models. */
#include "agent/leader/service_scan.h"
#include "agent/member/shared_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/support.h"

#define OTHER 12345

static char top[64], shared[128], copies[128], link_to_it[128], model[160];

static int make(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/tmp/elastic-owned.XXXXXX");
    if (mkdtemp(top) == NULL)
        return -1;
    snprintf(shared, sizeof(shared), "%s/shared", top);
    snprintf(copies, sizeof(copies), "%s/copies", top);
    snprintf(link_to_it, sizeof(link_to_it), "%s/link", top);
    snprintf(model, sizeof(model), "%s/m", copies);
    return mkdir(shared, 0777) != 0 || mkdir(copies, 0777) != 0 || mkdir(model, 0777) != 0 ? -1 : 0;
}

static int drop(void **state)
{
    (void)state;
    rmdir(model);
    rmdir(copies);
    rmdir(shared);
    return rmdir(top);
}

static void is_said(const struct error *err)
{
    assert_non_null(strstr(err->text, "it belongs to uid 12345"));
}

static void test_shared(void **state)
{
    struct error err = {""};

    (void)state;
    assert_int_equal(shared_dir_make(shared, &err), 0);
    if (geteuid() != 0)
        skip(); /* only root can give it away */
    assert_int_equal(chown(shared, OTHER, (gid_t)-1), 0);
    assert_int_equal(shared_dir_make(shared, &err), -1);
    is_said(&err);
}

/* In one with the sticky bit nobody replaces what others have there. */
static void test_shared_modes(void **state)
{
    static const struct {
        mode_t mode;
        int rc;
    } rows[] = {{0755, 0}, {0775, -1}, {0757, -1}, {01777, 0}, {01775, 0}, {0700, 0}};

    (void)state;
    if (geteuid() == 0)
        assert_int_equal(chown(shared, 0, (gid_t)-1), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct error err = {""};

        assert_int_equal(chmod(shared, rows[i].mode), 0);
        assert_int_equal(shared_dir_make(shared, &err), rows[i].rc);
        assert_true(rows[i].rc == 0 || strstr(err.text, "chmod go-w") != NULL);
    }
}

static void test_copies(void **state)
{
    struct service_found found;
    struct error err = {""};

    (void)state;
    assert_int_equal(service_scan(copies, true, &found, &err), 0);
    assert_int_equal(found.count, 1);
    service_found_clear(&found);
    /* A link leads to what is this user's, but was meant for something else. */
    assert_int_equal(symlink(copies, link_to_it), 0);
    assert_int_equal(service_scan(link_to_it, true, &found, &err), -1);
    assert_int_equal(unlink(link_to_it), 0);
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(copies, OTHER, (gid_t)-1), 0);
    assert_int_equal(service_scan(copies, true, &found, &err), -1);
    is_said(&err);
    /* A repository is another's now and then. */
    assert_int_equal(service_scan(copies, false, &found, &err), 0);
    assert_int_equal(found.count, 1);
    service_found_clear(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared),
                                       cmocka_unit_test(test_shared_modes),
                                       cmocka_unit_test(test_copies)};

    return cmocka_run_group_tests(tests, make, drop);
}
