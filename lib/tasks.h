/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's text for the tasks of each node of a step: "2(x3),1". Pure. */
#ifndef ELASTIC_TASKS_H
#define ELASTIC_TASKS_H

/* The tasks of a node, by its number in the step. 0: the text, which may be NULL, does not tell. */
int tasks_of_node(const char *text, int node);

/* The tasks of the node that has the most. 0: as above. */
int tasks_most(const char *text);

#endif
