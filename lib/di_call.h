/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A request of a client of DI-orchestrator v1alpha1 between the client and the leader, as
 * api_call.h says. Pure.
 *
 * A client ends for good at any error. So what cannot be wrong for it is a success: fewer replicas
 * to delete than there are, a failed replica that is being replaced already. A request is checked
 * as a whole before anything of it is done. */
#ifndef ELASTIC_DI_CALL_H
#define ELASTIC_DI_CALL_H

#include "lib/api_call.h"
#include "lib/di_request.h"

struct di_call;

/* request is taken over, also where NULL is returned: out of memory. */
struct di_call *di_call_create(struct di_request *request);
void di_call_destroy(struct di_call *call); /* accepts NULL */

json_object *di_call_question(const struct di_call *call);
bool di_call_looks(const struct di_call *call);
enum api_step di_call_answered(struct di_call *call, json_object *answer, struct api_reply *reply);
void di_call_lost(struct di_call *call);
void di_call_late(const struct di_call *call, struct api_reply *reply);

#endif
