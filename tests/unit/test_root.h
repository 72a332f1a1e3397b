/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of a test, and files below it. */
#ifndef ELASTIC_TESTS_TEST_ROOT_H
#define ELASTIC_TESTS_TEST_ROOT_H

#include "tests/unit/support.h"

#include "common/files.h"

static char root[64];

/* Until the next call. */
static inline const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static inline void put(const char *name, const char *text)
{
    struct error err = {""};

    assert_int_equal(file_replace(path_of(name), text, strlen(text), 0600, &err), 0);
}

#endif
