/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of switches, from the addresses of nodes (switch_tree.h). */
#include "lib/switch_tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/placement.h"

/* The first of "s[1-2]" or "s1,s2", whose text has len bytes: a new string. */
static char *first_of(const char *text, size_t len)
{
    char *name = malloc(len + 1);
    size_t used = 0;
    bool in_brackets = false, beyond = false; /* beyond: the first number in the brackets */

    for (size_t i = 0; name != NULL && i < len; i++) {
        if (!in_brackets && text[i] == ',')
            break;
        if (text[i] == '[') {
            in_brackets = true;
            beyond = false;
        } else if (text[i] == ']') {
            in_brackets = false;
        } else if (in_brackets && (text[i] == '-' || text[i] == ',')) {
            beyond = true;
        } else if (!in_brackets || !beyond) {
            name[used++] = text[i];
        }
    }
    if (name != NULL)
        name[used] = '\0';
    return name;
}

/* Takes the name. Nodes of one switch mostly follow each other, so the last switch is looked at
 * first. */
static int find_or_add(struct switch_tree *tree, char *name, int above)
{
    char **names;
    int *parents;

    for (int i = tree->count - 1; name != NULL && i >= 0; i--) {
        if (strcmp(tree->names[i], name) == 0) {
            free(name);
            return i;
        }
    }
    names = name != NULL ? realloc(tree->names, ((size_t)tree->count + 1) * sizeof(*names)) : NULL;
    if (names != NULL)
        tree->names = names;
    parents = names != NULL ? realloc(tree->parents, ((size_t)tree->count + 1) * sizeof(*parents))
                            : NULL;
    if (parents == NULL) {
        free(name);
        return PLACEMENT_NONE;
    }
    tree->parents = parents;
    /* What is above is in the tree already: no circle can arise. */
    tree->parents[tree->count] = above;
    tree->names[tree->count] = name;
    return tree->count++;
}

int switch_tree_add(struct switch_tree *tree, const char *address, const char *pattern)
{
    int above = PLACEMENT_NONE;

    for (; (pattern = strchr(pattern, '.')) != NULL; pattern++) {
        size_t len = strcspn(address, ".");

        if (address[len] != '.')
            break;
        /* A node need not have a switch on each level. */
        if (len > 0)
            above = find_or_add(tree, first_of(address, len), above);
        address += len + 1;
    }
    return above;
}

void switch_tree_clear(struct switch_tree *tree)
{
    for (int i = 0; i < tree->count; i++)
        free(tree->names[i]);
    free(tree->names);
    free(tree->parents);
    *tree = (struct switch_tree){0};
}
