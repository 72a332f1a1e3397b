/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port that is kept for rank 0 (port.h). */
#include "agent/port.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#define RANGE_FILE "/proc/sys/net/ipv4/ip_local_port_range"
#define PORT_FIRST 16384 /* many services have the ports below */
#define PORT_LAST  65535
#define TRIES      64

static int bound_socket(int family, int port)
{
    struct sockaddr_in6 any6 = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool six = family == AF_INET6;
    int on = 1, off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

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
static int bound_to(int port)
{
    int fd = bound_socket(AF_INET6, port);

    return fd >= 0 || errno == EADDRINUSE ? fd : bound_socket(AF_INET, port);
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

/* The kernel gives ports of that range to any program that connects to another one. */
static int bound_outside(void)
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
        fd = bound_to(port);
    }
    return fd;
}

int port_reserve(int *port, struct error *err)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    int fd = bound_outside();

    if (fd < 0)
        fd = bound_to(0);
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
