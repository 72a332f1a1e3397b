/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that share work (crew.h). */
#include "common/crew.h"

#include <pthread.h>

#define LANES_MAX 64

struct crew {
    pthread_mutex_t lock;
    pthread_cond_t passed;
    size_t count, next;
    size_t turn; /* the piece whose turn it is */
    crew_work *work;
    void *arg;
    bool failed;
    struct error *err;
};

struct member {
    struct crew *crew;
    int lane;
    pthread_t thread;
};

static bool take(struct crew *crew, size_t *piece)
{
    bool taken;

    pthread_mutex_lock(&crew->lock);
    taken = !crew->failed && crew->next < crew->count;
    if (taken)
        *piece = crew->next++;
    pthread_mutex_unlock(&crew->lock);
    return taken;
}

static void fail(struct crew *crew, const struct error *err)
{
    pthread_mutex_lock(&crew->lock);
    if (!crew->failed && crew->err != NULL)
        *crew->err = *err;
    crew->failed = true;
    pthread_cond_broadcast(&crew->passed);
    pthread_mutex_unlock(&crew->lock);
}

static void *run(void *arg)
{
    const struct member *member = arg;
    struct crew *crew = member->crew;
    size_t piece;

    while (take(crew, &piece)) {
        struct error err = {""};

        if (crew->work(crew, member->lane, piece, crew->arg, &err) != 0)
            fail(crew, &err);
    }
    return NULL;
}

int crew_run(int lanes, size_t count, crew_work *work, void *arg, struct error *err)
{
    struct crew crew = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .passed = PTHREAD_COND_INITIALIZER,
                        .count = count,
                        .work = work,
                        .arg = arg,
                        .err = err};
    struct member members[LANES_MAX] = {{.crew = &crew}};
    int started = 1;

    while (started < lanes && started < LANES_MAX && (size_t)started < count) {
        members[started] = (struct member){.crew = &crew, .lane = started};
        if (pthread_create(&members[started].thread, NULL, run, &members[started]) != 0)
            break;
        started++;
    }
    run(&members[0]);
    while (--started > 0)
        pthread_join(members[started].thread, NULL);
    pthread_cond_destroy(&crew.passed);
    pthread_mutex_destroy(&crew.lock);
    return crew.failed ? -1 : 0;
}

bool crew_turn(struct crew *crew, size_t piece)
{
    bool good;

    pthread_mutex_lock(&crew->lock);
    while (!crew->failed && crew->turn != piece)
        pthread_cond_wait(&crew->passed, &crew->lock);
    good = !crew->failed;
    pthread_mutex_unlock(&crew->lock);
    return good;
}

void crew_pass(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->turn++;
    pthread_cond_broadcast(&crew->passed);
    pthread_mutex_unlock(&crew->lock);
}
