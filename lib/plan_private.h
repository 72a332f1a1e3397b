/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the plan share (lib/plan.h).
 *
 * plan.c        members of the next world, what is asked for, the reasons
 * plan_units.c  their order, and units of several nodes
 * plan_drop.c   extensions that are given back, requests that are taken back */
#ifndef ELASTIC_PLAN_PRIVATE_H
#define ELASTIC_PLAN_PRIVATE_H

#include "lib/plan.h"

static inline double later(double a, double b)
{
    return a > b ? a : b;
}

static inline int at_most(int a, int b)
{
    return a < b ? a : b;
}

/* ---- plan.c ---------------------------------------------------------------------------------- */

/* Remember the earliest moment at which the answer may change by itself. */
void plan_wake_at(const struct plan_input *in, struct plan_output *out, double when);
bool plan_is_waiting(const struct plan_extension *ext); /* for sbatch, or in the queue */
bool plan_is_cancelled(const struct plan_output *out, uint32_t job);
/* May this member be part of the next world? Newcomers of an extension come together or not at
 * all. */
bool plan_is_eligible(const struct plan_input *in, const struct plan_output *out,
                      const struct plan_member *m);
bool plan_is_chosen(const struct plan_output *out, int id); /* for the next world */

/* Counts of members that may be part of the next world: all, those with the state, and those of the
 * present world whose unit is whole. Without the members of one job (0: with all). */
struct plan_strength {
    int members, holders, present;
};
struct plan_strength plan_strength(const struct plan_input *in, const struct plan_output *out,
                                   uint32_t job);

/* Nodes of the present world, lost or not. */
int plan_count_present(const struct plan_input *in);
/* Nodes that the job has or has asked for, and that it will not lose soon. */
int plan_count_nodes(const struct plan_input *in, const struct plan_output *out);
/* Has a world ended because of lost nodes, and would the next world be smaller if it began now?
 * Each world begins with a checkpoint: once is better than twice. */
bool plan_replaces(const struct plan_input *in, const struct plan_output *out);
/* Does the training stand still until nodes come? Then it gains nothing from asking later. */
bool plan_needs_nodes(const struct plan_input *in, const struct plan_output *out);

/* ---- plan_units.c ---------------------------------------------------------------------------- */

int plan_unit(const struct plan_input *in); /* nodes of one; at least 1 */
/* May the member be part of the next world, without that job (0: with all)? */
bool plan_is_counted(const struct plan_input *in, const struct plan_output *out,
                     const struct plan_member *m, uint32_t without);
/* For out->in_unit; NULL when out of memory. */
int *plan_units_create(const struct plan_input *in);
/* Count the members of each unit of the present world into out->in_unit. */
void plan_units_count(const struct plan_input *in, const struct plan_output *out, uint32_t without);
/* Is it of a unit of the present world that has lost no member, as last counted? */
bool plan_is_whole(const struct plan_input *in, const struct plan_output *out,
                   const struct plan_member *m);
/* Put eligible members in order: whole units of the present world as they are, then newcomers and
 * spare nodes, base first. Returns how many are of whole units; -1 when out of memory. */
int plan_units_sort(const struct plan_input *in, const struct plan_output *out,
                    const struct plan_member **list, int count);

/* ---- plan_drop.c ----------------------------------------------------------------------------- */

/* Is another extension to replace this one, since its time runs out or a node cannot be used? */
bool plan_is_ending(const struct plan_input *in, const struct plan_extension *ext);
/* Before members are chosen: cancels extensions. At least `keep` members with the state stay. */
void plan_drop(const struct plan_input *in, struct plan_output *out, int keep);
/* … and after it: joined extensions that the world does not use. */
void plan_drop_parked(const struct plan_input *in, struct plan_output *out);

#endif
