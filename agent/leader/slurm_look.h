/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at Slurm: some of the job's own jobs, some of the members' nodes. slurm_update.c decides
 * with lib/look.h when and at what, and makes something of it. */
#ifndef ELASTIC_AGENT_LEADER_SLURM_LOOK_H
#define ELASTIC_AGENT_LEADER_SLURM_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/look.h"

struct job_info;
struct leader;
struct leader_options;
struct pool;
struct power_look;
struct sleepers_pool;
struct slurm_look;

/* What is asked, and what Slurm says. */
struct slurm_view {
    /* A pending extension that Slurm may start for less time, if enough nodes are idle. */
    struct {
        uint32_t job; /* 0: none */
        uint32_t minutes;
        int nodes;
        const char *partition; /* NULL: they can be on nodes that others use as well */
    } relax;
    uint32_t jobs[LOOK_JOBS_MAX]; /* that are asked for, if not all of the user are */
    int job_count;
    char **nodes;             /* of members; NULL: not asked for */
    const struct pool *pool;  /* the limits of its partition are wanted; NULL: they are not */
    struct power_look *power; /* NULL: not asked for */
    struct look_output due;
    double began;
    bool submitting; /* was something being submitted when the look began? */
    int submissions; /* … and how often had that been done? */

    bool ok; /* Slurm has answered */
    struct job_info *list;
    int count;
    bool *unwell; /* of each of nodes; NULL: not known, or as it was */
};

typedef void slurm_look_done(struct leader *leader, struct slurm_view *view);

/* NULL: out of memory. */
struct slurm_look *slurm_look_create(const struct leader_options *options);
void slurm_look_destroy(struct slurm_look *look);

/* Look, one at a time. view->nodes and view->power are freed with the answer, after done(). */
void slurm_look_begin(struct leader *leader, const struct slurm_view *view, slurm_look_done *done);
/* Is it about all nodes of which a member had been told something when it began? */
bool slurm_look_covers_notices(const struct slurm_view *view);
/* Is a look under way? */
bool slurm_look_busy(const struct leader *leader);
/* What is due? The facts of lib/look.h that this part knows are added. in->list: may there be a
 * list? */
void slurm_look_due(const struct leader *leader, struct look_input *in, struct look_output *out);
/* Slurm may have extensions of which the leader does not know: have all jobs of the user listed. */
void slurm_look_list(struct leader *leader);
/* That is done. */
void slurm_look_listed(struct leader *leader);
/* The member whose node is to be asked for is the one of that number, of so many. */
int slurm_look_turn(struct leader *leader, int count);

/* What Slurm has said of a pool of the site: which nodes are powered down. */
struct sleepers_pool *slurm_look_sleepers(const struct leader *leader, const struct pool *pool);
/* NULL: Slurm does not know that job. */
struct job_info *slurm_look_find(struct slurm_view *view, uint32_t job);
/* The base job; NULL until Slurm has answered for the first time. */
const struct job_info *slurm_look_base(const struct leader *leader);
/* When the job should be done, by its user, else --deadline of the base job (Unix time); 0: any
 * time. */
double slurm_look_deadline(const struct leader *leader);
/* When Slurm has answered about it (leader_now); LOOK_NEVER. */
double slurm_look_base_seen(const struct leader *leader);
/* Something is to be done because of what it is: is it older than a few seconds? Then Slurm is
 * asked again, and a plan is made when it has answered. */
bool slurm_look_base_is_old(struct leader *leader);
/* When that was last so; 0: never. */
double slurm_look_base_check(const struct leader *leader);
/* … as it is in this view, which loses it. */
void slurm_look_take_base(struct leader *leader, struct slurm_view *view);

#endif
