/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole numbers from text, as strictly as a user can be told about it. */
#ifndef ELASTIC_NUMBER_H
#define ELASTIC_NUMBER_H

#include <stddef.h>

/* Read len bytes of text, decimal digits only (no sign, no blank), as a number within min..max,
 * which are not negative. 0 with *value set, -1 with *value untouched for anything else: empty,
 * other characters, out of range. */
int number_parse(const char *text, size_t len, int min, int max, int *value);

#endif
