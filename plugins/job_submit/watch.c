/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slurmctld's log says what it makes of elastic.conf (watch.h). */
#include "plugins/slurmctld.h"

#include "plugins/job_submit/watch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/conf_file.h"

#define PERIOD 2 /* seconds between two looks, each of which compares two numbers */

/* Slurm passes no pointer of ours to a plugin. */
static pthread_t watcher;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopping = PTHREAD_COND_INITIALIZER;
static bool runs, stops;
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

static void *watch(void *arg)
{
    /* Slurm counts in seconds, and may be configured again in the same second. */
    bool settled = false;
    time_t seen = *(const time_t *)arg;

    pthread_mutex_lock(&lock);
    while (!stops) {
        struct timespec until;
        bool anew;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PERIOD;
        pthread_cond_timedwait(&stopping, &lock, &until);
        anew = configured_at() != seen;
        if (stops || (!anew && settled))
            continue;
        seen = configured_at();
        settled = time(NULL) > seen;
        pthread_mutex_unlock(&lock);
        say(anew);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void watch_start(time_t (*configured)(void))
{
    static time_t at_start;

    configured_at = configured;
    at_start = configured();
    stops = false;
    say(true);
    runs = pthread_create(&watcher, NULL, watch, &at_start) == 0;
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
