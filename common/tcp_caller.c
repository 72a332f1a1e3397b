/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has connected (tcp_caller.h). */
#include "common/tcp_caller.h"

#include <unistd.h>

#include "common/tcp_sockets.h"

struct caller tcp_caller(int fd)
{
    struct sockaddr_in6 own, peer;
    struct caller nobody = {.kind = CALLER_NOBODY};
    uid_t uid;

    if (!tcp_ends(fd, &own, &peer))
        return nobody;
    return caller_of(own.sin6_addr.s6_addr, peer.sin6_addr.s6_addr,
                     tcp_peer_uid(fd, &uid) ? &uid : NULL, geteuid());
}
