/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may take one of the places that a leader has for connections which have proved nothing. Pure.
 *
 * Whoever can connect can do so thousands of times. So a user of the leader's node and another host
 * have a share of the places each, and what is beyond it is closed at once: it must not fill the
 * kernel's queue, in which members wait. The job's own processes on the node, and root's, have no
 * share: they may take all places. */
#ifndef ELASTIC_CALLERS_H
#define ELASTIC_CALLERS_H

#include <stdbool.h>
#include <stdint.h>

#define CALLERS_OF_USER 4
#define CALLERS_OF_HOST 8

enum caller_kind {
    CALLER_OWN,    /* a process of the job's user, or of root, on this node */
    CALLER_USER,   /* a process of another user on this node */
    CALLER_HOST,   /* another host, whose users this node cannot tell from each other */
    CALLER_NOBODY, /* a connection on this node that its process has closed already */
};

struct caller {
    enum caller_kind kind;
    uint32_t uid;        /* of a CALLER_USER */
    uint8_t address[16]; /* of a CALLER_HOST; an IPv4 address is mapped into IPv6 */
};

/* A connection from peer to own, both addresses. uid: of the process at its other end, NULL if the
 * kernel knows none on this node. */
struct caller caller_of(const uint8_t own[16], const uint8_t peer[16], const uint32_t *uid,
                        uint32_t own_uid);

bool caller_is_same(const struct caller *one, const struct caller *other);

/* May this caller have one more place beside those that it has? */
bool caller_may_have(const struct caller *caller, int places);

#endif
