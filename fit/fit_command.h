/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic-fit can be told to do. Each returns -1, or another exit status of the program
 * (enum fit_exit), with err if it has failed. */
#ifndef FIT_FIT_COMMAND_H
#define FIT_FIT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

struct fit_arguments {
    const char *service;
    int64_t id; /* 0: the latest */
    bool json, wait;
    uint32_t job;        /* of `run` */
    bool guests;         /* trainings for other users; of `run`: there may be some */
    int restarts;        /* of `revoke`: of the job … */
    const char *cluster; /* … of that cluster; NULL: not known */
    const char *trainer;
    const char *model, *data, *targets, *dataset, *format, *config, *from, *reason;
    double within[3]; /* start, fit, target; 0: not said */
    /* Of `train` and `become`: the program of a role, and how it is called if it is a server. */
    char *const *program; /* NULL: what the fit says */
    const char *call;     /* a path; NULL: it is not called */
    int port;
};

/* For users. */
int fit_start(const struct fit_arguments *arguments, struct error *err);
int fit_show(const struct fit_arguments *arguments, struct error *err);
int fit_list(const struct fit_arguments *arguments, struct error *err);
int fit_cancel(const struct fit_arguments *arguments, struct error *err);
int fit_log(const struct fit_arguments *arguments, struct error *err);

/* For the owner of a service that trains for other users. */
int guest_list(const struct fit_arguments *arguments, struct error *err);
int guest_cancel(const struct fit_arguments *arguments, struct error *err);

/* The runner, beside the leader of the service, until it is told to end. */
int fit_run(const struct fit_arguments *arguments, struct error *err);
/* The answer to a user for whom the service trains. */
int fit_desk(const struct fit_arguments *arguments, struct error *err);
/* The end of a job: what trainers of other users may open is taken back. */
int fit_revoke(const struct fit_arguments *arguments, struct error *err);
/* The trainer, as a replica of the service's job, until it is told to end. */
int fit_train(const struct fit_arguments *arguments, struct error *err);
/* A worker of a world that is the training. It returns only if it has failed. */
int fit_become(const struct fit_arguments *arguments, struct error *err);

#endif
