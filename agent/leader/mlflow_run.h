/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-mlflow, the process beside the leader that tells an MLflow server of the job. */
#ifndef ELASTIC_AGENT_LEADER_MLFLOW_RUN_H
#define ELASTIC_AGENT_LEADER_MLFLOW_RUN_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct mlflow_run;

/* NULL: out of memory. */
struct mlflow_run *mlflow_run_create(void);
void mlflow_run_destroy(struct mlflow_run *own); /* accepts NULL */
/* The process is started, if the job has a server. */
void mlflow_run_open(struct leader *leader);
void mlflow_run_close(struct leader *leader);

/* The run's id for workers is still awaited: the first world waits for it, for so many seconds at
 * most. 0: it does not wait. */
double mlflow_run_awaited(const struct leader *leader);
/* Which run workers are to go on with is added to a message, if it is known. */
void mlflow_run_add(const struct leader *leader, json_object *msg);
/* There is another world: the process may look at once. */
void mlflow_run_news(struct leader *leader);
/* What the process has asked for. The message is taken over. */
void mlflow_run_say(struct leader *leader, json_object *msg);
/* Has the process still something to tell? */
bool mlflow_run_busy(const struct leader *leader);
/* Nothing is to be told any more: another node leads. */
void mlflow_run_drop(struct leader *leader);

#endif
