/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A network for one test program, where no other test has a port. Tests of ports take hundreds at a
 * time, and those of links need certain ones. */
#ifndef ELASTIC_TESTS_OWN_NETWORK_H
#define ELASTIC_TESTS_OWN_NETWORK_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Only root can have one and stay who he is: others share the network of the machine. */
static inline bool own_network(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = geteuid() == 0 && unshare(CLONE_NEWNET) == 0
                 ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
                 : -1;
    bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;

    if (fd >= 0)
        close(fd);
    return up;
}

#endif
