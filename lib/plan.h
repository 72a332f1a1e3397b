/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an elastic job should do now: which members form the world, what to ask Slurm for, what to give back, and why.
 *
 * Pure: the leader describes the situation, plan_decide answers. Nothing here remembers anything; whatever the next decision depends
 * on is part of the description. All times are seconds on one monotonic clock. */
#ifndef ELASTIC_PLAN_H
#define ELASTIC_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/sizes.h"

enum plan_extension_state {
    PLAN_SUBMITTING, /* sbatch runs */
    PLAN_PENDING,
    PLAN_STARTING, /* running in Slurm, not all its agents have joined */
    PLAN_JOINED,
    PLAN_LEAVING, /* preempted, released or cancelled: does not count any more */
};

struct plan_extension {
    uint32_t job; /* 0 while submitting */
    int nodes;
    enum plan_extension_state state;
    double since;  /* when it entered the state */
    double begin;  /* not eligible before; 0: at once */
    double leaves; /* has to go then because of its time limit; 0: not before the base */
    bool unwanted; /* one of its nodes cannot be used, and Slurm takes back all of them or none */
    const char *pool;
    const char *reason; /* Slurm's word why it is pending; may be NULL */
};

struct plan_member {
    int id; /* the caller's handle */
    uint32_t job;
    bool base;
    bool usable; /* joined, alive, not leaving */
    bool going;  /* the world goes on without it, as soon as others have what it knows */
    bool
        has_state; /* its workers have trained, and stay through a change with what they have learnt (live mode) */
    int position;         /* in the current generation, -1: not in it */
    int nodeid;           /* within its job */
    const char *switches; /* above its node, as tree_path() says; NULL or "": not known */
    double joined;        /* when */
};

struct plan_input {
    double now;
    const struct sizes *sizes;
    int base_nodes; /* nodes of the base job */
    int base_lost;  /* … of these, that it cannot use: others stand in for them */
    int target;     /* cap set by `selastic resize`, else sizes->max */
    bool asks;      /* that is the base, since nobody has asked for more (--elastic-grow=ask) */
    int max_pending;
    double grow_delay, snooze;
    int before_loss;      /* nodes of a world that ended because some were lost, 0: there is none */
    double replace_until; /* … and when the next begins though they have not been replaced */
    double generation_since;  /* start of the current generation */
    double last_setback;      /* last shrink or failed growth; < 0: none */
    int last_increments;      /* increments of the last extension asked for, 0 when that stalled */
    bool no_pool;             /* nowhere to grow */
    const char *submit_error; /* last sbatch failed for this reason; NULL: it did not */
    const struct plan_member *members;
    int member_count;
    const struct plan_extension *extensions;
    int extension_count;
};

/* Extensions that start within this time of each other join in one generation. */
#define PLAN_SETTLE 2.0
/* … but a newcomer never waits longer than this for the others. */
#define PLAN_SETTLE_MAX 10.0
/* An extension of several increments that is eligible and still pending after this time is asked for anew, smaller. */
#define PLAN_STALE 10.0
/* An extension whose agents have not all joined after this time has failed. */
#define PLAN_JOIN_LIMIT 60.0
/* Joined nodes that no allowed size can use go back after this time. */
#define PLAN_PARK_LIMIT 30.0
/* For an extension that has to leave because of its time limit another is asked for so long before, or after three quarters of its time. */
#define PLAN_REPLACE 120.0

/* A world that takes newcomers in keeps so many members that have the state, so that the loss of one does not lose it, if it can be helped. */
#define PLAN_HOLDERS 2

#define PLAN_CANCEL_MAX 16

struct plan_output {
    int *
        order; /* ids of the members of the world that should exist now, in rank order; owned. Behind these (size) those that are spare */
    int size;  /* 0: no allowed size can be formed, or a larger one can soon; the job waits */
    bool replaces; /* … for nodes in the place of lost ones */
    bool change;   /* it differs from the current one and should be formed now */
    bool urgent;   /* … because a member leaves or is lost */
    int submit;    /* nodes of a new extension, 0: none */
    int submit_increments;
    double submit_delay; /* seconds from now at which it may begin, 0: at once */
    uint32_t cancel[PLAN_CANCEL_MAX];
    bool cancel_failed[PLAN_CANCEL_MAX]; /* this one counts as a failed growth (setback) */
    int cancel_count;
    int retained_nodes; /* nodes that go back only when others have the state, … */
    uint32_t retained[PLAN_CANCEL_MAX]; /* … of these extensions, or of members that are going */
    int retained_count;
    bool keeps_going; /* members that are going are in it until then, too */
    double wake;      /* decide again after so many seconds even if nothing happens; 0: no need */
    char why_size[200];
    char why_not_more[240];
};

/* Decide. Returns -1 only when out of memory; the output is valid (and to be cleared) after 0. */
int plan_decide(const struct plan_input *input, struct plan_output *output);
void plan_clear(struct plan_output *output);

#endif
