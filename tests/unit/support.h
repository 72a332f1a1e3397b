/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What several unit tests need: cmocka with its headers, files of the tree, and random numbers that
 * are the same in every run. */
#ifndef ELASTIC_TESTS_SUPPORT_H
#define ELASTIC_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* cmocka 2 has two in its place, one for each kind of number, and warns of the old one. */
#ifdef assert_uint_in_range
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of a random test. With --enable-sanitizers each takes ten times as long: there are fewer. */
#ifdef __SANITIZE_ADDRESS__
#define RANDOM_ROUNDS(all) ((all) / 20)
#else
#define RANDOM_ROUNDS(all) (all)
#endif

/* A file of the source tree: a new string. */
static inline char *read_tree_file(const char *path)
{
    const char *top = getenv("top_srcdir");
    char name[4096];
    char *text = NULL;
    size_t room = 0;
    FILE *file;

    snprintf(name, sizeof(name), "%s/%s", top != NULL ? top : ".", path);
    file = fopen(name, "r");
    if (file == NULL || getdelim(&text, &room, '\0', file) < 0)
        fail_msg("%s cannot be read", name);
    fclose(file);
    return text;
}

/* xorshift64* (Vigna 2016), so that a seed means the same on every libc. state must not be 0. */
static inline uint32_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545f4914f6cdd1dULL) >> 32);
}

static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return random_next(state) % limit;
}

static inline int is_near(double value, double expected, double most)
{
    return value - expected <= most && expected - value <= most;
}

/* Of doubles: assert_float_equal() compares floats. */
#define assert_near(value, expected, most) assert_true(is_near(value, expected, most))

/* What every message to the user must be: there, one line, and not cut. */
static inline void assert_one_line(const char *text)
{
    assert_string_not_equal(text, "");
    assert_null(strpbrk(text, "\r\n\033"));
    assert_true(strlen(text) < 640);
}

#endif
