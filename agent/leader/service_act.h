/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts for lib/service, and its actions. */
#ifndef ELASTIC_AGENT_LEADER_SERVICE_ACT_H
#define ELASTIC_AGENT_LEADER_SERVICE_ACT_H

struct leader;

/* Tell it which replicas there are, and begin what is to be done. Not while that goes on. */
void service_act_run(struct leader *leader);
/* Go on with it, up to the next file that has to be written. */
void service_act_go_on(struct leader *leader);

#endif
