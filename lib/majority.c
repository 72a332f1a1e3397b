/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The number that most nodes have of something (majority.h). */
#include "lib/majority.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const int *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

int majority(int *numbers, int count)
{
    int best = 0, most = 0, same = 0;

    if (count == 0)
        return 0;
    qsort(numbers, (size_t)count, sizeof(*numbers), compare);
    for (int i = 0; i < count; i++) {
        same = i > 0 && numbers[i] == numbers[i - 1] ? same + 1 : 1;
        if (same < most)
            continue;
        most = same;
        best = numbers[i];
    }
    return best > 0 ? best : numbers[count - 1];
}
