/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of the wire protocol (frame.h). */
#include "lib/frame.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#define HEADER_BYTES 4u
/* An idle connection of thousands keeps no more than this. */
#define BUFFER_KEPT 65536u

_Static_assert(FRAME_KEY_BYTES == crypto_auth_hmacsha512256_KEYBYTES, "key of the MAC");
_Static_assert(FRAME_MAC_BYTES == crypto_auth_hmacsha512256_BYTES, "size of the MAC");

struct frame_reader {
    enum frame_direction direction;
    bool keyed;
    bool broken;
    uint32_t plain_max;
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

static void compute_mac(uint8_t mac[FRAME_MAC_BYTES], const uint8_t key[FRAME_KEY_BYTES],
                        enum frame_direction direction, uint64_t sequence, const void *payload,
                        size_t len)
{
    crypto_auth_hmacsha512256_state state;
    uint8_t head[9];

    head[0] = (uint8_t)direction;
    put_be(head + 1, sequence, 8);
    crypto_auth_hmacsha512256_init(&state, key, FRAME_KEY_BYTES);
    crypto_auth_hmacsha512256_update(&state, head, sizeof(head));
    crypto_auth_hmacsha512256_update(&state, payload, len);
    crypto_auth_hmacsha512256_final(&state, mac);
    sodium_memzero(&state, sizeof(state));
}

struct frame_reader *frame_reader_create(enum frame_direction direction)
{
    struct frame_reader *reader = calloc(1, sizeof(*reader));

    if (reader == NULL)
        return NULL;
    reader->direction = direction;
    reader->plain_max = FRAME_PLAIN_MAX;
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
    memcpy(reader->key, key, FRAME_KEY_BYTES);
    reader->keyed = true;
    reader->sequence = 0;
}

void frame_reader_set_most(struct frame_reader *reader, uint32_t most)
{
    reader->plain_max = most;
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
    uint32_t most = reader->keyed ? FRAME_KEYED_MAX : reader->plain_max;
    bool later = reader->keyed || reader->plain_max != FRAME_PLAIN_MAX;

    if (reader->end - reader->start < HEADER_BYTES)
        return 0;
    *length = get_be32(reader->buffer + reader->start);
    if (*length > overhead && *length - overhead <= most)
        return 1;
    error_set(err, "a frame of %u bytes; allowed are %u to %u %s", *length, overhead + 1,
              overhead + most, later ? "on this connection" : "before authentication");
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

/* Check the MAC of the body of a frame. *body and *length become those of the payload. */
static int verify(struct frame_reader *reader, uint8_t **body, uint32_t *length, struct error *err)
{
    uint8_t mac[FRAME_MAC_BYTES];

    if (!reader->keyed)
        return 0;
    *length -= FRAME_MAC_BYTES;
    compute_mac(mac, reader->key, reader->direction, reader->sequence, *body + FRAME_MAC_BYTES,
                *length);
    if (sodium_memcmp(mac, *body, FRAME_MAC_BYTES) != 0) {
        error_set(err,
                  "frame %llu does not verify: it was changed, repeated, left out, or made with "
                  "another key",
                  (unsigned long long)reader->sequence);
        return fail(reader);
    }
    *body += FRAME_MAC_BYTES;
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
    if (verify(reader, &body, &length, err) < 0)
        return -1;
    /* Move the payload one byte to the left, over the frame's own head. The byte behind the frame
     * belongs to the next frame, and the NUL needs a place. */
    memmove(body - 1, body, length);
    body[length - 1] = '\0';
    *payload = (const char *)(body - 1);
    *len = length;
    return 1;
}

void *frame_encode(struct frame_writer *writer, const char *payload, size_t len, size_t *out_len)
{
    size_t overhead = writer->keyed ? FRAME_MAC_BYTES : 0;
    uint8_t *frame;

    if (len == 0 || len > (writer->keyed ? FRAME_KEYED_MAX : FRAME_PLAIN_MAX))
        return NULL;
    frame = malloc(HEADER_BYTES + overhead + len);
    if (frame == NULL)
        return NULL;
    put_be(frame, overhead + len, HEADER_BYTES);
    memcpy(frame + HEADER_BYTES + overhead, payload, len);
    if (writer->keyed) {
        compute_mac(frame + HEADER_BYTES, writer->key, writer->direction, writer->sequence, payload,
                    len);
        writer->sequence++;
    }
    *out_len = HEADER_BYTES + overhead + len;
    return frame;
}
