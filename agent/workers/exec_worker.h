/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the agent and its shim (`elasticrun --exec-worker`): options, and what the shim says
 * when it cannot start the command. */
#ifndef ELASTIC_AGENT_WORKERS_EXEC_WORKER_H
#define ELASTIC_AGENT_WORKERS_EXEC_WORKER_H

#include <signal.h>
#include <stdint.h>

/* elasticrun --exec-worker --agent=PID --status=FD --umask=OCTAL [--cwd=DIR] [--cpus=LIST] --
 * COMMAND… */
#define EXEC_WORKER_OPTION "--exec-worker"

/* Sent to the shim: kill the command and all that it has started. (A SIGKILL would leave to itself
 * what the command is just starting.) */
#define EXEC_WORKER_KILL (SIGRTMAX - 1) /* valgrind keeps the last one for itself */

/* Sent to the shim: SIGTERM for the command. Slurm may have sent the shim a SIGTERM of its own a
 * moment before, which is not for the command. Of two SIGTERMs that a process has not yet taken the
 * kernel keeps the first, with its sender. Any other signal is passed on as it is. */
#define EXEC_WORKER_TERM (SIGRTMAX - 2)

/* The value of a signal that the agent has got from Slurm. Slurm may have sent the command a copy
 * of its own; the shim knows, since it gets one then, too. */
#define EXEC_WORKER_PASSED 1

enum exec_worker_stage {
    EXEC_WORKER_CHDIR = 1,
    EXEC_WORKER_FORK,
    EXEC_WORKER_EXEC,
    /* The command is there, but not the interpreter that its first line names. */
    EXEC_WORKER_INTERPRETER,
};

/* Written to the status descriptor on failure. The descriptor is closed by a successful exec:
 * end of file without a failure means that the command runs. */
struct exec_worker_failure {
    int32_t stage; /* enum exec_worker_stage */
    int32_t error; /* errno */
};

#endif
