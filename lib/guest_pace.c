/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast a leader takes messages of guests (guest_pace.h). */
#include "lib/guest_pace.h"

#include <stddef.h>

/* The user's place, else that of the user who is rested first. */
static size_t place_of(const struct guest_pace *pace, uint32_t uid, double now)
{
    size_t place = 0;

    for (size_t i = 0; i < GUEST_PACE_USERS; i++) {
        if (pace->list[i].uid == uid && pace->list[i].due > now)
            return i;
        if (pace->list[i].due < pace->list[place].due)
            place = i;
    }
    return place;
}

double guest_pace_wait(const struct guest_pace *pace, uint32_t uid, double now)
{
    size_t place = place_of(pace, uid, now);
    double wait = pace->list[place].due - now;

    double all = pace->due - now - (GUEST_PACE_BURST - 1) * GUEST_PACE_SECONDS;

    if (wait > 0 && pace->list[place].uid == uid)
        wait -= (GUEST_PACE_BURST - 1) * GUEST_PACE_SECONDS;
    if (wait < all)
        wait = all;
    return wait > 0 ? wait : 0;
}

void guest_pace_take(struct guest_pace *pace, uint32_t uid, double now)
{
    size_t place = place_of(pace, uid, now);

    if (pace->list[place].due < now)
        pace->list[place].due = now;
    pace->list[place].due += GUEST_PACE_SECONDS;
    pace->list[place].uid = uid;
    if (pace->due < now)
        pace->due = now;
    pace->due += GUEST_PACE_SECONDS / GUEST_PACE_SHARES;
}

bool guest_may_connect(int own, int all)
{
    return own < GUEST_LINKS && all < GUEST_LINKS_ALL;
}
