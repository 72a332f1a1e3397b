/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extensions that must not make Slurm power nodes up (lib/wake.h, lib/sleepers.h). */
#ifndef ELASTIC_AGENT_LEADER_NO_WAKE_H
#define ELASTIC_AGENT_LEADER_NO_WAKE_H

#include <stdbool.h>

struct extension;
struct leader;
struct look_input;
struct pool;
struct power_look;

/* For how many of these nodes an extension may be submitted into the pool now. 0: for none, or
 * Slurm has to be asked first; a plan is made when that has another answer. anywhere: also on nodes
 * that are left out for a while. */
int no_wake_nodes(struct leader *leader, const struct pool *pool, int nodes, bool anywhere);
/* What this extension of ext->pool is to exclude, with `avoid`, a comma list or NULL, which is
 * freed. A new text, or NULL for nothing. */
char *no_wake_exclude(struct leader *leader, struct extension *ext, char *avoid);
/* Why none is submitted into that pool of the site. NULL: for no reason of this kind. */
const char *no_wake_why(const struct leader *leader, const struct pool *pool);
/* None is submitted into it before (leader_now); 0: it may be. */
double no_wake_until(const struct leader *leader, const struct pool *pool);
/* Slurm gives the extension nodes that have to power up: is it to go at once? */
bool no_wake_forbids(struct leader *leader, const struct extension *ext);

/* Which question is due, for lib/look.h; the question; what follows from its answer. */
void no_wake_describe(const struct leader *leader, struct look_input *in);
struct power_look *no_wake_question(struct leader *leader); /* NULL: none, or out of memory */
void no_wake_answered(struct leader *leader, struct power_look *look);

#endif
