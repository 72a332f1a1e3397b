/* SPDX-License-Identifier: GPL-2.0-or-later */
/* May two parts of different releases work together? Pure.
 *
 * Parts say in their messages which release they are of, and which protocols they speak: all from
 * `oldest` to `protocol`. The number of a protocol increases when messages change in a way that a
 * release before would misunderstand; a new field or a new message that may be ignored is none.
 * doc/internals/protocol.md has the table of all such contracts. */
#ifndef ELASTIC_RELEASE_H
#define ELASTIC_RELEASE_H

#include <json-c/json.h>

#include "lib/error.h"

#define RELEASE_NAME_MAX 32

struct release {
    char name[RELEASE_NAME_MAX]; /* "0.1.0" */
    int protocol, oldest;
};

/* Add the fields "release", "protocol" and "oldest" to a message. */
void release_write(json_object *msg, const struct release *release);
/* Read them. A release that does not say what it speaks speaks protocol 1. */
void release_read(json_object *msg, struct release *release);

/* Is there a protocol that both speak? 0, or -1: the error names both, and what is to be done.
 * `ours` and `theirs` are words: "elasticrun on n3". */
int release_agree(const struct release *own, const char *ours, const struct release *other,
                  const char *theirs, struct error *err);

#endif
