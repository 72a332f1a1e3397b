/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last line that a program has written to stderr: the reason for its end, when nothing better
 * is known. Warnings of Python are left out: they come behind a traceback, too. */
#ifndef ELASTIC_AGENT_MEMBER_TAIL_H
#define ELASTIC_AGENT_MEMBER_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#define TAIL_BYTES 256 /* of a line */

/* Zeros: nothing has been written. */
struct tail {
    char line[TAIL_BYTES]; /* the last line that is not empty */
    char next[TAIL_BYTES]; /* the line that is being received */
    size_t used;
    bool warned; /* the line before is a warning: one that is indented belongs to it */
    bool known;  /* of tail_set() */
};

void tail_feed(struct tail *tail, const char *data, size_t len);
/* This is the reason. */
void tail_set(struct tail *tail, const char *line);
/* NULL: there is none. */
const char *tail_line(const struct tail *tail);
/* Why a program has failed: what it has said itself (the error of struct worker_exit, which may be
 * NULL), else that line. NULL: nothing is known. A program that somebody has killed (SIGKILL) has
 * not written why. */
const char *tail_why(const struct tail *tail, json_object *error, int signal);

#endif
