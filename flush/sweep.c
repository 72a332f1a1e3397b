/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directories that jobs which have ended have left on this node (sweep.h). */
#include "flush/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/stop.h"
#include "flush/rest.h"
#include "flush/said.h"
#include "flush/slot.h"
#include "flush/start.h"

#define RUNS_MAX     300 /* directories of one sweep */
#define RUNS_OF_USER START_RUNS_MAX
#define RUNS_KEPT    20  /* of a user, that cannot be saved */
#define USERS_MAX    4   /* whose directories are flushed at the same time */
#define USER_LIMIT   10  /* seconds, after which another user is begun */
#define LIMIT        300 /* seconds for a sweep */
#define TEXT_MAX     65536

/* The directories of one user, which one process flushes. */
struct user {
    const struct place_run *runs;
    int count;
    int output; /* -1: not begun, or over */
    time_t began;
    char *text;
    size_t used;
};

struct sweep {
    const struct place *places;
    int64_t share;
    int age;
    struct user users[RUNS_MAX];
    int count;
};

/* Without the directories of that job. */
static int without(struct place_run *runs, int count, const struct snapshot_run *job)
{
    int left = 0;

    for (int i = 0; i < count; i++)
        if (runs[i].run.uid != job->uid || runs[i].run.job != job->job)
            runs[left++] = runs[i];
    return left;
}

/* The process holds the user's slot until it ends: where one hangs, no other is begun. */
static void begin(struct sweep *sweep, struct user *user)
{
    static const char *const flags[] = {"--sweep", NULL};
    struct start start = {.flags = flags,
                          .places = sweep->places,
                          .runs = user->runs,
                          .count = user->count,
                          .share = sweep->share,
                          .keep_runs = RUNS_KEPT,
                          .age = sweep->age};

    for (int i = 0; i < user->count; i++)
        place_uncover(&sweep->places[user->runs[i].place], user->runs[i].name);
    start.slot = slot_take_user(place_first(sweep->places), &user->runs->run, SLOT_USER_SWEEP,
                                NULL);
    if (start.slot < 0)
        return;
    user->text = malloc(TEXT_MAX);
    user->began = monotonic_s();
    if (user->text == NULL || start_flush(&start, &user->output, NULL) < 0)
        user->output = -1;
    close(start.slot);
}

static bool says(const char *line, const char *text)
{
    return strncmp(line, text, strlen(text)) == 0;
}

/* One line for each directory, in their order. Empty directories stay where root has made them. */
static void end(struct sweep *sweep, struct user *user)
{
    struct place_run left[RUNS_OF_USER];
    char *rest = user->text;
    int count = 0;

    close(user->output);
    user->output = -1;
    rest[user->used] = '\0';
    for (int i = 0; i < user->count; i++) {
        const char *line = rest;
        char *newline = strchr(rest, '\n');

        if (newline == NULL)
            break;
        *newline = '\0';
        rest = newline + 1;
        if (says(line, SAID_ERROR SAID_NOT_REMOVED))
            left[count++] = user->runs[i];
        else if (strcmp(line, SAID_IN_USE) != 0)
            place_remove(&sweep->places[user->runs[i].place], user->runs[i].name);
    }
    if (count > 0)
        rest_remove(sweep->places, left, count, NULL, NULL);
    free(user->text);
}

static void read_output(struct sweep *sweep, struct user *user)
{
    ssize_t got = read(user->output, user->text + user->used, TEXT_MAX - 1 - user->used);

    if (got > 0)
        user->used += (size_t)got;
    else
        end(sweep, user);
}

/* Wait a second, or until some process says something. Returns how many are waited for, but for
 * those that take so long that another user may be begun; *all counts these as well. */
static int wait_for_users(struct sweep *sweep, int *all)
{
    struct pollfd polls[RUNS_MAX];
    struct user *of[RUNS_MAX];
    nfds_t count = 0;
    int busy = 0;

    for (int i = 0; i < sweep->count; i++)
        if (sweep->users[i].output >= 0) {
            of[count] = &sweep->users[i];
            polls[count++] = (struct pollfd){.fd = sweep->users[i].output, .events = POLLIN};
        }
    if (count > 0 && poll(polls, count, 1000) > 0)
        for (nfds_t i = 0; i < count; i++)
            if (polls[i].revents != 0)
                read_output(sweep, of[i]);
    *all = 0;
    for (nfds_t i = 0; i < count; i++)
        if (of[i]->output >= 0) {
            busy += monotonic_s() - of[i]->began < USER_LIMIT;
            (*all)++;
        }
    return busy;
}

static void flush_all(struct sweep *sweep)
{
    time_t until = monotonic_s() + LIMIT;
    int busy = 0, all = 0;

    for (int i = 0; i < sweep->count && monotonic_s() < until; i++) {
        while (busy >= USERS_MAX && monotonic_s() < until)
            busy = wait_for_users(sweep, &all);
        begin(sweep, &sweep->users[i]);
        busy += sweep->users[i].output >= 0;
        all += sweep->users[i].output >= 0;
    }
    while (busy > 0 && monotonic_s() < until)
        busy = wait_for_users(sweep, &all);
}

static void sweep_node(const struct place places[PLACES_MAX], const struct snapshot_run *own,
                       int age)
{
    struct place_run *runs = calloc(RUNS_MAX, sizeof(*runs));
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    int count = 0;

    if (runs == NULL || sweep == NULL)
        _exit(1);
    for (int i = 0; i < PLACES_MAX; i++)
        count = place_list(&places[i], i, own->node, RUNS_OF_USER, runs, count, RUNS_MAX);
    count = without(runs, count, own);
    qsort(runs, (size_t)count, sizeof(*runs), place_newest_first);
    for (int i = 0; i < count; i++) {
        if (i == 0 || runs[i].run.uid != runs[i - 1].run.uid)
            sweep->users[sweep->count++] = (struct user){.runs = &runs[i], .output = -1};
        sweep->users[sweep->count - 1].count++;
    }
    sweep->places = places;
    sweep->share = place_share(place_first(places));
    sweep->age = age;
    flush_all(sweep);
    free(sweep);
    free(runs);
}

/* Whoever finds somebody waiting need not wait: that one begins later, and finds the same. */
static void take_turn(const struct place places[PLACES_MAX], const struct snapshot_run *own,
                      int age)
{
    const struct place *first = place_first(places);
    int next = slot_take(first, own->node, SLOT_NEXT, NULL), turn;

    if (next < 0)
        return;
    stop_limit(2 * LIMIT);
    turn = slot_wait(first, own->node, SLOT_SWEEP, NULL);
    close(next);
    if (turn >= 0)
        sweep_node(places, own, age);
}

/* slurmd kills the process group of its script when that ends, so the caller waits until this
 * process has a session of its own. */
void sweep_in_background(const struct place places[PLACES_MAX], const struct snapshot_run *own,
                         int age)
{
    int ends[2], none = open("/dev/null", O_RDWR | O_CLOEXEC);
    char byte;
    pid_t pid;

    if (place_first(places) == NULL || none < 0 || pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid = fork();
    if (pid == 0) {
        setsid();
        signal(SIGCHLD, SIG_IGN);
        for (int fd = 0; fd <= 2; fd++)
            dup2(none, fd);
        if (chdir("/") == 0) {
            close(ends[0]);
            close(ends[1]);
            take_turn(places, own, age);
        }
        _exit(0);
    }
    close(none);
    close(ends[1]);
    if (pid > 0 && read(ends[0], &byte, 1) < 0)
        errno = 0; /* it says nothing: its end of the pipe is closed */
    close(ends[0]);
}
