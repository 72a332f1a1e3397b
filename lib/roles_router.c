/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A role of kind router: its program is elastic-router, and all else follows from that. */
#include "lib/roles_private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

#define PORT_NAME "http"
/* elastic-router gives requests 30 s, and then ends haproxy. */
#define DRAIN_WITHIN 35

/* "none", or a file. Its name gets into a command in which braces have a meaning. */
static int check_tokens(const struct roles_reader *reader, const struct roles_part *part,
                        const struct role *role)
{
    struct roles_part tokens = roles_member(part, "tokens");

    if (role->router.tokens == NULL || strpbrk(role->router.tokens, "{}") == NULL)
        return 0;
    return roles_fail(reader, &tokens, "braces are not allowed; write another path, or none");
}

static int set_run(struct role *role, const char *service)
{
    const char *tokens = role->router.tokens;
    bool none = tokens != NULL && strcmp(tokens, "none") == 0;
    char *file = NULL;
    char *const words[] = {ROLES_ROUTER, (char *)(uintptr_t)service, "--wait", "--listen=:{port}",
                           NULL};
    char *more[] = {"--no-tokens", NULL};
    int rc;

    if (tokens != NULL && !none && asprintf(&file, "--tokens=%s", tokens) < 0)
        return -1;
    if (file != NULL)
        more[0] = file;
    rc = strings_append(&role->run, words);
    if (rc == 0 && tokens != NULL)
        rc = strings_append(&role->run, more);
    free(file);
    return rc;
}

int roles_make_router(const struct roles_reader *reader, const struct roles_part *part,
                      const char *service, struct role *role)
{
    char *const ports[] = {PORT_NAME, NULL};

    if (check_tokens(reader, part, role) < 0)
        return -1;
    if (service == NULL)
        return roles_fail(reader, part, "it is of kind router, but the job has no service");
    role->min = role->max = 1;
    role->ready.how = ROLE_PROBE_TCP;
    role->drain.signal = SIGTERM;
    role->drain.within = DRAIN_WITHIN;
    return set_run(role, service) == 0 && strings_append(&role->ports, ports) == 0
               ? 0
               : roles_no_memory(reader, part);
}
