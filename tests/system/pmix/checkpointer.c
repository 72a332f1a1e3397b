/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that knows PMIx and nothing else of us: makes steps, saves when it is asked to by an
 * event, says that it has, and goes on until somebody ends it. It ignores SIGTERM: Slurm sends
 * that to every process of a job that it preempts.
 *
 * checkpointer DIRECTORY SECONDS: saves to DIRECTORY/checkpoint-RANK, which takes so long; logs
 * to DIRECTORY/log-RANK. */
#include <signal.h>
#include <unistd.h>

#include "tests/system/pmix/program.h"

static volatile int asked;
static pmix_proc_t self;
static char checkpoint[4096];

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t count, pmix_info_t results[], size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void *cookie)
{
    long left = -1;

    (void)id;
    (void)source;
    (void)results;
    (void)result_count;
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_TIME_REMAINING))
            left = info[i].value.data.uint32;
    say("%s %ld", code == PMIX_JCTRL_PREEMPT_ALERT ? "alert" : "asked", left);
    if (code == PMIX_JCTRL_CHECKPOINT)
        asked = 1;
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cookie);
}

static void declare(void)
{
    pmix_status_t codes[] = {PMIX_JCTRL_CHECKPOINT, PMIX_JCTRL_PREEMPT_ALERT};

    PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL);
    say("declared %d", declare_preemptible());
}

int main(int argc, char **argv)
{
    char path[4096];
    long steps;

    signal(SIGTERM, SIG_IGN);
    if (argc < 3 || PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
        return 1;
    snprintf(path, sizeof(path), "%s/log-%u", argv[1], self.rank);
    log_file = fopen(path, "a");
    snprintf(checkpoint, sizeof(checkpoint), "%s/checkpoint-%u", argv[1], self.rank);
    steps = number_load(checkpoint);
    say("begins %ld", steps);
    declare();
    for (;;) {
        usleep(50000);
        steps++;
        if (!asked)
            continue;
        asked = 0;
        usleep((useconds_t)(atof(argv[2]) * 1e6));
        number_save(checkpoint, steps);
        say("saved %ld", steps);
        tell_saved(&self);
    }
}
