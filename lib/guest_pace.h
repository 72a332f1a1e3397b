/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast a leader takes messages of users whom its service trains for. Pure: time is a parameter,
 * in seconds.
 *
 * Each message costs the only loop of somebody else's job its time, whatever is in it. So a user
 * has so many a second, over all its connections, and after a rest some at once. What is beyond it
 * waits in the user's own socket. */
#ifndef ELASTIC_GUEST_PACE_H
#define ELASTIC_GUEST_PACE_H

#include <stdint.h>

#define GUEST_PACE_SECONDS 0.2 /* for each message */
#define GUEST_PACE_BURST   20  /* after a rest */
#define GUEST_PACE_USERS   64  /* who are not rested; others wait until one is */

/* All zero: nobody has said anything. */
struct guest_pace {
    struct {
        uint32_t uid;
        double due; /* when all that it has said is paid for */
    } list[GUEST_PACE_USERS];
};

/* Seconds until a message of this user may be taken. 0: now. */
double guest_pace_wait(const struct guest_pace *pace, uint32_t uid, double now);

/* A message of this user has been taken. */
void guest_pace_take(struct guest_pace *pace, uint32_t uid, double now);

#endif
