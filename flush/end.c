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

#include "common/monotonic.h"
#include "flush/rest.h"
#include "flush/said.h"
#include "flush/slot.h"
#include "flush/start.h"

#define PAUSE_MS 50 /* between two looks for a slot */

/* -1: none is free, or there is no file for it. */
static int take_slot(const struct place *place, const struct snapshot_run *run, int64_t until,
                     struct error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

    for (;;) {
        for (int i = SLOT_USER_RUNS; i < SLOT_USER_REST; i++) {
            int fd = slot_take_user(place, run, i, err);

            if (fd >= 0 || errno != EAGAIN)
                return fd;
        }
        if (monotonic_ms() >= until)
            return error_set(err, "%d flushes of uid %" PRIu32 " wait on this node: left for later",
                             SLOT_USER_REST - SLOT_USER_RUNS, run->uid);
        nanosleep(&pause, NULL);
    }
}

/* What elastic-flush says: one line for each directory, in their order. */
struct lines {
    char begin[sizeof(SAID_ERROR SAID_NOT_REMOVED)]; /* of the line that is being read */
    size_t used;
    int count;
    bool not_removed[START_RUNS_MAX]; /* says the line */
};

static void look_at_lines(struct lines *lines, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n') {
            if (lines->used < sizeof(lines->begin) - 1)
                lines->begin[lines->used++] = text[i];
            continue;
        }
        lines->begin[lines->used] = '\0';
        if (lines->count < START_RUNS_MAX)
            lines->not_removed[lines->count++] = strcmp(lines->begin,
                                                        SAID_ERROR SAID_NOT_REMOVED) == 0;
        lines->used = 0;
    }
}

/* What a pipe says is copied to our output, until it ends (true) or the time is over. */
static bool copy_lines(int output, int64_t until, struct lines *lines)
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
        look_at_lines(lines, text, (size_t)got);
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

/* Of those that the flush could not remove. */
static void remove_rest(const struct place places[PLACES_MAX], const struct place_run *runs,
                        int count, const struct lines *lines, int64_t until)
{
    struct lock_terms terms[START_RUNS_MAX];
    struct place_run left[START_RUNS_MAX];
    struct lines none = {0};
    struct error err = {""};
    int output, left_count = 0;

    for (int i = 0; i < count && i < lines->count; i++)
        if (lines->not_removed[i] && places[runs[i].place].alone) {
            terms[left_count] = (struct lock_terms){.ended = true};
            left[left_count++] = runs[i];
        }
    if (left_count == 0)
        return;
    if (rest_remove(places, left, left_count, terms, &output, &err) != 0) {
        printf("not removed: %s\n", err.text);
        return;
    }
    copy_lines(output, until, &none);
    close(output);
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
    int64_t until = monotonic_ms() + ((int64_t)limit + 1) * 1000;
    struct lines lines = {0};
    struct error err = {""};
    bool ended, stays = false;
    int output;
    pid_t guard;

    for (int i = 0; i < count; i++)
        place_uncover(&places[runs[i].place], runs[i].name);
    start.slot = take_slot(first, &runs[0].run, until - 1000, &err);
    if (start.slot < 0 || (guard = start_flush(&start, &output, &err)) < 0) {
        printf("not flushed: %s\n", err.text);
        return false;
    }
    close(start.slot);
    ended = copy_lines(output, until, &lines);
    if (ended) {
        say_how_it_ended(guard);
        remove_rest(places, runs, count, &lines, until);
    }
    close(output);
    /* In a place that root has made a directory is still there, and empty. */
    for (int i = 0; i < count; i++) {
        place_remove(&places[runs[i].place], runs[i].name);
        stays = stays || place_has(&places[runs[i].place], &runs[i].run);
    }
    return ended && stays;
}
