/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `elastic-fit run`: the runner as a process beside the leader (command.h). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/stop.h"
#include "fit/fit_command.h"
#include "fit/grant.h"
#include "fit/runner.h"
#include "lib/number.h"

#define LOOK_FIRST_NS 20000000L  /* between two looks at a fit, when it has just gone on … */
#define LOOK_MOST_NS  250000000L /* … and later */
#define IDLE_NS       300000000L /* … for one */
#define OVERDUE_PAUSE 600        /* seconds between two looks for access that is over */

/* Twice as long each time. */
static long next_pause(long pause, enum runner_sees sees)
{
    if (sees == RUNNER_IDLE)
        return IDLE_NS;
    if (sees == RUNNER_MOVED || pause == IDLE_NS)
        return LOOK_FIRST_NS;
    return 2 * pause < LOOK_MOST_NS ? 2 * pause : LOOK_MOST_NS;
}

/* Access that should be over: nobody else may be left to see to that. */
static void take_back(time_t *next)
{
    time_t now = time(NULL);
    struct error err;
    int count;

    if (now < *next)
        return;
    *next = now + OVERDUE_PAUSE;
    if (grant_revoke_all(NULL, (double)now, &count, &err) != 0)
        log_error("access of trainers cannot be taken back: %s", err.text);
    if (count > 0)
        log_info("access of trainers to %d fits was over, and has been taken back", count);
}

/* Until it is told to end, or another runner has come. */
static int loop(struct runner *runner, const struct home *home, int64_t claim, struct error *err)
{
    struct timespec pause = {.tv_nsec = IDLE_NS};
    struct error before = {""};
    pid_t parent = getppid();
    time_t overdue = 0;

    while (!stop_was_asked() && getppid() == parent) {
        enum runner_sees sees = RUNNER_IDLE;
        int rc;

        take_back(&overdue);
        rc = runner_look(runner, &sees, err);
        if (rc != 0 && !home_claimed(home, claim))
            return -1;
        if (rc != 0 && strcmp(before.text, err->text) != 0) {
            log_error("%s; tries again", err->text);
            before = *err;
        }
        pause.tv_nsec = next_pause(pause.tv_nsec, rc == 0 ? sees : RUNNER_IDLE);
        nanosleep(&pause, NULL);
    }
    runner_leave(runner);
    return 0;
}

static uint32_t restarts_of_job(void)
{
    const char *text = getenv("SLURM_RESTART_COUNT");
    int number = 0;

    return text != NULL && number_parse(text, strlen(text), 0, INT32_MAX, &number) == 0
               ? (uint32_t)number
               : 0;
}

int fit_run(const struct fit_arguments *arguments, struct error *err)
{
    struct service_link *link = NULL;
    struct runner *runner = NULL;
    struct home home;
    int64_t claim;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    log_init("elastic-fit");
    stop_watch(0);
    if (home_open(&home, arguments->service, err) != 0 || home_claim(&home, &claim, err) != 0)
        return -1;
    link = service_link_create(arguments->job);
    if (link != NULL)
        runner = runner_create(
            &(struct runner_options){.home = &home,
                                     .link = link,
                                     .claim = claim,
                                     .job = arguments->job,
                                     .restarts = restarts_of_job(),
                                     .cluster = getenv("SLURM_CLUSTER_NAME"),
                                     .guests = arguments->guests ? arguments->service : NULL});
    rc = runner != NULL ? loop(runner, &home, claim, err) : error_set(err, "out of memory");
    runner_destroy(runner);
    service_link_destroy(link);
    return rc;
}
