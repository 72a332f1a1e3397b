/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of names of nodes, as NULL-terminated arrays. Pure. */
#ifndef ELASTIC_NAMES_H
#define ELASTIC_NAMES_H

#include <stdbool.h>

/* Each array may be NULL, which is the empty set. A new array (strings_free) keeps the order. NULL:
 * out of memory. */

/* Those that are not in the second set. */
char **names_without(char *const *names, char *const *without);
/* Those of the first set, then those that are only in the second one. */
char **names_with(char *const *names, char *const *also);
/* How many are not in the second set; -1: out of memory. */
int names_count_without(char *const *names, char *const *without);
/* Have both the same names, in whatever order? False as well if out of memory. */
bool names_equal(char *const *a, char *const *b);

#endif
