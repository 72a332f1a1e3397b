/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast a leader takes messages of users whom its service trains for. Pure: time is a parameter,
 * in seconds.
 *
 * Each message costs the only loop of somebody else's job its time, whatever is in it. So a user
 * has so many a second, over all its connections, and after a rest some at once. All guests
 * together have four times as many. What is beyond that waits in the user's own socket. */
#ifndef ELASTIC_GUEST_PACE_H
#define ELASTIC_GUEST_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define GUEST_PACE_SECONDS 0.2 /* for each message */
#define GUEST_PACE_BURST   20  /* after a rest */
#define GUEST_PACE_USERS   64  /* who are not rested; others wait until one is */
#define GUEST_PACE_SHARES  4   /* of all together: so many users' */

/* Connections at a time. Each takes a descriptor, which members of the job need. */
#define GUEST_LINKS     8   /* of one user */
#define GUEST_LINKS_ALL 128 /* of all guests together */

/* All zero: nobody has said anything. */
struct guest_pace {
    struct {
        uint32_t uid;
        double due; /* when all that it has said is paid for */
    } list[GUEST_PACE_USERS];
    double due; /* when all that anybody has said is paid for */
};

/* Seconds until a message of this user may be taken. 0: now. */
double guest_pace_wait(const struct guest_pace *pace, uint32_t uid, double now);

/* A message of this user has been taken. */
void guest_pace_take(struct guest_pace *pace, uint32_t uid, double now);

/* May a user with so many connections have one more, if all guests have that many together? */
bool guest_may_connect(int own, int all);

#endif
