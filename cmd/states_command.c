/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic states`: elastic-state does it, which speaks to S3. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/libexec.h"

static enum exit_status become_state(char **argv)
{
    const char *program = libexec_find("elastic-state");
    char name[] = "selastic states"; /* for its messages */
    struct error err;
    argv[0] = name;
    execv(program, argv);
    error_set(&err, "%s: %s", program, strerror(errno));
    return failed(&err);
}

const struct command states_command = {
    .name = "states",
    .summary = "list, choose, copy and remove states of trainings",
    .become = become_state,
};
