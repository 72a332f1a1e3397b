/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What encryption costs: frames [SECONDS]. Frames of several sizes are made, and read again, on one
 * processor for SECONDS each (default 1). Prints a line of Markdown for each size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "lib/frame.h"

static const uint8_t key[FRAME_KEY_BYTES] = {1, 2, 3};

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Frames a second, made and read. */
static double measure(size_t size, double seconds)
{
    struct frame_writer writer = {.direction = FRAME_TO_LEADER};
    struct frame_reader *reader = frame_reader_create(FRAME_TO_LEADER);
    char *payload = calloc(1, size);
    double start = now(), spent = 0;
    long count = 0;

    if (payload == NULL || reader == NULL)
        abort();
    frame_writer_set_key(&writer, key);
    frame_reader_set_key(reader, key);
    for (; spent < seconds; spent = now() - start) {
        for (int i = 0; i < 16; i++, count++) {
            size_t len = 0, taken = 0;
            void *frame = frame_encode(&writer, payload, size, &len);
            const char *got;

            if (frame == NULL || frame_reader_feed(reader, frame, len, NULL) != 0 ||
                frame_reader_next(reader, &got, &taken, NULL) != 1 || taken != size)
                abort();
            free(frame);
        }
    }
    frame_reader_destroy(reader);
    free(payload);
    return (double)count / spent;
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {100, 1000, 10000, 100000, 1000000};
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;

    if (sodium_init() < 0)
        return 1;
    printf("| bytes | frames/s | MB/s |\n|---|---|---|\n");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double rate = measure(sizes[i], seconds);

        printf("| %zu | %.0f | %.0f |\n", sizes[i], rate, rate * (double)sizes[i] / 1e6);
    }
    return 0;
}
