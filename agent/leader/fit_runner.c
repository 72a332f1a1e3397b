/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that runs the fits of the service (fit_runner.h). */
#include "agent/leader/fit_runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <uv.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/service_process.h"
#include "agent/leader/service_shell.h"
#include "agent/paths.h"
#include "common/log.h"
#include "lib/json_get.h"

#define PAUSE_FIRST 0.2 /* seconds before it is started again; twice as long each time */
#define PAUSE_MOST  10.0
#define STEADY      60.0 /* one that has lived so long is not one of a row */

struct fit_runner {
    struct service_process *process; /* NULL: there is none */
    double started, starts;          /* the next one: not before then */
    double pause;
    bool ends; /* it has been asked to: it takes access back before */
};

struct fit_runner *fit_runner_create(void)
{
    struct fit_runner *runner = calloc(1, sizeof(*runner));

    if (runner != NULL)
        runner->pause = PAUSE_FIRST;
    return runner;
}

void fit_runner_destroy(struct fit_runner *runner)
{
    free(runner);
}

/* ---- its end --------------------------------------------------------------------------------- */

static void on_end(struct leader *leader, int64_t code, int sig)
{
    struct fit_runner *runner = leader->of_roles.service->fit;

    runner->process = NULL;
    if (runner->ends) {
        runner->ends = false;
        service_run_in(leader, 0);
        return;
    }
    if (leader_now(leader) - runner->started > STEADY)
        runner->pause = PAUSE_FIRST;
    runner->starts = leader_now(leader) + runner->pause;
    log_error("job %u: elastic-fit has ended (%s %d); it is started again in %.1f s",
              leader->options->job, sig != 0 ? "signal" : "status", sig != 0 ? sig : (int)code,
              runner->pause);
    service_run_in(leader, runner->pause);
    runner->pause = 2 * runner->pause < PAUSE_MOST ? 2 * runner->pause : PAUSE_MOST;
}

static void end(struct fit_runner *runner)
{
    if (runner->process != NULL && !runner->ends)
        service_process_ask(runner->process);
    runner->ends = runner->process != NULL;
}

bool fit_runner_busy(const struct leader *leader)
{
    const struct fit_runner *runner = leader->of_roles.service->fit;

    return runner != NULL && runner->ends;
}

void fit_runner_close(struct leader *leader)
{
    struct fit_runner *runner = leader->of_roles.service->fit;

    service_process_close(runner->process);
    runner->process = NULL;
}

/* ---- its beginning --------------------------------------------------------------------------- */

static struct service_process *spawn(struct leader *leader, int *rc)
{
    char job[16];
    const char *args[] = {"elastic-fit", "run", leader->options->roles->service, "--job", job,
                          NULL,          NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    uv_process_options_t options = {
        .file = paths_of(PATHS_FIT),
        .args = (char **)args,
        .stdio_count = 3,
        .stdio = stdio,
    };

    snprintf(job, sizeof(job), "%u", leader->options->job);
    if (leader->options->roles->fit.allow != NULL)
        args[5] = "--guests";
    return service_process_start(leader, &options, on_end, rc);
}

static void start(struct leader *leader)
{
    struct fit_runner *runner = leader->of_roles.service->fit;
    int rc;

    runner->started = leader_now(leader);
    runner->starts = runner->started + PAUSE_MOST;
    runner->process = spawn(leader, &rc);
    if (runner->process == NULL)
        log_error("job %u: %s: %s; the service is not trained", leader->options->job,
                  paths_of(PATHS_FIT), uv_strerror(rc));
}

void fit_runner_look(struct leader *leader)
{
    const struct leader_service *own = leader->of_roles.service;
    bool wanted = roles_are_trained(leader->options->roles) && own->phase == PHASE_SERVES &&
                  !own->ended && !leader_has_ended(leader) && !lease_deposed(leader);

    if (!wanted)
        end(own->fit);
    else if (own->fit->process == NULL && leader_now(leader) >= own->fit->starts)
        start(leader);
}

/* ---- for users ------------------------------------------------------------------------------- */

void fit_runner_describe(const struct leader *leader, json_object *into)
{
    const struct roles *roles = leader->options->roles;
    json_object *fit = roles_are_trained(roles) ? json_object_new_object() : NULL;
    int trainer = roles_trainer(roles);

    json_object_object_add(into, "fit", fit);
    if (fit == NULL)
        return;
    json_object_object_add(fit, "run",
                           roles->fit.run != NULL ? json_from_strings(roles->fit.run) : NULL);
    json_object_object_add(fit, "role", json_from_string(roles->fit.role));
    json_object_object_add(
        fit, "world",
        json_object_new_boolean(trainer >= 0 && roles->list[trainer].kind == ROLE_WORLD));
    json_object_object_add(fit, "trainer", json_from_string(roles->fit.trainer));
    json_object_object_add(fit, "stage",
                           roles->fit.stage != NULL ? json_from_strings(roles->fit.stage) : NULL);
    json_object_object_add(fit, "start", json_object_new_double(roles->fit.within.start));
    json_object_object_add(fit, "fit", json_object_new_double(roles->fit.within.fit));
    json_object_object_add(fit, "target", json_object_new_double(roles->fit.within.target));
    json_object_object_add(fit, "states", json_from_string(roles->fit.states));
    json_object_object_add(fit, "grant", json_from_string(roles->fit.grant));
    json_object_object_add(fit, "grantTime", json_object_new_double(roles->fit.grant_time));
    json_object_object_add(fit, "keep", json_object_new_int(roles->fit.keep));
}
