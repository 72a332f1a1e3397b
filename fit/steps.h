/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of a fit (lib/fit.h), carried out. Each may be begun again, also by another process
 * that knows no more than the record. */
#ifndef FIT_STEPS_H
#define FIT_STEPS_H

#include "fit/home.h"
#include "fit/leader_link.h"
#include "fit/new_state.h"
#include "fit/s3_grant.h"
#include "fit/spec.h"
#include "fit/trainer_link.h"

struct steps {
    const struct home *home;
    struct service_link *link;
    struct trainer_link *trainer; /* in mode multi */
    struct s3_grant *s3;          /* … if anything is on S3; NULL: nothing is */
    uint32_t job, restarts;       /* of the service … */
    const char *cluster;          /* … on that cluster; NULL: not known */
    int64_t claim;                /* of the runner (home_claim) */
    int64_t id;
    const struct spec *spec;
    struct home_record *record;
    /* Writes the record. -1 with err: another process has it by now. */
    int (*save)(struct steps *steps, struct error *err);
    void *arg;
    /* Of this action, since this process carries it out. */
    double began, flushed, trained, asked;
    bool granted;
    char key[72];                   /* of the replica that trains, for S3 */
    char why[256];                  /* the trainer does not run or answer, as was known last */
    struct service_trainer replica; /* … as was known last: what trains */
    int count;                      /* of FIT_DO_COUNT */
};

enum step { STEP_WAITS, STEP_DONE, STEP_FAILED };

/* One more try of the present action. STEP_WAITS: err says for what, "" if that is clear; it is to
 * be tried again. STEP_FAILED: err says why. */
enum step steps_run(struct steps *steps, double now, struct error *err);

/* The state that it makes. */
struct new_state steps_new_state(const struct steps *steps);

/* The fit has succeeded: older states go. */
void steps_prune(struct steps *steps);

#endif
