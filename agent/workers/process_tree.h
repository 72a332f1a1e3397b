/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process with all processes that it has started, in whatever sessions and groups they are. */
#ifndef ELASTIC_AGENT_WORKERS_PROCESS_TREE_H
#define ELASTIC_AGENT_WORKERS_PROCESS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Send SIGKILL to every descendant of root (not to root itself). Returns how many there were; -1
 * when /proc cannot be read. One pass: what is started meanwhile is for the next call. Complete
 * only if root is a subreaper, since else the child of an ended process is no descendant. */
int process_tree_kill(pid_t root);

/* Send this signal to a process if it is a descendant of root. 0; -1: the process is no descendant,
 * or is gone. */
int process_tree_signal(pid_t root, pid_t pid, int number);

/* Resident memory in bytes of every descendant of root; pages that they share count for each. */
uint64_t process_tree_memory(pid_t root);

/* The state of a process as ps(1) names it: 'T' is stopped by a signal, 't' by a debugger. 0: there
 * is no such process. */
char process_state(pid_t pid);

/* Has the process a signal of this number, sent to all of it, that no thread has taken yet? The
 * kernel drops another one of the same number (but a real-time signal). False: not, or the process
 * is gone or not to be seen. */
bool process_has_pending(pid_t pid, int number);

#endif
