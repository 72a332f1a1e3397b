/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP interface of a job with roles: what the leader is asked for a request, and what its
 * answers make of it.
 *
 * A change looks first, then asks for the change, then looks what has come of it. So a change whose
 * answer is lost with a leader is not made twice: the next look shows whether it has been made.
 *
 * Pure: the caller carries the questions (http/). */
#ifndef ELASTIC_API_CALL_H
#define ELASTIC_API_CALL_H

#include "lib/api_request.h"

struct api_call;

enum api_step {
    API_ASK,   /* ask api_call_question() now */
    API_PAUSE, /* … after a pause: a watch, to which nothing has happened */
    API_DONE,  /* the reply is complete */
};

/* request->di is taken over, also where NULL is returned: out of memory. */
struct api_call *api_call_create(const struct api_request *request);
void api_call_destroy(struct api_call *call); /* accepts NULL */

/* The leader's next question: a new object. */
json_object *api_call_question(const struct api_call *call);
/* Is it a look? Its answer is for all calls that have the same question. */
bool api_call_looks(const struct api_call *call);

/* The leader has answered. The answer is borrowed. */
enum api_step api_call_answered(struct api_call *call, json_object *answer,
                                struct api_reply *reply);
/* The leader has been lost after it had been asked: ask again. */
void api_call_lost(struct api_call *call);
/* The caller's time is over. */
void api_call_late(struct api_call *call, struct api_reply *reply);

#endif
