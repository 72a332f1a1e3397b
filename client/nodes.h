/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of a worker to its job by PMIx: for nodes, and to be let go.
 *
 * See nodes.c and doc/user/mpi.md. All functions may be called from any thread. */
#ifndef ELASTIC_CLIENT_NODES_H
#define ELASTIC_CLIENT_NODES_H

#include "client/event.h"

/* The functions of elastic.h, for a process that is a worker. within_s and id are as in elastic.h.
 * names NULL: any nodes. */
int nodes_extend(int nodes, int within_s, char *id, struct event_client_error *err);
int nodes_release(int nodes, const char *names, char *id, struct event_client_error *err);
int nodes_cancel(const char *id, struct event_client_error *err);
/* Returns early for a change that is under way on the client's page. */
int nodes_result(const char *id, struct elastic_result *result, int timeout_ms,
                 const struct event_client *client, struct event_client_error *err);
int nodes_saved(struct event_client_error *err);

/* Leave PMIx, if one of these functions has entered it. */
void nodes_close(void);

#endif
