/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An error as one line of text for the user: what was wrong, with which value, what is right. */
#ifndef ELASTIC_ERROR_H
#define ELASTIC_ERROR_H

#include <stdbool.h>

struct error {
    char text[768];
};

/* Format a message into err, which may be NULL. Always returns -1, so that a failure is one
 * statement: `return error_set(err, "…")`. The text becomes one line of valid UTF-8 (error_clean)
 * and is cut with "..." if it is too long. The arguments may point into err. errno keeps its
 * value. */
int error_set(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "PREFIX: " before the text of err. The end of the text is cut if it no longer fits. Always
 * returns -1. */
int error_prefix(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A value from outside, short enough to leave room for the rest of a message. As an argument of
 * error_set: `error_value(text).text`, which lives until the end of that statement. */
struct error_value {
    char text[164];
};

/* The first 60 bytes of value, "..." where something was cut. NULL gives "(none)". */
struct error_value error_value(const char *value);

/* The last 160 bytes of a path, with "..." in front where something was cut. */
struct error_value error_path(const char *path);

/* Replace, in place, what would break a line or a terminal (control characters) and each byte that
 * is not UTF-8 by '?'. */
void error_clean(char *text);
/* Whether there is nothing of that in it. */
bool error_is_clean(const char *text);

#endif
