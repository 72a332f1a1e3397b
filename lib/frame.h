/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of the wire protocol: a 4-byte big-endian length, then the payload (plain mode), or the
 * encrypted payload and its MAC (keyed mode). Pure: bytes in, bytes out.
 *
 * The length counts all bytes after the length field. So in keyed mode it is the length of the
 * payload plus FRAME_MAC_BYTES. It can be read without the key, and is checked against the limits
 * before anything else.
 *
 * A keyed frame is encrypted and authenticated by ChaCha20-Poly1305 (RFC 8439). Its nonce is the
 * sequence number of the frame: 4 bytes of zero and 8 bytes big-endian. Each direction has a key of
 * its own, derived from that of the connection: so no nonce comes twice with a key, and a frame
 * that is sent back to its sender does not verify. No frame is empty. */
#ifndef ELASTIC_FRAME_H
#define ELASTIC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define FRAME_PLAIN_MAX 8192u              /* bytes of payload before authentication */
#define FRAME_KEYED_MAX (4u * 1024 * 1024) /* bytes of payload after authentication */
#define FRAME_GUEST_MAX (128u * 1024)      /* … from one who may say little */
#define FRAME_KEY_BYTES 32
#define FRAME_MAC_BYTES 16

enum frame_direction { FRAME_TO_LEADER = 0, FRAME_FROM_LEADER = 1 };

/* One direction of a connection: buffer of received bytes and sequence number. */
struct frame_reader;
/* NULL if out of memory. */
struct frame_reader *frame_reader_create(enum frame_direction direction);
void frame_reader_destroy(struct frame_reader *reader); /* accepts NULL */

/* Switch to keyed mode with sequence number 0, from the next frame on that frame_reader_next has
 * not taken yet. key is that of the connection, the same for both directions. It must be new: never
 * used for another connection. */
void frame_reader_set_key(struct frame_reader *reader, const uint8_t key[FRAME_KEY_BYTES]);

/* From now on the reader takes frames of up to `most` bytes of payload: more on connections that
 * need no keys, less of a peer that may say little. A key that is set later allows FRAME_KEYED_MAX
 * again. */
void frame_reader_set_most(struct frame_reader *reader, uint32_t most);

/* Append received bytes. Returns -1 when the bytes can never become a valid frame (the length field
 * has a value that is not allowed), or when memory runs out. Take all frames with frame_reader_next
 * before the next call: so the buffer holds at most one frame and one piece of input. */
int frame_reader_feed(struct frame_reader *reader, const void *data, size_t len, struct error *err);

/* Take the next whole payload. 1: *payload is NUL-terminated behind *len, and valid until the next
 * call on reader. 0: more bytes are needed. -1: the MAC does not verify, or the length is not
 * allowed. After a -1 of feed or next each further call is -1. */
int frame_reader_next(struct frame_reader *reader, const char **payload, size_t *len,
                      struct error *err);

/* All zero but for direction: in plain mode. */
struct frame_writer {
    enum frame_direction direction;
    uint32_t plain_max; /* bytes of payload in plain mode; 0: FRAME_PLAIN_MAX */
    bool keyed;
    uint8_t key[FRAME_KEY_BYTES]; /* of this direction */
    uint64_t sequence;            /* of the next frame */
};

/* As frame_reader_set_key. */
void frame_writer_set_key(struct frame_writer *writer, const uint8_t key[FRAME_KEY_BYTES]);

/* The most bytes of payload that the writer takes. */
uint32_t frame_writer_most(const struct frame_writer *writer);

/* Encode one payload into a new buffer that the caller frees. NULL: the payload is empty or too
 * long, or memory ran out. In keyed mode the sequence number is counted up. */
void *frame_encode(struct frame_writer *writer, const char *payload, size_t len, size_t *out_len);

#endif
