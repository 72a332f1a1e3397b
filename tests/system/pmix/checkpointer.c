/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that knows PMIx and nothing else of us: makes steps, saves when it is asked to by an event, says that it has, and goes on until
 * somebody ends it. It ignores SIGTERM: Slurm sends that to every process of a job that it preempts.
 *
 * checkpointer DIRECTORY SECONDS: saves to DIRECTORY/checkpoint-RANK, which takes so long; logs to DIRECTORY/log-RANK. */
#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int asked;
static pmix_proc_t self;
static char checkpoint[4096];
static FILE *log_file;

static void say(const char *what, long number)
{
    fprintf(log_file, "%s %ld\n", what, number);
    fflush(log_file);
}

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
    say(code == PMIX_JCTRL_PREEMPT_ALERT ? "alert" : "asked", left);
    if (code == PMIX_JCTRL_CHECKPOINT)
        asked = 1;
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cookie);
}

static void declare(void)
{
    pmix_info_t *info, *results = NULL;
    size_t count = 0;
    pmix_status_t codes[] = {PMIX_JCTRL_CHECKPOINT, PMIX_JCTRL_PREEMPT_ALERT}, status;

    PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL);
    PMIX_INFO_CREATE(info, 1);
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_CTRL_PREEMPTIBLE, NULL, PMIX_BOOL);
    status = PMIx_Job_control(NULL, 0, info, 1, &results, &count);
    say("declared", status);
    PMIX_INFO_FREE(info, 1);
}

static void save(long steps)
{
    char temporary[4200];
    FILE *file;

    snprintf(temporary, sizeof(temporary), "%s.new", checkpoint);
    file = fopen(temporary, "w");
    fprintf(file, "%ld\n", steps);
    fclose(file);
    rename(temporary, checkpoint);
    say("saved", steps);
}

int main(int argc, char **argv)
{
    char path[4096];
    long steps = 0;
    FILE *file;

    signal(SIGTERM, SIG_IGN);
    if (argc < 3 || PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
        return 1;
    snprintf(path, sizeof(path), "%s/log-%u", argv[1], self.rank);
    log_file = fopen(path, "a");
    snprintf(checkpoint, sizeof(checkpoint), "%s/checkpoint-%u", argv[1], self.rank);
    file = fopen(checkpoint, "r");
    if (file != NULL && fscanf(file, "%ld", &steps) != 1)
        steps = -1;
    if (file != NULL)
        fclose(file);
    say("begins", steps);
    declare();
    for (;;) {
        usleep(50000);
        steps++;
        if (!asked)
            continue;
        asked = 0;
        usleep((useconds_t)(atof(argv[2]) * 1e6));
        save(steps);
        PMIx_Notify_event(PMIX_JCTRL_CHECKPOINT_COMPLETE, &self, PMIX_RANGE_RM, NULL, 0, NULL,
                          NULL);
    }
}
