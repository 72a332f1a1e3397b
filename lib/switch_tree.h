/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of switches, from the addresses that Slurm gives nodes: "s0.s1.n1" is node n1 below
 * switch s1, which is below s0. Pure. */
#ifndef ELASTIC_SWITCH_TREE_H
#define ELASTIC_SWITCH_TREE_H

/* All zero: empty. */
struct switch_tree {
    int count;
    char **names;
    int *parents; /* the switch above each one, PLACEMENT_NONE: it is at the top. No circles */
};

/* Add the switches above a node. pattern has a word for each word of address, such as
 * "switch.switch.node"; the last is the node itself. Of several switches ("s[1-2]") the first
 * counts. Returns the switch right above the node; PLACEMENT_NONE: there is none, or no memory. */
int switch_tree_add(struct switch_tree *tree, const char *address, const char *pattern);

void switch_tree_clear(struct switch_tree *tree);

#endif
