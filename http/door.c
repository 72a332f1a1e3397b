/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A socket at which clients come in (door.h). The kernel says whose a client is: no secret is
 * needed, and what another user sends is never read. */
#include "http/door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/tcp_sockets.h"

#define ACCEPTS_PER_TURN 16 /* clients of other users, which are closed at once, keep nobody away */

struct door {
    uv_poll_t poll;
    int fd;
    struct door_room room;
};

static bool is_ours(int fd, int family)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    uid_t uid;

    if (family == AF_UNIX)
        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
    return tcp_peer_uid(fd, &uid) && uid == getuid();
}

/* False: nobody is there, or nobody can be let in. */
static bool take_one(struct door *door)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    int fd = accept4(door->fd, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        log_debug("no more clients: %s", strerror(errno));
        uv_poll_stop(&door->poll); /* the room's tick tries it again */
        return false;
    }
    if (fd < 0)
        return errno == ECONNABORTED || errno == EINTR;
    if (is_ours(fd, address.ss_family)) {
        door->room.add(door->room.arg, fd, (struct sockaddr *)&address,
                       address.ss_family == AF_UNIX ? (socklen_t)sizeof(address.ss_family) : size);
    } else {
        log_debug("a client of another user is not let in");
        close(fd);
    }
    return true;
}

static void on_clients(uv_poll_t *poll, int status, int events)
{
    struct door *door = poll->data;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN && !door->room.full(door->room.arg); i++)
        if (!take_one(door))
            break;
    if (door->room.full(door->room.arg))
        uv_poll_stop(&door->poll); /* the others wait in the socket's queue */
}

struct door *door_open(uv_loop_t *loop, int fd, struct error *err)
{
    struct door *door = calloc(1, sizeof(*door));
    int rc = door != NULL ? uv_poll_init(loop, &door->poll, fd) : UV_ENOMEM;

    if (rc != 0) {
        error_set(err, "descriptor %d: %s", fd, uv_strerror(rc));
        free(door);
        close(fd);
        return NULL;
    }
    door->fd = fd;
    door->poll.data = door;
    return door;
}

void door_serve(struct door *door, const struct door_room *room)
{
    door->room = *room;
    if (!room->full(room->arg) && !uv_is_closing((uv_handle_t *)&door->poll))
        uv_poll_start(&door->poll, UV_READABLE, on_clients);
}

static void on_closed(uv_handle_t *handle)
{
    struct door *door = handle->data;

    close(door->fd);
    free(door);
}

void door_close(struct door *door)
{
    if (door != NULL)
        uv_close((uv_handle_t *)&door->poll, on_closed);
}
