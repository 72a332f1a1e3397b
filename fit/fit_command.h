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
    uint32_t job; /* of `run` */
    const char *model, *data, *targets, *dataset, *format, *config, *from, *reason;
    double within[3]; /* start, fit, target; 0: not said */
};

/* For users. */
int fit_start(const struct fit_arguments *arguments, struct error *err);
int fit_show(const struct fit_arguments *arguments, struct error *err);
int fit_list(const struct fit_arguments *arguments, struct error *err);
int fit_cancel(const struct fit_arguments *arguments, struct error *err);
int fit_log(const struct fit_arguments *arguments, struct error *err);

/* The runner, beside the leader of the service, until it is told to end. */
int fit_run(const struct fit_arguments *arguments, struct error *err);
/* The trainer, as a replica of the service's job, until it is told to end. */
int fit_train(const struct fit_arguments *arguments, struct error *err);

#endif
