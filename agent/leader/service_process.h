/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that works for the service beside the leader: the runner of fits, the one that copies
 * models. It ends with the leader at the latest. */
#ifndef ELASTIC_AGENT_LEADER_SERVICE_PROCESS_H
#define ELASTIC_AGENT_LEADER_SERVICE_PROCESS_H

#include <uv.h>

struct leader;
struct service_process;

/* It has ended by itself. */
typedef void service_process_ended(struct leader *leader, int64_t code, int sig);

/* options: without exit_cb. NULL: it does not run, and rc is libuv's reason. */
struct service_process *service_process_start(struct leader *leader, uv_process_options_t *options,
                                              service_process_ended *ended, int *rc);
/* Ask it to end: ended is called. Accepts NULL. */
void service_process_ask(struct service_process *process);
/* … and ended is not called any more. */
void service_process_end(struct service_process *process);
/* … and the loop does not wait for its end, either. */
void service_process_close(struct service_process *process);

#endif
