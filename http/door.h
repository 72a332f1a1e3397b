/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A socket at which clients come in: only those of this process's user. */
#ifndef ELASTIC_HTTP_DOOR_H
#define ELASTIC_HTTP_DOOR_H

#include <stdbool.h>
#include <sys/socket.h>

#include <uv.h>

#include "lib/error.h"

struct door;

/* Where clients are let in. */
struct door_room {
    bool (*full)(void *arg);
    /* A connection that may be answered. fd is taken over. */
    void (*add)(void *arg, int fd, const struct sockaddr *address, socklen_t size);
    void *arg;
};

/* fd listens, as a socket of TCP or of this machine; it is taken over. NULL with err. */
struct door *door_open(uv_loop_t *loop, int fd, struct error *err);
/* Let clients in, as long as there is room. */
void door_serve(struct door *door, const struct door_room *room);
/* It is freed once the loop has closed its handle. NULL is accepted. */
void door_close(struct door *door);

#endif
