/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory of its own for each test, and files in it: for tests of fit/ with files. */
#ifndef ELASTIC_TESTS_FIT_FIXTURE_H
#define ELASTIC_TESTS_FIT_FIXTURE_H

#include <stdbool.h>
#include <unistd.h>

#include "common/files.h"
#include "lib/error.h"
#include "tests/unit/support.h"

static char dir[] = "/tmp/test-fit-XXXXXX";

static inline bool make_dir(void)
{
    strcpy(dir, "/tmp/test-fit-XXXXXX");
    return mkdtemp(dir) != NULL;
}

static inline void remove_dir(void)
{
    assert_int_equal(dir_remove(dir, NULL), 0);
}

/* A path there; it holds for the next two calls. */
static inline const char *at(const char *name)
{
    static char paths[3][128];
    static int which;

    which = (which + 1) % 3;
    snprintf(paths[which], sizeof(paths[which]), "%s/%s", dir, name);
    return paths[which];
}

static inline void put(const char *name, const char *text)
{
    assert_int_equal(file_replace(at(name), text, strlen(text), 0600, NULL), 0);
}

static inline void expect_error(int rc, const struct error *err, const char *text)
{
    assert_int_equal(rc, -1);
    if (strstr(err->text, text) == NULL)
        fail_msg("not \"%s\": %s", text, err->text);
}

#endif
