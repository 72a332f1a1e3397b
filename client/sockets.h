/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What frees a worker that waits for others in a world that is torn: its connections to them end.
 *
 * A collective of gloo has no other way out: a rank whose peer is dead is told by the kernel, but the peer's neighbours wait for that rank, and
 * theirs for them. A thread waits for the word that the world is torn and then shuts down the TCP connections that the world has opened, again
 * and again until the worker is out, since frameworks go on opening some. They are told from the process's own by when they were made: a
 * socket's inode is another one for each socket, whatever happens to its descriptor. */
#ifndef ELASTIC_SOCKETS_H
#define ELASTIC_SOCKETS_H

#include <stdatomic.h>
#include <stdint.h>

struct sockets;

/* The world begins to form: connections made from now on are its own. torn: a futex, not 0 once it is torn; borrowed. NULL with errno. */
struct sockets *sockets_watch(_Atomic uint32_t *torn);

/* It has formed: connections made later are not its own. */
void sockets_formed(struct sockets *sockets);

/* The worker is out of it, or never was in need. NULL is accepted. */
void sockets_leave(struct sockets *sockets);

/* In a forked child, which has no such thread. */
void sockets_forget(struct sockets *sockets);

#endif
