/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The gate in front of OpenPMIx's listener.
 *
 * The library listens on a port of the loopback interface, where every user of the node can
 * connect. Its own check (psec/native over TCP) compares two statements of the client with each
 * other. And before the check, the library's only thread reads the client's first message without a
 * time limit: a connection that says nothing stops the server. So connections of other users must
 * not reach the library.
 *
 * This program has an accept() of its own. By the rules of the dynamic linker libpmix finds it in
 * place of the C library's accept(). A connection from another user ends there. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/tcp_sockets.h"

/* The descriptor is close-on-exec, which the library forgets. A refused connection looks as if
 * there were none: at any other error OpenPMIx 4.2.9 and later close the port, for everybody. */
__attribute__((visibility("default"))) int accept(int fd, struct sockaddr *address, socklen_t *len)
{
    int client = (int)syscall(SYS_accept4, fd, address, len, SOCK_CLOEXEC), on = 1;
    uid_t uid;

    if (client < 0)
        return -1;
    /* Root is refused, too: a client that claims to be another user than the clients of its
     * namespace makes the library free one of them twice. */
    if (tcp_peer_uid(client, &uid) && uid == getuid()) {
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* answers are small */
        return client;
    }
    close(client);
    errno = EAGAIN;
    return -1;
}
