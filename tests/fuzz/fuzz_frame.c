/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: frames, whole and in pieces: both readers see the same. The first byte is the
 * size of the pieces, its highest bit chooses keyed frames, made of the rest by a writer and
 * changed at one place. */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>

#include "lib/frame.h"

/* A digest of what a reader has delivered. */
struct seen {
    uint64_t sum;
    int frames;
    int result;
};

static const uint8_t key[FRAME_KEY_BYTES] = {1, 2, 3};

static int take_all(struct frame_reader *reader, struct seen *seen)
{
    struct error err = {""};
    const char *payload;
    size_t len;
    int got;

    while ((got = frame_reader_next(reader, &payload, &len, &err)) > 0) {
        MUST(len > 0 && payload[len] == '\0');
        for (size_t i = 0; i < len; i++)
            seen->sum = seen->sum * 31 + (uint8_t)payload[i];
        seen->frames++;
    }
    if (got < 0)
        fuzz_check_refusal(&err);
    return got;
}

static void feed(const uint8_t *data, size_t size, size_t piece, bool keyed, struct seen *seen)
{
    struct frame_reader *reader = frame_reader_create(FRAME_TO_LEADER);
    struct error err = {""};

    MUST(reader != NULL);
    if (keyed)
        frame_reader_set_key(reader, key);
    for (size_t at = 0; at < size && seen->result == 0; at += piece) {
        size_t len = size - at < piece ? size - at : piece;

        seen->result = frame_reader_feed(reader, data + at, len, &err);
        if (seen->result == 0)
            seen->result = take_all(reader, seen);
    }
    if (seen->result < 0) /* for ever */
        MUST(frame_reader_feed(reader, "x", 1, &err) < 0 && take_all(reader, seen) < 0);
    frame_reader_destroy(reader);
}

static void compare(const uint8_t *data, size_t size, size_t piece, bool keyed)
{
    struct seen whole = {0}, pieces = {0};

    feed(data, size, size > 0 ? size : 1, keyed, &whole);
    feed(data, size, piece, keyed, &pieces);
    MUST(whole.sum == pieces.sum && whole.frames == pieces.frames);
    MUST(whole.result == pieces.result);
}

/* What a writer has made is read; with one byte changed it is not. */
static void check_keyed(const uint8_t *data, size_t size, size_t piece)
{
    struct frame_writer writer = {.direction = FRAME_TO_LEADER};
    struct seen seen = {0}, changed = {0};
    size_t len = 0;
    uint8_t *frame;

    frame_writer_set_key(&writer, key);
    frame = frame_encode(&writer, (const char *)data, size, &len);
    if (size == 0) {
        MUST(frame == NULL);
        return;
    }
    MUST(frame != NULL);
    feed(frame, len, piece, true, &seen);
    MUST(seen.frames == 1 && seen.result == 0);
    frame[4 + piece % (len - 4)] ^= 1;
    feed(frame, len, piece, true, &changed);
    MUST(changed.frames == 0 && changed.result < 0);
    free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t piece;

    if (size == 0)
        return 0;
    piece = (size_t)(data[0] & 0x7f) + 1;
    if (data[0] & 0x80)
        check_keyed(data + 1, size - 1, piece);
    compare(data + 1, size - 1, piece, (data[0] & 0x80) != 0);
    return 0;
}
