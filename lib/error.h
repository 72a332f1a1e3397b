/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An error as one line of text for the user: what was wrong, with which value, what would be right. */
#ifndef ELASTIC_ERROR_H
#define ELASTIC_ERROR_H

struct error {
    char text[512];
};

/* Format a message into err (which may be NULL). Always returns -1, so that a failure is one statement:
 * `return error_set(err, "…")`. */
int error_set(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "PREFIX: " before the text of err, cutting the end if it no longer fits. Always returns -1. */
int error_prefix(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
