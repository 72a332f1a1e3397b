/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of the files that a trainer has put for another user. It comes last: without it nothing
 * is taken, and with it only what it names. */
#ifndef FIT_PUT_LIST_H
#define FIT_PUT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

#define PUT_LIST_FILE    "files.json"
#define PUT_LIST_MAX     ((size_t)16 << 20)
#define PUT_ATTEMPT_SIZE 17 /* bytes of a name of an attempt, which no other one has */

struct put_list {
    json_object *names; /* an array of paths */
    char attempt[PUT_ATTEMPT_SIZE];
};

/* An empty one, of a new attempt. */
void put_list_begin(struct put_list *list);
void put_list_clear(struct put_list *list);

/* A new text. NULL with err: there is nothing in it, or too much. */
char *put_list_text(const struct put_list *list, struct error *err);

/* What somebody else has written. -1 with err. All names in it may be files of a state. */
int put_list_parse(const char *text, size_t len, struct put_list *list, struct error *err);

#endif
