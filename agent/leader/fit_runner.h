/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-fit, which runs the fits of the service (doc/internals/fit.md): a process beside the
 * leader. It lives as long as this leader serves, and is started again when it ends. */
#ifndef ELASTIC_AGENT_LEADER_FIT_RUNNER_H
#define ELASTIC_AGENT_LEADER_FIT_RUNNER_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct fit_runner;

/* NULL: out of memory. */
struct fit_runner *fit_runner_create(void);
void fit_runner_destroy(struct fit_runner *runner); /* accepts NULL */

/* The service may serve by now, or not any more: it is started or ended. */
void fit_runner_look(struct leader *leader);
/* It has been asked to end, and takes access of trainers back before it does. */
bool fit_runner_busy(const struct leader *leader);
/* It is ended for good. */
void fit_runner_close(struct leader *leader);

/* What `selastic fit start` has to know: "fit", if the service has one. */
void fit_runner_describe(const struct leader *leader, json_object *into);

#endif
