/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What only the leader knows, for the leader after this one (doc/internals/takeover.md). */
#ifndef ELASTIC_AGENT_LEADER_HERITAGE_H
#define ELASTIC_AGENT_LEADER_HERITAGE_H

struct heritage;
struct leader;
struct leader_member;

/* NULL: out of memory. */
struct heritage *heritage_create(void);
void heritage_destroy(struct heritage *heritage);

/* Tell a member of the base. */
void heritage_tell(struct leader *leader, struct leader_member *m);
/* Tell all of them if it has changed. */
void heritage_watch(struct leader *leader);

#endif
