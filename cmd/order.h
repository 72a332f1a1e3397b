/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that change a job: the leader's answer is one message, which names the job. */
#ifndef SELASTIC_ORDER_H
#define SELASTIC_ORDER_H

#include "cmd/command.h"

/* Send the request to the leader of arguments->job_id, and print its answer. request is put in any
 * case. -1 with err: nothing has been printed. */
int order(const struct arguments *arguments, json_object *request, struct error *err);

#endif
