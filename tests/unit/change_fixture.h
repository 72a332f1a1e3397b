/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job around the change machine, for its tests: members that answer, a plan, a clock. */
#ifndef ELASTIC_TESTS_CHANGE_FIXTURE_H
#define ELASTIC_TESTS_CHANGE_FIXTURE_H

#include <stdbool.h>

#include "lib/change.h"

#define JOB_MEMBERS_MAX 16
#define JOB_SAID_MAX    4096

/* What a member's agent does with what it is told. */
struct job_agent {
    int id;
    bool base;
    int nodeid;
    uint32_t job;
};

struct job {
    struct change *change;
    struct change_options options;
    struct policy policy;
    struct recovery *recovery;
    double now;
    bool may_act;
    int last_id;
    int target;                /* nodes that are wanted; 0: MAX */
    struct change_actions out; /* of the last fact */
    char said[JOB_SAID_MAX];   /* actions since job_forget(), in words: "RESERVE 1, HOLD 1" */
    bool finished;
    int code; /* … of the world, or of the job */
};

/* sizes as in --elastic; base: nodes of the base; mode as in enum change_mode. */
void job_begin(struct job *job, const char *sizes, int base, enum change_mode mode);
void job_end(struct job *job);
/* From here on another leader leads the job, and knows nothing of it. */
void job_take_over(struct job *job);

int job_join(struct job *job, bool base);
int job_join_apart(struct job *job, bool base); /* from the world: other roles run there */
struct change_fact job_fact(const struct job *job, enum change_fact_kind kind, int member);
void job_feed(struct job *job, const struct change_fact *fact);
/* A fact that needs nothing but its kind and its member (0: none). */
void job_tell(struct job *job, enum change_fact_kind kind, int member);
/* … and what a member says of the present world. */
void job_say(struct job *job, enum change_fact_kind kind, int member);
/* The plan is made, and fed. */
void job_plan(struct job *job);
/* Time passes; the deadline, if it is in that time, comes. */
void job_pass(struct job *job, double seconds);
void job_forget(struct job *job); /* what has been said */

/* Shorthands for whole passages. */
void job_form(struct job *job);                /* the planned world begins */
void job_start(struct job *job);               /* the planned world begins and makes a step */
void job_step(struct job *job);                /* all members of the world report a first step */
void job_ready(struct job *job);               /* all members of the world say ready */
void job_hold(struct job *job, uint64_t step); /* all members answer hold */
void job_leave(struct job *job); /* all workers of the world leave, as they were told */

/* A worker of that member ends so; the phase after that. */
int failed_exit(struct job *job, int id, int code, int signal);
/* Its workers have all ended with 0. */
void end_well(struct job *job, int id);

/* What has been said since the last call is just that; and the phase is that one. */
void said(struct job *job, const char *expected);
void in_phase(const struct job *job, const char *phase);

/* Members, also lost ones that still have a place. */
int job_member_count(const struct job *job);
const struct change_member *job_member_at(const struct job *job, int index);

const char *job_phase(const struct job *job);
const char *job_action_name(enum change_action_kind kind);

#endif
