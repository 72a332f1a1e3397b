/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic-mlflow asks the leader. */
#ifndef ELASTIC_AGENT_LEADER_CONTROL_MLFLOW_H
#define ELASTIC_AGENT_LEADER_CONTROL_MLFLOW_H

struct leader;

/* It has seen the generations up to this one. */
void control_mlflow(struct leader *leader, int after);

#endif
