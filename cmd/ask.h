/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question to the leader of a job, on whichever of the job's first nodes it runs. */
#ifndef SELASTIC_ASK_H
#define SELASTIC_ASK_H

#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>
#include <uv.h>

#include "lib/conf.h"
#include "lib/error.h"

#define ASK_NODES_MAX 16

struct ask_options {
    uint32_t job_id;
    uint32_t restarts;
    uid_t uid; /* the job's user, and so the leader's */
    /* Of the job's first nodes, NULL-terminated, borrowed while the question runs. */
    char *const *addresses;
    const struct conf *conf; /* ports, munge; borrowed */
    const char *state_dir;   /* of the job; NULL: not known; borrowed */
    json_object *request;    /* borrowed during the call */
    int timeout_ms;          /* for the whole question */
};

/* answer is borrowed for the call; NULL when there is none, then why says so. */
typedef void (*ask_done)(json_object *answer, const char *why, void *arg);

/* Ask. done is called exactly once, from the loop; nothing is left on the loop some moments later.
 * The first address is tried first, the others when it has not answered soon. -1 with err when
 * nothing could be started: done is then not called. */
int ask_leader(uv_loop_t *loop, const struct ask_options *options, ask_done done, void *arg,
               struct error *err);

#endif
