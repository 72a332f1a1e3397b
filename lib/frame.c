/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of the wire protocol (frame.h). */
#include "lib/frame.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#define HEADER_BYTES 4u
/* An idle connection of thousands keeps no more than this. */
#define BUFFER_KEPT 65536u

#define NONCE_BYTES crypto_aead_chacha20poly1305_ietf_NPUBBYTES

_Static_assert(FRAME_KEY_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "key of a frame");
_Static_assert(FRAME_KEY_BYTES == crypto_kdf_KEYBYTES, "key of a connection");
_Static_assert(FRAME_MAC_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "size of the MAC");

struct frame_reader {
    enum frame_direction direction;
    bool keyed;
    bool broken;
    uint32_t most; /* bytes of payload */
    uint8_t key[FRAME_KEY_BYTES];
    uint64_t sequence; /* of the next frame */
    uint8_t *buffer;   /* bytes start..end are not taken yet */
    size_t start, end, size;
};

static void put_be(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--) {
        to[i] = (uint8_t)value;
        value >>= 8;
    }
}

static uint32_t get_be32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void make_nonce(uint8_t nonce[NONCE_BYTES], uint64_t sequence)
{
    memset(nonce, 0, NONCE_BYTES);
    put_be(nonce + NONCE_BYTES - 8, sequence, 8);
}

static void derive_key(uint8_t key[FRAME_KEY_BYTES], enum frame_direction direction,
                       const uint8_t connection[FRAME_KEY_BYTES])
{
    crypto_kdf_derive_from_key(key, FRAME_KEY_BYTES, direction, "elFrames", connection);
}

struct frame_reader *frame_reader_create(enum frame_direction direction)
{
    struct frame_reader *reader = calloc(1, sizeof(*reader));

    if (reader == NULL)
        return NULL;
    reader->direction = direction;
    reader->most = FRAME_PLAIN_MAX;
    return reader;
}

void frame_reader_destroy(struct frame_reader *reader)
{
    if (reader == NULL)
        return;
    sodium_memzero(reader->key, sizeof(reader->key));
    free(reader->buffer);
    free(reader);
}

void frame_reader_set_key(struct frame_reader *reader, const uint8_t key[FRAME_KEY_BYTES])
{
    derive_key(reader->key, reader->direction, key);
    reader->keyed = true;
    reader->most = FRAME_KEYED_MAX;
    reader->sequence = 0;
}

void frame_reader_set_most(struct frame_reader *reader, uint32_t most)
{
    reader->most = most;
}

static int fail(struct frame_reader *reader)
{
    reader->broken = true;
    return -1;
}

/* The length of the frame in front: 1 with *length, 0 if its header is not whole yet, -1 if it is
 * not allowed. */
static int peek_length(struct frame_reader *reader, uint32_t *length, struct error *err)
{
    uint32_t overhead = reader->keyed ? FRAME_MAC_BYTES : 0;
    bool later = reader->keyed || reader->most != FRAME_PLAIN_MAX;

    if (reader->end - reader->start < HEADER_BYTES)
        return 0;
    *length = get_be32(reader->buffer + reader->start);
    if (*length > overhead && *length - overhead <= reader->most)
        return 1;
    error_set(err, "a frame of %u bytes; allowed are %u to %u %s", *length, overhead + 1,
              overhead + reader->most, later ? "on this connection" : "before authentication");
    return fail(reader);
}

/* Room for len bytes behind end, from the space in front if that is enough. */
static int make_room(struct frame_reader *reader, size_t len, struct error *err)
{
    size_t used = reader->end - reader->start, size = reader->size > 0 ? reader->size : 1024;
    uint8_t *larger;

    if (reader->start > 0 && reader->size - reader->end < len) {
        memmove(reader->buffer, reader->buffer + reader->start, used);
        reader->start = 0;
        reader->end = used;
    }
    if (reader->size - reader->end >= len)
        return 0;
    while (size - used < len)
        size *= 2;
    larger = realloc(reader->buffer, size);
    if (larger == NULL) {
        error_set(err, "out of memory");
        return fail(reader);
    }
    reader->buffer = larger;
    reader->size = size;
    return 0;
}

/* Called when nothing of the buffer is in use. */
static void reset_buffer(struct frame_reader *reader)
{
    reader->start = reader->end = 0;
    if (reader->size <= BUFFER_KEPT)
        return;
    free(reader->buffer);
    reader->buffer = NULL;
    reader->size = 0;
}

int frame_reader_feed(struct frame_reader *reader, const void *data, size_t len, struct error *err)
{
    uint32_t length;

    if (reader->broken)
        return error_set(err, "this connection has had a bad frame");
    if (reader->start == reader->end)
        reset_buffer(reader);
    if (len == 0)
        return 0;
    if (make_room(reader, len, err) < 0)
        return -1;
    memcpy(reader->buffer + reader->end, data, len);
    reader->end += len;
    /* Only the first frame: the frames behind it may need a key that is not set yet. */
    return peek_length(reader, &length, err) < 0 ? -1 : 0;
}

/* Decrypt the body of a frame where it is. *length becomes that of the payload. */
static int decrypt(struct frame_reader *reader, uint8_t *body, uint32_t *length, struct error *err)
{
    uint8_t nonce[NONCE_BYTES];

    make_nonce(nonce, reader->sequence);
    *length -= FRAME_MAC_BYTES;
    if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(
            body, NULL, body, *length, body + *length, NULL, 0, nonce, reader->key) != 0) {
        error_set(err,
                  "frame %llu does not verify: it was changed, repeated, left out, or made with "
                  "another key",
                  (unsigned long long)reader->sequence);
        return fail(reader);
    }
    reader->sequence++;
    return 0;
}

int frame_reader_next(struct frame_reader *reader, const char **payload, size_t *len,
                      struct error *err)
{
    uint8_t *body;
    uint32_t length;
    int rc;

    if (reader->broken)
        return error_set(err, "this connection has had a bad frame");
    rc = peek_length(reader, &length, err);
    if (rc <= 0)
        return rc;
    if (reader->end - reader->start - HEADER_BYTES < length)
        return 0;
    body = reader->buffer + reader->start + HEADER_BYTES;
    reader->start += HEADER_BYTES + length;
    if (reader->keyed) {
        if (decrypt(reader, body, &length, err) < 0)
            return -1;
    } else {
        /* Move the payload one byte to the left, over the frame's own head. The byte behind the
         * frame belongs to the next frame, and the NUL needs a place. */
        body--;
        memmove(body, body + 1, length);
    }
    body[length] = '\0'; /* over the MAC, or the payload's last byte before it was moved */
    *payload = (const char *)body;
    *len = length;
    return 1;
}

void frame_writer_set_key(struct frame_writer *writer, const uint8_t key[FRAME_KEY_BYTES])
{
    derive_key(writer->key, writer->direction, key);
    writer->keyed = true;
    writer->sequence = 0;
}

uint32_t frame_writer_most(const struct frame_writer *writer)
{
    if (writer->keyed)
        return FRAME_KEYED_MAX;
    return writer->plain_max != 0 ? writer->plain_max : FRAME_PLAIN_MAX;
}

void *frame_encode(struct frame_writer *writer, const char *payload, size_t len, size_t *out_len)
{
    size_t overhead = writer->keyed ? FRAME_MAC_BYTES : 0;
    uint8_t *frame, *body, nonce[NONCE_BYTES];

    if (len == 0 || len > frame_writer_most(writer))
        return NULL;
    frame = malloc(HEADER_BYTES + len + overhead);
    if (frame == NULL)
        return NULL;
    put_be(frame, len + overhead, HEADER_BYTES);
    body = frame + HEADER_BYTES;
    if (writer->keyed) {
        make_nonce(nonce, writer->sequence++);
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(body, body + len, NULL,
                                                           (const uint8_t *)payload, len, NULL, 0,
                                                           NULL, nonce, writer->key);
    } else {
        memcpy(body, payload, len);
    }
    *out_len = HEADER_BYTES + len + overhead;
    return frame;
}
