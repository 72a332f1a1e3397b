/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much memory this process and its children may still take. */
#ifndef ELASTIC_COMMON_MEMORY_H
#define ELASTIC_COMMON_MEMORY_H

#include <stdint.h>

/* Bytes: the least of what the node has available and what every memory cgroup around this
 * process (version 1 or 2) leaves, caches that can be dropped included. UINT64_MAX when nothing
 * says so. root: "" or, for tests, a directory with proc/ and sys/ in it. */
uint64_t memory_available(const char *root);

#endif
