/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process haproxy: a master with its worker. It is started, or found from before, and ended. */
#ifndef ELASTIC_ROUTER_HAPROXY_H
#define ELASTIC_ROUTER_HAPROXY_H

#include <stdbool.h>
#include <sys/types.h>

#include <uv.h>

#include "lib/error.h"
#include "router/home.h"

struct haproxy;

/* The path of the program: `given`, or where it is found. A new string. NULL with err, which names
 * the package. */
char *haproxy_program(const char *given, struct error *err);

/* ended: the process is gone, whoever ended it. It comes from the loop. NULL: out of memory. */
struct haproxy *haproxy_create(uv_loop_t *loop, const struct home *home, const char *program,
                               void (*ended)(void *arg), void *arg);
/* The process goes on. */
void haproxy_destroy(struct haproxy *haproxy);

/* It is started with the files of the directory. -1 with err. */
int haproxy_start(struct haproxy *haproxy, struct error *err);
/* The one that runs there already, its master being this process. -1 with err: it is gone. */
int haproxy_adopt(struct haproxy *haproxy, pid_t master, struct error *err);

/* Does one run there that this process has not started, whether it answers or not? */
bool haproxy_is_left(const struct haproxy *haproxy);
/* It is ended, with its workers. */
void haproxy_end_left(const struct haproxy *haproxy);

pid_t haproxy_pid(const struct haproxy *haproxy); /* of the master; 0: it does not run */
/* Another worker takes over, with the files as they are; this one ends its requests. */
void haproxy_reload(struct haproxy *haproxy);
/* It takes no more requests, ends those that it has, and then itself. */
void haproxy_finish(struct haproxy *haproxy);
/* At once. worker: 0, or the process that is not to outlive its master. */
void haproxy_kill(struct haproxy *haproxy, pid_t worker);

#endif
