/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader of a service of another user, which trains: what the runner of the service that is
 * trained asks it (doc/internals/fit.md). */
#ifndef FIT_TRAINER_LINK_H
#define FIT_TRAINER_LINK_H

#include <sys/types.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/trainer_note.h"

struct trainer_link;

/* Nothing is asked so far. NULL: out of memory. */
struct trainer_link *trainer_link_create(const struct trainer_name *name);
void trainer_link_destroy(struct trainer_link *link); /* accepts NULL */

enum trainer_said {
    TRAINER_ANSWERS,
    TRAINER_WAITS,   /* nobody has answered; it is to be asked again */
    TRAINER_FORGETS, /* it knows no such training */
    TRAINER_REFUSES, /* for good */
};

/* Seconds after which a trainer that hears nothing of a training ends it. */
#define TRAINER_SILENCE 70.0

/* It is not asked any more: each question is refused. A question to an owner whose file system
 * hangs ends this process (cmd/deadline.h). */
void trainer_link_leave(struct trainer_link *link);

/* Ask it. request is put. The answer is borrowed until the next question; err says what else has
 * come. */
enum trainer_said trainer_link_ask(struct trainer_link *link, json_object *request,
                                   json_object **answer, struct error *err);

#endif
