/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way to the leader: questions go one after the other, each gets an answer.
 *
 * A leader is looked for when there is a question. While there is none, questions wait. */
#ifndef ELASTIC_COURIER_H
#define ELASTIC_COURIER_H

#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>
#include <uv.h>

#include "lib/conf.h"

struct courier;
struct question;

struct courier_options {
    uint32_t job, restarts;
    uid_t leader_uid;
    const struct conf *conf; /* ports and munge */
    const char *state_dir;   /* of the job; NULL: not known */
    int answer_ms;           /* for the leader: then it counts as lost; 0: 10 s */
};

/* answer is borrowed. NULL: the leader was lost after it had been asked. Comes from the loop. */
typedef void courier_done(json_object *answer, void *arg);

/* Everything in options stays. NULL: out of memory. */
struct courier *courier_create(uv_loop_t *loop, const struct courier_options *options);
/* The leader is at one of these addresses; at most COURIER_ADDRESSES are looked at. port 0: at one
 * of the candidate ports. */
#define COURIER_ADDRESSES 16
void courier_find(struct courier *courier, char *const *addresses, int port);

/* The question is taken over. NULL: out of memory, and done is not called. */
struct question *courier_ask(struct courier *courier, json_object *question, courier_done *done,
                             void *arg);
/* The answer is not wanted. A question that has not been sent is not sent. */
void courier_withdraw(struct question *question);

/* No question is answered any more. It is freed once the loop has closed its handles. */
void courier_destroy(struct courier *courier);

#endif
