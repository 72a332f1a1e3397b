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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/monotonic.h"
#include "common/stop.h"
#include "flush/bounds.h"
#include "flush/clear.h"
#include "flush/process.h"
#include "flush/slot.h"
#include "flush/start.h"
#include "flush/users.h"

#define USERS_MAX    300 /* of one sweep */
#define RUNS_OF_USER START_RUNS_MAX
#define RUNS_KEPT    20  /* of a user, that cannot be saved */
#define AT_A_TIME    4   /* users whose directories are flushed at the same time */
#define USER_LIMIT   10  /* seconds, after which another user is begun */
#define LIMIT        300 /* seconds for a sweep */

/* The directories of one user, which one process flushes. */
struct user {
    bool stranger;
    struct place_run runs[RUNS_OF_USER]; /* the newest */
    int count;
    int output; /* -1: not begun, or over */
    time_t began;
};

struct sweep {
    const struct place *places;
    int64_t share;
    int age;
    const struct snapshot_run *own; /* whose job is left out */
    int place;                      /* that is being listed */
    struct process_jobs jobs;       /* that are on the node */
    uid_t uids[USERS_MAX];
    struct user users[USERS_MAX];
    int count;
};

/* Where the user's next one belongs: behind all, or in the place of his oldest. NULL: nowhere, it
 * is older than that. */
static struct place_run *room_for(const struct place_run *next, struct user *user)
{
    struct place_run *oldest = &user->runs[0];

    if (user->count < RUNS_OF_USER)
        return &user->runs[user->count++];
    for (int i = 1; i < user->count; i++)
        if (place_newest_first(oldest, &user->runs[i]) < 0)
            oldest = &user->runs[i];
    return place_newest_first(next, oldest) < 0 ? oldest : NULL;
}

/* Nothing is in it: it may be that of a job which begins. */
static bool is_empty(const struct place *place, const char *name)
{
    struct stat st;
    int dir = entry_open_same(place->fd, name, S_IFDIR, &st, NULL);
    bool empty = dir >= 0 && clear_is_empty(dir);

    if (dir >= 0)
        close(dir);
    return empty;
}

/* What keeps root from looking at others does not count: a user may have any number of these. */
static void add_run(void *arg, const struct snapshot_run *run)
{
    struct sweep *sweep = arg;
    const struct place *place = &sweep->places[sweep->place];
    struct place_run next = {.run = *run, .place = sweep->place}, *room;
    int i = 0;

    if (run->uid == sweep->own->uid && run->job == sweep->own->job)
        return;
    while (i < sweep->count && sweep->uids[i] != run->uid)
        i++;
    if (i == sweep->count)
        return;
    place_name(next.name, run);
    if (process_has_job(&sweep->jobs, run->job)) {
        bounds_begin_anew(place, next.name);
        return;
    }
    if (is_empty(place, next.name))
        return;
    room = room_for(&next, &sweep->users[i]);
    if (room != NULL)
        *room = next;
}

/* Of the uids that are nobody's one process at a time runs, too. */
static int take_slot(const struct sweep *sweep, const struct user *user)
{
    struct snapshot_run run = user->runs[0].run;

    if (user->stranger)
        run.uid = SLOT_STRANGERS;
    return slot_take_user(place_first(sweep->places), &run, SLOT_USER_SWEEP, NULL);
}

/* The process holds the user's slot until it ends: where one hangs, no other is begun. Then root
 * keeps the bounds only, as far as that cannot hang. */
static void begin(struct sweep *sweep, struct user *user)
{
    struct start start = {.sweep = true,
                          .places = sweep->places,
                          .runs = user->runs,
                          .count = user->count,
                          .share = sweep->share,
                          .keep_runs = RUNS_KEPT,
                          .age = sweep->age,
                          .slot = take_slot(sweep, user)};

    user->began = monotonic_s();
    if (start_flush(&start, &user->output, NULL) < 0)
        user->output = -1;
    if (start.slot >= 0)
        close(start.slot);
}

/* What its guard says goes to the system's log; it ends when the guard does. */
static void read_output(struct user *user)
{
    char text[4096];

    if (read(user->output, text, sizeof(text)) > 0)
        return;
    close(user->output);
    user->output = -1;
}

/* Wait a second, or until some process says something. Returns how many are waited for, but for
 * those that take so long that another user may be begun; *all counts these as well. */
static int wait_for_users(struct sweep *sweep, int *all)
{
    struct pollfd polls[USERS_MAX];
    struct user *of[USERS_MAX];
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
                read_output(of[i]);
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
        while (busy >= AT_A_TIME && monotonic_s() < until)
            busy = wait_for_users(sweep, &all);
        if (sweep->users[i].count == 0)
            continue; /* only own's, or gone by now */
        qsort(sweep->users[i].runs, (size_t)sweep->users[i].count, sizeof(struct place_run),
              place_newest_first);
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
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    bool last_is_stranger;

    if (sweep == NULL)
        _exit(1);
    sweep->own = own;
    sweep->places = places;
    sweep->count = users_choose(places, own->node, sweep->uids, USERS_MAX, &last_is_stranger);
    for (int i = 0; i < sweep->count; i++)
        sweep->users[i].output = -1;
    if (last_is_stranger)
        sweep->users[sweep->count - 1].stranger = true;
    process_jobs(&sweep->jobs);
    for (sweep->place = 0; sweep->place < PLACES_MAX; sweep->place++)
        place_each(&places[sweep->place], own->node, add_run, sweep);
    sweep->share = place_share(place_first(places));
    sweep->age = age > 0 ? age : 1; /* elastic-flush takes 0 for ever */
    flush_all(sweep);
    free(sweep);
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
