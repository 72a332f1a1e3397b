/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP sockets of other processes in this network namespace, as the kernel knows them. */
#ifndef ELASTIC_TCP_SOCKETS_H
#define ELASTIC_TCP_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>
#include <sys/types.h>

enum tcp_listener { TCP_NOBODY, TCP_OURS, TCP_STRANGER };

/* Who listens on that port, at any address? TCP_OURS: only processes of this user. TCP_NOBODY also
 * if the kernel does not say. */
enum tcp_listener tcp_listener(int port);

/* The same for who gets connections to that address. */
enum tcp_listener tcp_listener_at(const struct sockaddr_in6 *address);

/* The same, where TCP_OURS are processes of root only. */
enum tcp_listener tcp_root_listener_at(const struct sockaddr_in6 *address);

/* Any user may have so many sockets that it takes long to ask for a listener. The milliseconds
 * until the next time, after one that took so many nanoseconds: a twentieth of the time is spent on
 * it at most. At least that many. */
uint64_t tcp_pause(uint64_t took, uint64_t least);

/* Is it an address of this machine? */
bool tcp_is_local(const struct in6_addr *address);

/* An address of IPv4 is mapped into IPv6, in place. False: it is of neither kind. */
bool tcp_to_ipv6(struct sockaddr_in6 *address);

/* The addresses of both ends of fd, those of IPv4 mapped into IPv6. False: fd is no connection. */
bool tcp_ends(int fd, struct sockaddr_in6 *own, struct sockaddr_in6 *peer);

/* The user of the other end of fd, a connection within this machine. False if that end is gone, if
 * its process has closed it, or if fd is no such connection. */
bool tcp_peer_uid(int fd, uid_t *uid);

#endif
