/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the PMIx library finds in the environment (pmix/environment.c). */
#include "tests/unit/support.h"

#include <unistd.h>

#include "pmix/environment.h"

static char **own_environment; /* cmocka reads it */

static int keep_environment(void **state)
{
    own_environment = environ;
    return 0;
}

static int restore_environment(void **state)
{
    environ = own_environment;
    return 0;
}

static void test_nothing_of_another_server_is_left(void **state)
{
    static char long_name[300] = "PMIX_";
    char *entries[] = {
        "A=1", "PMIX_X", "PMIX_", "PMIX_NAMESPACE=7", long_name, "PMIXX=2", "PMIX_MCA_gds=shmem",
        NULL};

    alarm(120); /* as it once did not come back */
    memset(long_name + 5, 'N', 200);
    strcat(long_name, "=1");
    environ = entries;
    environment_prepare();
    assert_string_equal(environ[0], "A=1");
    assert_string_equal(environ[1], "PMIXX=2");
    assert_string_equal(getenv("PMIX_MCA_gds"), "hash");
    assert_null(getenv("PMIX_NAMESPACE"));
    for (char **each = environ; *each != NULL; each++)
        assert_true(strncmp(*each, "PMIX_", 5) != 0 || strncmp(*each, "PMIX_MCA_", 9) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_of_another_server_is_left, keep_environment,
                                        restore_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
