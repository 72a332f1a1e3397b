/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of this node that may say why its workers are slow (lib/node_health.h). */
#ifndef ELASTIC_AGENT_MEMBER_HEALTH_H
#define ELASTIC_AGENT_MEMBER_HEALTH_H

#include "lib/node_health.h"

/* Reads some files of /proc and /sys, which do not block. root: "" or, in tests, a directory that
 * has them. */
void health_read(const char *root, struct node_health *health);

#endif
