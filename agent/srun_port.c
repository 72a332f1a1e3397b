/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is srun there (srun_port.h)?
 *
 * srun would complain of a connection that closes without a message. So none is made. The kernel of
 * srun's host answers the first packet if the port listens. Our last packet of the handshake is
 * held back, and a reset takes its place. srun never sees such a connection. */
#include "agent/srun_port.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 1500 /* for srun's host to answer */

/* The last packet waits for data that never come, and close() sends a reset. Where the kernel
 * cannot do so, srun sees a connection after all. */
static void stay_unseen(int fd)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    const int off = 0;

    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

static bool answers(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), failed = 1;
    socklen_t len = sizeof(failed);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    bool there;

    if (fd < 0)
        return true; /* cannot be said */
    stay_unseen(fd);
    there = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ||
            (errno == EINPROGRESS && poll(&wait, 1, CONNECT_MS) == 1 &&
             getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) == 0 && failed == 0);
    close(fd);
    return there;
}

bool srun_port_answers(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    bool there;

    if (host == NULL || port == NULL || getaddrinfo(host, port, &hints, &list) != 0)
        return true;
    there = answers(list);
    freeaddrinfo(list);
    return there;
}
