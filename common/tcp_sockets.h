/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP sockets of other processes in this network namespace, as the kernel knows them. */
#ifndef ELASTIC_TCP_SOCKETS_H
#define ELASTIC_TCP_SOCKETS_H

#include <stdbool.h>
#include <sys/types.h>

/* Does any process listen on that port, at any address? False also if the kernel does not say. */
bool tcp_listens(int port);

/* The user of the other end of fd, a connection over IPv4 within this machine. False if that end is
 * gone, or fd is no such connection. */
bool tcp_peer_uid(int fd, uid_t *uid);

#endif
