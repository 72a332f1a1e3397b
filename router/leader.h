/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One leader of a service: it is asked for its table again and again, and told what has become of
 * it. Questions go over two connections, because the answer to the first one takes its time. */
#ifndef ELASTIC_ROUTER_LEADER_H
#define ELASTIC_ROUTER_LEADER_H

#include <stdbool.h>

#include <json-c/json.h>
#include <uv.h>

#include "lib/conf.h"
#include "lib/leader_place.h"
#include "lib/route_table.h"

struct leader;

struct leader_options {
    const char *service;
    const char *id; /* of this router */
    const struct conf *conf;
    void (*heard)(void *arg); /* it has answered, perhaps with another table */
    void *arg;
};

/* The place is taken over. NULL: out of memory. */
struct leader *leader_create(uv_loop_t *loop, const struct leader_options *options,
                             struct leader_place *place);
void leader_destroy(struct leader *leader); /* freed by the loop */

const struct leader_place *leader_at(const struct leader *leader);
/* NULL: it has not answered yet. */
struct route_table *leader_table(const struct leader *leader);
/* When it has answered last, of the loop's time; 0: never. */
uint64_t leader_heard(const struct leader *leader);
/* What it says of this router's question, if it refuses; "": it does not. */
const char *leader_refusal(const struct leader *leader);

/* Taken over. Sent if it is another one than before, and each ten seconds. */
void leader_tell(struct leader *leader, json_object *report);

#endif
