/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an elastic job should do now: members of the world, requests to Slurm, and the reasons.
 *
 * Pure: the leader describes the situation, plan_decide answers. Nothing here remembers anything:
 * all that the next decision depends on is part of the description. All times are seconds on one
 * monotonic clock. */
#ifndef ELASTIC_PLAN_H
#define ELASTIC_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/setbacks.h"
#include "lib/sizes.h"

enum plan_extension_state {
    PLAN_SUBMITTING, /* sbatch runs */
    PLAN_PENDING,
    PLAN_BOOTING,  /* it has its nodes, and Slurm powers them up */
    PLAN_STARTING, /* running in Slurm, not all its agents have joined */
    PLAN_JOINED,
    PLAN_LEAVING, /* preempted, released or cancelled: does not count any more */
};

struct plan_extension {
    uint32_t job; /* 0 while submitting */
    int nodes;
    enum plan_extension_state state;
    double since;  /* when the extension entered the state */
    double begin;  /* not eligible before; 0: at once */
    double leaves; /* has to go then because of its time limit; 0: not before the base */
    /* It goes back as soon as the state allows: one of its nodes cannot be used, and Slurm takes
     * back all of its nodes or none. Or others are better (lib/pools). */
    bool unwanted;
    bool withdrawn;    /* while it is pending: the request is to be taken back */
    double boot_limit; /* seconds that Slurm gives its nodes to power up; 0: any */
    double lead;       /* seconds until a replacement would work; PLAN_REPLACE at least counts */
    /* PLAN_LEAVING: Slurm still counts its nodes against MAX. */
    bool counted;
    bool excludes; /* nodes that were left out when it was asked for */
    const char *pool;
    const char *reason; /* Slurm's word for why the extension is pending; may be NULL */
};

/* Where an extension may be asked for. */
struct plan_pool {
    const char *name;
    int room;     /* nodes that may be asked for now */
    bool singly;  /* one increment an extension: its nodes come or go one by one */
    bool at_once; /* neither a grow delay nor a snooze holds for it */
};

struct plan_member {
    int id; /* the caller's handle */
    uint32_t job;
    bool base;
    bool usable; /* joined, alive, not leaving */
    /* About to leave: the world goes on without this member as soon as others have its state. */
    bool going;
    /* Live mode: the workers of this member have trained, and keep the state through a change. */
    bool has_state;
    int position;         /* in the current generation, -1: outside */
    int nodeid;           /* within its job */
    const char *switches; /* above its node, as tree_path() says; NULL or "": not known */
    double joined;        /* when */
};

struct plan_input {
    double now;
    const struct sizes *sizes;
    /* Nodes that are one data-parallel unit: a world is made of whole ones. 0: as 1. All sizes are
     * multiples of it. */
    int replica;
    int base_nodes; /* nodes of the base job */
    int base_lost;  /* nodes of the base that it cannot use: other nodes stand in for them */
    int target;     /* cap set by `selastic resize`, else sizes->max */
    bool asks;      /* `target` is the base, since nobody has asked for more (--elastic-grow=ask) */
    int max_pending;
    double grow_delay, snooze;
    /* Nodes of a world that ended because nodes were lost, 0: there is no such world. */
    int before_loss;
    /* When the next world begins although the lost nodes have not been replaced. */
    double replace_until;
    double generation_since; /* start of the current generation */
    struct setbacks setbacks;
    double stands_since; /* no world has trained since then; < 0: one does, or none has been */
    /* Nodes that a cloud takes, in whose place others are asked for without a delay. */
    int taken;
    /* Increments of the last extension asked for; 0 after that request stalled. */
    int last_increments;
    bool no_pool;     /* nowhere to grow */
    const char *held; /* why the shell submits none for now, to be said; it decides nothing. NULL */
    /* Those that may be asked now, best first. */
    const struct plan_pool *pools;
    int pool_count;
    const char *no_room;      /* why there are none; NULL: there are, or it is not to be said */
    int surplus;              /* so many nodes beyond the target take the place of others */
    const char *submit_error; /* why the last sbatch failed; NULL: it did not */
    const char *failure;      /* why the last extension could not join; NULL: it could */
    double retry_at;          /* no extension is submitted before */
    const struct plan_member *members;
    int member_count;
    const struct plan_extension *extensions;
    int extension_count;
};

/* Extensions that start within this time of each other join in one generation. */
#define PLAN_SETTLE 2.0
/* A newcomer never waits longer than this for other newcomers. */
#define PLAN_SETTLE_MAX 10.0
/* An extension of several increments that is eligible and still pending after this time is asked
 * for again, with fewer increments. */
#define PLAN_STALE 10.0
/* An extension whose agents have not all joined after this time has failed. It counts from when its
 * nodes are up. While they power up Slurm fails the extension in time; if it has not done so, this
 * long after its limit, the leader does. */
#define PLAN_JOIN_LIMIT 60.0
/* A job that stands still for so long asks for any node, also for those that it leaves out. */
#define PLAN_ANYWHERE 10.0
/* Joined nodes that no allowed size can use go back to Slurm after this time. */
#define PLAN_PARK_LIMIT 30.0
/* An extension that has to leave because of its time limit is replaced: another extension is asked
 * for this long before, or after three quarters of its time. Where nodes take longer to come, as
 * long before as they take, but not in the first half of its time. */
#define PLAN_REPLACE 120.0

/* A world that takes newcomers in keeps this many units that have the state, if it can: then the
 * loss of one of them does not lose the state. */
#define PLAN_HOLDERS 2

#define PLAN_CANCEL_MAX 16

struct plan_output {
    /* Ids of the members of the world that should exist now, in rank order; owned. Behind the first
     * `size` ids follow the spare members. */
    int *order;
    int *in_unit;  /* how many members of each unit of the present world are left; scratch, owned */
    int size;      /* 0: the job waits. No allowed size can be formed, or a larger one can soon */
    bool replaces; /* the job waits for nodes in the place of lost ones */
    bool change;   /* the world differs from the current one and should be formed now */
    bool urgent;   /* a member leaves or is lost, so the change cannot wait */
    int submit;    /* nodes of a new extension, 0: none */
    int pool;      /* … of this one of the pools */
    int submit_increments;
    double submit_delay; /* seconds from now until the extension may begin, 0: at once */
    bool anywhere;       /* … also on nodes that are left out */
    uint32_t cancel[PLAN_CANCEL_MAX];
    /* The cancelled extension counts as a failed growth (setback). */
    bool cancel_failed[PLAN_CANCEL_MAX];
    int cancel_count;
    int retained_nodes; /* nodes that go back only when other members have the state */
    /* The extensions of these nodes, or of members that are `going`. */
    uint32_t retained[PLAN_CANCEL_MAX];
    int retained_count;
    bool keeps_going; /* members that are `going` stay in the world until then, too */
    double wake;      /* decide again after this many seconds even if nothing happens; 0: no need */
    char why_size[200];
    char why_not_more[400];
};

/* When a replacement is asked for an extension that has joined at `since` and leaves then; lead is
 * that of struct plan_extension. 0: never. */
double plan_replace_at(double since, double leaves, double lead);

/* Decide. Returns -1 only when out of memory; the output is valid (and to be cleared) after 0. */
int plan_decide(const struct plan_input *input, struct plan_output *output);
void plan_clear(struct plan_output *output);

#endif
