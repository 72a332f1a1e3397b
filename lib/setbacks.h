/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Growth that has come to nothing, and how long the job waits before it grows again. Pure: time is
 * a parameter, in seconds. */
#ifndef ELASTIC_SETBACKS_H
#define ELASTIC_SETBACKS_H

/* Extensions that Slurm takes back again and again: from the second time on, the pause before the
 * next one doubles. It begins with this or the grow delay, whatever is longer, and ends with a few
 * minutes. After a pause and so long a quiet time all is as at first. */
#define SETBACKS_PAUSE      2.5
#define SETBACKS_PAUSE_MOST 300.0
#define SETBACKS_QUIET      60.0

struct setbacks {
    double last; /* the last shrink or failed growth; < 0: none */
    int again;   /* so many extensions in a row did not last */
};

/* The job has shrunk, or has failed to grow. asked: when the extension was asked for that has been
 * taken back, or has failed; < 0: it is about something else. */
void setbacks_add(struct setbacks *setbacks, double now, double grow_delay, double asked);
/* Seconds after the last setback in which the job does not grow. */
double setbacks_pause(const struct setbacks *setbacks, double grow_delay);

#endif
