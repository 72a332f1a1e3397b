/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MASTER_PORT, on which rank 0 will listen. */
#ifndef ELASTIC_PORT_H
#define ELASTIC_PORT_H

#include "lib/error.h"

/* Bind a free TCP port on all interfaces and keep it bound, without listening, so that nobody else gets it. SO_REUSEADDR lets the one who listens
 * (TCPStore sets it too) bind it all the same. Returns the descriptor, -1 with err. */
int port_reserve(int *port, struct error *err);

#endif
