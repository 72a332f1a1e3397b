/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job hands its service over to another one before its time limit (doc/internals/serve.md). Pure.
 *
 *   FAR ─► SUBMITS ─► AWAITS ─► OFFERS ─► HANDED ─► STOPS
 *    ▲        │          │         │         │
 *    └────────┴──────────┴─────────┴─────────┘ it was refused, has ended, or is silent */
#ifndef ELASTIC_SERVICE_HANDOVER_H
#define ELASTIC_SERVICE_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/retry.h"
#include "lib/service.h"

/* Seconds. */
#define HANDOVER_SILENT 40.0  /* a job that has not been heard for so long has gone */
#define HANDOVER_LAST   60.0  /* with less than that left nothing is submitted any more */
#define HANDOVER_LEAVE  60.0  /* routers that have not left after so long are not waited for */
#define HANDOVER_FIRST  60.0  /* pause after a failure, which doubles up to … */
#define HANDOVER_PAUSE  600.0 /* … that */

enum service_handover_state {
    HANDOVER_FAR,
    HANDOVER_SUBMITS,
    HANDOVER_AWAITS,
    HANDOVER_OFFERS, /* from here on the service is frozen */
    HANDOVER_HANDED,
    HANDOVER_STOPS,
};

/* "far", "submits", … */
const char *service_handover_word(enum service_handover_state state);

/* Of the old job. All 0: service_handover_init(). */
struct service_handover {
    enum service_handover_state state;
    uint32_t successor; /* its job; 0: there is none */
    struct retry retry;
    double since; /* HANDED: when the successor's table was seen; 0: it has not been */
};

struct service_handover_facts {
    double now;
    double left;   /* seconds until the job's time is over; < 0: not known, or never */
    double before; /* `handover`; 0: the service has none */
    bool asked;    /* its user wants it now, however much time is left */
    /* A job that has announced itself as this one's successor, and how long ago; 0: none has. */
    uint32_t announced;
    double silent;
    bool claimed; /* another job has the highest term … */
    bool serves;  /* … and its table is out */
    bool unused;  /* no router has requests for this job */
};

enum service_handover_act {
    HANDOVER_NOTHING,
    HANDOVER_SUBMIT,   /* a successor; then service_handover_submitted() */
    HANDOVER_FREEZE,   /* the service, and then offer it to the successor */
    HANDOVER_WITHDRAW, /* that offer; the service goes on */
    HANDOVER_STOP,     /* the job */
};

void service_handover_init(struct service_handover *handover);
/* What is to be done now. */
enum service_handover_act service_handover_step(struct service_handover *handover,
                                                const struct service_handover_facts *facts);
/* When service_handover_step() is to be called even if nothing happens; 0: never. */
double service_handover_deadline(const struct service_handover *handover,
                                 const struct service_handover_facts *facts);

/* It has been submitted as that job; 0: it was refused. */
void service_handover_submitted(struct service_handover *handover, uint32_t job, double now);
/* Slurm says that this job has ended. */
void service_handover_gone(struct service_handover *handover, uint32_t job, double now);
/* This job has the service again. */
void service_handover_back(struct service_handover *handover, double now);

/* Of the successor: how long its table waits. there: the old job is; left: as above, of that
 * job. */
enum service_hold service_handover_hold(bool there, double left, double before);

#endif
