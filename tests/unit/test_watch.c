/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/job_submit/watch.c, stopped while its thread waits for slurmctld's locks and while it
 * does not. */
#include "plugins/slurmctld.h"

#include <stdatomic.h>
#include <unistd.h>

#include "common/conf_file.h"
#include "plugins/job_submit/drains.h"
#include "plugins/job_submit/watch.h"

#include "tests/unit/support.h"

struct drains {
    atomic_bool waits, may_go_on, destroyed;
};

static struct drains drains;

struct conf *conf_file_load(const char *path, struct error *err)
{
    (void)path;
    error_set(err, "not there");
    return NULL;
}

char *conf_file_path(void)
{
    return NULL;
}

struct drains *drains_create(void)
{
    drains.waits = drains.may_go_on = drains.destroyed = false;
    return &drains;
}

void drains_destroy(struct drains *it)
{
    it->destroyed = true;
}

static void await(const atomic_bool *it)
{
    while (!*it)
        usleep(1000);
}

void drains_look(struct drains *it, double now)
{
    (void)now;
    it->waits = true;
    await(&it->may_go_on);
}

static time_t configured(void)
{
    return 1;
}

static void test_it_is_stopped_by_whom_it_waits_for(void **state)
{
    (void)state;
    watch_start(configured);
    await(&drains.waits);
    watch_stop(); /* with the locks */
    assert_false(drains.destroyed);
    drains.may_go_on = true;
    await(&drains.destroyed);
}

static void test_else_it_is_waited_for(void **state)
{
    (void)state;
    watch_start(configured);
    watch_stop();
    assert_true(drains.destroyed);
    watch_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_stopped_by_whom_it_waits_for),
        cmocka_unit_test(test_else_it_is_waited_for),
    };

    alarm(600);
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
