/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users whom the service allows say to it: all that a guest may. */
#ifndef ELASTIC_AGENT_LEADER_CONTROL_FITS_H
#define ELASTIC_AGENT_LEADER_CONTROL_FITS_H

#include <json-c/json.h>

struct leader;
struct link;

/* fit-ask, fit-begin, fit-look and fit-end. */
void control_fits(struct leader *leader, struct link *link, json_object *msg);

#endif
