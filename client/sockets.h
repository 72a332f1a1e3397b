/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ending the connections of a torn world, which frees a worker that waits for other workers.
 *
 * A collective of gloo has no other way out. The kernel tells a rank whose peer is dead. But the
 * peer's other neighbours wait for that rank, and their neighbours for them. So a thread waits for
 * the word that the world is torn, and then shuts down the TCP connections that the world has
 * opened. It does so again until the worker is out of the world, since frameworks go on opening
 * connections. Sockets that listen are left alone; while the world forms, the thread connects to
 * them in place of the lost ranks, since gloo waits there for each rank. The world's connections
 * are told from the process's own by the time when they were made: each socket has an inode number
 * of its own, whatever happens to its descriptor. */
#ifndef ELASTIC_SOCKETS_H
#define ELASTIC_SOCKETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sockets;

/* The world begins to form: connections made from now on belong to the world. torn: a futex that is
 * not 0 once the world is torn; borrowed. size: the number of its ranks. NULL with errno. */
struct sockets *sockets_watch(_Atomic uint32_t *torn, int32_t size);

/* The world has formed: connections made later do not belong to it. */
void sockets_formed(struct sockets *sockets);

/* This world ends as planned, and its workers go on talking over its connections. From now on torn
 * tells that one of them is lost, who is awaited in the next world. What is under way has more time
 * to arrive. false: the thread cannot be started, and sockets is no more. */
bool sockets_follow(struct sockets *sockets, _Atomic uint32_t *torn);

/* The worker has left the torn world, or the world was never torn. NULL is accepted. */
void sockets_leave(struct sockets *sockets);

/* For a forked child, which has no such thread. */
void sockets_forget(struct sockets *sockets);

#endif
