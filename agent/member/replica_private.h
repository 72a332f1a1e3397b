/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One start of a replica, as the files of replica.h know it. */
#ifndef ELASTIC_AGENT_MEMBER_REPLICA_PRIVATE_H
#define ELASTIC_AGENT_MEMBER_REPLICA_PRIVATE_H

#include <stdbool.h>

#include "agent/member/loader.h"
#include "agent/member/probe.h"
#include "agent/member/replica.h"
#include "agent/member/replica_ports.h"
#include "agent/member/tail.h"

#define FILES_MAX 80

struct task {
    struct replica *replica;
    int number; /* in the gang */
    char *name; /* what its lines begin with */
    const int *ports;
    char *gpus; /* NULL: it has given them back */
    bool ended;
    bool answers, ready;   /* its probe has succeeded; and it has its models */
    struct loader *loader; /* NULL: nobody makes it load models */
    char *links;           /* the directory from which it loads them; NULL: it has none */
    char **command, **added;
    struct tail tail;
    struct probe *probe; /* NULL: nobody looks */
    char *looked_at;     /* probe_options.what, where it is a file */
    char **probe_command;
    char probe_files[FILES_MAX];
    struct workers_options probe_worker;
};

struct replica {
    struct replica_options options;
    struct role role; /* with the needs of this replica: options.role */
    struct replica_hooks hooks;
    void *arg;
    char *name, *address, *owner, *models;
    char **run;                /* NULL: that of the role of the job */
    char **user_env;           /* what the user has, of shielded tasks; NULL: that of all workers */
    struct world *probe_world; /* one worker, for the commands of probes */
    struct workers *workers;
    struct task *tasks;
    int count;
    struct replica_ports *ports;
    bool whole;      /* all tasks of the gang are here */
    bool running;    /* its tasks have been executed */
    bool ending;     /* its tasks have been told to end */
    bool disowned;   /* the leader is not told */
    int master_port; /* 0: another node has chosen it */
    int stolen;      /* a port of theirs that another user has; 0: none */
    int status;      /* of the first task that has not ended with 0 */
};

/* What the task gets: command, environment, ports, GPUs. files: the name of what the replica has in
 * the run directory. -1 with err. */
int replica_task_prepare(struct task *task, const char *files, struct error *err);
/* One worker on that node of the gang, for the command of a probe. NULL: out of memory. */
struct world *replica_task_world(const struct world *world, int index);
/* Nobody looks any more, and nobody makes it load models. */
void replica_task_end_probe(struct task *task);
/* It has no GPUs any more. */
void replica_task_give_gpus(struct task *task);
void replica_task_free(struct task *task);

#endif
