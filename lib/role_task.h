/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a task of a replica finds in its environment of its role (doc/user/roles.md). Pure. */
#ifndef ELASTIC_ROLE_TASK_H
#define ELASTIC_ROLE_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/roles.h"
#include "lib/text.h" /* strings_free */

/* What the node adds to struct role_task. */
struct role_task_place {
    int64_t start;          /* number of this start of the replica */
    const char *ready_file; /* where the task says that it is ready; NULL: nobody looks there */
    const char *shared;     /* the job's directory that all nodes see; NULL: none */
    /* The GPUs of this task, "0,3"; "": none of those that its node has. NULL: the node has none,
     * or has GPUs of neither kind. */
    const char *cuda, *rocr;
    /* The HTTP interface of the job on this node: its URL, and its socket. NULL: none. */
    const char *api, *api_socket;
    /* With compat: di-engine: the namespace, which is the job; NULL: without. */
    const char *namespace;
    int first_task;    /* … on its node */
    const char *owner; /* … the replica that owns this one, and its first port; NULL: none does */
    int owner_port;
};

/* "K=V" of the role, NULL after the last; free with strings_free. NULL: out of memory. */
char **role_task_environment(const struct role *role, const struct role_task *task,
                             const struct role_task_place *place);

/* The same of a worker of a world, which is no replica: of place only what the worker has, too. */
char **role_world_environment(const struct role *role, const struct role_task_place *place);

/* The command of a task, or of its probe, with its placeholders replaced; free with strings_free.
 * NULL: out of memory. */
char **role_task_command(const struct role *role, char *const *command,
                         const struct role_task *task);

/* The number of the output of a task: other tasks that run at the same time have others. */
int role_task_stream(int start, int task);

#endif
