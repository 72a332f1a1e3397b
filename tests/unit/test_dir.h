/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory for files that a test makes and removes by the thousand. */
#ifndef ELASTIC_TESTS_TEST_DIR_H
#define ELASTIC_TESTS_TEST_DIR_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_DIR_SIZE 32

/* A new one, in memory where that can be: ext4 without a journal passes by the inodes of what was
 * removed in the last seconds, and that takes most of the time of such tests. `path` has room for
 * TEST_DIR_SIZE bytes. */
static inline bool make_test_dir(char *path)
{
    bool memory = access("/dev/shm", W_OK | X_OK) == 0;

    strcpy(path, memory ? "/dev/shm/elastic-XXXXXX" : "/tmp/elastic-XXXXXX");
    return mkdtemp(path) != NULL;
}

#endif
