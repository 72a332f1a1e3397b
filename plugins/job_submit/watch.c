/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread of slurmctld for elastic.conf and for drained nodes (watch.h). */
#include "plugins/slurmctld.h"

#include "plugins/job_submit/watch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/conf_file.h"
#include "plugins/job_submit/drains.h"

#define PERIOD 2 /* seconds between two looks, each of which compares a few numbers */

struct watcher {
    pthread_t thread;
    struct drains *drains;
    time_t seen;    /* configured_at() */
    bool settled;   /* Slurm counts in seconds, and may be configured again in the same second */
    bool stops;     /* it is to end */
    bool looks;     /* it may wait for slurmctld's locks */
    bool by_itself; /* nobody waits for its end */
};

/* Slurm passes no pointer of ours to a plugin. */
static struct watcher *watcher; /* NULL: there is none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopping = PTHREAD_COND_INITIALIZER;
static time_t (*configured_at)(void);

/* What is in the log: so that the same is not said twice of one configuration. */
static char said[sizeof(((struct error *)NULL)->text)];

static void say(bool anew)
{
    struct error err = {""};
    struct conf *conf = conf_file_load(NULL, &err);
    char *path = conf_file_path(), text[sizeof(((struct error *)NULL)->text)];

    if (conf)
        snprintf(text, sizeof(text), "elastic jobs are admitted, by %s: pools: %d, max_nodes: %d",
                 path ? path : "elastic.conf", conf->pool_count, conf->max_nodes);
    else
        snprintf(text, sizeof(text), "%s", err.text);
    if (anew || strcmp(text, said) != 0) {
        if (conf)
            info("job_submit/elastic: %s", text);
        else
            error("job_submit/elastic: %s; elastic jobs are refused until it is repaired and "
                  "'scontrol reconfigure' is run",
                  text);
    }
    memcpy(said, text, sizeof(said));
    conf_destroy(conf);
    free(path);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void look(struct watcher *w)
{
    bool anew = configured_at() != w->seen;

    if (anew || !w->settled) {
        w->seen = configured_at();
        w->settled = time(NULL) > w->seen;
        say(anew);
    }
    if (w->drains)
        drains_look(w->drains, seconds());
}

static void destroy(struct watcher *w)
{
    drains_destroy(w->drains);
    free(w);
}

static void *watch(void *arg)
{
    struct watcher *w = arg;
    bool by_itself;

    pthread_mutex_lock(&lock);
    while (!w->stops) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PERIOD;
        pthread_cond_timedwait(&stopping, &lock, &until);
        if (w->stops)
            break;
        w->looks = true;
        pthread_mutex_unlock(&lock);
        look(w);
        pthread_mutex_lock(&lock);
        w->looks = false;
    }
    by_itself = w->by_itself;
    pthread_mutex_unlock(&lock);
    if (by_itself)
        destroy(w);
    return NULL;
}

void watch_start(time_t (*configured)(void))
{
    struct watcher *w = calloc(1, sizeof(*w));

    configured_at = configured;
    if (w)
        w->seen = configured();
    say(true);
    if (!w)
        return;
    w->drains = drains_create();
    if (pthread_create(&w->thread, NULL, watch, w) == 0)
        watcher = w;
    else
        destroy(w);
}

/* Without job_submit/elastic in JobSubmitPlugins 'scontrol reconfigure' unloads it, and holds the
 * locks for which the thread may wait. Then the thread ends when it has had them: it frees what is
 * its own, and the linker has been told that the code stays (-z nodelete). */
void watch_stop(void)
{
    struct watcher *w = watcher;
    bool waits;

    if (!w)
        return;
    watcher = NULL;
    pthread_mutex_lock(&lock);
    waits = w->looks;
    w->stops = true;
    w->by_itself = waits;
    if (waits)
        pthread_detach(w->thread);
    pthread_cond_broadcast(&stopping);
    pthread_mutex_unlock(&lock);
    if (waits)
        return;
    pthread_join(w->thread, NULL);
    destroy(w);
}
