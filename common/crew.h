/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Some threads that do numbered pieces of work, for processes that may wait. */
#ifndef ELASTIC_COMMON_CREW_H
#define ELASTIC_COMMON_CREW_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

struct crew;

/* Does one piece, on a lane: a number from 0 that no other piece has at the same time. */
typedef int crew_work(struct crew *crew, int lane, size_t piece, void *arg, struct error *err);

/* Call work() for each number below count, on so many lanes. Pieces are begun in their order. After
 * a failure none is begun: -1, with the err of the one that has failed first. Without threads, or
 * with one lane, the caller does all of them. */
int crew_run(int lanes, size_t count, crew_work *work, void *arg, struct error *err);

/* For what pieces must do in their order: wait until all before this one have passed. False: a
 * piece has failed, so that this one is to fail, too, with whatever err. */
bool crew_turn(struct crew *crew, size_t piece);
/* Let the next one do it. */
void crew_pass(struct crew *crew);

#endif
