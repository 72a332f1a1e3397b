/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who joins, what members say, who leaves, who is lost. roster.h has the list of them. */
#ifndef ELASTIC_AGENT_LEADER_MEMBERS_H
#define ELASTIC_AGENT_LEADER_MEMBERS_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_member;
struct link;
struct members;

/* NULL: out of memory. */
struct members *members_create(void);
/* The timer that finds silent members begins, and ends. */
void members_open(struct leader *leader);
void members_close(struct leader *leader);
void members_destroy(struct members *members);

/* The member is gone. Its link is closed, if there is one. */
void members_lose(struct leader *leader, struct leader_member *member, const char *why);
/* The member's link has ended. */
void members_link_closed(struct leader *leader, struct leader_member *m, const char *why);
/* Called each second: a leader that has been asleep does not take members for lost because of
 * that. */
void members_awake(struct leader *leader);
/* "welcome": the member is told all that its agent has to know. keep: its workers may be of use. */
void members_welcome(struct leader *leader, struct leader_member *member, bool keep);
/* "release": the member's agent is to end. */
void members_send_release(struct leader_member *member, const char *reason);

/* "join": an agent wants to be a member. */
void members_join(struct leader *leader, struct link *link, json_object *msg);
/* "leaving": Slurm takes the member's node. */
void members_leaving(struct leader *leader, struct leader_member *m, json_object *msg);
/* "beat": the member is there, and how far its workers are. */
void members_beat(struct leader *leader, struct leader_member *m, json_object *msg);
/* "out": output of a worker, acknowledged when it is written. */
void members_out(struct leader *leader, struct leader_member *m, json_object *msg);

#endif
