/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of the wire protocol: 4-byte big-endian length, then payload (plain) or MAC and payload (keyed). Pure: bytes in, bytes out. */
#ifndef ELASTIC_FRAME_H
#define ELASTIC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define FRAME_PLAIN_MAX 8192u
#define FRAME_KEYED_MAX (4u * 1024 * 1024)
#define FRAME_KEY_BYTES 32
#define FRAME_MAC_BYTES 32

enum frame_direction { FRAME_TO_LEADER = 0, FRAME_FROM_LEADER = 1 };

/* One direction of a connection: buffer of received bytes and sequence number. */
struct frame_reader;
struct frame_reader *frame_reader_create(enum frame_direction direction);
void frame_reader_destroy(struct frame_reader *reader);
void frame_reader_set_key(struct frame_reader *reader, const uint8_t key[FRAME_KEY_BYTES]);

/* Append received bytes. -1 when they can never become a valid frame (too long). */
int frame_reader_feed(struct frame_reader *reader, const void *data, size_t len, struct error *err);

/* Take the next whole payload: 1 with *payload (NUL-terminated behind *len, valid until the next call on reader), 0 when more bytes are
 * needed, -1 when the MAC does not verify or the length is not allowed. */
int frame_reader_next(struct frame_reader *reader, const char **payload, size_t *len, struct error *err);

struct frame_writer {
    enum frame_direction direction;
    bool keyed;
    uint8_t key[FRAME_KEY_BYTES];
    uint64_t sequence;
};

/* Encode one payload into a new buffer that the caller frees; NULL if too long or out of memory. Counts the sequence up when keyed. */
void *frame_encode(struct frame_writer *writer, const char *payload, size_t len, size_t *out_len);

#endif
