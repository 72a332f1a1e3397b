/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What faults leave behind: nodes that are left out for a while, and how many failures count
 * against --max-restarts. */
#ifndef ELASTIC_AGENT_LEADER_EXCLUDE_H
#define ELASTIC_AGENT_LEADER_EXCLUDE_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

struct exclude;
struct leader;
struct leader_member;
struct leader_options;
struct recovery;

/* NULL: out of memory. */
struct exclude *exclude_create(const struct leader_options *options);
void exclude_destroy(struct exclude *exclude);

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Is the member's node left out? */
bool exclude_member(const struct leader *leader, const struct leader_member *m);
/* Nodes of the base that are lost, out of service, or about to be taken away, once the base has
 * come together. Others may take their place beyond MAX. */
int exclude_base_lost(const struct leader *leader);
/* … of those with which the world has begun. */
int exclude_world_lost(const struct leader *leader);
/* Give back extensions on nodes that are left out. */
void exclude_watch(struct leader *leader);
/* Which nodes, and for how long: "" if none. */
void exclude_describe(const struct leader *leader, char *text, size_t size);
/* The nodes as a new comma list, and when the next of them is not left out any more (0: there is
 * none). NULL: out of memory. */
char *exclude_list(const struct leader *leader, double *until);
/* Which of these nodes Slurm takes out of service. nodes: NULL at the end. Members on other nodes
 * stay as they are; members may have joined or gone since. */
void exclude_unwell(struct leader *leader, char *const *nodes, const bool *unwell);
/* "notice": a node of the member's job is drained, or no longer. */
void exclude_noticed(struct leader *leader, struct leader_member *m, json_object *msg);
/* "reclaim": the cloud takes the node away in a moment. */
void exclude_reclaimed(struct leader *leader, struct leader_member *m, json_object *msg);
/* "advice": its cloud advises to replace the node. Another node is asked for
 * first (market.h). */
void exclude_advised(struct leader *leader, struct leader_member *m, json_object *msg);
/* Which nodes: "" if none. */
void exclude_describe_advised(const struct leader *leader, char *text, size_t size);
/* "silence": nobody will say that the node is about to be taken away. */
void exclude_silence(struct leader *leader, struct leader_member *m, json_object *msg);
/* Nodes that clouds take, in whose place others are to be asked for at once. */
int exclude_taken(const struct leader *leader);
/* So many have been asked for. */
void exclude_replaced(struct leader *leader, int nodes);

/* ---- faults ---------------------------------------------------------------------------------- */

/* This node cannot take part. */
void exclude_node(struct leader *leader, const char *node);
/* The member was lost without having been told to go. */
/* Its workers are slower than all others: the job leaves its node out for good, and another one is
 * asked for. */
void exclude_slow(struct leader *leader, struct leader_member *m);
void exclude_lost(struct leader *leader, const struct leader_member *m);
/* What is counted, and left out: belongs to this part. */
struct recovery *exclude_recovery(const struct leader *leader);
/* Failures that count now. */
int exclude_counted(const struct leader *leader);
/* So many have counted under the leader before this one. */
void exclude_inherit(struct leader *leader, int counted);

#endif
