/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the leader's side of PMIx shares: a world, the places of members in it, and the answers to
 * their questions. */
#ifndef ELASTIC_AGENT_LEADER_PMIX_WORLD_H
#define ELASTIC_AGENT_LEADER_PMIX_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/gather.h"

struct leader;
struct leader_member;

/* What the PMIx servers of a world's nodes say to each other (pmix_relay.h). */
struct pmix_relay {
    int attempt; /* the number of its start; 0: there is no world */
    int generation;
    int node_count;
    char name[64]; /* the namespace that its processes have */
    struct gather *gather;
    char without[256]; /* a node that has no PMIx server, and why; "": there is none */
    size_t *unread;    /* per place: bytes that lookups have found, and its server has not taken */
};

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

#endif
