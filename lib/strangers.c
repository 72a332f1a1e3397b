/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Of which users a leader asks Slurm whether they are operators (strangers.h). */
#include "lib/strangers.h"

#include <stddef.h>

bool strangers_ask(struct strangers *strangers, uint32_t uid, double now)
{
    size_t place = STRANGERS_MAX;

    for (size_t i = 0; i < STRANGERS_MAX; i++) {
        if (strangers->list[i].until <= now)
            place = i;
        else if (strangers->list[i].uid == uid)
            return false;
    }
    if (place == STRANGERS_MAX || now < strangers->after)
        return false;
    strangers->list[place].uid = uid;
    strangers->list[place].until = now + STRANGERS_AGAIN;
    strangers->after = now + STRANGERS_PAUSE;
    return true;
}
