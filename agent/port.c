/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port that is kept for rank 0 (port.h). */
#include "agent/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tcp_table.h"

int port_reserve(int *port, struct error *err)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    int on = 1, off = 0;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0 && (fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, (struct sockaddr *)&any4, sizeof(any4)) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        error_set(err, "cannot reserve a port for MASTER_PORT: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *port = bound.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&bound)->sin6_port)
                                        : ntohs(((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

static bool listening_in(const char *table, unsigned port)
{
    struct tcp_socket socket;

    return tcp_table_find(table, port, 0, &socket) && socket.state == TCP_LISTEN;
}

bool port_listening(int port)
{
    return listening_in(TCP_TABLE_IPV4, (unsigned)port) ||
           listening_in(TCP_TABLE_IPV6, (unsigned)port);
}
