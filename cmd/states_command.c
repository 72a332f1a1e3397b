/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic states`, `fit` and `router`: programs of their own do it all. elastic-state speaks to
 * S3, elastic-fit runs trainings of a service, elastic-router drives haproxy. */
#include "cmd/command.h"
#include "cmd/libexec.h"

static enum exit_status become(const char *program, char *called, char **argv)
{
    struct error err;
    libexec_become(program, called, argv, &err);
    return failed(&err);
}

static enum exit_status become_state(char **argv)
{
    char called[] = "selastic states";
    return become("elastic-state", called, argv);
}

static enum exit_status become_fit(char **argv)
{
    char called[] = "selastic fit";
    return become("elastic-fit", called, argv);
}

static enum exit_status become_router(char **argv)
{
    char called[] = "selastic router";
    return become("elastic-router", called, argv);
}

const struct command states_command = {
    .name = "states",
    .summary = "list, choose, copy and remove states of trainings",
    .become = become_state,
};

const struct command fit_command = {
    .name = "fit",
    .summary = "train a model of a service, and serve the result",
    .become = become_fit,
};

const struct command router_command = {
    .name = "router",
    .summary = "give a service of models one address, by haproxy",
    .become = become_router,
};
