/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directories of a job that has ended on this node (end.h). */
#include "flush/end.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "flush/slot.h"
#include "flush/start.h"

#define PAUSE_MS 50 /* between two looks for a slot */

/* -1: none is free, or there is no file for it. */
static int take_slot(const struct place *place, const struct snapshot_run *run, int64_t until,
                     struct error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

    for (;;) {
        for (int i = SLOT_USER_RUNS; i < SLOT_USER_MAX; i++) {
            int fd = slot_take_user(place, run, i, err);

            if (fd >= 0 || errno != EAGAIN)
                return fd;
        }
        if (monotonic_ms() >= until)
            return error_set(err, "%d flushes of uid %" PRIu32 " wait on this node: left for later",
                             SLOT_USER_MAX - SLOT_USER_RUNS, run->uid);
        nanosleep(&pause, NULL);
    }
}

/* What a pipe says is copied to our output, until it ends (true) or the time is over. */
static bool copy_lines(int output, int64_t until)
{
    char text[4096];
    struct pollfd poll_for = {.fd = output, .events = POLLIN};

    for (;;) {
        int64_t left = until - monotonic_ms();
        ssize_t got;

        if (poll(&poll_for, 1, left > 0 ? (int)left : 0) <= 0)
            return false;
        got = read(output, text, sizeof(text));
        if (got <= 0)
            return true;
        fwrite(text, 1, (size_t)got, stdout);
    }
}

bool end_runs(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
              gid_t gid, int limit, int age)
{
    const struct place *first = place_first(places);
    struct start start = {.prints = true,
                          .places = places,
                          .runs = runs,
                          .count = count,
                          .gid = &gid,
                          .share = place_share(first),
                          .age = age};
    int64_t until = monotonic_ms() + ((int64_t)limit + 1) * 1000;
    struct error err = {""};
    bool ended, stays = false;
    int output;

    start.slot = take_slot(first, &runs[0].run, until - 1000, &err);
    if (start.slot < 0 || start_flush(&start, &output, &err) < 0) {
        printf("not flushed: %s\n", err.text);
        return true;
    }
    close(start.slot);
    ended = copy_lines(output, until);
    close(output);
    for (int i = 0; i < count; i++)
        stays = stays || place_has(&places[runs[i].place], &runs[i].run);
    return ended && stays;
}
