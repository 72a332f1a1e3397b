/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a leader may be found: the leader itself, and its successors after it. */
#ifndef ELASTIC_LEADER_PLACES_H
#define ELASTIC_LEADER_PLACES_H

#include "agent/successor.h"
#include "lib/error.h"

#define LEADER_PLACES_MAX (1 + SUCCESSORS_MAX)

struct leader_place {
    int port;
    char address[256];
};

/* All zero: none. */
struct leader_places {
    int count;
    struct leader_place list[LEADER_PLACES_MAX];
};

/* Returns false without effect where there is no room, or the address is too long. */
bool leader_places_add(struct leader_places *places, const char *address, int port);

/* "ADDRESS:PORT,ADDRESS:PORT", as an extension has it in its environment: a new string, NULL when
 * out of memory. */
char *leader_places_text(const struct leader_places *places);
/* Returns -1 with *places unchanged where text is something else. */
int leader_places_parse(struct leader_places *places, const char *text, struct error *err);

#endif
