/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many nodes the job is to have: what users ask for with selastic, and programs with
 * PMIx_Allocation_request (doc/internals/pmix.md). */
#ifndef ELASTIC_AGENT_LEADER_ALLOCATION_H
#define ELASTIC_AGENT_LEADER_ALLOCATION_H

#include <json-c/json.h>

struct allocation;
struct leader;
struct leader_member;
struct leader_options;
struct pmix_world;

/* NULL: out of memory. */
struct allocation *allocation_create(const struct leader_options *options);
void allocation_destroy(struct allocation *allocation);

/* Nodes that the job is to have now. */
int allocation_target(const struct leader *leader);
/* Nodes that it is to have when no request of a program is carried out. */
int allocation_user_target(const struct leader *leader);
void allocation_set_user_target(struct leader *leader, int nodes);

/* See what has been done of what programs ask for, and what is next. */
void allocation_update(struct leader *leader);
/* Slurm has refused nodes that a program may have asked for. */
void allocation_growth_failed(struct leader *leader, const char *why);
/* The job ends: nothing more is done of the requests, and those that wait are told while there is
 * still a world to hear it. */
void allocation_stop(struct leader *leader);
/* "allocate", a question to the leader: a request. */
void allocation_on_question(const struct pmix_world *pmix_world, struct leader_member *m,
                            json_object *msg);

#endif
