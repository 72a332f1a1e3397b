/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directories of a job that has ended on this node (end.h). */
#include "flush/end.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flush/slot.h"
#include "flush/start.h"

#define PAUSE_MS 50 /* between two looks for a slot */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

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
        if (now_ms() >= until)
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
        int64_t left = until - now_ms();
        ssize_t got;

        if (poll(&poll_for, 1, left > 0 ? (int)left : 0) <= 0)
            return false;
        got = read(output, text, sizeof(text));
        if (got <= 0)
            return true;
        fwrite(text, 1, (size_t)got, stdout);
    }
}

/* The guard has closed its end of the pipe as its last act. */
static void say_how_it_ended(pid_t guard)
{
    int status;

    if (waitpid(guard, &status, 0) == guard && WIFEXITED(status) &&
        WEXITSTATUS(status) == START_STOPPED)
        printf("not flushed: another process of the user has stopped elastic-flush: killed; left "
               "for later\n");
}

bool end_runs(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
              gid_t gid, int limit, int age)
{
    static const char *const flags[] = {"--remove", "--kill", NULL};
    const struct place *first = place_first(places);
    struct start start = {.flags = flags,
                          .places = places,
                          .runs = runs,
                          .count = count,
                          .gid = &gid,
                          .share = place_share(first),
                          .age = age};
    int64_t until = now_ms() + ((int64_t)limit + 1) * 1000;
    struct error err = {""};
    bool ended, stays = false;
    int output;
    pid_t guard;

    start.slot = take_slot(first, &runs[0].run, until - 1000, &err);
    if (start.slot < 0 || (guard = start_flush(&start, &output, &err)) < 0) {
        printf("not flushed: %s\n", err.text);
        return false;
    }
    close(start.slot);
    ended = copy_lines(output, until);
    if (ended)
        say_how_it_ended(guard);
    close(output);
    /* In a place that root has made a directory is still there, and empty. */
    for (int i = 0; i < count; i++) {
        place_remove(&places[runs[i].place], runs[i].name);
        stays = stays || place_has(&places[runs[i].place], &runs[i].run);
    }
    return ended && stays;
}
