/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader of the service, as the runner asks it: what there is, and that it be changed. */
#ifndef FIT_LEADER_LINK_H
#define FIT_LEADER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

struct service_link;

/* Nothing is asked so far. */
struct service_link *service_link_create(uint32_t job);
void service_link_destroy(struct service_link *link); /* accepts NULL */

/* A model, and the shard that it is in. */
struct service_look {
    bool known;
    char version[64];  /* that there should be */
    char has[64];      /* that its shard has */
    char why[256];     /* it is not as it should be */
    char refused[256]; /* its versions in the repository cannot be used */
    bool routed;       /* requests for it are answered */
    bool updating;     /* an update of its shard goes on */
    int ready, wanted; /* replicas of its shard: that there are, that there should be */
};

/* -1 with err: the leader has not answered. */
int service_look(struct service_link *link, const char *model, struct service_look *look,
                 struct error *err);
/* It looks at its repository, and does at once what waits. */
int service_flush(struct service_link *link, struct error *err);

/* What trains: the replica of a role, or the world. */
struct service_trainer {
    int there;     /* replicas, in whatever state; of the world 1 until it is over */
    bool ready;    /* the replica is; the world trains */
    bool ended;    /* the world has, by itself … */
    int status;    /* … with that */
    char why[256]; /* for what it waits, "" for nothing */
};

/* There should be so many replicas of that role (0 or 1); or the world should train (1), or not. */
int service_train(struct service_link *link, const char *role, int wanted,
                  struct service_trainer *trainer, struct error *err);

/* The comment of the service's job: it trains for other users, now for that one (NULL: for nobody).
 * lib/trainer_note.h. */
int service_note(struct service_link *link, const char *service, const char *payer,
                 struct error *err);

#endif
