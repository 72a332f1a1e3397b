/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When something that fails is tried again: after a pause that doubles. Pure: time is a
 * parameter, in seconds. */
#ifndef ELASTIC_RETRY_H
#define ELASTIC_RETRY_H

struct retry {
    double first, max; /* pauses, seconds */
    double pause;      /* after the next failure; 0: the first one */
    double after;      /* not to be tried before */
};

/* It has failed. Returns the pause. What fails during a pause was begun before: the pause stays. */
double retry_failed(struct retry *retry, double now);
/* It went well, or somebody wants it tried at once: the next failure is the first one. */
void retry_reset(struct retry *retry);

/* As another one was, with the pauses of this one: no pause that goes on is longer than those. */
void retry_go_on(struct retry *retry, const struct retry *from, double now);

#endif
