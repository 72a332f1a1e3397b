/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole numbers from text (number.h). */
#include "lib/number.h"

#include <stdint.h>

int number_parse(const char *text, size_t len, int min, int max, int *value)
{
    int64_t number = 0;

    if (len == 0)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = 10 * number + (text[i] - '0');
        if (number > max)
            return -1;
    }
    if (number < min)
        return -1;
    *value = (int)number;
    return 0;
}

double number_clamp(double x, double low, double high)
{
    return !(x > low) ? low : x > high ? high : x;
}
