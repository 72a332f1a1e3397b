/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic doctor --job JOB`: why a job has its size, in five lines. */
#ifndef SELASTIC_DOCTOR_JOB_H
#define SELASTIC_DOCTOR_JOB_H

#include <time.h>

#include "cmd/command.h"

enum exit_status doctor_job(const struct arguments *arguments);

/* The lines as an object with five texts, from what the leader answers to show and history
 * (shape.h). history may be NULL. now: Unix time. Pure. */
json_object *doctor_job_lines(json_object *state, json_object *history, time_t now);

#endif
