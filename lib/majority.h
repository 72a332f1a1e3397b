/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The number that most nodes have of something. Pure. */
#ifndef ELASTIC_MAJORITY_H
#define ELASTIC_MAJORITY_H

/* The most frequent of the numbers; of several the largest. If that is 0, the largest of all.
 * Without numbers 0. The numbers are sorted by it. */
int majority(int *numbers, int count);

#endif
