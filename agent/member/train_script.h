/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scripts of the user on this node, before workers are started and after they have ended
 * (--pre-train-script, --post-train-script).
 *
 * While the first one runs, the leader's message that has asked for the workers waits, and so does
 * all that comes after a "start". Its failure is a failure of the world, with a reason. */
#ifndef ELASTIC_AGENT_MEMBER_TRAIN_SCRIPT_H
#define ELASTIC_AGENT_MEMBER_TRAIN_SCRIPT_H

#include <stdbool.h>

#include <json-c/json.h>

struct group;
struct member;
struct train_script;

/* "pre_train" and "post_train" of a welcome. NULL: it has neither. */
struct train_script *train_script_create(json_object *welcome);
/* A script that runs is killed. NULL is accepted. */
void train_script_destroy(struct train_script *scripts);

/* True: the message waits for the script, or was for it only. */
bool train_script_waits(struct member *m, const char *type, json_object *msg);
/* The workers of the group have ended, and those of `started` are to be told as drained. True: a
 * script runs before that. */
bool train_script_after(struct member *m, const struct group *group);

#endif
