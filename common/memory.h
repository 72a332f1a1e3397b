/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much memory this process and its children may still take. */
#ifndef ELASTIC_COMMON_MEMORY_H
#define ELASTIC_COMMON_MEMORY_H

#include <stdint.h>

/* The bytes that are left: the least of the node's available memory and of the limits of all memory
 * cgroups around this process (version 1 or 2). Caches that can be dropped count as free.
 * UINT64_MAX when nothing is known. root: "" or, for tests, a directory with proc/ and sys/ in
 * it. */
uint64_t memory_available(const char *root);

/* How many processes the kernel has killed in the memory cgroup of this process, since it was out
 * of memory. 0 also when nothing is known. root: as above. */
uint64_t memory_oom_kills(const char *root);

#endif
