/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of names (names.h). */
#include "lib/names.h"

#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in order: pointers to those of the caller. */
static char **sorted(char *const *names, size_t count)
{
    char **copy = malloc((count + 1) * sizeof(*copy));

    if (copy == NULL)
        return NULL;
    if (count > 0) {
        memcpy(copy, names, count * sizeof(*copy));
        qsort(copy, count, sizeof(*copy), compare);
    }
    return copy;
}

/* Appends copies to list, which has room. Returns how many it has then, -1: out of memory. */
static int append(char **list, int count, char *const *names, char *const *without)
{
    size_t others = strings_count(without);
    char **index = sorted(without, others);

    if (index == NULL)
        return -1;
    for (int i = 0; names != NULL && names[i] != NULL && count >= 0; i++) {
        if (bsearch(&names[i], index, others, sizeof(*index), compare) != NULL)
            continue;
        list[count] = strdup(names[i]);
        count = list[count] != NULL ? count + 1 : -1;
    }
    free(index);
    return count;
}

char **names_without(char *const *names, char *const *without)
{
    char **list = calloc(strings_count(names) + 1, sizeof(*list));

    if (list != NULL && append(list, 0, names, without) >= 0)
        return list;
    strings_free(list);
    return NULL;
}

char **names_with(char *const *names, char *const *also)
{
    char **list = calloc(strings_count(names) + strings_count(also) + 1, sizeof(*list));
    int count = list != NULL ? append(list, 0, names, NULL) : -1;

    if (count >= 0 && append(list, count, also, names) >= 0)
        return list;
    strings_free(list);
    return NULL;
}

int names_count_without(char *const *names, char *const *without)
{
    char **rest = names_without(names, without);
    int count = rest != NULL ? (int)strings_count(rest) : -1;

    strings_free(rest);
    return count;
}

bool names_equal(char *const *a, char *const *b)
{
    return names_count_without(a, b) == 0 && names_count_without(b, a) == 0;
}
