/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole numbers from text, read strictly; limits. */
#ifndef ELASTIC_NUMBER_H
#define ELASTIC_NUMBER_H

#include <stddef.h>

/* Read len bytes of text, decimal digits only (no sign, no blank), as a number within min..max. min
 * and max are not negative. Returns 0 with *value set. Returns -1 with *value unchanged for
 * anything else: no digits, other characters, out of range. */
int number_parse(const char *text, size_t len, int min, int max, int *value);

/* x, or the limit that it is beyond. NaN becomes the lower one. */
double number_clamp(double x, double low, double high);

#endif
