/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Amounts of money (amount.h). As whole millionths, up to AMOUNT_MAX, a double is exact. */
#include "lib/amount.h"

#include <stdint.h>
#include <string.h>

#include "lib/number.h"
#include "lib/text.h"

#define DIGITS     6
#define MILLIONTHS 1000000

int amount_parse(const char *text, size_t len, double *amount)
{
    const char *point = memchr(text, '.', len);
    size_t units = point != NULL ? (size_t)(point - text) : len;
    size_t digits = point != NULL ? len - units - 1 : 0;
    int whole, fraction = 0;

    if (number_parse(text, units, 0, AMOUNT_MAX, &whole) < 0)
        return -1;
    if (point != NULL &&
        (digits > DIGITS || number_parse(point + 1, digits, 0, MILLIONTHS, &fraction) < 0))
        return -1;
    for (; digits < DIGITS; digits++)
        fraction *= 10;
    if (whole == AMOUNT_MAX && fraction > 0)
        return -1;
    *amount = whole + (double)fraction / MILLIONTHS;
    return 0;
}

char *amount_format(double amount, char *buf, size_t size)
{
    int64_t millionths = (int64_t)(amount * MILLIONTHS + 0.5), fraction = millionths % MILLIONTHS;
    int digits = DIGITS;

    buf[0] = '\0';
    text_append(buf, size, "%lld", (long long)(millionths / MILLIONTHS));
    if (fraction == 0)
        return buf;
    for (; fraction % 10 == 0; digits--)
        fraction /= 10;
    return text_append(buf, size, ".%0*lld", digits, (long long)fraction);
}
