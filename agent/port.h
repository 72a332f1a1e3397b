/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports that are kept: MASTER_PORT, on which rank 0 will listen, those of replicas, and one for the
 * HTTP interface. */
#ifndef ELASTIC_PORT_H
#define ELASTIC_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

/* Bind a free TCP port on all interfaces and keep it bound, without listening, so that no other
 * process gets it by chance. SO_REUSEADDR lets rank 0 bind the port all the same (TCPStore sets it
 * too). It lets any user bind it: who listens there in the end has to be looked at (tcp_listener).
 * Returns the descriptor, -1 with err. */
int port_reserve(int *port, struct error *err);

/* Choose a TCP port on which nothing is bound, for a program that need not set SO_REUSEADDR. No
 * other elasticrun on this node chooses it as long as the returned descriptor is open. -1 with err.
 *
 * The port itself is not kept bound: then such a program could not bind it, at any address. What is
 * kept is an abstract socket with the port in its name, which belongs to the network namespace as
 * the port does, and is gone with this process. Another program that asks for just this number can
 * still have it; where the kernel leaves ports outside its own range none gets it by chance.
 *
 * Every user can read the names of such sockets, and bind one of them for each port. Then the port
 * is a free one that is not kept. Whose program listens there in the end has to be looked at, as
 * above. */
int port_hold(int *port, struct error *err);

/* So many of them, one after the other: *first is the lowest, their descriptors are in fds[count].
 * -1 with err: none is held. */
int port_hold_block(int count, int *first, int *fds, struct error *err);

/* Is that port bound by a socket, of whoever's process, so that a server with SO_REUSEADDR cannot
 * listen there? Connections that have ended are not in its way. */
bool port_is_bound(int port);

/* Listen on a free port of 127.0.0.1, for programs of this node. Returns the descriptor, -1 with
 * err. */
int port_listen(int *port, struct error *err);

/* A port outside low-high, the range from which the kernel takes ports, chosen by number. 0: there
 * is none. Pure. */
int port_outside(int low, int high, uint32_t number);

#endif
