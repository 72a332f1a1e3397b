/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The switches of slurmctld's topology. */
#ifndef ELASTIC_SELECT_SWITCHES_H
#define ELASTIC_SELECT_SWITCHES_H

/* Read them anew. leaf: for each node of slurmctld its switch, filled with PLACEMENT_NONE; *parent:
 * a new array of the switch above each one. Returns the number of switches, and 0 with *parent NULL
 * where there is no memory. */
int switches_read(int *leaf, int **parent);

/* "?": there is no such switch. */
const char *switches_name(int at);

void switches_forget(void);

#endif
