/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run of MLflow that goes with an elastic job: what the server is asked next, and what its
 * answers make of it. One request is under way at a time.
 *
 *   is the run of before there? ──► find or make the experiment ──► find or make the run
 *   ──► parameters ──► metrics and tags, batch after batch ──► the run is ended
 *
 * The run has a tag with the job's identity. So a run that was made, and whose id was lost, is
 * found again. The server may be away, slow, or hostile: what waits for it is bounded, and what it
 * says is checked. Pure: time is a parameter, in seconds. REST API 2.0 of MLflow. */
#ifndef ELASTIC_MLFLOW_H
#define ELASTIC_MLFLOW_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#define MLFLOW_ANSWER_MAX ((size_t)1 << 20) /* bytes of an answer */
#define MLFLOW_QUEUE_MAX  2000              /* metrics that wait; older ones are left out */
#define MLFLOW_BATCH_MAX  500               /* metrics of a request. MLflow takes 1000 */
#define MLFLOW_TAGS_MAX   50                /* tags of a request. MLflow takes 100 */
#define MLFLOW_EVENTS_MAX 1000              /* generations that get a tag */

struct mlflow;

/* All is copied. */
struct mlflow_options {
    const char *identity;   /* of the job, for as long as Slurm keeps its number */
    const char *experiment; /* NULL: MLflow's "Default" */
    const char *run_name;
    const char *user;    /* NULL: not known */
    const char *run_id;  /* that the user wants; NULL: none */
    const char *kept_id; /* of the run that the job has had before; NULL: none */
};

struct mlflow_request {
    const char *path; /* below the tracking URI */
    const char *body; /* JSON of a POST; NULL: a GET. Both live until the answer is taken */
};

enum mlflow_end {
    MLFLOW_FINISHED,
    MLFLOW_FAILED,
    MLFLOW_REQUEUED, /* the run goes on later */
};

/* NULL: out of memory. */
struct mlflow *mlflow_create(const struct mlflow_options *options);
void mlflow_destroy(struct mlflow *m); /* accepts NULL */

/* The leader's answer to a look, at this Unix time. What is new in it waits for the server. */
void mlflow_take(struct mlflow *m, json_object *state, double now);
/* The last generation that has been seen; 0: none. */
int mlflow_seen(const struct mlflow *m);
/* The job is over. What waits is sent, as long as nothing fails. */
void mlflow_end(struct mlflow *m, enum mlflow_end how, double now);

/* Is there something to ask now? Not while an answer is still to come. */
bool mlflow_next(struct mlflow *m, double now, struct mlflow_request *request);
/* The answer to it. status 0: there was none. */
void mlflow_answered(struct mlflow *m, int status, const char *text, size_t len, double now);
/* Seconds until there may be something to ask again after a failure; < 0: there was none. */
double mlflow_pause(const struct mlflow *m, double now);

/* NULL: not known yet. */
const char *mlflow_run(const struct mlflow *m);
/* The run is one that the server has, and not only what is known of before. */
bool mlflow_confirmed(const struct mlflow *m);
/* What is wrong, in a line; "": nothing. It stays until a request succeeds. */
const char *mlflow_trouble(const struct mlflow *m);
/* Nothing will be asked any more: the run is ended, or cannot be had at all. */
bool mlflow_over(const struct mlflow *m);

#endif
