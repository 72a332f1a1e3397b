/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Of which users a leader asks Slurm whether they are operators. Pure: time is a parameter, in
 * seconds.
 *
 * Whoever can connect can make the leader ask. So it asks seldom: of one user once a minute, of all
 * together once in five seconds. */
#ifndef ELASTIC_STRANGERS_H
#define ELASTIC_STRANGERS_H

#include <stdbool.h>
#include <stdint.h>

#define STRANGERS_AGAIN 60
#define STRANGERS_PAUSE 5
#define STRANGERS_MAX   16

struct strangers {
    struct {
        uint32_t uid;
        double until; /* not to be asked of before; 0: nobody */
    } list[STRANGERS_MAX];
    double after; /* no question before */
};

/* May Slurm be asked of this user now? If so, that counts as asked. */
bool strangers_ask(struct strangers *strangers, uint32_t uid, double now);

#endif
