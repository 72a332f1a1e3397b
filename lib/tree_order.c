/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of nodes along a tree of switches (tree_order.h). */
#include "lib/tree_order.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

char *tree_path(const char *address, const char *pattern, char path[TREE_PATH_MAX])
{
    static const char node[] = ".node";
    size_t length = pattern != NULL ? strlen(pattern) : 0;
    const char *end = address;

    path[0] = '\0';
    if (address == NULL || length <= strlen(node) ||
        strcmp(pattern + length - strlen(node), node) != 0)
        return path;
    /* As many parts as the pattern has without the node's name, which may have dots. */
    for (const char *dot = pattern; (dot = strchr(dot, '.')) != NULL; dot++) {
        end = strchr(end, '.');
        if (end == NULL || end == address)
            return path;
        end++;
    }
    end--;
    if ((size_t)(end - address) >= TREE_PATH_MAX)
        return path;
    memcpy(path, address, (size_t)(end - address));
    path[end - address] = '\0';
    return path;
}

/* ---- parts of paths -------------------------------------------------------------------------- */

static const char *text_of(const char *path)
{
    return path != NULL ? path : "";
}

static size_t part_length(const char *part)
{
    return strcspn(part, ".");
}

static bool same_part(const char *a, const char *b)
{
    size_t length = part_length(a);

    return length == part_length(b) && memcmp(a, b, length) == 0;
}

static const char *next_part(const char *part)
{
    part += part_length(part);
    return part + (*part == '.');
}

/* As strverscmp, of parts. */
static int compare_parts(const char *a, const char *b)
{
    size_t x = part_length(a), y = part_length(b);
    char left[TREE_PATH_MAX], right[TREE_PATH_MAX];

    if (x >= sizeof(left) || y >= sizeof(right))
        return strcmp(a, b);
    memcpy(left, a, x);
    memcpy(right, b, y);
    left[x] = right[y] = '\0';
    return strverscmp(left, right);
}

/* ---- order ----------------------------------------------------------------------------------- */

struct walk {
    const char *const *paths;
    const char *first, *last;
    int shared; /* parts that first and last have in common */
};

/* How many switches are above both. */
static int count_shared(const char *a, const char *b)
{
    int count = 0;

    for (; *a != '\0' && *b != '\0' && same_part(a, b); count++) {
        a = next_part(a);
        b = next_part(b);
    }
    return count;
}

/* The walk ends with the nodes that are nearer to its end than the nodes at its beginning: if it
 * went to them earlier, it would have to come back. */
static bool is_tail(const struct walk *walk, const char *path)
{
    return count_shared(path, walk->last) > walk->shared;
}

/* Compare two children of one switch. near: the child that is first, or last, NULL if none is. */
static int compare_children(const char *a, const char *b, const char *near, bool tail)
{
    if (*a == '\0' || *b == '\0')
        return *a == '\0' ? 1 : -1;
    if (near != NULL && (same_part(near, a) || same_part(near, b)))
        return same_part(near, a) == tail ? 1 : -1;
    return compare_parts(a, b);
}

/* Go down from the top while both nodes are below the same switch. */
static int compare_paths(const char *a, const char *b, const char *near, bool tail)
{
    while (*a != '\0' && *b != '\0' && same_part(a, b)) {
        near = near != NULL && same_part(near, a) ? next_part(near) : NULL;
        a = next_part(a);
        b = next_part(b);
    }
    return *a == '\0' && *b == '\0' ? 0 : compare_children(a, b, near, tail);
}

static int compare_indices(const void *x, const void *y, void *arg)
{
    const struct walk *walk = arg;
    int i = *(const int *)x, k = *(const int *)y, order;
    const char *a = text_of(walk->paths[i]), *b = text_of(walk->paths[k]);
    bool tail = is_tail(walk, a);

    if (tail != is_tail(walk, b))
        return tail ? 1 : -1;
    order = compare_paths(a, b, tail ? walk->last : walk->first, tail);
    return order != 0 ? order : i - k;
}

void tree_order(const char *const *paths, int count, const char *first, const char *last,
                int *order)
{
    struct walk walk = {paths, text_of(first), text_of(last), 0};

    walk.shared = count_shared(walk.first, walk.last);
    for (int i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, (size_t)count, sizeof(*order), compare_indices, &walk);
}
