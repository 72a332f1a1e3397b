/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks of each node (tasks.h). */
#include "lib/tasks.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "lib/number.h"

/* Reads "2(x3)" or "1" and what separates it from the next. */
static bool read_group(const char **text, int *tasks, int *nodes)
{
    size_t len = strspn(*text, "0123456789");

    if (number_parse(*text, len, 1, INT_MAX, tasks) < 0)
        return false;
    *text += len;
    *nodes = 1;
    if (strncmp(*text, "(x", 2) == 0) {
        len = strspn(*text + 2, "0123456789");
        if (number_parse(*text + 2, len, 1, INT_MAX, nodes) < 0 || (*text)[2 + len] != ')')
            return false;
        *text += 2 + len + 1;
    }
    if (**text == ',')
        (*text)++;
    else if (**text != '\0')
        return false;
    return true;
}

int tasks_of_node(const char *text, int node)
{
    int tasks, nodes;

    while (text != NULL && *text != '\0' && read_group(&text, &tasks, &nodes)) {
        if (node < nodes)
            return tasks;
        node -= nodes;
    }
    return 0;
}

int tasks_most(const char *text)
{
    int tasks, nodes, most = 0;

    while (text != NULL && *text != '\0' && read_group(&text, &tasks, &nodes))
        if (tasks > most)
            most = tasks;
    return most;
}
