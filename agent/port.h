/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MASTER_PORT, on which rank 0 will listen. */
#ifndef ELASTIC_PORT_H
#define ELASTIC_PORT_H

#include <stdint.h>

#include "lib/error.h"

/* Bind a free TCP port on all interfaces and keep it bound, without listening, so that no other
 * process gets it by chance. SO_REUSEADDR lets rank 0 bind the port all the same (TCPStore sets it
 * too). It lets any user bind it: who listens there in the end has to be looked at (tcp_listener).
 * Returns the descriptor, -1 with err. */
int port_reserve(int *port, struct error *err);

/* A port outside low-high, the range from which the kernel takes ports, chosen by number. 0: there
 * is none. Pure. */
int port_outside(int low, int high, uint32_t number);

#endif
