/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The training for a guest whose turn has come: a part of the replica that trains.
 *
 * The program of the service sees copies: of what belongs to the guest, and what the guest lets it
 * at. What it has written is put back for the guest, who takes it. */
#ifndef FIT_GUEST_TRAINER_H
#define FIT_GUEST_TRAINER_H

#include <sys/types.h>
#include <time.h>

#include "fit/guests.h"
#include "fit/s3_box.h"

struct guest_trainer {
    struct home home;
    int64_t id;             /* 0: for nobody */
    uid_t uid;              /* of the guest */
    int attempt;            /* that has begun; 0: none */
    struct s3_box_key *key; /* for keys for S3 */
    long long looked;
};

/* One look for it; it is trained at once. -1 with err: to be tried again. */
int guest_trainer_look(struct guest_trainer *trainer, struct error *err);

#endif
