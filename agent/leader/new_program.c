/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another program for the shards of the service (new_program.h). */
#include "agent/leader/new_program.h"

#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/service_shell.h"
#include "common/log.h"
#include "common/roles_file.h"
#include "lib/roles_program.h"

static int apply(struct leader *leader, const char *program, bool *same, struct error *err)
{
    struct service *service = leader->of_roles.service->service;
    int64_t before = shard_commands_counts(service_brain(service)).operations;

    if (service_apply(service, program, leader_now(leader)) != 0)
        return error_set(err, "out of memory");
    *same = shard_commands_counts(service_brain(service)).operations == before;
    if (!*same)
        log_info("job %u: service %s: a user wants %s for its shards", leader->options->job,
                 leader->options->roles->service, program);
    service_run_in(leader, 0);
    return 0;
}

int new_program_apply(struct leader *leader, const char *roles, bool *same, struct error *err)
{
    struct roles *next;
    char *program = NULL;
    int rc = -1;

    if (strlen(roles) > ROLES_TEXT_MAX)
        return error_set(err, "it has more than %d bytes", ROLES_TEXT_MAX);
    next = roles_text_read(roles, err);
    if (next == NULL)
        return -1;
    if (roles_program_check(leader->options->roles, next, err) == 0) {
        program = roles_program(next);
        rc = program != NULL ? apply(leader, program, same, err) : error_set(err, "out of memory");
    }
    free(program);
    roles_destroy(next);
    return rc;
}

int new_program_run(struct leader *leader, json_object *run, bool *same, struct error *err)
{
    char *text = roles_program_text(leader->options->roles, run);
    int rc = text != NULL ? new_program_apply(leader, text, same, err)
                          : error_set(err, "out of memory");

    free(text);
    return rc;
}
