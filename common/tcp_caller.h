/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has connected to a port that anybody can connect to. */
#ifndef ELASTIC_TCP_CALLER_H
#define ELASTIC_TCP_CALLER_H

#include "lib/callers.h"

/* Of fd, a connection that has been accepted. */
struct caller tcp_caller(int fd);

#endif
