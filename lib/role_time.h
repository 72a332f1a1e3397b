/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times as a job file has them: 500ms, 30s, 1.5m, 2h, 1d; without a unit seconds. Pure. */
#ifndef ELASTIC_ROLE_TIME_H
#define ELASTIC_ROLE_TIME_H

#include <stddef.h>
#include <stdint.h>

/* len bytes of text as milliseconds; -1: it is no time, or longer than a year. */
int64_t role_time_parse(const char *text, size_t len);

/* The shortest text in s or ms that role_time_parse() reads as the same. Returns buf. */
char *role_time_format(double seconds, char *buf, size_t size);

/* "500ms, 30s, 10m, 2h" for a key that takes `least` milliseconds and more. Without the first where
 * none are taken, or where nobody wants so few. */
const char *role_time_examples(int least);

#endif
