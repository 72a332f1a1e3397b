/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes in JSON messages, as base64 under "data". Pure.
 *
 * Long data takes several messages; the last of them has "last" true. */
#ifndef ELASTIC_PIECES_H
#define ELASTIC_PIECES_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#define PIECE_BYTES ((size_t)1 << 20) /* well below a message's limit */

/* Call send with a copy of msg for each piece of data, at least once. send takes the copy over. msg
 * is freed. -1: out of memory. */
int pieces_send(json_object *msg, const void *data, size_t len,
                void (*send)(json_object *piece, void *arg), void *arg);

/* Put data as base64 under name of obj. -1: out of memory. */
int bytes_set(json_object *obj, const char *name, const void *data, size_t len);

/* The bytes under name as a new buffer (NULL with *len 0: none). -1: damaged, or out of memory. */
int bytes_get(json_object *obj, const char *name, char **data, size_t *len);

/* Put data under "data" of obj, for data that fits into one message. -1: out of memory. */
int piece_set(json_object *obj, const void *data, size_t len);

/* The bytes of one message as a new buffer (NULL with *len 0: no bytes). -1: the data is damaged,
 * or memory ran out. */
int piece_data(json_object *piece, char **data, size_t *len);

/* Bytes that arrive in pieces. */
struct pieces {
    char *data;
    size_t len;
};

/* Add a piece. 1: the piece was the last; 0: more will come; -1: the piece is damaged, or memory
 * ran out. */
int pieces_take(struct pieces *pieces, json_object *piece);

#endif
