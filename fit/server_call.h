/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server on this node, of this user, is asked to train. */
#ifndef FIT_SERVER_CALL_H
#define FIT_SERVER_CALL_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/fit_call.h"

struct server_call {
    const char *path; /* "/fit" */
    int port;
    const char *address; /* where it may listen, if not at 127.0.0.1; NULL: only there */
    const char *body;    /* JSON */
    /* Asked about once a second: is the training not wanted any more, or its server gone? */
    bool (*unwanted)(void *arg);
    void *arg;
};

/* POST, and GET as long as it goes on. Until the training has ended, or is not wanted: then
 * FIT_CALL_GOES_ON. With FIT_CALL_FAILED why says the reason. */
enum fit_call server_call(const struct server_call *call, struct error *why);

#endif
