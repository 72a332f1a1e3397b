/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may connect to the PMIx server of this process: the user whose job this is. */
#ifndef ELASTIC_PMIX_ACCEPT_H
#define ELASTIC_PMIX_ACCEPT_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The kernel's answer to who owns the other end of a TCP connection within this machine; false: it cannot be told. */
bool accept_peer_uid(int fd, uid_t *uid);

#endif
