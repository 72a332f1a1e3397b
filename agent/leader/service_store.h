/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is done with a service's directory and its repository: one thing at a time, in a thread. */
#ifndef ELASTIC_AGENT_LEADER_SERVICE_STORE_H
#define ELASTIC_AGENT_LEADER_SERVICE_STORE_H

#include <limits.h>
#include <stdbool.h>

#include <uv.h>

#include "agent/leader/service_scan.h"
#include "common/service_dir.h"

enum service_task_kind {
    SERVICE_TASK_CLAIM,   /* out: claim, claimed; then record and table, NULL: there are none */
    SERVICE_TASK_WRITE,   /* name, text: a file of the directory; NULL: it is removed */
    SERVICE_TASK_SCAN,    /* out: found */
    SERVICE_TASK_LOOK,    /* name: a file of the directory. out: seen */
    SERVICE_TASK_PROGRAM, /* argv. out: text, what it has printed */
};

struct service_task {
    uv_work_t work;
    enum service_task_kind kind;
    char dir[PATH_MAX], repository[PATH_MAX];
    bool copies; /* the repository is the directory of our own copies */
    uint32_t job;
    char name[64];
    char **argv; /* own */
    char *text;
    bool leads; /* of WRITE: only if the job still runs the service: term */
    int64_t term;
    enum service_claim claim;
    struct service_gone gone; /* of CLAIM: what Slurm has said of the other job … */
    double now;               /* … as of then */
    struct service_claimed claimed;
    struct service_seen seen;
    char *record, *table;
    struct service_found found;
    int rc;
    struct error err;
    void *owner; /* NULL: nobody is to hear of it */
    void (*done)(void *owner, struct service_task *task);
};

/* Begin it; its owner hears of the end from the loop, and the task is gone after that. task comes
 * from calloc(), and is taken over also if this fails: -1. */
int service_task_begin(uv_loop_t *loop, struct service_task *task);

#endif
