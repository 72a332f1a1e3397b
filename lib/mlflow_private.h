/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What mlflow.c and mlflow_log.c share. */
#ifndef ELASTIC_MLFLOW_PRIVATE_H
#define ELASTIC_MLFLOW_PRIVATE_H

#include "lib/error.h"
#include "lib/mlflow.h"
#include "lib/policy.h"
#include "lib/retry.h"

#define MLFLOW_IDENTITY_MAX 127
#define MLFLOW_TAG_JOB      "slurm_elastic.job"

/* What the next request is for, in the order of a run's life. */
enum mlflow_stage {
    MLFLOW_CHECK, /* the run that is named already */
    MLFLOW_FIND_EXPERIMENT,
    MLFLOW_MAKE_EXPERIMENT,
    MLFLOW_FIND_RUN,
    MLFLOW_MAKE_RUN,
    MLFLOW_RESUME, /* from here the run is known to be there */
    MLFLOW_PARAMETERS,
    MLFLOW_LOG,
    MLFLOW_CLOSE,
    MLFLOW_OVER,
};

struct mlflow {
    enum mlflow_stage stage;
    char identity[MLFLOW_IDENTITY_MAX + 1];
    char experiment[POLICY_TEXT_MAX + 1], run_name[POLICY_TEXT_MAX + 1], user[64];
    char experiment_id[POLICY_ID_MAX + 1], run_id[POLICY_ID_MAX + 1];
    bool wanted;          /* the run is one that the user has named */
    bool made_experiment; /* has been refused once */
    bool ending;
    enum mlflow_end how;
    bool asked; /* its answer is still to come */
    char path[1024];
    char *body;
    struct retry retry;
    struct error trouble;
    /* What waits for the server. */
    json_object *metrics; /* an array, oldest first */
    json_object *tags;    /* an object */
    json_object *params;  /* of the job, as an array of MLflow; NULL: not known yet */
    size_t sent_metrics;  /* of the batch that is under way */
    json_object *sent_tags;
    /* What was said before. */
    json_object *latest; /* key: [value, when], for metrics */
    json_object *events; /* key: text, of generations */
    int seen;
    double looked, looked_steps; /* of the look before; looked 0: there was none */
};

int mlflow_log_init(struct mlflow *m); /* -1: out of memory; clear it */
void mlflow_log_clear(struct mlflow *m);
/* Is there something to send? */
bool mlflow_log_waits(const struct mlflow *m);
/* The body of a request: the first of what waits. NULL: nothing waits. */
json_object *mlflow_log_batch(struct mlflow *m);
json_object *mlflow_log_parameters(struct mlflow *m);
/* The batch needs to be kept no longer. */
void mlflow_log_sent(struct mlflow *m);

#endif
