/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of the wire protocol: 4-byte big-endian length, then payload (plain) or MAC and payload
 * (keyed). Pure: bytes in, bytes out.
 *
 * The length counts all bytes behind it, so in keyed mode it is that of the payload plus
 * FRAME_MAC_BYTES. The MAC is HMAC-SHA-512-256 (the first 32 bytes of HMAC-SHA-512, RFC 2104, as
 * libsodium's crypto_auth_hmacsha512256) over one direction byte, the sequence number as 8 bytes
 * big-endian, and the payload. No frame is empty. */
#ifndef ELASTIC_FRAME_H
#define ELASTIC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define FRAME_PLAIN_MAX 8192u              /* bytes of payload before authentication */
#define FRAME_KEYED_MAX (4u * 1024 * 1024) /* and after it */
#define FRAME_KEY_BYTES 32
#define FRAME_MAC_BYTES 32

enum frame_direction { FRAME_TO_LEADER = 0, FRAME_FROM_LEADER = 1 };

/* One direction of a connection: buffer of received bytes and sequence number. */
struct frame_reader;
/* NULL if out of memory. */
struct frame_reader *frame_reader_create(enum frame_direction direction);
void frame_reader_destroy(struct frame_reader *reader); /* accepts NULL */

/* From the next frame on that frame_reader_next has not taken yet: keyed mode, sequence 0. */
void frame_reader_set_key(struct frame_reader *reader, const uint8_t key[FRAME_KEY_BYTES]);

/* Frames up to so many bytes of payload in plain mode: for connections that need no keys. */
void frame_reader_set_most(struct frame_reader *reader, uint32_t most);

/* Append received bytes. -1 when they can never become a valid frame (the length in front is not
 * allowed), or out of memory. Take all frames with frame_reader_next before feeding again: that
 * keeps the buffer at one frame and one piece of input. */
int frame_reader_feed(struct frame_reader *reader, const void *data, size_t len, struct error *err);

/* Take the next whole payload: 1 with *payload (NUL-terminated behind *len, valid until the next
 * call on reader), 0 when more bytes are needed, -1 when the MAC does not verify or the length is
 * not allowed. After a -1 of feed or next each further call is -1. */
int frame_reader_next(struct frame_reader *reader, const char **payload, size_t *len,
                      struct error *err);

struct frame_writer {
    enum frame_direction direction;
    bool keyed;
    uint8_t key[FRAME_KEY_BYTES];
    uint64_t sequence; /* of the next frame */
};

/* Encode one payload into a new buffer that the caller frees; NULL if empty, too long or out of
 * memory. Counts the sequence up when keyed. */
void *frame_encode(struct frame_writer *writer, const char *payload, size_t len, size_t *out_len);

#endif
