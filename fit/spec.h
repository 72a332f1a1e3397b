/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a fit is to do: run.json, which is written once. */
#ifndef FIT_SPEC_H
#define FIT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "fit/home.h"
#include "fit/pin.h"
#include "lib/error.h"
#include "lib/fit.h"
#include "lib/trainer_note.h"

/* What the starter says. Texts are borrowed, and NULL where nothing was said. */
struct spec_order {
    const char *service, *model;
    const char *data, *targets; /* absolute paths, or something with "://" */
    const char *dataset, *format;
    const char *from; /* "none", or the name of a state; NULL: the latest */
    /* "SERVICE@USER", which trains; NULL: as the service says, or itself. */
    const char *trainer;
    json_object *config;
    const double *within[3]; /* start, fit, target; NULL: as the service says */
};

/* A new run of what the starter says and of what the service says ("fit", and "repository", of its
 * answer to `shards`). NULL with err. */
json_object *spec_create(const struct spec_order *order, json_object *service, double now,
                         struct error *err);

/* A run as it has been written. Strings live as long as json. */
struct spec {
    json_object *json;
    const char *service, *model, *place;
    const char *states; /* those of the model on S3; NULL: there are none */
    const char *from;
    enum fit_mode mode;
    struct trainer_name trainer; /* in mode multi */
    const char *grant;           /* an ARN, for S3; NULL: none */
    double grant_time;           /* seconds */
    const char *role;            /* that trains; it is the world (world), or has replicas */
    bool world;
    char **run, **stage; /* run NULL: the role says it; stage NULL: none */
    struct fit_limits limits;
    int keep;
    struct pin_data data[2]; /* of data and targets in mode multi */
};

int spec_read(const struct home *home, int64_t id, struct spec *spec, struct error *err);
void spec_clear(struct spec *spec);

/* What the training is told. A new object. */
json_object *spec_call(const struct spec *spec, const char *model_dir, const char *previous_dir,
                       const char *staged);

#endif
