/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MASTER_PORT, on which rank 0 will listen. */
#ifndef ELASTIC_PORT_H
#define ELASTIC_PORT_H

#include "lib/error.h"

/* Bind a free TCP port on all interfaces and keep it bound, without listening, so that no other
 * process gets it. SO_REUSEADDR lets rank 0 bind the port all the same (TCPStore sets it too).
 * Returns the descriptor, -1 with err. */
int port_reserve(int *port, struct error *err);

#endif
