/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slurmctld's log says what it makes of elastic.conf (watch.h). */
#include "config.h"

#include "src/common/slurm_xlator.h"

#include "src/common/log.h"

#include "plugins/job_submit/watch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/conf_file.h"

#define PERIOD 2 /* seconds between two looks, each of which compares two numbers */

/* Slurm passes no pointer of ours to a plugin. */
static pthread_t watcher;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopping = PTHREAD_COND_INITIALIZER;
static bool runs, stops;
static time_t (*configured_at)(void);

static void say(void)
{
    struct error err = {""};
    struct conf *conf = conf_file_load(NULL, &err);
    char *path = conf_file_path();

    if (conf)
        info("job_submit/elastic: elastic jobs are admitted, by %s: pools: %d, max_nodes: %d",
             path ? path : "elastic.conf", conf->pool_count, conf->max_nodes);
    else
        error("job_submit/elastic: %s; elastic jobs are refused until it is repaired and "
              "'scontrol reconfigure' is run",
              err.text);
    conf_destroy(conf);
    free(path);
}

static void *watch(void *arg)
{
    time_t seen = configured_at();

    (void)arg;
    pthread_mutex_lock(&lock);
    while (!stops) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PERIOD;
        pthread_cond_timedwait(&stopping, &lock, &until);
        if (stops || configured_at() == seen)
            continue;
        seen = configured_at();
        pthread_mutex_unlock(&lock);
        say();
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void watch_start(time_t (*configured)(void))
{
    configured_at = configured;
    stops = false;
    say();
    runs = pthread_create(&watcher, NULL, watch, NULL) == 0;
}

void watch_stop(void)
{
    if (!runs)
        return;
    pthread_mutex_lock(&lock);
    stops = true;
    pthread_cond_signal(&stopping);
    pthread_mutex_unlock(&lock);
    pthread_join(watcher, NULL);
    runs = false;
}
