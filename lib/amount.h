/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Amounts of money from text and back: at most six digits behind the point, in any locale. */
#ifndef ELASTIC_AMOUNT_H
#define ELASTIC_AMOUNT_H

#include <stddef.h>

#define AMOUNT_MAX      1000000000
#define AMOUNT_TEXT_MAX 24
#define AMOUNT_FORM     "write a number such as 12 or 0.35, with at most 6 digits behind the point"

/* Read len bytes of text, such as "12" or "0.35", as an amount from 0 to AMOUNT_MAX. Returns 0 with
 * *amount set, or -1 with *amount unchanged. */
int amount_parse(const char *text, size_t len, double *amount);

/* The amount, rounded to six digits behind the point, without needless zeros. Returns buf. */
char *amount_format(double amount, char *buf, size_t size);

#endif
