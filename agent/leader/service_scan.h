/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The repository of a service: which models there are, and their versions.
 *
 *     MODEL/            states of the model, as elastic-state writes them: 000007/, current
 *     MODEL/model.json  {"key": "tenant_A", "bytes": 4000000000}: both may be left out
 *
 * That is also how copies of a repository on S3 lie, with lines beside them (state/mirror_files.h).
 *
 * It waits for the file system: for a thread. */
#ifndef ELASTIC_AGENT_LEADER_SERVICE_SCAN_H
#define ELASTIC_AGENT_LEADER_SERVICE_SCAN_H

#include "lib/error.h"
#include "lib/service.h"

struct service_found {
    struct service_model *list; /* its texts are own */
    int count, room;
};

/* copies: it is the directory of our own copies, and must belong to this user. -1 with err: the
 * repository cannot be read; nothing is known then. */
int service_scan(const char *repository, bool copies, struct service_found *found,
                 struct error *err);
void service_found_clear(struct service_found *found);

#endif
