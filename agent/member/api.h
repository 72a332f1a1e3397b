/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP interface of the job on this node: its sockets, and elasticrun-http, which serves them
 * (doc/internals/http.md).
 *
 * The sockets are the agent's. A server that ends is followed by another one at the same sockets,
 * where clients wait meanwhile. A server that does not answer pings is ended. */
#ifndef ELASTIC_AGENT_MEMBER_API_H
#define ELASTIC_AGENT_MEMBER_API_H

#include <stdint.h>

#include <uv.h>

#include "lib/error.h"

struct api;

struct api_options {
    const char *program;    /* elasticrun-http */
    const char *node;       /* for messages */
    const char *run_dir;    /* the directory of the socket `api` */
    const char *state_dir;  /* of the job; NULL: not known */
    uint32_t job, restarts; /* the base */
    int ping_ms;            /* between two pings of the server; 0: as usual */
};

/* Listen, and start a server. The strings in options stay. NULL with err. */
struct api *api_create(uv_loop_t *loop, const struct api_options *options, struct error *err);
/* For ELASTIC_API and ELASTIC_API_SOCKET. */
const char *api_url(const struct api *api);
const char *api_socket(const struct api *api);
/* Where the leader is, which is asked. address NULL: not known. */
void api_leader(struct api *api, const char *address, int port);
/* gone is called from the loop once nothing is left. */
void api_destroy(struct api *api, void (*gone)(void *arg), void *arg);

#endif
