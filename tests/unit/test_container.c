/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/container: which texts of /proc/PID/mountinfo have the same file system at "/". */
#include "agent/container.h"

#include "tests/unit/support.h"

#define HOST      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
#define PROC      "23 22 0:5 / /proc rw,nosuid - proc proc rw\n"
#define OWN_TMP   "90 22 8:1 /jobs/7 /tmp rw - ext4 /dev/sda1 rw\n"
#define IMAGE     "400 399 0:61 / / ro,nosuid - overlay overlay ro\n"
#define DIRECTORY "400 399 8:1 /images/train / rw - ext4 /dev/sda1 rw\n"

static void test_roots(void **state)
{
    static const struct {
        const char *one, *other;
        bool same;
    } cases[] = {
        {HOST PROC, HOST PROC, true},
        {HOST PROC, HOST PROC OWN_TMP, true},
        {HOST PROC, IMAGE PROC, false},
        {HOST PROC, DIRECTORY PROC, false},
        /* The one above hides the other. */
        {HOST PROC, HOST PROC IMAGE, false},
        {IMAGE, HOST IMAGE, true},
        /* In a chroot, "/" may be no mount. Nothing is known then. */
        {HOST PROC, PROC, true},
        {"", HOST, true},
        {"22 1 8:1", "/ / /\n\n/", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(container_same_root(cases[i].one, cases[i].other), cases[i].same);
        assert_int_equal(container_same_root(cases[i].other, cases[i].one), cases[i].same);
    }
}

static void test_here(void **state)
{
    (void)state;
    assert_false(container_is_entered()); /* make check is no job */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
