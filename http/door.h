/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A socket at which clients come in: only those of this process's user. */
#ifndef ELASTIC_HTTP_DOOR_H
#define ELASTIC_HTTP_DOOR_H

#include <uv.h>

#include "http/server.h"
#include "lib/error.h"

struct door;

/* fd listens, as a socket of TCP or of this machine; it is taken over. NULL with err. */
struct door *door_open(uv_loop_t *loop, int fd, struct error *err);
/* Let clients in, to that server, as long as it has room. */
void door_serve(struct door *door, struct server *server);
/* It is freed once the loop has closed its handle. NULL is accepted. */
void door_close(struct door *door);

#endif
