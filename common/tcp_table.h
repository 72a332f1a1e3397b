/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The TCP sockets of this network namespace, as the kernel lists them (proc_net_tcp of its documentation). */
#ifndef ELASTIC_TCP_TABLE_H
#define ELASTIC_TCP_TABLE_H

#include <stdbool.h>
#include <sys/types.h>

#define TCP_TABLE_IPV4 "/proc/net/tcp"
#define TCP_TABLE_IPV6 "/proc/net/tcp6"

struct tcp_socket {
    unsigned state; /* as in <netinet/tcp.h> */
    uid_t uid;      /* whose it is */
};

/* The first socket in that table with these ports; who listens has no remote one, 0. False: there is none, or no such table. */
bool tcp_table_find(const char *table, unsigned local_port, unsigned remote_port,
                    struct tcp_socket *found);

#endif
