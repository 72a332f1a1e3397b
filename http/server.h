/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP by libmicrohttpd, in libuv's loop. */
#ifndef ELASTIC_HTTP_SERVER_H
#define ELASTIC_HTTP_SERVER_H

#include <stdbool.h>
#include <sys/socket.h>

#include <uv.h>

#include "http/desk.h"
#include "http/fits.h"
#include "lib/error.h"

#define SERVER_CONNECTIONS 256

struct server;

struct server_options {
    struct desk *desk;
    struct fits *fits;
    int patience_ms; /* for a client to send a whole request, and to read an answer */
    /* There is room for connections again. */
    void (*room)(void *arg);
    void *arg;
};

/* NULL with err. */
struct server *server_create(uv_loop_t *loop, const struct server_options *options,
                             struct error *err);
bool server_is_full(const struct server *server);
/* A connection that may be answered. fd is taken over. */
void server_add(struct server *server, int fd, const struct sockaddr *address, socklen_t size);
/* Desk and fits must have been destroyed. It is freed once the loop has closed its handles. */
void server_destroy(struct server *server);

#endif
