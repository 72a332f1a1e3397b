/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/frame: the format byte by byte, and every way in which a frame can arrive torn, changed,
 * repeated or in another order. */
#include "lib/frame.h"

#include <sodium.h>

#include "tests/unit/support.h"

static const uint8_t key[FRAME_KEY_BYTES] = "0123456789abcdef0123456789abcde";

/* A growing run of bytes on the wire. */
struct wire {
    uint8_t *data;
    size_t len;
};

static void wire_add(struct wire *wire, const void *data, size_t len)
{
    wire->data = realloc(wire->data, wire->len + len + 1);
    memcpy(wire->data + wire->len, data, len);
    wire->len += len;
}

static void wire_clear(struct wire *wire)
{
    free(wire->data);
    *wire = (struct wire){0};
}

static struct frame_writer writer_of(enum frame_direction direction, bool keyed)
{
    struct frame_writer writer = {.direction = direction};

    if (keyed)
        frame_writer_set_key(&writer, key);
    return writer;
}

static struct frame_reader *reader_of(enum frame_direction direction, bool keyed)
{
    struct frame_reader *reader = frame_reader_create(direction);

    assert_non_null(reader);
    if (keyed)
        frame_reader_set_key(reader, key);
    return reader;
}

static void encode(struct wire *wire, struct frame_writer *writer, const char *payload, size_t len)
{
    size_t frame_len = 0;
    void *frame = frame_encode(writer, payload, len, &frame_len);

    assert_non_null(frame);
    wire_add(wire, frame, frame_len);
    free(frame);
}

static void assert_next(struct frame_reader *reader, const char *expected, size_t expected_len)
{
    const char *payload = NULL;
    size_t len = 0;
    struct error err = {""};

    if (frame_reader_next(reader, &payload, &len, &err) != 1)
        fail_msg("no frame: %s", err.text);
    assert_int_equal(len, expected_len);
    assert_memory_equal(payload, expected, len);
    assert_int_equal(payload[len], '\0');
}

static void assert_nothing(struct frame_reader *reader)
{
    const char *payload = "untouched";
    size_t len = 7;

    assert_int_equal(frame_reader_next(reader, &payload, &len, NULL), 0);
    assert_string_equal(payload, "untouched");
    assert_int_equal(len, 7);
}

/* Refused now and for ever. */
static void assert_broken(struct frame_reader *reader, const char *message)
{
    const char *payload;
    size_t len;
    struct error err = {""};

    assert_int_equal(frame_reader_next(reader, &payload, &len, &err), -1);
    if (message != NULL)
        assert_string_equal(err.text, message);
    assert_one_line(err.text);
    assert_int_equal(frame_reader_next(reader, &payload, &len, &err), -1);
    assert_int_equal(frame_reader_feed(reader, "x", 1, &err), -1);
    assert_int_equal(frame_reader_feed(reader, "", 0, NULL), -1);
}

static void test_plain_format(void **state)
{
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, false);
    struct wire wire = {0};

    encode(&wire, &writer, "{\"v\":1}", 7);
    assert_int_equal(wire.len, 11);
    assert_memory_equal(wire.data, "\0\0\0\7{\"v\":1}", 11);
    assert_int_equal(writer.sequence, 0);
    wire_clear(&wire);
}

/* The header's description, followed by hand: the key of the direction, the nonce, RFC 8439. */
static void test_keyed_format(void **state)
{
    struct frame_writer writer = writer_of(FRAME_FROM_LEADER, true);
    const uint8_t nonce[12] = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t sealed[3 + FRAME_MAC_BYTES], direction_key[FRAME_KEY_BYTES];
    unsigned long long len;
    struct wire wire = {0};

    writer.sequence = 0x0102030405060708;
    encode(&wire, &writer, "abc", 3);
    assert_int_equal(writer.sequence, 0x0102030405060709);
    assert_int_equal(wire.len, 4 + 3 + 16);
    assert_memory_equal(wire.data, "\0\0\0\x13", 4);
    crypto_kdf_derive_from_key(direction_key, sizeof(direction_key), 1, "elFrames", key);
    crypto_aead_chacha20poly1305_ietf_encrypt(sealed, &len, (const uint8_t *)"abc", 3, NULL, 0,
                                              NULL, nonce, direction_key);
    assert_int_equal(len, sizeof(sealed));
    assert_memory_equal(wire.data + 4, sealed, sizeof(sealed));
    wire_clear(&wire);
}

/* Not even the same text twice looks the same. */
static void test_nothing_is_seen_of_the_payload(void **state)
{
    static const char text[] = "{\"env\":[\"TOKEN=a-secret-of-the-user\"]}";
    struct frame_writer writer = writer_of(FRAME_FROM_LEADER, true);
    struct wire first = {0}, second = {0};

    encode(&first, &writer, text, sizeof(text) - 1);
    encode(&second, &writer, text, sizeof(text) - 1);
    for (size_t at = 4; at + 4 <= first.len; at++) {
        assert_null(memmem(text, sizeof(text), first.data + at, 4));
        assert_memory_not_equal(first.data + at, second.data + at, 4);
    }
    wire_clear(&first);
    wire_clear(&second);
}

static const char *const messages[] = {"{}", "{\"t\":\"beat\",\"gen\":3}", "x",
                                       "{\"t\":\"join\",\"node\":\"n1\"}"};

static void encode_all(struct wire *wire, bool keyed)
{
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, keyed);

    for (size_t i = 0; i < COUNT(messages); i++)
        encode(wire, &writer, messages[i], strlen(messages[i]));
}

/* Each prefix, then the rest: frames come exactly when their last byte is there. */
static void test_split_at_each_byte(void **state)
{
    for (int keyed = 0; keyed < 2; keyed++) {
        struct wire wire = {0};

        encode_all(&wire, keyed);
        for (size_t cut = 0; cut <= wire.len; cut++) {
            struct frame_reader *reader = reader_of(FRAME_TO_LEADER, keyed);
            size_t taken = 0, end = 0;

            assert_int_equal(frame_reader_feed(reader, wire.data, cut, NULL), 0);
            for (; taken < COUNT(messages); taken++) {
                end += 4 + (keyed ? FRAME_MAC_BYTES : 0) + strlen(messages[taken]);
                if (end > cut)
                    break;
                assert_next(reader, messages[taken], strlen(messages[taken]));
            }
            assert_nothing(reader);
            assert_int_equal(frame_reader_feed(reader, wire.data + cut, wire.len - cut, NULL), 0);
            for (; taken < COUNT(messages); taken++)
                assert_next(reader, messages[taken], strlen(messages[taken]));
            assert_nothing(reader);
            frame_reader_destroy(reader);
        }
        wire_clear(&wire);
    }
}

static void test_one_byte_at_a_time(void **state)
{
    struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
    struct wire wire = {0};
    size_t taken = 0, len;
    const char *payload;

    encode_all(&wire, true);
    for (size_t i = 0; i < wire.len; i++) {
        assert_int_equal(frame_reader_feed(reader, wire.data + i, 1, NULL), 0);
        while (frame_reader_next(reader, &payload, &len, NULL) == 1) {
            assert_string_equal(payload, messages[taken]);
            taken++;
        }
    }
    assert_int_equal(taken, COUNT(messages));
    frame_reader_destroy(reader);
    wire_clear(&wire);
}

/* The last plain frame and the first keyed ones in one piece, as `accept` and `welcome` may
 * come. */
static void test_key_between_two_frames(void **state)
{
    struct frame_writer writer = writer_of(FRAME_FROM_LEADER, false);
    struct frame_reader *reader = reader_of(FRAME_FROM_LEADER, false);
    struct wire wire = {0};
    char *large = calloc(1, 3 * FRAME_PLAIN_MAX);

    memset(large, 'w', 3 * FRAME_PLAIN_MAX);
    encode(&wire, &writer, "accept", 6);
    frame_writer_set_key(&writer, key);
    encode(&wire, &writer, large, 3 * FRAME_PLAIN_MAX);
    encode(&wire, &writer, "second", 6);
    assert_int_equal(frame_reader_feed(reader, wire.data, wire.len, NULL), 0);
    assert_next(reader, "accept", 6);
    frame_reader_set_key(reader, key);
    assert_next(reader, large, 3 * FRAME_PLAIN_MAX);
    assert_next(reader, "second", 6);
    assert_nothing(reader);
    frame_reader_destroy(reader);
    wire_clear(&wire);
    free(large);
}

static void feed_header(struct frame_reader *reader, uint32_t length, int expected,
                        const char *message)
{
    uint8_t header[4] = {(uint8_t)(length >> 24), (uint8_t)(length >> 16), (uint8_t)(length >> 8),
                         (uint8_t)length};
    struct error err = {""};

    assert_int_equal(frame_reader_feed(reader, header, sizeof(header), &err), expected);
    if (message != NULL)
        assert_string_equal(err.text, message);
}

static void test_lengths(void **state)
{
    static const struct {
        bool keyed;
        uint32_t length;
        const char *message; /* NULL: allowed */
    } cases[] = {
        {false, 0, "a frame of 0 bytes; allowed are 1 to 8192 before authentication"},
        {false, 1, NULL},
        {false, FRAME_PLAIN_MAX, NULL},
        {false, FRAME_PLAIN_MAX + 1,
         "a frame of 8193 bytes; allowed are 1 to 8192 before authentication"},
        {false, 0x47455420,
         "a frame of 1195725856 bytes; allowed are 1 to 8192 before authentication"}, /* "GET " */
        {false, UINT32_MAX,
         "a frame of 4294967295 bytes; allowed are 1 to 8192 before authentication"},
        {true, 0, "a frame of 0 bytes; allowed are 17 to 4194320 on this connection"},
        {true, 15, "a frame of 15 bytes; allowed are 17 to 4194320 on this connection"},
        {true, 16, "a frame of 16 bytes; allowed are 17 to 4194320 on this connection"},
        {true, 17, NULL},
        {true, FRAME_KEYED_MAX + 16, NULL},
        {true, FRAME_KEYED_MAX + 17,
         "a frame of 4194321 bytes; allowed are 17 to 4194320 on this connection"},
        {true, UINT32_MAX,
         "a frame of 4294967295 bytes; allowed are 17 to 4194320 on this connection"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct frame_reader *reader = reader_of(FRAME_TO_LEADER, cases[i].keyed);

        feed_header(reader, cases[i].length, cases[i].message != NULL ? -1 : 0, cases[i].message);
        if (cases[i].message != NULL)
            assert_broken(reader, "this connection has had a bad frame");
        else
            assert_nothing(reader);
        frame_reader_destroy(reader);
    }
}

/* A bad length behind a good frame: the good one is delivered, then it ends. */
static void test_bad_length_behind_a_good_frame(void **state)
{
    struct frame_reader *reader = reader_of(FRAME_TO_LEADER, false);

    assert_int_equal(frame_reader_feed(reader, "\0\0\0\2ok\xff\xff\xff\xff", 10, NULL), 0);
    assert_next(reader, "ok", 2);
    assert_broken(reader,
                  "a frame of 4294967295 bytes; allowed are 1 to 8192 before authentication");
    frame_reader_destroy(reader);
}

static void test_largest_frames(void **state)
{
    char *large = malloc(FRAME_KEYED_MAX + 1);

    memset(large, 'z', FRAME_KEYED_MAX + 1);
    for (int keyed = 0; keyed < 2; keyed++) {
        struct frame_writer writer = writer_of(FRAME_TO_LEADER, keyed);
        struct frame_reader *reader = reader_of(FRAME_TO_LEADER, keyed);
        size_t most = keyed ? FRAME_KEYED_MAX : FRAME_PLAIN_MAX, len = 0;
        struct wire wire = {0};

        assert_null(frame_encode(&writer, large, most + 1, &len));
        assert_null(frame_encode(&writer, large, 0, &len));
        assert_int_equal(writer.sequence, 0);
        /* Twice: after the first the buffer is given back. */
        for (int i = 0; i < 2; i++)
            encode(&wire, &writer, large, most);
        for (size_t at = 0; at < wire.len; at += 65536) {
            size_t piece = wire.len - at < 65536 ? wire.len - at : 65536;
            const char *payload;

            assert_int_equal(frame_reader_feed(reader, wire.data + at, piece, NULL), 0);
            if (at + piece == wire.len)
                break;
            while (frame_reader_next(reader, &payload, &len, NULL) == 1)
                assert_int_equal(len, most);
        }
        if (!keyed)
            assert_next(reader, large, most);
        assert_next(reader, large, most);
        assert_nothing(reader);
        frame_reader_destroy(reader);
        wire_clear(&wire);
    }
    free(large);
}

/* Of connections on which nobody has to prove who he is. */
static void test_most_of_plain_frames(void **state)
{
    static const uint8_t good[] = {0, 0x30, 0, 0}, bad[] = {0, 0x30, 0, 1};
    struct frame_reader *reader = reader_of(FRAME_TO_LEADER, false);
    struct error err = {""};

    (void)state;
    frame_reader_set_most(reader, 0x300000);
    assert_int_equal(frame_reader_feed(reader, good, sizeof(good), &err), 0);
    frame_reader_destroy(reader);
    reader = reader_of(FRAME_TO_LEADER, false);
    frame_reader_set_most(reader, 0x300000);
    assert_int_equal(frame_reader_feed(reader, bad, sizeof(bad), &err), -1);
    assert_non_null(strstr(err.text, "1 to 3145728 on this connection"));
    frame_reader_destroy(reader);
}

/* A guest's frame is refused by its length alone: nothing of it is kept, decrypted or parsed. */
static void test_most_of_a_guest(void **state)
{
    static const uint8_t good[] = {0, 2, 0, 16}, bad[] = {0, 2, 0, 17};
    struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
    struct error err = {""};

    (void)state;
    frame_reader_set_most(reader, FRAME_GUEST_MAX);
    assert_int_equal(frame_reader_feed(reader, good, sizeof(good), &err), 0);
    frame_reader_destroy(reader);
    reader = reader_of(FRAME_TO_LEADER, true);
    frame_reader_set_most(reader, FRAME_GUEST_MAX);
    assert_int_equal(frame_reader_feed(reader, bad, sizeof(bad), &err), -1);
    assert_string_equal(err.text,
                        "a frame of 131089 bytes; allowed are 17 to 131088 on this connection");
    frame_reader_destroy(reader);
}

static void test_most_of_a_plain_writer(void **state)
{
    struct frame_writer writer = {.direction = FRAME_TO_LEADER, .plain_max = FRAME_PLAIN_MAX + 1};
    char *large = calloc(1, FRAME_PLAIN_MAX + 2);
    struct wire wire = {0};
    size_t len;

    memset(large, 'z', FRAME_PLAIN_MAX + 2);
    encode(&wire, &writer, large, FRAME_PLAIN_MAX + 1);
    assert_null(frame_encode(&writer, large, FRAME_PLAIN_MAX + 2, &len));
    wire_clear(&wire);
    free(large);
}

static void test_each_flipped_bit(void **state)
{
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, true);
    struct wire wire = {0};

    encode(&wire, &writer, "{\"t\":\"x\"}", 9);
    /* Those of the length have tests of their own: here the frame stays whole. */
    for (size_t bit = 8 * 4; bit < 8 * wire.len; bit++) {
        struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);

        wire.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(frame_reader_feed(reader, wire.data, wire.len, NULL), 0);
        assert_broken(reader, "frame 0 does not verify: it was changed, repeated, left out, or "
                              "made with another key");
        wire.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        frame_reader_destroy(reader);
    }
    wire_clear(&wire);
}

/* A shorter length makes another frame of the same bytes, a longer one waits and then fails. */
static void test_changed_length(void **state)
{
    for (int change = -8; change <= 8; change++) {
        struct frame_writer writer = writer_of(FRAME_TO_LEADER, true);
        struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
        struct wire wire = {0};

        encode(&wire, &writer, "{\"t\":\"x\"}", 9);
        encode(&wire, &writer, "{\"t\":\"y\"}", 9);
        wire.data[3] = (uint8_t)(wire.data[3] + change);
        assert_int_equal(frame_reader_feed(reader, wire.data, wire.len, NULL), 0);
        if (change == 0)
            assert_next(reader, "{\"t\":\"x\"}", 9);
        else
            assert_broken(reader, NULL);
        frame_reader_destroy(reader);
        wire_clear(&wire);
    }
}

/* Frames 0, 1, 2 in the order given: the first `good` are taken, then it ends. */
static void try_order(const int *order, size_t count, size_t good)
{
    static const char *const texts[] = {"zero", "one.", "two."};
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, true);
    struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
    struct wire frames[3] = {{0}};

    for (size_t i = 0; i < 3; i++)
        encode(&frames[i], &writer, texts[i], 4);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(
            frame_reader_feed(reader, frames[order[i]].data, frames[order[i]].len, NULL), 0);
        if (i >= good) {
            assert_broken(reader, NULL);
            break;
        }
        assert_next(reader, texts[order[i]], 4);
    }
    frame_reader_destroy(reader);
    for (size_t i = 0; i < 3; i++)
        wire_clear(&frames[i]);
}

static void test_replayed_reordered_left_out(void **state)
{
    try_order((int[]){0, 1, 2}, 3, 3);
    try_order((int[]){0, 0}, 2, 1);
    try_order((int[]){0, 1, 0}, 3, 2);
    try_order((int[]){0, 1, 1}, 3, 2);
    try_order((int[]){0, 2}, 2, 1);
    try_order((int[]){1, 0}, 2, 0);
    try_order((int[]){2}, 1, 0);
}

static void test_another_direction_or_key(void **state)
{
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, true);
    struct frame_reader *reflected = reader_of(FRAME_FROM_LEADER, true);
    struct frame_reader *stranger = reader_of(FRAME_TO_LEADER, false);
    uint8_t other[FRAME_KEY_BYTES];
    struct wire wire = {0};

    encode(&wire, &writer, "{}", 2);
    assert_int_equal(frame_reader_feed(reflected, wire.data, wire.len, NULL), 0);
    assert_broken(reflected, NULL);

    memcpy(other, key, sizeof(other));
    other[31] ^= 1;
    frame_reader_set_key(stranger, other);
    assert_int_equal(frame_reader_feed(stranger, wire.data, wire.len, NULL), 0);
    assert_broken(stranger, NULL);
    frame_reader_destroy(reflected);
    frame_reader_destroy(stranger);
    wire_clear(&wire);
}

/* Cut off at each byte, and another frame behind it: as if bytes had been lost. */
static void test_truncated(void **state)
{
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, true);
    struct wire first = {0}, second = {0};

    encode(&first, &writer, "{\"t\":\"x\"}", 9);
    encode(&second, &writer, "{\"t\":\"y\"}", 9);
    for (size_t len = 4; len < first.len; len++) {
        struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
        struct wire wire = {0};

        wire_add(&wire, first.data, len);
        wire_add(&wire, second.data, second.len);
        assert_int_equal(frame_reader_feed(reader, wire.data, wire.len, NULL), 0);
        assert_broken(reader, NULL);
        /* Not even if the length has been made right. */
        frame_reader_destroy(reader);
        reader = reader_of(FRAME_TO_LEADER, true);
        wire.data[3] = (uint8_t)(len - 4);
        if (frame_reader_feed(reader, wire.data, wire.len, NULL) == 0)
            assert_broken(reader, NULL);
        frame_reader_destroy(reader);
        wire_clear(&wire);
    }
    wire_clear(&first);
    wire_clear(&second);
}

/* What comes without a MAC must not be taken once there is a key. */
static void test_plain_frame_with_a_key_set(void **state)
{
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, false);
    struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
    const char *text = "{\"t\":\"resize\",\"nodes\":100,\"blank\":\"          \"}";
    struct wire wire = {0};

    encode(&wire, &writer, text, strlen(text));
    assert_int_equal(frame_reader_feed(reader, wire.data, wire.len, NULL), 0);
    assert_broken(reader, NULL);
    frame_reader_destroy(reader);
    wire_clear(&wire);
}

static void test_payload_with_nul_and_each_byte(void **state)
{
    struct frame_writer writer = writer_of(FRAME_TO_LEADER, true);
    struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
    struct wire wire = {0};
    char payload[256];

    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (char)i;
    encode(&wire, &writer, payload, sizeof(payload));
    assert_int_equal(frame_reader_feed(reader, wire.data, wire.len, NULL), 0);
    assert_next(reader, payload, sizeof(payload));
    frame_reader_destroy(reader);
    wire_clear(&wire);
}

/* Random payloads in random pieces, several frames at once: all arrive, in order. */
static void test_random_pieces(void **state)
{
    uint64_t random = 7;

    for (int round = 0; round < 200; round++) {
        bool keyed = round % 2;
        struct frame_writer writer = writer_of(FRAME_FROM_LEADER, keyed);
        struct frame_reader *reader = reader_of(FRAME_FROM_LEADER, keyed);
        struct wire wire = {0};
        size_t lengths[20], taken = 0, len;
        const char *payload;
        char text[8000];

        for (size_t i = 0; i < COUNT(lengths); i++) {
            lengths[i] = random_below(&random, random_below(&random, 4) == 0 ? sizeof(text) : 50) +
                         1;
            memset(text, (int)('a' + i), sizeof(text));
            encode(&wire, &writer, text, lengths[i]);
        }
        for (size_t at = 0, piece; at < wire.len; at += piece) {
            piece = random_below(&random, random_below(&random, 3) == 0 ? 20000 : 30) + 1;
            if (piece > wire.len - at)
                piece = wire.len - at;
            assert_int_equal(frame_reader_feed(reader, wire.data + at, piece, NULL), 0);
            while (frame_reader_next(reader, &payload, &len, NULL) == 1) {
                assert_int_equal(len, lengths[taken]);
                for (size_t i = 0; i < len; i++)
                    assert_int_equal(payload[i], 'a' + (int)taken);
                taken++;
            }
        }
        assert_int_equal(taken, COUNT(lengths));
        frame_reader_destroy(reader);
        wire_clear(&wire);
    }
}

/* Random changes to a stream: whatever is delivered is a true prefix of what was sent. */
static void test_random_damage(void **state)
{
    uint64_t random = 11;
    int whole = 0;

    for (int round = 0; round < 20000; round++) {
        struct frame_reader *reader = reader_of(FRAME_TO_LEADER, true);
        struct wire wire = {0};
        const char *payload;
        size_t taken = 0, len;
        int rc;

        encode_all(&wire, true);
        for (uint32_t n = random_below(&random, 3); n > 0; n--) {
            size_t at = random_below(&random, (uint32_t)wire.len);
            size_t from = random_below(&random, (uint32_t)wire.len);

            if (random_below(&random, 2) == 0)
                wire.data[at] = (uint8_t)random_next(&random);
            else
                memmove(wire.data + at, wire.data + from, wire.len - (at > from ? at : from));
        }
        rc = frame_reader_feed(reader, wire.data, wire.len, NULL);
        while (rc == 0 && (rc = frame_reader_next(reader, &payload, &len, NULL)) == 1) {
            assert_true(taken < COUNT(messages));
            assert_int_equal(len, strlen(messages[taken]));
            assert_memory_equal(payload, messages[taken], len);
            taken++;
            rc = 0;
        }
        whole += taken == COUNT(messages);
        frame_reader_destroy(reader);
        wire_clear(&wire);
    }
    /* A third has no change at all. */
    assert_in_range(whole, 6000, 9000);
}

/* Garbage before authentication: no crash, and no more than one small frame kept. */
static void test_random_garbage(void **state)
{
    uint64_t random = 13;

    for (int round = 0; round < 5000; round++) {
        struct frame_reader *reader = reader_of(FRAME_TO_LEADER, round % 2);
        uint8_t bytes[300];
        const char *payload;
        size_t len;
        int rc = 0;

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = random_below(&random, 3) == 0 ? (uint8_t)random_next(&random) : 0;
        for (size_t at = 0; at < sizeof(bytes) && rc == 0; at += 50) {
            rc = frame_reader_feed(reader, bytes + at, 50, NULL);
            while (rc == 0 && (rc = frame_reader_next(reader, &payload, &len, NULL)) == 1) {
                assert_int_equal(round % 2, 0);
                assert_true(len > 0 && len <= FRAME_PLAIN_MAX);
                rc = 0;
            }
        }
        frame_reader_destroy(reader);
    }
}

static void test_destroy_accepts_null(void **state)
{
    frame_reader_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_format),
        cmocka_unit_test(test_keyed_format),
        cmocka_unit_test(test_nothing_is_seen_of_the_payload),
        cmocka_unit_test(test_split_at_each_byte),
        cmocka_unit_test(test_one_byte_at_a_time),
        cmocka_unit_test(test_key_between_two_frames),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_bad_length_behind_a_good_frame),
        cmocka_unit_test(test_largest_frames),
        cmocka_unit_test(test_most_of_plain_frames),
        cmocka_unit_test(test_most_of_a_guest),
        cmocka_unit_test(test_most_of_a_plain_writer),
        cmocka_unit_test(test_each_flipped_bit),
        cmocka_unit_test(test_changed_length),
        cmocka_unit_test(test_replayed_reordered_left_out),
        cmocka_unit_test(test_another_direction_or_key),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_plain_frame_with_a_key_set),
        cmocka_unit_test(test_payload_with_nul_and_each_byte),
        cmocka_unit_test(test_random_pieces),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_random_garbage),
        cmocka_unit_test(test_destroy_accepts_null),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
