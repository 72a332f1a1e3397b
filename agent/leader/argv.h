/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growing list of words: of a command, or of an environment. */
#ifndef ELASTIC_AGENT_LEADER_ARGV_H
#define ELASTIC_AGENT_LEADER_ARGV_H

#include <stdbool.h>

/* Begins as {0}. */
struct argv {
    char **list; /* NULL-terminated */
    int count;
    bool failed; /* there was no memory for all words */
};

void argv_add(struct argv *argv, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The list, which is the caller's now (strings_free). NULL: out of memory. */
char **argv_end(struct argv *argv);

#endif
