/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports that are kept (port.h). */
#include "agent/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <sodium.h>

#define RANGE_FILE "/proc/sys/net/ipv4/ip_local_port_range"
#define PORT_FIRST 16384 /* many services have the ports below */
#define PORT_LAST  65535
#define TRIES      64

/* With reuse, what listens there needs SO_REUSEADDR, too. Without, nothing at all may be bound. */
static int bound_socket(int family, int port, bool reuse)
{
    struct sockaddr_in6 any6 = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool six = family == AF_INET6;
    int on = reuse, off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (six)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, six ? (struct sockaddr *)&any6 : (struct sockaddr *)&any4,
             six ? sizeof(any6) : sizeof(any4)) != 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* On all interfaces; IPv4 alone where the host has no IPv6. */
static int bound_to(int port, bool reuse)
{
    int fd = bound_socket(AF_INET6, port, reuse);

    return fd >= 0 || errno == EADDRINUSE ? fd : bound_socket(AF_INET, port, reuse);
}

bool port_is_bound(int port)
{
    int fd = bound_to(port, true), reason = errno;

    if (fd >= 0)
        close(fd);
    return fd < 0 && reason == EADDRINUSE;
}

int port_outside(int low, int high, uint32_t number)
{
    uint32_t below = low > PORT_FIRST ? (uint32_t)(low - PORT_FIRST) : 0;
    uint32_t above = high < PORT_LAST ? (uint32_t)(PORT_LAST - high) : 0;
    uint32_t place;

    if (low > high || below + above == 0)
        return 0;
    place = number % (below + above);
    return place < below ? PORT_FIRST + (int)place : high + 1 + (int)(place - below);
}

/* For programs of this node only. */
static int bound_to_loopback(int port, bool reuse)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)reuse; /* who listens there could not be told from others */
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

typedef int binds(int port, bool reuse);

/* The kernel gives ports of that range to any program that connects to another one. */
static int bound_outside(binds *to, bool reuse)
{
    FILE *file = fopen(RANGE_FILE, "re");
    int low = 0, high = 0, fd = -1;
    bool known = file != NULL && fscanf(file, "%d %d", &low, &high) == 2;

    if (file != NULL)
        fclose(file);
    for (int i = 0; known && fd < 0 && i < TRIES; i++) {
        int port = port_outside(low, high, randombytes_random());

        if (port == 0)
            break;
        fd = to(port, reuse);
    }
    return fd;
}

/* Outside the kernel's range if it leaves any port. */
static int bound_somewhere(binds *to, bool reuse, int *port)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    int fd = bound_outside(to, reuse);

    if (fd < 0)
        fd = to(0, reuse);
    if (fd < 0)
        return -1;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        close(fd);
        return -1;
    }
    *port = bound.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&bound)->sin6_port)
                                        : ntohs(((struct sockaddr_in *)&bound)->sin_port);
    return fd;
}

int port_reserve(int *port, struct error *err)
{
    int fd = bound_somewhere(bound_to, true, port);

    return fd >= 0 ? fd
                   : error_set(err, "cannot reserve a port for MASTER_PORT: %s", strerror(errno));
}

/* Give the socket the name of that port: false, another elasticrun has it. */
static bool claim(int fd, int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "elastic-port-%d", port);

    return bind(fd, (struct sockaddr *)&name,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0;
}

int port_hold(int *port, struct error *err)
{
    int held = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool claimed = false;

    if (held < 0)
        return error_set(err, "cannot keep a port: %s", strerror(errno));
    for (int i = 0; i < TRIES && !claimed; i++) {
        int bound = bound_somewhere(bound_to, false, port);

        if (bound < 0) {
            error_set(err, "cannot find a free port: %s", strerror(errno));
            close(held);
            return -1;
        }
        claimed = claim(held, *port);
        close(bound);
    }
    return held; /* if not claimed: a socket without a name */
}

/* That very port, if nothing is bound there; with named, if no other elasticrun has it. Else -1. */
static int hold_this(int port, bool named)
{
    int bound = port <= PORT_LAST ? bound_to(port, false) : -1, held;

    if (bound < 0)
        return -1;
    held = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (held >= 0 && !claim(held, port) && named) {
        close(held);
        held = -1;
    }
    close(bound);
    return held;
}

/* Those after the first one, which is held. Else nothing is. */
static bool hold_rest(int count, int first, bool named, int *fds)
{
    int held = 1;

    while (held < count && (fds[held] = hold_this(first + held, named)) >= 0)
        held++;
    if (held == count)
        return true;
    while (held > 0)
        close(fds[--held]);
    return false;
}

int port_hold_block(int count, int *first, int *fds, struct error *err)
{
    /* The second half of the tries is for a node where others have the names. */
    for (int i = 0; i < 2 * TRIES; i++) {
        fds[0] = port_hold(first, err);
        if (fds[0] < 0)
            return -1;
        if (hold_rest(count, *first, i < TRIES, fds))
            return 0;
    }
    return error_set(err, "cannot find %d free ports in a row", count);
}

int port_listen(int *port, struct error *err)
{
    int fd = bound_somewhere(bound_to_loopback, false, port);

    if (fd >= 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    error_set(err, "cannot listen on a port of 127.0.0.1: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}
