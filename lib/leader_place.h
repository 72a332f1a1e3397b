/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the leader of a service is: the file leader.json in the service's directory. Pure. */
#ifndef ELASTIC_LEADER_PLACE_H
#define ELASTIC_LEADER_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define LEADER_PLACE_TEXT_MAX 65536
#define LEADER_PLACE_NODES    16

struct leader_place {
    uint32_t job, restarts;
    int64_t term;
    char **addresses; /* of nodes where it may be; NULL-terminated */
    int port;         /* 0: at one of the candidate ports */
    char *state_dir;  /* of the job; NULL: not known */
    bool ended;       /* the job has ended */
};

/* -1 with err: it is none. */
int leader_place_read(const char *text, size_t length, struct leader_place *place,
                      struct error *err);
void leader_place_clear(struct leader_place *place);
/* The same leader, at the same place? */
bool leader_place_same(const struct leader_place *a, const struct leader_place *b);

#endif
