/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the name of a service of this user to the job that runs it. */
#ifndef SELASTIC_SERVICE_JOB_H
#define SELASTIC_SERVICE_JOB_H

#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"

/* What the leader of a service has written in its directory. NULL: nothing. */
json_object *service_leader(const char *dir);

/* The job that runs a service. -1 with err. */
int service_job(const char *service, uint32_t *job, struct error *err);

#endif
