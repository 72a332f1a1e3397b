/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the leader's side of PMIx shares: pmix_relay.c, and a file for each kind of question. */
#ifndef ELASTIC_AGENT_LEADER_PMIX_WORLD_H
#define ELASTIC_AGENT_LEADER_PMIX_WORLD_H

#include "agent/leader/leader_internal.h"

/* A world and the members' places in it. */
struct pmix_world {
    struct leader *leader;
    struct pmix_relay *relay;
    bool next; /* the one that is being prepared */
};

int pmix_world_place(const struct pmix_world *pmix_world,
                     const struct leader_member *m); /* -1: none */
struct leader_member *pmix_world_member(const struct pmix_world *pmix_world,
                                        int place); /* NULL: nobody */
json_object *pmix_world_message(const struct pmix_world *pmix_world, const char *type);
/* Answer a member's question; answer is taken over. */
void pmix_world_answer(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *question, json_object *answer);

/* pmix_query.c, "state": sizes, reasons, time that is left. */
void pmix_query_answer(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *msg);

#endif
