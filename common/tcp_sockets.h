/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel knows about TCP sockets of this network namespace that belong to other processes. */
#ifndef ELASTIC_TCP_SOCKETS_H
#define ELASTIC_TCP_SOCKETS_H

#include <stdbool.h>
#include <sys/types.h>

/* Does any process listen on that port, at any address? False, too, if the kernel does not say. */
bool tcp_listens(int port);

/* Whose is the other end of fd, a connection over IPv4 within this machine? False if it is gone, or nothing of the kind. */
bool tcp_peer_uid(int fd, uid_t *uid);

#endif
