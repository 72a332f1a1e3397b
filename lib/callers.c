/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may take a place at a leader's port (callers.h). */
#include "lib/callers.h"

#include <string.h>

/* 127.0.0.0/8 and ::1. Any user may connect from each of these addresses. */
static bool is_loopback(const uint8_t address[16])
{
    static const uint8_t ipv6[16] = {[15] = 1};
    static const uint8_t ipv4[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};

    return memcmp(address, ipv6, sizeof(ipv6)) == 0 || memcmp(address, ipv4, sizeof(ipv4)) == 0;
}

struct caller caller_of(const uint8_t own[16], const uint8_t peer[16], const uint32_t *uid,
                        uint32_t own_uid)
{
    struct caller caller = {.kind = CALLER_HOST};

    if (uid != NULL && (*uid == own_uid || *uid == 0)) {
        caller.kind = CALLER_OWN;
    } else if (uid != NULL) {
        caller.kind = CALLER_USER;
        caller.uid = *uid;
    } else if (is_loopback(peer) || memcmp(own, peer, sizeof(caller.address)) == 0) {
        caller.kind = CALLER_NOBODY;
    } else {
        memcpy(caller.address, peer, sizeof(caller.address));
    }
    return caller;
}

bool caller_is_same(const struct caller *one, const struct caller *other)
{
    return one->kind == other->kind && one->uid == other->uid &&
           memcmp(one->address, other->address, sizeof(one->address)) == 0;
}

bool caller_may_have(const struct caller *caller, int places)
{
    switch (caller->kind) {
    case CALLER_OWN:
        return true;
    case CALLER_USER:
        return places < CALLERS_OF_USER;
    case CALLER_HOST:
        return places < CALLERS_OF_HOST;
    default:
        return false;
    }
}
