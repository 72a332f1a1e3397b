/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a user asks of an elastic job: sizes, times, pools. Layers (command line, environment, file,
 * site) are merged. */
#ifndef ELASTIC_POLICY_H
#define ELASTIC_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/recovery.h"
#include "lib/sizes.h"

/* An entry of scale_config travels as one environment variable, and exec allows 128 KiB for it. */
#define POLICY_SCALE_TEXT_MAX 65536 /* bytes */

#define POLICY_UNSET         (-1)
#define POLICY_POOLS_MAX     16
#define POLICY_POOL_NAME_MAX 63
#define POLICY_FILE_MAX      (1024 * 1024) /* bytes of a policy file */
#define POLICY_SECONDS_MAX   31536000      /* a year: largest time that an option takes */
#define POLICY_SCALE_MAX     10000000      /* largest world size in scale_config */

enum policy_grow {
    POLICY_GROW_AUTO, /* to MAX, whenever there are nodes */
    POLICY_GROW_ASK,  /* when a program or a user asks for it */
};

/* When the base job is put back into Slurm's queue, to go on from its checkpoint. */
enum policy_requeue {
    POLICY_REQUEUE_LIMIT = 1, /* before its time limit ends it */
    POLICY_REQUEUE_FAULT =
        2, /* when it would end because of failures, or because too few nodes are left */
};

struct policy {
    struct sizes sizes; /* sizes.min == 0: unset */
    int grace;          /* seconds, POLICY_UNSET where this layer says nothing */
    int grow_delay;
    int snooze;
    int fault_wait;
    int hang_wait;          /* 0: a world without steps is never taken for hung */
    struct budget restarts; /* of workers, after failures; .restarts == POLICY_UNSET */
    int signal;             /* signal number; 0 none (text "none"); POLICY_UNSET */
    int requeue;            /* of enum policy_requeue; 0: never; POLICY_UNSET */
    int grow;               /* enum policy_grow; POLICY_UNSET */
    int pool_count;         /* 0: unset */
    char pools[POLICY_POOLS_MAX][POLICY_POOL_NAME_MAX + 1];
    json_object *scale_config; /* owned; NULL: unset. Object: world size in decimal → object */
};

void policy_init(struct policy *policy);
void policy_clear(struct policy *policy);

/* Set one field by its option name without "--elastic-" ("elastic" for the sizes, "grace",
 * "grow-delay", "snooze", "fault-wait", "hang-wait", "max-restarts", "pool", "signal", "grow", "requeue") from the user's text. The message names
 * the option and the allowed values. Returns -1 with policy unchanged. */
int policy_set(struct policy *policy, const char *name, const char *value, struct error *err);

/* The same for a value that was not written as an option (environment, elastic.conf): the message
 * says what is wrong with it and what is allowed, and where it came from is the caller's to add. */
int policy_set_value(struct policy *policy, const char *name, const char *value, struct error *err);

/* Whether the field with this option name is set. */
bool policy_is_set(const struct policy *policy, const char *name);

/* Whether name can be a pool's: 1 to 63 letters, digits and _ - . +, a letter, digit or _ first. */
int policy_check_pool_name(const char *name, struct error *err);

/* Parse a policy file's text (JSON object, architecture.md) over policy: what the file says
 * replaces what was set. Unknown keys, wrong types, trailing bytes and keys given twice are errors;
 * the message names key or line, but not the file. Returns -1 with policy unchanged. */
int policy_parse_json(struct policy *policy, const char *text, size_t len, struct error *err);

/* The policy as a new JSON object with the keys of a policy file, unset fields left out. Caller
 * frees with json_object_put. */
json_object *policy_to_json(const struct policy *policy);

/* Fill each field that is unset in policy from lower (copying). */
void policy_merge(struct policy *policy, const struct policy *lower);

/* Fill what is still unset from the built-in defaults (grace 600, grow_delay 60, snooze 0,
 * fault_wait 30, hang_wait 0, 3 restarts, signal 0, grow auto, requeue none). */
void policy_defaults(struct policy *policy);

/* JSON text of scale_config for this world size, "{}" if none; valid until the policy changes. */
const char *policy_scale_config(const struct policy *policy, int world_size);

#endif
