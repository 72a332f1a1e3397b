/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fit: a training whose result replaces what a service serves. Its status machine. Pure.
 *
 * The machine says what to do next, and is told what has happened. Whoever carries it out writes
 * the record (fit_record_text) before each action and after each fact. So after a crash the machine
 * is made anew of the record (fit_record_parse), and says the action again that was under way: each
 * action can be repeated.
 *
 *     single  INITIAL > WAIT_FOR_START > WAIT_FOR_FIT > SUCCESS
 *     multi   INITIAL > WAIT_FOR_TRAINING_CONTAINER > WAIT_FOR_FIT >
 *             WAIT_FOR_TARGET_CONTAINER > SUCCESS
 *
 * From each status but the last ones FAILED and CANCELLED can be reached. The way to every last
 * status goes through the clean-up: what is granted is revoked, what is partial is removed, the
 * dedicated replica ends, and what was replaced comes back if the fit has not succeeded. Only then
 * the status is a last one. */
#ifndef ELASTIC_FIT_H
#define ELASTIC_FIT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

enum fit_mode { FIT_SINGLE, FIT_MULTI };

enum fit_status {
    FIT_INITIAL,
    FIT_WAIT_FOR_START,              /* single: for the dedicated replica and the data */
    FIT_WAIT_FOR_TRAINING_CONTAINER, /* multi: for the trainer, the data and the grant */
    FIT_WAIT_FOR_FIT,                /* single: and then for the replicas with the new state */
    FIT_WAIT_FOR_TARGET_CONTAINER,   /* multi: for the replicas with the new state */
    FIT_SUCCESS,
    FIT_FAILED,
    FIT_CANCELLED,
    FIT_STATUSES
};

/* What is to be done. All of it can be done twice. */
enum fit_action {
    FIT_DO_NOTHING,     /* wait for a fact, or for the deadline */
    FIT_DO_PREPARE,     /* make the new state's directory, resolve and parse config and data */
    FIT_DO_DEDICATE,    /* single: start the dedicated replica */
    FIT_DO_ENSURE,      /* multi: find the trainer, or start it */
    FIT_DO_STAGE,       /* get the data */
    FIT_DO_GRANT,       /* multi: let the trainer at the new state */
    FIT_DO_FIT,         /* call fit */
    FIT_DO_COMPLETE,    /* the new state has its manifest, and all files of it */
    FIT_DO_COUNT,       /* record how many replicas there are */
    FIT_DO_POINT,       /* the new state lies where it will stay, and is the current one */
    FIT_DO_REPLACE,     /* bring the recorded number of replicas to the new state */
    FIT_DO_REVOKE,      /* take back what may be granted */
    FIT_DO_POINT_BACK,  /* the old state is the current one again */
    FIT_DO_RESTORE,     /* bring the recorded number of replicas to the old state */
    FIT_DO_DISCARD,     /* remove the new state if it is partial */
    FIT_DO_END_REPLICA, /* end the dedicated replica: others have its place */
    FIT_ACTIONS
};

enum fit_fact_kind {
    FIT_FACT_DONE,   /* an action is done */
    FIT_FACT_FAILED, /* it cannot be done, for a reason */
    FIT_FACT_CANCEL, /* somebody wants the fit to end, for a reason */
    FIT_FACT_TIME,   /* time has passed */
    FIT_FACT_KINDS
};

struct fit_fact {
    enum fit_fact_kind kind;
    enum fit_action action; /* of DONE and FAILED: another than the present one means nothing */
    const char *reason;     /* of FAILED and CANCEL */
    int count;              /* of DONE of FIT_DO_COUNT: replicas that take requests */
};

/* Seconds. */
struct fit_limits {
    double start;  /* until replica or trainer are ready, the data is there, and access granted */
    double fit;    /* for the training */
    double target; /* for the replicas with the new state */
};

#define FIT_INITIAL_LIMIT 60.0 /* seconds */
#define FIT_REASON_MAX    512
#define FIT_CANCEL_MAX    300 /* bytes of what a user says: others say more in front of it */

struct fit {
    enum fit_mode mode;
    struct fit_limits limits;
    enum fit_status status;
    enum fit_action action; /* to be carried out; FIT_DO_NOTHING in a last status */
    enum fit_status ending; /* FIT_SUCCESS, FIT_FAILED or FIT_CANCELLED in the clean-up */
    bool cleaning;
    double since;    /* when the status began, seconds of the epoch */
    double deadline; /* of the status; 0: none */
    double ended;    /* when the clean-up began; 0: it has not, or that was not written down */
    int tries;       /* of the present action of the clean-up that have failed */
    /* What there may be: set before the action that makes it, cleared after what ends it. */
    bool granted, partial, dedicated, pointed, replaced;
    bool counted;
    int count;                    /* of replicas before the first one was replaced */
    char reason[FIT_REASON_MAX];  /* of FAILED and CANCELLED */
    char trouble[FIT_REASON_MAX]; /* why the clean-up does not go on, "" if it does */
};

/* A new fit. Its first action is FIT_DO_PREPARE. */
struct fit fit_begin(enum fit_mode mode, const struct fit_limits *limits, double now);

/* Tell what has happened. A fact that means nothing here changes nothing. Returns whether something
 * has changed, and so is to be written.
 *
 * The clean-up does not give up: an action that fails is asked for again. What is granted on S3
 * ends by itself in the end, and counts as revoked then. */
bool fit_tell(struct fit *fit, const struct fit_fact *fact, double now);

/* How many replicas there are to be with the new state: as many as before, and one at least. */
int fit_target(const struct fit *fit);

bool fit_is_over(const struct fit *fit);

/* "WAIT_FOR_FIT", "point-back". */
const char *fit_status_name(enum fit_status status);
const char *fit_action_name(enum fit_action action);

/* The record as JSON, a new string; NULL when out of memory. */
char *fit_record_text(const struct fit *fit);
/* -1 with err: a record that no fit has written. */
int fit_record_parse(const char *text, size_t len, struct fit *fit, struct error *err);

#endif
