/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job's extensions: which there are, and when they go. */
#ifndef ELASTIC_AGENT_LEADER_EXTENSIONS_H
#define ELASTIC_AGENT_LEADER_EXTENSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/change.h"
#include "lib/look.h"
#include "lib/plan.h"

struct extensions;
struct leader;
struct leader_member;
struct pool;

struct extension {
    uint32_t job; /* 0 while sbatch runs */
    int nodes;    /* 0: not known yet, of a role's */
    int role;     /* for whose replicas it is; -1: for the world */
    enum plan_extension_state state;
    double asked, since, begin;
    double stirred;                /* the latest event that Slurm may have more to say of */
    double seen;                   /* when Slurm has last said what it is; LOOK_NEVER */
    double look;                   /* Slurm is to be asked (again) from then on; 0: not for this */
    double leaves;                 /* because of its time limit; 0: not before the base */
    double started;                /* when it got its nodes; 0: not yet, or not known */
    bool returns, withdrawn;       /* it, or the request, makes way for another pool's */
    bool unwanted;                 /* since one of its nodes cannot be used (plan.h) */
    double preempted;              /* when Slurm has said so first; 0: it has not */
    double excludes_until;         /* one of the nodes that it stays off is no longer left out */
    double relaxed;                /* when Slurm was last allowed to start it for a shorter time */
    uint32_t time_limit, time_min; /* minutes, as last seen; 0: not seen, no time_min */
    const struct pool *pool;       /* NULL: adopted, unknown */
    char **asleep; /* nodes that it stays off only because they are powered down; NULL: none */
    char reason[64];
};

/* NULL: out of memory. */
struct extensions *extensions_create(void);
void extensions_destroy(struct extensions *extensions);

/* ---- the list -------------------------------------------------------------------------------- */

int extensions_count(const struct leader *leader);
/* i is less than that. The pointer is good until one is added or dropped. */
struct extension *extensions_at(const struct leader *leader, int i);
/* The one with that job number (0: the one that is being submitted). NULL: there is none. */
struct extension *extensions_find(struct leader *leader, uint32_t job);
/* NULL: out of memory. */
struct extension *extensions_add(struct leader *leader, uint32_t job, int nodes,
                                 enum plan_extension_state state);
void extensions_drop(struct leader *leader, struct extension *ext);
void extensions_set_state(struct leader *leader, struct extension *ext,
                          enum plan_extension_state state);
/* Why the latest sbatch was refused; "" if it was not, or that is no longer true. */
void extensions_set_refusal(struct leader *leader, const char *why);
const char *extensions_refusal(const struct leader *leader);
/* An extension of that pool has ended before it could join: why, for users. The pool gets a
 * pause. */
void extensions_failed(struct leader *leader, const struct pool *pool, const char *why);
/* … since its agents have not joined in time. */
void extensions_never_joined(struct leader *leader, const struct extension *ext);
/* Why the latest extension could not join. NULL: it could. */
const char *extensions_failure(const struct leader *leader);

/* ---- their members --------------------------------------------------------------------------- */

/* It has so many nodes, whose agents may all have joined by now. */
void extensions_count_nodes(struct leader *leader, struct extension *ext, int nodes);
/* role: what the member says that its job is for; -1: the world. */
void extensions_joined(struct leader *leader, struct leader_member *member, int role);
void extensions_member_gone(struct leader *leader, struct leader_member *member);
/* Members of that extension that are there. */
int extensions_members(const struct leader *leader, uint32_t job);

/* ---- giving back ----------------------------------------------------------------------------- */

/* failed: growth is to wait for a while. */
void extensions_cancel(struct leader *leader, uint32_t job, bool failed, const char *reason);
/* All its members have to leave, for that reason. */
void extensions_make_leave(struct leader *leader, uint32_t job, enum change_notice notice,
                           const char *reason);
/* The job is over. */
void extensions_cancel_all(struct leader *leader);
/* Does it no longer count against MAX? As job_submit/elastic counts. */
bool extensions_excused(const struct leader *leader, const struct extension *ext);
/* When another is asked for in the place of one whose time runs out; 0: never. */
double extensions_replace_at(const struct leader *leader, const struct extension *ext);
/* Is it about to leave, because of its time limit or as soon as it can? Another may take its
 * place then. */
bool extensions_to_go(struct leader *leader, uint32_t job);
/* Is there one in the world that has to save now, before Slurm ends it? */
bool extensions_time_is_over(struct leader *leader);

#endif
