/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The gate in front of OpenPMIx's listener.
 *
 * The library listens on a port of the loopback interface, where every user of the node can connect. Its own check compares
 * what the client says about itself with what the client says about itself (psec/native over TCP), and before that
 * its only thread reads the client's first message without a time limit: a connection that says nothing stops the server.
 * So connections of other users must not reach it. This program has an accept() of its own, which libpmix finds in place of
 * the C library's, as the dynamic linker prescribes: a connection from another user ends there. */
#include "pmix/accept.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/tcp_table.h"

bool accept_peer_uid(int fd, uid_t *uid)
{
    struct sockaddr_in own, peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
    struct tcp_socket end;

    if (getsockname(fd, (struct sockaddr *)&own, &own_len) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0 || own.sin_family != AF_INET ||
        peer.sin_family != AF_INET)
        return false;
    /* The peer's end is the socket whose local address is our remote one. */
    if (!tcp_table_find(TCP_TABLE_IPV4, ntohs(peer.sin_port), ntohs(own.sin_port), &end))
        return false;
    *uid = end.uid;
    return true;
}

/* Close-on-exec, which the library forgets. What is refused looks like a connection that went away by itself. */
__attribute__((visibility("default"))) int accept(int fd, struct sockaddr *address, socklen_t *len)
{
    int client = (int)syscall(SYS_accept4, fd, address, len, SOCK_CLOEXEC);
    uid_t uid;

    if (client < 0)
        return -1;
    /* Not root either: whoever claims to be another user than its clients makes the library free one of them twice. */
    if (accept_peer_uid(client, &uid) && uid == getuid())
        return client;
    close(client);
    errno = ECONNABORTED;
    return -1;
}
