/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What processes have published for each other with PMIx, and lookups that wait for it. */
#ifndef ELASTIC_AGENT_LEADER_PMIX_PUBLISH_H
#define ELASTIC_AGENT_LEADER_PMIX_PUBLISH_H

#include <json-c/json.h>

struct leader;
struct leader_member;
struct pmix_publish;
struct pmix_relay;
struct pmix_world;

/* NULL: out of memory. */
struct pmix_publish *pmix_publish_create(void);
/* The timer of lookups that wait begins, and ends. */
void pmix_publish_open(struct leader *leader);
void pmix_publish_close(struct leader *leader);
void pmix_publish_destroy(struct pmix_publish *publish);

/* Questions to the leader. */
void pmix_publish_on_publish(const struct pmix_world *pmix_world, struct leader_member *m,
                             json_object *msg);
void pmix_publish_on_lookup(const struct pmix_world *pmix_world, struct leader_member *m,
                            json_object *msg);
/* A node has read what it was answered. */
void pmix_publish_on_taken(const struct pmix_world *pmix_world, struct leader_member *m,
                           json_object *msg);
void pmix_publish_on_unpublish(const struct pmix_world *pmix_world, struct leader_member *m,
                               json_object *msg);

/* A process of the present world has ended; a world is over; a member is gone. */
void pmix_publish_rank_gone(struct leader *leader, int rank);
void pmix_publish_relay_gone(struct leader *leader, const struct pmix_relay *relay);
void pmix_publish_member_gone(struct leader *leader, const struct leader_member *m);

#endif
