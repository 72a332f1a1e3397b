/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients of DI-orchestrator v1alpha1 see of a job. Pure. */
#ifndef ELASTIC_DI_VIEW_H
#define ELASTIC_DI_VIEW_H

#include <json-c/json.h>

#include "lib/error.h"

/* {"namespace", "coordinator", "collectors", "learners"}: the URLs that the coordinator, or the
 * aggregator, of that name sees. answer: the leader's to `roles`. A new object. NULL with err. */
json_object *di_view_list(json_object *answer, const char *namespace, const char *name,
                          struct error *err);

#endif
