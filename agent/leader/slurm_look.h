/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A look at Slurm: the user's jobs and the members' nodes. slurm_update.c makes something of it. */
#ifndef ELASTIC_AGENT_LEADER_SLURM_LOOK_H
#define ELASTIC_AGENT_LEADER_SLURM_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct job_info;
struct leader;
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
    char **nodes;     /* of all members; NULL: not asked for */
    const char *pool; /* the partition of extensions; NULL: the job has none */
    double began;
    bool submitting; /* was something being submitted when the look began? */
    int submissions; /* … and how often had that been done? */

    bool ok; /* Slurm has answered */
    struct job_info *list;
    int count;
    bool *unwell; /* of each of nodes; NULL: not known */
};

typedef void slurm_look_done(struct leader *leader, struct slurm_view *view);

/* NULL: out of memory. */
struct slurm_look *slurm_look_create(void);
void slurm_look_destroy(struct slurm_look *look);

/* Look, one at a time. view->nodes is freed with the answer, after done(). */
void slurm_look_begin(struct leader *leader, const struct slurm_view *view, slurm_look_done *done);
/* Is a look under way? */
bool slurm_look_busy(const struct leader *leader);
/* Something has changed: the next poll looks, whenever the last one did. */
void slurm_look_soon(struct leader *leader);
/* Seconds since the last look; more than any limit if the next one is due anyway. */
double slurm_look_age(const struct leader *leader);

/* Minutes that the partition of the pool lets a job have, UINT32_MAX: any. */
uint32_t slurm_look_pool_limit(const struct leader *leader);
/* NULL: Slurm does not know that job. */
struct job_info *slurm_look_find(struct slurm_view *view, uint32_t job);
/* The base job; NULL until Slurm has answered for the first time. */
const struct job_info *slurm_look_base(const struct leader *leader);
/* … as it is in this view, which loses it. */
void slurm_look_take_base(struct leader *leader, struct slurm_view *view);

#endif
