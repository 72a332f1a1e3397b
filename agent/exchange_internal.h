/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the leader's side of PMIx shares: exchange.c, and a file for each kind of question. */
#ifndef ELASTIC_EXCHANGE_INTERNAL_H
#define ELASTIC_EXCHANGE_INTERNAL_H

#include "agent/leader_internal.h"

/* A world and the members' places in it. */
struct forum {
    struct leader *leader;
    struct exchange *exchange;
    bool next; /* the one that is being prepared */
};

int forum_place(const struct forum *forum, const struct leader_member *m); /* -1: none */
struct leader_member *forum_member(const struct forum *forum, int place);  /* NULL: nobody */
json_object *forum_message(const struct forum *forum, const char *type);
/* allocate.c */
void allocate_on_question(const struct forum *forum, struct leader_member *m, json_object *msg);

/* exchange.c */
/* Answer a member's question; answer is taken over. */
void forum_answer(const struct forum *forum, struct leader_member *m, json_object *question,
                  json_object *answer);

/* publish.c */
void publish_on_publish(const struct forum *forum, struct leader_member *m, json_object *msg);
void publish_on_lookup(const struct forum *forum, struct leader_member *m, json_object *msg);
void publish_on_taken(const struct forum *forum, struct leader_member *m, json_object *msg);
void publish_on_unpublish(const struct forum *forum, struct leader_member *m, json_object *msg);
void publish_forum_gone(struct leader *leader, const struct exchange *exchange);
void publish_member_gone(struct leader *leader, const struct leader_member *m);

/* question_state.c: sizes, reasons, time that is left */
void question_state(const struct forum *forum, struct leader_member *m, json_object *msg);

#endif
