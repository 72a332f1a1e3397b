/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The switches of slurmctld's topology (switches.h).
 *
 * Until 23.11 they are in a table of slurmctld. Since 24.05 the topology plugin keeps them to
 * itself, and tells only where a node is. */
#include "plugins/select/compat.h"

#include "plugins/select/switches.h"

#include <stdlib.h>
#include <string.h>

#include "lib/placement.h"
#include "lib/switch_tree.h"

#pragma weak node_record_count
#pragma weak node_record_table_ptr

#if SLURM_SINCE(24, 5)
/* Slurm's plugin calls have no cookie. They are made under slurmctld's locks. */
static struct switch_tree tree;

void switches_forget(void)
{
    switch_tree_clear(&tree);
}

int switches_read(int *leaf, int **parent)
{
    switches_forget();
    for (int node = 0; node < node_record_count; node++) {
        char *address = NULL, *pattern = NULL;

        if (node_record_table_ptr[node] != NULL &&
            topology_g_get_node_addr(node_record_table_ptr[node]->name, &address, &pattern) ==
                SLURM_SUCCESS &&
            address != NULL && pattern != NULL)
            leaf[node] = switch_tree_add(&tree, address, pattern);
        xfree(address);
        xfree(pattern);
    }
    *parent = malloc(((size_t)tree.count + 1) * sizeof(**parent));
    if (*parent == NULL)
        return 0;
    if (tree.count > 0)
        memcpy(*parent, tree.parents, (size_t)tree.count * sizeof(**parent));
    return tree.count;
}

const char *switches_name(int at)
{
    return at >= 0 && at < tree.count ? tree.names[at] : "?";
}
#else
#pragma weak switch_record_cnt
#pragma weak switch_record_table

void switches_forget(void)
{
}

/* A node on two leaf switches counts for the first. */
static void read_switch(const switch_record_t *at, int number, int *leaf, int *parent)
{
    for (int k = 0; k < at->num_switches; k++)
        if (at->switch_index[k] < switch_record_cnt)
            parent[at->switch_index[k]] = number;
    if (at->level != 0 || at->node_bitmap == NULL)
        return;
    for (int node = 0; node < node_record_count && node < bit_size(at->node_bitmap); node++)
        if (bit_test(at->node_bitmap, node) && leaf[node] == PLACEMENT_NONE)
            leaf[node] = number;
}

int switches_read(int *leaf, int **parent)
{
    int count = switch_record_table != NULL ? switch_record_cnt : 0;

    *parent = malloc(((size_t)count + 1) * sizeof(**parent));
    if (*parent == NULL)
        return 0;
    for (int i = 0; i < count; i++)
        (*parent)[i] = PLACEMENT_NONE;
    for (int i = 0; i < count; i++)
        read_switch(&switch_record_table[i], i, leaf, *parent);
    return count;
}

const char *switches_name(int at)
{
    if (at < 0 || at >= switch_record_cnt || switch_record_table[at].name == NULL)
        return "?";
    return switch_record_table[at].name;
}
#endif
